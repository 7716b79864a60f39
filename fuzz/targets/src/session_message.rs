//! Any bytes as a message of a session: what was read is written back the same.

use braidcast_media::{Kind, Packets};
use braidcast_session::wire::{
    MAX_PACKETS, Message, check_name, write_ask, write_clock, write_feedback, write_given_up, write_hello, write_look,
    write_seen, write_start, write_unit, write_welcome, write_written,
};

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut out = Vec::new();
    match Message::parse(bytes) {
        Ok(Message::Unit { header, runs, bytes }) => {
            let runs: Vec<_> = runs.collect();
            let mut whole = Vec::new();
            bytes.append_to(&mut whole);
            assert_eq!(whole.len(), bytes.len());
            let packets = Packets::new(&runs, &whole, header.kind == Kind::Data).count();
            assert_eq!(packets as u64, runs.iter().map(|run| u64::from(run.count)).sum::<u64>());
            assert!(packets as u64 <= MAX_PACKETS);
            for packed in [false, true] {
                write_unit(&mut out, &header, &runs, &whole, packed);
                let Ok(Message::Unit { header: again, runs: runs_again, bytes: bytes_again }) = Message::parse(&out)
                else {
                    panic!("written, but cannot be read: {header:?} {runs:?} {packed}");
                };
                let mut whole_again = Vec::new();
                bytes_again.append_to(&mut whole_again);
                assert_eq!((again, runs_again.collect::<Vec<_>>(), &whole_again), (header, runs.clone(), &whole));
            }
        }
        Ok(ref message @ (Message::Clock(clock) | Message::End(clock))) => {
            write_clock(&mut out, &clock, matches!(message, Message::End(_)));
            assert_eq!(Message::parse(&out).as_ref(), Ok(message));
        }
        Ok(Message::Feedback(feedback)) => {
            write_feedback(&mut out, &feedback);
            assert_eq!(Message::parse(&out), Ok(Message::Feedback(feedback)));
        }
        Ok(Message::GivenUp(runs)) => {
            write_given_up(&mut out, &runs.clone().collect::<Vec<_>>());
            let Ok(Message::GivenUp(again)) = Message::parse(&out) else {
                panic!("written, but cannot be read: {runs:?}");
            };
            assert!(again.eq(runs));
        }
        Ok(Message::Hello(hello)) => {
            assert!(hello.name.is_empty() || check_name(&hello.name).is_ok());
            write_hello(&mut out, &hello);
            // A size that is not said is written as 0.
            assert_eq!(Message::parse(&out), Ok(Message::Hello(hello)));
        }
        Ok(Message::Welcome(welcome)) => {
            write_welcome(&mut out, &welcome);
            assert_eq!(Message::parse(&out), Ok(Message::Welcome(welcome)));
        }
        Ok(Message::Start(start)) => {
            write_start(&mut out, &start);
            assert_eq!(Message::parse(&out), Ok(Message::Start(start)));
        }
        Ok(Message::Written(written)) => {
            write_written(&mut out, &written);
            assert_eq!(Message::parse(&out), Ok(Message::Written(written)));
        }
        Ok(Message::Ask(ask)) => {
            assert!(ask.name.is_empty() || check_name(&ask.name).is_ok());
            write_ask(&mut out, &ask);
            assert_eq!(Message::parse(&out), Ok(Message::Ask(ask)));
        }
        Ok(Message::Look(number)) => {
            write_look(&mut out, number);
            assert_eq!(Message::parse(&out), Ok(Message::Look(number)));
        }
        Ok(Message::Seen(seen)) => {
            write_seen(&mut out, &seen);
            assert_eq!(Message::parse(&out), Ok(Message::Seen(seen)));
        }
        Err(error) => drop(error.to_string()),
    }
}
