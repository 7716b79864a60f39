//! How what goes is protected, by the flags that all share.

use super::authorized::Who;
use super::certificates::{Certificates, about};
use super::key::{identity, no_randomness, read};
use crate::args::SharedArgs;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_sctp::SecurityOptions;
use braidcast_secure::identity::Identity;
use braidcast_secure::known_peers::{KnownPeers, KnownPeersError};
use braidcast_secure::tls::{Tls, Trust};
use braidcast_secure::{Fingerprint, Insecure, Insecurity, KeyKind, Method, SharedKey, Suite};
use braidcast_session::SecurityReport;
use std::sync::Arc;

/// What to do about a key that is not the one.
const SAME_KEY: &str =
    "give both ends the same --key (`braidcast key new` makes one), or none at both, or --plain at both";

/// What to do about an end that has no key of its own where one is listed.
const OWN_KEY_THERE: &str =
    "the other end needs a key of its own: --identity FILE, with the fingerprint that is listed here";

/// What to do if the ends do not understand each other.
pub(crate) const SAME_VERSION: &str = "use the same version at both ends";

/// Protection of one end.
pub(crate) struct Security {
    /// For SCTP; `None` with `--plain`.
    pub(crate) options: Option<SecurityOptions>,
    method: Option<Arc<Tls>>,
    /// Whom this end connected with before.
    known: Option<KnownPeers>,
    /// Whom `--peer-key` lets in.
    expected: Vec<Fingerprint>,
}

impl Security {
    /// Of an end that waits for others.
    pub(crate) fn server(args: &SharedArgs, live: &Live) -> Outcome<Self> {
        if args.plain {
            live.note("--plain: nothing is encrypted; anybody in between can read and change it");
            return Ok(Self { options: None, method: None, known: None, expected: Vec::new() });
        }
        if let Some(certificates) = Certificates::read(args, live)? {
            let tls = Tls::new(certificates.identity, Trust::Anyone, &Suite::ALL).certified(certificates.authority);
            return Ok(Self::with(tls, live));
        }
        let (identity, trust) = match shared(args, live)? {
            Some(identity) => {
                let trust = Trust::Only(vec![identity.fingerprint()]);
                (identity, trust)
            }
            None => {
                let own = args.identity.as_deref().map(|path| identity(path, live)).transpose()?;
                let known = args.peer_key.clone();
                let trust = if known.is_empty() { Trust::Anyone } else { Trust::Only(known) };
                (own.map_or_else(|| Identity::ephemeral().map_err(no_randomness), Ok)?, trust)
            }
        };
        let expected = args.peer_key.clone();
        Ok(Self { expected, ..Self::with(Tls::new(identity, trust, &Suite::ALL), live) })
    }

    /// By a ticket: as `identity`, with one other end.
    pub(crate) fn pinned(identity: Identity, other: Fingerprint, live: &Live) -> Self {
        Self::with(Tls::new(identity, Trust::Only(vec![other]), &Suite::ALL), live)
    }

    fn with(mut method: Tls, live: &Live) -> Self {
        if let Some(file) = std::env::var_os("SSLKEYLOGFILE").filter(|file| !file.is_empty()) {
            live.warn(format!("SSLKEYLOGFILE: anybody with {} can read everything", file.display()));
            method = method.logging_keys();
        }
        let method = Arc::new(method);
        let options = SecurityOptions::new(Arc::clone(&method) as _);
        Self { options: Some(options), method: Some(method), known: None, expected: Vec::new() }
    }

    /// Of an end that connects to others, which are called `names`: who showed a key of its own
    /// there has to show it again.
    pub(crate) fn client(args: &SharedArgs, names: &[String], live: &Live) -> Outcome<Self> {
        if let Some(certificates) = Certificates::read(args, live)? {
            let Certificates { identity, authority } = certificates.of_hosts(names)?;
            return Ok(Self::with(Tls::new(identity, Trust::Anyone, &Suite::ALL).certified(authority), live));
        }
        let mut it = Self::server(args, live)?;
        let has_key = args.key.is_some() || args.key_file.is_some() || !args.peer_key.is_empty();
        if let Some(method) = it.method.as_ref().filter(|_| !has_key) {
            let known = KnownPeers::of_user(names).map_err(unusable)?;
            method.set_trust(known.trust());
            it.known = Some(known);
        }
        Ok(it)
    }

    /// Lets in only these.
    pub(crate) fn trust(&self, whom: &[Who]) {
        let Some(method) = &self.method else { return };
        let keys: Vec<Fingerprint> = whom.iter().filter(|who| matches!(who, Who::Key(_))).map(Who::listed).collect();
        let name = |who: &Who| if let Who::Name(name) = who { Some(name.clone()) } else { None };
        method.set_trust(if self.is_certified() {
            Trust::Certified(keys, whom.iter().filter_map(name).collect())
        } else {
            Trust::Only(keys)
        });
    }

    /// Returns `true` if ends show certificates.
    pub(crate) fn is_certified(&self) -> bool {
        self.method.as_ref().is_some_and(|it| it.shows() == Some(KeyKind::Certified))
    }

    /// There is a connection: a key of its own that the other end showed for the first time is remembered.
    pub(crate) fn connected(&mut self, report: Option<&SecurityReport>, live: &Live) {
        let Some(report) = report.filter(|it| it.peer_key == Some("own") && !it.authenticated) else { return };
        let fingerprint = report.peer_fingerprint.as_ref().and_then(|text| text.parse().ok());
        if let (Some(known), Some(fingerprint)) = (&mut self.known, fingerprint) {
            match known.remember(fingerprint) {
                Ok(text) => live.note(text),
                Err(text) => live.warn(text),
            }
        }
    }

    /// What the user may do about a connection that did not come about, for this reason.
    pub(crate) fn hint(&self, reason: Option<&Insecure>) -> String {
        let why = reason.map(|reason| reason.why);
        if why == Some(Insecurity::Version) {
            return SAME_VERSION.into();
        }
        if self.is_certified() {
            return about(why).into();
        }
        let own = self.method.as_ref().filter(|it| it.shows() == Some(KeyKind::Own)).and_then(|it| it.fingerprint());
        if let Some(fingerprint) = own.filter(|_| why == Some(Insecurity::NotLetIn)) {
            return format!(
                "the other end needs {fingerprint}, which is this end's, as --peer-key or in its --authorized file, with a last day that is not over"
            );
        }
        if why == Some(Insecurity::UnknownHere) {
            return "give this end a key of its own by --identity FILE, and its fingerprint to the other end: \
                    `braidcast key identity FILE` makes and shows it"
                .into();
        }
        // By what it knows of the other end, only this end refuses.
        let (has_none, shown) = (why == Some(Insecurity::UnknownThere), reason.and_then(|reason| reason.shown));
        if let (Some(shown), Some(expected)) = (shown, self.expected.first()) {
            return format!("--peer-key says {expected}, and the other end shows {shown}");
        }
        let known = self.known.as_ref().filter(|_| has_none || shown.is_some()).and_then(KnownPeers::hint);
        known.unwrap_or_else(|| if has_none { OWN_KEY_THERE.into() } else { SAME_KEY.into() })
    }
}

/// The file of known peers cannot be used.
fn unusable(error: KnownPeersError) -> Failure {
    match error {
        KnownPeersError::Line { .. } => Failure::usage(error.to_string(), "fix the line, or delete it"),
        _ => Failure::new(error.to_string(), "fix it, or give --peer-key or --key"),
    }
}

/// Passphrases that come before one that is good enough, as a power of ten: at a tenth of a second
/// for each a thousand processors need thirty years.
const GOOD: f64 = 13.0;

/// How many passphrases come before this one, as a power of ten, for who knows words, names, dates
/// and keyboards.
fn strength(passphrase: &str) -> f64 {
    zxcvbn::zxcvbn(passphrase.trim(), &[]).guesses_log10()
}

/// How long a thousand processors take for as many guesses, a power of ten.
fn time_to_guess(guesses: f64) -> String {
    let seconds = 10_f64.powf(guesses - 4.0);
    let units = [(31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2.0 * length);
    unit.map_or_else(|| "seconds".into(), |(length, name)| format!("{:.0} {name}", seconds / length))
}

/// Says what is weak about a passphrase.
pub(crate) fn warn_weak(passphrase: &str, name: Option<&str>, live: &Live) {
    let guesses = strength(passphrase);
    if guesses < GOOD {
        live.warn(format!(
            "the passphrase is weak: who takes the place of the other end finds it in {} with a thousand processors; \
             `braidcast key new` makes a key that cannot be found",
            time_to_guess(guesses)
        ));
    }
    if name.is_none() {
        live.warn(
            "a passphrase without --key-name: one table of guesses serves against everybody's; \
             give both ends the same name of your choice",
        );
    }
}

/// The identity that `--key` and `--key-file` ask for.
fn shared(args: &SharedArgs, live: &Live) -> Outcome<Option<Identity>> {
    let (text, place) = match (&args.key, &args.key_file) {
        (Some(key), _) => (key.0.clone(), "--key or BRAIDCAST_KEY".to_owned()),
        (None, Some(path)) => (read(path, live)?, format!("--key-file {}", path.display())),
        (None, None) => return Ok(None),
    };
    let shared: SharedKey = text.parse().map_err(|error| {
        Failure::usage(format!("{place}: {error}"), "give both ends the same key, made by: braidcast key new")
    })?;
    let SharedKey::Passphrase(passphrase) = &shared else {
        return Identity::shared(&shared).map(Some).map_err(no_randomness);
    };
    warn_weak(&text, args.key_name.as_deref(), live);
    let stretched = SharedKey::Stretched(passphrase.stretched(args.key_name.as_deref()));
    Identity::shared(&stretched).map(Some).map_err(no_randomness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_think_of_is_weak_and_what_is_drawn_is_not() {
        for weak in ["hunter2", "aaaaaaaaaaaaaaaaaaaa", "correct horse", "Sommer2026!", "qwertyuiopasdfghjkl", ""] {
            assert!(strength(weak) < GOOD, "{weak}: {}", strength(weak));
        }
        for good in ["orbit-lantern-quarrel-mosaic-thimble", "vP2mQz7wL4nXk9", "the heron that ate my compass"] {
            assert!(strength(good) >= GOOD, "{good}: {}", strength(good));
        }
        assert_eq!(time_to_guess(9.0), "28 hours");
        assert_eq!(time_to_guess(13.0), "32 years");
        assert_eq!(time_to_guess(3.0), "seconds");
    }
}
