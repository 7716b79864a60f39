//! Any datagrams at any times as MPEG-TS in RTP: what comes out came in, once, in the order of its numbers, and no
//! later than 20 ms after it could.

use braidcast_core::Instant;
use braidcast_gateway::rtp::{Header, Packet, Receiver};
use core::time::Duration;
use arbitrary::{Result, Unstructured};

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut rx, mut now, mut sent) = (Receiver::new(), Instant::ZERO, 0_u64);
    let (mut delivered, mut buf) = (0, Vec::new());
    while !u.is_empty() {
        now += Duration::from_millis(u.int_in_range(0..=30)?);
        if u.ratio(1, 8)? {
            let len = u.int_in_range(0..=60)?;
            let bytes = u.bytes(len.min(u.len()))?;
            let _ = Packet::parse(bytes);
            rx.take(now, bytes);
        } else {
            // Mostly near to each other, at times far.
            let sequence = if u.ratio(1, 16)? { u.arbitrary()? } else { u.arbitrary::<u8>()?.into() };
            let header = Header::of_ts(sequence, 0, u.int_in_range(0..=2)?);
            let mut packet = Vec::new();
            header.write(&mut packet);
            packet.extend([sent as u8; 188]);
            sent += 1;
            rx.take(now, &packet);
        }
        while let Some(came) = rx.deliver(now, &mut buf) {
            assert!(came <= now && buf.len() == 188);
            delivered += 1;
        }
        assert!(rx.timeout().is_none_or(|at| at > now && at <= now + Duration::from_millis(20)));
    }
    let counts = rx.counts();
    assert!(delivered <= counts.packets && counts.packets <= sent);
    Ok(())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = run(&mut Unstructured::new(bytes));
}
