//! Any bytes from a server that a stream is published to, and any bytes as the stream.
//!
//! Nothing may panic, what is said must stay bounded, and every piece must be one that our other end reads.

use braidcast_core::{Instant, Rng};
use braidcast_gateway::rtmp::{Pack, Publisher, Tag};
use arbitrary::Unstructured;

/// What each byte that comes may have this end say, beside its own handshake and commands.
const EACH: usize = 64;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut publisher = Publisher::new(Rng::from_seed(1), "live", "rtmp://there/live", "key");
    let mut pack = Pack::new();
    let (mut said, mut came) = (publisher.take_output().len(), 0);
    // A handshake that is right, in most cases.
    if input.ratio(7, 8).unwrap_or(false) {
        publisher.receive(&[&[3][..], &[0; 3072]].concat());
        came += 3073;
    }
    let mut now = Instant::ZERO;
    while !input.is_empty() {
        let Ok(len) = input.int_in_range(1..=400) else { break };
        let Ok(piece) = input.bytes(len.min(input.len())) else { break };
        if len % 2 == 0 {
            publisher.receive(piece);
            came += piece.len();
        } else {
            now += core::time::Duration::from_millis(len as u64);
            pack.push(now, piece);
        }
        while let Some(piece) = pack.poll() {
            assert!(Tag::parse(piece.video, piece.time, &piece.payload).is_some(), "{piece:?}");
            came += piece.payload.len();
            publisher.send(&piece);
        }
        if len % 50 == 0 {
            pack.skip();
        }
        said += publisher.take_output().len();
        assert!(said <= 8192 + EACH * came, "{said} bytes for {came}");
        while publisher.poll_reply().is_some() {}
    }
    publisher.finish();
}
