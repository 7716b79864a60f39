//! The message about what will not come.

use super::unit::{Encoded, number};
use super::{Message, Runs, VERSION, WireError, below_max};
use braidcast_core::{Reader, Writer};
use braidcast_media::Run;

pub(super) const GIVEN_UP: u8 = 8;

pub(super) fn parse_given_up(mut reader: Reader<'_>) -> Result<Message<'_>, WireError> {
    let left = reader.u16()?;
    let at = below_max(reader.u64()?, "packet index")?;
    let runs = Runs { reader: Encoded(reader.rest()), left, at };
    let mut rest = runs.clone();
    while rest.left > 0 {
        let run = rest.next().filter(|run| run.count > 0).ok_or(WireError::Field("run"))?;
        below_max(run.end(), "packet index")?;
    }
    let whole = left > 0 && rest.reader.0.is_empty();
    if whole { Ok(Message::GivenUp(runs)) } else { Err(WireError::Field("length")) }
}

/// Writes into `out`, which is cleared first, which packets of a live stream will not come. Goes to
/// a receiver that asked for it ([`Feedback::early`](super::Feedback::early)).
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Version = 1  |   Type = 8    |        Number of runs         |
/// +---------------+---------------+-------------------------------+
/// |                Index of the first packet (64)                 |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |  runs, as in a unit
/// ```
///
/// `runs` are ascending and disjoint, from 1 to 65,535.
pub fn write_given_up(out: &mut Vec<u8>, runs: &[Run]) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, GIVEN_UP]);
    w.u16(u16::try_from(runs.len()).unwrap_or(u16::MAX));
    let mut at = runs.first().map_or(0, |run| run.first);
    w.u64(at);
    for run in runs {
        number(&mut w, run.first.saturating_sub(at) << 1 | u64::from(run.null));
        number(&mut w, u64::from(run.count));
        at = run.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_will_not_come_is_read_as_written_and_nothing_else_is_read() {
        let runs = [Run { first: 70_000, count: 70_000, null: false }, Run::one(150_000, true)];
        let mut out = Vec::new();
        write_given_up(&mut out, &runs);
        assert_eq!(out[..13], [1, 8, 0, 2, 0, 0, 0, 0, 0, 1, 0x11, 0x70, 0]);
        let Ok(Message::GivenUp(read)) = Message::parse(&out) else { panic!("does not parse") };
        assert_eq!(read.collect::<Vec<_>>(), runs);
        for cut in 0..out.len() {
            assert!(Message::parse(&out[..cut]).is_err(), "{cut} bytes");
        }
        out.push(0);
        assert_eq!(Message::parse(&out), Err(WireError::Field("length")));
        write_given_up(&mut out, &[]);
        assert_eq!(Message::parse(&out), Err(WireError::Field("length")));
        write_given_up(&mut out, &[Run { first: 1, count: 0, null: false }]);
        assert_eq!(Message::parse(&out), Err(WireError::Field("run")));
    }
}
