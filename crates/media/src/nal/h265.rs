use super::{Bits, Picture, most_dependent, units};
use crate::unit::Kind;

/// Highest `pps_pic_parameter_set_id` plus one (H.265 §7.4.3.3).
const MAX_PPS: usize = 64;

/// Reads the coded pictures of one H.265 stream; remembers its picture parameter sets, at most 64.
#[derive(Debug)]
pub(crate) struct H265 {
    /// `num_extra_slice_header_bits` of each parameter set (§7.3.2.3.1).
    extra_bits: [Option<u8>; MAX_PPS],
}

impl H265 {
    pub(crate) const fn new() -> Self {
        Self { extra_bits: [None; MAX_PPS] }
    }

    /// Returns the kind of the coded picture in `stream`, an access unit; `None` if no slice header
    /// can be read.
    ///
    /// Only the first slice segment counts: the headers of the others hold an address whose width
    /// depends on the frame size, and encoders do not mix slice types.
    pub(crate) fn picture(&mut self, stream: &[u8]) -> Option<Picture> {
        let mut reference = false;
        let kind = most_dependent(units(stream).filter_map(|unit| {
            let ([first, _second], payload) = unit.split_first_chunk()?;
            // NAL unit types (table 7-1).
            match first >> 1 & 0x3f {
                34 => {
                    self.learn_pps(payload);
                    None
                }
                16..=23 => {
                    reference = true;
                    Some(Kind::I)
                }
                nal_type @ 0..=9 => {
                    // Even types up to 14 are sub-layer non-reference frames.
                    reference |= nal_type % 2 == 1;
                    self.slice_kind(payload)
                }
                _ => None,
            }
        }))?;
        Some(Picture { kind, reference: reference || kind != Kind::B })
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
        let first_in_picture = bits.bit()?;
        if !first_in_picture {
            return None;
        }
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
