//! A screen for `camera`: writes what comes to a file as MPEG-TS, or to `-`, and says how it goes.
//!
//! `cargo run -p braidcast --features media --example screen KEY - 0.0.0.0:9000 | ffplay -fflags nobuffer -`

use braidcast::media::{MediaReceiver, ReceiverEvent};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [key, file, addrs @ ..] = &args[..] else { return Err("screen KEY FILE|- ADDRESS:PORT…".into()) };
    let addrs = addrs.iter().map(|addr| addr.parse()).collect::<Result<Vec<SocketAddr>, _>>()?;
    // Words go where the video does not.
    let say = |words: String| if file == "-" { eprintln!("{words}") } else { println!("{words}") };
    let mut out: Box<dyn Write> = match &file[..] {
        "-" => Box::new(std::io::stdout()),
        file => Box::new(OpenOptions::new().create(true).append(true).open(file)?),
    };
    let receiver = MediaReceiver::builder().key(key).named(["camera"]).listen(&addrs)?;
    for addr in receiver.local_addrs() {
        say(format!("listening at {addr}"));
    }
    let mut stream = None;
    loop {
        match receiver.poll(Some(Duration::from_secs(1)))? {
            Some(ReceiverEvent::Bytes { data, .. }) => out.write_all(&data)?,
            Some(ReceiverEvent::Connected { stream: id, name, .. }) => {
                say(format!("{name} is there"));
                stream = Some(id);
            }
            Some(ReceiverEvent::Lost { reason, .. }) => say(format!("lost: {reason}")),
            Some(ReceiverEvent::Back { .. }) => say("back".into()),
            Some(ReceiverEvent::PathDown { name, .. }) => say(format!("{name} is down")),
            Some(ReceiverEvent::Refused { name, why, .. }) => say(format!("turned away {name}: {why}")),
            Some(ReceiverEvent::Ended { reason, .. }) => {
                let report = stream.map(|stream| receiver.report(stream)).transpose()?;
                for kind in report.iter().flat_map(|report| &report.kinds) {
                    say(format!("{}: {} of {} on time", kind.kind, kind.on_time, kind.captured));
                }
                say(format!("ended: {reason}"));
            }
            _ => {}
        }
    }
}
