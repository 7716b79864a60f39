use crate::Error;
use braidcast_sctp::SecurityOptions;
use braidcast_secure::identity::Identity;
use braidcast_secure::tls::{Tls, Trust};
use braidcast_secure::{Limits, SharedKey, Suite};
use std::sync::Arc;

/// How all that goes over a [`Socket`](crate::Socket) is protected. Both ends must have the same.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Protection {
    /// Encrypted, with whoever is at the other end: nobody can listen in, but somebody may stand in
    /// between.
    #[default]
    Anyone,
    /// Encrypted, and only who has the same key gets in: words or a short string of
    /// `braidcast key new`, or a passphrase.
    Key(String),
    /// Not encrypted: whoever is in between can read and change it.
    Plain,
}

impl Protection {
    pub(crate) fn options(&self) -> Result<Option<SecurityOptions>, Error> {
        let (identity, trust) = match self {
            Self::Plain => return Ok(None),
            Self::Anyone => (Identity::ephemeral().map_err(|_| Error::NoKey)?, Trust::Anyone),
            Self::Key(text) => {
                let key: SharedKey = text.parse()?;
                let identity = Identity::shared(&key).map_err(|_| Error::NoKey)?;
                let trust = Trust::Only(vec![identity.fingerprint()]);
                (identity, trust)
            }
        };
        let method = Arc::new(Tls::new(identity, trust, &Suite::ALL));
        Ok(Some(SecurityOptions { method, limits: Limits::default() }))
    }
}

/// Leaves the key out.
impl std::fmt::Debug for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Anyone => "Anyone",
            Self::Key(_) => "Key(…)",
            Self::Plain => "Plain",
        })
    }
}
