//! Datagram agents, and what their meters say about links whose behaviour is known.

use super::{A, B, ms, secs, to};
use braidcast_core::{Instant, Rng};
use braidcast_sim::link::{Loss, QueueLimit, Reorder, ReorderHow};
use braidcast_sim::tcp::{Config, Host};
use braidcast_sim::traffic::{Agent, DatagramSender, DatagramSink, FlowMeter, Greedy, Kind, StreamId, Traffic};
use braidcast_sim::{Duplex, LinkId, LinkModel, LinkStats, Network};
use core::time::Duration;

fn traffic(words: &str) -> Traffic {
    words.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A sender and a sink with a link between them.
struct Call {
    net: Network<Agent>,
    there: LinkId,
    meter: FlowMeter,
    sent: u64,
}

impl Call {
    /// Sends what `words` describe for `seconds` and keeps what the sink measured of flow 0 and `kind`.
    fn run(words: &str, kind: Kind, model: LinkModel, meter: FlowMeter, seconds: u64) -> Self {
        let mut sender = DatagramSender::default();
        let added = sender.add(to(B), 0, &traffic(words), Rng::from_seed(1), Instant::ZERO);
        assert_eq!(added, Ok(()));
        let mut net = Network::new(7);
        let a = net.add(Agent::Sender(sender), [A]);
        let b = net.add(Agent::Sink(Box::new(DatagramSink::with_meter(meter))), [B]);
        let (there, _) = net.connect((a, 0), (b, 0), Duplex::new(model, LinkModel::default()));
        net.run_until(secs(seconds));
        let id = StreamId { remote: to(A).remote, flow: 0, kind };
        let meter = net.node(b).as_sink().and_then(|sink| sink.meters().get(&id)).cloned();
        let Some(meter) = meter else { panic!("nothing of {kind} arrived") };
        let sent = net.node(a).as_sender().map_or(0, |sender| sender.sent(0, kind));
        Self { net, there, meter, sent }
    }

    fn stats(&self) -> LinkStats {
        self.net.link(self.there).stats()
    }
}

#[test]
fn a_call_over_a_clean_link_has_the_delay_of_the_link_and_no_jitter() {
    let call = Call::run("g711", Kind::Audio, LinkModel::wire(256_000, ms(40)), FlowMeter::default(), 100);
    // 160 bytes of speech and 20 of IP at 256 kbit/s take 5.625 ms.
    let delay = Some(Duration::from_micros(45_625));
    assert_eq!((call.meter.delay_min(), call.meter.delay_mean(), call.meter.delay_max()), (delay, delay, delay));
    assert_eq!((call.meter.jitter(), call.meter.jitter_max()), (Duration::ZERO, Duration::ZERO));
    assert_eq!(call.meter.series().rate(secs(10), secs(90)), 64_000.0);
    assert_eq!(call.meter.losses(None).lost(), 0);
}

#[test]
fn losses_are_counted_and_their_runs_too() {
    let loss = Loss::bursts(0.05, 4.0).unwrap_or_default();
    let model = LinkModel { loss, ..LinkModel::wire(256_000, ms(40)) };
    let call = Call::run("g729", Kind::Audio, model, FlowMeter::default(), 2000);
    let losses = call.meter.losses(Some(call.sent));
    let inside = call.net.link(call.there).inside() as u64;
    assert_eq!(losses.lost(), call.stats().dropped_loss + inside);
    assert_eq!(call.meter.received() + losses.lost(), call.sent);
    assert!((losses.mean_run() - 4.0).abs() < 0.4, "{}", losses.mean_run());
    let share = losses.lost() as f64 / call.sent as f64;
    assert!((share - 0.05).abs() < 0.01, "{share}");
}

#[test]
fn copies_late_and_damaged_packets_are_told_apart() {
    let reorder = Reorder { share: 0.05, how: ReorderHow::Late(ms(50)) };
    let model = LinkModel { duplicate: 0.1, corrupt: 0.02, reorder, ..LinkModel::wire(1_000_000, ms(40)) };
    let meter = FlowMeter::default().with_deadline(ms(60));
    let call = Call::run("cbr:64kbit,160B", Kind::Data, model, meter, 200);
    let stats = call.stats();
    let malformed = stats.corrupted;
    assert!(stats.duplicated > 800 && malformed > 150);
    assert_eq!(call.meter.received() + call.meter.duplicates() + malformed, stats.delivered);
    let late = call.meter.received() - call.meter.on_time();
    assert!((300..700).contains(&late), "5 % of 10,000 come 50 ms later: {late}");
    // Two or three packets overtake each of those.
    assert!(call.meter.reordered() > late * 8 / 10 && call.meter.reordered() <= late + stats.duplicated);
    assert!(call.meter.delays().quantile(0.5).is_some_and(|median| median < ms(45)));
    assert!(call.meter.delays().quantile(0.99).is_some_and(|high| high > ms(85)));
}

#[test]
fn frames_larger_than_a_datagram_are_cut_and_all_bytes_arrive() {
    let call = Call::run("prcmt", Kind::I, LinkModel::wire(100_000_000, ms(10)), FlowMeter::default(), 40);
    // 29 frames of 9968 bytes: six full datagrams and one more each.
    assert_eq!((call.meter.received(), call.meter.bytes()), (29 * 7, 29 * 9968));
    assert_eq!(call.meter.losses(Some(call.sent)).lost(), 0);
}

#[test]
fn audio_and_video_of_a_conference_are_measured_apart() {
    let model = LinkModel::wire(2_000_000, ms(15));
    let meter = FlowMeter::default().counting_from(secs(3));
    let call = Call::run("conference", Kind::Audio, model.clone(), meter.clone(), 70);
    assert_eq!((call.meter.received(), call.meter.bytes()), (57 * 50, 57 * 50 * 214), "the first 3 s are left out");
    let call = Call::run("conference", Kind::Video, model, meter, 70);
    assert!(call.meter.received() > 57 * 35 && call.meter.losses(None).lost() == 0);
}

#[test]
fn bulk_traffic_needs_a_transport() {
    let mut sender = DatagramSender::default();
    assert_eq!(sender.add(to(B), 0, &Traffic::Bulk(None), Rng::from_seed(1), Instant::ZERO), Err(Greedy));
    assert!(Greedy.to_string().contains("cbr:"));
}

#[test]
fn tcp_takes_what_datagrams_leave_of_a_bottleneck() {
    let mut net = Network::new(1);
    let (c, d) = ("10.0.0.3:0", "10.0.0.4:0");
    let mut sender = DatagramSender::default();
    assert_eq!(sender.add(to(B), 0, &traffic("cbr:1mbit,1000B"), Rng::from_seed(1), Instant::ZERO), Ok(()));
    let mut host = Host::new(Config::default());
    let flow = host.connect(to(d), &Traffic::Bulk(None), Rng::from_seed(1), Instant::ZERO);
    assert!(flow.is_some());
    let nodes = [
        net.add(Agent::Sender(sender), [A]),
        net.add(Agent::Sink(Box::default()), [B]),
        net.add(Agent::Tcp(host), [c]),
        net.add(Agent::Tcp(Host::new(Config::default())), [d]),
    ];
    let queue = QueueLimit::Packets(30);
    let shared = net.add_link(LinkModel { queue: queue.into(), ..LinkModel::wire(2_000_000, ms(25)) });
    let back = net.add_link(LinkModel::wire(2_000_000, ms(25)));
    net.route((nodes[0], 0), to(B).remote, &[shared], (nodes[1], 0), to(A).remote);
    net.route((nodes[2], 0), to(d).remote, &[shared], (nodes[3], 0), to(c).remote);
    net.route((nodes[3], 0), to(c).remote, &[back], (nodes[2], 0), to(d).remote);
    net.run_until(secs(120));
    let datagrams: f64 = net
        .node(nodes[1])
        .as_sink()
        .map_or(0.0, |sink| sink.meters().values().map(|meter| meter.series().rate(secs(20), secs(120))).sum());
    let tcp = net.node(nodes[3]).as_tcp().and_then(|host| host.receivers().next());
    let tcp = tcp.map_or(0.0, |(_, receiver)| receiver.delivered().rate(secs(20), secs(120)));
    println!("datagrams {datagrams:.0} bit/s, TCP {tcp:.0} bit/s");
    assert!(datagrams > 0.97e6, "{datagrams}");
    // 2 Mbit/s less 1.02 of datagrams with headers leave 0.95 of payload.
    assert!((0.8e6..0.98e6).contains(&tcp), "{tcp}");
}
