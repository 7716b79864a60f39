//! Pieces of audio and video as FLV has them, and as enhanced RTMP does.

use braidcast_core::{Reader, Truncated};

/// What a piece is coded with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Codec {
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// AAC.
    Aac,
    /// One that is not taken.
    Other,
}

/// What a piece is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Parameter sets, or what an AAC decoder needs to know.
    Config(Vec<u8>),
    /// An access unit; of video with the lengths of its parts before them, and by how many ms it is shown after it is
    /// decoded.
    Unit {
        /// The bytes.
        bytes: Vec<u8>,
        /// It needs no other frame.
        key: bool,
        /// May be negative in files; here at least 0.
        offset: u32,
    },
}

/// A piece of audio or video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tag {
    /// Its codec.
    pub codec: Codec,
    /// Decoding time in ms, from anywhere, modulo 2³².
    pub time: u32,
    /// What it is.
    pub content: Content,
}

impl Tag {
    /// Reads the payload of an audio or video message; `None` of what is neither a unit nor its configuration.
    pub fn parse(video: bool, time: u32, payload: &[u8]) -> Option<Self> {
        let read = if video { Self::video } else { Self::audio };
        let (codec, content) = read(&mut Reader::new(payload)).ok().flatten()?;
        Some(Self { codec, time, content })
    }

    fn video(reader: &mut Reader<'_>) -> Result<Option<(Codec, Content)>, Truncated> {
        let first = reader.u8()?;
        let key = first >> 4 & 7 == 1;
        // Enhanced RTMP: a packet's type in place of the codec's number, and a name of four letters.
        let (codec, kind, has_offset) = if first & 0x80 != 0 {
            let codec = match &reader.array()? {
                b"avc1" => Codec::H264,
                b"hvc1" => Codec::H265,
                _ => Codec::Other,
            };
            match first & 0x0f {
                0 => (codec, 0, false),
                1 => (codec, 1, true),
                // The same without an offset.
                3 => (codec, 1, false),
                _ => return Ok(None),
            }
        } else {
            let codec = match first & 0x0f {
                7 => Codec::H264,
                // Not in any specification, but what many servers and encoders agreed on before enhanced RTMP.
                12 => Codec::H265,
                _ => Codec::Other,
            };
            if codec == Codec::Other {
                return Ok(Some((codec, Content::Config(Vec::new()))));
            }
            (codec, reader.u8()?, true)
        };
        let [a, b, c] = if has_offset { reader.array()? } else { [0; 3] };
        // 24 bits with a sign.
        let offset = (i32::from_be_bytes([a, b, c, 0]) >> 8).max(0).unsigned_abs();
        let bytes = reader.rest().to_vec();
        Ok(match kind {
            0 => Some((codec, Content::Config(bytes))),
            1 => Some((codec, Content::Unit { bytes, key, offset })),
            _ => None,
        })
    }

    fn audio(reader: &mut Reader<'_>) -> Result<Option<(Codec, Content)>, Truncated> {
        let first = reader.u8()?;
        let (codec, kind) = match first >> 4 {
            10 => (Codec::Aac, reader.u8()?),
            // Enhanced RTMP.
            9 => (if &reader.array()? == b"mp4a" { Codec::Aac } else { Codec::Other }, first & 0x0f),
            _ => return Ok(Some((Codec::Other, Content::Config(Vec::new())))),
        };
        let bytes = reader.rest().to_vec();
        Ok(match kind {
            0 => Some((codec, Content::Config(bytes))),
            1 => Some((codec, Content::Unit { bytes, key: false, offset: 0 })),
            _ => None,
        })
    }
}
