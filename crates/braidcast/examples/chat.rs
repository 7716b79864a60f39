//! A line from each side, over as many networks as there are.
//!
//! `cargo run -p braidcast --example chat -- 0.0.0.0:9000`, and elsewhere
//! `… --example chat -- HOST_ADDRESS:9000 wlan0 wwan0`

use braidcast::{ConnectionId, Event, Path, Protection, SendOptions, SharedSocket, Socket};
use std::error::Error;
use std::io::BufRead;
use std::net::SocketAddr;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address: SocketAddr = args.next().ok_or("give an address with a port")?.parse()?;
    let paths: Vec<Path> = args.map(|via| Path::via(address, &via)).collect();
    let mut socket = Socket::new(&Protection::Anyone)?;
    if paths.is_empty() {
        println!("waiting at {}", socket.bind(address)?);
        socket.listen();
    } else {
        socket.connect(&paths)?;
    }
    let socket = SharedSocket::new(socket)?;
    let typing = socket.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok).filter(|line| !line.is_empty()) {
            if let Err(error) = typing.with(|socket| say(socket, &line)) {
                println!("not sent: {error}");
            }
        }
        // No more is typed: what was sent still arrives.
        let closed = typing.close(Duration::from_secs(5));
        std::process::exit(i32::from(!matches!(closed, Ok(true))));
    });
    let mut message = Vec::new();
    while let Some((connection, event)) = socket.poll(None)? {
        match event {
            Event::Readable if socket.with(|socket| socket.recv(connection, &mut message))?.is_some() => {
                println!("> {}", String::from_utf8_lossy(&message));
            }
            Event::PathUp { name, .. } => println!("{name} is up"),
            Event::PathDown { name, .. } => println!("{name} does not answer"),
            Event::Closed { reason, .. } => {
                println!("{reason}");
                return Ok(());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends `line` to everybody who is there.
fn say(socket: &mut Socket, line: &str) -> Result<(), braidcast::Error> {
    for connection in socket.connections().collect::<Vec<ConnectionId>>() {
        socket.send(connection, line.as_bytes(), &SendOptions::default())?;
    }
    Ok(())
}
