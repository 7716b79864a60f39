use super::*;
use crate::ccid::Sender as _;
use crate::wire::{Kind, Options};

/// A sender, its clock and the next number.
struct Bench {
    sender: Sender,
    now: Instant,
    next: u64,
}

fn bench() -> Bench {
    let setup = Setup {
        now: Instant::ZERO,
        packet_size: 1400,
        rtt: Some(Duration::from_millis(100)),
        short_seqnos: false,
        cc: None,
        tfrc: crate::api::TfrcOptions::default(),
    };
    Bench { sender: Sender::new(&setup, Algorithm::Reno), now: Instant::from_millis(1), next: 1 }
}

impl Bench {
    fn cwnd(&self) -> (u32, u32) {
        (self.sender.window.cwnd(), self.sender.pipe)
    }

    /// Begins with a window of `packets`.
    fn begin_with(&mut self, packets: u32) {
        self.sender.window = Window::new(Algorithm::Reno, 1400, packets);
    }

    /// Sends data until the window is full; the numbers.
    fn fill(&mut self) -> core::ops::Range<u64> {
        let first = self.next;
        while self.sender.permit(self.now, 1400) == Permit::Now {
            self.send(true);
        }
        first..self.next
    }

    fn send(&mut self, is_data: bool) {
        let seq = Seq::new(self.next);
        self.sender
            .on_sent(self.now, &Sent { seq, is_data, payload: 1400, nonce: false, is_ack: !is_data, is_key: false });
        self.next += 1;
    }

    /// Feedback 100 ms later: acknowledgement number and the option bytes.
    fn ack(&mut self, ack: u64, options: &[u8]) {
        self.now += Duration::from_millis(100);
        let options = Options::new(options, Kind::Ack { ack });
        self.sender
            .on_feedback(self.now, &Feedback { ack: Seq::new(ack), options, has_vectors: true, has_dropped: true });
    }
}

#[test]
fn slow_start_grows_by_half_of_what_is_acknowledged() {
    let mut b = bench();
    assert_eq!(b.fill(), 1..4, "RFC 3390: three packets of 1400 bytes");
    b.ack(2, &[38, 3, 1]);
    assert_eq!(b.cwnd(), (4, 1));
    b.fill();
    b.ack(4, &[38, 3, 1]);
    b.fill();
    b.ack(6, &[38, 3, 1]);
    assert_eq!(b.sender.window.cwnd(), 6);
}

/// As a busy machine reads them.
#[test]
fn acknowledgements_that_come_at_once_all_count() {
    let mut b = bench();
    b.begin_with(10);
    b.fill();
    for n in 1..=5 {
        b.ack(2 * n, &[38, 3, 1]);
    }
    assert_eq!(b.cwnd(), (15, 0));
}

#[test]
fn three_later_packets_make_a_loss_and_halve_the_window_once() {
    let mut b = bench();
    b.begin_with(10);
    b.fill();
    // 1 and 3 are missing, of 1 to 5; three later ones have come for 1 only.
    b.ack(5, &[38, 6, 1, 192, 0, 192]);
    assert_eq!((b.cwnd(), b.sender.counts.lost), ((5, 6), 1));
    // Now 3 is lost as well: sent before the first loss was noticed, so the same event.
    b.ack(6, &[38, 6, 2, 192, 0, 192]);
    assert_eq!((b.cwnd(), b.sender.counts.lost), ((5, 4), 2));
    // The same told again changes nothing, nor does one that comes late.
    b.ack(6, &[38, 6, 2, 192, 0, 192]);
    b.ack(6, &[38, 4, 2, 2]);
    assert_eq!(b.cwnd(), (5, 4));
    let new = b.fill().end - 1;
    b.ack(new, &[38, 3, 64 | 1]);
    assert_eq!(b.sender.window.cwnd(), 2, "a mark on a later packet is an event of its own");
    assert_eq!(b.sender.counts.loss_events, 2);
}

#[test]
fn packets_without_data_are_no_part_of_the_pipe_but_show_losses() {
    let mut b = bench();
    b.send(true);
    (0..3).for_each(|_| b.send(false));
    assert_eq!(b.sender.pipe, 1);
    b.ack(4, &[38, 4, 2, 192]);
    assert_eq!((b.sender.pipe, b.sender.counts.lost), (0, 1));
    assert_eq!(b.sender.timer(), None);
}

#[test]
fn silence_sets_the_window_to_one_and_backs_off() {
    let mut b = bench();
    b.begin_with(8);
    b.fill();
    let first = b.sender.timer().unwrap();
    b.now = first;
    b.sender.on_timer(first);
    assert_eq!((b.cwnd(), b.sender.window.ssthresh()), ((1, 0), 4));
    assert_eq!(b.sender.ack_ratio(), Some(1), "or the one packet that is let out may get no answer");
    b.fill();
    let second = b.sender.timer().unwrap();
    let rto = |from: Instant, to: Instant| (to - from).as_millis() - 200;
    assert_eq!(rto(first, second), 2 * rto(Instant::from_millis(1), first));
    assert_eq!(b.sender.counts.lost, 8);
    assert_eq!((b.sender.counts.loss_events, b.sender.counts.timeouts), (1, 1));
}

#[test]
fn an_application_that_does_not_fill_the_window_does_not_make_it_grow() {
    let mut b = bench();
    for n in 1..50 {
        assert_eq!(b.sender.permit(b.now, 1400), Permit::Now);
        b.send(true);
        b.ack(n, &[38, 3, 0]);
    }
    assert_eq!(b.sender.window.cwnd(), 3);
}

#[test]
fn drops_at_the_receiver_are_answered_as_rfc_4341_5_2_says() {
    let after = |code: u8| {
        let mut b = bench();
        b.begin_with(10);
        b.fill();
        b.ack(2, &[38, 3, 1, 40, 3, 0x80 | code << 4 | 1]);
        (b.sender.window.cwnd(), b.sender.window.ssthresh())
    };
    assert_eq!(after(0), (11, u32::MAX), "protocol constraints are no congestion");
    assert_eq!(after(2), (8, 8), "one packet less for each, and no more slow start");
    assert_eq!(after(3), (5, 5), "corrupt: as if marked");
    let mut b = bench();
    b.sender.on_slow_receiver(b.now);
    b.fill();
    b.now = Instant::ZERO;
    b.ack(2, &[38, 3, 1]);
    assert_eq!((b.sender.window.cwnd(), b.sender.window.ssthresh()), (3, 3));
}

#[test]
fn a_wrong_nonce_echo_counts_as_a_mark() {
    let mut b = bench();
    b.begin_with(10);
    b.fill();
    b.ack(2, &[39, 3, 1]);
    assert_eq!((b.sender.window.cwnd(), b.sender.counts.nonce_mismatches), (5, 1));
}

#[test]
fn an_idle_period_ends_in_slow_start() {
    let mut b = bench();
    b.begin_with(40);
    b.fill();
    b.ack(40, &[38, 3, 39]);
    assert_eq!(b.sender.pipe, 0);
    b.now += Duration::from_secs(2);
    assert_eq!(b.fill().count(), 3);
}
