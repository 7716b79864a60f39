//! A message over two paths of this machine: a server in a thread, and a client.
//!
//! `cargo run -p braidcast --example two_paths`

use braidcast::{Error, Event, Path, Protection, SendOptions, Socket};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = Protection::Key("a passphrase that both ends know".into());
    let mut server = Socket::new(&key)?;
    // Two addresses of the server make two paths. In the field:
    // Path::via("192.0.2.1:9000".parse()?, "wlan0").
    let at = [server.bind("127.0.0.1:0".parse()?)?, server.bind("127.0.0.1:0".parse()?)?];
    server.listen();
    let server = std::thread::spawn(move || serve(server));

    let mut client = Socket::new(&key)?;
    let connection = client.connect(&at.map(Path::to))?;
    let mut up = 0;
    while let Some((_, event)) = client.poll(Some(Duration::from_secs(10)))? {
        match event {
            Event::PathUp { name, .. } => {
                println!("path to {name} is up");
                up += 1;
                if up == at.len() {
                    client.send(connection, b"hello over two paths", &SendOptions::default())?;
                    client.shutdown(connection)?;
                }
            }
            Event::Closed { reason, .. } => {
                println!("{reason}");
                break;
            }
            _ => {}
        }
    }
    println!("{}", server.join().map_err(|_| "the server panicked")??);
    Ok(())
}

/// Waits for one message.
fn serve(mut socket: Socket) -> Result<String, Error> {
    let mut message = Vec::new();
    loop {
        match socket.poll(None)? {
            Some((connection, Event::Readable)) => {
                socket.recv(connection, &mut message)?;
            }
            Some((_, Event::Closed { .. })) => return Ok(String::from_utf8_lossy(&message).into_owned()),
            _ => {}
        }
    }
}
