//! Each erasure code: its repair symbols made, and a tenth of the sources recovered by them.

use super::{PAYLOAD, noise};
use crate::counted;
use braidcast_fec::raptorq::{self, Repair};
use braidcast_fec::{Code, Combination, DecoderLimits, LinearDecoder};

/// A multiple of the codes' 9 sources in a round.
const SOURCES: u64 = 450;
/// Sources of a block of RaptorQ, and symbols with its repairs. There are few, as it solves the
/// block anew for each repair.
const RAPTORQ: (u16, u16) = (50, 55);

fn sources(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|id| noise(PAYLOAD, id)).collect()
}

/// Returns what lies before the source of this number, as far as a receiver acknowledges: two rounds behind.
const fn acknowledged(id: u64) -> u64 {
    id.saturating_sub(18)
}

/// Makes all repairs. `each` gets how many sources were sent before it, its combination and its bytes.
fn repairs(code: &str, is_counted: bool, mut each: impl FnMut(u64, &Combination, &[u8])) {
    let code: Code = code.parse().expect("a code");
    let sources = sources(SOURCES);
    let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let (mut encoder, mut scratch, mut out) = (code.encoder(), Vec::new(), Vec::new());
    let turn = |work: &mut dyn FnMut()| if is_counted { counted(work) } else { work() };
    for id in 0..SOURCES {
        turn(&mut || {
            encoder.on_acknowledged(acknowledged(id));
            encoder.on_source(id);
        });
        loop {
            let mut found = None;
            turn(&mut || {
                found = encoder.poll_repair();
                if let Some(it) = &found {
                    let covered = &slices[it.first as usize..it.end() as usize];
                    it.encode(covered, &mut scratch, &mut out).expect("a repair that the code has");
                }
            });
            let Some(it) = found else { break };
            each(id + 1, &it, &out);
        }
    }
}

pub(super) fn encode(code: &str) -> u64 {
    let mut made = 0;
    repairs(code, true, |_, _, _| made += 1);
    assert!(made >= SOURCES / 9 - 1, "{made} repairs");
    SOURCES
}

pub(super) fn decode(code: &str) -> u64 {
    let all = sources(SOURCES);
    let mut decoder = LinearDecoder::new(DecoderLimits::default(), 0);
    let (mut next, mut recovered, mut symbol) = (0, 0, Vec::new());
    let lost = |id: u64| id % 9 == 4;
    repairs(code, false, |before, combination, bytes| {
        counted(&mut || {
            while next < before {
                if !lost(next) {
                    decoder.on_source(next, &all[next as usize]);
                }
                next += 1;
            }
            let _ = decoder.on_repair(combination, bytes);
            while decoder.poll_recovered(&mut symbol).is_some() {
                recovered += 1;
            }
            decoder.forget_below(acknowledged(before));
        });
    });
    assert!(recovered >= SOURCES / 9 - 2, "{recovered} recovered");
    SOURCES
}

pub(super) fn encode_raptorq() -> u64 {
    let (k, n) = RAPTORQ;
    let all = sources(u64::from(k));
    let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let mut out = Vec::new();
    counted(&mut || {
        for key in 0..n - k {
            Repair { first: 0, count: k, key }.encode(&slices, &mut out).expect("a repair of this block");
        }
    });
    u64::from(k)
}

pub(super) fn decode_raptorq() -> u64 {
    let (k, n) = RAPTORQ;
    let all = sources(u64::from(k));
    let slices: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let repairs: Vec<(Repair, Vec<u8>)> = (0..n - k)
        .map(|key| {
            let (repair, mut out) = (Repair { first: 0, count: k, key }, Vec::new());
            repair.encode(&slices, &mut out).expect("a repair of this block");
            (repair, out)
        })
        .collect();
    let mut decoder = raptorq::Decoder::new(DecoderLimits::default(), 0);
    let (mut recovered, mut symbol) = (0, Vec::new());
    counted(&mut || {
        for (id, source) in (0..).zip(&all) {
            if id % 20 != 4 {
                decoder.on_source(id, source);
            }
        }
        for (repair, bytes) in &repairs {
            let _ = decoder.on_repair(repair, bytes);
            while decoder.poll_recovered(&mut symbol).is_some() {
                recovered += 1;
            }
        }
    });
    assert_eq!(recovered, 3);
    u64::from(k)
}
