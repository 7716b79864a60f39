//! One stream to many: a camera, a hub that plays and serves what it takes, and viewers that call it.

use crate::common::*;
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_session::{
    Beside, Event, Pieces, Receiver, ReceiverOptions, SenderOptions, Server, ServerEvent, ServerOptions,
};
use braidcast_sim::link::Loss;
use braidcast_sim::testing::seed_from_env;
use braidcast_sim::{Duplex, LinkModel, Network, NodeId};
use core::time::Duration;

/// Sockets of the hub where viewers call; the camera calls at socket 0.
const SERVED: [SocketId; 4] = [SocketId(1), SocketId(2), SocketId(3), SocketId(4)];

struct Hub {
    sink: Sink,
    server: Server,
    pieces: Pieces,
    events: Vec<ServerEvent>,
}

impl Hub {
    fn after(&mut self, now: Instant) {
        self.sink.after(now);
        self.sink.receiver.take_pieces(&mut self.pieces);
        self.server.push(now, &self.pieces);
        self.events.extend(core::iter::from_fn(|| self.server.poll_event()));
    }

    fn both(&mut self) -> Beside<'_, Receiver, Server> {
        Beside::new(&mut self.sink.receiver, &mut self.server, &SERVED)
    }
}

enum Member {
    One(Node),
    Hub(Box<Hub>),
}

impl Machine for Member {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::One(node) => node.handle_datagram(now, datagram),
            Self::Hub(hub) => {
                hub.both().handle_datagram(now, datagram);
                hub.after(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::One(node) => node.handle_timeout(now),
            Self::Hub(hub) => {
                hub.both().handle_timeout(now);
                hub.after(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::One(node) => node.poll_transmit(now, buf),
            Self::Hub(hub) => hub.both().poll_transmit(now, buf),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::One(node) => node.poll_timeout(),
            Self::Hub(hub) => Instant::first_of([hub.sink.receiver.poll_timeout(), hub.server.poll_timeout()]),
        }
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

struct Scene {
    net: Network<Member>,
    camera: NodeId,
    hub: NodeId,
    viewers: Vec<NodeId>,
    rng: Rng,
}

fn link() -> LinkModel {
    LinkModel::wire(20_000_000, ms(15))
}

impl Scene {
    fn new(seconds: u64) -> Self {
        let seed = seed_from_env(1);
        let (mut net, rng) = (Network::new(seed.get()), Rng::from_seed(seed.get()));
        let camera = source(Instant::ZERO, &rng, &SenderOptions::default(), camera(seconds), 1);
        let camera = net.add(Member::One(camera), SOURCE_ADDRESSES[..1].iter().copied());
        let options = ReceiverOptions::default().with(|it| {
            it.pieces = true;
            it.keep = true;
        });
        let receiver = Receiver::new(options, rng.stream("hub")).unwrap();
        let mut server = Server::new(ServerOptions::default(), rng.stream("server")).unwrap();
        server.set_streams(Instant::ZERO, receiver.channels());
        let hub = Hub { sink: Sink::of(receiver), server, pieces: Pieces::default(), events: Vec::new() };
        let hub = net.add(Member::Hub(Box::new(hub)), SINK_ADDRESSES);
        net.connect((camera, 0), (hub, 0), Duplex::both(link()));
        Self { net, camera, hub, viewers: Vec::new(), rng }
    }

    /// Another viewer, that calls now, over such a link.
    fn view(&mut self, link: LinkModel, latency: Option<Duration>) -> NodeId {
        let n = self.viewers.len() + 1;
        let viewer = self.viewer(n, latency);
        let id = self.net.add(viewer, [format!("10.9.0.{n}:9899").as_str()]);
        self.net.connect((id, 0), (self.hub, n as u16), Duplex::both(link));
        self.net.touch(id);
        self.viewers.push(id);
        id
    }

    fn viewer(&self, n: usize, latency: Option<Duration>) -> Member {
        let to = Route::new(SocketId(0), SINK_ADDRESSES[n].parse().unwrap());
        let options = ReceiverOptions::default().with(|it| it.latency = latency);
        let rng = self.rng.stream(&format!("viewer {n} {:?}", self.net.now()));
        Member::One(Node::Sink(Box::new(Sink::of(Receiver::call(self.net.now(), options, rng, PORT, &[to]).unwrap()))))
    }

    fn seen(&self, viewer: NodeId) -> &Sink {
        let Member::One(Node::Sink(sink)) = self.net.node(viewer) else { unreachable!("this node is a viewer") };
        sink
    }

    fn hub(&self) -> &Hub {
        let Member::Hub(hub) = self.net.node(self.hub) else { unreachable!("this node is the hub") };
        hub
    }

    /// Most bytes that wait at the hub for one viewer.
    fn waiting(&self) -> u64 {
        let server = &self.hub().server;
        server.clients().map(|id| server.report(self.net.now(), id).buffered_bytes).max().unwrap_or_default()
    }
}

fn share(sink: &Sink) -> f64 {
    let kinds = sink.report().kinds;
    let (captured, good) = kinds.iter().fold((0, 0), |(all, good), it| (all + it.captured, good + it.on_time));
    good as f64 / captured as f64
}

/// How long after the hub the viewer put out the last byte that both have.
fn behind(scene: &Scene, viewer: NodeId) -> Duration {
    let (hub, sink) = (&scene.hub().sink, scene.seen(viewer));
    let at = |sink: &Sink, bytes: usize| {
        let mut sum = 0;
        let out = sink.outputs.iter().find(|(_, len)| {
            sum += len;
            sum >= bytes
        });
        out.unwrap().0
    };
    at(sink, 500_000).since(at(hub, 500_000))
}

/// Each has its own latency, and what one network loses or cannot carry is that viewer's alone.
#[test]
fn a_slow_viewer_slows_nobody_and_takes_bounded_memory() {
    let mut scene = Scene::new(20);
    let near = scene.view(link(), None);
    let lossy =
        scene.view(LinkModel { loss: Loss::Uniform(0.05), ..LinkModel::wire(20_000_000, ms(40)) }, Some(ms(1500)));
    let slow = scene.view(LinkModel::wire(400_000, ms(40)), None);
    let mut most = 0;
    for _ in 0..250 {
        scene.net.run_for(ms(100));
        most = most.max(scene.waiting());
    }
    assert!(most < 8 << 20, "{most} bytes wait");
    let whole = &scene.hub().sink.bytes;
    assert!(whole.len() > 2_500_000);
    assert!(scene.seen(near).bytes == *whole, "{} of {} bytes", scene.seen(near).bytes.len(), whole.len());
    assert_eq!(share(scene.seen(near)), 1.0);
    assert!(share(scene.seen(lossy)) > 0.998, "{}", share(scene.seen(lossy)));
    assert!((0.1..0.8).contains(&share(scene.seen(slow))), "{}", share(scene.seen(slow)));
    let [near, lossy] = [near, lossy].map(|viewer| behind(&scene, viewer));
    assert!((ms(490)..ms(520)).contains(&near), "{near:?}");
    assert!((ms(1480)..ms(1540)).contains(&lossy), "{lossy:?}");
}

/// The camera ends and the hub waits for the next: who is served waits too. Its numbers go on.
#[test]
fn a_viewer_outlives_the_camera_and_comes_back_without_the_others_noticing() {
    let mut scene = Scene::new(60);
    let (stays, goes) = (scene.view(link(), None), scene.view(link(), None));
    scene.net.run_for(ms(START + 3_310));
    let late = scene.view(link(), None);
    scene.net.run_for(ms(2_000));
    let first = &scene.seen(late).bytes[..188];
    let at =
        scene.hub().sink.bytes.chunks(188).position(|packet| packet == first).expect("its first packet is the hub's");
    assert!(scene.hub().sink.bytes[at * 188..].starts_with(&scene.seen(late).bytes));
    let began = scene.seen(late).outputs[0].0;
    assert!(began < Instant::from_millis(START + 3_310 + 1_800), "{began:?}");
    let again = scene.viewer(2, None);
    *scene.net.node_mut(goes) = again;
    scene.net.run_for(ms(4_000));
    assert!(scene.seen(goes).bytes.len() > 200_000, "{}", scene.seen(goes).bytes.len());
    let (now, rng) = (scene.net.now(), Rng::from_seed(77));
    let units = camera(60).into_iter().filter(|(at, _)| *at > now).collect();
    *scene.net.node_mut(scene.camera) = Member::One(source(now, &rng, &SenderOptions::default(), units, 1));
    scene.net.run_for(ms(8_000));
    for viewer in [stays, goes, late] {
        let last = scene.seen(viewer).outputs.last().unwrap().0;
        assert!(scene.net.now().since(last) < ms(200), "{last:?}");
        assert!(!scene.seen(viewer).events.iter().any(|it| matches!(it, Event::Lost(_) | Event::Restarted)));
    }
    assert!(scene.hub().sink.events.iter().any(|it| matches!(it, Event::Restarted)), "the hub had another camera");
    let (seen, whole) = (&scene.seen(stays).bytes, &scene.hub().sink.bytes);
    assert!(whole.starts_with(seen) && seen.len() + 150_000 > whole.len(), "{} of {} bytes", seen.len(), whole.len());
}
