//! A line from each side, over as many networks as there are.
//!
//! `cargo run -p braidcast-socket --example chat -- 0.0.0.0:9000`, and elsewhere
//! `… --example chat -- HOST_ADDRESS:9000 wlan0 wwan0`

use braidcast_socket::{ConnectionId, Event, Path, Protection, SendOptions, Socket};
use std::error::Error;
use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address: SocketAddr = args.next().ok_or("give an address with a port")?.parse()?;
    let paths: Vec<Path> = args.map(|via| Path::via(address, &via)).collect();
    let mut socket = Socket::new(&Protection::Anyone)?;
    let mut other: Option<ConnectionId> = None;
    if paths.is_empty() {
        println!("waiting at {}", socket.bind(address)?);
        socket.listen();
    } else {
        other = Some(socket.connect(&paths)?);
    }
    let (lines, typed) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    let mut message = Vec::new();
    loop {
        // Typed lines wait for 20 ms at most. A program with an event loop would wait for the
        // socket's file descriptor.
        match socket.poll(Some(Duration::from_millis(20)))? {
            Some((connection, Event::Readable)) => {
                while socket.recv(connection, &mut message)?.is_some() {
                    println!("> {}", String::from_utf8_lossy(&message));
                }
            }
            Some((connection, Event::Connected)) => other = Some(connection),
            Some((_, Event::PathUp { name, .. })) => println!("{name} is up"),
            Some((_, Event::PathDown { name, .. })) => println!("{name} does not answer"),
            Some((_, Event::Closed { reason, .. })) => {
                println!("{reason}");
                return Ok(());
            }
            _ => {}
        }
        match typed.try_recv() {
            Ok(line) if !line.is_empty() => {
                let connection = other.ok_or("nobody is there yet")?;
                socket.send(connection, line.as_bytes(), &SendOptions::default())?;
            }
            Ok(_) | Err(mpsc::TryRecvError::Empty) => {}
            Err(mpsc::TryRecvError::Disconnected) => {
                socket.close(Duration::from_secs(5))?;
                return Ok(());
            }
        }
    }
}
