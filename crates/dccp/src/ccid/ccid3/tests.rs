use super::*;
use crate::api::TfrcOptions;
use crate::ccid::Sender as _;
use crate::ccid::ccid3::PROFILE;
use crate::wire::option::{DataDropped, DropRun, to_units};
use crate::wire::{Kind, Options};
use braidcast_core::Writer;

const RTT: Duration = Duration::from_millis(100);

/// A sender of 1000-byte packets, its clock and the next number.
struct Bench {
    sender: Sender,
    now: Instant,
    next: u64,
}

impl Bench {
    fn new() -> Self {
        let setup = Setup {
            now: Instant::from_millis(1),
            packet_size: 1000,
            rtt: Some(RTT),
            short_seqnos: false,
            cc: None,
            tfrc: TfrcOptions { rules: braidcast_cc::tfrc::Rules::Rfc3448, ..TfrcOptions::default() },
        };
        Self { sender: Sender::new(&setup, PROFILE), now: setup.now, next: 1 }
    }

    fn send(&mut self) {
        let seq = Seq::new(self.next);
        self.sender.ccval(self.now);
        self.sender
            .on_sent(self.now, &Sent { seq, is_data: true, payload: 1000, nonce: false, is_ack: false, is_key: false });
        self.next += 1;
    }

    /// Sends a packet and takes the answer to it a round trip and 30 ms later, with these options
    /// and a loss event rate.
    fn round(&mut self, recv_rate: u32, inverse: u32, more: impl FnOnce(&mut Writer<'_>)) {
        self.send();
        self.now += RTT + Duration::from_millis(30);
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        crate::wire::option::emit_elapsed(to_units(Duration::from_millis(30)), &mut w);
        Ccid3Option::ReceiveRate(recv_rate).emit(&mut w);
        Ccid3Option::LossEventRate(inverse).emit(&mut w);
        more(&mut w);
        self.feed(&bytes);
    }

    fn feed(&mut self, options: &[u8]) {
        let ack = self.next - 1;
        let options = Options::new(options, Kind::Ack { ack });
        self.sender
            .on_feedback(self.now, &Feedback { ack: Seq::new(ack), options, has_vectors: true, has_dropped: true });
    }

    fn rate(&self) -> f64 {
        self.sender.tfrc.allowed_rate()
    }
}

#[test]
fn the_round_trip_is_without_elapsed_time_and_the_rate_twice_what_arrives() {
    let mut b = Bench::new();
    b.round(40_000, 1_000_000, |_| {});
    assert_eq!((b.sender.srtt(), b.rate()), (Some(RTT), 80_000.0));
}

#[test]
fn an_acknowledgement_without_receive_rate_is_no_feedback() {
    let mut b = Bench::new();
    b.round(40_000, 1_000_000, |_| {});
    let before = b.sender.timer();
    b.send();
    b.now += RTT;
    b.feed(&[192, 6, 0, 0, 0, 2]);
    assert_eq!((b.sender.timer(), b.rate()), (before, 80_000.0));
}

/// RFC 4342 §5.2: at most what arrives now.
#[test]
fn a_slow_receiver_holds_the_rate() {
    let mut b = Bench::new();
    b.sender.on_slow_receiver(b.now);
    b.round(40_000, 1_000_000, |_| {});
    assert_eq!(b.rate(), 40_000.0);
    b.round(40_000, 1_000_000, |_| {});
    assert_eq!(b.rate(), 80_000.0, "only as long as it says so");
}

/// RFC 4342 §5.2: three packets a round trip less, and each packet counts once.
#[test]
fn full_receive_buffers_take_a_packet_per_round_trip_off_each() {
    let mut b = Bench::new();
    (0..3).for_each(|_| b.send());
    let run = DropRun { code: Some(DropCode::ReceiveBuffer), len: 3 }.byte();
    b.round(50_000, 1_000_000, |w| DataDropped::new(&[run]).emit(w));
    assert!((b.rate() - 20_000.0).abs() < 1.0, "{}", b.rate());
    assert!(b.sender.wants_ack_of_ack(), "the peer keeps them until then (§6.3)");
    // The same three again, one packet later.
    b.round(50_000, 1_000_000, |w| DataDropped::new(&[0, run]).emit(w));
    assert_eq!(b.rate(), 100_000.0);
}

#[test]
fn the_peers_sequence_window_holds_data_back_until_an_answer_or_a_timeout() {
    let mut b = Bench::new();
    b.sender.limit(3);
    (0..3).for_each(|_| b.send());
    b.now += Duration::from_secs(1);
    assert_eq!(b.sender.permit(b.now, 1000), Permit::Wait);
    b.now = b.sender.timer().unwrap().max(b.now);
    b.sender.on_timer(b.now);
    assert_eq!((b.sender.permit(b.now, 1000), b.sender.counts.timeouts), (Permit::Now, 1));
}

/// Linux's and our own receivers give the rate; others let us compute it: intervals of 100, 50 and 60 packets.
#[test]
fn loss_intervals_alone_give_the_loss_event_rate() {
    let mut b = Bench::new();
    b.send();
    b.now += RTT;
    let mut bytes = Vec::new();
    Ccid3Option::ReceiveRate(50_000).emit(&mut Writer::new(&mut bytes));
    bytes.extend([193, 30, 0, 0, 0, 90, 0, 0, 10, 0, 0, 100, 0, 0, 49, 0, 0, 1, 0, 0, 50, 0, 0, 60, 0, 0, 0, 0, 0, 60]);
    b.feed(&bytes);
    let p = b.sender.tfrc.loss_event_rate();
    assert!(
        (p - 2.0 / 150.0).abs() < 1e-9,
        "{p}: the current interval, as long as it is, counts in place of the oldest"
    );
    assert_eq!(b.sender.counts.loss_events, 1);
}

/// SBPN's kernel alone; whatever the receiver says.
#[test]
fn the_loss_event_rate_is_divided_as_an_experiment_says() {
    let rate = |loss_event_divisor: f64| {
        let mut b = Bench::new();
        b.sender.loss_event_divisor = loss_event_divisor;
        b.round(1_000_000, 50, |_| {});
        b.sender.tfrc.loss_event_rate()
    };
    assert_eq!([1.0, 4.0].map(rate), [1.0 / 50.0, 1.0 / 200.0]);
}
