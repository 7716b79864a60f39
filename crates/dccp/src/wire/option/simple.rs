use super::{RawOption, kind};
use braidcast_core::Writer;

/// Appends Mandatory, for the option that is appended next.
pub fn emit_mandatory(w: &mut Writer<'_>) {
    w.u8(kind::MANDATORY);
}

/// Appends Slow Receiver (RFC 4340 §11.6).
pub fn emit_slow_receiver(w: &mut Writer<'_>) {
    w.u8(kind::SLOW_RECEIVER);
}

/// Appends `cookie` as so many Init Cookie options as it takes (RFC 4340 §8.1.4).
pub fn emit_init_cookies(cookie: &[u8], w: &mut Writer<'_>) {
    for value in cookie.chunks(RawOption::MAX_VALUE) {
        RawOption { kind: kind::INIT_COOKIE, value }.emit(w);
    }
}

/// Appends an offer of protection. Who does not know it must not take it for one that may be left out.
pub fn emit_protection(offer: &[u8], w: &mut Writer<'_>) {
    emit_mandatory(w);
    RawOption { kind: kind::PROTECTION, value: offer }.emit(w);
}

/// Appends a Data Checksum for `payload` (RFC 4340 §9.3).
pub fn emit_data_checksum(payload: &[u8], w: &mut Writer<'_>) {
    RawOption { kind: kind::DATA_CHECKSUM, value: &crc_fast::crc32_iscsi(payload).to_be_bytes() }.emit(w);
}

pub(super) fn parse_checksum(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(value.try_into().ok()?))
}
