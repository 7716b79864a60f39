//! CCID 4, TFRC for small packets (RFC 5622), and its variants for long paths (THESIS §4.5): CCID 3 with the rate of
//! TFRC-SP, and with the Dropped Packets option.

mod short;

use super::ccid3::Profile;
use braidcast_cc::tfrc::Variant;

pub(super) use short::ShortIntervals;

/// CCID 4 in this variant; one that is none for small packets means plain TFRC-SP.
pub(super) fn profile(variant: Variant, short_seqnos: bool) -> Profile {
    let variant = if variant.small_packets() { variant } else { Variant::TfrcSp };
    // RFC 5622 §5: IPv4 and DCCP-Data headers.
    let header_size = if short_seqnos { 32 } else { 36 };
    Profile { variant, header_size, dropped_packets: true }
}
