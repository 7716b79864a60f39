//! SRTLA: a sender of our own, over two links that come and go.

use crate::common::phone::Phone;
use crate::common::{LISTENER, ms, secret};
use braidcast_core::{Datagram, Instant, Machine, Rng, Transmit};
use braidcast_gateway::srt::{Endpoint, Event, Options};
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, Network, NodeId};
use core::time::Duration;
/// Either end, for one network.
#[expect(clippy::large_enum_variant, reason = "there are a few")]
enum Node {
    Phone(Phone),
    Studio(Endpoint),
}

macro_rules! each {
    ($node:expr, $it:ident => $do:expr) => {
        match $node {
            Node::Phone($it) => $do,
            Node::Studio($it) => $do,
        }
    };
}

impl Machine for Node {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, it => it.handle_datagram(now, datagram));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        each!(self, it => it.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, it => it.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Event> {
        each!(self, it => it.poll_event())
    }
}

struct Bonded {
    net: Network<Node>,
    phone: NodeId,
    studio: NodeId,
    links: Vec<(LinkId, LinkId)>,
    sent: u64,
    got: Vec<u64>,
    _seed: Seed,
}

impl Bonded {
    fn new(models: [LinkModel; 2]) -> Self {
        Self::with(models, |phone| phone)
    }

    fn with(models: [LinkModel; 2], how: impl FnOnce(Phone) -> Phone) -> Self {
        let seed = seed_from_env(1);
        let rng = Rng::from_seed(seed.get());
        let options = Options { latency: ms(1000), passphrase: secret("correct horse"), ..Options::default() };
        let receive = Options { reordering: ms(40), ..options.clone() };
        let mut net = Network::new(seed.get());
        let to = vec![LISTENER.parse().unwrap(); 2];
        let phone = Node::Phone(how(Phone::new(Instant::ZERO, options, to, 7, rng.stream("phone"))));
        let phone = net.add(phone, ["10.0.0.1:1000", "10.0.1.1:1000"]);
        let studio = Node::Studio(Endpoint::bonded_listener(Instant::ZERO, receive, rng.stream("studio")));
        let studio = net.add(studio, [LISTENER]);
        let links =
            models.into_iter().zip(0..).map(|(model, n)| net.connect((phone, n), (studio, 0), Duplex::both(model)));
        let links = links.collect();
        Self { net, phone, studio, links, sent: 0, got: Vec::new(), _seed: seed }
    }

    /// Sends a payload each millisecond: 10.5 Mbit/s.
    fn run(&mut self, duration: Duration) {
        let end = self.net.now() + duration;
        let mut buf = Vec::new();
        while self.net.now() < end {
            self.net.run_for(ms(1));
            let mut payload = [0x47; 1316];
            payload[1..9].copy_from_slice(&self.sent.to_be_bytes());
            self.sent += 1;
            self.net.with(self.phone, |node, now| {
                let Node::Phone(phone) = node else { return };
                phone.inside.push(now, &payload);
            });
            self.net.with(self.studio, |node, now| {
                let Node::Studio(studio) = node else { return };
                while studio.deliver(now, &mut buf).is_some() {
                    self.got.push(u64::from_be_bytes(buf[1..9].try_into().unwrap()));
                }
            });
        }
    }

    fn studio(&self) -> &Endpoint {
        let Node::Studio(studio) = self.net.node(self.studio) else { panic!("the studio") };
        studio
    }

    fn phone(&self) -> &Phone {
        let Node::Phone(phone) = self.net.node(self.phone) else { panic!("the phone") };
        phone
    }

    fn cut(&mut self, link: usize, down: bool) {
        let (there, back) = self.links[link];
        self.net.set_down(there, down);
        self.net.set_down(back, down);
    }

    fn whole(&self) {
        let last = *self.got.last().unwrap();
        assert!(self.got.iter().copied().eq(self.got[0]..=last), "{} of {}", self.got.len(), last - self.got[0] + 1);
        assert!(last + 1200 > self.sent, "up to {last} of {}", self.sent);
    }
}

fn wire(mbit: u64, delay: u64) -> LinkModel {
    LinkModel::wire(mbit * 1_000_000, ms(delay))
}

#[test]
fn two_links_carry_what_one_cannot_and_their_jitter_does_not_double_the_rate() {
    // 10.5 Mbit/s over 8 and 8, one of which is slower by 50 ms.
    let mut bonded = Bonded::new([wire(8, 20), wire(8, 70)]);
    bonded.run(ms(20_000));
    bonded.whole();
    let (_, report) = bonded.studio().reports().next().unwrap();
    let links = bonded.studio().bonded(report.peer);
    assert_eq!(links.len(), 2);
    assert!(links.iter().all(|link| link.packets > 8000), "{links:?}");
    let sent = bonded.phone().inside.reports().next().unwrap().1.sent;
    assert!(sent.repeated * 20 < sent.packets, "{sent:?} {report:?}");
    assert!(bonded.phone().acknowledged > 19_000);
}

#[test]
fn what_a_far_and_lossy_link_holds_up_is_not_sent_again_without_being_asked_for() {
    // A round trip over the first link is over long before a packet over the second one has come, and one of twenty of
    // those is repeated after 130 ms only.
    let far = LinkModel { loss: Loss::Uniform(0.05), ..wire(2, 150) };
    let mut bonded = Bonded::with([wire(20, 20), far], Phone::by_windows);
    bonded.run(ms(20_000));
    bonded.whole();
    let (_, report) = bonded.studio().reports().next().unwrap();
    let links = bonded.studio().bonded(report.peer);
    assert!(links.iter().all(|link| link.packets > 500), "{links:?}");
    let sent = bonded.phone().inside.reports().next().unwrap().1.sent;
    assert!(sent.repeated * 30 < sent.packets && sent.repeated <= sent.asked, "{sent:?} {report:?}");
}

#[test]
fn losses_of_each_link_are_repaired() {
    let lossy = |delay| LinkModel { loss: Loss::Uniform(0.02), ..wire(20, delay) };
    let mut bonded = Bonded::new([lossy(30), lossy(60)]);
    bonded.run(ms(15_000));
    bonded.whole();
}

#[test]
fn a_link_that_goes_and_comes_back_is_not_missed() {
    let mut bonded = Bonded::new([wire(20, 20), wire(20, 40)]);
    bonded.run(ms(5000));
    bonded.cut(0, true);
    // The phone goes on using it for four seconds: what is lost there is asked for over the other one.
    bonded.run(ms(15_000));
    bonded.cut(0, false);
    bonded.run(ms(5000));
    let (_, report) = bonded.studio().reports().next().unwrap();
    assert_eq!(bonded.studio().bonded(report.peer).len(), 2);
    assert!(bonded.studio().reports().count() == 1, "still the same connection");
    let skipped = report.received.skipped;
    assert!(skipped < 300, "{skipped} of {}", bonded.sent);
}
