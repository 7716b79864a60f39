//! An encoder and a player, as the live measurements see them.
//!   udp-pace source FILE ADDR:PORT MBIT      sends FILE in datagrams of 1316 bytes, evenly paced
//!   udp-pace sink ADDR:PORT IDLE_SECS        prints READY; RESULT after IDLE_SECS without a datagram, once one came

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Seven MPEG-TS packets, as everyone sends them.
const DATAGRAM: usize = 7 * 188;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["source", file, to, mbit] => source(file, to, mbit.parse()?),
        ["sink", at, idle] => sink(at, Duration::from_secs_f64(idle.parse()?)),
        _ => Err("usage: udp-pace source FILE ADDR:PORT MBIT | sink ADDR:PORT IDLE_SECS".into()),
    }
}

fn source(file: &str, to: &str, mbit: f64) -> Result<(), Box<dyn Error>> {
    let mut file = BufReader::new(File::open(file)?);
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    let gap = Duration::from_secs_f64(DATAGRAM as f64 * 8.0 / (mbit * 1e6));
    let mut datagram = [0; DATAGRAM];
    let mut due = Instant::now();
    loop {
        match file.read_exact(&mut datagram) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        match socket.send(&datagram) {
            // Nobody listens yet, or not any more: a camera would not notice either.
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => return Err(error.into()),
            _ => {}
        }
        due += gap;
    }
}

fn sink(at: &str, idle: Duration) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(at)?;
    println!("READY");
    let mut buf = [0; 65_536];
    let mut bytes = socket.recv(&mut buf)?;
    let start = Instant::now();
    let (mut messages, mut last) = (1, start);
    socket.set_read_timeout(Some(idle))?;
    while let Ok(n) = socket.recv(&mut buf) {
        bytes += n;
        messages += 1;
        last = Instant::now();
    }
    println!("RESULT bytes={bytes} msgs={messages} secs={:.6}", (last - start).as_secs_f64());
    Ok(())
}
