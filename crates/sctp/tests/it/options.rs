//! Options that cannot work are refused by name. That all others do is in `properties.rs`.

use braidcast_core::Rng;
use braidcast_sctp::{Endpoint, Options};
use core::time::Duration;

#[test]
fn what_cannot_work_is_named_with_its_limit_and_what_to_do() {
    let ms = Duration::from_millis;
    let said = |change: &dyn Fn(&mut Options)| {
        let options = Options::prompt().with(|it| change(it));
        Endpoint::new(options, Rng::from_seed(1)).err().map(|misuse| misuse.to_string())
    };
    type Change<'a> = &'a dyn Fn(&mut Options);
    let wrong: [(Change<'_>, &str); 12] = [
        (&|it| it.local_port = 0, "local_port is 0, and must be 1 or more: raise local_port"),
        (&|it| it.paths.base_mtu = 0, "paths.base_mtu is 0, and must be 508 to 65507: raise paths.base_mtu"),
        (
            &|it| it.paths.max_mtu = 1000,
            "paths.base_mtu is 1200, and must be 1000 at most, the value of paths.max_mtu: lower paths.base_mtu or raise \
             paths.max_mtu",
        ),
        (&|it| it.paths.max_paths = 33, "paths.max_paths is 33, and must be 1 to 32: lower paths.max_paths"),
        (
            &|it| it.limits.send_buffer = 9000,
            "limits.max_message is 2097152, and must be 9000 at most, the value of limits.send_buffer: lower \
             limits.max_message or raise limits.send_buffer",
        ),
        (
            &|it| it.limits.receive_buffer = 9000,
            "limits.max_message is 2097152, and must be 9000 at most, the value of limits.receive_buffer: lower \
             limits.max_message or raise limits.receive_buffer",
        ),
        (&|it| it.limits.streams = 0, "limits.streams is 0, and must be 1 or more: raise limits.streams"),
        (&|it| it.limits.max_segments = 0, "limits.max_segments is 0, and must be 1 to 64: raise limits.max_segments"),
        (
            &|it| it.timers.rto.min = ms(4000),
            "timers.rto.min is 4s, and must be 3s at most, the value of timers.rto.max: lower timers.rto.min or raise \
             timers.rto.max",
        ),
        (&|it| it.sack.delay = ms(501), "sack.delay is 501ms, and must be 0ns to 500ms: lower sack.delay"),
        (
            &|it| it.redundancy.fec = Some(braidcast_sctp::Code::Block { n: 3, k: 3 }),
            "redundancy.fec is block:3,3, and must be a code: of n symbols k are sources, so 0 < k < n: choose other numbers",
        ),
        (&|it| it.papers.max_burst = Some(0), "papers.max_burst is 0, and must be 1 or more: raise papers.max_burst"),
    ];
    for (change, text) in wrong {
        assert_eq!(said(change).as_deref(), Some(text));
    }
}

#[test]
fn the_options_that_are_offered_work() {
    for options in [Options::default(), Options::prompt(), Options::classic()] {
        assert_eq!(options.check(), Ok(()));
    }
}
