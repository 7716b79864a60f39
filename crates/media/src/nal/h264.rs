use super::{Bits, Part, Picture, sei};
use crate::unit::Kind;

/// What a NAL unit of H.264 says (§7.3.1, §7.4.1.2.3). `nal` may be its beginning alone.
///
/// Each field is a frame of its own, as in the standard: the second field of an I frame may be P, and only the
/// first one lets decoding begin.
pub(super) fn part(nal: &[u8]) -> Part {
    let Some((header, payload)) = nal.split_first() else { return Part::Nothing };
    // Types of table 7-1.
    match header & 0x1f {
        // Slices: 1 plain, 2 data partition A, 5 IDR. `first_mb_in_slice` 0 is the single bit 1.
        1 | 2 | 5 => {
            let picture = slice_kind(payload).map(|kind| Picture { kind, reference: header >> 5 & 3 != 0 });
            if payload.first().is_some_and(|byte| byte & 0x80 != 0) {
                Part::First(picture)
            } else {
                Part::Rest(picture)
            }
        }
        6 if sei::is_recovery_point(payload) => Part::Entry,
        6..=9 | 14..=18 => Part::Front,
        _ => Part::Nothing,
    }
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
    fn slices_say_their_kind_and_if_others_need_them() {
        let picture = |kind, reference| Some(Picture { kind, reference });
        assert_eq!(part(&[0x65, 0b1000_1000, 0x80]), Part::First(picture(Kind::I, true)));
        assert_eq!(part(&[0x01, 0b1010_0000]), Part::First(picture(Kind::B, false)));
        // first_mb_in_slice 1; a P slice of which nothing is predicted, as temporal layers have it.
        assert_eq!(part(&[0x01, 0b0101_0000]), Part::Rest(picture(Kind::P, false)));
        assert_eq!(part(&[0x41]), Part::Rest(None));
        assert_eq!([part(&[0x67, 1, 2]), part(&[9, 0xf0]), part(&[12])], [Part::Front, Part::Front, Part::Nothing]);
    }

    #[test]
    fn a_recovery_point_is_an_entry() {
        // Buffering period of one byte, then recovery_frame_cnt 29.
        assert_eq!(part(&[6, 0, 1, 0x80, 6, 2, 0x0f, 0x40, 0x80]), Part::Entry);
        assert_eq!(part(&[6, 5, 200, 1, 2, 3]), Part::Front);
    }
}
