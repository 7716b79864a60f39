//! Live streams over simulated networks.

use crate::common::*;
use braidcast_core::{Instant, Rng};
use braidcast_media::{Format, Framing, Input, Kind, Pacer};
use braidcast_session::{Event, KindReport, ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use core::time::Duration;

fn lossy(rate: u64, delay: Duration, loss: f64) -> LinkModel {
    LinkModel { loss: Loss::Uniform(loss), ..LinkModel::wire(rate, delay) }
}

/// Each too narrow for the camera's peaks, both together wide enough.
fn two_bad_links() -> [LinkModel; 2] {
    [lossy(2_000_000, ms(15), 0.02), lossy(2_000_000, ms(40), 0.01)]
}

fn mean(delays: &[(u64, Duration)]) -> Duration {
    delays.iter().map(|(_, delay)| *delay).sum::<Duration>() / u32::try_from(delays.len()).unwrap()
}

#[test]
fn two_lossy_links_carry_a_stream_that_comes_out_whole_and_on_time() {
    let units = camera(6);
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), units.clone(), &two_bad_links());
    scene.net.run_until(Instant::from_millis(START + 2_000));
    assert_eq!(scene.sink().receiver.latency(CHANNEL), Some(SenderOptions::default().latency));
    scene.run_to_end(ms(20_000));
    let sink = scene.sink();
    let packets: u64 = units.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
    assert!(indexes(&sink.bytes).into_iter().eq(0..packets), "{:?}", sink.report().kinds);
    for kind in [Kind::Tables, Kind::Audio, Kind::I, Kind::P, Kind::B] {
        assert_eq!(sink.kind(kind).on_time_share, Some(1.0), "{kind}");
    }
    let off =
        delays(sink, &units).into_iter().skip(200).filter(|(_, delay)| !(ms(495)..ms(520)).contains(delay)).count();
    assert!(off < packets as usize / 100, "{off} of {packets} packets were not played 500 ms after their capture");
    for path in sink.report().paths {
        assert!(path.received_bytes > 100_000, "path {} carried {} bytes", path.id, path.received_bytes);
    }
}

/// It grows by a pause, and shrinks at the cost of what was not played by then.
#[test]
fn the_latency_changes_while_it_is_played() {
    for (old, new) in [(500, 900), (900, 500)] {
        let units = camera(8);
        let send = SenderOptions::default().with(|it| it.latency = ms(old));
        let mut scene = Scene::new(send, ReceiverOptions::default(), units.clone(), &two_bad_links());
        scene.net.run_until(Instant::from_millis(START + 3_000));
        let source = scene.source;
        scene.net.with(source, |node, _| match node {
            Node::Source(source) => source.sender.set_latency(ms(new)),
            Node::Sink(_) => unreachable!("this node is the source"),
        });
        scene.run_to_end(ms(20_000));
        let sink = scene.sink();
        assert_eq!(sink.receiver.report(scene.net.now(), CHANNEL).restarts, 0);
        let packets: u64 = units.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
        let delays = delays(sink, &units);
        // By their numbers: those of the first three seconds less what is being collected, and the last three.
        for (latency, of) in [(old, 200..packets / 4), (new, packets / 2..packets)] {
            let count = of.end - of.start;
            let near = |delay: &Duration| (ms(latency - 5)..ms(latency + 20)).contains(delay);
            let on_time = delays.iter().filter(|(index, delay)| of.contains(index) && near(delay)).count() as u64;
            assert!(on_time > count * 98 / 100, "{old} to {new}: {on_time} of {count} packets after {latency} ms");
        }
        let lost = packets - delays.len() as u64;
        let most = if new > old { 0 } else { packets / 8 };
        assert!(lost <= most, "{old} to {new}: {lost} of {packets} packets are lost");
    }
}

#[test]
fn a_real_clip_comes_out_byte_for_byte() {
    let clip: &[u8] = include_bytes!("../../../media/tests/clips/h264.ts");
    let (mut pacer, mut input) =
        (Pacer::new(Instant::from_millis(START)), Input::new(Format::Auto, Framing::Stream(16_384)));
    let (mut piece, mut units, mut last) = (Vec::new(), Vec::new(), Instant::ZERO);
    pacer.push(clip);
    pacer.finish();
    while let Some(due) = pacer.poll(&mut piece) {
        last = due;
        input.push(due, &piece);
        units.extend(core::iter::from_fn(|| input.poll()).map(|unit| (due, unit)));
    }
    input.finish(last);
    units.extend(core::iter::from_fn(|| input.poll()).map(|unit| (last, unit)));
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), units, &two_bad_links());
    scene.run_to_end(ms(10_000));
    assert_eq!(scene.sink().bytes, clip);
}

#[test]
fn what_an_outage_holds_up_beyond_its_time_is_skipped_and_counted_and_nothing_waits_for_it() {
    let units = camera(5);
    let links = [LinkModel::wire(8_000_000, ms(20))];
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), units.clone(), &links);
    let there = scene.links[0].0;
    scene.net.at(Instant::from_millis(START + 2_000), move |net| net.set_down(there, true));
    scene.net.at(Instant::from_millis(START + 3_000), move |net| net.set_down(there, false));
    scene.run_to_end(ms(20_000));
    let sink = scene.sink();
    // What others need is of use for 50 ms more.
    let late = delays(sink, &units).into_iter().filter(|(_, delay)| *delay > ms(570)).count();
    assert_eq!(late, 0, "packets came out more than 20 ms late");
    let (mut sent, mut arrived) = (0, 0);
    for kind in [Kind::Tables, Kind::Audio, Kind::I, Kind::P, Kind::B] {
        let line = sink.kind(kind);
        let captured = units.iter().filter(|(_, unit)| unit.kind == kind).count() as u64;
        assert_eq!(line.captured, captured, "{kind}");
        assert_eq!(line.on_time + line.late + line.missing, captured, "{kind}");
        (sent, arrived) = (sent + captured, arrived + line.on_time);
    }
    assert!((sent * 3 / 4..sent * 99 / 100).contains(&arrived), "{arrived} of {sent} on time");
}

#[test]
fn a_path_that_is_cut_makes_no_sound_late() {
    let units = camera(8);
    let mut scene = Scene::new(
        SenderOptions::default(),
        ReceiverOptions::default(),
        units,
        &[lossy(4_000_000, ms(15), 0.01), lossy(4_000_000, ms(40), 0.01)],
    );
    let (there, back) = scene.links[0];
    scene.net.at(Instant::from_millis(START + 3_000), move |net| {
        net.set_down(there, true);
        net.set_down(back, true);
    });
    scene.run_to_end(ms(30_000));
    let sink = scene.sink();
    let sound = sink.kind(Kind::Audio);
    assert_eq!((sound.late, sound.missing), (0, 0));
    let longest = sink.outputs.windows(2).map(|pair| pair[1].0.since(pair[0].0)).max().unwrap();
    assert!(longest < ms(500), "nothing came out for {longest:?}");
    let noticed =
        scene.source().events.iter().any(|event| matches!(event, Event::PathDown(..) | Event::PathRemoved(..)));
    assert!(noticed, "{:?}", scene.source().events);
}

#[test]
fn early_release_is_faster_on_average_and_never_slower_than_the_latency() {
    let units = camera(4);
    let run = |early| {
        let receive = ReceiverOptions::default().with(|it| it.early = early);
        let mut scene = Scene::new(SenderOptions::default(), receive, units.clone(), &two_bad_links());
        scene.run_to_end(ms(20_000));
        delays(scene.sink(), &units)
    };
    let (steady, early) = (run(false), run(true));
    assert!(mean(&early) * 2 < mean(&steady), "{:?} and {:?}", mean(&early), mean(&steady));
    assert!(early.iter().skip(200).all(|(_, delay)| *delay < ms(520)));
    assert!(early.windows(2).all(|pair| pair[0].0 < pair[1].0), "out of order");
}

#[test]
fn a_clock_that_jumps_is_followed() {
    let mut scene = Scene::new(
        SenderOptions::default(),
        ReceiverOptions::default(),
        camera(6),
        &[LinkModel::wire(8_000_000, ms(20))],
    );
    let source = scene.source;
    scene.net.at(Instant::from_millis(START + 3_000), move |net| {
        if let Node::Source(source) = net.node_mut(source) {
            source.ahead = ms(3_600_000);
        }
    });
    scene.run_to_end(ms(60_000));
    let sink = scene.sink();
    assert!(sink.events.contains(&Event::ClockJumped), "{:?}", sink.events);
    assert_eq!(sink.report().clock_jumps, 1);
    let sound = sink.kind(Kind::Audio);
    assert!(sound.on_time_share.unwrap() > 0.8, "{sound:?}");
}

#[test]
fn a_sender_that_restarts_is_played_on() {
    let links = [LinkModel::wire(8_000_000, ms(20)), LinkModel::wire(8_000_000, ms(30))];
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(10), &links);
    let (id, start) = (scene.source, Instant::from_millis(START + 2_000));
    scene.net.at(start, move |net| {
        let mut units = camera(3);
        for (ready, unit) in &mut units {
            *ready += ms(3_000);
            unit.first_captured += ms(3_000);
            unit.last_captured += ms(3_000);
        }
        *net.node_mut(id) = source(start, &Rng::from_seed(1_000_002), &SenderOptions::default(), units, 2);
    });
    scene.run_to_end(ms(30_000));
    let sink = scene.sink();
    assert!(sink.events.contains(&Event::Restarted), "{:?}", sink.events);
    let again = indexes(&sink.bytes).iter().filter(|index| **index < 100).count();
    assert_eq!(again, 200, "both streams were played from their beginnings");
    assert!(sink.kind(Kind::Audio).on_time_share.unwrap() > 0.95, "{:?}", sink.report().kinds);
}

#[test]
fn units_that_were_hopeless_before_the_connection_was_up_are_counted_and_never_sent() {
    let mut units = camera(1);
    for (at, _) in &mut units {
        *at += ms(5_000);
    }
    let mut scene = Scene::new(
        SenderOptions::default(),
        ReceiverOptions::default(),
        units.clone(),
        &[LinkModel::wire(8_000_000, ms(20))],
    );
    scene.run_to_end(ms(20_000));
    let report = scene.source().sender.report(scene.net.now());
    assert_eq!(report.kinds.iter().map(|line| line.unsent).sum::<u64>(), units.len() as u64);
    assert!(scene.sink().bytes.is_empty());
    assert_eq!(scene.sink().kind(Kind::Audio).on_time_share, Some(0.0));
}

#[test]
fn sound_that_was_captured_before_the_connection_was_up_comes_in_time() {
    // The handshake takes 400 ms, and the way there 100: what was captured in the first moments
    // cannot be there after 500.
    let mut units = camera(3);
    for (at, unit) in &mut units {
        *at = *at - ms(START);
        unit.first_captured = unit.first_captured - ms(START);
        unit.last_captured = unit.last_captured - ms(START);
    }
    let links = [LinkModel::wire(20_000_000, ms(100))];
    for queue in [None, SenderOptions::default().queue] {
        let send = SenderOptions::default().with(|it| it.queue = queue);
        let mut scene = Scene::new(send, ReceiverOptions::default(), units.clone(), &links);
        scene.run_to_end(ms(20_000));
        let came = indexes(&scene.sink().bytes);
        let sound = units.iter().map(|(_, unit)| unit).filter(|unit| unit.kind == Kind::Audio);
        let missed = sound.filter(|unit| !came.contains(&unit.first_index())).map(|unit| unit.first_captured);
        let last = missed.max().unwrap_or_default();
        assert!(last <= Instant::from_millis(100), "{queue:?}: {last:?}");
    }
}

#[test]
fn where_nobody_answers_all_is_unsent() {
    let units = camera(4);
    let links = [LinkModel::wire(8_000_000, ms(20))];
    for reliable in [false, true] {
        let send = SenderOptions::default().with(|it| {
            it.reliable = reliable;
            it.give_up = Some(ms(20_000));
        });
        let mut scene = Scene::new(send, ReceiverOptions::default(), units.clone(), &links);
        let there = scene.links[0].0;
        scene.net.set_down(there, true);
        scene.net.run_for(ms(120_000));
        // A reliable unit that found no receiver is asked for again, and then counted.
        let events: Vec<_> = scene.source().events.iter().filter(|event| **event != Event::Room).collect();
        assert!(matches!(events[..], [Event::Ended { complete: false, .. }]), "{events:?}");
        let report = scene.source().sender.report(scene.net.now());
        let [unsent, bytes] = [|line: &KindReport| line.unsent, |line: &KindReport| line.bytes]
            .map(|count| report.kinds.iter().map(count).sum::<u64>());
        assert_eq!((unsent, bytes), (units.len() as u64, 0));
    }
}

#[test]
fn the_report_is_plain_data() {
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(3), &two_bad_links());
    scene.run_to_end(ms(20_000));
    let json = serde_json::to_value(scene.sink().report()).unwrap();
    assert_eq!(json["kinds"][1]["kind"], "audio");
    assert_eq!(json["paths"].as_array().unwrap().len(), 2);
    let sender = scene.source().sender.report(scene.net.now());
    assert!(sender.kinds.iter().all(|line| line.on_time_share.is_some()), "no feedback came: {sender:?}");
}
