//! Paths whose packets may be smaller from one moment to the next: what was cut for larger ones still arrives.

use crate::common::{CLIENT, Pair, link, ms, pattern};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{Event, Options, SendError, SendOptions};
use braidcast_sim::Duplex;
use core::time::Duration;

/// IPv4 and UDP headers.
const HEADERS: usize = 28;

/// A file in messages of 30,000 bytes, as fast as the association takes it.
struct File {
    sent: u64,
    received: u64,
}

impl File {
    const MESSAGES: u64 = 300;

    /// Runs for `duration`, or until all of it is there. How long the longest pause was between two
    /// messages that arrived.
    fn run(&mut self, pair: &mut Pair, duration: Duration) -> Duration {
        let (end, mut last, mut longest) = (pair.now() + duration, pair.now(), Duration::ZERO);
        while pair.now() < end && self.received < Self::MESSAGES {
            while self.sent < Self::MESSAGES {
                let payload = pattern(30_000, self.sent);
                match pair.on_client(|it, now| it.send(now, &payload, SendOptions::default())) {
                    Ok(()) => self.sent += 1,
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            pair.run(ms(5));
            for (_, message) in pair.server_recv() {
                assert!(message == pattern(30_000, self.received), "{} is not intact", self.received);
                self.received += 1;
                last = pair.now();
            }
            longest = longest.max(pair.now() - last);
        }
        longest
    }
}

fn set_mtu(pair: &mut Pair, path: usize, sctp_bytes: usize) {
    let (there, back) = pair.links[path];
    pair.net.set_mtu(there, sctp_bytes + HEADERS);
    pair.net.set_mtu(back, sctp_bytes + HEADERS);
}

fn begun(options: &Options, paths: usize) -> (Pair, File) {
    let mut pair = Pair::connected(options, vec![Duplex::both(link(10, 15)); paths]);
    let mut file = File { sent: 0, received: 0 };
    file.run(&mut pair, ms(1500));
    assert!((0..paths).all(|i| pair.client_path(i).unwrap().mtu == 1472) && file.received > 20);
    (pair, file)
}

#[test]
fn a_file_goes_on_within_two_seconds_however_small_the_packets_become() {
    for paths in [1, 2] {
        for mtu in [1372, 1272, 1200, 1100, 972, 572] {
            let (mut pair, mut file) = begun(&Options::prompt(), paths);
            let recording = pair.record();
            (0..paths).for_each(|i| set_mtu(&mut pair, i, mtu));
            let pause = file.run(&mut pair, ms(60_000));
            assert_eq!(file.received, File::MESSAGES, "{paths} paths, {mtu} bytes: the file stands still");
            assert!(pause < ms(2000), "{paths} paths, {mtu} bytes: {pause:?}");
            assert!(recording.count(&CLIENT, kind::SLICE) > 0);
            let found = pair.client_path(0).unwrap().mtu;
            assert!(found <= mtu && found * 5 > mtu * 4, "{found} of {mtu}");
            let narrow = pair.client_events.iter().any(|event| matches!(event, Event::PathNarrow(..)));
            assert_eq!(narrow, mtu < 1200, "{mtu}");
        }
    }
}

#[test]
fn a_path_that_grows_again_is_found_to_have_grown() {
    let (mut pair, mut file) = begun(&Options::prompt(), 1);
    set_mtu(&mut pair, 0, 700);
    file.run(&mut pair, ms(3000));
    assert!(pair.client_path(0).unwrap().mtu <= 700);
    set_mtu(&mut pair, 0, 1472);
    pair.until(ms(70_000), "full packets", |pair| pair.client_path(0).unwrap().mtu == 1472);
}

#[test]
fn slices_that_get_lost_are_sent_again() {
    for seed in 0..10 {
        let lossy = Duplex::both(braidcast_sim::link::LinkModel {
            loss: braidcast_sim::link::Loss::Uniform(0.05),
            ..link(10, 15)
        });
        let mut pair = Pair::seeded(seed, &Options::prompt(), vec![lossy]);
        pair.until(ms(5000), "connect", |pair| pair.client_events.contains(&Event::Connected));
        let mut file = File { sent: 200, received: 200 };
        file.run(&mut pair, ms(500));
        set_mtu(&mut pair, 0, 1000);
        file.run(&mut pair, ms(60_000));
        assert_eq!(file.received, File::MESSAGES, "seed {seed}");
    }
}

#[test]
fn to_a_peer_that_knows_no_slices_none_is_sent() {
    let plain = Options::prompt().with(|it| it.paths.slices = false);
    let mut pair = Pair::with(Options::prompt(), plain, vec![Duplex::both(link(10, 15))]);
    pair.until(ms(1000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    let mut file = File { sent: 0, received: 0 };
    file.run(&mut pair, ms(1000));
    let recording = pair.record();
    set_mtu(&mut pair, 0, 1300);
    file.run(&mut pair, ms(5000));
    assert_eq!(recording.count(&CLIENT, kind::SLICE), 0);
}
