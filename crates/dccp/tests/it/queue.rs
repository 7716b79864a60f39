//! What goes next when not all can go: audio and video of a call over a link that carries less than both.

use crate::common::*;
use braidcast_dccp::{
    Ccid, Event, Limits, Method, OneWayDelay, Options, Priority, Rules, SendError, SendOptions, TfrcOptions, Why,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::QueueLimit;
use core::time::Duration;

const SOUND: Priority = Priority::FIRST;

fn pictures() -> Priority {
    Priority::new(1).unwrap()
}

/// How a call went.
#[derive(Debug, Default)]
struct Call {
    sent: [u32; 2],
    on_time: [u32; 2],
    late: u32,
    discarded: Vec<(u64, Why)>,
}

impl Call {
    fn share(&self, what: Priority) -> f64 {
        let what = usize::from(what.get());
        f64::from(self.on_time[what]) / f64::from(self.sent[what])
    }
}

/// 20 s of audio, 40 kbit/s, and frames, 800 kbit/s, in bursts, each with a lifetime of 200 ms, over
/// 600 kbit/s with a round trip of 80 ms. The receiver has no options that would help.
fn call(sender: Options) -> Call {
    let model = braidcast_sim::link::LinkModel {
        rate: "600kbit".parse().unwrap(),
        queue: QueueLimit::Packets(5).into(),
        ..link(1, 40)
    };
    let sender = Options { ccids: vec![Ccid::Three], ..sender };
    let receiver = Options { ccids: vec![Ccid::Three], ..Options::default() };
    let mut pair = Pair::with(sender, receiver, Duplex::both(model));
    pair.connect();
    let mut call = Call::default();
    for tick in 0..1000u64 {
        let sound = (SOUND, 1, 100);
        let bursts = [sound, (pictures(), 10, 1000)];
        for &(priority, count, len) in &bursts[..if tick % 5 == 0 { 2 } else { 1 }] {
            for _ in 0..count {
                let mut payload = vec![priority.get(); len];
                payload[1..9].copy_from_slice(&tick.to_be_bytes());
                let context = Some(u64::from(priority.get()) << 32 | tick);
                let how = SendOptions {
                    priority,
                    deadline: Some(pair.net.now() + ms(200)),
                    context,
                    ..SendOptions::default()
                };
                call.sent[usize::from(priority.get())] += 1;
                match pair.on_client(|it, now| it.send(now, &payload, how)) {
                    Ok(()) | Err(SendError::QueueFull { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        // In steps of 5 ms, so that lateness is known to that.
        for step in 0..4 {
            pair.run(ms(5));
            for payload in pair.server_recv() {
                let sent = u64::from_be_bytes(payload[1..9].try_into().unwrap());
                let age = ms(20) * (tick - sent) as u32 + ms(5) * (step + 1);
                if age <= ms(200) {
                    call.on_time[usize::from(payload[0])] += 1;
                } else {
                    call.late += 1;
                }
            }
        }
    }
    let discarded =
        |event: &Event| if let Event::Discarded { context, why } = *event { Some((context, why?)) } else { None };
    call.discarded = pair.client_events.iter().filter_map(discarded).collect();
    let stats = pair.on_client(|it, now| it.report(now).stats);
    let of = |expired: bool| call.discarded.iter().filter(|(_, why)| (*why == Why::Expired) == expired).count() as u64;
    assert_eq!((stats.expired, stats.crowded_out), (of(true), of(false)), "each discard is told");
    call
}

#[test]
fn the_best_packet_goes_next() {
    let with = |queue| call(Options { queue, send_queue: Limits::messages(32), ..Options::default() });
    let [fifo, sbpn2, ring] = [Method::Fifo, Method::Sbpn2, Method::RingSbpn2].map(with);
    assert!(fifo.share(SOUND) < 0.5, "audio stands behind frames: {fifo:?}");
    assert!(fifo.late > 100 && fifo.discarded.is_empty(), "and all that got in goes, late: {fifo:?}");
    for (name, call) in [("sbpn2", &sbpn2), ("ring-sbpn2", &ring)] {
        assert!(call.share(SOUND) > 0.95, "{name}: {}", call.share(SOUND));
        assert!(call.share(pictures()) > 0.2, "{name}: and the rest is for frames, {}", call.share(pictures()));
        assert!(call.late * 10 < fifo.late, "{name}: {}", call.late);
    }
    let sound_gone = ring.discarded.iter().filter(|(context, _)| context >> 32 == 0).count();
    assert!(sound_gone < 50, "frames are discarded rather: {sound_gone}");
}

#[test]
fn a_short_ring_takes_sound_where_a_short_queue_refuses_it() {
    let with = |queue| call(Options { queue, send_queue: Limits::messages(5), ..Options::default() });
    let [sbpn2, ring] = [Method::Sbpn2, Method::RingSbpn2].map(with);
    assert!(ring.share(SOUND) > sbpn2.share(SOUND), "{} and {}", ring.share(SOUND), sbpn2.share(SOUND));
    // Before the first round trip is over there may be nothing but audio to make room for audio.
    let after_the_start = ring.discarded.iter().filter(|(context, _)| context & 0xffff_ffff > 50);
    assert!(after_the_start.clone().count() > 100 && after_the_start.clone().all(|(context, _)| context >> 32 == 1));
}

/// The vicious circle of SBPN §5.2.1: what is not sent lowers the rate, and what waits for its turn is too late again.
#[test]
fn where_a_discard_takes_its_turn_what_is_late_makes_the_next_late() {
    let with = |discard_takes_turn| {
        let tfrc = TfrcOptions { discard_takes_turn, rules: Rules::Rfc3448, ..TfrcOptions::default() };
        let (ccids, send_queue) = (vec![Ccid::Three], Limits::messages(32));
        call(Options { queue: Method::Sbpn1, ccids, send_queue, tfrc, ..Options::default() })
    };
    let [free, costly] = [false, true].map(with);
    assert!(free.share(SOUND) > 2.0 * costly.share(SOUND), "{} and {}", free.share(SOUND), costly.share(SOUND));
}

#[test]
fn lateness_is_judged_by_the_way_there_as_the_application_knows_it() {
    // The round trip is 200 ms, so half of it is 100; but the way there takes 190.
    for (one_way_delay, expected) in
        [(OneWayDelay::Measured, 0), (OneWayDelay::HalfRoundTrip, 0), (OneWayDelay::Known(ms(190)), 3)]
    {
        let options = Options { queue: Method::Sbpn1, one_way_delay, ..Options::default() };
        let one_way = |delay_ms| link(1, delay_ms);
        let mut pair = Pair::connected(&options, Duplex::new(one_way(190), one_way(10)));
        let how = SendOptions { deadline: Some(pair.net.now() + ms(150)), ..SendOptions::default() };
        for n in 0..3 {
            pair.on_client(|it, now| it.send(now, &message(n, 100), how)).unwrap();
        }
        pair.run(ms(500));
        let expired = pair.on_client(|it, now| it.report(now).stats.expired);
        assert_eq!((expired, pair.server_recv().len() as u64), (expected, 3 - expected));
    }
}

#[test]
fn padding_keeps_the_rate_that_discards_would_lose() {
    let with = |padding| {
        let (queue, send_queue) = (Method::KeepAlive, Limits::messages(32));
        let options = Options { ccids: vec![Ccid::Three], queue, send_queue, padding, ..Options::default() };
        let mut pair = Pair::connected(&options, Duplex::both(link(2, 40)));
        // Messages whose lifetime is over by the time they could go, at the rate that others had in a
        // full second.
        let mut send = |lifetime: Option<Duration>| {
            for n in 0..100 {
                let deadline = lifetime.map(|lifetime| pair.net.now() + lifetime);
                let how = SendOptions { deadline, ..SendOptions::default() };
                let _ = pair.on_client(|it, now| it.send(now, &message(n, 500), how));
                pair.run(ms(10));
            }
        };
        send(None);
        (0..5).for_each(|_| send(Some(Duration::ZERO)));
        let report = pair.on_client(|it, now| it.report(now));
        (report.stats.padding, report.ccid.allowed_rate.unwrap_or_default())
    };
    let (none, without) = with(None);
    let (some, padded) = with(Some([0u8; 500].into()));
    assert_eq!(none, 0);
    assert!(some > 50, "{some}");
    assert!(padded > 2.0 * without, "{padded} and {without} bytes in a second arrive");
}

#[test]
fn what_makes_no_sense_is_refused_or_discarded_and_told() {
    let send_queue = Limits::messages(8).bytes(1000);
    for queue in Method::ALL.map(|(_, queue)| queue) {
        let options = Options { queue, send_queue, ..Options::default() };
        let mut pair = Pair::connected(&options, Duplex::both(link(2, 40)));
        let how = |deadline, context| SendOptions { deadline, context: Some(context), ..SendOptions::default() };
        // Larger than the queue, though a packet would carry it.
        let error = pair.on_client(|it, now| it.send(now, &[0; 1001], how(None, 1)));
        assert_eq!(error, Err(SendError::TooLong { len: 1001, limit: 1000 }), "{queue}");
        // Without end, and from a clock that is two seconds behind, or has just stepped back two seconds.
        for (context, behind, ahead) in [(2, 0, 0), (3, 2000, 0), (4, 0, 2000)] {
            let sent = pair.on_client(|it, now| {
                let now = now - ms(behind) + ms(ahead);
                it.send(now, &[0; 10], how(Some(now + Duration::MAX), context))
            });
            assert_eq!(sent, Ok(()), "{queue}");
            pair.run(ms(500));
        }
        assert_eq!(pair.server_recv().len(), 3, "{queue}");
        // Over before it begins: it goes where all go, or as the last.
        pair.on_client(|it, now| it.send(now, &[0; 10], how(Some(now), 5))).unwrap();
        pair.run(ms(500));
        let told = pair.client_events.contains(&Event::Discarded { context: 5, why: Some(Why::Expired) });
        assert_eq!(pair.server_recv().len(), usize::from(!told), "{queue}");
        let goes_late = !matches!(
            queue,
            Method::FifoTimed
                | Method::Sbpn1
                | Method::Lifo
                | Method::LifoPriority
                | Method::KeepAlive
                | Method::ByWorth
        );
        assert_eq!(goes_late, !told, "{queue}");
    }
}
