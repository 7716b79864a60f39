//! What elementary streams are coded as, as far as tables and PES packets have to say it.

use super::Codec;
use super::codec::descriptor;
use braidcast_core::Reader;

/// The coding of an elementary stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Coding {
    /// H.264 with start codes (ISO/IEC 14496-10 annex B).
    H264,
    /// H.265 with start codes (ISO/IEC 23008-2 annex B).
    H265,
    /// AAC, each frame with its ADTS header (ISO/IEC 14496-3 §1.A.2).
    Aac,
    /// MPEG-1 or MPEG-2 audio, layers I to III (ISO/IEC 11172-3).
    MpegAudio,
    /// AC-3 (ATSC A/52).
    Ac3,
    /// Opus packets of this number of channels, 1 to 8.
    Opus {
        /// How many.
        channels: u8,
    },
    /// Anything else, by its `stream_type` (ISO/IEC 13818-1 table 2-34).
    Other(u8),
}

/// Registration descriptor (ISO/IEC 13818-1 §2.6.8).
const REGISTRATION: u8 = 0x05;
/// Extension descriptor of DVB (ETSI EN 300 468 §6.2.18.1), and the one of Opus in it.
const EXTENSION: u8 = 0x7f;
const OPUS: u8 = 0x80;
/// Begins an Opus packet: eleven bits of `control_header_prefix`; five flags follow.
const OPUS_PREFIX: u16 = 0x7fe0;
const START_TRIM: u16 = 0x10;
const END_TRIM: u16 = 0x08;
const OPUS_EXTENSION: u16 = 0x04;

impl Coding {
    /// Returns `true` if frames of it are predicted from others.
    pub const fn is_video(self) -> bool {
        matches!(self, Self::H264 | Self::H265)
    }

    /// The name that people use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::Aac => "AAC",
            Self::MpegAudio => "MPEG audio",
            Self::Ac3 => "AC-3",
            Self::Opus { .. } => "Opus",
            Self::Other(_) => "other",
        }
    }

    /// `stream_type`.
    pub(super) const fn stream_type(self) -> u8 {
        match self {
            Self::H264 => 0x1b,
            Self::H265 => 0x24,
            Self::Aac => 0x0f,
            Self::MpegAudio => 0x03,
            Self::Ac3 => 0x81,
            Self::Opus { .. } => 0x06,
            Self::Other(stream_type) => stream_type,
        }
    }

    /// `stream_id` of its PES packets (table 2-22).
    pub(super) const fn stream_id(self) -> u8 {
        match self {
            Self::H264 | Self::H265 => 0xe0,
            Self::Aac | Self::MpegAudio => 0xc0,
            Self::Ac3 | Self::Opus { .. } | Self::Other(_) => 0xbd,
        }
    }

    /// Appends the descriptors of its entry in the PMT.
    pub(super) fn write_descriptors(self, out: &mut Vec<u8>) {
        match self {
            Self::Ac3 => out.extend([REGISTRATION, 4, b'A', b'C', b'-', b'3']),
            Self::Opus { channels } => {
                out.extend([REGISTRATION, 4, b'O', b'p', b'u', b's', EXTENSION, 2, OPUS, channels]);
            }
            _ => {}
        }
    }

    /// From an entry of the PMT.
    pub(super) fn of_stream(stream_type: u8, descriptors: &[u8]) -> Self {
        match stream_type {
            0x03 | 0x04 => Self::MpegAudio,
            0x0f => Self::Aac,
            0x81 => Self::Ac3,
            0x06 => Self::of_private(descriptors),
            _ => match Codec::of_stream(stream_type, descriptors) {
                Codec::H264 => Self::H264,
                Codec::H265 => Self::H265,
                _ => Self::Other(stream_type),
            },
        }
    }

    fn of_private(descriptors: &[u8]) -> Self {
        let (mut is_opus, mut channels) = (false, 2);
        let mut reader = Reader::new(descriptors);
        while let Ok((tag, body)) = descriptor(&mut reader) {
            match (tag, body) {
                (REGISTRATION, b"Opus") => is_opus = true,
                (REGISTRATION, b"AC-3") => return Self::Ac3,
                (REGISTRATION, b"HEVC") => return Self::H265,
                // AC-3 of DVB.
                (0x6a, _) => return Self::Ac3,
                (EXTENSION, [OPUS, said @ 1..=8, ..]) => channels = *said,
                _ => {}
            }
        }
        if is_opus { Self::Opus { channels } } else { Self::Other(0x06) }
    }

    /// Appends what stands before an access unit of this length in its PES packet.
    pub(super) fn write_header(self, mut bytes: usize, out: &mut Vec<u8>) {
        if let Self::Opus { .. } = self {
            out.extend(OPUS_PREFIX.to_be_bytes());
            while bytes >= 255 {
                out.push(255);
                bytes -= 255;
            }
            out.push(bytes as u8);
        }
    }

    /// The access units in the payload of a PES packet: all of it, or of Opus each packet. What makes no sense is left
    /// out.
    pub(super) fn units(self, mut payload: &[u8]) -> Vec<&[u8]> {
        if !matches!(self, Self::Opus { .. }) {
            return if payload.is_empty() { Vec::new() } else { vec![payload] };
        }
        let mut units = Vec::new();
        while let Some((unit, rest)) = opus_packet(payload) {
            units.push(unit);
            payload = rest;
        }
        units
    }
}

/// The first packet behind its control header, and what follows it.
fn opus_packet(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(payload);
    let head = reader.u16().ok()?;
    if head & OPUS_PREFIX != OPUS_PREFIX {
        return None;
    }
    let mut bytes = 0;
    loop {
        let part = usize::from(reader.u8().ok()?);
        bytes += part;
        if part < 255 {
            break;
        }
    }
    for trim in [START_TRIM, END_TRIM] {
        if head & trim != 0 {
            reader.u16().ok()?;
        }
    }
    if head & OPUS_EXTENSION != 0 {
        let length = reader.u8().ok()?;
        reader.take(length.into()).ok()?;
    }
    let unit = reader.take(bytes).ok()?;
    Some((unit, reader.take(reader.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_of_the_pmt_says_is_read_as_it_is_written() {
        let all = [Coding::H264, Coding::H265, Coding::Aac, Coding::MpegAudio, Coding::Ac3, Coding::Other(0x15)];
        for coding in all.into_iter().chain([1, 2, 8].map(|channels| Coding::Opus { channels })) {
            let mut descriptors = Vec::new();
            coding.write_descriptors(&mut descriptors);
            assert_eq!(Coding::of_stream(coding.stream_type(), &descriptors), coding);
        }
        assert_eq!(Coding::of_stream(0x06, &[0x6a, 1, 0]), Coding::Ac3);
        assert_eq!(Coding::of_stream(0x06, &[5, 4, b'K', b'L', b'V', b'A']), Coding::Other(6));
    }

    #[test]
    fn packets_of_opus_are_found_behind_their_headers() {
        let opus = Coding::Opus { channels: 2 };
        let mut pes = Vec::new();
        for length in [3, 254, 255, 256, 510] {
            opus.write_header(length, &mut pes);
            pes.resize(pes.len() + length, length as u8);
        }
        let units: Vec<usize> = opus.units(&pes).iter().map(|unit| unit.len()).collect();
        assert_eq!(units, [3, 254, 255, 256, 510]);
        // With both trims and an extension of one byte.
        assert_eq!(opus.units(&[0x7f, 0xfc, 2, 0, 1, 0, 2, 1, 9, 7, 8, 1]), [&[7, 8]]);
        assert_eq!(opus.units(&pes[..4]), Vec::<&[u8]>::new(), "cut short");
        assert_eq!(opus.units(&[1, 2, 3]), Vec::<&[u8]>::new());
        assert_eq!(Coding::Aac.units(&[1, 2]), [&[1, 2]]);
    }
}
