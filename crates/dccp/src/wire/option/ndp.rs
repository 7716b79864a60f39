use super::{RawOption, kind};
use braidcast_core::Writer;

/// One to six bytes (RFC 4340 §7.7).
pub(super) fn parse(value: &[u8]) -> Option<u64> {
    (1..=6).contains(&value.len()).then(|| value.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
}

/// Appends an NDP Count in the smallest form that holds `count`, which counts as 48 bits.
pub fn emit_ndp_count(count: u64, w: &mut Writer<'_>) {
    let bytes = count.min((1 << 48) - 1).to_be_bytes();
    let first = bytes.iter().position(|&byte| byte != 0).unwrap_or(7);
    RawOption { kind: kind::NDP_COUNT, value: &bytes[first..] }.emit(w);
}
