//! Nanoseconds to insert and to take a message where 100,000 wait,
//! `cargo run --release -p braidcast-queue --example queue_speed`: of four priorities, with lives
//! that depend on the priority as those of media do, and with lives at random.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use braidcast_core::{Instant, Rng};
use braidcast_queue::{Limits, Method, Outlook, Priority, SendQueue, Tag};
use core::time::Duration;
use std::time::Instant as Clock;

const WAITING: u32 = 100_000;

fn main() {
    println!("{:<15} {:>6} {:>6}   {:>6} {:>6}", "ns", "media", "", "random", "");
    println!("{:<15} {:>6} {:>6}   {:>6} {:>6}", "", "insert", "take", "insert", "take");
    for (name, method) in Method::ALL {
        let [media, random] = [false, true].map(|random| measure(method, random));
        println!("{name:<15} {:>6.0} {:>6.0}   {:>6.0} {:>6.0}", media.0, media.1, random.0, random.1);
    }
}

/// Nanoseconds for each insertion and each taking, the median of some rounds.
fn measure(method: Method, random: bool) -> (f64, f64) {
    let mut queue = method.queue::<u32>(Limits::NONE);
    let (mut rng, mut gone, mut n) = (Rng::from_seed(1), Vec::new(), 0);
    // Time stands still, so that only at such a rate all can go in time.
    let outlook = Outlook { rate: Some(1e12), ..Outlook::default() };
    let mut fill = |queue: &mut Box<dyn SendQueue<u32>>| {
        let tags: Vec<Tag> = (0..WAITING / 10)
            .map(|_| {
                n += 1;
                let priority = rng.below(4) as u8;
                let life = 150 + if random { rng.below(2000) } else { 50 * u64::from(priority) };
                let expiry = Some(Instant::from_millis(u64::from(n)) + Duration::from_millis(life));
                Tag {
                    priority: Priority::new(priority).expect("below 8"),
                    expiry,
                    len: 1 + rng.below(1400) as usize,
                    frame: None,
                }
            })
            .collect();
        let start = Clock::now();
        for tag in &tags {
            queue.push(&outlook, *tag, n, &mut gone).expect("there is no limit");
        }
        start.elapsed().as_nanos() as f64 / tags.len() as f64
    };
    for _ in 0..10 {
        fill(&mut queue);
    }
    let mut rounds: [Vec<f64>; 2] = Default::default();
    for _ in 0..21 {
        let start = Clock::now();
        for _ in 0..WAITING / 10 {
            std::hint::black_box(queue.pop(&outlook, &mut Vec::new()));
        }
        rounds[1].push(start.elapsed().as_nanos() as f64 / f64::from(WAITING / 10));
        rounds[0].push(fill(&mut queue));
    }
    let [insert, take] = rounds.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    assert!(queue.len() == WAITING as usize);
    (insert, take)
}
