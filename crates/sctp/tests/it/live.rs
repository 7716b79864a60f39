//! What it is all for: 2 Mbit/s of frames and audio over two bad paths, one of which goes away for a while.

use crate::common::{Pair, link, ms, on, pattern};
use braidcast_core::Instant;
use braidcast_sctp::{Options, Priority, Reliability};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Outage};
use core::time::Duration;

const LATENCY: Duration = ms(500);
const SOUND: u16 = 0;

/// 5 % loss, and now and then nothing for a quarter of a second.
fn wifi() -> LinkModel {
    LinkModel { loss: "5%".parse().unwrap(), outages: vec![Outage::every(ms(3000), ms(250)).holding()], ..link(6, 8) }
}

/// Slower and farther, with some jitter.
fn lte() -> LinkModel {
    LinkModel { loss: "1%".parse().unwrap(), jitter: "5ms".parse().unwrap(), ..link(3, 35) }
}

#[derive(Debug, Default)]
struct Outcome {
    sound_sent: usize,
    sound_on_time: usize,
    worst_sound: Duration,
    frames_sent: usize,
    frames_on_time: usize,
}

/// 12 s, during which path `cut` is dead from the fifth to the eighth.
fn broadcast(cut: usize, copied: bool) -> Outcome {
    let mut pair = Pair::connected(&Options::prompt(), vec![Duplex::both(wifi()), Duplex::both(lte())]);
    pair.on_client(|association, _| {
        for stream in 0..4 {
            association.set_priority(stream, Priority::new(stream as u8));
        }
        association.set_copied(SOUND, copied);
    });
    let mut outcome = Outcome::default();
    let stamp = |len: usize, now: Instant| {
        let mut payload = pattern(len, now.as_nanos());
        payload[..8].copy_from_slice(&now.as_nanos().to_be_bytes());
        payload
    };
    for step in 0..12_500_u64 {
        let now = pair.now();
        match step {
            5000 => pair.cut(cut, true),
            8000 => pair.cut(cut, false),
            _ => {}
        }
        if step < 12_000 && step % 20 == 0 {
            pair.client_send(&stamp(400, now), on(SOUND, Reliability::Lifetime(LATENCY)));
            outcome.sound_sent += 1;
        }
        if step < 12_000 && step % 40 == 0 {
            // One I frame each second; of the others, two B frames for each P frame. About 2 Mbit/s.
            let (stream, len) = match (step / 40) % 25 {
                0 => (1, 60_000),
                n if n % 3 == 0 => (2, 12_000),
                _ => (3, 5000),
            };
            pair.client_send(&stamp(len, now), on(stream, Reliability::Lifetime(LATENCY)));
            outcome.frames_sent += 1;
        }
        pair.run(ms(1));
        let now = pair.now();
        for (info, message) in pair.server_recv() {
            let sent = Instant::from_nanos(u64::from_be_bytes(message[..8].try_into().unwrap()));
            let on_time = usize::from(now - sent <= LATENCY);
            if info.stream == SOUND {
                outcome.sound_on_time += on_time;
                outcome.worst_sound = outcome.worst_sound.max(now - sent);
            } else {
                outcome.frames_on_time += on_time;
            }
        }
    }
    outcome
}

#[test]
fn sound_is_never_late_though_a_path_goes_away() {
    for copied in [false, true] {
        for cut in 0..2 {
            let outcome = broadcast(cut, copied);
            // With the LTE cut nothing but a Wi-Fi is left that loses 5 % and stands still for up
            // to 375 ms: what is lost just before it does cannot always be repeated in time.
            let hopeless = if cut == 1 { outcome.sound_sent / 50 } else { 0 };
            let on_time = outcome.sound_on_time;
            assert!(on_time >= outcome.sound_sent - hopeless, "cut {cut}, copied {copied}: {outcome:?}");
            let share = outcome.frames_on_time as f64 / outcome.frames_sent as f64;
            assert!(share > 0.85, "cut {cut}, copied {copied}: {outcome:?}");
        }
    }
}

#[test]
fn windows_recover_though_they_have_room_for_copied_sound_alone() {
    // 31 kB of audio in a second, 6 kB in a round trip, take two windows of one packet for themselves.
    let mut pair = Pair::connected(&Options::prompt(), vec![Duplex::both(link(5, 100)), Duplex::both(link(5, 100))]);
    pair.on_client(|association, _| {
        association.set_priority(SOUND, Priority::new(0));
        association.set_copied(SOUND, true);
        association.set_priority(1, Priority::new(1));
    });
    let mut pictures = 0;
    for step in 0..900 {
        if step == 100 || step == 200 {
            (0..2).for_each(|path| pair.cut(path, step == 100));
        }
        pair.client_send(&pattern(614, step), on(SOUND, Reliability::Lifetime(LATENCY)));
        pair.client_send(&pattern(3000, step), on(1, Reliability::Lifetime(LATENCY)));
        pair.run(ms(20));
        let got = pair.server_recv().iter().filter(|(info, _)| info.stream == 1).count();
        pictures += if step >= 700 { got } else { 0 };
    }
    assert!(pictures >= 198, "{pictures} of 200 frames, ten seconds after both paths came back");
}
