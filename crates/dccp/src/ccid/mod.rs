//! Congestion control: what a half-connection may send, and what its receiver reports (RFC 4340 §10).
//!
//! A CCID is a folder with two halves: [`Sender`] at the end whose data it controls, [`Receiver`] at the other.

mod ccid2;
mod ccid3;
mod ccid4;

use crate::api::{TfrcOptions, Wanted};
use crate::seq::Seq;
use crate::wire::{Options, RawOption};
use braidcast_cc::Algorithm;
use braidcast_core::{Ecn, Instant, Writer, named};
use core::fmt;
use core::time::Duration;

/// A congestion control identifier that can be asked for (RFC 4340 §10 table 5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Ccid {
    /// TCP-like (RFC 4341).
    #[default]
    Two,
    /// TCP-friendly rate control (RFC 4342).
    Three,
    /// The same for small packets (RFC 5622), and its variants ([`TfrcOptions::ccid4`]).
    Four,
    /// CUBIC (RFC 9438) on the machinery of CCID 2, for long fat paths, which that does not fill
    /// (SBPN §8.4.3). What RFC 4341 says of Ack Vectors, Ack Ratio, ECN, idleness and Data Dropped
    /// holds for it too. An experiment, known to this implementation only.
    Cubic,
}

impl Ccid {
    /// The number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Two => 2,
            Self::Three => 3,
            Self::Four => 4,
            // 248 to 254 are for experiments (RFC 4340 §19.5).
            Self::Cubic => 248,
        }
    }

    /// The CCID of this number, if it is one of ours.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().map(|&(_, it)| it).find(|it| it.number() == number)
    }

    /// Returns `true` if its receiver must send Ack Vectors.
    pub(crate) const fn needs_ack_vector(self) -> bool {
        matches!(self, Self::Two | Self::Cubic)
    }

    /// Returns `true` if it is of the TFRC kind: its receiver reports a loss event rate, and always Elapsed Time.
    pub(crate) const fn is_tfrc(self) -> bool {
        matches!(self, Self::Three | Self::Four)
    }

    fn profile(self, setup: &Setup) -> ccid3::Profile {
        if self == Self::Four { ccid4::profile(setup.tfrc.ccid4, setup.short_seqnos) } else { ccid3::PROFILE }
    }

    pub(crate) fn sender(self, setup: &Setup) -> Box<dyn Sender> {
        match self {
            Self::Two => Box::new(ccid2::Sender::new(setup, setup.cc.unwrap_or(Algorithm::Reno))),
            Self::Cubic => Box::new(ccid2::Sender::new(setup, setup.cc.unwrap_or(Algorithm::Cubic))),
            Self::Three | Self::Four => Box::new(ccid3::Sender::new(setup, self.profile(setup))),
        }
    }

    pub(crate) fn receiver(self, setup: &Setup) -> Box<dyn Receiver> {
        match self {
            Self::Two | Self::Cubic => Box::new(ccid2::Receiver::default()),
            Self::Three | Self::Four => Box::new(ccid3::Receiver::new(setup, self.profile(setup))),
        }
    }
}

named! {
    /// Every CCID, by the name that command line and scenarios use.
    Ccid, "congestion control" {
        "ccid2" => Two,
        "ccid3" => Three,
        "ccid4" => Four,
        "ccid-cubic" => Cubic,
    }
}

/// What a half starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The time.
    pub(crate) now: Instant,
    /// Bytes of a full packet.
    pub(crate) packet_size: usize,
    /// Round-trip time of the handshake, if it was measured.
    pub(crate) rtt: Option<Duration>,
    /// `true` if data has short numbers, and so smaller headers.
    pub(crate) short_seqnos: bool,
    /// The controller of a window, in place of the CCID's own.
    pub(crate) cc: Option<Algorithm>,
    /// For CCID 3 and 4.
    pub(crate) tfrc: TfrcOptions,
}

/// `true` if a data packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Permit {
    /// At once.
    Now,
    /// Not before this time.
    At(Instant),
    /// After feedback, or when [`Sender::timer`] has run out.
    Wait,
}

/// A packet that left, of any type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Its number.
    pub(crate) seq: Seq,
    /// `true` if congestion control counts it: it carries data.
    pub(crate) is_data: bool,
    /// Bytes of application data.
    pub(crate) payload: usize,
    /// It was marked ECT(1), the nonce.
    pub(crate) nonce: bool,
    /// It carried an acknowledgement number.
    pub(crate) is_ack: bool,
    /// It carries key messages, which may leave before their time.
    pub(crate) is_key: bool,
}

/// A packet with an acknowledgement number that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback<'a> {
    /// Greatest of our numbers that had come.
    pub(crate) ack: Seq,
    /// All options; Ack Vectors, Elapsed Time and what belongs to the CCID are in here.
    pub(crate) options: Options<'a>,
    /// `true` if Ack Vectors, and whether Data Dropped, are among them.
    pub(crate) has_vectors: bool,
    pub(crate) has_dropped: bool,
}

/// Any packet from the peer, as congestion control of acknowledgements sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Its number.
    pub(crate) seq: Seq,
    /// `true` if it is of a type that carries data.
    pub(crate) is_data: bool,
    /// Bytes of application data.
    pub(crate) payload: usize,
    /// The four bits for the CCID.
    pub(crate) ccval: u8,
    /// How its IP header was marked.
    pub(crate) ecn: Ecn,
    /// Packets without data just before it, where the peer says so.
    pub(crate) ndp_count: Option<u64>,
    /// Round-trip time as far as this end knows it, for receivers that need one (RFC 4340 §3.4: 0.2 s if not).
    pub(crate) rtt: Option<Duration>,
}

/// How congestion control is doing. What a CCID does not have is `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct CcidReport {
    /// Data rate that is allowed now, bytes per second.
    pub allowed_rate: Option<f64>,
    /// What TCP would get at this loss event rate, bytes per second; none before the first loss.
    pub fair_rate: Option<f64>,
    /// Rate at which data arrived, as the receiver told last, bytes per second.
    pub recv_rate: Option<f64>,
    /// Mean bytes of data in a packet.
    pub segment_size: Option<f64>,
    /// The rate is lower than the application can use ([`Wanted::min`]).
    pub below_minimum: bool,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Timeout after which silence counts as loss.
    pub rto: Option<Duration>,
    /// Congestion window, packets.
    pub cwnd: Option<u32>,
    /// Slow start threshold, packets; `u32::MAX` before the first loss.
    pub ssthresh: Option<u32>,
    /// Data packets in the network.
    pub pipe: Option<u32>,
    /// Loss event rate, 0 to 1.
    pub loss_event_rate: Option<f64>,
    /// Data packets that each acknowledgement should cover (Ack Ratio).
    pub ack_ratio: Option<u16>,
    /// Data packets acknowledged; for CCID 3 and 4, packets of any kind up to the newest acknowledged.
    pub acked: u64,
    /// Data packets taken for lost.
    pub lost: u64,
    /// Data packets reported as marked by ECN.
    pub marked: u64,
    /// Loss events that were reported; for CCID 2, times that the window was cut, timeouts among them.
    pub loss_events: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Ack Vectors whose nonce echo was wrong.
    pub nonce_mismatches: u64,
}

/// The half of a CCID at the data sender (HC-Sender).
pub(crate) trait Sender: fmt::Debug + Send {
    /// May a data packet of `payload` bytes leave at `now`?
    fn permit(&mut self, now: Instant, payload: usize) -> Permit;

    /// CCVal of the data packet that leaves now.
    fn ccval(&mut self, _now: Instant) -> u8 {
        0
    }

    /// The round-trip time of the handshake, before anything else measured it.
    fn on_handshake_rtt(&mut self, now: Instant, rtt: Duration);

    /// A packet left, with data or without.
    fn on_sent(&mut self, now: Instant, sent: &Sent);

    /// A message that might have left was discarded instead.
    fn on_discarded(&mut self, _now: Instant) {}

    /// An acknowledgement came.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback<'_>);

    /// Any packet of the peer came; those of acknowledgement traffic that are missing or marked
    /// tell of congestion there.
    fn on_arrival(&mut self, _now: Instant, _arrival: &Arrival) {}

    /// The receiver says that it is slow (RFC 4340 §11.6).
    fn on_slow_receiver(&mut self, now: Instant);

    /// When [`on_timer`](Self::on_timer) is due.
    fn timer(&self) -> Option<Instant>;

    /// The timer ran out.
    fn on_timer(&mut self, now: Instant);

    /// We did not run until `now`: what was answered meanwhile waits to be read. Timers begin anew,
    /// and no round trip is measured through it.
    fn on_late_wake(&mut self, now: Instant);

    /// Returns `true` if the next data packet should carry an acknowledgement, so that the receiver
    /// may forget (RFC 4340 §11.1).
    fn wants_ack_of_ack(&self) -> bool {
        false
    }

    /// The Ack Ratio that our data should have, if this CCID uses one (RFC 4340 §11.3).
    fn ack_ratio(&self) -> Option<u16> {
        None
    }

    /// Sequence numbers that a round trip may take, for the Sequence Window; 0 for no opinion.
    fn packets_per_rtt(&self, _now: Instant) -> u64 {
        0
    }

    /// Limits the packets in flight, whatever congestion control would allow: the peer's sequence window.
    fn limit(&mut self, packets: u64);

    /// What the application wants from the rate.
    fn set_wanted(&mut self, _wanted: Wanted) {}

    /// Returns `true` if a CCID-specific option from the data receiver, or a feature of it, is one that is obeyed.
    fn understands(&self, _option: RawOption<'_>) -> bool {
        false
    }

    /// Losses and timeouts so far.
    fn losses(&self) -> u64;

    /// Bytes of data in a second that may leave, where there is a rate.
    fn allowed_rate(&self) -> Option<f64> {
        None
    }

    /// Bytes that each packet counts for, whatever its own, where there is a rate.
    fn packet_size(&self) -> Option<f64> {
        None
    }

    /// Smoothed round-trip time, once measured.
    fn srtt(&self) -> Option<Duration>;

    /// Returns `true` if an acknowledgement told of a round trip since the last call.
    fn take_measured(&mut self) -> bool;

    /// How it goes.
    fn report(&self, now: Instant) -> CcidReport;
}

/// The half of a CCID at the data receiver (HC-Receiver).
pub(crate) trait Receiver: fmt::Debug + Send {
    /// A packet came, with data or without.
    fn on_arrival(&mut self, now: Instant, arrival: &Arrival);

    /// When an acknowledgement is due; a time that is past means at once.
    fn ack_due(&self) -> Option<Instant>;

    /// When [`on_timer`](Self::on_timer) is due.
    fn timer(&self) -> Option<Instant> {
        None
    }

    /// The timer ran out, or another one did: it may make an acknowledgement due.
    fn on_timer(&mut self, _now: Instant) {}

    /// An acknowledgement left, alone or with data.
    fn on_ack_sent(&mut self, now: Instant);

    /// Bytes that [`emit_options`](Self::emit_options) may take now.
    fn options_len(&self) -> usize {
        0
    }

    /// Appends what this CCID puts on its acknowledgements, besides Ack Vectors and Elapsed Time.
    fn emit_options(&mut self, _now: Instant, _w: &mut Writer<'_>) {}

    /// Bytes of data per second that arrive, as reported last.
    fn recv_rate(&self) -> Option<f64> {
        None
    }

    /// The data sender's Ack Ratio.
    fn set_ack_ratio(&mut self, _ratio: u16) {}

    /// Returns `true` if a CCID-specific option from the data sender is one that is obeyed.
    fn understands(&self, _option: RawOption<'_>) -> bool {
        false
    }
}
