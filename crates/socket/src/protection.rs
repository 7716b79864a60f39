use crate::{Error, Identity, Trust};
use braidcast_sctp::SecurityOptions;
use braidcast_secure::tls::{self, Tls};
use braidcast_secure::{Limits, SharedKey, Suite};
use std::sync::Arc;

/// How all that goes over a [`Socket`](crate::Socket) is protected. Both ends must have the same
/// kind.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Protection {
    /// Encrypted, with whoever is at the other end: nobody can listen in, but somebody may stand in
    /// between.
    #[default]
    Anyone,
    /// Encrypted, and only who has the same key gets in: words or a short string of
    /// `braidcast key new`, or a passphrase.
    Key(String),
    /// Encrypted; each end has a key of its own, and says whose it takes.
    Identity {
        /// This end's.
        own: Identity,
        /// The other ends'.
        trust: Trust,
    },
    /// Not encrypted: whoever is in between can read and change it.
    Plain,
}

impl Protection {
    /// How keys are agreed on; `None` if nothing is protected.
    pub(crate) fn tls(&self) -> Result<Option<Arc<Tls>>, Error> {
        use braidcast_secure::identity::Identity;
        let (identity, trust) = match self {
            Self::Plain => return Ok(None),
            Self::Anyone => (Identity::ephemeral().map_err(|_| Error::NoKey)?, tls::Trust::Anyone),
            Self::Key(text) => {
                let key: SharedKey = text.parse()?;
                let identity = Identity::shared(&key).map_err(|_| Error::NoKey)?;
                let trust = tls::Trust::Only(vec![identity.fingerprint()]);
                (identity, trust)
            }
            Self::Identity { own, trust } => (own.inner.clone(), trust.clone().inner()),
        };
        Ok(Some(Arc::new(Tls::new(identity, trust, &Suite::ALL))))
    }

    /// The transport's options that protect by `tls`.
    pub(crate) fn options(tls: Option<&Arc<Tls>>) -> Option<SecurityOptions> {
        tls.map(|method| SecurityOptions { method: Arc::<Tls>::clone(method), limits: Limits::default() })
    }
}

/// Leaves the key out.
impl std::fmt::Debug for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anyone => f.write_str("Anyone"),
            Self::Key(_) => f.write_str("Key(…)"),
            Self::Identity { own, trust } => write!(f, "Identity({own:?}, {trust:?})"),
            Self::Plain => f.write_str("Plain"),
        }
    }
}
