//! AV1: open bitstream units (AV1 §5.3) behind start codes, as MPEG-TS carries them by AOM's
//! specification, or with their sizes, as other multiplexers write them.

use super::{Bits, Picture};
use crate::unit::Kind;

/// Types of open bitstream units (§6.2.2).
const SEQUENCE_HEADER: u8 = 1;
const FRAME_HEADER: u8 = 3;
const FRAME: u8 = 6;

/// Frame types (§6.8.2).
const KEY: u32 = 0;
const INTRA_ONLY: u32 = 2;
const SWITCH: u32 = 3;
/// The frame says which of a tool's settings it uses (`SELECT_SCREEN_CONTENT_TOOLS`, `SELECT_INTEGER_MV`).
const SELECT: u32 = 2;

/// Reads the temporal units of one AV1 stream; remembers its sequence header.
#[derive(Debug, Default)]
pub(crate) struct Av1 {
    sequence: Option<Sequence>,
}

/// What a frame header cannot be read without (§5.5).
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    still: bool,
    decoder_model: bool,
    /// Bits of a presentation time, if frames that are shown have one.
    time_bits: u32,
    /// Bits of a frame's number, 0 if frames have none.
    id_bits: u32,
    screen_content_tools: u32,
    integer_mv: u32,
    order_hint_bits: u32,
}

impl Av1 {
    /// Returns the kind of the temporal unit that begins with `stream`; `None` if no frame header can
    /// be read. A key frame is I, everything else P: temporal units are shown in their order.
    pub(crate) fn picture(&mut self, stream: &[u8]) -> Option<Picture> {
        let mut whole: Option<Picture> = None;
        let mut take = |this: &mut Self, header: u8, bits: Bits<'_>| {
            match header >> 3 & 0x0f {
                SEQUENCE_HEADER => this.sequence = Sequence::read(bits),
                FRAME_HEADER | FRAME => {
                    let picture = this.sequence.and_then(|sequence| sequence.frame(bits));
                    // One that is a key frame makes an entry of the whole.
                    let with =
                        |it: Picture, other: Picture| Picture { kind: it.kind.min(other.kind), ..it.with(other) };
                    whole = match (whole, picture) {
                        (Some(whole), Some(picture)) => Some(with(whole, picture)),
                        (whole, picture) => whole.or(picture),
                    };
                }
                _ => {}
            }
            Some(())
        };
        if stream.starts_with(&[0, 0, 1]) || stream.starts_with(&[0, 0, 0, 1]) {
            let starts = memchr::memmem::find_iter(stream, &[0, 0, 1]).map(|at| at + 3);
            for unit in starts.filter_map(|at| stream.get(at..)) {
                let Some((header, payload)) = obu(unit) else { continue };
                take(self, header, Bits::new(payload));
            }
            return whole;
        }
        let mut rest = stream;
        while let Some((header, payload)) = obu(rest) {
            if header & 2 == 0 {
                take(self, header, Bits::plain(payload));
                break; // Without a size it reaches to the end.
            }
            let extension = usize::from(header >> 2 & 1);
            let Some((size, behind)) = rest.get(1 + extension..).and_then(leb128) else { break };
            take(self, header, Bits::plain(behind.get(..size).unwrap_or(behind)));
            let Some(next) = behind.get(size..) else { break };
            rest = next;
        }
        whole
    }
}

/// The header byte of an open bitstream unit, and what stands behind its header (§5.3.2); `None` if it cannot be one.
fn obu(unit: &[u8]) -> Option<(u8, &[u8])> {
    let (&header, rest) = unit.split_first()?;
    if header & 0x81 != 0 {
        return None; // The forbidden bit, and the reserved one.
    }
    let rest = rest.get(usize::from(header >> 2 & 1)..)?;
    let rest = if header & 2 == 0 { rest } else { leb128(rest)?.1 };
    Some((header, rest))
}

/// A number, seven bits a byte, lowest first (§4.10.5), and what stands behind it.
fn leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let length = bytes.iter().take(4).position(|byte| byte & 0x80 == 0)? + 1;
    let value = bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    Some((value, &bytes[length..]))
}

impl Sequence {
    /// `sequence_header_obu` (§5.5.1).
    fn read(mut bits: Bits<'_>) -> Option<Self> {
        let mut it = Self::default();
        let _profile = bits.bits(3)?;
        let _still_picture = bits.bit()?;
        it.still = bits.bit()?;
        if it.still {
            return Some(it);
        }
        it.operating_points(&mut bits)?;
        let (width, height) = (bits.bits(4)? + 1, bits.bits(4)? + 1);
        let _size = (bits.bits(width)?, bits.bits(height)?);
        if bits.bit()? {
            it.id_bits = bits.bits(4)? + bits.bits(3)? + 3;
        }
        // Superblocks, filter_intra, intra_edge_filter, interintra, masked, warped, dual_filter.
        let _tools = bits.bits(7)?;
        let order_hint = bits.bit()?;
        if order_hint {
            let _jnt_comp_and_ref_frame_mvs = bits.bits(2)?;
        }
        it.screen_content_tools = if bits.bit()? { SELECT } else { bits.bits(1)? };
        it.integer_mv = match it.screen_content_tools {
            0 => SELECT,
            _ if bits.bit()? => SELECT,
            _ => bits.bits(1)?,
        };
        if order_hint {
            it.order_hint_bits = bits.bits(3)? + 1;
        }
        Some(it)
    }

    /// From `timing_info_present_flag` to the last operating point.
    fn operating_points(&mut self, bits: &mut Bits<'_>) -> Option<()> {
        let mut delay_bits = 0;
        if bits.bit()? {
            let _tick_and_scale = (bits.bits(32)?, bits.bits(32)?);
            let equal_interval = bits.bit()?;
            if equal_interval {
                let _ticks = bits.ue()?; // uvlc() is ue(v).
            }
            self.decoder_model = bits.bit()?;
            if self.decoder_model {
                delay_bits = bits.bits(5)? + 1;
                let _tick = bits.bits(32)?;
                let _removal_bits = bits.bits(5)? + 1;
                let time_bits = bits.bits(5)? + 1;
                self.time_bits = if equal_interval { 0 } else { time_bits };
            }
        }
        let display_delay = bits.bit()?;
        for _ in 0..=bits.bits(5)? {
            let _idc = bits.bits(12)?;
            if bits.bits(5)? > 7 {
                let _tier = bits.bit()?;
            }
            if self.decoder_model && bits.bit()? {
                let _delays = (bits.bits(delay_bits)?, bits.bits(delay_bits)?, bits.bit()?);
            }
            if display_delay && bits.bit()? {
                let _delay = bits.bits(4)?;
            }
        }
        Some(())
    }

    /// The beginning of `uncompressed_header` (§5.9.2), up to `refresh_frame_flags`.
    fn frame(&self, mut bits: Bits<'_>) -> Option<Picture> {
        if self.still {
            return Some(Picture { kind: Kind::I, reference: true });
        }
        if bits.bit()? {
            // show_existing_frame: it shows what there is.
            return Some(Picture { kind: Kind::P, reference: false });
        }
        let (frame_type, shown) = (bits.bits(2)?, bits.bit()?);
        if frame_type == KEY {
            return Some(Picture { kind: Kind::I, reference: true });
        }
        let refreshes = self.refresh_flags(&mut bits, frame_type, shown);
        Some(Picture { kind: Kind::P, reference: refreshes != Some(0) })
    }

    /// `refresh_frame_flags` of a frame that is no key frame; `None` if it has none, or cannot be read.
    fn refresh_flags(&self, bits: &mut Bits<'_>, frame_type: u32, shown: bool) -> Option<u32> {
        if frame_type == SWITCH {
            return None; // All are refreshed.
        }
        if shown {
            let _time = bits.bits(self.time_bits)?;
        } else {
            let _showable = bits.bit()?;
        }
        let error_resilient = bits.bit()?;
        let _disable_cdf_update = bits.bit()?;
        let tools = if self.screen_content_tools == SELECT { bits.bits(1)? } else { self.screen_content_tools };
        if tools > 0 && self.integer_mv == SELECT {
            let _force_integer_mv = bits.bit()?;
        }
        let _id = bits.bits(self.id_bits)?;
        let _size_override = bits.bit()?;
        let _order_hint = bits.bits(self.order_hint_bits)?;
        if frame_type != INTRA_ONLY && !error_resilient {
            let _primary_ref_frame = bits.bits(3)?;
        }
        if self.decoder_model && bits.bit()? {
            return None; // Times of removal by operating point.
        }
        bits.bits(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits, as text of zeros and ones, into bytes.
    fn bytes(bits: &str) -> Vec<u8> {
        let bits: Vec<u8> = bits.bytes().filter(|it| *it != b' ').map(|it| it - b'0').collect();
        bits.chunks(8).map(|chunk| chunk.iter().fold(0, |byte, bit| byte << 1 | bit) << (8 - chunk.len())).collect()
    }

    fn sized(header: u8, payload: &[u8]) -> Vec<u8> {
        [&[header | 2, payload.len() as u8][..], payload].concat()
    }

    /// Main profile, no timing, one operating point of level 8 and tier 0, 16 x 16, order hints of 7 bits.
    const SEQUENCE: &str = "000 0 0 0 0 00000 000000000000 01000 0 0011 0011 1111 1111 0 0000000 1 00 1 1 110";

    fn unit(frame: &str) -> Vec<u8> {
        [sized(0x10, &[]), sized(0x08, &bytes(SEQUENCE)), sized(0x30, &bytes(frame))].concat()
    }

    #[test]
    fn frames_say_their_kind_and_which_references_they_replace() {
        let picture = |kind, reference| Some(Picture { kind, reference });
        let mut av1 = Av1::default();
        assert_eq!(av1.picture(&unit("0 00 1 0000")), picture(Kind::I, true));
        // Inter, shown, no error resilience, cdf, no screen content, size, order hint, primary, refresh.
        let inter = |refresh: &str| format!("0 01 1 0 0 0 0 0000001 000 {refresh}");
        assert_eq!(av1.picture(&unit(&inter("00000100"))), picture(Kind::P, true));
        assert_eq!(av1.picture(&unit(&inter("00000000"))), picture(Kind::P, false));
        assert_eq!(av1.picture(&unit("1 000")), picture(Kind::P, false), "shows an existing frame");
        assert_eq!(av1.picture(&unit("0 11 1")), picture(Kind::P, true), "a switch frame");
    }

    #[test]
    fn units_stand_behind_start_codes_too() {
        let start = [0, 0, 1];
        let sequence = [&[0x08][..], &bytes(SEQUENCE)].concat();
        let stream = [&start[..], &[0x10], &start, &sequence, &start, &[0x30, 0x10]].concat();
        assert_eq!(Av1::default().picture(&stream), Some(Picture { kind: Kind::I, reference: true }));
        // H.264 under a wrong name.
        assert_eq!(Av1::default().picture(&[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65, 0x88, 0x80]), None);
        assert_eq!(Av1::default().picture(&[0xff; 20]), None);
    }
}
