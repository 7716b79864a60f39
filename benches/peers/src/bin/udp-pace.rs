//! An encoder and a player, as the live measurements see them.
//!   udp-pace source FILE ADDR:PORT MBIT      sends FILE in datagrams of 1316 bytes, evenly paced
//!   udp-pace nulls SECS ADDR:PORT MBIT       the same of null packets; to stdout if it is - in place of the address
//!   udp-pace sink ADDR:PORT IDLE_SECS        prints READY; RESULT after IDLE_SECS without a datagram, once one came

use std::error::Error;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Seven MPEG-TS packets, as everyone sends them.
const DATAGRAM: usize = 7 * 188;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["source", file, to, mbit] => source(BufReader::new(File::open(file)?), to, mbit.parse()?),
        ["nulls", secs, to, mbit] => {
            let mbit: f64 = mbit.parse()?;
            let packets = mbit * 1e6 * secs.parse::<f64>()? / (8.0 * DATAGRAM as f64);
            let null = [&[0x47, 0x1f, 0xff, 0x10][..], &[0xff; 184]].concat().repeat(DATAGRAM / 188);
            source(Nulls { null, left: packets as u64 }, to, mbit)
        }
        ["sink", at, idle] => sink(at, Duration::from_secs_f64(idle.parse()?)),
        _ => {
            Err("usage: udp-pace source FILE ADDR:PORT MBIT | nulls SECS ADDR:PORT MBIT | sink ADDR:PORT IDLE_SECS"
                .into())
        }
    }
}

/// So many datagrams of null packets.
struct Nulls {
    null: Vec<u8>,
    left: u64,
}

impl Read for Nulls {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = if self.left > 0 { buf.len().min(self.null.len()) } else { 0 };
        self.left -= u64::from(len > 0);
        buf[..len].copy_from_slice(&self.null[..len]);
        Ok(len)
    }
}

fn source(mut file: impl Read, to: &str, mbit: f64) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let to_stdout = to == "-";
    if !to_stdout {
        socket.connect(to)?;
    }
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
        if to_stdout {
            std::io::stdout().write_all(&datagram)?;
            due += gap;
            continue;
        }
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
