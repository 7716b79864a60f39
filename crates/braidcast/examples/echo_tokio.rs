//! An echo server and a client in tasks of tokio, over two paths of this machine.
//!
//! `cargo run -p braidcast --features tokio --example echo_tokio`

use braidcast::{AsyncSocket, Connection, Error, Path, Protection, SendOptions, Socket};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let key = Protection::Key("a passphrase that both ends know".into());
    let mut server = Socket::new(&key)?;
    // Two addresses of the server make two paths. In the field: Path::via("192.0.2.1:9000".parse()?, "wlan0").
    let at = [server.bind("127.0.0.1:0".parse()?)?, server.bind("127.0.0.1:0".parse()?)?];
    server.listen();
    let server = AsyncSocket::new(server)?;
    tokio::spawn(async move {
        while let Ok(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });

    let client = AsyncSocket::new(Socket::new(&key)?)?;
    let connection = client.connect(&at.map(Path::to)).await?;
    for number in 0..10 {
        connection.send(format!("message {number}").as_bytes(), &SendOptions::default()).await?;
    }
    for _ in 0..10 {
        let answer = connection.recv().await?.ok_or("the server ended the connection")?;
        println!("{}", String::from_utf8_lossy(&answer.data));
    }
    connection.shutdown().await?;
    Ok(())
}

/// Sends back what comes, until the client has gone.
async fn echo(connection: Connection) -> Result<(), Error> {
    while let Some(message) = connection.recv().await? {
        connection.send(&message.data, &SendOptions::default()).await?;
    }
    Ok(())
}
