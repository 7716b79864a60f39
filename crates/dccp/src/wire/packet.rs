use super::{Checksum, Kind, Options, ParseError, Reset, ResetCode, ServiceCode};
use braidcast_core::{Reader, Truncated};

/// The fixed header of a packet (RFC 4340 §5.1), all but lengths and checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// DCCP port of the sender.
    pub source_port: u16,
    /// DCCP port of the receiver.
    pub destination_port: u16,
    /// Four bits for the sender's CCID.
    pub ccval: u8,
    /// How much of the data the checksum covers: 0 all of it, n the first (n − 1)·4 bytes (§9.2).
    pub coverage: u8,
    /// Sequence numbers have 24 bits instead of 48 (X = 0).
    pub short: bool,
    /// Sequence number, as on the wire.
    pub seq: u64,
    /// The type and its fields.
    pub kind: Kind,
}

impl Header {
    /// Bytes of the shortest header.
    pub const MIN: usize = 12;

    /// Bytes of the fixed header before any options.
    pub const fn size(&self) -> usize {
        let generic = if self.short { 12 } else { 16 };
        let ack = match (self.kind.ack(), self.short) {
            (None, _) => 0,
            (Some(_), true) => 4,
            (Some(_), false) => 8,
        };
        let extra = match self.kind {
            Kind::Request { .. } | Kind::Response { .. } | Kind::Reset { .. } => 4,
            _ => 0,
        };
        generic + ack + extra
    }

    /// Returns `true` if a packet that was built is data behind a header of `len` bytes, with no
    /// options but those counted in it.
    pub(crate) fn is_plain_data(packet: &[u8], len: usize) -> bool {
        packet.get(4).is_some_and(|&words| usize::from(words) * 4 == len)
            && packet.get(8).is_some_and(|&typed| typed >> 1 & 15 == Kind::Data.code())
    }

    /// Bytes of data that a coverage field of `coverage` protects, or `None` for all.
    pub(crate) const fn covered(coverage: u8) -> Option<usize> {
        if coverage == 0 { None } else { Some((coverage as usize - 1) * 4) }
    }
}

/// A packet whose header makes sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The fixed header.
    pub header: Header,
    /// Its options.
    pub options: Options<'a>,
    /// The application data area: error text on a Reset, filling on what carries no data.
    pub payload: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet and checks all of RFC 4340 §8.5 step 1.
    ///
    /// # Errors
    /// [`ParseError`]; such packets are dropped without an answer.
    pub fn parse(bytes: &'a [u8], checksum: Checksum) -> Result<Self, ParseError> {
        let short = |t: Truncated| ParseError::Short { given: bytes.len(), needed: bytes.len() - t.left + t.needed };
        if bytes.len() < Header::MIN {
            return Err(ParseError::Short { given: bytes.len(), needed: Header::MIN });
        }
        let mut r = Reader::new(bytes);
        let (source_port, destination_port) = (r.u16().map_err(short)?, r.u16().map_err(short)?);
        let offset = usize::from(r.u8().map_err(short)?) * 4;
        let both = r.u8().map_err(short)?;
        let (ccval, coverage) = (both >> 4, both & 15);
        r.u16().map_err(short)?; // the checksum
        let typed = r.u8().map_err(short)?;
        let (code, long) = (typed >> 1 & 15, typed & 1 == 1);
        if code >= 10 {
            return Err(ParseError::ReservedType(code));
        }
        if !long && !matches!(code, 2..=4) {
            return Err(ParseError::ShortSequence(Kind::NAMES[usize::from(code)]));
        }
        let seq = number(&mut r, long, 1).map_err(short)?;
        let ack = if matches!(code, 0 | 2) { 0 } else { number(&mut r, long, 2).map_err(short)? };
        let kind = match code {
            0 => Kind::Request { service: ServiceCode(r.u32().map_err(short)?) },
            1 => Kind::Response { ack, service: ServiceCode(r.u32().map_err(short)?) },
            2 => Kind::Data,
            3 => Kind::Ack { ack },
            4 => Kind::DataAck { ack },
            5 => Kind::CloseReq { ack },
            6 => Kind::Close { ack },
            7 => {
                let [code, data @ ..] = r.array::<4>().map_err(short)?;
                Kind::Reset { ack, reset: Reset { code: ResetCode(code), data } }
            }
            8 => Kind::Sync { ack },
            _ => Kind::SyncAck { ack },
        };
        let header = Header { source_port, destination_port, ccval, coverage, short: !long, seq, kind };
        let (options, payload) = bytes
            .split_at_checked(offset)
            .and_then(|(head, payload)| Some((head.get(header.size()..)?, payload)))
            .ok_or(ParseError::DataOffset { given: offset, header: header.size(), len: bytes.len() })?;
        let covered = Header::covered(coverage).unwrap_or(payload.len());
        if covered > payload.len() {
            return Err(ParseError::Coverage { coverage, payload: payload.len() });
        }
        if checksum.compute(&bytes[..offset + covered], bytes.len()) != 0 {
            return Err(ParseError::Checksum);
        }
        Ok(Self { header, options: Options::new(options, kind), payload, bytes })
    }

    /// The same with other data, as where those on the wire were encrypted.
    pub(crate) const fn with_payload<'b>(&self, payload: &'b [u8]) -> Packet<'b>
    where
        'a: 'b,
    {
        Packet { payload, ..*self }
    }

    /// All bytes of the packet.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// A sequence number of 48 or 24 bits, after reserved bytes: for the long form `reserved`, for the short form one less.
fn number(r: &mut Reader<'_>, long: bool, reserved: usize) -> Result<u64, Truncated> {
    if long {
        r.take(reserved)?;
        Ok(u64::from(r.u16()?) << 32 | u64::from(r.u32()?))
    } else {
        r.take(reserved - 1)?;
        let [a, b, c] = r.array()?;
        Ok(u64::from(u32::from_be_bytes([0, a, b, c])))
    }
}
