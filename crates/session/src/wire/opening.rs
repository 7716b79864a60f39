//! The messages that make a session out of associations: who sends, where it goes on, what is written.

use super::{KINDS, VERSION, WireError, below_max, counters};
use crate::identity::{Digest, Identity};
use braidcast_core::{Reader, Writer};

pub(super) const HELLO: u8 = 4;
pub(super) const WELCOME: u8 = 5;
pub(super) const START: u8 = 6;
pub(super) const WRITTEN: u8 = 7;

/// The version of sessions that this end speaks: what a [`Hello`] asks for.
pub const SESSION_VERSION: u8 = 1;
/// Longest name of a stream, bytes.
pub const MAX_NAME: usize = 64;

const FLAG_RELIABLE: u8 = 0x01;
const FLAG_SIZE: u8 = 0x02;
const FLAG_WAIT: u8 = 0x01;
const FLAG_FINAL: u8 = 0x01;

/// The first message of each association: whose stream this is.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 4    |  Session = 1  |   Flags   |S|R|
/// +---------------+---------------+---------------+---------------+
/// |                     Identity (128 bits)                       |
/// \                                                               \
/// +---------------------------------------------------------------+
/// |        Incarnation: random for each start of a sender (64)    |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |           Size of what is sent, bytes (64), or 0              |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |   Units captured of each kind that do not come (7 × 64)       |
/// \                                                               \
/// +---------------+-----------------------------------------------+
/// | Name's length |  Name, UTF-8 ...
/// +---------------+-----------------------------------------------+
/// ```
///
/// R: reliable; the sender waits for a [`Welcome`]. S: the size is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The version of the session; this end speaks [`SESSION_VERSION`].
    pub session: u8,
    /// The same as long as it is the same stream: over associations, and for a file over starts of the sender.
    pub identity: Identity,
    /// The same as long as it is the same process.
    pub incarnation: u64,
    /// `true` if everything is to be delivered.
    pub reliable: bool,
    /// Bytes of all that is sent, if that is known.
    pub size: Option<u64>,
    /// Units captured before the first that comes, by [`Kind::index`](braidcast_media::Kind::index).
    pub before: [u64; KINDS],
    /// The stream's name; empty without one. See [`check_name`].
    pub name: String,
}

/// What the receiver of a reliable stream has of it already, or that the sender has to wait for its turn.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 5    |    Flags    |W|       0       |
/// +---------------+---------------+---------------+---------------+
/// |                       Offset, bytes (64)                      |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |            SHA-256 of the bytes before the offset             |
/// \                                                               \
/// ```
///
/// W: another stream goes first; offset and hash are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Welcome {
    /// Another stream is being received; this one has its turn after it.
    Wait,
    /// Go on from here, if your bytes before it have this hash.
    GoOn {
        /// Bytes that are there.
        offset: u64,
        /// Their hash.
        digest: Digest,
    },
}

/// The place at which a reliable sender goes on: its answer to a [`Welcome`], in order before the
/// units.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Version = 1  |   Type = 6    |               0               |
/// +---------------+---------------+-------------------------------+
/// |      Offset: bytes of the stream before what follows (64)     |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |           Index of the first packet that follows (64)         |
/// |                                                               |
/// +---------------------------------------------------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Bytes before what follows: as the receiver said, or 0.
    pub offset: u64,
    /// Index of the first packet that follows.
    pub index: u64,
}

/// What the receiver of a reliable stream has written.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 7    |    Flags    |F|       0       |
/// +---------------+---------------+---------------+---------------+
/// |                       Offset, bytes (64)                      |
/// |                                                               |
/// +---------------------------------------------------------------+
/// ```
///
/// F: that was all, and it is flushed to where it stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Bytes of the stream that are written.
    pub offset: u64,
    /// `true` if that is all of it, flushed.
    pub complete: bool,
}

/// Returns `true` if `name` can name a stream, and so a file: 1 to [`MAX_NAME`] bytes, letters,
/// digits and `. _ -` and space, and the first of them no dot.
///
/// # Errors
/// What is wrong with it, in words.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!("a name has 1 to {MAX_NAME} bytes, '{name}' has {}", name.len()));
    }
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
    if let Some(c) = name.chars().find(|c| !fits(*c)) {
        return Err(format!("a name has letters, digits, '.', '_', '-' and spaces only, and {name:?} has {c:?}"));
    }
    if name.starts_with(['.', ' ', '-']) || name.ends_with(' ') {
        return Err(format!("a name begins with a letter or digit and does not end with a space; {name:?} does not"));
    }
    Ok(())
}

pub(super) fn parse_hello(mut reader: Reader<'_>) -> Result<Hello, WireError> {
    let (session, flags) = (reader.u8()?, reader.u8()?);
    let (identity, incarnation) = (Identity(reader.array()?), reader.u64()?);
    let size = below_max(reader.u64()?, "size")?;
    let before = counters(&mut reader)?;
    let length = usize::from(reader.u8()?);
    let name = core::str::from_utf8(reader.take(length)?).map_err(|_| WireError::Field("name"))?;
    if !name.is_empty() && check_name(name).is_err() {
        return Err(WireError::Field("name"));
    }
    let size = (flags & FLAG_SIZE != 0).then_some(size);
    Ok(Hello { session, identity, incarnation, reliable: flags & FLAG_RELIABLE != 0, size, before, name: name.into() })
}

pub(super) fn parse_welcome(mut reader: Reader<'_>) -> Result<Welcome, WireError> {
    let (flags, _zero) = (reader.u8()?, reader.u8()?);
    let (offset, digest) = (below_max(reader.u64()?, "offset")?, Digest(reader.array()?));
    Ok(if flags & FLAG_WAIT != 0 { Welcome::Wait } else { Welcome::GoOn { offset, digest } })
}

pub(super) fn parse_start(mut reader: Reader<'_>) -> Result<Start, WireError> {
    let _zero = reader.u16()?;
    Ok(Start { offset: below_max(reader.u64()?, "offset")?, index: below_max(reader.u64()?, "packet index")? })
}

pub(super) fn parse_written(mut reader: Reader<'_>) -> Result<Written, WireError> {
    let (flags, _zero) = (reader.u8()?, reader.u8()?);
    Ok(Written { offset: below_max(reader.u64()?, "offset")?, complete: flags & FLAG_FINAL != 0 })
}

/// Returns `true` if a message says that it is a [`Hello`].
pub fn is_hello(message: &[u8]) -> bool {
    message.starts_with(&[VERSION, HELLO])
}

/// Writes a hello into `out`, which is cleared first. The name fits: see [`check_name`].
pub fn write_hello(out: &mut Vec<u8>, hello: &Hello) {
    out.clear();
    let mut w = Writer::new(out);
    let flags = if hello.reliable { FLAG_RELIABLE } else { 0 } | if hello.size.is_some() { FLAG_SIZE } else { 0 };
    w.bytes(&[VERSION, HELLO, hello.session, flags]);
    w.bytes(&hello.identity.0);
    w.u64(hello.incarnation);
    w.u64(hello.size.unwrap_or_default());
    hello.before.iter().for_each(|count| w.u64(*count));
    let name = hello.name.as_bytes().get(..MAX_NAME).unwrap_or(hello.name.as_bytes());
    w.u8(name.len() as u8);
    w.bytes(name);
}

/// Writes a welcome into `out`, which is cleared first.
pub fn write_welcome(out: &mut Vec<u8>, welcome: &Welcome) {
    out.clear();
    let mut w = Writer::new(out);
    let (flags, offset, digest) = match *welcome {
        Welcome::Wait => (FLAG_WAIT, 0, Digest([0; 32])),
        Welcome::GoOn { offset, digest } => (0, offset, digest),
    };
    w.bytes(&[VERSION, WELCOME, flags, 0]);
    w.u64(offset);
    w.bytes(&digest.0);
}

/// Writes a start into `out`, which is cleared first.
pub fn write_start(out: &mut Vec<u8>, start: &Start) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, START, 0, 0]);
    w.u64(start.offset);
    w.u64(start.index);
}

/// Writes what is written into `out`, which is cleared first.
pub fn write_written(out: &mut Vec<u8>, written: &Written) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, WRITTEN, if written.complete { FLAG_FINAL } else { 0 }, 0]);
    w.u64(written.offset);
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;

    #[test]
    fn what_opens_a_session_is_read_as_written() {
        let mut out = Vec::new();
        let hello = Hello {
            session: SESSION_VERSION,
            identity: Identity([7; 16]),
            incarnation: 9,
            reliable: true,
            size: Some(52_000_000),
            before: [1, 2, 3, 4, 5, 6, 7],
            name: "cam 1".into(),
        };
        for hello in [hello.clone(), Hello { name: String::new(), size: None, reliable: false, ..hello }] {
            write_hello(&mut out, &hello);
            assert_eq!(out[..4], [1, 4, 1, if hello.reliable { 3 } else { 0 }]);
            assert_eq!(Message::parse(&out), Ok(Message::Hello(hello)));
        }
        for welcome in [Welcome::Wait, Welcome::GoOn { offset: 77, digest: Digest([3; 32]) }] {
            write_welcome(&mut out, &welcome);
            assert_eq!(Message::parse(&out), Ok(Message::Welcome(welcome)));
        }
        let start = Start { offset: 5, index: 6 };
        write_start(&mut out, &start);
        assert_eq!(Message::parse(&out), Ok(Message::Start(start)));
        for complete in [false, true] {
            let written = Written { offset: 5, complete };
            write_written(&mut out, &written);
            assert_eq!(Message::parse(&out), Ok(Message::Written(written)));
        }
    }

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        for name in ["cam1", "Bühne 2", "a.b-c_d", &"x".repeat(MAX_NAME)] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["", ".", "..", ".hidden", "a/b", "a\\b", "a\0b", "-", " a", "a ", "a\n", &"x".repeat(MAX_NAME + 1)]
        {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_hello_with_such_a_name_is_no_message() {
        let mut out = Vec::new();
        let hello = Hello {
            session: 1,
            identity: Identity([0; 16]),
            incarnation: 0,
            reliable: false,
            size: None,
            before: [0; KINDS],
            name: "../x".into(),
        };
        write_hello(&mut out, &hello);
        assert_eq!(Message::parse(&out), Err(WireError::Field("name")));
        out.pop();
        assert!(matches!(Message::parse(&out), Err(WireError::Truncated(_))));
    }
}
