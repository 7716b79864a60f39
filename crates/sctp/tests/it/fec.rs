//! Erasure codes inside the association: what is lost comes back without a retransmission.

use crate::common;
use crate::common::{CLIENT, Pair, SERVER, link, ms, on, packet, pattern, tag, transfer};
use braidcast_core::{Rng, Writer};
use braidcast_fec::{Coefficients, Combination};
use braidcast_sctp::wire::chunk::{Data, Redundancy, kind};
use braidcast_sctp::wire::{Chunk, Packet};
use braidcast_sctp::{
    Artx, ArtxFrom, Code, Endpoint, Event, FecLosses, FecWindow, Frame, LossDetection, MessagePriority, Method,
    NeededBy, Options, QueueScope, Reliability, RtoBounds, SchedulerKind, SendOptions, Stats,
};
use braidcast_sim::link::{LinkModel, Loss, QueueLimit};
use braidcast_sim::{Duplex, TapAction};

const CODES: [&str; 3] = ["block:10,9", "convolutional:10,9,20", "tetrys:10,9,43"];

fn code(name: &str) -> Option<Code> {
    Some(name.parse().unwrap())
}

/// A path of 1 Mbit/s and 100 ms round trip that loses packets in the forward direction: one of the two of the papers.
fn lossy(loss: f64) -> Duplex {
    Duplex::new(LinkModel { loss: Loss::Uniform(loss), ..link(1, 50) }, link(1, 50))
}

/// As the papers have it.
fn classic(name: &str) -> Options {
    Options::classic().with(|it| {
        it.redundancy.fec = code(name);
        it.redundancy.fec_losses = FecLosses::Hidden;
    })
}

/// What came of a transfer over the papers' network.
struct Outcome {
    client: Stats,
    server: Stats,
    millis: u64,
}

/// Sends 4 MB.
fn run(options: &Options, links: Vec<Duplex>) -> Outcome {
    let mut pair = Pair::connected(options, links);
    let start = pair.now();
    transfer(&mut pair, 4_000_000, 1400);
    let millis = (pair.now() - start).as_millis() as u64;
    Outcome { client: pair.on_client(|it, _| it.stats()), server: pair.on_server(|it, _| it.stats()), millis }
}

#[test]
fn what_two_lossy_paths_lose_comes_back_without_a_retransmission() {
    let two = || vec![lossy(0.05), lossy(0.05)];
    let plain = run(&Options::classic(), two());
    for name in CODES {
        for window in [FecWindow::Inside, FecWindow::Outside] {
            let options = classic(name).with(|it| {
                it.redundancy.fec_window = window;
                it.redundancy.artx = Some(Artx::Slowest);
            });
            let Outcome { client, server, millis } = run(&options, two());
            let what = format!("{name} {window}: {millis} ms for {}, {client:?} {server:?}", plain.millis);
            assert!(client.redundancy_sent > 300 && server.recovered_chunks > 100, "{what}");
            assert!(client.retransmissions * 2 < plain.client.retransmissions, "{what}");
            assert!(millis * 10 < plain.millis * 9, "{what}");
            assert_eq!(
                server.inconsistent_chunks + server.contradicting_chunks + server.redundancy_refused,
                0,
                "{what}"
            );
        }
    }
}

#[test]
fn fewer_retransmissions_are_in_vain_when_they_wait_for_the_code() {
    for loss_detection in [LossDetection::Count, LossDetection::Time] {
        for name in CODES {
            let spurious = |artx: Option<Artx>, artx_from| {
                let options = classic(name).with(|it| {
                    it.redundancy.artx = artx;
                    it.papers.artx_from = artx_from;
                    it.papers.loss_detection = loss_detection;
                });
                let outcome = run(&options, vec![lossy(0.02), lossy(0.02)]);
                (outcome.client.spurious_retransmissions, outcome.client.held_retransmissions)
            };
            let (without, held) = spurious(None, ArtxFrom::Sent);
            assert_eq!(held, 0);
            for from in [ArtxFrom::Sent, ArtxFrom::Due] {
                let (with, held) = spurious(Some(Artx::Slowest), from);
                assert!(4 * with < 3 * without, "{name} {loss_detection} {from}: {with} after {without}");
                assert!(loss_detection == LossDetection::Time || held > 10, "{held} held");
            }
        }
    }
}

#[test]
fn one_path_data_and_i_data_sack_and_nr_sack_serve_as_well() {
    for (interleaving, nr_sack) in [(false, false), (false, true), (true, false), (true, true)] {
        let options = Options::live().with(|it| {
            it.redundancy.fec = code("tetrys:10,9,100");
            it.interleaving = interleaving;
            it.papers.nr_sack = nr_sack;
        });
        let Outcome { client, server, .. } = run(&options, vec![lossy(0.02)]);
        assert!(client.redundancy_sent > 300 && server.recovered_chunks > 20, "{client:?} {server:?}");
        assert_eq!(server.inconsistent_chunks + server.contradicting_chunks + server.redundancy_refused, 0);
    }
}

#[test]
fn a_peer_that_knows_no_redundancy_gets_none() {
    for (client, server) in [(true, false), (false, true)] {
        let options = |fec| if fec { classic("tetrys:10,9,43") } else { Options::classic() };
        let mut pair = Pair::with(options(client), options(server), vec![lossy(0.02)]);
        pair.connect();
        let recording = pair.record();
        transfer(&mut pair, 200_000, 1400);
        assert_eq!(recording.count(&CLIENT, Redundancy::KIND), 0);
    }
    // Who only takes it gets it, and sends none.
    let takes = Options::classic().with(|it| it.redundancy.fec_receive = true);
    let mut pair = Pair::with(classic("tetrys:10,9,43"), takes, vec![lossy(0.02)]);
    pair.connect();
    let recording = pair.record();
    transfer(&mut pair, 200_000, 1400);
    assert!(recording.count(&CLIENT, Redundancy::KIND) > 10);
    assert_eq!(recording.count(&SERVER, Redundancy::KIND), 0);
}

/// A pair over two clean paths, of which the second one is longer.
fn calm(name: &str) -> Pair {
    Pair::connected(
        &Options::live().with(|it| it.redundancy.fec = code(name)),
        vec![Duplex::both(link(10, 10)), Duplex::both(link(10, 30))],
    )
}

#[test]
fn a_chunk_that_came_back_is_acknowledged_at_once() {
    let mut pair = calm("block:4,3");
    let first = pair.links[0].0;
    // Three chunks, of which one is lost, and no more: no later data would report it missing.
    pair.net.set_down(first, true);
    pair.client_send(&pattern(500, 1), SendOptions::default());
    pair.run(ms(2));
    pair.net.set_down(first, false);
    let recording = pair.record();
    for n in 2..4 {
        pair.client_send(&pattern(500, n), SendOptions::default());
        pair.run(ms(2));
    }
    pair.until(ms(100), "recovery", |pair| pair.on_server(|it, _| it.stats().recovered_chunks) == 1);
    let now = pair.now();
    assert_eq!(
        pair.server_recv().iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(),
        [1, 2, 3].map(|n| pattern(500, n))
    );
    let came = recording.all().into_iter().find(|seen| {
        seen.action == TapAction::Delivered && seen.is_from(&CLIENT) && seen.kinds().contains(&Redundancy::KIND)
    });
    let came = came.expect("redundancy was delivered").at;
    let sacks =
        recording.sent(&SERVER).into_iter().filter(|seen| seen.kinds().contains(&kind::SACK) && seen.at == came);
    assert_eq!(sacks.count(), 1, "at {came:?}, now {now:?}");
    pair.run(ms(1000));
    assert_eq!(pair.on_client(|it, _| (it.buffered(), it.stats().retransmissions)), (0, 0));
}

#[test]
fn more_is_on_time_when_lifetimes_leave_no_round_trip_for_a_repetition() {
    for reliability in [Reliability::Lifetime(ms(90)), Reliability::Retransmissions(0)] {
        let mut lost = Vec::new();
        for fec in [None, code("tetrys:6,5,40")] {
            let options = Options::live().with(|it| it.redundancy.fec = fec);
            let mut pair = Pair::connected(&options, vec![lossy(0.05), lossy(0.05)]);
            let mut received = 0;
            for n in 0..2000 {
                pair.client_send(&pattern(600, n), SendOptions { unordered: true, ..on(0, reliability) });
                pair.run(ms(8));
                received += pair.server_recv().len();
            }
            pair.run(ms(2000));
            lost.push(2000 - received - pair.server_recv().len());
            assert_eq!(pair.on_client(|it, _| it.buffered()), 0, "what was abandoned is gone");
            assert!(!pair.server_events.iter().any(|event| matches!(event, Event::Closed(_))));
        }
        assert!(lost[0] > 60 && lost[1] * 4 < lost[0], "{reliability:?}: {lost:?} of 2000");
    }
}

#[test]
fn after_a_restart_the_numbers_of_the_code_begin_anew() {
    let options = Options::live().with(|it| it.redundancy.fec = code("tetrys:4,3,20"));
    let mut pair = Pair::connected(&options, vec![lossy(0.05)]);
    transfer(&mut pair, 50_000, 900);
    *pair.net.node_mut(pair.client) = Endpoint::new(options, Rng::from_seed(77)).unwrap();
    pair.client_id = pair.net.with(pair.client, |it, now| it.connect(now, 9899, &[common::route(0)]).unwrap());
    pair.until(ms(5000), "restart", |pair| pair.server_events.contains(&Event::Restarted));
    let before = pair.on_server(|it, _| it.stats()).recovered_chunks;
    pair.server_recv();
    transfer(&mut pair, 300_000, 900);
    let server = pair.on_server(|it, _| it.stats());
    assert!(server.recovered_chunks > before + 2, "{server:?}");
    assert_eq!(server.inconsistent_chunks + server.contradicting_chunks + server.redundancy_refused, 0);
}

#[test]
fn the_code_may_change_on_the_way() {
    let options = Options::live().with(|it| it.redundancy.fec_receive = true);
    let mut pair = Pair::connected(&options, vec![lossy(0.03), lossy(0.03)]);
    let mut recovered = 0;
    for code in [None, code("block:5,4"), code("tetrys:10,9,200"), None, code("convolutional:4,3,8")] {
        assert!(pair.on_client(|it, _| it.set_fec(code)));
        transfer(&mut pair, 200_000, 3000);
        let now = pair.on_server(|it, _| it.stats()).recovered_chunks;
        assert_eq!(now > recovered, code.is_some(), "{code:?}");
        recovered = now;
    }
    let mut plain = Pair::connected(&Options::live(), vec![lossy(0.0)]);
    assert!(!plain.on_client(|it, _| it.set_fec(code("block:5,4"))), "the peer takes none");
}

#[test]
fn each_path_owes_redundancy_for_what_it_carries() {
    let options = Options::live().with(|it| it.redundancy.fec_receive = true);
    let mut pair = Pair::connected(&options, vec![lossy(0.0), lossy(0.05)]);
    let paths = |pair: &mut Pair| pair.on_client(|it, _| it.paths().collect::<Vec<_>>());
    let worse = paths(&mut pair)[1].id;
    let code = "tetrys:10,9,128".parse().unwrap();
    let owed = move |id| if id == worse { 0.2 } else { 0.0 };
    assert!(pair.on_client(|it, _| it.set_fec_by_path(code, ms(50), owed)));
    transfer(&mut pair, 1_000_000, 1000);
    let carried = paths(&mut pair)[1].sent_chunks - paths(&mut pair)[1].retransmitted_chunks;
    let (client, server) = (pair.on_client(|it, _| it.stats()), pair.on_server(|it, _| it.stats()));
    let expected = carried as f64 * 0.2;
    assert!(carried > 300 && (client.redundancy_sent as f64 / expected - 1.0).abs() < 0.1, "{carried} {client:?}");
    assert!(server.recovered_chunks > carried / 40, "{server:?}");
    // The lossy path fails: what is sent over the clean one alone owes nothing.
    let (there, back) = pair.links[1];
    pair.net.set_down(there, true);
    pair.net.set_down(back, true);
    transfer(&mut pair, 100_000, 1000);
    let before = pair.on_client(|it, _| it.stats()).redundancy_sent;
    transfer(&mut pair, 500_000, 1000);
    assert_eq!(pair.on_client(|it, _| it.stats()).redundancy_sent, before);
}

#[test]
fn while_more_waits_than_paths_take_in_time_less_redundancy_is_sent() {
    // Redundancy for frames of `len` bytes each half second, of use for that long, over 5 Mbit/s.
    let sent = |spared_in_a_crowd, len: usize| {
        let options = Options::live().with(|it| {
            it.redundancy.fec_receive = true;
            it.redundancy.spared_in_a_crowd = spared_in_a_crowd;
            it.queue.method = Some(Method::ByWorth);
            it.queue.scope = QueueScope::Alone;
        });
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(5, 40))]);
        assert!(pair.on_client(|it, _| it.set_fec_by_path("tetrys:6,5,128".parse().unwrap(), ms(50), |_| 0.2)));
        for id in 0..20 {
            let due = pair.now() + ms(500);
            let frame = Frame { needed_by: NeededBy::Rest, ..Frame::alone(id, 256, len as u32, Some(due)) };
            let how = SendOptions {
                unordered: true,
                deadline: Some(due),
                priority: MessagePriority::new(1).unwrap(),
                frame: Some(frame),
                ..on(0, Reliability::Lifetime(ms(500)))
            };
            pair.client_send(&pattern(len, id), how);
            pair.run(ms(500));
            pair.server_recv();
        }
        pair.on_client(|it, _| it.stats()).redundancy_sent
    };
    // 20 kB are through in 32 ms; of 200 kB those are crowded that leave while more than 62 kB wait.
    let (all, spared) = (sent(0, 20_000), sent(75, 20_000));
    assert!(all > 40 && spared * 20 > all * 19, "{all} {spared}");
    let (all, spared) = (sent(0, 200_000), sent(75, 200_000));
    assert!(all > 400 && spared * 10 < all * 7 && spared * 10 > all * 3, "{all} {spared}");
}

#[test]
fn what_a_near_path_loses_does_not_wait_for_the_code_of_a_far_one() {
    // Round trips of 20 and 400 ms: two of the longer one take 800.
    for loss_detection in [LossDetection::Time, LossDetection::Count] {
        let options = Options::live().with(|it| {
            it.redundancy.fec_receive = true;
            it.redundancy.artx = Some(Artx::Slowest);
            it.papers.loss_detection = loss_detection;
        });
        let far = Duplex::new(LinkModel { loss: Loss::Uniform(0.05), ..link(10, 200) }, link(10, 200));
        let near = Duplex::new(LinkModel { loss: Loss::Uniform(0.05), ..link(10, 10) }, link(10, 10));
        let mut pair = Pair::connected(&options, vec![near, far]);
        let paths: Vec<_> = pair.on_client(|it, _| it.paths().map(|path| path.id).collect());
        let owed = move |id| if id == paths[1] { 0.2 } else { 0.0 };
        assert!(pair.on_client(|it, _| it.set_fec_by_path("tetrys:6,5,128".parse().unwrap(), ms(50), owed)));
        // All goes over the near path, where a repeat is in time.
        let mut on_time = 0;
        for n in 0..1000 {
            pair.client_send(
                &pattern(1000, n),
                SendOptions { unordered: true, ..on(0, Reliability::Lifetime(ms(300))) },
            );
            pair.run(ms(10));
            on_time += pair.server_recv().len();
        }
        pair.run(ms(300));
        on_time += pair.server_recv().len();
        assert!(on_time > 995, "{loss_detection}: {on_time} of 1000");
    }
}

#[test]
fn what_redundancy_overtakes_is_not_lost() {
    // A path that loses nothing, as far as the near one's redundancy reaches before its chunks do.
    let options = Options::live().with(|it| {
        it.redundancy.fec_receive = true;
        it.paths.scheduler = SchedulerKind::RoundRobin;
    });
    let far = Duplex::both(link(2, 150));
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 10)), far]);
    let paths: Vec<_> = pair.on_client(|it, _| it.paths().map(|path| path.id).collect());
    assert!(pair.on_client(|it, _| it.set_fec_by_path("tetrys:3,2,64".parse().unwrap(), ms(20), |_| 0.5)));
    for n in 0..2000 {
        pair.client_send(&pattern(1000, n), SendOptions { unordered: true, ..on(0, Reliability::Lifetime(ms(600))) });
        pair.run(ms(5));
        pair.server_recv();
    }
    let recovered = pair.on_server(|it, _| it.stats()).recovered_chunks;
    let (loss, _) = pair.on_client(|it, _| it.recent_losses(paths[1])).unwrap();
    assert!(recovered > 300, "{recovered}");
    assert!(loss < 0.05, "{loss}");
}

#[test]
fn pictures_are_whole_sooner_when_redundancy_leaves_behind_each_of_them() {
    // Frames of five or six packets each 150 ms, to be there after 75 ms, of which the way takes 50.
    let run = |by_path: bool| {
        let options = Options::live().with(|it| it.redundancy.fec_receive = true);
        let far = Duplex::new(LinkModel { loss: Loss::Uniform(0.05), ..link(10, 50) }, link(10, 50));
        let mut pair = Pair::connected(&options, vec![far]);
        assert!(pair.on_client(|it, _| match by_path {
            true => it.set_fec_by_path("tetrys:6,5,128".parse().unwrap(), ms(50), |_| 0.2),
            false => it.set_fec(code("tetrys:6,5,128")),
        }));
        let (mut on_time, never) = (0, Reliability::Retransmissions(0));
        for n in 0..600 {
            pair.client_send(&pattern(6000, n), SendOptions { unordered: true, ..on(0, never) });
            pair.run(ms(75));
            on_time += pair.server_recv().len();
            pair.run(ms(75));
            pair.server_recv();
        }
        (on_time, pair.on_client(|it, _| it.stats()).redundancy_sent)
    };
    let ((in_rounds, redundancy), (behind, as_much)) = (run(false), run(true));
    println!("{in_rounds} with {redundancy} repairs, {behind} with {as_much}");
    assert!(redundancy.abs_diff(as_much) < redundancy / 50, "{redundancy} {as_much}");
    assert!(behind > in_rounds + 12, "{in_rounds} and {behind} of 600");
}

#[test]
fn the_retransmission_timer_waits_while_the_code_has_its_time() {
    // The near path's timeout is little more than 200 ms, and δ 400 ms: twice the round trip of the far one.
    let rto = RtoBounds::new(ms(1000), ms(200), ms(60_000));
    let artx = Some(Artx::Slowest);
    let options = Options::live().with(|it| {
        it.timers.rto = rto;
        it.redundancy.artx = artx;
        it.redundancy.fec = code("tetrys:200,199,400");
        it.paths.probe = false;
    });
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 20)), Duplex::both(link(10, 100))]);
    transfer(&mut pair, 200_000, 1000);
    pair.run(ms(1000));
    let (near, sent) = (pair.links[0].0, pair.now());
    pair.net.set_down(near, true);
    pair.client_send(&pattern(500, 0), SendOptions::default());
    pair.run(ms(2));
    pair.net.set_down(near, false);
    let before = pair.on_client(|it, _| it.stats());
    for n in 1..6 {
        pair.client_send(&pattern(500, n), SendOptions::default());
        pair.run(ms(2));
    }
    pair.until(ms(2000), "retransmission", |pair| {
        pair.on_client(|it, _| it.stats()).retransmissions > before.retransmissions
    });
    let waited = pair.now() - sent;
    assert!(waited >= ms(400) && waited < ms(600), "{waited:?}");
    assert_eq!(pair.on_client(|it, _| it.stats()).t3_expiries, before.t3_expiries);
}

#[test]
fn redundancy_inside_the_window_takes_its_share_of_it_and_no_more() {
    // A long path without losses, whose window is what limits it: of three packets two are data.
    let millis = |fec| {
        let options = Options::live().with(|it| {
            it.redundancy.fec = fec;
            it.congestion.initial_window = Some(20);
            it.papers.initial_ssthresh = Some(20_000);
        });
        run(&options, vec![Duplex::both(link(50, 100))]).millis as f64
    };
    let ratio = millis(code("tetrys:3,2,100")) / millis(None);
    assert!((1.2..1.5).contains(&ratio), "{ratio}");
}

#[test]
fn losses_that_were_made_up_for_shrink_the_window_only_if_they_are_told() {
    let run = |fec_losses| {
        let options = classic("tetrys:10,9,43").with(|it| {
            it.redundancy.fec_losses = fec_losses;
            it.redundancy.artx = Some(Artx::Slowest);
        });
        let mut pair = Pair::connected(&options, vec![lossy(0.01), lossy(0.01)]);
        let start = pair.now();
        transfer(&mut pair, 4_000_000, 1400);
        let repaired: u64 = pair.on_client(|it, _| it.paths().map(|path| path.repaired_chunks).sum());
        (repaired, pair.now() - start)
    };
    let ((hidden, quick), (told, slow)) = (run(FecLosses::Hidden), run(FecLosses::Told));
    // About 28 of 2858 are lost.
    assert!((12..60).contains(&hidden) && (12..60).contains(&told), "{hidden} and {told} repaired");
    assert!(slow > quick, "{slow:?} {quick:?}");
}

#[test]
fn what_a_full_queue_drops_is_told_and_what_a_link_loses_by_itself_is_not() {
    let radio = LinkModel { loss: Loss::Uniform(0.01), ..link(50, 20) };
    let full = LinkModel { queue: QueueLimit::Packets(20).into(), ..link(10, 20) };
    let run = |fec_losses, there: &LinkModel| {
        let options = Options::live().with(|it| {
            it.redundancy.fec = code("tetrys:10,9,100");
            it.redundancy.fec_losses = fec_losses;
            it.congestion.queueing_limit = None;
        });
        let mut pair = Pair::connected(&options, vec![Duplex::new(there.clone(), link(50, 20))]);
        let start = pair.now();
        transfer(&mut pair, 4_000_000, 1000);
        (pair.on_client(|it, _| it.paths().next().unwrap().repaired_chunks), (pair.now() - start).as_millis())
    };
    let all = [FecLosses::Hidden, FecLosses::Queued, FecLosses::Told];
    let [hidden, queued, told] = all.map(|it| run(it, &radio).1);
    assert!(queued * 10 < hidden * 11 && told * 10 > hidden * 12, "{hidden} {queued} {told} ms");
    let [hidden, queued, told] = all.map(|it| run(it, &full).0);
    assert!(queued * 2 < hidden && queued <= told * 2, "{hidden} {queued} {told} repaired");
}

/// Redundancy over `symbols`, from `first_tsn` on, all of them.
fn over(first_tsn: u32, symbols: &[Vec<u8>]) -> Vec<u8> {
    let count = symbols.len() as u16;
    let combination = Combination { coefficients: Coefficients::Random, first: 0, count, key: 9 };
    let (mut coefficients, mut coded, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    combination.coefficients(&mut coefficients).unwrap();
    for (symbol, &coefficient) in symbols.iter().zip(&coefficients) {
        Combination::add_sources(&[coefficient], &[b""], &[symbol], &mut coded);
    }
    let covered = vec![0xff; symbols.len().div_ceil(8)];
    let chunk = Redundancy { rule: Redundancy::RANDOM, first_tsn, count, key: 9, covered: &covered, coded: &coded };
    chunk.emit(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn a_liar_is_harmless() {
    let options = Options::live().with(|it| {
        it.redundancy.fec = code("tetrys:10,9,43");
        it.interleaving = false;
    });
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 10))]);
    let recording = pair.record();
    transfer(&mut pair, 20_000, 500);
    let seen = recording.last(&CLIENT, kind::DATA).unwrap();
    let tag = tag(&seen);
    let chunks = Packet::parse(&seen).unwrap().chunks();
    let last = chunks.filter_map(|raw| Chunk::parse(raw.unwrap()).ok()).filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    });
    let next = last.max().unwrap().wrapping_add(1);
    let coded = [1; 100];
    let base =
        Redundancy { rule: Redundancy::RANDOM, first_tsn: next, count: 8, key: 1, covered: &[0xff], coded: &coded };
    let gigabytes = [0xff; 8192];
    let refused = [
        Redundancy { rule: 7, ..base },
        Redundancy { covered: &[0], ..base },
        Redundancy { count: 0, covered: &[], ..base },
        Redundancy { count: 65_535, covered: &gigabytes, ..base },
        Redundancy { count: 600, covered: &gigabytes[..75], ..base },
        Redundancy { rule: Redundancy::CAUCHY, key: 250, ..base },
        Redundancy { first_tsn: next.wrapping_add(1 << 20), ..base },
        Redundancy { coded: &[1], ..base },
    ];
    for chunk in refused {
        pair.inject_server(0, CLIENT[0], &packet(tag, &[Chunk::Redundancy(chunk)]));
    }
    assert_eq!(pair.on_server(|it, _| it.stats().redundancy_refused), 8);
    let far_behind = Redundancy { first_tsn: next.wrapping_sub(1 << 20), ..base };
    pair.inject_server(0, CLIENT[0], &packet(tag, &[Chunk::Redundancy(far_behind)]));
    assert_eq!(pair.on_server(|it, _| it.stats().redundancy_late), 1);
    // Solutions that are no data chunk: another TSN, a wrong length, no payload, a stream that there is not, I-DATA.
    let symbol = |tsn: u32, stream: u16, payload: &[u8]| {
        let mut bytes = Vec::new();
        let (first, last, unordered, immediate, timed) = (true, true, true, false, false);
        let data = Data { tsn, stream, ssn: 0, ppid: 0, unordered, first, last, immediate, timed, payload };
        data.emit_header(&mut Writer::new(&mut bytes), payload.len());
        bytes.extend_from_slice(payload);
        bytes
    };
    let mut short = symbol(next, 0, b"text");
    short.pop();
    let mut i_data = symbol(next, 0, b"some text");
    i_data[0] = 64;
    let lies =
        [symbol(next.wrapping_add(1), 0, b"text"), short, symbol(next, 0, b""), i_data, symbol(next, 9999, b"text")];
    for lie in &lies {
        let bytes = over(next, core::slice::from_ref(lie));
        pair.inject_server(0, CLIENT[0], &common::raw_packet(tag, &bytes));
    }
    let stats = pair.on_server(|it, _| it.stats());
    assert_eq!((stats.inconsistent_chunks, stats.recovered_chunks), (lies.len() as u64, 0));
    assert!(pair.server_recv().is_empty());
    // A chunk that could be is taken, but the truth that comes after it is noted.
    let bytes = over(next, &[symbol(next, 0, b"plausible")]);
    pair.inject_server(0, CLIENT[0], &common::raw_packet(tag, &bytes));
    assert_eq!(pair.server_recv().len(), 1);
    pair.client_send(&pattern(300, 1), SendOptions { unordered: true, ..SendOptions::default() });
    pair.run(ms(500));
    assert_eq!(pair.on_server(|it, _| it.stats().contradicting_chunks), 1);
    transfer(&mut pair, 100_000, 3000);
    assert!(!pair.server_events.iter().any(|event| matches!(event, Event::Closed(_))));
}
