//! A vehicle: 50 messages a second that are worth nothing after 200 ms, a file beside them that
//! goes on where it stopped, commands back, and a new connection whenever one ends.
//!
//! `telemetry IDENTITY SERVER_FINGERPRINT SECONDS FILE HOST:PORT[@INTERFACE]...`
#![allow(clippy::disallowed_methods, reason = "a program of its own has a clock")]

use braidcast::{ConnectionId, Event, Identity, Path, SendOptions, Socket, Trust};
use std::time::{Duration, Instant, SystemTime};

/// Kinds of messages.
const TELEMETRY: u32 = 1;
const FILE: u32 = 2;
const ACK: u32 = 3;
const COMMAND: u32 = 4;
const BEGIN: u32 = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [own, server, seconds, name, paths @ ..] = &args[..] else { return Err("see the comment above".into()) };
    let paths = paths.iter().map(|it| it.parse()).collect::<Result<Vec<Path>, _>>()?;
    let file = std::fs::read(name)?;
    let mut socket = Socket::builder()
        .identity(Identity::load_or_create(own)?, Trust::only([server])?)
        .longest_silence(Some(Duration::from_secs(3)))
        .build()?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let (mut retry, mut due) = (Instant::now(), Instant::now());
    let (mut connection, mut message): (Option<ConnectionId>, _) = (None, Vec::new());
    // From here on the file is sent, once the server has said so; before, nothing else is sent either.
    let mut sent: Option<usize> = None;
    let (mut number, mut taken, mut discarded, mut missed) = (0_u64, 0, 0, 0);
    let deadline = Duration::from_millis(200);
    let telemetry = SendOptions::new().stream(1).unordered().deadline(deadline).ppid(TELEMETRY);
    let in_turn = SendOptions::new().stream(2).priority(-3).ppid(FILE);
    while Instant::now() < end {
        if connection.is_none() && Instant::now() >= retry {
            retry = Instant::now() + Duration::from_millis(500);
            connection = socket.connect(&paths).inspect_err(|error| println!("{error}")).ok();
        }
        while due <= Instant::now() {
            (due, number) = (due + Duration::from_millis(20), number + 1);
            let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as u64;
            let body = [number.to_be_bytes(), at.to_be_bytes()].concat();
            match connection.filter(|_| sent.is_some()).map(|id| socket.send(id, &body, &telemetry)) {
                Some(Ok(())) => taken += 1,
                _ => missed += 1,
            }
            if number % 50 == 0 {
                println!("{taken} sent, {discarded} discarded, {missed} without connection");
                for path in connection.into_iter().flat_map(|id| socket.paths(id)).flatten() {
                    println!("  {} {:?} {:?} lost {}", path.name, path.state, path.rtt, path.lost_chunks);
                }
            }
        }
        while let (Some(id), Some(from)) = (connection, sent.filter(|it| *it < file.len())) {
            let to = file.len().min(from + 16_384);
            let chunk = [&(from as u64).to_be_bytes(), &file[from..to]].concat();
            if socket.buffered(id)? > 65_536 || socket.send(id, &chunk, &in_turn).is_err() {
                break;
            }
            sent = Some(to);
        }
        let Some((id, event)) = socket.poll(Some(due - Instant::now()))? else { continue };
        match event {
            Event::Connected => {
                let begin = [&(file.len() as u64).to_be_bytes(), name.as_bytes()].concat();
                socket.send(id, &begin, &in_turn.ppid(BEGIN))?;
            }
            // It comes again as long as there are messages.
            Event::Readable => match (socket.recv(id, &mut message)?.map(|it| it.ppid), message.first_chunk()) {
                (Some(COMMAND), _) => println!("command: {}", String::from_utf8_lossy(&message)),
                (Some(ACK), Some(there)) => {
                    let there = u64::from_be_bytes(*there) as usize;
                    sent.get_or_insert(there);
                    println!("the server has {there} of {} bytes", file.len());
                }
                _ => {}
            },
            Event::Discarded { .. } => discarded += 1,
            Event::PathDown { name, .. } => println!("{name} is down"),
            Event::Closed { reason, .. } => {
                println!("closed: {reason}");
                (connection, sent) = (None, None);
            }
            _ => {}
        }
    }
    println!("ended in good order: {}", socket.close(Duration::from_secs(5))?);
    Ok(())
}
