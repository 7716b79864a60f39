//! Two guards that agree on keys by TLS, change them, and refuse whom they should.

use braidcast_core::Instant;
use braidcast_secure::identity::{Identity, new_secret};
use braidcast_secure::known::Known;
use braidcast_secure::tls::{METHOD, Tls, Trust};
use braidcast_secure::{
    Alias, Carrier, Fingerprint, Guard, GuardError, HEADER, Inquiry, Limits, Offer, Refused, Rejected, Role, Roles,
    SharedKey, State, Suite, Transcript,
};
use core::time::Duration;
use std::sync::Arc;

/// Both ends of an association, as messages and records that all arrive.
struct Pair {
    now: Instant,
    client: Guard,
    server: Guard,
}

fn transcript() -> Transcript {
    Transcript {
        carrier: Carrier::Sctp,
        client: Offer::new(1, Roles::Only(Role::Client), METHOD),
        server: Offer::new(2, Roles::Both, METHOD),
        bound: [7; 16],
    }
}

fn guard(method: Tls, role: Role, limits: Limits, transcript: Transcript) -> Guard {
    Guard::new(Instant::ZERO, Arc::new(method), limits, role, transcript)
}

fn shared(text: &str) -> Tls {
    let key: SharedKey = text.parse().expect("a key");
    let identity = Identity::shared(&key).expect("an identity");
    let trust = Trust::Only(vec![identity.fingerprint()]);
    Tls::new(identity, trust, &Suite::ALL)
}

fn anonymous() -> Tls {
    Tls::new(Identity::generate().expect("randomness").0, Trust::Anyone, &Suite::ALL)
}

impl Pair {
    fn new(client: Tls, server: Tls, limits: Limits) -> Self {
        let client = guard(client, Role::Client, limits, transcript());
        Self { now: Instant::ZERO, client, server: guard(server, Role::Server, limits, transcript()) }
    }

    fn agreed(limits: Limits) -> Self {
        let words = new_secret().expect("randomness").words();
        let mut pair = Self::new(shared(&words), shared(&words), limits);
        pair.run().expect("the same key at both ends");
        assert_eq!((pair.client.state(), pair.server.state()), (State::Protected, State::Protected));
        pair
    }

    /// Carries one message in each direction, sealed if it has to be. Returns `true` if there was
    /// any.
    fn step(&mut self) -> Result<bool, (Role, GuardError)> {
        let mut any = false;
        for sender in [Role::Client, Role::Server] {
            let (from, to) = match sender {
                Role::Client => (&mut self.client, &mut self.server),
                Role::Server => (&mut self.server, &mut self.client),
            };
            let Some(message) = from.poll_message() else { continue };
            any = true;
            let carried = if from.is_sealing() { carry(self.now, from, to, &message) } else { Ok(message) };
            let Ok(message) = carried else { continue }; // Dropped without a word.
            to.handle_message(self.now, &message).map_err(|error| (sender.other(), error))?;
        }
        Ok(any)
    }

    /// Until nobody has anything to say.
    fn run(&mut self) -> Result<(), (Role, GuardError)> {
        while self.step()? {}
        Ok(())
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for guard in [&mut self.client, &mut self.server] {
            guard.handle_timeout(self.now).expect("nothing is wrong");
        }
    }

    /// Something from each end to the other.
    fn talk(&mut self) -> Result<(), Rejected> {
        let (client, server) = (&mut self.client, &mut self.server);
        assert_eq!(carry(self.now, client, server, b"there")?, b"there");
        assert_eq!(carry(self.now, server, client, b"and back")?, b"and back");
        Ok(())
    }

    fn epochs(&self) -> (Option<u64>, Option<u64>) {
        (self.client.epoch(), self.server.epoch())
    }
}

fn seal(now: Instant, from: &mut Guard, text: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER];
    record.extend_from_slice(text);
    from.seal(now, &mut record, 0).expect("keys that are not used up");
    record
}

fn carry(now: Instant, from: &mut Guard, to: &mut Guard, text: &[u8]) -> Result<Vec<u8>, Rejected> {
    let record = seal(now, from, text);
    let mut out = Vec::new();
    to.open(now, &record, &mut out).map(|()| out)
}

#[test]
fn the_same_key_lets_both_in_and_the_server_is_ready_after_one_round_trip() {
    let words = new_secret().expect("randomness").words();
    let mut pair = Pair::new(shared(&words), shared(&words), Limits::default());
    // Hello one way, the answer, the client's proof: with that the server has all.
    for messages in 0..2 {
        assert_eq!(pair.server.state(), State::Agreeing, "after {messages} rounds");
        assert_eq!(pair.step(), Ok(true));
    }
    assert_eq!(pair.server.state(), State::Protected);
    assert_eq!(pair.run(), Ok(()));
    assert_eq!(pair.client.state(), State::Protected);
    assert_eq!(pair.talk(), Ok(()));
    assert!(pair.client.peer().is_some_and(|peer| peer.authenticated));
    assert!(pair.server.peer().is_some_and(|peer| peer.authenticated));
    assert_eq!(pair.client.suite(), Some(Suite::Aes128Gcm));
}

#[test]
fn the_client_seals_once_it_has_seen_a_record_of_the_new_keys() {
    let mut pair = Pair::new(anonymous(), anonymous(), Limits::default());
    for _ in 0..2 {
        assert_eq!(pair.step(), Ok(true));
    }
    // "Protection Established" is lost; data says the same.
    assert!(pair.server.poll_message().is_some() || pair.client.is_sealing());
    assert_eq!(carry(pair.now, &mut pair.server, &mut pair.client, b"data"), Ok(b"data".to_vec()));
    assert_eq!(pair.client.state(), State::Protected);
    assert_eq!(pair.talk(), Ok(()));
}

#[test]
fn without_keys_each_knows_whom_it_talks_to_and_that_anybody_may() {
    let (one, other) = (Identity::generate().expect("randomness").0, Identity::generate().expect("randomness").0);
    let fingerprints = (one.fingerprint(), other.fingerprint());
    let tls = |identity| Tls::new(identity, Trust::Anyone, &[Suite::ChaCha20Poly1305]);
    let mut pair = Pair::new(tls(one), tls(other), Limits::default());
    assert_eq!(pair.run(), Ok(()));
    let seen = |guard: &Guard| guard.peer().map(|peer| (peer.fingerprint, peer.authenticated));
    assert_eq!(seen(&pair.client), Some((Some(fingerprints.1), false)));
    assert_eq!(seen(&pair.server), Some((Some(fingerprints.0), false)));
    assert_eq!(pair.server.suite(), Some(Suite::ChaCha20Poly1305));
}

#[test]
fn a_wrong_key_is_refused_at_both_ends() {
    let mut pair = Pair::new(shared("one passphrase"), shared("another passphrase"), Limits::default());
    let refused = pair.run();
    assert!(matches!(refused, Err((Role::Client, GuardError::Refused(Refused::WrongKey(_))))), "{refused:?}");
    assert_eq!(pair.run(), Err((Role::Server, GuardError::Refused(Refused::ByPeer))));
    assert_eq!((pair.client.state(), pair.server.state()), (State::Agreeing, State::Agreeing));
}

#[test]
fn who_has_no_key_does_not_get_in_where_one_is_needed() {
    let mut pair = Pair::new(anonymous(), shared("a passphrase"), Limits::default());
    let refused = pair.run();
    assert!(matches!(refused, Err((Role::Server, GuardError::Refused(Refused::WrongKey(_))))), "{refused:?}");
    assert_eq!(pair.run(), Err((Role::Client, GuardError::Refused(Refused::ByPeer))));

    let mut pair = Pair::new(shared("a passphrase"), anonymous(), Limits::default());
    assert!(matches!(pair.run(), Err((Role::Client, GuardError::Refused(Refused::WrongKey(_))))));
}

#[test]
fn who_changes_what_was_offered_gets_no_association() {
    let words = new_secret().expect("randomness").words();
    let mut changed = transcript();
    changed.server = Offer::new(2, Roles::Only(Role::Server), METHOD);
    let client = guard(shared(&words), Role::Client, Limits::default(), transcript());
    let server = guard(shared(&words), Role::Server, Limits::default(), changed);
    let mut pair = Pair { now: Instant::ZERO, client, server };
    for _ in 0..2 {
        assert_eq!(pair.step(), Ok(true));
    }
    assert_eq!(carry(pair.now, &mut pair.server, &mut pair.client, b"data"), Err(Rejected::Forged));
    assert_eq!(pair.client.state(), State::Agreeing);
    let late = pair.now + Limits::default().patience;
    assert_eq!(pair.client.handle_timeout(late), Err(GuardError::Silent));
}

/// Before there are keys nothing is asked and nothing is believed; afterwards both ends call the
/// association the same, and nobody else does, through changes of keys.
#[test]
fn ends_ask_each_other_about_others_by_what_both_call_them_and_only_when_protected() {
    let mut early = Pair::new(anonymous(), anonymous(), Limits::default());
    let question = Inquiry::Question(Alias([5; Alias::LEN]));
    let opening = early.client.poll_message();
    early.client.inquire(question);
    assert_eq!((early.client.poll_message(), early.client.alias()), (None, None), "after {opening:?}");
    let in_clear: Vec<u8> = [0x83, 2].into_iter().chain([5; Alias::LEN]).collect();
    early.server.handle_message(early.now, &in_clear).expect("it is dropped");
    assert_eq!(early.server.poll_inquiry(), None);

    let mut pair = Pair::agreed(Limits::default());
    let alias = pair.client.alias().expect("there are keys");
    assert_eq!(pair.server.alias(), Some(alias));
    assert_ne!(Pair::agreed(Limits::default()).client.alias(), Some(alias));
    pair.wait(Duration::from_secs(3601));
    pair.run().expect("keys change");
    assert_eq!((pair.epochs().0, pair.client.alias()), (Some(4), Some(alias)));
    pair.client.inquire(Inquiry::Question(alias));
    pair.server.inquire(Inquiry::Answer(alias, false));
    pair.run().expect("nothing is wrong with it");
    assert_eq!(pair.server.poll_inquiry(), Some(Inquiry::Question(alias)));
    assert_eq!(pair.client.poll_inquiry(), Some(Inquiry::Answer(alias, false)));
    assert_eq!((pair.client.poll_inquiry(), pair.server.poll_inquiry()), (None, None));
}

#[test]
fn keys_change_each_hour_and_both_epochs_are_read_meanwhile() {
    let mut pair = Pair::agreed(Limits::default());
    for epoch in 3..12 {
        assert_eq!(pair.epochs(), (Some(epoch), Some(epoch)));
        let before = seal(pair.now, &mut pair.client, b"on its way");
        let last = seal(pair.now, &mut pair.client, b"too late");
        pair.wait(Duration::from_secs(3600));
        assert_eq!(pair.run(), Ok(()));
        assert_eq!(pair.epochs(), (Some(epoch + 1), Some(epoch + 1)));
        let mut text = Vec::new();
        assert_eq!(pair.server.open(pair.now, &before, &mut text), Ok(()));
        assert_eq!(text, b"on its way");
        pair.wait(Limits::default().drain);
        let low_bits = (epoch & 3) as u8;
        assert_eq!(pair.server.open(pair.now, &last, &mut text), Err(Rejected::NoKeys { low_bits }));
        assert_eq!(pair.talk(), Ok(()));
    }
}

#[test]
fn keys_change_after_as_many_records_or_bytes_as_are_allowed() {
    for limits in [Limits::default().with(|it| it.records = 100), Limits::default().with(|it| it.bytes = 800)] {
        let mut pair = Pair::agreed(limits);
        for _ in 0..300 {
            assert_eq!(pair.talk(), Ok(()));
            pair.wait(Duration::ZERO);
            assert_eq!(pair.run(), Ok(()));
        }
        assert!(pair.epochs().0 >= Some(5), "{:?}", pair.epochs());
        assert_eq!(pair.epochs().0, pair.epochs().1);
        assert_eq!(pair.server.counts().forged, 0);
    }
}

/// Each answer would wait in the memory of who gives it until it is acknowledged (S9).
#[test]
fn who_begins_to_change_keys_again_and_again_gets_one_answer() {
    let mut pair = Pair::agreed(Limits::default());
    pair.wait(Limits::default().age);
    let opening = pair.client.poll_message().expect("the client begins");
    let mut answers = 0;
    for _ in 0..1000 {
        assert_eq!(pair.server.handle_message(pair.now, &opening), Ok(()));
        while pair.server.poll_message().is_some() {
            answers += 1;
        }
    }
    assert_eq!(answers, 1);
    assert_eq!(pair.talk(), Ok(()), "under the keys that there are");
}

#[test]
fn who_begins_at_once_at_both_ends_makes_one_change() {
    let mut pair = Pair::agreed(Limits::default().with(|it| it.records = 10));
    while pair.client.poll_timeout() > Some(pair.now) || pair.server.poll_timeout() > Some(pair.now) {
        assert_eq!(pair.talk(), Ok(()));
    }
    pair.wait(Duration::ZERO); // Both begin now.
    let openings = [pair.client.poll_message(), pair.server.poll_message()].map(|it| it.expect("an opening"));
    assert_eq!(pair.client.handle_message(pair.now, &openings[1]), Ok(()));
    assert_eq!(pair.server.handle_message(pair.now, &openings[0]), Ok(()));
    assert_eq!(pair.run(), Ok(()));
    assert_eq!(pair.epochs(), (Some(4), Some(4)));
    assert_eq!(pair.talk(), Ok(()));
}

#[test]
fn rubbish_for_a_message_ends_the_handshake_and_changes_nothing_later() {
    let mut pair = Pair::new(anonymous(), anonymous(), Limits::default());
    assert!(pair.server.handle_message(pair.now, &[3, 99, 3, 1, 0, 2, 9, 9]).is_err());

    let mut pair = Pair::agreed(Limits::default());
    for rubbish in [&[][..], &[3, 22, 3, 3, 0, 1, 0], &[0x83, 1], &[0xFF], &[9, 22, 3, 1, 0, 1, 1]] {
        assert_eq!(pair.server.handle_message(pair.now, rubbish), Ok(()));
    }
    assert_eq!(pair.talk(), Ok(()));
}

#[test]
fn words_and_short_form_of_a_secret_are_one_identity() {
    let secret = new_secret().expect("randomness");
    let of = |text: &str| -> Fingerprint {
        Identity::shared(&text.parse().expect("a key")).expect("an identity").fingerprint()
    };
    assert_eq!(of(&secret.words()), of(&secret.short()));
    assert_ne!(of(&secret.words()), of(&new_secret().expect("randomness").words()));
    let text = of(&secret.words()).to_string();
    assert_eq!(text.parse(), Ok(of(&secret.short())));
}

#[test]
fn keys_that_everybody_knows_go_the_same_way() {
    let begin = |role| {
        let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
        Guard::new(Instant::ZERO, method, Limits::default(), role, transcript())
    };
    let mut pair = Pair { now: Instant::ZERO, client: begin(Role::Client), server: begin(Role::Server) };
    assert_eq!(pair.run(), Ok(()));
    assert_eq!(pair.talk(), Ok(()));
    pair.wait(Duration::from_secs(3600));
    assert_eq!(pair.run(), Ok(()));
    assert_eq!(pair.epochs(), (Some(4), Some(4)));
}
