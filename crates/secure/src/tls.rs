//! Keys by TLS 1.3 in messages (draft-porfiri-tsvwg-sctp-dtls-handshake), by `rustls`: raw public
//! keys (RFC 7250) of Ed25519 or X.509 certificates, both ends, and ephemeral keys by X25519 with
//! ML-KEM-768.

use crate::aws::AwsLc;
use crate::exchange::{Agreement, Alias, Exchange, Fingerprint, KeyKind, Method, Peer, Refused, Role, Transcript};
use crate::identity::{Identity, fingerprint};
use crate::x509::{Authority, Name, Shows};
use crate::{Ciphers, Keys, NONCE, Suite};
use braidcast_core::words;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ResolvesClientCert, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, ResolvesServerCert};
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{
    AlertDescription, CertificateError, CipherSuite, ClientConfig, ClientConnection, Connection, DigitallySignedStruct,
    DistinguishedName, Error, KeyLog, KeyLogFile, NamedGroup, ServerConfig, ServerConnection, SignatureScheme,
    version::TLS13,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The draft's identifier of this way to agree on keys.
pub const METHOD: u8 = 192;

/// Who is let in.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Who has one of these keys.
    Only(Vec<Fingerprint>),
    /// Who has a certificate that is good, and in it one of these keys or names.
    Certified(Vec<Fingerprint>, Vec<Name>),
    /// Anybody: encrypted, and not authenticated.
    Anyone,
    /// Anybody for the first time; if that shows a key of its own, none but it from then on.
    First,
}

impl Trust {
    fn takes(&self, given: Fingerprint) -> bool {
        match self {
            Self::Only(known) | Self::Certified(known, _) => {
                known.iter().fold(false, |found, it| found | bool::from(it.0.ct_eq(&given.0)))
            }
            Self::Anyone | Self::First => true,
        }
    }
}

/// The way to agree on keys that binaries use.
#[derive(Debug)]
pub struct Tls {
    identity: Identity,
    trust: Arc<Mutex<Trust>>,
    provider: Arc<CryptoProvider>,
    ciphers: AwsLc,
    key_log: Option<Arc<dyn KeyLog>>,
    /// Whose certificates are taken, in place of raw public keys.
    authority: Option<Authority>,
}

impl Tls {
    /// As `identity`, with whom `trust` lets in. Of `suites`, the first one that both have is used.
    pub fn new(identity: Identity, trust: Trust, suites: &[Suite]) -> Self {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|it| suites.iter().any(|suite| CipherSuite::from(suite.id()) == it.suite()));
        provider
            .cipher_suites
            .sort_by_key(|it| suites.iter().position(|suite| CipherSuite::from(suite.id()) == it.suite()));
        provider.kx_groups.retain(|it| matches!(it.name(), NamedGroup::X25519MLKEM768 | NamedGroup::X25519));
        Self {
            identity,
            trust: Arc::new(Mutex::new(trust)),
            provider: Arc::new(provider),
            ciphers: AwsLc,
            key_log: None,
            authority: None,
        }
    }

    /// With X.509 certificates at both ends: shows that of the identity, which must be
    /// [`KeyKind::Certified`], and takes those of `authority`. Their dates are compared with the
    /// system's clock.
    #[must_use]
    pub fn certified(self, authority: Authority) -> Self {
        Self { authority: Some(authority), ..self }
    }

    /// Appends the secrets of each handshake to the file that SSLKEYLOGFILE names, as browsers do,
    /// the exporter's among them. Who has that file reads everything.
    #[must_use]
    pub fn logging_keys(self) -> Self {
        Self { key_log: Some(Arc::new(KeyLogFile::new())), ..self }
    }

    /// Lets in others from now on; handshakes that have begun go on as they began.
    pub fn set_trust(&self, trust: Trust) {
        *lock(&self.trust) = trust;
    }

    /// What is bound goes as the one protocol of ALPN (RFC 7301): both ends must have the same, and
    /// TLS vouches for it.
    fn connection(&self, role: Role, seen: Arc<Seen>, bound: [u8; 16]) -> Result<Connection, Error> {
        let provider = Arc::clone(&self.provider);
        let clock: Arc<dyn TimeProvider> =
            if self.authority.is_some() { Arc::new(DefaultTimeProvider) } else { Arc::new(NoClock) };
        let certified = self.identity.certified();
        let raw = self.authority.is_none();
        Ok(match role {
            Role::Client => {
                let keys: Arc<dyn ResolvesClientCert> = if raw {
                    Arc::new(AlwaysResolvesClientRawPublicKeys::new(certified))
                } else {
                    Arc::new(Shows(certified))
                };
                let mut config = ClientConfig::builder_with_details(provider, clock)
                    .with_protocol_versions(&[&TLS13])?
                    .dangerous()
                    .with_custom_certificate_verifier(seen)
                    .with_client_cert_resolver(keys);
                config.key_log = self.key_log.clone().unwrap_or(config.key_log);
                (config.resumption, config.enable_sni) = (Resumption::disabled(), false);
                config.alpn_protocols = vec![bound.to_vec()];
                // Not sent, and checked by nobody: it is the key that counts.
                let name = ServerName::try_from("braidcast.invalid").map_err(|_| Error::EncryptError)?;
                ClientConnection::new(Arc::new(config), name)?.into()
            }
            Role::Server => {
                let keys: Arc<dyn ResolvesServerCert> = if raw {
                    Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified))
                } else {
                    Arc::new(Shows(certified))
                };
                let mut config = ServerConfig::builder_with_details(provider, clock)
                    .with_protocol_versions(&[&TLS13])?
                    .with_client_cert_verifier(seen)
                    .with_cert_resolver(keys);
                config.key_log = self.key_log.clone().unwrap_or(config.key_log);
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
                config.alpn_protocols = vec![bound.to_vec()];
                ServerConnection::new(Arc::new(config))?.into()
            }
        })
    }
}

impl Method for Tls {
    fn id(&self) -> u8 {
        METHOD
    }

    fn shows(&self) -> Option<KeyKind> {
        Some(self.identity.kind())
    }

    fn wants_known(&self) -> bool {
        matches!(*lock(&self.trust), Trust::Only(_)) && self.identity.kind() != KeyKind::Shared
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        Some(self.identity.fingerprint())
    }

    fn begin(&self, role: Role, transcript: &Transcript) -> Box<dyn Exchange> {
        let algorithms = self.provider.signature_verification_algorithms;
        let trust = lock(&self.trust).clone();
        let first = matches!(trust, Trust::First).then(|| Arc::clone(&self.trust));
        let seen = Arc::new(Seen { trust, algorithms, authority: self.authority.clone(), shown: Mutex::default() });
        let theirs = if role == Role::Client { &transcript.server } else { &transcript.client };
        let pins = first.filter(|_| theirs.shows() == Some(KeyKind::Own));
        let connection = self.connection(role, Arc::clone(&seen), transcript.bound).map_err(|error| error.to_string());
        Box::new(TlsExchange { connection, seen, transcript: *transcript, pins, done: false })
    }

    /// A handshake record with ClientHello (RFC 8446 §4, §5.1).
    fn is_opening(&self, message: &[u8]) -> bool {
        message.first() == Some(&22) && message.get(5) == Some(&1)
    }

    fn ciphers(&self) -> &dyn Ciphers {
        &self.ciphers
    }
}

/// What nobody leaves half done.
fn lock(trust: &Mutex<Trust>) -> MutexGuard<'_, Trust> {
    trust.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Raw public keys last as long as people want them to.
#[derive(Debug)]
struct NoClock;

impl TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(core::time::Duration::ZERO))
    }
}

/// Checks the key that the peer shows in one handshake, and remembers it.
#[derive(Debug)]
struct Seen {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
    authority: Option<Authority>,
    shown: Mutex<Shown>,
}

/// What the peer showed.
#[derive(Clone, Copy, Default, Debug)]
struct Shown {
    key: Option<Fingerprint>,
    /// What it is let in by.
    listed: Option<Fingerprint>,
}

impl Seen {
    /// A raw public key, or a certificate and those between it and the authority.
    fn check(&self, shown: (&CertificateDer<'_>, &[CertificateDer<'_>]), now: UnixTime) -> Result<(), Error> {
        let Some(authority) = &self.authority else { return self.check_raw(shown.0) };
        let (key, checked) = authority.check(shown, now);
        let in_list = |given: &Fingerprint| !matches!(self.trust, Trust::Certified(..)) || self.trust.takes(*given);
        let listed = key.filter(in_list).or_else(|| match &self.trust {
            Trust::Certified(_, names) => Name::first_in(names, shown.0),
            _ => None,
        });
        self.set_shown(Shown { key, listed });
        let unlisted = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        checked.and_then(|()| listed.map(|_| ()).ok_or(unlisted))
    }

    fn set_shown(&self, it: Shown) {
        if let Ok(mut shown) = self.shown.lock() {
            *shown = it;
        }
    }

    fn check_raw(&self, public: &CertificateDer<'_>) -> Result<(), Error> {
        let given = fingerprint(public);
        self.set_shown(Shown { key: Some(given), listed: Some(given) });
        let refused = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        if self.trust.takes(given) { Ok(()) } else { Err(refused) }
    }

    fn shown(&self) -> Shown {
        self.shown.lock().map(|shown| *shown).unwrap_or_default()
    }

    fn verify(
        &self,
        message: &[u8],
        public: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.authority.is_some() {
            return verify_tls13_signature(message, public, signature, &self.algorithms);
        }
        let public = SubjectPublicKeyInfoDer::from(public.as_ref());
        verify_tls13_signature_with_raw_key(message, &public, signature, &self.algorithms)
    }
}

/// What both of rustls' traits ask for alike: signatures are checked with the raw key itself (RFC
/// 7250), in TLS 1.3 only.
macro_rules! raw_key_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not used".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.authority.as_ref().map_or_else(|| vec![SignatureScheme::ED25519], Authority::schemes)
        }

        fn requires_raw_public_keys(&self) -> bool {
            self.authority.is_none()
        }
    };
}

impl ServerCertVerifier for Seen {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check((end_entity, intermediates), now).map(|()| ServerCertVerified::assertion())
    }

    raw_key_signatures!();
}

impl ClientCertVerifier for Seen {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check((end_entity, intermediates), now).map(|()| ClientCertVerified::assertion())
    }

    raw_key_signatures!();
}

/// One handshake of TLS.
#[derive(Debug)]
struct TlsExchange {
    /// Or why there is none.
    connection: Result<Connection, String>,
    seen: Arc<Seen>,
    transcript: Transcript,
    /// Where the peer's key is to be remembered.
    pins: Option<Arc<Mutex<Trust>>>,
    done: bool,
}

impl TlsExchange {
    fn connection(&mut self) -> Result<&mut Connection, Refused> {
        self.connection.as_mut().map_err(|error| Refused::Broken(error.clone()))
    }

    fn refusal(&self, error: &Error) -> Refused {
        use AlertDescription::{
            AccessDenied, BadCertificate, CertificateExpired, CertificateUnknown, NoApplicationProtocol, UnknownCA,
        };
        if let (Error::InvalidCertificate(error), Some(authority)) = (error, &self.seen.authority) {
            let (why, text) = authority.complaint(error);
            return Refused::Certificate(why, text);
        }
        match (error, self.seen.shown().key) {
            (Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure), Some(shown)) => {
                Refused::WrongKey(shown)
            }
            (
                Error::AlertReceived(
                    AccessDenied | BadCertificate | CertificateExpired | CertificateUnknown | UnknownCA,
                ),
                _,
            ) => Refused::ByPeer,
            (Error::NoApplicationProtocol | Error::AlertReceived(NoApplicationProtocol), _) => Refused::Altered,
            // What is in a certificate is the other end's words.
            _ => Refused::Broken(words(error.to_string().as_bytes())),
        }
    }
}

impl Exchange for TlsExchange {
    fn handle(&mut self, mut message: &[u8]) -> Result<(), Refused> {
        while !message.is_empty() {
            let connection = self.connection()?;
            let read = connection.read_tls(&mut message).map_err(|error| Refused::Broken(error.to_string()))?;
            if let Err(error) = connection.process_new_packets() {
                return Err(self.refusal(&error));
            }
            if read == 0 {
                return Ok(()); // After its end.
            }
        }
        Ok(())
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        let Ok(connection) = &mut self.connection else { return false };
        let before = out.len();
        while connection.wants_write() && connection.write_tls(out).is_ok() {}
        out.len() > before
    }

    fn agreement(&mut self) -> Result<Option<Agreement>, Refused> {
        let transcript = self.transcript;
        let done = self.done;
        let connection = self.connection()?;
        if done || connection.is_handshaking() {
            return Ok(None);
        }
        if connection.alpn_protocol() != Some(&transcript.bound) {
            return Err(Refused::Altered); // A version that binds nothing.
        }
        let suite = connection.negotiated_cipher_suite().and_then(|it| Suite::from_id(it.suite().into()));
        let suite = suite.ok_or_else(|| Refused::Broken("a cipher suite that was not offered".into()))?;
        let keys = |sender| keys(connection, &transcript, suite, sender);
        let (client, server) = (keys(Role::Client)?, keys(Role::Server)?);
        let mut alias = Alias([0; Alias::LEN]);
        export(connection, &transcript, (Role::Client, Alias::KIND), &mut alias.0)?;
        self.done = true;
        let authenticated = self.seen.authority.is_some() || matches!(self.seen.trust, Trust::Only(_));
        let Shown { key: fingerprint, listed } = self.seen.shown();
        let peer = Peer { fingerprint, authenticated, listed };
        if let (Some(trust), Some(shown)) = (&self.pins, peer.fingerprint) {
            *lock(trust) = Trust::Only(vec![shown]);
        }
        Ok(Some(Agreement { client, server, alias, peer }))
    }
}

/// What the exporter says for the records that `sender` sends (draft, "Key Derivation").
fn keys(connection: &Connection, transcript: &Transcript, suite: Suite, sender: Role) -> Result<Keys, Refused> {
    let export = |kind: u8, out: &mut [u8]| export(connection, transcript, (sender, kind), out);
    let len = suite.key_len();
    let (mut key, mut number_key, mut iv) =
        (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]), Zeroizing::new([0; NONCE]));
    export(0, &mut key[..len])?;
    export(1, &mut number_key[..len])?;
    export(2, &mut iv[..])?;
    Keys::new(suite, &key[..len], &number_key[..len], *iv)
        .ok_or_else(|| Refused::Broken("keys of the wrong length".into()))
}

/// What the exporter says of one `kind` for one direction (RFC 8446 §7.5).
fn export(
    connection: &Connection,
    transcript: &Transcript,
    (sender, kind): (Role, u8),
    out: &mut [u8],
) -> Result<(), Refused> {
    let (label, context) = (transcript.carrier.label().as_bytes(), transcript.context(sender, kind));
    let exported = connection.export_keying_material(out, label, Some(&context));
    exported.map(|_| ()).map_err(|error| Refused::Broken(error.to_string()))
}
