use super::{Bits, Part, Picture, sei};
use crate::unit::Kind;

/// Reads the NAL units of one H.266 stream.
#[derive(Debug, Default)]
pub(crate) struct H266 {
    /// What the frame header said, for the slices behind it.
    header: Option<Picture>,
}

impl H266 {
    /// What a NAL unit says (H.266 §7.3.1, §7.4.2.4.3). `nal` may be its beginning alone.
    ///
    /// The frame header says if there are slices that are predicted, and not from which side: those are P here, and
    /// the order of presentation says which are B.
    pub(super) fn part(&mut self, nal: &[u8]) -> Part {
        let Some(([first, second], payload)) = nal.split_first_chunk() else { return Part::Nothing };
        if *first != 0 {
            return Part::Nothing; // Another layer than the base (nuh_layer_id).
        }
        // NAL unit types (table 5).
        match second >> 3 {
            // VCL: TRAIL, STSA, RADL, RASL, IDR twice, CRA, GDR.
            nal_type @ (0..=3 | 7..=10) => {
                // sh_picture_header_in_slice_header_flag: the slice is all of its frame.
                let begins = payload.first().is_some_and(|byte| byte & 0x80 != 0);
                let header = if begins { picture_header(payload, 1) } else { self.header };
                let picture = match nal_type {
                    7..=9 => Some(Picture { kind: Kind::I, reference: true }),
                    _ => header,
                };
                if begins { Part::First(picture) } else { Part::Rest(picture) }
            }
            // Picture header: it stands in front of the first slice.
            19 => {
                self.header = picture_header(payload, 0);
                Part::Front
            }
            23 if sei::is_recovery_point(payload) => Part::Entry,
            12..=18 | 20 | 23 => Part::Front,
            _ => Part::Nothing,
        }
    }
}

/// Reads the beginning of `picture_header_structure` (§7.3.2.8), `skip` bits into `payload`.
fn picture_header(payload: &[u8], skip: u32) -> Option<Picture> {
    let mut bits = Bits::new(payload);
    bits.bits(skip)?;
    let gdr_or_irap = bits.bit()?;
    let non_reference = bits.bit()?;
    if gdr_or_irap {
        let _gdr = bits.bit()?;
    }
    let inter = bits.bit()?;
    Some(Picture { kind: if inter { Kind::P } else { Kind::I }, reference: !non_reference })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_header_says_what_its_slices_are() {
        let mut h266 = H266::default();
        let picture = |kind, reference| Some(Picture { kind, reference });
        // AUD, VPS, SPS, PPS.
        for nal_type in [20, 14, 15, 16] {
            assert_eq!(h266.part(&[0, nal_type << 3 | 1, 0]), Part::Front);
        }
        // IDR_W_RADL with the frame header inside: gdr_or_irap, reference, no GDR, no inter slices.
        assert_eq!(h266.part(&[0, 0x39, 0b1100_0000]), Part::First(picture(Kind::I, true)));
        // TRAIL with the header inside: non-reference, inter slices.
        assert_eq!(h266.part(&[0, 0x01, 0b1011_0000]), Part::First(picture(Kind::P, false)));
        // The same in two slices behind a frame header of their own.
        assert_eq!(h266.part(&[0, 0x99, 0b0010_0000]), Part::Front);
        assert_eq!(h266.part(&[0, 0x01, 0b0000_0000]), Part::Rest(picture(Kind::P, true)));
        assert_eq!(h266.part(&[5, 0x01, 0b1000_0000]), Part::Nothing);
    }
}
