/// `payloadType` of a recovery point, the same in H.264 (§D.1), H.265 (§D.2.1) and H.266 (H.274).
const RECOVERY_POINT: u32 = 6;

/// Returns `true` if the SEI messages of a NAL unit, whose payload begins here, hold a recovery point. Messages that
/// begin behind the end of `payload` are not seen.
pub(super) fn is_recovery_point(mut payload: &[u8]) -> bool {
    while let Some(kind) = number(&mut payload) {
        if kind == RECOVERY_POINT {
            return true;
        }
        let Some(size) = number(&mut payload) else { return false };
        let Some(rest) = payload.get(size as usize..) else { return false };
        // What is left is rbsp_trailing_bits.
        if rest.len() < 2 {
            return false;
        }
        payload = rest;
    }
    false
}

/// A type or size: 255 for each byte of 255, and the byte behind (H.264 §7.3.2.3.1).
fn number(payload: &mut &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    loop {
        let (byte, rest) = payload.split_first()?;
        *payload = rest;
        value = value.saturating_add(u32::from(*byte));
        if *byte != 255 {
            return Some(value);
        }
    }
}
