//! What an application is told that it may send, at either end.

use crate::common::{Pair, ms};
use braidcast_core::Instant;
use braidcast_sctp::{Association, Options, RateLimits, RateOptions, RateReport, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Rate, parse};

/// 1 Mbit/s for 15 s, then 300 kbit/s.
fn narrows() -> LinkModel {
    let rate = Rate::Schedule(parse::rate_schedule("0s:1mbit,15s:300kbit").unwrap());
    LinkModel { rate, delay: ms(20), queue: "1s".parse().unwrap(), ..LinkModel::default() }
}

/// The client, or else the server, sends frames as large as they may be, cut into messages of
/// `longest` bytes, 25 a second until `end`, and the other end says a word of 20 bytes each time.
/// What the one was told last, and the mean of its rates since `from`, bit/s.
fn pictures(pair: &mut Pair, by_client: bool, longest: usize, from: u64, end: u64) -> (Vec<RateReport>, f64) {
    let mut told = Vec::new();
    while pair.now() < Instant::from_millis(end) {
        let begin = pair.now() >= Instant::from_millis(from);
        let told = &mut told;
        let mut speak = |it: &mut Association, now: Instant| {
            let report = it.rate_report(now).unwrap();
            told.extend(begin.then_some(report));
            let picture = vec![7; report.next_frame_bits as usize / 8];
            for part in picture.chunks(longest) {
                let how = SendOptions { deadline: Some(now + ms(250)), unordered: true, ..SendOptions::default() };
                it.send(now, part, how).unwrap();
            }
        };
        let answer = |it: &mut Association, now| it.send(now, &[7; 20], SendOptions::default()).unwrap();
        if by_client {
            pair.on_client(&mut speak);
            pair.on_server(answer);
        } else {
            pair.on_server(&mut speak);
            pair.on_client(answer);
        }
        pair.run(ms(40));
        pair.server_recv();
        pair.client_recv();
    }
    let rate = told.iter().map(|it| it.rate).sum::<f64>() / told.len() as f64;
    (told, rate)
}

fn follow(pair: &mut Pair, options: &RateOptions) {
    pair.on_client(|it, now| it.follow_rate(now, options));
    pair.on_server(|it, now| it.follow_rate(now, options));
}

#[test]
fn each_end_is_told_what_its_own_direction_carries() {
    for (by_client, longest) in [(true, 100_000), (true, 500), (false, 100_000)] {
        let wide = LinkModel { rate: "20mbit".parse().unwrap(), ..narrows() };
        let links = if by_client { [narrows(), wide] } else { [wide, narrows()] };
        let [there, back] = links;
        let mut pair = Pair::connected(&Options::live(), vec![Duplex::new(there, back)]);
        assert_eq!(pair.on_client(|it, now| it.rate_report(now)), None, "nobody has asked");
        follow(&mut pair, &RateOptions::default());
        let (told, rate) = pictures(&mut pair, by_client, longest, 8_000, 15_000);
        let last = told.last().unwrap();
        assert!((0.75e6..1.1e6).contains(&rate), "{rate}, {last:?}");
        assert_eq!((last.frame_interval_ms, last.below_least), (40.0, false));
        let (told, _) = pictures(&mut pair, by_client, longest, 15_000, 15_400);
        let just_after = told.last().unwrap();
        assert!(just_after.next_frame_bits < 15_000, "0.4 s after the fall: {just_after:?}");
        let (told, rate) = pictures(&mut pair, by_client, longest, 18_000, 26_000);
        assert!((0.22e6..0.36e6).contains(&rate), "{rate}, {:?}", told.last());
    }
}

#[test]
fn what_the_application_can_do_bounds_what_it_is_told() {
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(narrows())]);
    let limits = RateLimits::new(400_000, 600_000);
    follow(&mut pair, &RateOptions::new(limits).interval(ms(40)));
    let (told, rate) = pictures(&mut pair, true, 2_000, 8_000, 15_000);
    assert_eq!(rate, 6e5, "{:?}", told.last());
    let (told, rate) = pictures(&mut pair, true, 2_000, 18_000, 25_000);
    assert_eq!(rate, 4e5, "{:?}", told.last());
    assert!(told.iter().any(|it| it.below_least), "the link carries less than the lower limit");
    let lower = RateLimits::new(100_000, limits.greatest);
    pair.on_client(|it, _| it.set_rate_limits(lower));
    let (told, rate) = pictures(&mut pair, true, 2_000, 28_000, 35_000);
    assert!((0.2e6..0.36e6).contains(&rate), "{rate}");
    assert!(!told.iter().any(|it| it.below_least), "{:?}", told.last());
}

/// Frames of the other direction hold up acknowledgements, which looks like a queue: an end may
/// be told less than its direction carries, but it does not end at the lower limit.
#[test]
fn both_ends_may_send_pictures_at_once() {
    let wide = LinkModel { rate: "2mbit".parse().unwrap(), ..narrows() };
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::new(narrows(), wide)]);
    follow(&mut pair, &RateOptions::default());
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let speak = |it: &mut Association, now, told: &mut Vec<(Instant, f64)>| {
        let report = it.rate_report(now).unwrap();
        told.push((now, report.rate));
        let how = SendOptions { deadline: Some(now + ms(500)), ..SendOptions::default() };
        let picture = vec![7; report.next_frame_bits as usize / 8];
        if !picture.is_empty() {
            it.send(now, &picture, how).unwrap();
        }
    };
    while pair.now() < Instant::from_millis(26_000) {
        pair.on_client(|it, now| speak(it, now, &mut there));
        pair.on_server(|it, now| speak(it, now, &mut back));
        pair.run(ms(40));
        pair.server_recv();
        pair.client_recv();
    }
    let mean = |told: &[(Instant, f64)], from, until| {
        let within = |at: &Instant| (Instant::from_millis(from)..Instant::from_millis(until)).contains(at);
        let rates: Vec<f64> = told.iter().filter(|(at, _)| within(at)).map(|(_, rate)| *rate).collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    };
    let rates = [mean(&there, 8_000, 15_000), mean(&there, 18_000, 26_000), mean(&back, 8_000, 26_000)];
    assert!((0.7e6..1.1e6).contains(&rates[0]) && (0.15e6..0.36e6).contains(&rates[1]), "{rates:?}");
    assert!((1.1e6..2.2e6).contains(&rates[2]), "{rates:?}");
}
