//! A camera: sends test video, 25 frames a second, over as many networks as are named, to `screen`.
//!
//! `cargo run -p braidcast --features media --example camera SECONDS KEY HOST:PORT[@INTERFACE]…`
#![allow(clippy::disallowed_methods, reason = "a program of its own has a clock")]

mod pattern;

use braidcast::media::{AccessUnit, Coding, Error, MediaSender, Path, SenderEvent};
use pattern::Pattern;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(40);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(seconds), Some(key)) = (args.next(), args.next()) else {
        return Err("camera SECONDS KEY HOST:PORT[@INTERFACE]…".into());
    };
    let paths = args.map(|path| path.parse()).collect::<Result<Vec<Path>, _>>()?;
    let sender = MediaSender::builder().key(&key).name("camera").latency(Duration::from_millis(700)).call(&paths)?;
    let video = sender.add_track(Coding::H264)?;
    let watcher = sender.clone();
    std::thread::spawn(move || watch(&watcher));

    let (begin, mut pattern) = (Instant::now(), Pattern::default());
    for number in 0..seconds.parse::<u32>()? * 25 {
        std::thread::sleep((begin + number * INTERVAL).saturating_duration_since(Instant::now()));
        let frame = pattern.next();
        // An encoder would make it as large as the networks carry; this one leaves out what is of use to no other.
        let room = sender.rate_report()?.next_frame_bits > 0;
        if room || frame.layer == 0 {
            let unit = AccessUnit::new(video, number * INTERVAL, frame.bytes);
            sender.send(unit.with_key(frame.key).in_layer(frame.layer))?;
        }
        if number % 25 == 24 {
            let report = sender.report();
            let lost: u64 = report.paths.iter().map(|path| path.lost_chunks).sum();
            println!("sent {} bytes over {} paths, lost {lost} parts", report.input_bytes, report.paths.len());
        }
    }
    println!("all arrived: {}", sender.finish(Duration::from_secs(10))?);
    Ok(())
}

fn watch(sender: &MediaSender) {
    loop {
        match sender.poll(None) {
            Ok(Some(SenderEvent::Connected)) => println!("connected"),
            Ok(Some(SenderEvent::Lost { reason })) => println!("lost: {reason}"),
            Ok(Some(SenderEvent::PathUp { name, .. })) => println!("{name} is up"),
            Ok(Some(SenderEvent::PathDown { name, .. })) => println!("{name} is down"),
            Ok(Some(SenderEvent::Warning(words))) => println!("{words}"),
            Ok(Some(SenderEvent::Ended { reason, .. })) => println!("ended: {reason}"),
            Err(Error::Over) => return,
            _ => {}
        }
    }
}
