//! Lives of associations on the simulator, recorded as captures.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Writer};
use braidcast_sctp::wire::chunk::{Init, kind};
use braidcast_sctp::wire::{self, Chunk, Header, Packet, Parameters, RawChunk};
use braidcast_sctp::{Association, AssociationId, Endpoint, Options, Reliability, SendOptions};
use braidcast_sim::link::{LinkModel, Reorder, ReorderHow};
use braidcast_sim::{Duplex, Network, NodeId, TapAction};
use braidcast_trace::{Captured, Direction, PcapWriter, Ports};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// A life of an association and its name.
pub(crate) type Scenario = (&'static str, fn() -> Capture);

pub(crate) const ALL: [Scenario; 7] = [
    ("I-DATA, loss, reordering, duplicates, too late messages, shutdown", || busy(true)),
    ("DATA, loss, reordering, duplicates, too late messages, shutdown", || busy(false)),
    ("a path joins and leaves", joins_and_leaves),
    ("abort", aborted),
    ("restart", restarted),
    ("what is wrong is answered", provoked),
    ("nobody listens", refused),
];

const CLIENT: [&str; 2] = ["10.1.0.1:9899", "10.2.0.1:9899"];
const SERVER: [&str; 2] = ["10.1.0.2:9899", "10.2.0.2:9899"];

/// All packets of a scenario, as a file that is deleted in the end.
pub(crate) struct Capture {
    file: tempfile::NamedTempFile,
    seen: Seen,
}

#[derive(Clone, Default)]
struct Seen {
    packets: usize,
    kinds: BTreeSet<u8>,
    /// The tag that the server's association has, as the client uses it.
    tag: u32,
}

impl Capture {
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) const fn packets(&self) -> usize {
        self.seen.packets
    }

    pub(crate) const fn kinds(&self) -> &BTreeSet<u8> {
        &self.seen.kinds
    }
}

/// A client and a server with two paths, of which the client uses the first.
struct Scene {
    net: Network<Endpoint>,
    client: NodeId,
    server: NodeId,
    id: AssociationId,
    pcap: Rc<RefCell<PcapWriter<Vec<u8>>>>,
    seen: Rc<RefCell<Seen>>,
}

impl Scene {
    fn new(options: &Options, model: &LinkModel, listening: bool) -> Self {
        let (mut net, rng) = (Network::new(1), Rng::from_seed(1));
        let client = net.add(Endpoint::new(options.clone(), rng.stream("client")).unwrap(), CLIENT);
        let server = net.add(Endpoint::new(options.clone(), rng.stream("server")).unwrap(), SERVER);
        for path in 0..2 {
            net.connect((client, path), (server, path), Duplex::both(model.clone()));
        }
        let mut pcap = PcapWriter::new(Vec::new(), Ports::Encapsulation).unwrap();
        let interface = pcap.interface("wire").unwrap();
        let (pcap, seen) = (Rc::new(RefCell::new(pcap)), Rc::new(RefCell::new(Seen::default())));
        let (writer, seer) = (Rc::clone(&pcap), Rc::clone(&seen));
        net.set_tap(move |event| {
            if event.action != TapAction::Sent {
                return;
            }
            let (direction, comment) = (Direction::Out, "");
            let (at, from, to, ecn, payload) = (event.at, event.from, event.to, event.ecn, event.payload);
            let captured = Captured { at, interface, direction, from, to, ecn, payload, comment };
            writer.borrow_mut().packet(&captured).unwrap();
            let (mut seen, packet) = (seer.borrow_mut(), Packet::parse(payload).unwrap());
            seen.packets += 1;
            seen.kinds.extend(packet.chunks().map(|raw| raw.unwrap().kind));
            if from == CLIENT[0].parse().unwrap() && packet.header.verification_tag != 0 {
                seen.tag = packet.header.verification_tag;
            }
        });
        if listening {
            net.with(server, |endpoint, _| endpoint.listen());
        }
        let id = net.with(client, |endpoint, now| endpoint.connect(now, options.local_port, &[route(0)]).unwrap());
        Self { net, client, server, id, pcap, seen }
    }

    fn run(&mut self, ms: u64) {
        self.net.run_for(Duration::from_millis(ms));
        self.server_side(|association, now| {
            let mut buf = Vec::new();
            while association.recv(now, &mut buf).is_some() {}
        });
    }

    fn client_side<R>(&mut self, action: impl FnOnce(&mut Association, Instant) -> R) -> Option<R> {
        let id = self.id;
        self.net.with(self.client, |endpoint, now| endpoint.association_mut(id).map(|it| action(it, now)))
    }

    fn server_side<R>(&mut self, action: impl FnOnce(&mut Association, Instant) -> R) -> Option<R> {
        self.net.with(self.server, |endpoint, now| {
            let id = endpoint.associations().last()?;
            endpoint.association_mut(id).map(|association| action(association, now))
        })
    }

    /// Hands the server a packet from the client that the client never sent.
    fn forge(&mut self, tag: u32, chunk: &Chunk<'_>) {
        let mut packet = Vec::new();
        wire::begin(&mut packet, Header { source_port: 9899, destination_port: 9899, verification_tag: tag });
        chunk.emit(&mut Writer::new(&mut packet));
        wire::seal(&mut packet);
        let route = Route::new(SocketId(0), CLIENT[0].parse().unwrap());
        self.net.with(self.server, |endpoint, now| {
            endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &packet });
        });
        self.run(100);
    }

    fn tag(&self) -> u32 {
        self.seen.borrow().tag
    }

    fn capture(mut self) -> Capture {
        self.run(100);
        let file = tempfile::NamedTempFile::new().unwrap();
        let Self { net, pcap, seen, .. } = self;
        drop(net); // And with it the tap's share of the writer.
        let bytes = Rc::into_inner(pcap).unwrap().into_inner().into_inner();
        std::fs::write(file.path(), bytes).unwrap();
        Capture { file, seen: seen.borrow().clone() }
    }
}

fn route(path: u16) -> Route {
    Route::new(SocketId(path), SERVER[usize::from(path)].parse().unwrap())
}

fn clean() -> LinkModel {
    LinkModel::wire(10_000_000, Duration::from_millis(10))
}

/// Both ends send short and long messages, some of them worth a moment only, over a bad link.
fn busy(interleaving: bool) -> Capture {
    let options = Options::live().with(|it| it.interleaving = interleaving);
    let model = LinkModel {
        loss: "5%".parse().unwrap(),
        reorder: Reorder { share: 0.05, how: ReorderHow::Skip },
        duplicate: 0.05,
        ..clean()
    };
    let mut scene = Scene::new(&options, &model, true);
    scene.run(2000);
    for round in 0..40_u16 {
        for len in [1, 100, 1500, 20_000] {
            let reliability = match round % 3 {
                0 => Reliability::Reliable,
                1 => Reliability::Lifetime(Duration::from_millis(30)),
                _ => Reliability::Retransmissions(0),
            };
            let (stream, unordered) = (round % 8, round % 5 == 0);
            let how = SendOptions { stream, unordered, reliability, ppid: 51, ..SendOptions::default() };
            let payload = vec![round as u8; len];
            scene.client_side(|association, now| association.send(now, &payload, how).unwrap()).unwrap();
            scene
                .server_side(|association, now| association.send(now, &payload[..len.min(500)], how).unwrap())
                .unwrap();
        }
        scene.run(30);
    }
    scene.client_side(|association, now| association.shutdown(now)).unwrap();
    scene.run(20_000);
    assert_eq!(scene.net.node(scene.client).associations().count(), 0, "shut down");
    scene.capture()
}

fn joins_and_leaves() -> Capture {
    let mut scene = Scene::new(&Options::live().with(|it| it.key = b"secret".to_vec()), &clean(), true);
    scene.run(500);
    scene.client_side(|association, now| association.join(now, route(1)).unwrap()).unwrap();
    scene.run(2000);
    assert_eq!(scene.server_side(|association, _| association.paths().count()), Some(2));
    scene.client_side(|association, now| association.leave(now, route(0))).unwrap();
    scene.run(3000);
    assert_eq!(scene.server_side(|association, _| association.paths().count()), Some(1));
    scene.capture()
}

fn aborted() -> Capture {
    let mut scene = Scene::new(&Options::live(), &clean(), true);
    scene.run(500);
    scene.client_side(|association, now| association.abort(now, "the speaker lost his voice")).unwrap();
    scene.run(500);
    scene.capture()
}

fn restarted() -> Capture {
    let options = Options::live();
    let mut scene = Scene::new(&options, &clean(), true);
    scene.run(500);
    *scene.net.node_mut(scene.client) = Endpoint::new(options, Rng::from_seed(2)).unwrap();
    scene.id = scene.net.with(scene.client, |endpoint, now| endpoint.connect(now, 9899, &[route(0)]).unwrap());
    scene.run(1000);
    assert_eq!(scene.client_side(|association, _| association.is_established()), Some(true));
    scene.client_side(|association, now| association.send(now, b"again", SendOptions::default()).unwrap());
    scene.run(500);
    scene.capture()
}

/// Unknown chunks and parameters, streams that do not exist, packets for nobody, and at last a broken chunk.
fn provoked() -> Capture {
    let mut scene = Scene::new(&Options::live().with(|it| it.interleaving = false), &clean(), true);
    scene.run(500);
    let tag = scene.tag();
    let unknown = RawChunk { kind: 0xfe, flags: 0, value: b"abcde", bytes: &[], offset: 0 };
    scene.forge(tag, &Chunk::Unknown(unknown));
    let unknown_parameters = [0xc0, 0x77, 0, 8, 1, 2, 3, 4];
    let init = |streams, parameters| {
        Chunk::Init(Init {
            initiate_tag: 77,
            a_rwnd: 100_000,
            outbound_streams: streams,
            inbound_streams: 5,
            initial_tsn: 1,
            parameters: Parameters::new(parameters),
        })
    };
    scene.forge(0, &init(5, &unknown_parameters));
    scene.forge(0, &init(0, &[]));
    // Host Name Address ends a handshake (RFC 9260 §3.3.2.1.4).
    scene.forge(0, &init(5, &[0, 11, 0, 8, b'h', b'o', b's', b't']));
    scene.forge(tag ^ 1, &Chunk::CookieAck(wire::chunk::CookieAck));
    scene.forge(tag ^ 1, &Chunk::ShutdownAck(wire::chunk::ShutdownAck));
    scene.forge(tag ^ 1, &Chunk::Shutdown(wire::chunk::Shutdown { cumulative_tsn: 1 }));
    let short = RawChunk { kind: kind::SACK, flags: 0, value: b"short", bytes: &[], offset: 0 };
    scene.forge(tag, &Chunk::Unknown(short));
    scene.capture()
}

fn refused() -> Capture {
    let mut scene = Scene::new(&Options::live(), &clean(), false);
    scene.run(500);
    assert_eq!(scene.net.node(scene.client).associations().count(), 0, "the client stopped trying");
    scene.capture()
}
