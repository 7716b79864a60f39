//! CCID 3, TCP-friendly rate control (RFC 4342). CCID 4 is made of the same halves with other settings.

mod intervals;
mod receiver;
mod report;
mod sender;
mod sent_log;

use braidcast_cc::tfrc::{Config, FeedbackRate, Variant};

pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

use crate::api::TfrcOptions;
use crate::ccid::Setup;

/// What makes a CCID of the TFRC kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Profile {
    /// How sizes and round trips go into the rate.
    pub(super) variant: Variant,
    /// Bytes of headers that the rate of small packets is corrected for.
    pub(super) header_size: usize,
    /// Its receivers say how many packets each loss interval has lost (RFC 5622 §8.7).
    pub(super) dropped_packets: bool,
}

/// CCID 3's. It has no use for the header size.
pub(super) const PROFILE: Profile = Profile { variant: Variant::Tfrc, header_size: 36, dropped_packets: false };

impl Profile {
    /// How often its receivers report.
    fn feedback(&self, options: &TfrcOptions) -> FeedbackRate {
        options.feedback.unwrap_or(self.variant.feedback())
    }

    fn config(&self, setup: &Setup) -> Config {
        let options = &setup.tfrc;
        Config {
            variant: self.variant,
            rules: options.rules,
            feedback: Some(self.feedback(options)),
            faster_restart: options.faster_restart,
            reduce_oscillations: options.reduce_oscillations,
            segment_size: setup.packet_size,
            header_size: self.header_size,
            granularity: options.granularity,
            nominal_rtt: options.nominal_rtt,
            ..Config::default()
        }
    }
}
