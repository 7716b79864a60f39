//! ECN (RFC 3168, RFC 4960 appendix A, draft-stewart-tsvwg-sctpecn): queues that mark are heard,
//! path by path, without a loss.

use crate::common;
use crate::common::{CLIENT, Pair, SERVER, bulk, link, ms, pattern, route};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_sctp::wire::{Chunk, Packet, chunk::kind};
use braidcast_sctp::{
    Algorithm, AssociationId, Endpoint, FecWindow, MarkResponse, Options, PathReport, SackPolicy, SendOptions,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;

/// 10 Mbit/s, 20 ms, and CoDel, which marks or drops.
fn bottleneck(marks: bool) -> Duplex {
    let queue = if marks { "codel:5ms,100ms,ecn" } else { "codel:5ms,100ms" };
    Duplex::new(LinkModel { queue: queue.parse().unwrap(), ..link(10, 20) }, link(10, 20))
}

/// A link whose queue never complains.
fn quiet() -> Duplex {
    Duplex::both(LinkModel { queue: "4000p".parse().unwrap(), ..link(10, 20) })
}

fn path(pair: &mut Pair, i: usize) -> PathReport {
    pair.client_path(i).unwrap()
}

#[test]
fn a_marking_bottleneck_is_heard_without_a_loss_and_no_slower() {
    let fill = |ecn, marks| {
        let options = Options::default().with(|it| {
            it.congestion.ecn = ecn;
            it.limits.send_buffer = 256 << 10;
            it.limits.max_message = 256 << 10;
        });
        let mut pair = Pair::connected(&options, vec![bottleneck(marks)]);
        let received = bulk(&mut pair, 1100, ms(10_000));
        let stats = pair.net.link(pair.links[0].0).stats();
        (received, path(&mut pair, 0), stats)
    };
    let (without, lossy, link) = fill(false, true);
    assert!(lossy.lost_chunks > 10 && link.marked == 0 && lossy.mark_reductions == 0, "not capable: dropped");
    let (with, clean, link) = fill(true, true);
    println!("ECN {with}, without {without} messages; {} marks, {} reductions", link.marked, clean.mark_reductions);
    assert!(link.marked > 10 && clean.mark_reductions > 10, "{clean:?}");
    assert_eq!((clean.lost_chunks, clean.timeouts), (0, 0));
    assert!(clean.mark_reductions <= link.marked);
    assert!(with as f64 > 0.97 * without as f64, "{with} against {without}");
}

#[test]
fn only_the_path_that_carried_the_mark_slows_down() {
    let mut pair = Pair::connected(
        &Options::default().with(|it| {
            it.congestion.ecn = true;
            it.limits.send_buffer = 512 << 10;
            it.limits.max_message = 512 << 10;
        }),
        vec![bottleneck(true), quiet()],
    );
    bulk(&mut pair, 1100, ms(10_000));
    let [marked, unmarked] = [0, 1].map(|i| path(&mut pair, i));
    assert!(marked.mark_reductions > 5 && marked.lost_chunks == 0, "{marked:?}");
    assert_eq!((unmarked.mark_reductions, unmarked.lost_chunks), (0, 0));
    let counted = pair.on_server(|it, _| it.paths().map(|path| (path.route, path.marked_packets)).collect::<Vec<_>>());
    let marks_at = |i: usize| counted.iter().find(|(at, _)| at.remote == CLIENT[i].parse().unwrap()).unwrap().1;
    assert_eq!((marks_at(0), marks_at(1)), (pair.net.link(pair.links[0].0).stats().marked, 0));
}

#[test]
fn only_packets_with_data_can_be_marked() {
    let mut pair = Pair::new(&Options::default().with(|it| it.congestion.ecn = true), vec![bottleneck(true)]);
    let recording = pair.record();
    pair.connect();
    bulk(&mut pair, 1100, ms(500));
    pair.run(ms(40_000));
    let all = recording.sent(&CLIENT);
    let capable = |it: &&common::Seen| it.ecn == Ecn::Ect0;
    let data = all.iter().filter(|it| it.kinds().contains(&kind::I_DATA));
    assert!(data.clone().count() > 100 && data.clone().all(|it| capable(&it)));
    assert_eq!(all.iter().filter(capable).count(), data.count(), "handshake, heartbeats, probes and CWR go without");
    assert!(recording.sent(&SERVER).iter().all(|it| it.ecn == Ecn::NotEct), "SACKs too");
}

#[test]
fn copies_which_no_window_holds_back_cannot_be_marked() {
    let mut pair = Pair::new(&Options::prompt(), vec![quiet(), quiet()]);
    let recording = pair.record();
    pair.connect();
    pair.on_client(|it, _| it.set_copied(0, true));
    for n in 0..50 {
        pair.client_send(&pattern(160, n), SendOptions::default());
        pair.run(ms(20));
    }
    let data = recording.sent(&CLIENT).into_iter().filter(|it| it.kinds().contains(&kind::I_DATA));
    let (capable, not): (Vec<_>, Vec<_>) = data.partition(|it| it.ecn == Ecn::Ect0);
    assert_eq!((capable.len(), not.len()), (50, 50));
}

#[test]
fn a_peer_without_ecn_is_sent_nothing_that_can_be_marked() {
    let with = Options::default().with(|it| it.congestion.ecn = true);
    let without = Options::default().with(|it| it.congestion.ecn = false);
    for (client, server) in [(with.clone(), without.clone()), (without, with)] {
        let mut pair = Pair::with(client, server, vec![bottleneck(true)]);
        let recording = pair.record();
        pair.connect();
        bulk(&mut pair, 1100, ms(3000));
        assert!(recording.all().iter().all(|it| it.ecn == Ecn::NotEct));
        assert_eq!(recording.count(&SERVER, kind::ECNE) + recording.count(&CLIENT, kind::CWR), 0);
        assert!(path(&mut pair, 0).lost_chunks > 0, "CoDel drops what it cannot mark");
    }
}

/// Two endpoints whose packets a test carries by hand, with their marks, over one or two paths.
struct Carried {
    client: Endpoint,
    server: Endpoint,
    id: AssociationId,
    now: Instant,
}

/// A packet in flight: the path, what the IP header says, the bytes.
#[derive(Clone)]
struct Underway {
    path: usize,
    ecn: Ecn,
    bytes: Vec<u8>,
}

impl Underway {
    fn marked(self) -> Self {
        Self { ecn: Ecn::Ce, ..self }
    }

    /// Its ECNE and CWR chunks, as they print.
    fn says(&self) -> Vec<String> {
        let packet = Packet::parse(&self.bytes).unwrap();
        let chunks = packet.chunks().map(|raw| Chunk::parse(raw.unwrap()).unwrap());
        chunks.filter(|it| matches!(it, Chunk::Ecne(_) | Chunk::Cwr(_))).map(|it| it.to_string()).collect()
    }

    fn tsn(&self) -> u32 {
        let packet = Packet::parse(&self.bytes).unwrap();
        let tsn = packet.chunks().find_map(|raw| match Chunk::parse(raw.unwrap()) {
            Ok(Chunk::IData(data)) => Some(data.tsn),
            _ => None,
        });
        tsn.expect("a packet with data")
    }
}

impl Carried {
    fn new(options: &Options, paths: usize) -> Self {
        let rng = Rng::from_seed(1);
        let mut client = Endpoint::new(options.clone(), rng.stream("client")).unwrap();
        let mut server = Endpoint::new(options.clone(), rng.stream("server")).unwrap();
        server.listen();
        let now = Instant::from_millis(1000);
        let routes: Vec<_> = (0..paths).map(route).collect();
        let id = client.connect(now, 9899, &routes).unwrap();
        let mut carried = Self { client, server, id, now };
        for _ in 0..40 {
            carried.settle();
            carried.wait(50);
        }
        carried
    }

    fn wait(&mut self, millis: u64) {
        self.now += ms(millis);
    }

    fn poll(endpoint: &mut Endpoint, now: Instant) -> Vec<Underway> {
        if endpoint.poll_timeout().is_some_and(|at| at <= now) {
            endpoint.handle_timeout(now);
        }
        let (mut buf, mut packets) = (Vec::new(), Vec::new());
        while let Some(transmit) = endpoint.poll_transmit(now, &mut buf) {
            let one = |bytes: &[u8]| Underway {
                path: usize::from(transmit.route.socket.0),
                ecn: transmit.ecn,
                bytes: bytes.to_vec(),
            };
            packets.extend(transmit.datagrams(&buf).map(one));
        }
        packets
    }

    fn client_sends(&mut self) -> Vec<Underway> {
        Self::poll(&mut self.client, self.now)
    }

    fn server_sends(&mut self) -> Vec<Underway> {
        Self::poll(&mut self.server, self.now)
    }

    fn arrive(endpoint: &mut Endpoint, now: Instant, from: &str, packet: &Underway) {
        let route = Route::new(SocketId(packet.path as u16), from.parse().unwrap());
        endpoint.handle_datagram(now, Datagram { route, ecn: packet.ecn, payload: &packet.bytes });
    }

    fn server_gets(&mut self, packet: &Underway) {
        Self::arrive(&mut self.server, self.now, CLIENT[packet.path], packet);
    }

    fn client_gets(&mut self, packet: &Underway) {
        Self::arrive(&mut self.client, self.now, SERVER[packet.path], packet);
    }

    /// Carries everything at once until there is nothing more.
    fn settle(&mut self) {
        loop {
            let (there, back) = (self.client_sends(), self.server_sends());
            if there.is_empty() && back.is_empty() {
                return;
            }
            there.iter().for_each(|packet| self.server_gets(packet));
            back.iter().for_each(|packet| self.client_gets(packet));
        }
    }

    /// The client has `count` messages to send.
    fn push(&mut self, count: usize) {
        let (now, id) = (self.now, self.id);
        let association = self.client.association_mut(id).unwrap();
        for _ in 0..count {
            association.send(now, &pattern(1100, 3), SendOptions::default()).unwrap();
        }
    }

    /// The client sends `count` messages that fill a packet each, over the path that it chooses; the packets.
    fn send(&mut self, count: usize) -> Vec<Underway> {
        self.push(count);
        let sent = self.client_sends();
        assert_eq!(sent.len(), count, "the window has room");
        sent
    }

    fn path(&self, i: usize) -> PathReport {
        self.client.association(self.id).unwrap().paths().find(|path| path.route == route(i)).unwrap()
    }
}

/// A SACK for each packet, no pacing, a window of 20 packets.
fn by_hand() -> Options {
    let sack = SackPolicy::EveryPacket.into();
    Options::default().with(|it| {
        it.sack = sack;
        it.congestion.pacing = false;
        it.congestion.initial_window = Some(20);
        it.interleaving = true;
        it.paths.max_mtu = 1200;
        it.congestion.ecn = true;
    })
}

#[test]
fn marks_of_one_window_reduce_it_once_and_those_of_the_next_once_more() {
    // Veno would take a loss on an empty queue for chance. A mark is none.
    let mut net = Carried::new(&by_hand().with(|it| it.congestion.algorithm = Algorithm::Veno), 1);
    let before = net.path(0).cwnd;
    let sent = net.send(6);
    sent.iter().for_each(|packet| net.server_gets(&packet.clone().marked()));
    let answers = net.server_sends();
    assert_eq!(answers[0].says(), [format!("ECNE tsn={} marked=6", sent[5].tsn())], "the latest stands for all");
    net.wait(20);
    answers.iter().for_each(|packet| net.client_gets(packet));
    let half = before / 2;
    assert_eq!((net.path(0).cwnd, net.path(0).mark_reductions), (half, 1));
    assert_eq!(net.client_sends()[0].says(), [format!("CWR tsn={}", sent[5].tsn())]);
    net.wait(20);
    let next = net.send(2);
    next.iter().for_each(|packet| net.server_gets(&packet.clone().marked()));
    net.settle();
    assert_eq!(net.path(0).mark_reductions, 2, "both belong to one window");
    assert!((half / 2..half).contains(&net.path(0).cwnd), "no growth in between but for what the first window earned");
}

#[test]
fn abe_keeps_four_fifths_of_a_window_that_has_left_slow_start() {
    let mut net = Carried::new(&by_hand().with(|it| it.congestion.mark_response = MarkResponse::Abe), 1);
    let mark = |net: &mut Carried| {
        let before = net.path(0).cwnd;
        net.send(1).iter().for_each(|packet| net.server_gets(&packet.clone().marked()));
        net.wait(20);
        net.settle();
        (before, net.path(0).cwnd)
    };
    let (before, after) = mark(&mut net);
    assert_eq!(after, before / 2, "slow start ends with half");
    net.send(10).iter().for_each(|packet| net.server_gets(packet));
    net.wait(20);
    net.settle();
    let (before, after) = mark(&mut net);
    assert_eq!(after, before * 4 / 5);
}

#[test]
fn an_echo_is_repeated_until_the_window_reduced_chunk_comes() {
    let mut net = Carried::new(&by_hand(), 1);
    let sent = net.send(1);
    net.server_gets(&sent[0].clone().marked());
    let echo = [format!("ECNE tsn={} marked=1", sent[0].tsn())];
    assert_eq!(net.server_sends()[0].says(), echo, "at once; but lost");
    // The next SACK repeats it, in front of itself, so that the TSN is still known.
    let more = net.send(1);
    net.server_gets(&more[0]);
    let second = net.server_sends();
    assert_eq!(second[0].says(), echo);
    net.wait(30);
    net.client_gets(&second[0]);
    assert_eq!(net.path(0).mark_reductions, 1);
    let cwr = net.client_sends();
    assert_eq!(cwr[0].says(), [format!("CWR tsn={}", sent[0].tsn())], "and it is lost");
    // While it could still be in flight, echoes are not answered; then it is sent again and reduces nothing.
    let mut repeated = 0;
    for _ in 0..10 {
        let more = net.send(1);
        net.server_gets(&more[0]);
        let sack = net.server_sends();
        assert_eq!(sack[0].says(), echo);
        net.wait(10);
        net.client_gets(&sack[0]);
        let answer = net.client_sends();
        if let Some(cwr) = answer.iter().find(|packet| !packet.says().is_empty()) {
            assert_eq!(cwr.says(), [format!("CWR tsn={} same-window", sent[0].tsn())]);
            net.server_gets(cwr);
            repeated += 1;
            break;
        }
    }
    assert_eq!((repeated, net.path(0).mark_reductions), (1, 1));
    let more = net.send(1);
    net.server_gets(&more[0]);
    assert!(net.server_sends()[0].says().is_empty(), "heard");
}

#[test]
fn bleached_packets_and_echoes_of_nothing_change_nothing() {
    let mut net = Carried::new(&by_hand(), 1);
    let before = net.path(0).cwnd;
    for packet in net.send(4) {
        net.server_gets(&Underway { ecn: Ecn::NotEct, ..packet });
    }
    net.settle();
    assert!(net.path(0).cwnd >= before && net.path(0).mark_reductions == 0);
    // A TSN that was never sent, and one of long ago.
    let sent = net.send(1);
    let tag = common::tag(&sent[0].bytes);
    let client_tag = common::tag(&{
        net.server_gets(&sent[0]);
        net.server_sends()[0].bytes.clone()
    });
    assert_ne!(tag, client_tag);
    for lowest_tsn in [sent[0].tsn().wrapping_add(1000), sent[0].tsn().wrapping_sub(3)] {
        let ecne = Chunk::Ecne(braidcast_sctp::wire::chunk::Ecne { lowest_tsn, marked: None });
        let bytes = common::packet(client_tag, &[ecne]);
        net.client_gets(&Underway { path: 0, ecn: Ecn::NotEct, bytes });
    }
    assert_eq!(net.path(0).mark_reductions, 0);
    let said: Vec<String> = net.client_sends().iter().flat_map(Underway::says).collect();
    let old = sent[0].tsn().wrapping_sub(3);
    assert_eq!(said, [format!("CWR tsn={old} all-paths same-window")], "the old one is answered, so that it ends");
}

#[test]
fn marked_redundancy_is_told_of_with_the_next_data_over_its_path() {
    let code = "block:4,3".parse().unwrap();
    let mut net = Carried::new(&by_hand().with(|it| it.redundancy.fec = Some(code)), 1);
    net.push(3);
    let sent = net.client_sends();
    assert!(sent.len() == 4 && sent.iter().all(|packet| packet.ecn == Ecn::Ect0), "three with data, one without");
    sent[..3].iter().for_each(|packet| net.server_gets(packet));
    net.server_gets(&sent[3].clone().marked());
    let answers = net.server_sends();
    assert!(answers.iter().all(|packet| packet.says().is_empty()), "there is no TSN to tell it by");
    answers.iter().for_each(|packet| net.client_gets(packet));
    let next = net.send(1);
    net.server_gets(&next[0]);
    let answer = net.server_sends();
    assert_eq!(answer[0].says(), [format!("ECNE tsn={} marked=1", next[0].tsn())]);
    net.client_gets(&answer[0]);
    assert_eq!(net.path(0).mark_reductions, 1);
}

#[test]
fn redundancy_outside_the_window_cannot_be_marked() {
    let code = "block:4,3".parse().unwrap();
    let mut net = Carried::new(
        &by_hand().with(|it| {
            it.redundancy.fec = Some(code);
            it.redundancy.fec_window = FecWindow::Outside;
        }),
        1,
    );
    net.push(3);
    let says: Vec<Ecn> = net.client_sends().iter().map(|packet| packet.ecn).collect();
    assert_eq!(says, [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct]);
}

#[test]
fn a_mark_and_a_loss_in_one_window_reduce_it_once() {
    let mut net = Carried::new(&by_hand(), 1);
    let before = net.path(0).cwnd;
    let sent = net.send(10);
    net.wait(30);
    net.server_gets(&sent[1].clone().marked());
    let answer = net.server_sends();
    net.client_gets(&answer[0]);
    assert_eq!((net.path(0).mark_reductions, net.path(0).cwnd), (1, before / 2));
    // The first packet was lost.
    sent[2..].iter().for_each(|packet| net.server_gets(packet));
    net.wait(20);
    net.settle();
    net.wait(200);
    net.settle();
    let path = net.path(0);
    assert_eq!((path.lost_chunks, path.mark_reductions), (1, 1));
    assert!(path.ssthresh == before / 2, "{path:?}");
}
