//! Another TLS as a witness: GnuTLS takes our key messages and gives its own, at either end, and
//! what it says of the secrets leads to the same keys by what docs/security.md says.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a real process, and a socket to talk to it")]

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use braidcast_core::Instant;
use braidcast_secure::aws::AwsLc;
use braidcast_secure::identity::Identity;
use braidcast_secure::tls::{METHOD, Tls, Trust};
use braidcast_secure::{
    Carrier, Guard, HEADER, Keys, Limits, NONCE, Offer, Opener, PrivateKey, Role, Roles, Sealer, State, Suite,
    Transcript,
};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What both ends said in clear, hashed; letters, so that it can be an argument of GnuTLS's
/// programs.
const BOUND: &[u8; 16] = b"said-in-the-open";
const ALPN: &str = "said-in-the-open";
const NOW: Instant = Instant::ZERO;
/// First byte of TLS records in the first epoch, and "Protection Established".
const RECORDS: u8 = 3;
const ESTABLISHED: [u8; 2] = [0x83, 1];
/// TLS 1.3 with raw public keys at both ends, as ours.
const PRIORITY: &str = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CTYPE-ALL:+CTYPE-CLI-RAWPK:+CTYPE-SRV-RAWPK";

/// A folder with GnuTLS's private key and public key.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, seed: [u8; 32]) -> Self {
        let folder = std::env::temp_dir().join(format!("braidcast-gnutls-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        // PKCS #8 (RFC 8410 §7).
        let prefix = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20];
        fs::write(folder.join("key.der"), [&prefix[..], &seed].concat()).expect("written");
        let it = Self(folder);
        it.certtool(&["--inder", "--key-info", "--load-privkey", "key.der", "--outfile", "key.pem", "--no-text"]);
        it.certtool(&["--pubkey-info", "--load-privkey", "key.pem", "--outfile", "public.pem", "--no-text"]);
        it
    }

    fn certtool(&self, args: &[&str]) {
        let out =
            Command::new("certtool").args(args).current_dir(&self.0).output().expect("certtool comes with GnuTLS");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Starts one of GnuTLS's programs with its keys and `args`.
    fn start(&self, program: &str, args: &[&str]) -> Gnutls {
        let mut command = Command::new(program);
        command.args(["--rawpkkeyfile", "key.pem", "--rawpkfile", "public.pem", "--priority", PRIORITY]).args(args);
        command.current_dir(&self.0).env("SSLKEYLOGFILE", self.0.join("secrets"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Gnutls(child.expect("GnuTLS starts"))
    }

    /// What GnuTLS writes of the exporter's secret, a moment after the handshake.
    fn exporter_secret(&self) -> Vec<u8> {
        let logged = || fs::read_to_string(self.0.join("secrets")).unwrap_or_default();
        let whole = |text: &String| text.contains("EXPORTER_SECRET ") && text.ends_with('\n');
        let text = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(25));
            Some(logged()).filter(whole)
        });
        let text = text.unwrap_or_else(|| panic!("no secret of the exporter in: {}", logged()));
        let line = text.lines().find_map(|line| line.strip_prefix("EXPORTER_SECRET ")).expect("a line");
        let digits = line.split(' ').nth(1).expect("a secret").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits");
        digits.chunks(2).map(byte).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Gnutls(Child);

impl Drop for Gnutls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_installed() -> bool {
    let there = ["gnutls-cli", "gnutls-serv", "certtool"]
        .iter()
        .all(|it| Command::new(it).arg("--version").output().is_ok_and(|out| out.status.success()));
    assert!(there || std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "GnuTLS's programs are not installed");
    if !there {
        eprintln!("skipped: GnuTLS's programs are not installed (tools/setup.sh test installs them)");
    }
    there
}

fn transcript() -> Transcript {
    let (client, server) = (Offer::new(1, Roles::Only(Role::Client), METHOD), Offer::new(2, Roles::Both, METHOD));
    Transcript { carrier: Carrier::Sctp, client, server, bound: *BOUND }
}

/// Ours, which lets in who has the key of `seed` and nobody else.
fn guard(role: Role, seed: [u8; 32]) -> Guard {
    let theirs = Identity::own(&PrivateKey::new(seed)).expect("a key").fingerprint();
    let identity = Identity::generate().expect("randomness").0;
    let method = Tls::new(identity, Trust::Only(vec![theirs]), &[Suite::Aes128Gcm]);
    Guard::new(NOW, Arc::new(method), Limits::default(), role, transcript())
}

/// Carries key messages over `stream` until the key handshake is done. The stream has no bounds of
/// messages, as SCTP's has; TLS needs none.
fn shake_hands(guard: &mut Guard, mut stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let mut buf = [0; 4096];
    loop {
        while let Some(message) = guard.poll_message() {
            match message.split_first() {
                Some((&RECORDS, records)) => stream.write_all(records).expect("GnuTLS listens"),
                _ => assert_eq!(message, ESTABLISHED),
            }
        }
        // At the server it is done now; the client waits to be told that the server is, too.
        if guard.peer().is_some() {
            let _ = guard.handle_message(NOW, &ESTABLISHED);
            assert_eq!(guard.state(), State::Protected);
            return stream;
        }
        let len = stream.read(&mut buf).expect("GnuTLS answers");
        assert!(len > 0, "GnuTLS broke off");
        guard.handle_message(NOW, &[&[RECORDS], &buf[..len]].concat()).expect("GnuTLS does as it should");
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label (RFC 8446 §7.1), with SHA-256.
fn expand_label(secret: &[u8], label: &str, context: &[u8], len: usize) -> Vec<u8> {
    let label = format!("tls13 {label}");
    let info =
        [&(len as u16).to_be_bytes()[..], &[label.len() as u8], label.as_bytes(), &[context.len() as u8], context];
    let mut out = vec![0; len];
    let prk = Prk::new_less_safe(HKDF_SHA256, secret);
    prk.expand(&info, Length(len)).and_then(|okm| okm.fill(&mut out)).expect("a length that HKDF has");
    out
}

/// Keys for the records of `sender`, as docs/security.md has them ("Keys"), from the exporter's secret (RFC 8446 §7.5).
fn keys(exporter_secret: &[u8], sender: Role) -> Keys {
    let hash = |bytes: &[u8]| digest(&SHA256, bytes);
    let label = "EXPORTER_TLS_FOR_DTLS_IN_SCTP";
    let derived = expand_label(exporter_secret, label, hash(b"").as_ref(), 32);
    // Direction, 0, kind, then both parameters with their headers: type, length, tie breaker, roles, method.
    let client = [0x80, 0x06, 0, 10, 0, 0, 0, 1, 1, 192];
    let server = [0x80, 0x06, 0, 10, 0, 0, 0, 2, 3, 192];
    let export = |kind: u8, len| {
        let context = [&[u8::from(sender == Role::Server), 0, kind], &client[..], &server[..], BOUND].concat();
        expand_label(&derived, "exporter", hash(&context).as_ref(), len)
    };
    let iv = export(2, NONCE).try_into().expect("its length");
    Keys::new(Suite::Aes128Gcm, &export(0, 16), &export(1, 16), iv).expect("their lengths")
}

/// Exchanges records in both directions between `guard` and who has the keys that follow from
/// `secret`.
fn talk(guard: &mut Guard, role: Role, secret: &[u8]) {
    let mut sealer = Sealer::new(&AwsLc, &keys(secret, role.other()), 3).expect("a suite it has");
    let mut opener = Opener::new(&AwsLc, &keys(secret, role), 3).expect("a suite it has");
    let record = |text: &[u8]| [&[0; HEADER], text].concat();
    let (mut there, mut back, mut text) = (record(b"from GnuTLS"), record(b"to GnuTLS"), Vec::new());
    sealer.seal(&mut there, 0).expect("new keys");
    assert_eq!(guard.open(NOW, &there, &mut text), Ok(()));
    assert_eq!(text, b"from GnuTLS");
    guard.seal(NOW, &mut back, 0).expect("new keys");
    assert_eq!(opener.open(&back, &mut text), Ok(()));
    assert_eq!(text, b"to GnuTLS");
}

#[test]
fn gnutls_connects_to_us_and_comes_to_the_same_keys() {
    if !is_installed() {
        return;
    }
    let seed = [7; 32];
    let folder = Folder::new("client", seed);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port().to_string();
    let _gnutls = folder.start("gnutls-cli", &["--insecure", "--alpn", ALPN, "-p", &port, "127.0.0.1"]);
    let mut guard = guard(Role::Server, seed);
    let _stream = shake_hands(&mut guard, listener.accept().expect("GnuTLS connects").0);
    talk(&mut guard, Role::Server, &folder.exporter_secret());
}

#[test]
fn we_connect_to_gnutls_and_come_to_the_same_keys() {
    if !is_installed() {
        return;
    }
    let seed = [9; 32];
    let folder = Folder::new("server", seed);
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port").port();
    let _gnutls = folder.start("gnutls-serv", &["--require-client-cert", "--alpn", ALPN, "-p", &port.to_string()]);
    let stream = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let mut guard = guard(Role::Client, seed);
    let _stream = shake_hands(&mut guard, stream.expect("GnuTLS listens"));
    talk(&mut guard, Role::Client, &folder.exporter_secret());
}

#[test]
fn gnutls_with_another_key_is_refused() {
    if !is_installed() {
        return;
    }
    let folder = Folder::new("stranger", [8; 32]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port().to_string();
    let _gnutls = folder.start("gnutls-cli", &["--insecure", "--alpn", ALPN, "-p", &port, "127.0.0.1"]);
    let mut stream = listener.accept().expect("GnuTLS connects").0;
    let (mut guard, mut buf) = (guard(Role::Server, [7; 32]), [0; 4096]);
    let refused = loop {
        while let Some(message) = guard.poll_message() {
            stream.write_all(&message[1..]).expect("GnuTLS listens");
        }
        let len = stream.read(&mut buf).expect("GnuTLS answers");
        assert!(len > 0, "GnuTLS broke off");
        if let Err(error) = guard.handle_message(NOW, &[&[RECORDS], &buf[..len]].concat()) {
            break error.to_string();
        }
    };
    assert!(refused.contains("the other end has another key"), "{refused}");
}
