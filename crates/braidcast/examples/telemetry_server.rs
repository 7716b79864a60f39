//! A server for vehicles, each with a key of its own and what it may do.
//!
//! `telemetry_server IDENTITY AUTHORIZED FOLDER ADDRESS:PORT...`
//!
//! AUTHORIZED has lines `FINGERPRINT NAME [file] [commands]`; after SIGHUP it is read again, and who
//! lost its line is disconnected. `NAME TEXT` on standard input is a command to a vehicle. FOLDER is
//! where files come to; SIGTERM ends the server in good order.
#![allow(clippy::disallowed_methods, reason = "a program of its own has a clock")]

use braidcast::{AsyncSocket, Connection, Fingerprint, Identity, SendOptions, Socket, Trust, fingerprint};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Kinds of messages.
const TELEMETRY: u32 = 1;
const FILE: u32 = 2;
const ACK: u32 = 3;
const COMMAND: u32 = 4;
const BEGIN: u32 = 5;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
/// By its key, a vehicle's name and what it may do.
type Permits = BTreeMap<Fingerprint, (String, BTreeSet<String>)>;

fn read(list: &str) -> Outcome<Permits> {
    let mut permits = Permits::new();
    for line in std::fs::read_to_string(list)?.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let key = fingerprint(&words.next().unwrap_or_default())?;
        permits.insert(key, (words.next().ok_or("a name is missing")?, words.collect()));
    }
    Ok(permits)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [own, list, folder, addresses @ ..] = &args[..] else { return Err("see the comment above".into()) };
    let trust = |permits: &Permits| Trust::Only(permits.keys().copied().collect());
    let (own, mut permits) = (Identity::load_or_create(own)?, read(list)?);
    println!("fingerprint {}", own.fingerprint());
    let mut socket = Socket::builder().identity(own, trust(&permits)).build()?;
    for address in addresses {
        println!("listening at {}", socket.bind(address.parse()?)?);
    }
    socket.listen();
    let server = AsyncSocket::new(socket)?;
    let mut vehicles: BTreeMap<String, (Fingerprint, Connection)> = BTreeMap::new();
    let (typed, mut commands) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| typed.send(line)));
    let (mut hangup, mut terminate) = (signal(SignalKind::hangup())?, signal(SignalKind::terminate())?);
    loop {
        tokio::select! {
            accepted = server.accept() => {
                let vehicle = accepted?;
                let key = vehicle.peer().and_then(|it| it.fingerprint).unwrap_or(Fingerprint([0; 32]));
                let Some((name, rights)) = permits.get(&key) else { continue };
                println!("{name} is here");
                if let Some((_, old)) = vehicles.insert(name.clone(), (key, vehicle.clone())) {
                    old.abort(1, "you are here anew");
                }
                tokio::spawn(serve(vehicle, name.clone(), rights.clone(), PathBuf::from(folder)));
            }
            _ = hangup.recv() => {
                permits = read(list)?;
                server.with(|socket| socket.set_trust(trust(&permits)))?;
                let gone = vehicles.values().filter(|(key, _)| !permits.contains_key(key));
                gone.for_each(|(_, vehicle)| vehicle.abort(2, "no longer authorised"));
            }
            Some(line) = commands.recv() => {
                let (name, text) = line.split_once(' ').unwrap_or_default();
                let vehicle = vehicles.get(name).filter(|it| permits.get(&it.0).is_some_and(|it| it.1.contains("commands")));
                let how = SendOptions::new().ppid(COMMAND);
                let sent = vehicle.map_or(Ok(()), |(_, it)| it.try_send(text.as_bytes(), &how));
                sent.unwrap_or_else(|error| println!("{name}: {error}"));
            }
            _ = terminate.recv() => break,
        }
    }
    println!("ended in good order: {}", server.close(Duration::from_secs(5)).await?);
    Ok(())
}

/// Receives what a vehicle sends, until it has gone.
async fn serve(vehicle: Connection, name: String, rights: BTreeSet<String>, folder: PathBuf) -> Outcome<()> {
    let (mut file, mut there, mut received, mut late) = (None, 0, 0, 0);
    while let Some(message) = vehicle.recv().await? {
        let number =
            |at: usize| message.data.get(at..).and_then(|it| it.first_chunk()).map_or(0, |it| u64::from_be_bytes(*it));
        match (message.received.ppid, &mut file) {
            _ if message.data.len() < 8 => continue,
            (TELEMETRY, _) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as u64;
                (received, late) = (received + 1, late + u64::from(now.saturating_sub(number(8)) > 200_000));
                continue;
            }
            (BEGIN | FILE, _) if !rights.contains("file") => vehicle.abort(3, "you may not send files"),
            (BEGIN, _) => {
                let opened = std::fs::File::options().create(true).append(true).open(folder.join(&name))?;
                (there, file) = (opened.metadata()?.len(), Some(opened));
            }
            (FILE, Some(file)) if number(0) == there => {
                file.write_all(&message.data[8..])?;
                there += message.data.len() as u64 - 8;
            }
            _ => continue,
        }
        // It may have gone.
        _ = vehicle.try_send(&there.to_be_bytes(), &SendOptions::new().stream(2).ppid(ACK));
    }
    println!("{name}: received {received}, late {late}, file {there}; {}", vehicle.closed().await?.0);
    Ok(())
}
