//! LISTEN of `receive`: ports of our own protocol, and those where gates call.

use super::media::{Direction, UdpMedia, udp};
use super::neighbour::{Neighbour, Scheme, neighbour};
use super::rtmp::{Rtmp, rtmp};
use super::values::{Listen, listen};
use std::fmt;

/// A neighbour that sends beside senders of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Gate {
    /// It speaks SRT or RIST.
    Neighbour(Box<Neighbour>),
    /// It sends RTP.
    Rtp(UdpMedia),
    /// It publishes by RTMP.
    Rtmp(Rtmp),
}

impl Gate {
    /// Returns `true` if whoever comes says what its stream is called.
    pub(crate) fn says_names(&self) -> bool {
        matches!(self, Self::Neighbour(neighbour) if neighbour.scheme != Scheme::Rist)
    }

    /// Returns `true` if who says what its stream is called must know the passphrase of that stream.
    pub(crate) const fn proves_names(&self) -> bool {
        matches!(self, Self::Neighbour(neighbour) if neighbour.keys.is_some())
    }

    /// What its stream is called, if that is said here.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Neighbour(neighbour) => neighbour.name.as_deref(),
            Self::Rtp(media) => media.name.as_deref(),
            Self::Rtmp(rtmp) => rtmp.name.as_deref(),
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neighbour(neighbour) => neighbour.fmt(f),
            Self::Rtp(media) => media.fmt(f),
            Self::Rtmp(rtmp) => rtmp.fmt(f),
        }
    }
}

/// Where streams come in; one of the two has something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entrances {
    /// For `braidcast send`; may be empty.
    pub(crate) own: Listen,
    /// For what others speak.
    pub(crate) gates: Vec<Gate>,
}

/// Addresses as [`listen`] reads them and `srt://`, `srtla://`, `rist://`, `rtp://` and `rtmp://`, with commas between
/// them. What is behind a comma and is neither belongs to the URL before it: a stream identifier may have commas.
pub(crate) fn entrances(text: &str) -> Result<Entrances, String> {
    let (mut own, mut urls): (Vec<&str>, Vec<String>) = Default::default();
    let mut after_url = false;
    for part in text.split(',').map(str::trim) {
        if part.contains("://") {
            urls.push(part.into());
            after_url = true;
        } else if let (true, Err(_), Some(url)) = (after_url, listen(part), urls.last_mut()) {
            url.push(',');
            url.push_str(part);
        } else {
            own.push(part);
            after_url = false;
        }
    }
    let own = if own.is_empty() { Listen(Vec::new()) } else { listen(&own.join(","))? };
    let gates = urls.iter().map(|url| gate(url)).collect::<Result<_, _>>()?;
    Ok(Entrances { own, gates })
}

fn gate(url: &str) -> Result<Gate, String> {
    if let Some(neighbour) = neighbour(url) {
        return neighbour.and_then(Neighbour::sending).map(Box::new).map(Gate::Neighbour);
    }
    if let Some(rtmp) = rtmp(url) {
        return rtmp.map(Gate::Rtmp);
    }
    if url.starts_with("rtp://")
        && let Some(media) = udp(url, Direction::Beside)
    {
        return media.map(Gate::Rtp);
    }
    // Without what is behind the scheme, as it may hold a secret.
    let scheme = url.split("://").next().unwrap_or_default();
    Err(format!(
        "nothing listens for '{scheme}://': there are srt://, srtla://, rist://, rtp:// and rtmp://, and PORT for braidcast send"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (usize, Vec<String>) {
        let read = entrances(text).unwrap();
        (read.own.0.len(), read.gates.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn ports_and_urls_stand_side_by_side() {
        assert_eq!(shown("9000,srtla://:5000?latency=1500ms"), (1, vec!["srtla://:5000".into()]));
        assert_eq!(shown("srt://:5000?open,[::1]:9000,rtp://:5004,9001").0, 2);
        assert_eq!(shown("srtla://:5000"), (0, vec!["srtla://:5000".into()]));
        let read = entrances("srt://:5000?streamid=#!::r=cam1,m=publish,u=x,9000").unwrap();
        let [Gate::Neighbour(neighbour)] = &read.gates[..] else { panic!("{read:?}") };
        assert_eq!((neighbour.stream_id.as_deref(), read.own.0.len()), (Some("#!::r=cam1,m=publish,u=x"), 1));
        assert_eq!(entrances("rtp://:5004?name=cam2,9000").unwrap().gates[0].name(), Some("cam2"));
    }

    #[test]
    fn what_is_wrong_is_said_without_what_may_be_secret() {
        let wrong = |text| entrances(text).unwrap_err();
        assert!(
            wrong("rtsp://:5000?secret=hunter2").contains("'rtsp://'")
                && !wrong("rtsp://x?hunter2").contains("hunter2")
        );
        assert!(wrong("9000,show.ts").contains("'show.ts' is neither PORT nor"));
        assert!(wrong("udp://:5000").contains("'udp://'"));
        assert!(wrong("rist://studio:5000").contains("rist://:PORT"));
        assert!(wrong("srt://:5000?name=a/b").contains("a name has"));
    }
}
