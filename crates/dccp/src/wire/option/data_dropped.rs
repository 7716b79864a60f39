use super::{RawOption, kind};
use braidcast_core::Writer;

/// Why the data of a packet that arrived did not reach the application (RFC 4340 §11.7 table 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCode {
    /// The protocol did not allow it, for example data with too little checksum coverage.
    ProtocolConstraints,
    /// The application listens no longer.
    NotListening,
    /// The receive buffer was full.
    ReceiveBuffer,
    /// The data was corrupt.
    Corrupt,
    /// Codes 4 to 6.
    Reserved(u8),
    /// The data was corrupt, and was handed over so.
    DeliveredCorrupt,
}

impl DropCode {
    const fn code(self) -> u8 {
        match self {
            Self::ProtocolConstraints => 0,
            Self::NotListening => 1,
            Self::ReceiveBuffer => 2,
            Self::Corrupt => 3,
            Self::Reserved(code) => code & 7,
            Self::DeliveredCorrupt => 7,
        }
    }

    const fn parse(code: u8) -> Self {
        match code {
            0 => Self::ProtocolConstraints,
            1 => Self::NotListening,
            2 => Self::ReceiveBuffer,
            3 => Self::Corrupt,
            7 => Self::DeliveredCorrupt,
            code => Self::Reserved(code),
        }
    }
}

/// Packets of consecutive numbers whose data met the same end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropRun {
    /// Why they were dropped; `None` if they were not.
    pub code: Option<DropCode>,
    /// How many: 1 to 128, or to 16 with a code.
    pub len: u8,
}

impl DropRun {
    /// Most packets of one block.
    pub const fn max(code: Option<DropCode>) -> u8 {
        if code.is_some() { 16 } else { 128 }
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        let run = self.len.saturating_sub(1);
        match self.code {
            None => run & 0x7f,
            Some(code) => 0x80 | code.code() << 4 | (run & 15),
        }
    }

    const fn parse(byte: u8) -> Self {
        if byte & 0x80 == 0 {
            Self { code: None, len: byte + 1 }
        } else {
            Self { code: Some(DropCode::parse(byte >> 4 & 7)), len: (byte & 15) + 1 }
        }
    }
}

/// One Data Dropped option: blocks, the newest first, beginning at the acknowledgement number or
/// where the one before ended.
///
/// ```text
/// | type 40 8 | length 8 | 0 1, run length − 1 7 | or | 1 1, drop code 3, run length − 1 4 | …
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataDropped<'a> {
    bytes: &'a [u8],
}

impl<'a> DataDropped<'a> {
    /// An option of these bytes, [`RawOption::MAX_VALUE`] at most.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The blocks.
    pub fn runs(&self) -> impl Iterator<Item = DropRun> + use<'a> {
        self.bytes.iter().map(|&byte| DropRun::parse(byte))
    }

    /// Appends the option.
    pub fn emit(&self, w: &mut Writer<'_>) {
        RawOption { kind: kind::DATA_DROPPED, value: self.bytes }.emit(w);
    }
}
