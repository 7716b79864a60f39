use super::{Bits, Part, Picture, sei};
use crate::unit::Kind;

/// Highest `pps_pic_parameter_set_id` plus one (H.265 §7.4.3.3).
const MAX_PPS: usize = 64;

/// Reads the NAL units of one H.265 stream; remembers its parameter sets (PPS), at most 64.
#[derive(Debug)]
pub(crate) struct H265 {
    /// `num_extra_slice_header_bits` of each parameter set (§7.3.2.3.1).
    extra_bits: [Option<u8>; MAX_PPS],
}

impl H265 {
    pub(crate) const fn new() -> Self {
        Self { extra_bits: [None; MAX_PPS] }
    }

    /// What a NAL unit says (§7.3.1, §7.4.2.4.4). `nal` may be its beginning alone.
    ///
    /// The kind is that of the first slice segment: the headers of the others hold an address whose width
    /// depends on the frame size, and encoders do not mix slice types.
    pub(super) fn part(&mut self, nal: &[u8]) -> Part {
        let Some(([first, second], payload)) = nal.split_first_chunk() else { return Part::Nothing };
        if first & 1 != 0 || second >> 3 != 0 {
            return Part::Nothing; // Another layer than the base (nuh_layer_id).
        }
        let begins = payload.first().is_some_and(|byte| byte & 0x80 != 0);
        // NAL unit types (table 7-1).
        match first >> 1 & 0x3f {
            // IRAP: BLA, IDR and CRA.
            16..=23 => {
                let picture = Some(Picture { kind: Kind::I, reference: true });
                if begins { Part::First(picture) } else { Part::Rest(picture) }
            }
            // Even types up to 14 are sub-layer non-reference frames.
            nal_type @ 0..=9 if begins => {
                Part::First(self.slice_kind(payload).map(|kind| Picture { kind, reference: nal_type % 2 == 1 }))
            }
            34 => {
                self.learn_pps(payload);
                Part::Front
            }
            39 if sei::is_recovery_point(payload) => Part::Entry,
            32 | 33 | 35 | 39 | 41..=44 | 48..=55 => Part::Front,
            _ => Part::Nothing,
        }
    }

    fn learn_pps(&mut self, payload: &[u8]) -> Option<()> {
        let mut bits = Bits::new(payload);
        let id = usize::try_from(bits.ue()?).ok()?;
        let _sps = bits.ue()?;
        let _dependent_slice_segments_enabled = bits.bit()?;
        let _output_flag_present = bits.bit()?;
        let extra = bits.bits(3)?;
        *self.extra_bits.get_mut(id)? = u8::try_from(extra).ok();
        Some(())
    }

    /// Returns `slice_type` (table 7-7) from the header of a first slice segment (§7.3.6.1) that is
    /// not of an IRAP.
    fn slice_kind(&self, payload: &[u8]) -> Option<Kind> {
        let mut bits = Bits::new(payload);
        let _first_in_picture = bits.bit()?;
        let extra = (*self.extra_bits.get(usize::try_from(bits.ue()?).ok()?)?)?;
        let _reserved = bits.bits(u32::from(extra))?;
        match bits.ue()? {
            0 => Some(Kind::B),
            1 => Some(Kind::P),
            2 => Some(Kind::I),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_read_with_the_extra_bits_of_their_parameter_set() {
        let mut h265 = H265::new();
        // TRAIL_R, first slice segment, PPS 0, which is not known yet.
        assert_eq!(h265.part(&[0x02, 1, 0b1101_0000]), Part::First(None));
        // PPS 0, SPS 0, no dependent slices, no output flag, 2 extra bits.
        assert_eq!(h265.part(&[0x44, 1, 0b1100_0101, 0x80]), Part::Front);
        // first, pps 0, 2 reserved bits, then slice_type P (010).
        let p = Part::First(Some(Picture { kind: Kind::P, reference: true }));
        assert_eq!(h265.part(&[0x02, 1, 0b1100_0100]), p);
        // TRAIL_N of type B (1).
        let b = Part::First(Some(Picture { kind: Kind::B, reference: false }));
        assert_eq!(h265.part(&[0x00, 1, 0b1100_1000]), b);
        // A further segment, a CRA frame, another layer.
        assert_eq!(h265.part(&[0x02, 1, 0b0100_1000]), Part::Nothing);
        assert_eq!(h265.part(&[0x2a, 1, 0x80]), Part::First(Some(Picture { kind: Kind::I, reference: true })));
        assert_eq!(h265.part(&[0x03, 1, 0x80]), Part::Nothing);
    }
}
