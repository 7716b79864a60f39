use crate::{Error, Identity, Trust};
use braidcast_sctp::SecurityOptions;
use braidcast_secure::tls::{self, Tls};
use braidcast_secure::{SharedKey, Suite};
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
    /// The same for a protocol that is run by itself.
    ///
    /// # Errors
    /// [`Error::Key`], [`Error::NoKey`].
    pub fn secured(&self) -> Result<Secured, Error> {
        use braidcast_secure::identity::Identity;
        let (identity, trust) = match self {
            Self::Plain => return Ok(Secured { tls: None, has_identity: false, warning: None }),
            Self::Anyone => (Identity::ephemeral().map_err(|_| Error::NoKey)?, tls::Trust::Anyone),
            Self::Key(text) => {
                let key: SharedKey = text.parse()?;
                let identity = Identity::shared(&key).map_err(|_| Error::NoKey)?;
                let trust = tls::Trust::Only(vec![identity.fingerprint()]);
                (identity, trust)
            }
            Self::Identity { own, trust } => (own.inner.clone(), trust.clone().inner()),
        };
        let (has_identity, warning) = match self {
            Self::Identity { own, .. } => (true, own.warning.clone()),
            _ => (false, None),
        };
        Ok(Secured { tls: Some(Arc::new(Tls::new(identity, trust, &Suite::ALL))), has_identity, warning })
    }
}

/// A [`Protection`] that is ready to be used.
#[derive(Clone, Debug)]
pub struct Secured {
    /// How keys are agreed on; `None` if nothing is protected.
    tls: Option<Arc<Tls>>,
    /// This end has a key of its own, and a list of those who are let in.
    has_identity: bool,
    warning: Option<Arc<str>>,
}

impl Secured {
    /// The transport's options that protect so; `None` if nothing is protected.
    #[must_use]
    pub fn options(&self) -> Option<SecurityOptions> {
        let method = Arc::clone(self.tls.as_ref()?);
        Some(SecurityOptions::new(method))
    }

    /// What is wrong with the file of the identity, in words.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Lets in others from now on. Connections that there are stay.
    ///
    /// # Errors
    /// [`Error::NoIdentity`].
    pub fn set_trust(&self, trust: Trust) -> Result<(), Error> {
        let tls = self.tls.as_ref().filter(|_| self.has_identity).ok_or(Error::NoIdentity)?;
        tls.set_trust(trust.inner());
        Ok(())
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
