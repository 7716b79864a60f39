use crate::errors::Misuse;
use braidcast_socket::{Error, Identity, Protection, Trust};
use pyo3::PyResult;
use std::path::PathBuf;

/// Who is let in, as keywords say it.
pub(crate) enum Keys {
    Shared(Protection),
    /// The file of a key of this end's own, and the fingerprints of who is let in.
    Own(PathBuf, Option<Vec<String>>),
}

impl Keys {
    /// Refuses what does not go together.
    pub(crate) fn new(
        key: Option<String>,
        plain: bool,
        identity: Option<PathBuf>,
        authorized: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let refused = |what: &'static str| Err(Misuse::new_err(what));
        match (key, identity, plain) {
            (_, None, _) if authorized.is_some() => refused("authorized needs an identity"),
            (Some(_), Some(_), _) => refused("a key that is shared and an identity do not go together"),
            (Some(_), _, true) => refused("a key needs encryption: leave out key, or plain"),
            (_, Some(_), true) => refused("an identity needs encryption: leave out identity, or plain"),
            (Some(key), None, false) => Ok(Self::Shared(Protection::Key(key))),
            (None, Some(file), false) => Ok(Self::Own(file, authorized)),
            (None, None, true) => Ok(Self::Shared(Protection::Plain)),
            (None, None, false) => Ok(Self::Shared(Protection::Anyone)),
        }
    }

    /// Reads the file, or makes it.
    pub(crate) fn protection(self) -> Result<Protection, Error> {
        match self {
            Self::Shared(protection) => Ok(protection),
            Self::Own(file, authorized) => {
                let own = Identity::load_or_create(file)?;
                let trust = authorized.map_or(Ok(Trust::Anyone), Trust::only)?;
                Ok(Protection::Identity { own, trust })
            }
        }
    }
}
