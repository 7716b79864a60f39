//! Null packets of a transport stream that a sender left out (TR-06-2 §8.3).

use braidcast_core::{Reader, Truncated};

/// A packet of transport stream.
const PACKET: usize = 188;
/// Packets in one payload.
const MOST: usize = 7;
/// The header's extension that says where they were.
const EXTENSION: u16 = 0x5249;
/// A bit of its first byte: null packets were left out.
const LEFT_OUT: u8 = 0x80;
/// A bit of its second byte: packets have 204 bytes.
const LONG: u8 = 0x80;

/// Which packets of the payload in the RTP packet `bytes` were left out, one bit each, the first in 0x40.
pub(crate) fn left_out(bytes: &[u8]) -> u8 {
    read(bytes).ok().flatten().unwrap_or(0)
}

fn read(bytes: &[u8]) -> Result<Option<u8>, Truncated> {
    let mut r = Reader::new(bytes);
    let first = r.u8()?;
    if first & 0x10 == 0 {
        return Ok(None);
    }
    r.take(11 + usize::from(first & 15) * 4)?;
    let (kind, words) = (r.u16()?, r.u16()?);
    let (flags, bits) = (r.u8()?, r.u8()?);
    Ok((kind == EXTENSION && words == 1 && flags & LEFT_OUT != 0 && bits & LONG == 0).then_some(bits))
}

/// Puts the null packets back between those of `payload`; returns `false` if they do not fit.
pub(crate) fn put_back(payload: &[u8], bits: u8, to: &mut Vec<u8>) -> bool {
    let total = payload.len() / PACKET + (bits & 0x7f).count_ones() as usize;
    let mut packets = payload.chunks_exact(PACKET);
    if !packets.remainder().is_empty() || total > MOST {
        return false;
    }
    for at in 0..total {
        if bits >> (6 - at) & 1 == 1 {
            to.extend([0x47, 0x1f, 0xff, 0x10]);
            to.resize(to.len() + PACKET - 4, 0xff);
        } else if let Some(packet) = packets.next() {
            to.extend_from_slice(packet);
        }
    }
    packets.next().is_none() && to.len() == total * PACKET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_packets_stand_where_they_stood() {
        let mut rtp = vec![0x90, 33, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0x52, 0x49, 0, 1, 0x80, 0b101_0000, 0, 0];
        assert_eq!(left_out(&rtp), 0b101_0000);
        let packet = [0x47; PACKET];
        let mut whole = Vec::new();
        assert!(put_back(&packet, 0b101_0000, &mut whole));
        let pids: Vec<_> = whole.chunks(PACKET).map(|packet| packet[1]).collect();
        assert_eq!((pids, whole.len()), (vec![0x1f, 0x47, 0x1f], 3 * PACKET));
        whole.clear();
        // More than seven; a place behind the end; no whole packet.
        assert!(!put_back(&[0x47; 7 * PACKET], 0b100_0000, &mut whole));
        whole.clear();
        assert!(!put_back(&packet, 1, &mut whole) && !put_back(&packet[1..], 0, &mut Vec::new()));
        rtp[16] = 0;
        assert_eq!((left_out(&rtp), left_out(&rtp[..15])), (0, 0));
    }
}
