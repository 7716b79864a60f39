//! Any bytes on a connection of RTMP, in pieces of any size, and what it carries as MPEG-TS: whole packets come out, no
//! more than came in and a header for each of its units, whoever is accepted.

use braidcast_core::{Instant, Rng};
use braidcast_gateway::rtmp::{Connection, Event, Remux, Tag};
use core::time::Duration;
use arbitrary::{Result, Unstructured};

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (mut connection, mut remux) = (Connection::new(Rng::from_seed(1)), Remux::new());
    let (mut now, mut out, mut total) = (Instant::ZERO, Vec::new(), 0);
    if u.ratio(7, 8)? {
        // Past the handshake, which random bytes seldom are.
        connection.receive(&[3]);
        connection.receive(&[0; 2 * 1536]);
    }
    while !u.is_empty() {
        now += Duration::from_millis(u.int_in_range(0..=60)?);
        let len = u.int_in_range(1..=400)?;
        let bytes = u.bytes(len.min(u.len()))?;
        let Some(&first) = bytes.first() else { break };
        total += bytes.len();
        connection.receive(bytes);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Asks(_) if bytes.len() % 2 == 0 => connection.accept(),
                Event::Asks(_) => connection.refuse("no"),
                Event::Tag(tag) => remux.push(now, &tag, &mut out),
                Event::Ended | Event::Failed(_) => {}
            }
        }
        if let Some(tag) = Tag::parse(first & 1 == 0, bytes.len() as u32, bytes) {
            remux.push(now, &tag, &mut out);
        }
        assert!(out.len() % 188 == 0 && out.iter().step_by(188).all(|byte| *byte == 0x47));
        // Parameter sets of 4 KiB, tables and two packets that are not full, for each piece; start
        // codes are longer than the lengths in their place.
        assert!(out.len() <= 400 * (4096 + 6 * 188) + 4 * total);
        out.clear();
        assert!(connection.take_output().len() <= 400 * 400 + 4096);
    }
    Ok(())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = run(&mut Unstructured::new(bytes));
}
