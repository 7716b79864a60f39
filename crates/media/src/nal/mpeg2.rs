use super::{Picture, most_dependent, units};
use crate::unit::Kind;

/// Returns the kind of the coded picture in `stream`, an access unit of MPEG-1 or MPEG-2 video
/// (ISO/IEC 13818-2 §6.2.3).
pub(crate) fn picture(stream: &[u8]) -> Option<Picture> {
    let kind = most_dependent(units(stream).filter_map(|unit| match unit {
        // picture_start_code, temporal_reference (10 bits), picture_coding_type (3 bits).
        [0, _, byte, ..] => match byte >> 3 & 7 {
            1 => Some(Kind::I),
            2 => Some(Kind::P),
            3 => Some(Kind::B),
            _ => None,
        },
        _ => None,
    }))?;
    Some(Picture { kind, reference: kind != Kind::B })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_type_is_read_behind_the_temporal_reference() {
        let stream = [0, 0, 1, 0xb8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0b0001_1000, 0];
        assert_eq!(picture(&stream), Some(Picture { kind: Kind::B, reference: false }));
        assert_eq!(picture(&stream[..8]), None);
    }
}
