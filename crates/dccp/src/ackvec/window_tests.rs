use super::*;
use crate::wire::{Kind, Options};
use proptest::prelude::*;
use std::collections::BTreeMap;

const fn s(n: u64) -> Seq {
    Seq::new(n)
}

fn emitted(window: &mut AckWindow, seq: u64) -> Vec<u8> {
    let mut buf = Vec::new();
    let newest = window.newest;
    let room = window.emitted_len();
    window.emit(s(seq), newest, true, &mut Writer::new(&mut buf));
    assert!(buf.len() <= room, "{} bytes where {room} were announced", buf.len());
    buf
}

/// The buffer of RFC 4340 appendix A: packets 0 to 10, as (state, run length − 1).
fn example() -> AckWindow {
    let mut window = AckWindow::default();
    window.insert(s(0), false, false);
    window.insert(s(1), true, false);
    for n in 2..=6 {
        window.insert(s(n), false, n == 4);
    }
    window.insert(s(10), false, false);
    window
}

/// Found by the fuzzer: a packet that waits in the reordering buffer, and whose data was discarded.
#[test]
fn a_drop_is_not_told_before_its_packet_is_acknowledged() {
    let mut window = example();
    let plain = emitted(&mut window, 60);
    window.dropped(s(12), DropCode::Corrupt);
    assert_eq!(emitted(&mut window, 61), plain);
    window.insert(s(12), false, false);
    let told = emitted(&mut window, 62);
    assert_eq!(told[told.len() - 3..], [40, 3, 0x80 | 3 << 4], "{told:?}");
}

#[test]
fn arrivals_change_the_vector_as_appendix_a_1_shows() {
    let mut window = example();
    assert_eq!(emitted(&mut window, 60), [39, 7, 0, 192 | 2, 4, 64, 0]);
    window.insert(s(11), true, true);
    assert_eq!(emitted(&mut window, 61), [39, 8, 64, 0, 192 | 2, 4, 64, 0], "a mark destroys the nonce");
    window.insert(s(8), false, true);
    assert_eq!(emitted(&mut window, 62), [38, 10, 64, 0, 192, 0, 192, 4, 64, 0]);
}

#[test]
fn an_acknowledged_acknowledgement_clears_what_it_told() {
    let mut window = AckWindow::default();
    for n in 0..=3 {
        window.insert(s(n), false, n == 1);
    }
    assert_eq!(emitted(&mut window, 59), [39, 3, 3]);
    for n in [4, 5, 6, 10] {
        window.insert(s(n), false, n == 5);
    }
    emitted(&mut window, 60);
    window.acknowledged(s(59));
    // A.3: 4 to 6 are left of the run, and of the nonces that of 5.
    assert_eq!(emitted(&mut window, 61), [39, 5, 0, 192 | 2, 2]);
    window.insert(s(9), false, false);
    window.acknowledged(s(60));
    assert_eq!(emitted(&mut window, 62), [38, 4, 0, 0]);
}

#[test]
fn dropped_data_is_told_until_the_sender_knows() {
    let mut window = AckWindow::default();
    for n in 90..=100 {
        window.insert(s(n), false, false);
    }
    for n in [99, 94, 93, 92] {
        window.dropped(s(n), DropCode::ReceiveBuffer);
    }
    assert_eq!(emitted(&mut window, 1), [38, 3, 10, 40, 6, 0, 160, 3, 162]);
    window.acknowledged(s(1));
    window.insert(s(101), false, false);
    assert_eq!(emitted(&mut window, 2), [38, 3, 1]);
}

proptest! {
    /// Whatever comes in whatever order: the vector says what has come, the echo is right, and what it no longer says
    /// had been told in an acknowledgement that arrived.
    #[test]
    fn the_vector_tells_what_came(
        steps in prop::collection::vec((0_u64..40, any::<bool>(), any::<bool>(), 0_u8..8), 1..150)
    ) {
        let (mut window, mut model) = (AckWindow::default(), BTreeMap::new());
        let (mut known, mut sent) = (BTreeMap::<u64, PacketState>::new(), Vec::<(u64, Vec<u8>, u64)>::new());
        let mut base = 1000_u64;
        for (n, (offset, marked, nonce, ack)) in steps.into_iter().enumerate() {
            let seq = base + offset;
            base += offset / 8;
            let oldest = *model.keys().next().unwrap_or(&seq);
            if seq >= oldest && !model.contains_key(&seq) && seq > window.newest.get().saturating_sub(window.len) {
                window.insert(s(seq), marked, nonce);
                model.insert(seq, (marked, nonce));
            }
            let bytes = emitted(&mut window, n as u64);
            let newest = window.newest.get();
            let options = Options::new(&bytes, Kind::Ack { ack: newest });
            let mut at = newest;
            for vector in options.ack_vectors() {
                let mut parity = false;
                for run in vector.runs() {
                    for _ in 0..run.len {
                        let came = model.get(&at).copied();
                        let state = match came {
                            None => PacketState::Missing,
                            Some((true, _)) => PacketState::Marked,
                            Some((false, _)) => PacketState::Received,
                        };
                        prop_assert_eq!(run.state, state, "packet {}", at);
                        parity ^= came == Some((false, true));
                        at -= 1;
                    }
                }
                prop_assert_eq!(vector.nonce, parity);
            }
            // All older ones that came are known to the sender.
            for (seq, _) in model.range(..=at) {
                prop_assert!(known.get(seq).is_some_and(|state| state.arrived()), "packet {} was forgotten", seq);
            }
            sent.push((n as u64, bytes, newest));
            if ack == 0 {
                let (seq, bytes, newest) = sent[sent.len() / 2].clone();
                let mut at = newest;
                for run in Options::new(&bytes, Kind::Ack { ack: newest }).ack_vector_runs() {
                    for _ in 0..run.len {
                        if run.state.arrived() {
                            known.insert(at, run.state);
                        }
                        at -= 1;
                    }
                }
                window.acknowledged(s(seq));
            }
        }
    }
}

/// An overrun receiver on a lossy path, whose sender acknowledges no acknowledgement.
#[test]
fn what_does_not_fit_into_a_header_is_left_out() {
    let mut window = AckWindow::default();
    for n in 0..40_000 {
        if n % 53 != 0 {
            window.insert(s(n), false, false);
        }
        if n % 150 == 1 {
            window.dropped(s(n), DropCode::ReceiveBuffer);
        }
    }
    assert_eq!(window.dropped.len(), AckWindow::MAX_DROPPED);
    let bytes = emitted(&mut window, 50_000);
    assert!(bytes.len() > 765 && bytes.len() <= AckWindow::MAX_LEN, "{} bytes", bytes.len());
    assert_eq!(
        Options::new(&bytes, Kind::Ack { ack: 39_999 }).known().count(),
        4,
        "three vectors and what was dropped last"
    );
}
