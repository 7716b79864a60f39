//! What an application is told that it may send, at either end.

mod common;

use braidcast_core::Instant;
use braidcast_sctp::{Options, RateLimits, RateOptions, RateReport, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Rate, parse};
use common::{Pair, ms};

/// 1 Mbit/s for 15 s, then 300 kbit/s.
fn narrows() -> LinkModel {
    let rate = Rate::Schedule(parse::rate_schedule("0s:1mbit,15s:300kbit").unwrap());
    LinkModel { rate, delay: ms(20), queue: "1s".parse().unwrap(), ..LinkModel::default() }
}

/// Each end sends pictures as large as they may be, cut into messages of `longest` bytes, 25 a second until `end`; what the client and the server
/// were told last, and the mean of the client's rates since `from`, bit/s.
fn pictures(pair: &mut Pair, longest: usize, from: u64, end: u64) -> (RateReport, RateReport, f64) {
    let (mut sum, mut count) = (0.0, 0.0);
    loop {
        let told = [pair.on_client(|it, now| it.rate_report(now)), pair.on_server(|it, now| it.rate_report(now))];
        let [client, server] = told.map(Option::unwrap);
        if pair.now() >= Instant::from_millis(from) {
            (sum, count) = (sum + client.rate, count + 1.0);
        }
        if pair.now() >= Instant::from_millis(end) {
            return (client, server, sum / count);
        }
        let send = |it: &mut braidcast_sctp::Association, now: Instant, report: RateReport| {
            let picture = vec![7; report.next_frame_bits as usize / 8];
            for part in picture.chunks(longest) {
                let how = SendOptions { deadline: Some(now + ms(250)), unordered: true, ..SendOptions::default() };
                it.send(now, part, how).unwrap();
            }
        };
        pair.on_client(|it, now| send(it, now, client));
        pair.on_server(|it, now| send(it, now, server));
        pair.run(ms(40));
        (pair.server_recv(), pair.client_recv());
    }
}

fn follow(pair: &mut Pair, options: &RateOptions) {
    pair.on_client(|it, now| it.follow_rate(now, options));
    pair.on_server(|it, now| it.follow_rate(now, options));
}

#[test]
fn each_end_is_told_what_its_own_direction_carries() {
    for longest in [100_000, 500] {
        let wide = LinkModel { rate: "2mbit".parse().unwrap(), ..narrows() };
        let mut pair = Pair::connected(&Options::live(), vec![Duplex::new(narrows(), wide)]);
        assert_eq!(pair.on_client(|it, now| it.rate_report(now)), None, "nobody has asked");
        follow(&mut pair, &RateOptions::default());
        let (there, back, rate) = pictures(&mut pair, longest, 8_000, 15_000);
        assert!((0.75e6..1.1e6).contains(&rate), "{rate}, {there:?}");
        assert!((1.5e6..2.2e6).contains(&back.rate), "{back:?}");
        assert_eq!((there.frame_interval_ms, there.below_least), (40.0, false));
        let (just_after, ..) = pictures(&mut pair, longest, 15_000, 15_400);
        assert!(just_after.next_frame_bits < 15_000, "0.4 s after the fall: {just_after:?}");
        let (there, back, rate) = pictures(&mut pair, longest, 18_000, 26_000);
        assert!((0.22e6..0.36e6).contains(&rate), "{rate}, {there:?}");
        assert!((1.5e6..2.2e6).contains(&back.rate), "the other direction is as it was: {back:?}");
    }
}

#[test]
fn what_the_application_can_do_bounds_what_it_is_told() {
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(narrows())]);
    let limits = RateLimits { least: 400_000, greatest: 600_000 };
    follow(&mut pair, &RateOptions { limits, interval: Some(ms(40)), ..RateOptions::default() });
    let (there, _, rate) = pictures(&mut pair, 2_000, 8_000, 15_000);
    assert_eq!(rate, 6e5, "{there:?}");
    let (there, ..) = pictures(&mut pair, 2_000, 18_000, 25_000);
    assert!(there.rate == 4e5 && there.below_least, "the link carries less than the least: {there:?}");
    let lower = RateLimits { least: 100_000, ..limits };
    pair.on_client(|it, _| it.set_rate_limits(lower));
    let (there, _, rate) = pictures(&mut pair, 2_000, 28_000, 35_000);
    assert!((0.22e6..0.36e6).contains(&rate) && !there.below_least, "{rate}, {there:?}");
}
