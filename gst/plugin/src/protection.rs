//! How what goes is protected, by the properties that both elements share. Encrypted unless `plain` is set.

use crate::failure::Failure;
use crate::places;
use crate::properties::{self, given};
use braidcast_sctp::SecurityOptions;
use braidcast_secure::identity::Identity;
use braidcast_secure::known_peers::{KnownPeers, KnownPeersError};
use braidcast_secure::tls::{Tls, Trust};
use braidcast_secure::{Failed, Fingerprint, PrivateKey, SharedKey, Suite};
use braidcast_session::SecurityReport;
use gst::ResourceError as Code;
use gst::glib::{self, prelude::*};
use gstreamer as gst;
use std::fs;
use std::sync::Arc;

/// What `braidcast send` and `receive` call `--key`, `--key-file`, `--identity`, `--peer-key` and `--plain`.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct Protection {
    key: Option<String>,
    key_file: Option<String>,
    identity: Option<String>,
    peer_key: Option<String>,
    plain: bool,
}

impl Protection {
    /// The properties of an element that speaks with `other`, a receiver or a sender.
    pub(crate) fn properties(other: &str) -> [glib::ParamSpec; 5] {
        let fingerprint = format!(
            "Fingerprint of the {other}'s key, or several with commas; no other key is trusted. While the pipeline \
             plays, a list can be replaced by another: who is on it no more is disconnected"
        );
        [
            properties::secret("key", "Key that both ends share, of `braidcast key new`, or a passphrase"),
            properties::text("key-file", "File with that key in its first line", ""),
            properties::text("identity", "File with this end's private key, of `braidcast key identity`", ""),
            properties::live_text("peer-key", &fingerprint),
            properties::flag("plain", &format!("Do not encrypt; the {other} must not either"), false),
        ]
    }

    /// Sets a property, if it is one of these.
    pub(crate) fn set(&mut self, name: &str, value: &glib::Value) {
        match name {
            "key" => self.key = given(value),
            "key-file" => self.key_file = given(value),
            "identity" => self.identity = given(value),
            "peer-key" => self.peer_key = given(value),
            "plain" => self.plain = value.get().unwrap_or_default(),
            _ => {}
        }
    }

    /// A property's value, if it is one of these and may be known.
    pub(crate) fn get(&self, name: &str) -> Option<glib::Value> {
        match name {
            "key-file" => Some(self.key_file.to_value()),
            "identity" => Some(self.identity.to_value()),
            "peer-key" => Some(self.peer_key.to_value()),
            "plain" => Some(self.plain.to_value()),
            _ => None,
        }
    }

    /// Of an end that waits for others.
    pub(crate) fn server(&self) -> Result<Secured, Failure> {
        Ok(Secured { method: self.method(Trust::Anyone)?, known: None })
    }

    /// Of an end that connects to another one, which is called `names`: if that showed a key of its
    /// own there, it has to show it again.
    pub(crate) fn client(&self, names: &[String]) -> Result<Secured, Failure> {
        let named = self.plain || self.key.is_some() || self.key_file.is_some() || self.peer_key.is_some();
        let known = if named { None } else { Some(KnownPeers::of_user(names).map_err(unusable)?) };
        let method = self.method(known.as_ref().map_or(Trust::First, KnownPeers::trust))?;
        Ok(Secured { method, known })
    }

    /// The keys of `list` that are to be in place of those of `peer-key` while the element runs.
    ///
    /// # Errors
    /// It has none, or there was no list when the element was started.
    pub(crate) fn changed_peers(&self, list: &str) -> Result<Vec<Fingerprint>, Failure> {
        if self.peer_key.is_none() {
            let why = "it was empty when the element was started";
            return Err(Failure::property("peer-key", why, "set it in NULL or READY"));
        }
        fingerprints(list)
    }

    /// `open`: whom to trust if no key is named. `None`: nothing is encrypted.
    fn method(&self, open: Trust) -> Result<Option<Arc<Tls>>, Failure> {
        let shared = self.key.is_some() || self.key_file.is_some();
        if self.plain {
            let more = shared || self.identity.is_some() || self.peer_key.is_some();
            return if more {
                Err(Failure::property("plain", "nothing is encrypted with it, and a key is set", "leave one out"))
            } else {
                Ok(None)
            };
        }
        if shared && (self.identity.is_some() || self.peer_key.is_some()) {
            let why = "a shared key is who one is and whom one trusts";
            return Err(Failure::property("key", why, "leave out either key and key-file, or identity and peer-key"));
        }
        let (identity, trust) = if shared {
            let identity = self.shared()?;
            let trust = Trust::Only(vec![identity.fingerprint()]);
            (identity, trust)
        } else {
            (self.own()?, self.peer_key.as_deref().map_or(Ok(open), |text| Ok(Trust::Only(fingerprints(text)?)))?)
        };
        Ok(Some(Arc::new(Tls::new(identity, trust, &Suite::ALL))))
    }

    fn shared(&self) -> Result<Identity, Failure> {
        let (name, text) = match (&self.key, &self.key_file) {
            (Some(_), Some(_)) => {
                return Err(Failure::property("key", "key-file is set too", "leave one of them out"));
            }
            (Some(key), _) => ("key", key.clone()),
            (_, file) => ("key-file", read("key-file", file.as_deref().unwrap_or_default())?),
        };
        let how = "give both ends the same key, made by: braidcast key new";
        let key: SharedKey = text.parse().map_err(|error| Failure::property(name, error, how))?;
        Identity::shared(&key).map_err(no_randomness)
    }

    fn own(&self) -> Result<Identity, Failure> {
        let Some(file) = &self.identity else { return Identity::ephemeral().map_err(no_randomness) };
        let how = "make one with: braidcast key identity FILE";
        let key: PrivateKey = read("identity", file)?
            .parse()
            .map_err(|error| Failure::property("identity", format!("{file}: {error}"), how))?;
        Identity::own(&key).map_err(no_randomness)
    }
}

/// Protection as a session has it.
#[derive(Default, Debug)]
pub(crate) struct Secured {
    method: Option<Arc<Tls>>,
    /// Of an end that connects: whom this user connected with before.
    known: Option<KnownPeers>,
}

impl Secured {
    pub(crate) fn options(&self) -> Option<SecurityOptions> {
        self.method.clone().map(|method| SecurityOptions::new(method))
    }

    /// Lets in who has one of these keys, and nobody else, from the next handshake on.
    pub(crate) fn trust(&self, keys: &[Fingerprint]) {
        self.method.iter().for_each(|method| method.set_trust(Trust::Only(keys.to_vec())));
    }

    /// There is a connection: a key of its own that the other end showed for the first time is
    /// remembered. A sentence about that, as an error if it cannot be.
    pub(crate) fn connected(&mut self, report: Option<&SecurityReport>) -> Option<Result<String, String>> {
        let report = report.filter(|it| it.peer_key == Some("own") && !it.authenticated)?;
        let key = report.peer_fingerprint.as_ref()?.parse().ok()?;
        Some(self.known.as_mut()?.remember(key))
    }

    /// What the user may do if the other end shows another key than before.
    pub(crate) fn hint(&self) -> Option<String> {
        self.known.as_ref()?.hint()
    }
}

fn unusable(error: KnownPeersError) -> Failure {
    Failure::new(Code::OpenRead, error.to_string(), "fix it, or set peer-key or key")
}

fn fingerprints(text: &str) -> Result<Vec<Fingerprint>, Failure> {
    let how = "it has 64 hexadecimal digits; `braidcast key identity FILE` prints it; several have commas between";
    let wrong = |()| Failure::property("peer-key", "that is not a fingerprint", how);
    let all: Vec<_> = places::parts(text).iter().map(|key| key.parse()).collect::<Result<_, ()>>().map_err(wrong)?;
    if all.is_empty() { Err(wrong(())) } else { Ok(all) }
}

/// The first line of a file.
fn read(property: &str, path: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(path).map_err(|error| {
        let what = format!("property {property}: cannot read the key in {path}: {error}");
        Failure::new(Code::OpenRead, what, "name a text file with the key in its first line")
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn no_randomness(_: Failed) -> Failure {
    Failure::new(Code::Failed, "the cryptographic library failed", "check that the system has randomness to give")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contradicts_itself_is_refused() {
        let it = || Protection::default();
        let text = |text: &str| Some(text.to_owned());
        let is_secured = |it: Protection| it.server().map(|it| it.options().is_some());
        assert_eq!([is_secured(it()), is_secured(Protection { plain: true, ..it() })], [Ok(true), Ok(false)]);
        for (wrong, words) in [
            (Protection { plain: true, key: text("a passphrase"), ..it() }, "nothing is encrypted"),
            (Protection { key: text("a passphrase"), key_file: text("x"), ..it() }, "key-file is set too"),
            (Protection { key: text("a passphrase"), identity: text("x"), ..it() }, "a shared key is who one is"),
            (Protection { key_file: text("/nowhere/key"), ..it() }, "cannot read the key in /nowhere/key"),
            (Protection { peer_key: text("12"), ..it() }, "64 hexadecimal digits"),
        ] {
            let failure = wrong.server().unwrap_err().to_string();
            assert!(failure.contains(words), "{failure}");
        }
    }
}
