use braidcast_core::Writer;

use super::{
    chunk::kind,
    error::{ParseError, Place},
    fields::Fields,
    padded,
};

/// The common header (RFC 9260 §3.1) without its checksum.
///
/// ```text
/// | source port        16 | destination port   16 |
/// | verification tag                           32 |
/// | checksum                                   32 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// SCTP port of the sender.
    pub source_port: u16,
    /// SCTP port of the receiver.
    pub destination_port: u16,
    /// The tag that the receiver chose at the handshake; 0 only with INIT (RFC 9260 §8.5).
    pub verification_tag: u32,
}

impl Header {
    /// Bytes on the wire, checksum included.
    pub const LEN: usize = 12;
}

/// Bytes that a DTLS chunk adds to a packet: its header and a zero byte, the record's header, type
/// and tag, and padding, which is the same for all packets as their chunks are padded.
pub const PROTECTION: usize = padded(4 + 1 + braidcast_secure::OVERHEAD);

/// Where the checksum stands.
const CHECKSUM: core::ops::Range<usize> = 8..12;

/// The error detection method that a packet without checksum relies on: it is one DTLS chunk and
/// nothing else. Its tag covers all but the common header, and a header in which a bit is wrong
/// leads to no association, or to one whose keys do not open it. RFC 9653 has no numbers for
/// private use; this one spells DTLS.
pub const BY_RECORD: u32 = 0x4454_4c53;

/// A packet whose length is right, and its checksum where it has one.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The common header.
    pub header: Header,
    chunks: &'a [u8],
    has_checksum: bool,
}

impl<'a> Packet<'a> {
    /// Longest packet in bytes: what an IP or UDP length can say. It bounds every chunk, so that a chunk copied whole
    /// into an error cause still fits the 16-bit lengths there.
    pub const MAX: usize = u16::MAX as usize;

    /// Reads the common header and verifies the CRC32c. Zero is taken for it where the packet is one DTLS chunk:
    /// [`has_checksum`](Self::has_checksum) says so.
    ///
    /// # Errors
    /// [`ParseError::Length`] below 12 bytes or above [`Self::MAX`]; [`ParseError::Checksum`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let given = bytes.len();
        let Some((&[s0, s1, d0, d1, v0, v1, v2, v3, c0, c1, c2, c3], chunks)) =
            bytes.split_first_chunk::<{ Header::LEN }>()
        else {
            return Err(ParseError::Length { place: Place::Packet, given, needed: Header::LEN });
        };
        if given > Self::MAX {
            return Err(ParseError::Length { place: Place::Packet, given, needed: Self::MAX });
        }
        let given = u32::from_le_bytes([c0, c1, c2, c3]);
        let has_checksum = given != 0 || !is_one_record(chunks);
        if has_checksum {
            let computed = checksum(bytes);
            if given != computed {
                return Err(ParseError::Checksum { given, computed });
            }
        }
        let header = Header {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            verification_tag: u32::from_be_bytes([v0, v1, v2, v3]),
        };
        Ok(Self { header, chunks, has_checksum })
    }

    /// Returns `true` if its checksum was verified. If not, only the record in it can show whether it came as
    /// it was sent, where both ends agreed on that ([`BY_RECORD`]).
    pub const fn has_checksum(&self) -> bool {
        self.has_checksum
    }

    /// The chunks in order; ends after the first error.
    pub const fn chunks(&self) -> Chunks<'a> {
        Chunks { rest: self.chunks, offset: Header::LEN }
    }
}

/// One chunk as framed, its value not looked at.
///
/// ```text
/// | type 8 | flags 8 | length 16 | value … | padding to 4 |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawChunk<'a> {
    /// The chunk type, see [`kind`](super::chunk::kind).
    pub kind: u8,
    /// The chunk flags.
    pub flags: u8,
    /// What follows the four-byte chunk header, without padding.
    pub value: &'a [u8],
    /// The whole chunk without padding, as AUTH and error causes need it.
    pub bytes: &'a [u8],
    /// Offset of the chunk in bytes from the start of the packet.
    pub offset: usize,
}

impl<'a> RawChunk<'a> {
    pub(crate) const fn fields(&self) -> Fields<'a> {
        Fields::new(Place::Chunk(self.kind), self.value)
    }

    /// A chunk that has no value.
    pub(crate) const fn empty(&self) -> Result<(), ParseError> {
        self.fields().end()
    }
}

/// Iterator over the chunks of a packet.
///
/// Padding missing after the last chunk is tolerated: what counts is that the chunk itself is whole.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Chunks<'a> {
    /// Those in `bytes`, as if they followed a common header.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, offset: Header::LEN }
    }

    /// Frames the first chunk of what is left and steps over it.
    fn frame(&mut self) -> Result<RawChunk<'a>, ParseError> {
        let rest = core::mem::take(&mut self.rest);
        let Some((&[kind, flags, l0, l1], _)) = rest.split_first_chunk() else {
            return Err(ParseError::Length { place: Place::Packet, given: rest.len(), needed: 4 });
        };
        let place = Place::Chunk(kind);
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if length < 4 {
            return Err(ParseError::Length { place, given: length, needed: 4 });
        }
        let Some(bytes) = rest.get(..length) else {
            return Err(ParseError::Length { place, given: rest.len(), needed: length });
        };
        let chunk = RawChunk { kind, flags, value: &bytes[4..], bytes, offset: self.offset };
        let step = padded(length).min(rest.len());
        self.rest = &rest[step..];
        self.offset += step;
        Ok(chunk)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<RawChunk<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.frame())
    }
}

/// Appends the common header with a checksum of zero; [`seal`] the packet once its chunks are there.
pub fn begin(buf: &mut Vec<u8>, header: Header) {
    let mut w = Writer::new(buf);
    w.u16(header.source_port);
    w.u16(header.destination_port);
    w.u32(header.verification_tag);
    w.u32(0);
}

/// Writes the checksum into `packet`, which is exactly one packet as started by [`begin`].
pub fn seal(packet: &mut [u8]) {
    debug_assert!(packet.len() >= Header::LEN, "seal takes a whole packet");
    let crc = checksum(packet);
    if let Some(field) = packet.get_mut(CHECKSUM) {
        // RFC 9260 Appendix A: the CRC goes out with its low byte first.
        field.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns `true` if there is one DTLS chunk and nothing else.
fn is_one_record(chunks: &[u8]) -> bool {
    matches!(*chunks, [kind::DTLS, _, l0, l1, ..] if padded(usize::from(u16::from_be_bytes([l0, l1]))) >= chunks.len())
}

/// CRC32c over `packet` with the checksum field taken as zero (RFC 9260 §6.8).
fn checksum(packet: &[u8]) -> u32 {
    let Some((&header, chunks)) = packet.split_first_chunk::<{ Header::LEN }>() else { return 0 };
    let mut header = header;
    header[CHECKSUM].fill(0);
    let mut sum = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi); // CRC32c by its other name.
    sum.update(&header);
    sum.update(chunks);
    sum.finalize() as u32
}
