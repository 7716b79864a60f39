//! Messages over two paths in tasks of tokio: a server that echoes, and a client that asks it three things.
//!
//! `cargo run -p braidcast-driver --features tokio --example two_paths_tokio`

use braidcast_core::{Machine, Rng, Route};
use braidcast_driver::{AsyncDriver, Bind, Driver, entropy};
use braidcast_sctp::{AssociationId, Endpoint, Event, Options, SendOptions};
use std::error::Error;
use std::net::SocketAddr;
use tokio::sync::mpsc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut driver = Driver::new()?;
    let mut at = Vec::new();
    for _ in 0..2 {
        let socket = driver.bind(&Bind::to_addr("127.0.0.1:0".parse()?))?;
        at.push(driver.socket(socket).ok_or("no socket")?.local_addr());
    }
    let server = tokio::spawn(serve(AsyncDriver::new(driver)?));
    // Whatever else the program does goes on in tasks of its own; a channel leads to the one that owns the connection.
    let (questions, asked) = mpsc::channel(8);
    let client = tokio::spawn(ask(at, asked));
    for text in ["one", "two", "three"] {
        questions.send(text.to_owned()).await?;
    }
    drop(questions);
    client.await??;
    server.await?
}

/// Sends back what comes, until the first client has gone.
async fn serve(mut driver: AsyncDriver) -> Outcome<()> {
    let mut endpoint = Endpoint::new(Options::live(), Rng::from_entropy(entropy()?))?;
    endpoint.listen();
    let mut message = Vec::new();
    loop {
        driver.drive(&mut endpoint, None).await?;
        while let Some((id, event)) = endpoint.poll_event() {
            match event {
                Event::Readable => {
                    let now = driver.get().now();
                    let Some(association) = endpoint.association_mut(id) else { continue };
                    while association.recv(now, &mut message).is_some() {
                        association.send(now, &message, SendOptions::default())?;
                    }
                }
                Event::Closed(_) => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Connects over two paths, sends what comes from the channel, and prints the answers.
async fn ask(at: Vec<SocketAddr>, mut questions: mpsc::Receiver<String>) -> Outcome<()> {
    let mut driver = Driver::new()?;
    let socket = driver.bind(&Bind::default())?;
    let mut driver = AsyncDriver::new(driver)?;
    let options = Options::live();
    let port = options.local_port;
    let mut endpoint = Endpoint::new(options, Rng::from_entropy(entropy()?))?;
    let routes: Vec<Route> = at.iter().map(|at| Route::new(socket, *at)).collect();
    let id = endpoint.connect(driver.get().now(), port, &routes)?;
    let (mut open, mut unanswered) = (true, 0);
    loop {
        tokio::select! {
            wake = driver.drive(&mut endpoint, None) => { wake?; }
            question = questions.recv(), if open => {
                let association = endpoint.association_mut(id).ok_or("the server has gone")?;
                match question {
                    Some(text) => {
                        association.send(driver.get().now(), text.as_bytes(), SendOptions::default())?;
                        unanswered += 1;
                    }
                    None => open = false,
                }
            }
        }
        while let Some((id, event)) = endpoint.poll_event() {
            match event {
                Event::Readable => unanswered -= print_answers(&mut endpoint, id, &driver),
                Event::PathUp(path, route) => println!("path {path} is up: {route}"),
                Event::Closed(reason) => {
                    println!("closed: {reason}");
                    return Ok(());
                }
                _ => {}
            }
        }
        if !open
            && unanswered == 0
            && let Some(association) = endpoint.association_mut(id)
        {
            association.shutdown(driver.get().now());
        }
    }
}

/// How many there were.
fn print_answers(endpoint: &mut Endpoint, id: AssociationId, driver: &AsyncDriver) -> usize {
    let (mut message, mut count) = (Vec::new(), 0);
    while endpoint.association_mut(id).and_then(|it| it.recv(driver.get().now(), &mut message)).is_some() {
        println!("answer: {}", String::from_utf8_lossy(&message));
        count += 1;
    }
    count
}
