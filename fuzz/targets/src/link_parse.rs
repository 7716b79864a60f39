//! Any text as the description of a link, and as a recorded trace.

use braidcast_sim::link::{Jitter, Loss, Outage, Queue, Rate, Reorder, Trace, parse};

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(trace) = Trace::read("fuzz", bytes) {
        assert!(trace.period_millis() > 0 && !trace.millis().is_empty());
        let _ = trace.mean_bits_per_second();
    }
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let _ = parse::duration(text);
    let _ = (text.parse::<Jitter>(), text.parse::<Outage>(), text.parse::<Queue>(), text.parse::<Reorder>());
    let _ = text.parse::<Loss>();
    match text.parse() {
        Ok(Rate::Bits(bits)) => assert!(bits > 0),
        Ok(Rate::Schedule(schedule)) => assert!(schedule.min() > 0),
        _ => {}
    }
    let _ = parse::delay_schedule(text);
    if let Ok(share) = parse::share(text) {
        assert!((0.0..=1.0).contains(&share));
    }
}
