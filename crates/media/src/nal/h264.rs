use super::{Bits, Picture, most_dependent, units};
use crate::unit::Kind;

/// Returns the kind of the coded picture in `stream`, an access unit of H.264 (§7.3); `None` if no
/// slice header can be read.
pub(crate) fn picture(stream: &[u8]) -> Option<Picture> {
    let mut reference = false;
    let kind = most_dependent(units(stream).filter_map(|unit| {
        let (header, payload) = unit.split_first()?;
        // Slices: 1 plain, 2 data partition A, 5 IDR (table 7-1).
        if !matches!(header & 0x1f, 1 | 2 | 5) {
            return None;
        }
        reference |= header >> 5 & 3 != 0;
        slice_kind(payload)
    }))?;
    Some(Picture { kind, reference: reference || kind != Kind::B })
}

/// `slice_type` (table 7-6) from a slice header (§7.3.3).
fn slice_kind(payload: &[u8]) -> Option<Kind> {
    let mut bits = Bits::new(payload);
    let _first_mb_in_slice = bits.ue()?;
    match bits.ue()? % 5 {
        0 | 3 => Some(Kind::P),
        1 => Some(Kind::B),
        _ => Some(Kind::I),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_b_slice_makes_a_b_picture() {
        let i_slice = [0, 0, 1, 0x65, 0b1000_1000, 0x80];
        let b_slice = [0, 0, 1, 0x01, 0b1010_0000];
        assert_eq!(picture(&i_slice), Some(Picture { kind: Kind::I, reference: true }));
        assert_eq!(picture(&b_slice), Some(Picture { kind: Kind::B, reference: false }));
        let both = [&i_slice[..], &b_slice[..]].concat();
        assert_eq!(picture(&both).map(|picture| picture.kind), Some(Kind::B));
        assert_eq!(picture(&[0, 0, 1, 0x67, 1, 2, 3]), None);
    }
}
