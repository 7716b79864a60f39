//! From the form that FLV and MP4 have to the one of transport streams: start codes and parameter sets, ADTS. The
//! coded pictures stay as they are.

use super::tag::Codec;
use braidcast_core::{Reader, Truncated};

/// Bytes of parameter sets, at most.
const SETS: usize = 4096;
const START: [u8; 4] = [0, 0, 0, 1];

/// What is needed to write units of video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Video {
    pub(super) codec: Codec,
    /// Bytes of the lengths before parts of a unit: 1 to 4.
    length: usize,
    /// Parameter sets with start codes.
    sets: Vec<u8>,
}

impl Video {
    /// Reads `avcC` (ISO/IEC 14496-15 §5.3.3) or `hvcC` (§8.3.3).
    pub(super) fn read(codec: Codec, config: &[u8]) -> Option<Self> {
        let mut video = Self { codec, length: 0, sets: Vec::new() };
        let mut reader = Reader::new(config);
        let read = if codec == Codec::H264 { video.read_avc(&mut reader) } else { video.read_hevc(&mut reader) };
        (read.is_ok() && !video.sets.is_empty() && video.sets.len() <= SETS && video.length != 3).then_some(video)
    }

    fn read_avc(&mut self, reader: &mut Reader<'_>) -> Result<(), Truncated> {
        reader.take(4)?;
        self.length = usize::from(reader.u8()? & 3) + 1;
        let sequence = reader.u8()? & 0x1f;
        self.read_sets(reader, sequence.into())?;
        let picture = reader.u8()?;
        self.read_sets(reader, picture.into())
    }

    fn read_hevc(&mut self, reader: &mut Reader<'_>) -> Result<(), Truncated> {
        reader.take(21)?;
        self.length = usize::from(reader.u8()? & 3) + 1;
        for _ in 0..reader.u8()? {
            reader.u8()?;
            let count = reader.u16()?;
            self.read_sets(reader, count)?;
        }
        Ok(())
    }

    fn read_sets(&mut self, reader: &mut Reader<'_>, count: u16) -> Result<(), Truncated> {
        for _ in 0..count {
            let length = usize::from(reader.u16()?);
            let set = reader.take(length)?;
            if self.sets.len() <= SETS {
                self.sets.extend(START);
                self.sets.extend_from_slice(set);
            }
        }
        Ok(())
    }

    /// Appends a unit with start codes to `out`: a delimiter first, and parameter sets before what needs no other
    /// frame, unless it has its own. `None` if its lengths do not fit.
    pub(super) fn unit(&self, bytes: &[u8], key: bool, out: &mut Vec<u8>) -> Option<()> {
        let parts = self.parts(bytes)?;
        let kinds: Vec<u8> = parts.iter().filter_map(|part| self.kind(part)).collect();
        let (delimiter, sequence): (&[u8], u8) = match self.codec {
            Codec::H264 => (&[9, 0xf0], 7),
            _ => (&[0x46, 1, 0x50], 33),
        };
        if kinds.first() != Some(&self.kind(delimiter)?) {
            out.extend(START);
            out.extend_from_slice(delimiter);
        }
        let mut sets = if key && !kinds.contains(&sequence) { &self.sets[..] } else { &[] };
        for part in parts {
            if self.kind(part) != self.kind(delimiter) {
                out.extend_from_slice(core::mem::take(&mut sets));
            }
            out.extend(START);
            out.extend_from_slice(part);
        }
        Some(())
    }

    fn parts<'a>(&self, mut bytes: &'a [u8]) -> Option<Vec<&'a [u8]>> {
        let mut parts = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_at_checked(self.length)?;
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            let (part, rest) = rest.split_at_checked(length)?;
            if !part.is_empty() {
                parts.push(part);
            }
            bytes = rest;
        }
        Some(parts).filter(|parts| !parts.is_empty())
    }

    /// The type of a NAL unit.
    fn kind(&self, part: &[u8]) -> Option<u8> {
        let first = *part.first()?;
        Some(if self.codec == Codec::H264 { first & 0x1f } else { first >> 1 & 0x3f })
    }
}

/// What is needed to write units of AAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Audio {
    /// As ADTS counts them: 1 is low complexity.
    profile: u8,
    frequency: u8,
    channels: u8,
}

impl Audio {
    /// Reads an AudioSpecificConfig (ISO/IEC 14496-3 §1.6.2.1); `None` of what ADTS cannot say.
    pub(super) fn read(config: &[u8]) -> Option<Self> {
        let &[first, second, ..] = config else { return None };
        let bits = u16::from_be_bytes([first, second]);
        let frequency = (bits >> 7 & 15) as u8;
        let channels = (bits >> 3 & 15) as u8;
        // With SBR (5) or PS (29) said outright, the object inside is of low complexity.
        let kind = match bits >> 11 {
            5 | 29 => 2,
            kind @ 1..=4 => kind as u8,
            _ => return None,
        };
        (frequency < 13 && (1..8).contains(&channels)).then_some(Self { profile: kind - 1, frequency, channels })
    }

    /// Appends a unit with its header (§1.A.2.2) to `out`; `None` if it is too long.
    pub(super) fn unit(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let length = u16::try_from(bytes.len() + 7).ok().filter(|length| *length < 1 << 13)?;
        let [high, low] = length.to_be_bytes();
        out.extend([
            0xff,
            0xf1,
            self.profile << 6 | self.frequency << 2 | self.channels >> 2,
            (self.channels & 3) << 6 | high >> 3,
            high << 5 | low >> 3,
            low << 5 | 0x1f,
            0xfc,
        ]);
        out.extend_from_slice(bytes);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_get_start_codes_a_delimiter_and_their_parameter_sets() {
        let config = [1, 0x64, 0, 30, 0xff, 0xe1, 0, 3, 0x67, 1, 2, 1, 0, 2, 0x68, 3];
        let video = Video::read(Codec::H264, &config).unwrap();
        let mut out = Vec::new();
        video.unit(&[0, 0, 0, 2, 0x65, 9], true, &mut out).unwrap();
        let aud: &[u8] = &[0, 0, 0, 1, 9, 0xf0];
        let sets: &[u8] = &[0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3];
        assert_eq!(out, [aud, sets, &[0, 0, 0, 1, 0x65, 9]].concat());
        out.clear();
        video.unit(&[0, 0, 0, 2, 9, 0x10, 0, 0, 0, 2, 0x41, 9], false, &mut out).unwrap();
        assert_eq!(out, [0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1, 0x41, 9]);
        assert_eq!(video.unit(&[0, 0, 0, 9, 1], false, &mut out), None);
        for cut in 0..config.len() {
            assert_eq!(Video::read(Codec::H264, &config[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn h265_has_three_parameter_sets() {
        let mut config = vec![0; 21];
        config.extend([0xff, 3]);
        for kind in [32_u8, 33, 34] {
            config.extend([kind, 0, 1, 0, 2, kind << 1, 1]);
        }
        let video = Video::read(Codec::H265, &config).unwrap();
        let mut out = Vec::new();
        video.unit(&[0, 0, 0, 3, 19 << 1, 1, 5], true, &mut out).unwrap();
        let sets = [32_u8, 33, 34].map(|kind| [0, 0, 0, 1, kind << 1, 1]).concat();
        assert_eq!(out, [&[0, 0, 0, 1, 0x46, 1, 0x50][..], &sets, &[0, 0, 0, 1, 19 << 1, 1, 5]].concat());
    }

    #[test]
    fn aac_gets_headers_of_adts() {
        // Low complexity, 48 kHz, two channels.
        let audio = Audio::read(&[0x11, 0x90]).unwrap();
        let mut out = Vec::new();
        audio.unit(&[1, 2, 3], &mut out).unwrap();
        assert_eq!(out, [0xff, 0xf1, 0x4c, 0x80, 1, 0x5f, 0xfc, 1, 2, 3]);
        assert_eq!(audio.unit(&[0; 8185], &mut out), None);
        assert_eq!([Audio::read(&[0xff, 0xff]), Audio::read(&[0x11]), Audio::read(&[0x11, 0x80])], [None; 3]);
    }
}
