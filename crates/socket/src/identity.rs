use crate::Error;
use braidcast_secure::{Fingerprint, PrivateKey};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A key of one's own, by which others know who is there.
///
/// It stands in a file as `braidcast key identity FILE` makes it: the private key in the first line.
///
/// ```
/// use braidcast_socket::{Identity, Socket, Trust};
///
/// let (server, client) = (Identity::generate()?, Identity::generate()?);
/// let mut socket = Socket::builder()
///     .identity(server, Trust::Only(vec![client.fingerprint()]))
///     .build()?;
/// // Later, somebody else is let in.
/// socket.set_trust(Trust::Only(vec![Identity::generate()?.fingerprint()]))?;
/// # Ok::<(), braidcast_socket::Error>(())
/// ```
#[derive(Clone)]
pub struct Identity {
    pub(crate) inner: braidcast_secure::identity::Identity,
    /// What is wrong with its file, in words.
    pub(crate) warning: Option<Arc<str>>,
}

impl Identity {
    /// Reads it from a file. If others on this machine may read that too, a socket says so among its
    /// [warnings](crate::Socket::take_warnings).
    ///
    /// # Errors
    /// [`Error::Identity`].
    pub fn load(file: impl AsRef<Path>) -> Result<Self, Error> {
        let file = file.as_ref();
        let refused = |what: String| Error::Identity { file: file.into(), what };
        let text = Zeroizing::new(fs::read_to_string(file).map_err(|error| refused(error.to_string()))?);
        let key: PrivateKey =
            text.lines().next().unwrap_or_default().parse().map_err(|error| refused(format!("{error}")))?;
        let others = fs::metadata(file).is_ok_and(|it| it.mode() & 0o077 != 0);
        let warning = others.then(|| {
            let file = file.display();
            format!("others on this machine may read the key in {file}; to end that: chmod 600 {file}").into()
        });
        Ok(Self { warning, ..Self::own(&key)? })
    }

    /// The same; if there is no such file, makes a new key in it, which nobody else may read.
    ///
    /// # Errors
    /// [`Error::Identity`].
    pub fn load_or_create(file: impl AsRef<Path>) -> Result<Self, Error> {
        let path = file.as_ref();
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut opened) => {
                let (_, key) = braidcast_secure::identity::Identity::generate().map_err(|_| Error::NoKey)?;
                let text = key.text();
                let written = opened.write_all(text.as_bytes()).and_then(|()| opened.write_all(b"\n"));
                let written = written.and_then(|()| opened.sync_all());
                written.map_err(|error| Error::Identity { file: path.into(), what: error.to_string() })?;
                Self::own(&key)
            }
            // It is there, or cannot be made: reading says what is wrong.
            Err(_) => Self::load(path),
        }
    }

    /// A new one, which is kept nowhere.
    ///
    /// # Errors
    /// [`Error::NoKey`].
    pub fn generate() -> Result<Self, Error> {
        let (inner, _) = braidcast_secure::identity::Identity::generate().map_err(|_| Error::NoKey)?;
        Ok(Self { inner, warning: None })
    }

    fn own(key: &PrivateKey) -> Result<Self, Error> {
        let inner = braidcast_secure::identity::Identity::own(key).map_err(|_| Error::NoKey)?;
        Ok(Self { inner, warning: None })
    }

    /// What others know it by: 64 hexadecimal digits in text.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.inner.fingerprint()
    }
}

/// Leaves the private key out.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint()).finish()
    }
}

/// Reads a fingerprint of 64 hexadecimal digits; colons between them do not matter.
///
/// # Errors
/// [`Error::Fingerprint`].
pub fn fingerprint(text: &str) -> Result<Fingerprint, Error> {
    text.parse().map_err(|()| Error::Fingerprint(text.to_owned()))
}

/// Who is let in, and at which servers one is content.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Trust {
    /// Who has one of these keys.
    Only(Vec<Fingerprint>),
    /// Anybody. [`Socket::peer`](crate::Socket::peer) says who it is.
    Anyone,
}

impl Trust {
    /// Who has one of these keys, each by its fingerprint in text.
    ///
    /// # Errors
    /// [`Error::Fingerprint`].
    pub fn only<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Result<Self, Error> {
        keys.into_iter().map(|key| fingerprint(key.as_ref())).collect::<Result<_, _>>().map(Self::Only)
    }

    pub(crate) fn inner(self) -> braidcast_secure::tls::Trust {
        match self {
            Self::Only(known) => braidcast_secure::tls::Trust::Only(known),
            Self::Anyone => braidcast_secure::tls::Trust::Anyone,
        }
    }
}

/// Who is at the other end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// Of the key that it proved to have. All who share a key have the same; without identities each
    /// run has a new one.
    pub fingerprint: Option<Fingerprint>,
    /// `true` if that key is one that this end insisted on. If not, anybody may be there.
    pub authenticated: bool,
}
