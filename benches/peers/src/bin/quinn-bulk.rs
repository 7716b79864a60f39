//! QUIC by quinn, AES-128-GCM, one stream or unreliable datagrams over one connection, one thread at each end.
//!   quinn-bulk server ADDR:PORT CERTIFICATE         writes its certificate there, prints READY, then RESULT
//!   quinn-bulk client ADDR:PORT CERTIFICATE BYTES [datagrams]

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendDatagramError, ServerConfig, TokioRuntime,
    TransportConfig,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn Error>>;

/// Bytes of each socket buffer and each QUIC window's unit.
const BUFFER: u32 = 4 << 20;
/// Bytes handed to the stream at once.
const CHUNK: usize = 1 << 20;
/// Bytes in a datagram, as in the other peers' messages.
const DATAGRAM: usize = 1400;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", addr, certificate] => server(addr.parse()?, Path::new(certificate)).await,
        ["client", addr, certificate, bytes] => {
            let connection = connect(addr.parse()?, Path::new(certificate)).await?;
            send_stream(connection, bytes.parse()?).await
        }
        ["client", addr, certificate, bytes, "datagrams"] => {
            let connection = connect(addr.parse()?, Path::new(certificate)).await?;
            send_datagrams(connection, bytes.parse()?).await
        }
        _ => {
            Err("usage: quinn-bulk server ADDR:PORT CERTIFICATE | client ADDR:PORT CERTIFICATE BYTES [datagrams]"
                .into())
        }
    }
}

async fn server(addr: SocketAddr, certificate: &Path) -> Outcome {
    let made = rcgen::generate_simple_self_signed(vec!["peer".into()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket(addr)?, Arc::new(TokioRuntime))?;
    std::fs::write(certificate, made.cert.der())?;
    println!("READY");

    let connection = endpoint.accept().await.ok_or("the endpoint closed")?.await?;
    tokio::select! {
        stream = connection.accept_uni() => receive_stream(stream?).await?,
        datagram = connection.read_datagram() => receive_datagrams(&connection, datagram?.len()).await,
    }
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// Counts datagrams until the client closes. The first one had `first` bytes.
async fn receive_datagrams(connection: &Connection, first: usize) {
    let start = Instant::now();
    let (mut bytes, mut count, mut last) = (first, 1, start);
    while let Ok(datagram) = connection.read_datagram().await {
        bytes += datagram.len();
        count += 1;
        last = Instant::now();
    }
    println!("RESULT bytes={bytes} msgs={count} secs={:.6}", (last - start).as_secs_f64());
}

async fn receive_stream(mut stream: RecvStream) -> Outcome {
    let start = Instant::now();
    let mut bufs: [_; 64] = std::array::from_fn(|_| Default::default());
    let (mut bytes, mut chunks) = (0, 0);
    while let Some(n) = stream.read_chunks(&mut bufs).await? {
        chunks += n;
        bytes += bufs[..n].iter().map(|buf| buf.len()).sum::<usize>();
    }
    println!("RESULT bytes={bytes} msgs={chunks} secs={:.6}", start.elapsed().as_secs_f64());
    Ok(())
}

async fn connect(addr: SocketAddr, certificate: &Path) -> Result<Connection, Box<dyn Error>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(std::fs::read(certificate)?.into())?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket(any)?, Arc::new(TokioRuntime))?;
    Ok(endpoint.connect_with(config, addr, "peer")?.await?)
}

async fn send_datagrams(connection: Connection, bytes: usize) -> Outcome {
    let payload = Bytes::from(vec![0; DATAGRAM]);
    let mut left = bytes;
    while left > 0 {
        // Until the path's MTU is known they must be shorter.
        let n = left.min(DATAGRAM).min(connection.max_datagram_size().ok_or("no datagrams")?);
        match connection.send_datagram_wait(payload.slice(..n)).await {
            Ok(()) => left -= n,
            // The MTU shrank while it waited.
            Err(SendDatagramError::TooLarge) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Nothing says when the last ones have left; this is much longer than it takes.
    tokio::time::sleep(Duration::from_millis(200)).await;
    connection.close(0_u32.into(), b"");
    Ok(())
}

async fn send_stream(connection: Connection, bytes: usize) -> Outcome {
    let mut stream = connection.open_uni().await?;
    let chunk = vec![0; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let n = left.min(CHUNK);
        stream.write_all(&chunk[..n]).await?;
        left -= n;
    }
    stream.finish()?;
    connection.closed().await; // by the server, once it has everything
    Ok(())
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let window = 4 * BUFFER;
    config.datagram_receive_buffer_size(Some(window as usize));
    config.stream_receive_window(window.into()).receive_window(window.into()).send_window(window.into());
    Arc::new(config)
}

fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn socket(addr: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(addr), socket2::Type::DGRAM, None)?;
    socket.set_recv_buffer_size(BUFFER as usize)?;
    socket.set_send_buffer_size(BUFFER as usize)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}
