/// A format of files: what is behind a loss in it cannot be used, so it is no stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Container {
    /// Matroska or WebM.
    Matroska,
    /// MP4, MOV and their relatives.
    Mp4,
    /// Flash video.
    Flv,
    /// AVI.
    Avi,
    /// Ogg.
    Ogg,
    /// H.264 or H.265 with start codes and without a container, so without times.
    Elementary,
}

impl Container {
    /// The name that people use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matroska => "Matroska",
            Self::Mp4 => "MP4",
            Self::Flv => "FLV",
            Self::Avi => "AVI",
            Self::Ogg => "Ogg",
            Self::Elementary => "video without a container",
        }
    }

    /// The container that begins with `bytes`, by its first marks; `None` if none is known by them.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1a, 0x45, 0xdf, 0xa3, ..] => Some(Self::Matroska),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(Self::Mp4),
            [b'F', b'L', b'V', 1, ..] => Some(Self::Flv),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', ..] => Some(Self::Avi),
            [b'O', b'g', b'g', b'S', 0, ..] => Some(Self::Ogg),
            // Delimiter or sequence parameter set of H.264; of H.265, or its video parameter set.
            [0, 0, 0, 1, 0x09 | 0x27 | 0x67, ..] | [0, 0, 0, 1, 0x40 | 0x42 | 0x46, 0x01, ..] => Some(Self::Elementary),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_known_by_their_first_bytes() {
        let of = |bytes: &[u8]| Container::of(bytes).map(Container::name);
        assert_eq!(of(&[0x1a, 0x45, 0xdf, 0xa3, 1]), Some("Matroska"));
        assert_eq!(of(b"\0\0\0\x20ftypisom"), Some("MP4"));
        assert_eq!(of(b"FLV\x01\x05"), Some("FLV"));
        assert_eq!(of(b"RIFF1234AVI LIST"), Some("AVI"));
        assert_eq!(of(&[0, 0, 0, 1, 0x67, 0x42]), Some("video without a container"));
        assert_eq!([of(b"RIFF1234WAVE"), of(b"G"), of(&[])], [None; 3]);
    }
}
