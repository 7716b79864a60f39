use super::*;
use crate::wire::{Kind, Opt, Options};
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);

/// One end, and the numbers of its packets.
struct End {
    features: Negotiation,
    next: u64,
    got: u64,
}

fn ends() -> [End; 2] {
    [false, true].map(|is_server| End { features: Negotiation::new(is_server), next: 1, got: 0 })
}

impl End {
    /// The options of the next packet, and its number.
    fn send(&mut self, now: Instant) -> (u64, u64, Vec<u8>) {
        let mut buf = Vec::new();
        self.features.emit(now, Seq::new(self.next), RTT, false, 1000, &mut Writer::new(&mut buf));
        self.next += 1;
        (self.next - 1, self.got, buf)
    }

    fn receive(&mut self, packet: &(u64, u64, Vec<u8>)) -> Result<(), Reset> {
        let (seq, ack, bytes) = packet;
        self.got = self.got.max(*seq);
        let ack = Seq::new(*ack);
        let mut any = false;
        for listed in Options::new(bytes, Kind::Ack { ack: 0 }).iter().map(|it| it.expect("sound")) {
            let Some(Opt::Feature(option)) = listed.parse() else { panic!("{listed:?}") };
            self.features.receive(Seq::new(*seq), Some(ack), &option, listed.mandatory)?;
            any = true;
        }
        if any {
            self.features.end_of_packet(Seq::new(*seq));
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Reset> {
        self.receive(&(self.got + 1, self.next - 1, bytes.to_vec()))
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn list(values: &[u8]) -> Preferences {
    Preferences::new(values)
}

/// The first example of RFC 4340 §6.5.
#[test]
fn the_server_has_its_way_among_what_the_client_takes() {
    let [mut client, mut server] = ends();
    client.features.prefer(Place::Remote, number::CCID, list(&[4, 3, 1]));
    server.features.prefer(Place::Local, number::CCID, list(&[3, 4, 1]));
    client.features.ask(Place::Remote, number::CCID, false);
    let request = client.send(at(0));
    assert_eq!(request.2, [34, 6, 1, 4, 3, 1]);
    server.receive(&request).unwrap();
    let answer = server.send(at(1));
    assert_eq!(answer.2, [33, 7, 1, 3, 3, 4, 1]);
    client.receive(&answer).unwrap();
    assert_eq!(client.features.value(Place::Remote, number::CCID), 3);
    assert_eq!(server.features.value(Place::Local, number::CCID), 3);
    assert!(client.features.is_stable(Place::Remote, number::CCID) && client.features.timer().is_none());
}

#[test]
fn a_lost_change_is_repeated_with_growing_pauses() {
    let [mut client, mut server] = ends();
    server.features.tell(number::ACK_RATIO, 3);
    let first = server.send(at(0));
    let mut pauses = Vec::new();
    let mut now = at(0);
    for _ in 0..10 {
        let due = server.features.timer().expect("a timer");
        assert!(!server.features.is_pending(now) && server.features.is_pending(due));
        pauses.push((due - now).as_millis());
        now = due;
        assert_eq!(server.send(now).2, first.2, "the same contents");
    }
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 64_000, 64_000]);
    let last = server.send(server.features.timer().unwrap());
    client.receive(&last).unwrap();
    server.receive(&client.send(now)).unwrap();
    assert_eq!(client.features.value(Place::Remote, number::ACK_RATIO), 3);
    assert_eq!(server.features.value(Place::Local, number::ACK_RATIO), 3);
    assert!(server.features.timer().is_none());
}

#[test]
fn unknown_features_and_invalid_values_get_empty_confirms() {
    let [mut client, _] = ends();
    // Unknown 126 in both directions; Sequence Window 31; Ack Ratio of a wrong length; Change R of what only
    // the location decides; CCID 3's feature while CCID 2 is in use.
    client.take(&[32, 4, 126, 9, 34, 4, 126, 9]).unwrap();
    client.take(&[32, 9, 3, 0, 0, 0, 0, 0, 31, 32, 4, 5, 1, 34, 5, 5, 0, 3, 34, 4, 192, 1]).unwrap();
    assert_eq!(client.send(at(0)).2, [35, 3, 126, 33, 3, 126, 35, 3, 3, 35, 3, 5, 33, 3, 5, 33, 3, 192]);
    assert_eq!(client.features.value(Place::Remote, number::SEQUENCE_WINDOW), 100);
}

#[test]
fn mandatory_failures_and_wrong_confirms_end_the_connection() {
    let code = |bytes: &[u8]| {
        let [mut client, _] = ends();
        client.features.prefer(Place::Remote, number::CCID, list(&[3, 2]));
        client.features.ask(Place::Remote, number::CCID, false);
        client.send(at(0));
        client.take(bytes).err().map(|reset| (reset.code, reset.data))
    };
    let mandatory = Some(ResetCode::MANDATORY_ERROR);
    assert_eq!(code(&[1, 32, 4, 126, 9]), mandatory.map(|it| (it, [32, 126, 0])), "unknown");
    assert_eq!(code(&[1, 32, 9, 3, 0, 0, 0, 0, 0, 31]).map(|it| it.0), mandatory, "invalid");
    assert_eq!(code(&[1, 32, 4, 1, 9]).map(|it| it.0), mandatory, "no shared entry");
    let option = Some(ResetCode::OPTION_ERROR);
    assert_eq!(code(&[33, 6, 1, 2, 3, 2]), option.map(|it| (it, [33, 1, 0])), "2 where the server likes 3 better");
    assert_eq!(code(&[33, 3, 1]).map(|it| it.0), option, "empty for a required feature");
    assert_eq!(code(&[33, 6, 1, 3, 3, 2]), None);
    assert_eq!(code(&[1, 33, 4, 126, 9]), None, "a Confirm of what is unknown is ignored, mandatory or not");
}

#[test]
fn without_a_shared_entry_nothing_changes() {
    let [mut client, mut server] = ends();
    client.features.prefer(Place::Remote, number::CCID, list(&[5, 6]));
    client.features.ask(Place::Remote, number::CCID, false);
    server.receive(&client.send(at(0))).unwrap();
    let answer = server.send(at(0));
    assert_eq!(answer.2, [33, 5, 1, 2, 2]);
    client.receive(&answer).unwrap();
    assert_eq!(client.features.value(Place::Remote, number::CCID), 2);
}

#[test]
fn an_old_change_that_comes_late_is_ignored() {
    let [mut client, mut server] = ends();
    server.features.tell(number::ACK_RATIO, 3);
    let old = server.send(at(0));
    server.features.tell(number::ACK_RATIO, 5);
    let new = server.send(at(1));
    client.receive(&new).unwrap();
    client.receive(&old).unwrap();
    assert_eq!(client.features.value(Place::Remote, number::ACK_RATIO), 5);
}

#[test]
fn changes_that_cross_end_in_a_round_trip_and_both_ends_agree() {
    let mut ends = ends();
    for (end, (place, liked)) in ends.iter_mut().zip([(Place::Remote, [4, 3]), (Place::Local, [3, 4])]) {
        end.features.prefer(place, number::CCID, list(&liked));
        end.features.ask(place, number::CCID, false);
    }
    let [client, server] = &mut ends;
    let (there, back) = (client.send(at(0)), server.send(at(0)));
    server.receive(&there).unwrap();
    client.receive(&back).unwrap();
    let (there, back) = (client.send(at(1)), server.send(at(1)));
    server.receive(&there).unwrap();
    client.receive(&back).unwrap();
    assert!(
        client.features.is_stable(Place::Remote, number::CCID) && server.features.is_stable(Place::Local, number::CCID)
    );
    let values =
        (client.features.value(Place::Remote, number::CCID), server.features.value(Place::Local, number::CCID));
    assert_eq!(values, (3, 3), "the server decides");
    assert!(client.features.timer().is_none() && server.features.timer().is_none());
}

/// A peer that does as §6.6.6 allows takes our Change for the answer to its own, and confirms ours once for each time.
#[test]
fn a_peer_that_takes_our_change_for_an_answer_is_asked_until_its_confirm_comes() {
    let [mut client, _] = ends();
    client.features.prefer(Place::Remote, number::CCID, list(&[4, 3]));
    client.features.ask(Place::Remote, number::CCID, false);
    client.send(at(0));
    client.take(&[32, 5, 1, 3, 4]).unwrap();
    assert_eq!(client.send(at(10)).2, [35, 6, 1, 3, 4, 3], "confirmed");
    assert_eq!(client.features.value(Place::Remote, number::CCID), 3, "and in force");
    // Its Confirm was lost: ours is repeated, and the next one comes.
    let due = client.features.timer().unwrap();
    assert_eq!(client.send(due).2, [34, 5, 1, 4, 3]);
    client.take(&[33, 6, 1, 3, 3, 4]).unwrap();
    assert!(client.features.is_stable(Place::Remote, number::CCID) && client.features.timer().is_none());
}

#[test]
fn what_the_peer_refuses_is_not_asked_for_again() {
    let [_, mut server] = ends();
    server.features.tell(number::ACK_RATIO, 3);
    server.send(at(0));
    server.take(&[35, 3, 5]).unwrap();
    assert!(server.features.is_stable(Place::Local, number::ACK_RATIO));
    for ratio in 4..100 {
        server.features.tell(number::ACK_RATIO, ratio);
        assert!(!server.features.is_pending(at(100_000 * ratio)) && server.features.timer().is_none());
    }
    assert_eq!(server.features.value(Place::Local, number::ACK_RATIO), 2);
}

/// However a peer changes its mind: one answer to each of its packets, and nothing by ourselves.
#[test]
fn negotiation_that_loops_costs_a_packet_for_a_packet() {
    let [mut client, _] = ends();
    client.features.prefer(Place::Remote, number::CCID, list(&[2, 3]));
    for round in 0_u8..=255 {
        client.take(&[32, 5, 1, 2 + round % 2, 3 - round % 2, 32, 4, 126, round, 32, 5, 5, 1, round]).unwrap();
        assert!(client.features.is_pending(at(0)));
        assert!(client.send(at(0)).2.len() < 30);
        assert!(!client.features.is_pending(at(1_000_000)) && client.features.timer().is_none());
    }
}

proptest! {
    /// Both ends change their minds while packets are lost and overtake each other: in the end they agree, and it ends.
    #[test]
    fn both_ends_agree_in_the_end(
        steps in prop::collection::vec((0_u8..8, 0_usize..2, any::<prop::sample::Index>(), 1_u8..4), 1..60)
    ) {
        let mut ends = ends();
        let (mut now, mut inbox): (u64, [Vec<_>; 2]) = (0, Default::default());
        let lists = [[2, 3, 4], [3, 4, 2], [4, 2, 3], [3, 2, 4]];
        for (step, side, which, choice) in steps {
            now += 50;
            let end = &mut ends[side];
            match step {
                0 => {
                    let place = if choice % 2 == 0 { Place::Local } else { Place::Remote };
                    end.features.prefer(place, number::CCID, list(&lists[usize::from(choice)]));
                    end.features.ask(place, number::CCID, false);
                }
                1 => end.features.tell(number::ACK_RATIO, u64::from(choice)),
                2 | 3 => inbox[1 - side].push(end.send(at(now))),
                4 if !inbox[side].is_empty() => {
                    let index = which.index(inbox[side].len());
                    inbox[side].remove(index);
                }
                _ if !inbox[side].is_empty() => {
                    let index = which.index(inbox[side].len());
                    let packet = inbox[side].remove(index);
                    // A list that changes again while its Change is lost can make an honest Confirm wrong (§6.6.8).
                    if let Err(reset) = end.receive(&packet) {
                        prop_assert_eq!(reset.data[1], number::CCID);
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        let mut quiet = 0;
        for _ in 0..400 {
            now += 1000;
            for side in 0..2 {
                if ends[side].features.is_pending(at(now)) {
                    quiet = 0;
                }
                let packet = ends[side].send(at(now));
                if let Err(reset) = ends[1 - side].receive(&packet) {
                    prop_assert_eq!(reset.data[1], number::CCID);
                    return Ok(());
                }
            }
            quiet += 1;
        }
        prop_assert!(quiet > 100, "negotiation goes on and on");
        let [client, server] = &ends;
        for (here, there) in [(Place::Local, Place::Remote), (Place::Remote, Place::Local)] {
            for feature in [number::CCID, number::ACK_RATIO] {
                prop_assert!(client.features.is_stable(here, feature) && server.features.is_stable(there, feature));
                prop_assert_eq!(client.features.value(here, feature), server.features.value(there, feature));
            }
        }
    }
}
