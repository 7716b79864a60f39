use braidcast_core::Writer;

use super::{
    error::{ParseError, Place},
    fields::Fields,
    padded,
};

/// One parameter or error cause as framed (RFC 9260 §3.2.1, §3.3.10).
///
/// ```text
/// | type 16 | length 16 | value … | padding to 4 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawTlv<'a> {
    /// Parameter type or cause code.
    pub kind: u16,
    /// What follows the four-byte header, without padding.
    pub value: &'a [u8],
    /// The whole without padding, as reports to the peer need it.
    pub bytes: &'a [u8],
}

/// Iterator over parameters or error causes; ends after the first error.
///
/// Padding missing after the last one is right: the chunk's length does not count it (RFC 9260 §3.2).
#[derive(Clone, Debug)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
    place: fn(u16) -> Place,
}

impl<'a> Tlvs<'a> {
    pub(crate) const fn new(bytes: &'a [u8], place: fn(u16) -> Place) -> Self {
        Self { rest: bytes, place }
    }

    /// What is left after the ones handed out.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn frame(&mut self) -> Result<RawTlv<'a>, ParseError> {
        let rest = core::mem::take(&mut self.rest);
        let Some((&[k0, k1, l0, l1], _)) = rest.split_first_chunk() else {
            let kind = rest.first_chunk().map_or(0, |k| u16::from_be_bytes(*k));
            return Err(ParseError::Length { place: (self.place)(kind), given: rest.len(), needed: 4 });
        };
        let kind = u16::from_be_bytes([k0, k1]);
        let place = (self.place)(kind);
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length < 4 {
            return Err(ParseError::Length { place, given: length, needed: 4 });
        }
        let Some(bytes) = rest.get(..length) else {
            return Err(ParseError::Length { place, given: rest.len(), needed: length });
        };
        self.rest = &rest[padded(length).min(rest.len())..];
        Ok(RawTlv { kind, value: &bytes[4..], bytes })
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<RawTlv<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.frame())
    }
}

impl<'a> RawTlv<'a> {
    pub(crate) const fn parameter_fields(&self) -> Fields<'a> {
        Fields::new(Place::Parameter(self.kind), self.value)
    }

    pub(crate) const fn cause_fields(&self) -> Fields<'a> {
        Fields::new(Place::Cause(self.kind), self.value)
    }
}

/// `bytes` without the padding of the last item, which the enclosing length must not count (RFC 9260 §3.2).
pub(crate) const fn without_last_padding(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some(&[_, _, l0, l1]) = rest.first_chunk() {
        let length = u16::from_be_bytes([l0, l1]) as usize;
        if length < 4 || length > rest.len() {
            break;
        }
        if padded(length) >= rest.len() {
            return bytes.split_at(bytes.len() - (rest.len() - length)).0;
        }
        rest = rest.split_at(padded(length)).1;
    }
    bytes
}

/// Appends a parameter or cause: header, what `value` writes, length, padding.
pub(crate) fn emit(w: &mut Writer<'_>, kind: u16, value: impl FnOnce(&mut Writer<'_>)) {
    let start = w.position();
    w.u16(kind);
    w.u16(0);
    value(w);
    close(w, start);
}

/// Writes the length of what started at `start` and pads it. The start need not be aligned in the buffer.
pub(crate) fn close(w: &mut Writer<'_>, start: usize) {
    let length = w.position() - start;
    w.patch_u16(start + 2, length_field(length));
    w.zeros(padded(length) - length);
}

/// `length` as a length field; what does not fit is a fault of the caller.
pub(crate) fn length_field(length: usize) -> u16 {
    debug_assert!(length <= usize::from(u16::MAX), "{length} bytes do not fit a 16-bit length");
    u16::try_from(length).unwrap_or(u16::MAX)
}

/// What to do with a type that is not known, by its two highest bits (RFC 9260 §3.2, §3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownAction {
    /// 00: process nothing further.
    Stop,
    /// 01: process nothing further, and tell the peer.
    StopAndReport,
    /// 10: go on with the next.
    Skip,
    /// 11: go on with the next, and tell the peer.
    SkipAndReport,
}

impl UnknownAction {
    /// For a chunk type. Stopping is about the rest of the packet; the report is an ERROR chunk.
    pub const fn for_chunk(kind: u8) -> Self {
        match kind >> 6 {
            0 => Self::Stop,
            1 => Self::StopAndReport,
            2 => Self::Skip,
            _ => Self::SkipAndReport,
        }
    }

    /// For a parameter type. Stopping is about the rest of the chunk; how to report, RFC 9260 §3.2.2 says.
    pub const fn for_parameter(kind: u16) -> Self {
        Self::for_chunk((kind >> 8) as u8)
    }

    /// Returns `true` if what follows is still processed.
    pub const fn skips(self) -> bool {
        matches!(self, Self::Skip | Self::SkipAndReport)
    }

    /// Returns `true` if the peer is told.
    pub const fn reports(self) -> bool {
        matches!(self, Self::StopAndReport | Self::SkipAndReport)
    }
}
