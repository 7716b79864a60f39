//! `srt://HOST:PORT?key=value`: a neighbour that speaks SRT, with the options that ffmpeg and SRT's own tools put
//! behind it. `srtla://:PORT`: one that sends it over several links. `rist://HOST:PORT?key=value`: one that speaks
//! RIST, with librist's options.

use super::values::{self, Remote, remote};
use braidcast_gateway::rist;
use braidcast_gateway::srt::{KeyLength, Passphrase};
use braidcast_sim::link::parse;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The longest latency of a neighbour; a handshake can say 65 s.
const LONGEST: Duration = Duration::from_secs(60);
/// From here on a bare number must be one of ffmpeg's, in µs.
const MICROSECONDS: u64 = 100_000;
/// Longest stream identifier in bytes.
const STREAM_ID: usize = 512;

/// Where a neighbour is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whereabouts {
    /// It calls us at this address, or at any of ours, and this port.
    Listen(Option<IpAddr>, u16),
    /// We call it.
    Call(Remote),
}

/// A secret: itself, or the first line of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Secret<T> {
    Typed(T),
    File(PathBuf),
}

/// What is spoken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scheme {
    Srt,
    /// SRT over several links.
    Srtla,
    Rist,
}

impl Scheme {
    /// As it stands in URLs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Srt => "srt",
            Self::Srtla => "srtla",
            Self::Rist => "rist",
        }
    }
}

/// A neighbour, and how we speak with it. It is shown without its options, as they hold secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Neighbour {
    pub(crate) at: Whereabouts,
    pub(crate) scheme: Scheme,
    /// Latency of what comes in, at least.
    pub(crate) latency: Option<Duration>,
    /// What the neighbour's own latency is asked to be at least.
    pub(crate) peer_latency: Option<Duration>,
    pub(crate) passphrase: Option<Secret<Passphrase>>,
    /// A file with a passphrase for each stream.
    pub(crate) keys: Option<PathBuf>,
    /// RIST's.
    pub(crate) secret: Option<Secret<rist::Secret>>,
    /// RIST's, if one is asked for.
    pub(crate) profile: Option<rist::Profile>,
    pub(crate) key_length: KeyLength,
    pub(crate) stream_id: Option<String>,
    /// What its stream is called here, whatever its identifier is.
    pub(crate) name: Option<String>,
    /// Anybody may be this neighbour, although a key is asked for elsewhere.
    pub(crate) open: bool,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name())?;
        match &self.at {
            Whereabouts::Listen(None, port) => write!(f, ":{port}"),
            Whereabouts::Listen(Some(IpAddr::V6(addr)), port) => write!(f, "[{addr}]:{port}"),
            Whereabouts::Listen(Some(addr), port) => write!(f, "{addr}:{port}"),
            Whereabouts::Call(remote) => write!(f, "{remote}"),
        }
    }
}

impl Neighbour {
    /// That of `at`, with nothing said about it.
    fn plain(at: Whereabouts, scheme: Scheme) -> Self {
        Self {
            at,
            scheme,
            latency: None,
            peer_latency: None,
            passphrase: None,
            keys: None,
            secret: None,
            profile: None,
            key_length: KeyLength::default(),
            stream_id: None,
            name: None,
            open: false,
        }
    }

    /// Returns `true` if RIST's simple profile is spoken, which needs a second port.
    pub(crate) fn is_simple_rist(&self) -> bool {
        self.scheme == Scheme::Rist && self.secret.is_none() && self.profile != Some(rist::Profile::Main)
    }

    /// One that is to send to us.
    pub(super) fn sending(self) -> Result<Self, String> {
        match self.at {
            Whereabouts::Call(_) if self.scheme == Scheme::Rist => {
                Err("an input by RIST waits for its sender: write rist://:PORT".into())
            }
            _ => Ok(self),
        }
    }

    /// Names are for where several streams come in.
    pub(crate) fn nameless(self) -> Result<Box<Self>, String> {
        if self.keys.is_some() {
            return Err("keys= is for LISTEN of receive: write passphrase= here".into());
        }
        if self.name.is_some() {
            return Err("name= is for LISTEN of receive: leave it out here".into());
        }
        Ok(Box::new(self))
    }
}

/// Reads `srt://…`, `srtla://…` and `rist://…`; `None` for what has another scheme or none. Each option is obeyed or
/// refused.
pub(crate) fn neighbour(text: &str) -> Option<Result<Neighbour, String>> {
    let (scheme, rest) = [Scheme::Srt, Scheme::Srtla, Scheme::Rist]
        .into_iter()
        .find_map(|scheme| Some((scheme, text.strip_prefix(scheme.name())?.strip_prefix("://")?)))?;
    let (at, options) = rest.split_once('?').unwrap_or((rest, ""));
    let at = at.strip_suffix('/').unwrap_or(at);
    if scheme == Scheme::Rist {
        return Some(read_rist(at, options));
    }
    let neighbour = read(at, scheme, options);
    Some(neighbour.and_then(|neighbour| match neighbour.at {
        Whereabouts::Call(_) if scheme == Scheme::Srtla => {
            Err("srtla:// is for senders that call here: write srtla://:PORT".into())
        }
        _ => Ok(neighbour),
    }))
}

fn read(at: &str, scheme: Scheme, options: &str) -> Result<Neighbour, String> {
    let mut neighbour = Neighbour::plain(Whereabouts::Listen(None, 0), scheme);
    let (mut listens, mut both) = (None, None);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "latency" => both = Some(latency(key, value)?),
            "rcvlatency" => neighbour.latency = Some(latency(key, value)?),
            "peerlatency" => neighbour.peer_latency = Some(latency(key, value)?),
            "passphrase" => neighbour.passphrase = Some(secret(key, value, Passphrase::new)?),
            "keys" => match value.strip_prefix('@') {
                Some(file) if !file.is_empty() => neighbour.keys = Some(decoded(file).into()),
                // Without its value, which may be a secret.
                _ => return Err("keys= is a file with a passphrase for each stream: write keys=@FILE".into()),
            },
            "pbkeylen" => {
                let length = value.parse().ok().and_then(KeyLength::of);
                neighbour.key_length = length.ok_or("pbkeylen= is the length of a key in bytes: 16, 24 or 32")?;
            }
            "streamid" => {
                let id = decoded(value);
                if id.len() > STREAM_ID {
                    return Err(format!("streamid= has {} bytes; SRT carries {STREAM_ID}", id.len()));
                }
                neighbour.stream_id = Some(id);
            }
            "name" => neighbour.name = Some(values::name(&decoded(value))?),
            "mode" => match value {
                "listener" | "server" => listens = Some(true),
                "caller" | "client" => listens = Some(false),
                _ => return Err(format!("mode={value} is not supported: there are mode=caller and mode=listener")),
            },
            "open" if value.is_empty() => neighbour.open = true,
            // What live mode is anyway.
            "transtype" if value == "live" => {}
            "transtype" => return Err(format!("transtype={value} is not supported: SRT carries live streams only")),
            // Without its value, as it may be a secret that was misspelt.
            _ => {
                return Err(format!(
                    "'{key}' is not supported behind srt://: leave it out; there are latency, rcvlatency, peerlatency, \
                     passphrase, pbkeylen, streamid, mode, open and, in LISTEN, name and keys"
                ));
            }
        }
    }
    // Wherever it stands, it is for what has no latency of its own.
    neighbour.latency = neighbour.latency.or(both);
    neighbour.peer_latency = neighbour.peer_latency.or(both);
    neighbour.at = whereabouts(at, listens, scheme.name())?;
    if neighbour.keys.is_some() {
        let other = [
            ("passphrase=", neighbour.passphrase.is_some()),
            ("streamid=", neighbour.stream_id.is_some()),
            ("name=", neighbour.name.is_some()),
            ("open", neighbour.open),
        ];
        if let Some((other, _)) = other.iter().find(|(_, given)| *given) {
            return Err(format!("keys= says which streams there are, and their passphrases: leave out {other}"));
        }
        if let Whereabouts::Call(_) = neighbour.at {
            return Err(format!("keys= is for streams that are sent here: write {}://:PORT", scheme.name()));
        }
    }
    Ok(neighbour)
}

/// Options as `ristsender` and `ristreceiver` have them.
fn read_rist(at: &str, options: &str) -> Result<Neighbour, String> {
    // librist writes rist://@:5000 for "listen here".
    let listens = at.starts_with('@').then_some(true);
    let mut neighbour = Neighbour::plain(whereabouts(at, listens, "rist")?, Scheme::Rist);
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "buffer" | "latency" => neighbour.latency = Some(latency(key, value)?),
            "secret" => neighbour.secret = Some(secret(key, value, rist::Secret::new)?),
            "aes-type" => {
                let length = value.parse::<usize>().ok().filter(|bits| bits % 64 == 0);
                let length = length.and_then(|bits| KeyLength::of(bits / 8)).filter(|it| *it != KeyLength::Aes192);
                neighbour.key_length = length.ok_or("aes-type= is the length of a key in bits: 128 or 256")?;
            }
            "profile" => match value {
                "simple" | "0" => neighbour.profile = Some(rist::Profile::Simple),
                "main" | "1" => neighbour.profile = Some(rist::Profile::Main),
                _ => {
                    return Err(format!("profile={value} is not supported: there are profile=simple and profile=main"));
                }
            },
            "name" => neighbour.name = Some(values::name(&decoded(value))?),
            "open" if value.is_empty() => neighbour.open = true,
            "username" | "password" => {
                return Err(format!("'{key}' is not supported behind rist://: both ends can have secret= in common"));
            }
            // Without its value, as it may be a secret that was misspelt.
            _ => {
                return Err(format!(
                    "'{key}' is not supported behind rist://: leave it out; there are buffer (or latency), secret, \
                     aes-type, profile, open and, in LISTEN, name"
                ));
            }
        }
    }
    let is_main = neighbour.profile == Some(rist::Profile::Main);
    if neighbour.profile == Some(rist::Profile::Simple) && neighbour.secret.is_some() {
        return Err("RIST's simple profile has no encryption: leave out profile=simple, or secret=".into());
    }
    let (Whereabouts::Listen(_, port) | Whereabouts::Call(Remote { port, .. })) = &neighbour.at;
    if neighbour.secret.is_none() && !is_main && (port % 2 == 1 || *port == 0) {
        return Err(format!(
            "{neighbour}: RIST's simple profile takes an even port and the one behind it: write {}, or profile=main, \
             which needs one port",
            if *port > 1 { port - 1 } else { 5000 }
        ));
    }
    Ok(neighbour)
}

pub(super) fn whereabouts(at: &str, listens: Option<bool>, scheme: &str) -> Result<Whereabouts, String> {
    // ffmpeg writes srt://@:9000 too.
    let at = at.strip_prefix('@').unwrap_or(at);
    let here = at.starts_with(':');
    let remote = if here { remote(&format!("0.0.0.0{at}")) } else { remote(at) }?;
    let addr: Option<IpAddr> = remote.host.parse().ok();
    let any = here || addr.is_some_and(|addr| addr.is_unspecified());
    match (listens, addr) {
        (Some(false), _) if any => Err(format!("a caller needs the address that it calls: write {scheme}://HOST:PORT")),
        (Some(true), None) => Err(format!("'{}' is not an address to listen on: write {scheme}://:PORT", remote.host)),
        (None, _) if any => Ok(Whereabouts::Listen(addr.filter(|_| !here), remote.port)),
        (Some(true), Some(_)) => Ok(Whereabouts::Listen(addr.filter(|_| !here), remote.port)),
        _ => Ok(Whereabouts::Call(remote)),
    }
}

/// A time; a bare number is milliseconds.
fn latency(key: &str, value: &str) -> Result<Duration, String> {
    let time = match value.parse::<u64>() {
        Ok(number) if number >= MICROSECONDS => {
            return Err(format!(
                "{key}={number}: a bare number is milliseconds here, as in SRT and RIST themselves; if it is ffmpeg's, which are \
                 microseconds, write {key}={}ms",
                number / 1000
            ));
        }
        Ok(number) => Duration::from_millis(number),
        Err(_) => parse::duration(value).map_err(|error| format!("{key}: {error}"))?,
    };
    if time > LONGEST {
        return Err(format!("{key}={value} is too long: it is at most 60s"));
    }
    Ok(time)
}

/// `@FILE`, or the secret itself. What was typed is never repeated in a message.
fn secret<T, E: fmt::Display>(key: &str, value: &str, new: fn(String) -> Result<T, E>) -> Result<Secret<T>, String> {
    match value.strip_prefix('@') {
        Some("") => Err(format!("{key}=@ names no file: write {key}=@FILE")),
        Some(file) => Ok(Secret::File(decoded(file).into())),
        None => new(decoded(value)).map(Secret::Typed).map_err(|wrong| wrong.to_string()),
    }
}

/// `%41` is `A`; a percent sign that is followed by something else stands for itself.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let hex = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(text: &str) -> Neighbour {
        neighbour(text).unwrap().unwrap()
    }

    fn wrong(text: &str) -> String {
        neighbour(text).unwrap().unwrap_err()
    }

    #[test]
    fn who_calls_whom_is_said_by_the_host() {
        let port = |text| good(text).at;
        assert_eq!(port("srt://:5000"), Whereabouts::Listen(None, 5000));
        assert_eq!(port("srt://@:5000?mode=listener"), Whereabouts::Listen(None, 5000));
        assert_eq!(port("srt://0.0.0.0:5000"), Whereabouts::Listen(Some([0, 0, 0, 0].into()), 5000));
        assert_eq!(port("srt://[::1]:5000?mode=listener"), Whereabouts::Listen(Some("::1".parse().unwrap()), 5000));
        assert_eq!(good("srt://studio.example:4000/").to_string(), "srt://studio.example:4000");
        assert!(wrong("srt://:5000?mode=caller").contains("srt://HOST:PORT"));
        assert!(wrong("srt://studio:5000?mode=listener").contains("srt://:PORT"));
        assert!(wrong("srt://:5000?mode=rendezvous").contains("mode=caller and mode=listener"));
        assert_eq!(good("srtla://:5000?latency=1500").to_string(), "srtla://:5000");
        assert!(wrong("srtla://studio:5000").contains("srtla://:PORT"));
        assert!(neighbour("udp://:5000").is_none() && wrong("srt://host").contains("port is missing"));
    }

    #[test]
    fn latencies_are_milliseconds_and_ffmpegs_are_told_apart() {
        let neighbour = good("srt://:5000?latency=400");
        assert_eq!([neighbour.latency, neighbour.peer_latency], [Some(Duration::from_millis(400)); 2]);
        for text in ["peerlatency=1.5s&latency=900&rcvlatency=0", "latency=900&rcvlatency=0&peerlatency=1.5s"] {
            let neighbour = good(&format!("srt://:5000?{text}"));
            assert_eq!([neighbour.latency, neighbour.peer_latency].map(|it| it.unwrap().as_millis()), [0, 1500]);
        }
        assert!(wrong("srt://:5000?latency=400000").ends_with("write latency=400ms"));
        assert!(wrong("srt://:5000?latency=61s").contains("at most 60s"));
        assert!(wrong("srt://:5000?latency=soon").starts_with("latency: "));
    }

    #[test]
    fn secrets_have_limits_and_are_shown_nowhere() {
        let neighbour = good("srt://h:1?passphrase=correct%20horse&pbkeylen=32&streamid=#!::r=cam1,m=publish&open");
        assert_eq!(neighbour.passphrase, Some(Secret::Typed(Passphrase::new("correct horse".into()).unwrap())));
        assert_eq!((neighbour.key_length, neighbour.open), (KeyLength::Aes256, true));
        assert_eq!(neighbour.stream_id.as_deref(), Some("#!::r=cam1,m=publish"));
        assert!(!format!("{neighbour} {neighbour:?}").contains("horse"));
        assert_eq!(good("srtla://:1?keys=@/run/keys").keys, Some("/run/keys".into()));
        for (text, what) in [
            ("srt://:1?keys=hunter2hunter2", "keys=@FILE"),
            ("srt://:1?keys=@", "keys=@FILE"),
            ("srt://h:1?keys=@f", "srt://:PORT"),
            ("srt://:1?keys=@f&passphrase=hunter2hunter2", "leave out passphrase="),
            ("srt://:1?streamid=x&keys=@f", "leave out streamid="),
            ("srt://:1?name=x&keys=@f", "leave out name="),
            ("srt://:1?keys=@f&open", "leave out open"),
        ] {
            assert!(wrong(text).contains(what) && !wrong(text).contains("hunter2"), "{text}: {}", wrong(text));
        }
        assert!(good("srt://:1?keys=@f").nameless().unwrap_err().contains("LISTEN"));
        assert_eq!(good("srt://h:1?passphrase=@/run/key").passphrase, Some(Secret::File("/run/key".into())));
        let short = wrong("srt://h:1?passphrase=hunter2");
        assert!(short.contains("10 to 79 bytes") && !short.contains("hunter2"));
        let misspelt = wrong("srt://h:1?pasphrase=hunter2hunter2");
        assert!(misspelt.contains("'pasphrase' is not supported") && !misspelt.contains("hunter2"));
        assert_eq!(decoded("100%41%4"), "100A%4");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(wrong("srt://:1?transtype=file").contains("live streams only"));
        assert!(wrong("srt://:1?pbkeylen=20").contains("16, 24 or 32"));
        assert!(wrong(&format!("srt://:1?streamid={}", "x".repeat(513))).contains("513 bytes"));
        assert!(wrong("srt://:1?passphrase=@").contains("@FILE"));
    }

    #[test]
    fn librists_options_are_obeyed_or_refused() {
        let rist = good("rist://@:5000?buffer=400&secret=correct%20horse&aes-type=256&name=cam1");
        assert_eq!((rist.at.clone(), rist.scheme), (Whereabouts::Listen(None, 5000), Scheme::Rist));
        assert_eq!((rist.latency, rist.key_length), (Some(Duration::from_millis(400)), KeyLength::Aes256));
        assert_eq!(rist.secret, Some(Secret::Typed(rist::Secret::new("correct horse".into()).unwrap())));
        assert!(!rist.is_simple_rist() && !format!("{rist} {rist:?}").contains("horse"));
        assert_eq!(good("rist://studio:5001?profile=main").to_string(), "rist://studio:5001");
        assert!(good("rist://:5000").is_simple_rist());
        assert_eq!(good("rist://@192.0.2.1:5000").at, Whereabouts::Listen(Some("192.0.2.1".parse().unwrap()), 5000));
        for (port, even) in [(4001, "write 4000,"), (1, "write 5000,"), (65535, "write 65534,")] {
            assert!(wrong(&format!("rist://:{port}")).contains(even));
        }
        assert!(wrong("rist://:5001").contains("even port") && wrong("rist://:5001").contains("profile=main"));
        assert!(wrong("rist://:5000?profile=simple&secret=hunter2").contains("no encryption"));
        assert!(wrong("rist://:5000?aes-type=192").contains("128 or 256"));
        assert!(wrong("rist://:5000?profile=advanced").contains("profile=main"));
        assert!(wrong("rist://:5000?password=hunter2").contains("secret="));
        let misspelt = wrong("rist://:5000?sekret=hunter2");
        assert!(misspelt.contains("'sekret' is not supported") && !misspelt.contains("hunter2"));
        assert!(wrong("rist://:5000?secret=").contains("1 to 127 bytes"));
    }
}
