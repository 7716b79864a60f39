//! Any sequence of calls, losses, changed packets and forged chunks.

use super::{World, forge};
use arbitrary::{Result, Unstructured};
use braidcast_sctp::{MessagePriority, Priority, Reliability, SendOptions, StreamRequest};
use core::time::Duration;

/// Calls per input at most.
const CALLS: usize = 400;

/// `Err` only when the input is used up.
pub(crate) fn run(input: &mut Unstructured<'_>, protected: bool) -> Result<()> {
    let (settings, honest) = (input.arbitrary()?, input.arbitrary()?);
    let mut world = World::new(settings, protected);
    for _ in 0..CALLS {
        if input.is_empty() {
            break;
        }
        let step = step(&mut world, input, honest);
        world.settle();
        if step.is_err() {
            break;
        }
    }
    if honest {
        world.finish();
    }
    Ok(())
}

fn step(world: &mut World, input: &mut Unstructured<'_>, honest: bool) -> Result<()> {
    let op: u8 = input.arbitrary()?;
    let side = usize::from(op >> 7);
    match op & 31 {
        0 | 1 => world.advance(Duration::from_micros(u64::from(input.arbitrary::<u16>()?))),
        2 => world.advance(Duration::from_millis(u64::from(input.arbitrary::<u16>()?))),
        3 | 4 => world.next_timer(),
        5..=8 => {
            let (len, how) = message(input)?;
            world.send(side, len, how);
        }
        9..=12 => world.deliver_all(),
        13 => world.deliver(side, input.arbitrary::<u8>()?.into()),
        14 => world.drop_one(side, input.arbitrary::<u8>()?.into()),
        15 => world.duplicate(side, input.arbitrary::<u8>()?.into()),
        16 => world.drop_all(side),
        17 => world.recv(side, usize::MAX),
        18 => world.recv(side, 1),
        // If both ends leave, each a path that the other keeps, none is left: applications have to
        // avoid that.
        19 => world.join(if honest { world.client() } else { side }, input.arbitrary::<u8>()?.into()),
        20 => world.leave(if honest { world.client() } else { side }, input.arbitrary::<u8>()?.into()),
        21 => {
            let (stream, rank) = (input.arbitrary()?, input.arbitrary()?);
            let streams = if stream % 5 == 4 { vec![] } else { vec![stream % 4] };
            world.association(side, |association, now| match rank {
                0..200 => association.set_priority(stream, Priority::new(rank)),
                // Refusals are among what may happen.
                200..230 => drop(association.reconfigure(now, StreamRequest::ResetOutgoing(streams))),
                230..250 => drop(association.reconfigure(now, StreamRequest::ResetIncoming(streams))),
                250..253 => drop(association.reconfigure(now, StreamRequest::AddOutgoing(stream % 2))),
                _ => drop(association.reconfigure(now, StreamRequest::AddIncoming(stream % 2))),
            });
        }
        22 if input.ratio(1, 8)? => world.association(side, |association, now| association.shutdown(now)),
        23 if input.ratio(1, 8)? => world.association(side, |association, now| association.abort(now, "enough")),
        24 => world.recv(side, 3),
        25 if honest => world.toggle_marking(side),
        // Only dishonest ones from here on; they all go to end 0.
        25 if !honest => {
            let (at, changes) = (input.arbitrary::<u8>()?, input.arbitrary::<[(u16, u8); 2]>()?);
            world.deliver_changed(at.into(), &changes);
        }
        26 if !honest => {
            let (path, len) = (input.arbitrary()?, usize::from(input.arbitrary::<u8>()?));
            let garbage = input.bytes(len.min(input.len()))?;
            world.inject(path, |buf| buf.extend_from_slice(garbage));
        }
        27 if !honest => world.restart(input.arbitrary()?),
        28 if !honest => world.reverse(),
        29..=31 if !honest => {
            let mut chunks = Vec::new();
            for _ in 0..=input.arbitrary::<u8>()? % 3 {
                forge(input, world.hints(), &mut chunks)?;
            }
            world.inject(input.arbitrary()?, |buf| buf.extend_from_slice(&chunks));
        }
        _ => {}
    }
    Ok(())
}

fn message(input: &mut Unstructured<'_>) -> Result<(usize, SendOptions)> {
    let how: u8 = input.arbitrary()?;
    let len = match how & 3 {
        0 => usize::from(input.arbitrary::<u8>()?),
        1 | 2 => usize::from(input.arbitrary::<u16>()?) % 4000,
        _ => usize::from(input.arbitrary::<u16>()?),
    };
    let reliability = match how >> 2 & 7 {
        0..=3 => Reliability::Reliable,
        4 => Reliability::Lifetime(Duration::from_millis(u64::from(input.arbitrary::<u8>()?))),
        5 => Reliability::Lifetime(Duration::from_micros(u64::from(input.arbitrary::<u16>()?))),
        _ => Reliability::Retransmissions(input.arbitrary::<u16>()? % 4),
    };
    let (stream, unordered) = (u16::from(input.arbitrary::<u8>()? % 5), how & 32 != 0);
    let (priority, ppid) = (MessagePriority::new(how >> 6).unwrap_or_default(), input.arbitrary()?);
    Ok((len, SendOptions { stream, unordered, reliability, ppid, priority, ..SendOptions::default() }))
}
