//! What a receiver that dials says first.

use super::opening::{MAX_NAME, check_name};
use super::{VERSION, WireError};
use crate::identity::Identity;
use braidcast_core::{Reader, Writer};
use core::time::Duration;

pub(super) const ASK: u8 = 9;

/// The first message of a receiver that dials: which stream it wants.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 9    |  Session = 1  |       0       |
/// +---------------+---------------+---------------+---------------+
/// |          Latency, µs, or 0: as the other end has it           |
/// +---------------------------------------------------------------+
/// |  Identity of the stream that it has a part of (128), or zero  |
/// \                                                               \
/// +---------------+-----------------------------------------------+
/// | Name's length |  Name, UTF-8 ...
/// +---------------+-----------------------------------------------+
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The version of the session; this end speaks [`SESSION_VERSION`](super::SESSION_VERSION).
    pub session: u8,
    /// Time from the output of who [serves](crate::Server) the stream to that of this receiver, 1 µs to
    /// 71 minutes; `None`: as the other end has it. A sender has a latency of its own, and does not heed it.
    pub latency: Option<Duration>,
    /// The stream that went over the association before; `None` if there was none.
    pub identity: Option<Identity>,
    /// What the stream is called; empty: the only one that there is.
    pub name: String,
}

pub(super) fn parse_ask(mut reader: Reader<'_>) -> Result<Ask, WireError> {
    let (session, _zero) = (reader.u8()?, reader.u8()?);
    let latency = reader.u32()?;
    let identity = Identity(reader.array()?);
    let length = usize::from(reader.u8()?);
    let name = core::str::from_utf8(reader.take(length)?).map_err(|_| WireError::Field("name"))?;
    if !name.is_empty() && check_name(name).is_err() {
        return Err(WireError::Field("name"));
    }
    Ok(Ask {
        session,
        latency: (latency > 0).then(|| Duration::from_micros(u64::from(latency))),
        identity: (identity.0 != [0; 16]).then_some(identity),
        name: name.into(),
    })
}

/// Writes an ask into `out`, which is cleared first. The name fits: see [`check_name`].
pub fn write_ask(out: &mut Vec<u8>, ask: &Ask) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, ASK, ask.session, 0]);
    w.u32(ask.latency.map_or(0, |it| u32::try_from(it.as_micros()).unwrap_or(u32::MAX)));
    w.bytes(&ask.identity.map_or([0; 16], |it| it.0));
    let name = ask.name.as_bytes().get(..MAX_NAME).unwrap_or(ask.name.as_bytes());
    w.u8(name.len() as u8);
    w.bytes(name);
}

#[cfg(test)]
mod tests {
    use super::super::{Message, SESSION_VERSION};
    use super::*;

    #[test]
    fn an_ask_is_read_as_written_and_cut_is_refused() {
        let asks = [
            Ask { session: SESSION_VERSION, latency: None, identity: None, name: String::new() },
            Ask {
                session: 7,
                latency: Some(Duration::from_millis(300)),
                identity: Some(Identity([3; 16])),
                name: "cam 1".into(),
            },
        ];
        for ask in asks {
            let mut out = Vec::new();
            write_ask(&mut out, &ask);
            assert_eq!(Message::parse(&out), Ok(Message::Ask(ask)));
            (0..out.len()).for_each(|cut| assert!(Message::parse(&out[..cut]).is_err(), "{cut} bytes"));
        }
    }

    #[test]
    fn a_name_that_could_be_no_files_is_refused() {
        let mut out = Vec::new();
        let ask = Ask { session: 1, latency: None, identity: None, name: "a/b".into() };
        write_ask(&mut out, &ask);
        assert_eq!(Message::parse(&out), Err(WireError::Field("name")));
    }
}
