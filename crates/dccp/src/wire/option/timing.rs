use super::{RawOption, kind};
use braidcast_core::{Instant, Writer};
use core::time::Duration;

/// `elapsed` in units of 10 µs; what does not fit is the largest number (RFC 4340 §13.2).
pub fn to_units(elapsed: Duration) -> u32 {
    u32::try_from(elapsed.as_micros() / 10).unwrap_or(u32::MAX)
}

/// The time that `units` of 10 µs are.
pub const fn from_units(units: u32) -> Duration {
    Duration::from_micros(units as u64 * 10)
}

/// The timestamp of a moment, which wraps after 11.9 hours (RFC 4340 §13.1).
const fn stamp(now: Instant) -> u32 {
    (now.as_micros() / 10) as u32
}

/// Appends a Timestamp.
pub fn emit_timestamp(now: Instant, w: &mut Writer<'_>) {
    RawOption { kind: kind::TIMESTAMP, value: &stamp(now).to_be_bytes() }.emit(w);
}

/// Appends a Timestamp Echo in the smallest form (RFC 4340 §13.3).
pub fn emit_timestamp_echo(echo: u32, elapsed: u32, w: &mut Writer<'_>) {
    let both = u64::from(echo) << 32 | u64::from(elapsed);
    let bytes = both.to_be_bytes();
    let [a, b, c, d, e, f, g, h] = bytes;
    match elapsed {
        0 => RawOption { kind: kind::TIMESTAMP_ECHO, value: &bytes[..4] }.emit(w),
        1..=0xffff => RawOption { kind: kind::TIMESTAMP_ECHO, value: &[a, b, c, d, g, h] }.emit(w),
        _ => RawOption { kind: kind::TIMESTAMP_ECHO, value: &[a, b, c, d, e, f, g, h] }.emit(w),
    }
}

/// Appends an Elapsed Time in the smallest form (RFC 4340 §13.2).
pub fn emit_elapsed(elapsed: u32, w: &mut Writer<'_>) {
    let bytes = elapsed.to_be_bytes();
    let value = if elapsed <= 0xffff { &bytes[2..] } else { &bytes[..] };
    RawOption { kind: kind::ELAPSED_TIME, value }.emit(w);
}

pub(super) fn parse_timestamp(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.try_into().ok()?))
}

pub(super) fn parse_elapsed(value: &[u8]) -> Option<u32> {
    match *value {
        [a, b] => Some(u32::from(u16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

pub(super) fn parse_echo(value: &[u8]) -> Option<(u32, u32)> {
    let (echo, elapsed) = value.split_first_chunk::<4>()?;
    let elapsed = if elapsed.is_empty() { 0 } else { parse_elapsed(elapsed)? };
    Some((u32::from_be_bytes(*echo), elapsed))
}
