//! A message over two paths, on real sockets: both ends in one process, a thread each.
//!
//! `cargo run -p braidcast-driver --example two_paths_blocking`

use braidcast_core::{Machine, Rng, Route};
use braidcast_driver::{Bind, Driver, entropy};
use braidcast_sctp::{Endpoint, Event, Options, SendOptions};
use std::error::Error;
use std::net::SocketAddr;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    // A path is a local socket and a remote address: two sockets at the server make two paths.
    let mut driver = Driver::new()?;
    let mut at = Vec::new();
    for _ in 0..2 {
        let socket = driver.bind(&Bind::to_addr("127.0.0.1:0".parse()?))?;
        at.push(driver.socket(socket).ok_or("no socket")?.local_addr());
    }
    let server = std::thread::spawn(move || serve(driver));
    send(&at)?;
    let message = server.join().map_err(|_| "the server panicked")??;
    println!("{message}");
    Ok(())
}

/// Waits for one message.
fn serve(mut driver: Driver) -> Outcome<String> {
    let mut endpoint = Endpoint::new(Options::live(), Rng::from_entropy(entropy()?))?;
    endpoint.listen();
    let (mut buf, mut message) = (Vec::new(), String::new());
    loop {
        driver.drive(&mut endpoint, None)?;
        while let Some((id, event)) = endpoint.poll_event() {
            match event {
                Event::Readable => {
                    let now = driver.now();
                    while endpoint.association_mut(id).and_then(|it| it.recv(now, &mut buf)).is_some() {
                        message = String::from_utf8_lossy(&buf).into_owned();
                    }
                }
                Event::Closed(_) => return Ok(message),
                _ => {}
            }
        }
    }
}

/// Sends one message once both paths are up; whichever is better carries it.
fn send(at: &[SocketAddr]) -> Outcome<()> {
    let mut driver = Driver::new()?;
    let socket = driver.bind(&Bind::default())?;
    let options = Options::live();
    let port = options.local_port;
    let mut endpoint = Endpoint::new(options, Rng::from_entropy(entropy()?))?;
    let routes: Vec<Route> = at.iter().map(|at| Route::new(socket, *at)).collect();
    let id = endpoint.connect(driver.now(), port, &routes)?;
    let mut up = 0;
    loop {
        driver.drive(&mut endpoint, None)?;
        while let Some((_, event)) = endpoint.poll_event() {
            match event {
                Event::PathUp(path, route) => {
                    println!("path {path} is up: {route}");
                    up += 1;
                    if up == routes.len() {
                        let association = endpoint.association_mut(id).ok_or("it is gone")?;
                        association.send(driver.now(), b"hello over two paths", SendOptions::default())?;
                        association.shutdown(driver.now());
                    }
                }
                Event::Closed(reason) => {
                    println!("closed: {reason}");
                    return Ok(());
                }
                _ => {}
            }
        }
    }
}
