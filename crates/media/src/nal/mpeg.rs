use super::{Part, Picture};
use crate::unit::Kind;

/// What stands behind a start code of MPEG-1 or MPEG-2 video (ISO/IEC 13818-2 §6.2). Each field of a field pair has a
/// frame header, and is a frame here.
pub(super) fn mpeg2(code: &[u8]) -> Part {
    match code {
        // picture_start_code, temporal_reference (10 bits), picture_coding_type (3 bits).
        [0, _, byte, ..] => Part::First(match byte >> 3 & 7 {
            1 => picture(Kind::I),
            2 => picture(Kind::P),
            3 => picture(Kind::B),
            _ => None,
        }),
        [0, ..] => Part::First(None),
        // sequence_header_code and group_start_code.
        [0xb3 | 0xb8, ..] => Part::Front,
        _ => Part::Nothing,
    }
}

/// The same of MPEG-4 part 2 (ISO/IEC 14496-2 §6.2).
pub(super) fn mpeg4(code: &[u8]) -> Part {
    match code {
        // vop_start_code, vop_coding_type (2 bits).
        [0xb6, byte, ..] => Part::First(match byte >> 6 {
            0 => picture(Kind::I),
            2 => picture(Kind::B),
            // A sprite is predicted too.
            _ => picture(Kind::P),
        }),
        [0xb6] => Part::First(None),
        // Video objects and their layers, the sequence, groups of VOPs, the visual object.
        [0..=0x2f | 0xb0 | 0xb3 | 0xb5, ..] => Part::Front,
        _ => Part::Nothing,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it stands among others that cannot be read")]
fn picture(kind: Kind) -> Option<Picture> {
    Some(Picture { kind, reference: kind != Kind::B })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_type_of_mpeg2_is_read_behind_the_temporal_reference() {
        assert_eq!(mpeg2(&[0, 0, 0b0001_1000, 0]), Part::First(picture(Kind::B)));
        assert_eq!(mpeg2(&[0, 0]), Part::First(None));
        assert_eq!([mpeg2(&[0xb8, 0]), mpeg2(&[0xb3, 0]), mpeg2(&[1])], [Part::Front, Part::Front, Part::Nothing]);
    }

    #[test]
    fn the_coding_type_of_mpeg4_stands_first() {
        let kinds = [0x00, 0x40, 0x80, 0xc0].map(|byte| mpeg4(&[0xb6, byte]));
        assert_eq!(kinds, [Kind::I, Kind::P, Kind::B, Kind::P].map(|kind| Part::First(picture(kind))));
        assert_eq!([mpeg4(&[0xb0, 1]), mpeg4(&[0x20, 0]), mpeg4(&[0xb2])], [Part::Front, Part::Front, Part::Nothing]);
    }
}
