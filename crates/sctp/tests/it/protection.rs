//! Associations protected by the DTLS chunk, with keys that everybody knows.

use crate::common::{CLIENT, Pair, Recording, SERVER, bulk, link, ms, on, packet, pattern, tag, transfer};
use braidcast_sctp::wire::chunk::{Abort, Shutdown, kind};
use braidcast_sctp::wire::{Causes, Chunk, PROTECTION};
use braidcast_sctp::{CloseReason, Event, Options, Reliability, SecurityOptions, SendOptions, StreamRequest};
use braidcast_secure::known::Known;
use braidcast_secure::{Ciphers, Exchange, Insecure, Limits, Method, Role, Suite, Transcript};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

fn protected(word: u8, limits: Limits) -> Options {
    let method = Arc::new(Known { word, suite: Suite::Aes128Gcm });
    Options::live().with(|it| it.security = Some(SecurityOptions::new(method).limits(limits)))
}

fn options() -> Options {
    protected(1, Limits::default())
}

fn two_links() -> Vec<Duplex> {
    vec![Duplex::both(link(10, 5)), Duplex::both(link(10, 20))]
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

/// What two bits tell of the epochs in which the client sent.
fn epochs(recording: &Recording) -> BTreeSet<u8> {
    // 001 0 1 0 EE, after common header, chunk header and a zero byte.
    recording.sent(&CLIENT).iter().filter_map(|seen| seen.bytes.get(17)).map(|flags| flags & 3).collect()
}

/// Packets with a chunk that is none of protection's, from both ends.
fn in_clear(recording: &Recording) -> usize {
    let sent = recording.sent(&CLIENT).into_iter().chain(recording.sent(&SERVER));
    sent.filter(|seen| seen.kinds() != [kind::DTLS]).count()
}

#[test]
fn all_that_follows_the_key_handshake_is_protected_joins_too() {
    let mut pair = Pair::new(&options(), two_links());
    let recording = pair.record();
    pair.until(ms(1000), "both are told", |pair| {
        [&pair.client_events, &pair.server_events].iter().all(|events| events.contains(&Event::Connected))
    });
    recording.clear();
    pair.connect();
    transfer(&mut pair, 500_000, 5000);
    pair.on_client(braidcast_sctp::Association::shutdown);
    pair.until(ms(1000), "the end", |pair| {
        closed(&pair.client_events).is_some() && closed(&pair.server_events).is_some()
    });
    assert_eq!(in_clear(&recording), 0);
    assert!(recording.sent(&CLIENT[1..2]).len() > 50, "both paths carry");
    assert_eq!(
        (closed(&pair.client_events), closed(&pair.server_events)),
        (Some(&CloseReason::Shutdown), Some(&CloseReason::Shutdown))
    );
}

#[test]
fn who_connects_may_send_one_round_trip_later_than_in_clear() {
    let connected = |options: &Options| {
        let mut pair = Pair::new(options, vec![Duplex::both(link(100, 50))]);
        let begun = pair.now();
        pair.until(ms(2000), "connected", |pair| pair.client_events.contains(&Event::Connected));
        pair.now() - begun
    };
    let (clear, protected) = (connected(&Options::live()), connected(&options()));
    assert!(clear >= ms(200) && clear < ms(205), "{clear:?}");
    assert!(protected - clear >= ms(100) && protected - clear < ms(105), "{:?}", protected - clear);
}

#[test]
fn messages_given_before_there_are_keys_leave_protected() {
    let mut pair = Pair::new(&options(), two_links());
    let recording = pair.record();
    let secret = pattern(900, 3);
    pair.client_send(&secret, SendOptions::default());
    pair.until(ms(2000), "the message", |pair| !pair.server_recv().is_empty());
    let shows = |bytes: &[u8]| bytes.windows(32).any(|window| window == &secret[100..132]);
    assert!(recording.all().iter().all(|seen| !shows(&seen.bytes)));
}

#[test]
fn another_key_is_refused_at_both_ends_within_a_second() {
    let mut pair = Pair::with(options(), protected(2, Limits::default()), two_links());
    pair.run(ms(1000));
    assert!(matches!(closed(&pair.server_events), Some(CloseReason::Insecure(_) | CloseReason::AbortedByPeer(_))));
    assert!(matches!(closed(&pair.client_events), Some(CloseReason::Insecure(_) | CloseReason::AbortedByPeer(_))));
    assert!(!pair.client_events.contains(&Event::Connected) && !pair.server_events.contains(&Event::Connected));
}

#[test]
fn an_end_that_does_not_encrypt_or_whose_offer_was_taken_out_is_refused() {
    let mut pair = Pair::with(options(), Options::live(), two_links());
    pair.run(ms(1000));
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Insecure(Insecure::plain_there())));

    let mut pair = Pair::with(Options::live(), options(), two_links());
    pair.run(ms(1000));
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::Insecure(Insecure::plain_here())));
    assert!(!pair.server_exists());
}

#[test]
fn packets_in_clear_end_and_change_nothing() {
    let mut pair = Pair::new(&options(), two_links());
    let recording = pair.record();
    pair.connect();
    let handshake: Vec<_> = recording.all().into_iter().filter(|seen| seen.kinds() != [kind::DTLS]).collect();
    let (to_server, to_client) = (recording.sent(&CLIENT), recording.sent(&SERVER));
    let (server_tag, client_tag) = (tag(&to_server.last().unwrap().bytes), tag(&to_client.last().unwrap().bytes));
    let abort = |reflected| Chunk::Abort(Abort { reflected, causes: Causes::new(&[]) });
    for reflected in [false, true] {
        for (forged, other) in [(server_tag, client_tag), (client_tag, server_tag)] {
            let tag = if reflected { other } else { forged };
            for chunk in [abort(reflected), Chunk::Shutdown(Shutdown { cumulative_tsn: 0 })] {
                pair.inject_server(0, CLIENT[0], &packet(tag, &[chunk]));
                pair.inject_client(0, SERVER[0], &packet(tag, &[chunk]));
            }
        }
    }
    // The whole handshake again, from its place and from another one: restart, takeover.
    for seen in &handshake {
        for from in [0, 2] {
            if seen.is_from(&CLIENT) {
                pair.inject_server(0, CLIENT[from], &seen.bytes);
            } else {
                pair.inject_client(0, SERVER[from], &seen.bytes);
            }
        }
        pair.run(ms(30));
    }
    // And every record, unchanged and changed by a bit.
    for seen in recording.sent(&CLIENT) {
        let mut changed = seen.bytes.clone();
        let at = changed.len() - 5;
        changed[at] ^= 1;
        braidcast_sctp::wire::seal(&mut changed);
        pair.inject_server(0, CLIENT[0], &seen.bytes);
        pair.inject_server(0, CLIENT[0], &changed);
    }
    transfer(&mut pair, 100_000, 3000);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(!events.iter().any(|event| matches!(event, Event::Closed(_) | Event::Restarted)), "{events:?}");
    }
}

#[test]
fn keys_change_under_loss_and_nothing_is_lost_by_it() {
    let lossy = LinkModel { loss: "5%".parse().unwrap(), ..link(20, 10) };
    let limits = Limits::default().with(|it| (it.records, it.drain) = (150, ms(500)));
    let mut pair = Pair::connected(&protected(1, limits), vec![Duplex::both(lossy.clone()), Duplex::both(lossy)]);
    let recording = pair.record();
    transfer(&mut pair, 3_000_000, 10_000);
    assert_eq!(epochs(&recording).len(), 4, "all that two bits tell apart");
    assert_eq!(in_clear(&recording), 0);
}

/// What everybody knows, by somebody who remembers what was offered.
#[derive(Debug)]
struct Remembering(Known, Mutex<Option<Transcript>>);

impl Method for Remembering {
    fn id(&self) -> u8 {
        self.0.id()
    }

    fn begin(&self, role: Role, transcript: &Transcript) -> Box<dyn Exchange> {
        *self.1.lock().unwrap() = Some(*transcript);
        self.0.begin(role, transcript)
    }

    fn is_opening(&self, message: &[u8]) -> bool {
        self.0.is_opening(message)
    }

    fn ciphers(&self) -> &dyn Ciphers {
        self.0.ciphers()
    }
}

/// A receiver that begins changes of keys without end, and acknowledges no answer (S9).
#[test]
fn a_peer_that_begins_to_change_keys_without_end_fills_no_memory() {
    let known = Known { word: 1, suite: Suite::Aes128Gcm };
    let hostile = Arc::new(Remembering(known, Mutex::default()));
    let server = options().with(|it| it.security = Some(SecurityOptions::new(Arc::clone(&hostile) as _)));
    let mut pair = Pair::with(options(), server, vec![Duplex::both(link(100, 5))]);
    pair.connect();
    let transcript = hostile.1.lock().unwrap().expect("keys were agreed on");
    let mut opening = vec![4]; // The epoch behind the first.
    assert!(known.begin(Role::Client, &transcript).poll(&mut opening));
    let how = SendOptions { ppid: 4242, ..SendOptions::default() };
    let mut most = 0;
    for n in 0..400 {
        pair.on_server(|it, now| _ = it.send(now, &opening, how));
        if n == 200 {
            pair.net.set_down(pair.links[0].0, true);
        }
        pair.run(ms(1));
        most = most.max(pair.on_client(|it, _| it.buffered()));
    }
    assert!((1000..=64 << 10).contains(&most), "{most} bytes that wait");
    assert_eq!(closed(&pair.client_events), None);
    pair.net.set_down(pair.links[0].0, false);
    pair.run(ms(2000));
    transfer(&mut pair, 100_000, 3000);
}

/// Key messages go before all others, on a stream that applications send on too: they take no
/// number of it that is over.
#[test]
fn keys_change_while_their_stream_begins_anew_and_nothing_is_lost_by_it() {
    for interleaving in [true, false] {
        let often = Limits::default().with(|it| (it.records, it.drain) = (60, ms(100)));
        let options = protected(1, often).with(|it| (it.interleaving, it.reconfiguration) = (interleaving, true));
        let lossy = || Duplex::both(LinkModel { loss: "10%".parse().unwrap(), ..link(10, 15) });
        let mut pair = Pair::connected(&options, vec![lossy(), lossy()]);
        let recording = pair.record();
        let (mut next, mut came) = ([0_u8; 2], [0_u8; 2]);
        for round in 0..40 {
            for n in 0..40 {
                if n == 10 {
                    pair.on_client(|it, now| it.reconfigure(now, StreamRequest::ResetOutgoing(vec![0]))).unwrap();
                }
                let stream = usize::from(n > 15);
                pair.client_send(&[next[stream]; 900], on(stream as u16, Reliability::Reliable));
                next[stream] = next[stream].wrapping_add(1);
            }
            pair.until(ms(60_000), &format!("all of round {round}"), |pair| {
                for (info, message) in pair.server_recv() {
                    let came = &mut came[usize::from(info.stream)];
                    assert_eq!(message, [*came; 900], "interleaving: {interleaving}, round {round}");
                    *came = came.wrapping_add(1);
                }
                came == next
            });
        }
        assert_eq!(epochs(&recording).len(), 4, "all that two bits tell apart");
    }
}

#[test]
fn packets_stay_within_the_path_s_mtu_and_fill_it() {
    let options = options().with(|it| (it.paths.base_mtu, it.paths.max_mtu) = (1200, 1452));
    let mut pair = Pair::connected(&options, vec![Duplex::both(LinkModel { mtu: 1400 + 28, ..link(50, 5) })]);
    bulk(&mut pair, 50_000, ms(3000));
    let recording = pair.record();
    bulk(&mut pair, 50_000, ms(500));
    let mtu = pair.client_path(0).unwrap().mtu;
    let largest = recording.sent(&CLIENT).iter().map(|seen| seen.bytes.len()).max().unwrap();
    assert!(mtu > 1200, "{mtu}: probes found more");
    assert_eq!(largest, mtu + PROTECTION);
}

#[test]
fn redundancy_is_protected_and_makes_up_for_losses() {
    let lossy = LinkModel { loss: "5%".parse().unwrap(), ..link(20, 50) };
    let options = options().with(|it| it.redundancy.fec = Some("tetrys:4,3,20".parse().unwrap()));
    let mut pair = Pair::connected(&options, vec![Duplex::both(lossy)]);
    transfer(&mut pair, 500_000, 5000);
    assert!(pair.on_server(|it, _| it.stats()).recovered_chunks > 0);
}

#[test]
fn a_path_that_fails_and_comes_back_joins_again() {
    let mut pair = Pair::connected(&options(), two_links());
    pair.cut(0, true);
    transfer(&mut pair, 300_000, 3000);
    pair.cut(0, false);
    pair.connect();
    transfer(&mut pair, 300_000, 3000);
}

#[test]
fn a_peer_that_lost_its_state_is_found_out_though_it_can_only_say_so_in_clear() {
    let mut pair = Pair::new(&options(), two_links());
    pair.connect();
    pair.run(ms(500));
    let back: Vec<_> = pair.links.iter().map(|&(_, back)| back).collect();
    back.iter().for_each(|&back| pair.net.set_down(back, true));
    pair.on_server(|association, now| association.abort(now, "gone"));
    pair.run(ms(50));
    back.iter().for_each(|&back| pair.net.set_down(back, false));
    let start = pair.now();
    pair.client_send(b"x", SendOptions::default());
    pair.until(ms(2000), "the client notices", |pair| closed(&pair.client_events).is_some());
    assert!(pair.now() - start < ms(700), "{:?}", pair.now() - start);
}

#[test]
fn an_init_that_is_sent_back_changes_nothing() {
    for options in [options(), Options::live()] {
        let mut pair = Pair::new(&options, two_links());
        let recording = pair.record();
        pair.until(ms(100), "an INIT leaves", |_| !recording.sent(&CLIENT).is_empty());
        let init = recording.sent(&CLIENT)[0].bytes.clone();
        let sent = recording.sent(&CLIENT).len();
        for _ in 0..3 {
            pair.inject_client(0, SERVER[0], &init);
        }
        pair.run(ms(2));
        assert_eq!(recording.sent(&CLIENT).len(), sent, "it is not answered");
        pair.connect();
        pair.inject_client(0, SERVER[0], &init);
        transfer(&mut pair, 100_000, 1000);
        assert_eq!(closed(&pair.client_events), None);
    }
}
