//! What a PID carries: by its entry in the PMT, or by its own bytes if no table speaks.

use super::pes::PesHeader;
use braidcast_core::{Reader, Truncated};

/// What a PID carries, as far as units are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Codec {
    /// MPEG-1 or MPEG-2 video.
    Mpeg2,
    /// MPEG-4 part 2.
    Mpeg4,
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// H.266.
    H266,
    /// AV1.
    Av1,
    /// Video whose frames are known by the packets' headers alone.
    Video,
    /// Any audio codec.
    Audio,
    /// Program tables: PAT and PMT.
    Tables,
    /// Other tables and sections: service information, program guides, carousels.
    Sections,
    /// Null packets whose contents are not the usual ones.
    Stuffing,
    /// What a table announces as anything else: metadata, cues, subtitles.
    Other,
    /// What no table has announced.
    #[default]
    Unknown,
}

impl Codec {
    /// Returns `true` if the PID carries video.
    pub const fn is_video(self) -> bool {
        matches!(self, Self::Mpeg2 | Self::Mpeg4 | Self::H264 | Self::H265 | Self::H266 | Self::Av1 | Self::Video)
    }

    /// The name that people use; `None` for what is neither video nor audio of a known kind.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Mpeg2 => Some("MPEG-2"),
            Self::Mpeg4 => Some("MPEG-4 part 2"),
            Self::H264 => Some("H.264"),
            Self::H265 => Some("H.265"),
            Self::H266 => Some("H.266"),
            Self::Av1 => Some("AV1"),
            Self::Video => Some("other video"),
            Self::Audio => Some("audio"),
            Self::Tables | Self::Sections | Self::Stuffing | Self::Other | Self::Unknown => None,
        }
    }

    /// From `stream_type` and the descriptors behind it (ISO/IEC 13818-1 table 2-34; ATSC A/53; ETSI EN 300 468;
    /// SMPTE RP 227 for VC-1; GB/T 20090 for AVS).
    pub(super) fn of_stream(stream_type: u8, descriptors: &[u8]) -> Self {
        match stream_type {
            0x01 | 0x02 => Self::Mpeg2,
            0x10 => Self::Mpeg4,
            // Scalable and multi-view layers have H.264's NAL units too.
            0x1b | 0x1f | 0x20 | 0x23 => Self::H264,
            0x24 | 0x25 => Self::H265,
            0x33 | 0x34 => Self::H266,
            // JPEG 2000, JPEG XS, EVC, AVS, Dirac, AVS2, AVS3, VC-1.
            0x21 | 0x32 | 0x35 | 0x42 | 0xd1 | 0xd2 | 0xd4 | 0xea => Self::Video,
            // MPEG audio, AAC, raw AAC, MPEG-H, AC-3, DTS, TrueHD, E-AC-3, DTS-HD, DTS of ATSC.
            0x03 | 0x04 | 0x0f | 0x11 | 0x1c | 0x2d | 0x2e | 0x81..=0x85 | 0x87 | 0x88 | 0x8a | 0xa1 | 0xa2 => {
                Self::Audio
            }
            0x05 | 0x0a..=0x0d | 0x14 | 0x16 => Self::Sections,
            0x06 => Self::of_private(descriptors),
            _ => Self::Other,
        }
    }

    /// Private PES says what it is by a descriptor: of DVB, or a registration of four letters.
    fn of_private(descriptors: &[u8]) -> Self {
        let mut reader = Reader::new(descriptors);
        while let Ok((tag, body)) = descriptor(&mut reader) {
            match (tag, body) {
                // AC-3, E-AC-3, DTS, AAC.
                (0x6a | 0x7a | 0x7b | 0x7c, _) => return Self::Audio,
                // Extensions of DVB: DTS-HD, DTS Neural, AC-4, DTS-UHD (EN 300 468 table 109).
                (0x7f, [0x0e | 0x0f | 0x15 | 0x21, ..]) => return Self::Audio,
                (0x05, [a, b, c, d, ..]) => match &[*a, *b, *c, *d] {
                    b"AC-3" | b"EAC3" | b"AC-4" | b"Opus" | b"BSSD" | b"DTS1" | b"DTS2" | b"DTS3" | b"mlpa" => {
                        return Self::Audio;
                    }
                    b"HEVC" => return Self::H265,
                    b"VVC " => return Self::H266,
                    b"AV01" => return Self::Av1,
                    b"drac" | b"VC-1" | b"AVS2" | b"AVS3" => return Self::Video,
                    _ => {}
                },
                _ => {}
            }
        }
        Self::Other
    }

    /// What the beginning of a PES packet says of a PID that no table has announced: its `stream_id` (§2.4.3.7), and
    /// the start codes or sync words behind the header. [`Codec::Unknown`] if that is not enough.
    pub(super) fn of_pes(payload: &[u8]) -> Self {
        let &[0, 0, 1, id, ..] = payload else { return Self::Unknown };
        let header = PesHeader::parse(payload).map_or(payload.len(), |pes| pes.header);
        let stream = payload.get(header..).unwrap_or_default();
        match id {
            0xc0..=0xdf => Self::Audio,
            0xe0..=0xef => Self::of_video(stream),
            // Private: AC-3, DTS.
            0xbd | 0xfd if matches!(stream, [0x0b, 0x77, ..] | [0x7f, 0xfe, 0x80, 0x01, ..]) => Self::Audio,
            _ => Self::Unknown,
        }
    }

    /// By the first start code of a video stream.
    fn of_video(stream: &[u8]) -> Self {
        let at = memchr::memmem::find(stream, &[0, 0, 1]).map_or(stream.len(), |at| at + 3);
        match stream.get(at..).unwrap_or_default() {
            // H.264: delimiter, SEI, parameter sets, and slices that others need.
            [0x09 | 0x06 | 0x27 | 0x67 | 0x28 | 0x68 | 0x65 | 0x25 | 0x41 | 0x21 | 0x61, ..] => Self::H264,
            // H.265: delimiter and parameter sets of the base layer, temporal layer 0.
            [0x46 | 0x40 | 0x42 | 0x44 | 0x4e, 0x01, ..] => Self::H265,
            // H.266: the same.
            [0x00, 0xa1 | 0x71 | 0x79 | 0x81, ..] => Self::H266,
            [0xb3 | 0xb8, ..] => Self::Mpeg2,
            [0xb0 | 0xb6, ..] => Self::Mpeg4,
            _ => Self::Unknown,
        }
    }
}

pub(super) fn descriptor<'a>(reader: &mut Reader<'a>) -> Result<(u8, &'a [u8]), Truncated> {
    let (tag, length) = (reader.u8()?, reader.u8()?);
    Ok((tag, reader.take(usize::from(length))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_types_and_descriptors_say_what_a_pid_carries() {
        let of = Codec::of_stream;
        assert_eq!(
            [0x10, 0x1b, 0x24, 0x33].map(|it| of(it, &[])),
            [Codec::Mpeg4, Codec::H264, Codec::H265, Codec::H266]
        );
        assert_eq!([0x0f, 0x2d, 0x81, 0x87].map(|it| of(it, &[])), [Codec::Audio; 4]);
        assert_eq!([0x86, 0x15, 0x06].map(|it| of(it, &[])), [Codec::Other; 3], "cues, metadata, private");
        assert_eq!(of(0x0b, &[]), Codec::Sections);
        assert_eq!(of(0x06, &[5, 4, b'A', b'V', b'0', b'1']), Codec::Av1);
        assert_eq!(of(0x06, &[0x0a, 1, 0, 0x7f, 3, 0x15, 0, 0]), Codec::Audio, "AC-4 behind a language");
        assert_eq!(of(0x06, &[5, 4, b'K', b'L', b'V', b'A']), Codec::Other);
    }

    #[test]
    fn without_a_table_the_stream_id_and_the_first_start_code_speak() {
        let pes = |id, stream: &[u8]| Codec::of_pes(&[&[0, 0, 1, id, 0, 0, 0x80, 0, 0], stream].concat());
        assert_eq!(pes(0xc0, &[]), Codec::Audio);
        assert_eq!(pes(0xe0, &[0, 0, 0, 1, 9, 0xf0]), Codec::H264);
        assert_eq!(pes(0xe0, &[0, 0, 0, 1, 0x46, 1, 0x50]), Codec::H265);
        assert_eq!(pes(0xe0, &[0, 0, 1, 0xb3, 1]), Codec::Mpeg2);
        assert_eq!(pes(0xe0, &[0, 0, 1, 0xb0, 1]), Codec::Mpeg4);
        assert_eq!(pes(0xe0, &[0, 0, 1, 0, 0xa1, 0]), Codec::H266);
        assert_eq!(pes(0xbd, &[0x0b, 0x77]), Codec::Audio);
        assert_eq!([pes(0xe0, &[1, 2, 3]), pes(0xbd, &[1]), Codec::of_pes(&[0, 2, 0xb0])], [Codec::Unknown; 3]);
    }
}
