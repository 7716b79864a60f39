//! X.509 (RFC 5280) if somebody has a PKI: certificates in place of raw public keys, checked
//! against authorities by `webpki`.

use crate::Insecurity;
use crate::exchange::Fingerprint;
use crate::identity::fingerprint;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore, SignatureScheme, client::ResolvesClientCert};
use std::sync::Arc;

/// What is wrong with a file of certificates or keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum X509Error {
    /// Nothing of the kind is there.
    #[error("there is no {0} in it; it must be in PEM form, with a line -----BEGIN …-----")]
    Missing(&'static str),
    /// It is no PEM (RFC 7468), or what it holds makes no sense.
    #[error("it cannot be used: {0}")]
    Broken(String),
    /// The key belongs to another certificate.
    #[error("this private key is not the one of the certificate")]
    Mismatch,
}

impl X509Error {
    fn of(what: &'static str, error: &pem::Error) -> Self {
        if matches!(error, pem::Error::NoItemsFound) { Self::Missing(what) } else { Self::Broken(error.to_string()) }
    }
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, X509Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| X509Error::of("certificate", &error))?;
    if found.is_empty() { Err(X509Error::Missing("certificate")) } else { Ok(found) }
}

/// An end's certificate, and those between it and the authority.
#[derive(Clone, Debug)]
pub struct Chain(Vec<CertificateDer<'static>>);

impl Chain {
    /// From PEM: the end's own first.
    ///
    /// # Errors
    /// [`X509Error`].
    pub fn from_pem(text: &[u8]) -> Result<Self, X509Error> {
        let chain = certificates(text)?;
        fingerprint_of(&chain[0]).map_err(|error| X509Error::Broken(error.to_string()))?;
        Ok(Self(chain))
    }

    /// With its private key, from PEM; and the fingerprint of the public key in it.
    pub(crate) fn certified(self, key: &[u8]) -> Result<(CertifiedKey, Fingerprint), X509Error> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| X509Error::of("private key", &error))?;
        let fingerprint = fingerprint_of(&self.0[0]).map_err(|error| X509Error::Broken(error.to_string()))?;
        let certified = CertifiedKey::from_der(self.0, key, &aws_lc_rs::default_provider());
        certified.map(|it| (it, fingerprint)).map_err(|error| match error {
            Error::InconsistentKeys(_) => X509Error::Mismatch,
            other => X509Error::Broken(other.to_string()),
        })
    }
}

/// A name that certificates are for (RFC 6125, RFC 5280 §4.2.1.6): of DNS, or an IP address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name(ServerName<'static>);

impl Name {
    /// `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        ServerName::try_from(text.to_ascii_lowercase()).ok().map(Self)
    }

    /// What stands for it where others have the fingerprint of a key.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(format!("a certificate for {}", self.0.to_str()).as_bytes())
    }

    /// Returns `true` if `certificate` is for it; wildcards count.
    fn is_in(&self, certificate: &CertificateDer<'_>) -> bool {
        ParsedCertificate::try_from(certificate).is_ok_and(|it| verify_server_name(&it, &self.0).is_ok())
    }

    /// What stands for the first of `names` that `certificate` is for.
    pub(crate) fn first_in(names: &[Self], certificate: &CertificateDer<'_>) -> Option<Fingerprint> {
        names.iter().find(|name| name.is_in(certificate)).map(Self::fingerprint)
    }
}

/// SHA-256 of the public key in a certificate, as of raw public keys.
fn fingerprint_of(certificate: &CertificateDer<'_>) -> Result<Fingerprint, Error> {
    Ok(fingerprint(&ParsedCertificate::try_from(certificate)?.subject_public_key_info()))
}

/// Whose certificates are taken, and for whom.
#[derive(Clone, Debug)]
pub struct Authority {
    servers: Arc<WebPkiServerVerifier>,
    clients: Arc<dyn ClientCertVerifier>,
    /// Of whom this end connects to: the certificate must be for one of these. Empty at an end that
    /// waits for others. The roles of TLS are not asked: over SCTP who waits is TLS's client.
    names: Vec<ServerName<'static>>,
}

impl Authority {
    /// From PEM: the authorities' own certificates.
    ///
    /// # Errors
    /// [`X509Error`].
    pub fn from_pem(text: &[u8]) -> Result<Self, X509Error> {
        let broken = |error: &dyn core::fmt::Display| X509Error::Broken(error.to_string());
        let (mut roots, provider) = (RootCertStore::empty(), Arc::new(provider()));
        for certificate in certificates(text)? {
            roots.add(certificate).map_err(|error| broken(&error))?;
        }
        let roots = Arc::new(roots);
        let servers = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider);
        Ok(Self {
            servers: servers.build().map_err(|error| broken(&error))?,
            clients: clients.build().map_err(|error| broken(&error))?,
            names: Vec::new(),
        })
    }

    /// The same for an end that connects to a server which is called by one of `hosts`: names of
    /// DNS, or IP addresses. The server's certificate must be for one of them.
    ///
    /// # Errors
    /// The host that is neither.
    pub fn of_hosts(self, hosts: &[String]) -> Result<Self, String> {
        let name = |host: &String| ServerName::try_from(host.clone()).map_err(|_| host.clone());
        let names = hosts.iter().map(name).collect::<Result<_, _>>()?;
        Ok(Self { names, ..self })
    }

    /// The fingerprint of the key of the other end's certificate, and whether the certificate is
    /// good: that of who is connected to must be for its name and for servers, that of who connects
    /// for clients, if it says for whom (RFC 5280 §4.2.1.12).
    pub(crate) fn check(
        &self,
        (end, between): (&CertificateDer<'_>, &[CertificateDer<'_>]),
        now: UnixTime,
    ) -> (Option<Fingerprint>, Result<(), Error>) {
        let as_server = |name| self.servers.verify_server_cert(end, between, name, &[], now).map(|_| ());
        let mut checked = None;
        for name in &self.names {
            let result = as_server(name);
            let good = result.is_ok();
            checked = Some(result);
            if good {
                break;
            }
        }
        let as_client = || self.clients.verify_client_cert(end, between, now).map(|_| ());
        (fingerprint_of(end).ok(), checked.unwrap_or_else(as_client))
    }

    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        self.servers.supported_verify_schemes()
    }

    /// What is wrong with the other end's certificate: its kind, and words behind "the other end's certificate".
    pub(crate) fn complaint(&self, error: &CertificateError) -> (Insecurity, String) {
        use CertificateError as E;
        match error {
            E::Expired | E::ExpiredContext { .. } => {
                (Insecurity::Clock, "has expired, by the clock of the end that checks it".into())
            }
            E::NotValidYet | E::NotValidYetContext { .. } => {
                (Insecurity::Clock, "is not valid yet, by the clock of the end that checks it".into())
            }
            E::NotValidForName | E::NotValidForNameContext { .. } => {
                let names: Vec<_> = self.names.iter().map(|name| name.to_str()).collect();
                (Insecurity::WrongHost, format!("is not for {}", names.join(" or ")))
            }
            other => (Insecurity::Certificate, Self::other_complaint(other)),
        }
    }

    fn other_complaint(error: &CertificateError) -> String {
        use CertificateError as E;
        match error {
            // The latter where an authority has the name of one that is known, and another key.
            E::UnknownIssuer | E::BadSignature => "is not of an authority that the end which checks it knows".into(),
            E::InvalidPurpose | E::InvalidPurposeContext { .. } => "is not for this use (extended key usage)".into(),
            E::ApplicationVerificationFailure => "is good, and not in the list of the end that checks it".into(),
            other => format!("is not good: {other}"),
        }
    }
}

/// With all kinds of keys that certificates have.
fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

/// Shows the same certificate to everybody.
#[derive(Debug)]
pub(crate) struct Shows(pub(crate) Arc<CertifiedKey>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _root_hint_subjects: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Shows {
    fn resolve(&self, _client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
