//! The same by quinn, over one network and encrypted: quinn HOST:PORT NAME CERTIFICATE_OF_AUTHORITY.der

use quinn::rustls::{RootCertStore, pki_types::CertificateDer};
use quinn::{ClientConfig, Endpoint};
use std::{error::Error, fs, sync::Arc, time::Duration};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [to, name, authority] = &args[..] else { return Err("quinn HOST:PORT NAME CERTIFICATE.der".into()) };
    let mut known = RootCertStore::empty();
    known.add(CertificateDer::from(fs::read(authority)?))?;
    let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(known))?);
    let connection = endpoint.connect(to.parse()?, name)?.await?;
    // A stream for each message, as streams do not wait for each other; it is reset when it is too late.
    let mut stream = connection.open_uni().await?;
    stream.write_all(b"hello").await?;
    stream.finish()?;
    if tokio::time::timeout(Duration::from_millis(200), stream.stopped()).await.is_err() {
        stream.reset(0_u8.into())?;
    }
    connection.close(0_u8.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}
