use braidcast_core::{Reader, Truncated};

/// The header of a PES packet (ISO/IEC 13818-1 §2.4.3.6), as far as units need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PesHeader {
    /// Bytes of the whole PES packet; `None` if it ends where the next one starts.
    pub(crate) length: Option<usize>,
    /// Bytes before the elementary stream.
    pub(crate) header: usize,
    pub(crate) pts: Option<u64>,
    pub(crate) dts: Option<u64>,
}

impl PesHeader {
    /// Reads the header at the start of `payload`; `None` if it is none or is cut short.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        Self::read(Reader::new(payload)).ok().flatten()
    }

    fn read(mut reader: Reader<'_>) -> Result<Option<Self>, Truncated> {
        if reader.array()? != [0, 0, 1] {
            return Ok(None);
        }
        let stream_id = reader.u8()?;
        let length = match reader.u16()? {
            0 => None,
            n => Some(6 + usize::from(n)),
        };
        // Stream ids without the optional header: program map, padding, private 2, ECM, EMM, DSM-CC, H.222.1 E,
        // directory.
        if matches!(stream_id, 0xbc | 0xbe | 0xbf | 0xf0 | 0xf1 | 0xf2 | 0xf8 | 0xff) {
            return Ok(Some(Self { length, header: 6, pts: None, dts: None }));
        }
        let (_marks, flags, rest) = (reader.u8()?, reader.u8()?, reader.u8()?);
        let pts = if flags & 0x80 != 0 { Some(timestamp(reader.array()?)) } else { None };
        let dts = if flags & 0xc0 == 0xc0 { Some(timestamp(reader.array()?)) } else { None };
        Ok(Some(Self { length, header: 9 + usize::from(rest), pts, dts }))
    }
}

/// 33 bits, spread over five bytes between marker bits.
fn timestamp([a, b, c, d, e]: [u8; 5]) -> u64 {
    let [a, b, c, d, e] = [a, b, c, d, e].map(u64::from);
    (a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_a_captured_header() {
        // The first video PES of tests/clips/h264.ts: ffprobe shows pts 133200, dts 126000.
        let bytes = [0, 0, 1, 0xe0, 0, 0, 0x80, 0xc0, 0x0a, 0x31, 0, 0x09, 0x10, 0xa1, 0x11, 0, 0x07, 0xd8, 0x61];
        let expected = PesHeader { length: None, header: 19, pts: Some(133_200), dts: Some(126_000) };
        assert_eq!(PesHeader::parse(&bytes), Some(expected));
        assert_eq!(PesHeader::parse(&bytes[..12]), None);
    }
}
