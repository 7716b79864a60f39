//! Any bytes as a message of a session: what was read is written back the same.
#![no_main]

use braidcast_media::{Kind, Packets};
use braidcast_session::wire::{MAX_PACKETS, Message, write_clock, write_feedback, write_unit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut out = Vec::new();
    match Message::parse(bytes) {
        Ok(Message::Unit { header, runs, bytes }) => {
            let runs: Vec<_> = runs.collect();
            let packets = Packets::new(&runs, bytes, header.kind == Kind::Data).count();
            assert_eq!(packets as u64, runs.iter().map(|run| u64::from(run.count)).sum::<u64>());
            assert!(packets as u64 <= MAX_PACKETS);
            write_unit(&mut out, &header, &runs, bytes);
            let Ok(Message::Unit { header: again, runs: runs_again, bytes: bytes_again }) = Message::parse(&out) else {
                panic!("written, but cannot be read: {header:?} {runs:?}");
            };
            assert_eq!((again, runs_again.collect::<Vec<_>>(), bytes_again), (header, runs, bytes));
        }
        Ok(message @ (Message::Clock(clock) | Message::End(clock))) => {
            write_clock(&mut out, &clock, matches!(message, Message::End(_)));
            assert_eq!(Message::parse(&out), Ok(message));
        }
        Ok(Message::Feedback(feedback)) => {
            write_feedback(&mut out, &feedback);
            assert_eq!(Message::parse(&out), Ok(Message::Feedback(feedback)));
        }
        Err(error) => drop(error.to_string()),
    }
});
