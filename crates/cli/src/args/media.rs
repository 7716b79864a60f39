//! `udp://HOST:PORT?key=value`: media in datagrams, with the options that ffmpeg, SRT's tools and
//! librist put behind it. `rtp://` is the same with RTP around it.

use super::values::{Remote, name, remote};
use std::fmt;
use std::net::IpAddr;

/// Shortest and longest payload that `pkt_size` may ask for: one packet of transport stream; what UDP carries.
const PKT_SIZES: std::ops::RangeInclusive<u16> = 188..=65_507;

/// Datagrams of media: where they come in or go to, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UdpMedia {
    /// Address to listen on or to send to.
    pub(crate) at: Remote,
    /// Each datagram is a packet of RTP.
    pub(crate) rtp: bool,
    /// This end: where a multicast group is joined, or where datagrams leave.
    pub(crate) local: Option<Local>,
    /// Longest datagram to send, in bytes.
    pub(crate) pkt_size: Option<u16>,
    /// Routers that datagrams may pass.
    pub(crate) ttl: Option<u8>,
    /// What the stream is called.
    pub(crate) name: Option<String>,
    /// Anybody may send it, although a key is asked for elsewhere.
    pub(crate) open: bool,
    /// A second address, over another network, for the same packets.
    pub(crate) copy: Option<(Remote, Option<Local>)>,
}

impl UdpMedia {
    /// The second network's, if there is one.
    pub(crate) fn second(&self) -> Option<Self> {
        let (at, local) = self.copy.clone()?;
        Some(Self { at, local, copy: None, ..self.clone() })
    }
}

/// An end of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Local {
    /// By its address.
    Addr(IpAddr),
    /// By the name of the network interface.
    Interface(String),
}

/// What datagrams are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// The one input.
    In,
    /// An input beside others.
    Beside,
    /// An output.
    Out,
}

impl fmt::Display for UdpMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.rtp { "rtp" } else { "udp" }, self.at)
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => write!(f, "{addr}"),
            Self::Interface(name) => f.write_str(name),
        }
    }
}

/// Reads `udp://HOST:PORT?key=value&…`, or the same with `rtp://`; `None` for what has another scheme or none.
/// Each option is obeyed or refused.
pub(crate) fn udp(text: &str, direction: Direction) -> Option<Result<UdpMedia, String>> {
    let rtp = text.starts_with("rtp://");
    let rest = text.strip_prefix(if rtp { "rtp://" } else { "udp://" })?;
    let (at, options) = rest.split_once('?').unwrap_or((rest, ""));
    let at = at.strip_suffix('/').unwrap_or(at);
    // ffmpeg writes udp://@:5000 and udp://@239.0.0.1:5000 for "listen here".
    let at = at.strip_prefix('@').unwrap_or(at);
    let at = if at.starts_with(':') { remote(&format!("0.0.0.0{at}")) } else { remote(at) };
    Some(at.and_then(|at| {
        with_options(
            UdpMedia { at, rtp, local: None, pkt_size: None, ttl: None, name: None, open: false, copy: None },
            options,
            direction,
        )
    }))
}

fn with_options(mut media: UdpMedia, options: &str, direction: Direction) -> Result<UdpMedia, String> {
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match (key, direction) {
            // As ffmpeg, SRT's tools and librist call it.
            ("localaddr" | "adapter" | "miface", _) if !value.is_empty() => {
                media.local = Some(local(value));
            }
            ("pkt_size", _) => match value.parse() {
                Ok(size) if PKT_SIZES.contains(&size) => media.pkt_size = Some(size),
                _ => {
                    let (least, most) = (PKT_SIZES.start(), PKT_SIZES.end());
                    return Err(format!(
                        "pkt_size={value} is not a length from {least} to {most} bytes: write pkt_size=1316"
                    ));
                }
            },
            ("ttl", Direction::Out) => match value.parse() {
                Ok(ttl) if ttl > 0 => media.ttl = Some(ttl),
                _ => return Err(format!("ttl={value} is not a number of routers from 1 to 255")),
            },
            ("copy", _) if !media.rtp => {
                return Err("copy= is for rtp://, whose packets have the numbers that tell copies: write rtp://".into());
            }
            ("copy", _) if !value.is_empty() => media.copy = Some(copy(value, &media.at)?),
            ("name", Direction::Beside) => media.name = Some(name(value)?),
            ("open", Direction::Beside) if value.is_empty() => media.open = true,
            ("ttl", Direction::In | Direction::Beside) => return Err("ttl= is for outputs: leave it out here".into()),
            _ => {
                return Err(format!(
                    "'{option}' is not supported behind udp:// and rtp://: leave it out; there are localaddr=ADDR|IFACE, pkt_size=BYTES, \
                     with rtp:// copy=HOST:PORT@ADDR|IFACE, for outputs ttl=N and in LISTEN name=NAME and open"
                ));
            }
        }
    }
    if media.copy.as_ref().is_some_and(|(at, local)| *at == media.at && *local == media.local) {
        return Err("copy= is where the first one is: name another address, or another interface behind @".into());
    }
    Ok(media)
}

fn local(value: &str) -> Local {
    value.parse().map_or_else(|_| Local::Interface(value.to_owned()), Local::Addr)
}

/// `HOST:PORT`, `HOST:PORT@ADDR|IFACE`, or `@ADDR|IFACE` for the address of the first one.
fn copy(value: &str, first: &Remote) -> Result<(Remote, Option<Local>), String> {
    let (at, here) = value.rsplit_once('@').map_or((value, None), |(at, here)| (at, Some(here)));
    if here == Some("") {
        return Err("an interface is missing behind the @ of copy=: write for example copy=@eth1".into());
    }
    let at = match at {
        "" => first.clone(),
        _ if at.starts_with(':') => remote(&format!("0.0.0.0{at}"))?,
        _ => remote(at)?,
    };
    Ok((at, here.map(local)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, direction: Direction) -> Result<UdpMedia, String> {
        udp(text, direction).unwrap()
    }

    #[test]
    fn what_ffmpeg_users_paste_is_obeyed() {
        let media = read("udp://239.1.1.1:5600?localaddr=127.0.0.1&pkt_size=1316", Direction::In).unwrap();
        assert_eq!(media.at.to_string(), "239.1.1.1:5600");
        assert_eq!(media.local, Some(Local::Addr("127.0.0.1".parse().unwrap())));
        let media = read("udp://239.1.1.1:5600/?ttl=3&miface=eth0&pkt_size=188", Direction::Out).unwrap();
        assert_eq!((media.ttl, media.pkt_size), (Some(3), Some(188)));
        assert_eq!(media.local, Some(Local::Interface("eth0".into())));
        assert_eq!(read("udp://@:5000", Direction::In).unwrap().to_string(), "udp://0.0.0.0:5000");
        assert!(udp("srt://host:1", Direction::In).is_none());
        let media = read("rtp://@239.0.0.1:5004?localaddr=eth0", Direction::In).unwrap();
        assert_eq!((media.rtp, media.to_string()), (true, "rtp://239.0.0.1:5004".into()));
    }

    #[test]
    fn a_copy_has_an_address_an_interface_or_both() {
        let second = |text, direction| {
            let second = read(text, direction).unwrap().second().unwrap();
            assert!(second.rtp && second.copy.is_none());
            (second.at.to_string(), second.local.map(|it| it.to_string()).unwrap_or_default())
        };
        let is = |at: &str, local: &str| (at.to_owned(), local.to_owned());
        assert_eq!(second("rtp://a:1?copy=b:2", Direction::Out), is("b:2", ""));
        let at = "rtp://239.0.0.1:5004?localaddr=eth0&copy=@eth1";
        assert_eq!(second(at, Direction::In), is("239.0.0.1:5004", "eth1"));
        assert_eq!(second("rtp://:5004?copy=:5006@192.0.2.1", Direction::Beside), is("0.0.0.0:5006", "192.0.2.1"));
        assert_eq!(second("rtp://[::1]:5004?copy=[::1]:5006@eth1", Direction::Out), is("[::1]:5006", "eth1"));
        assert!(read("rtp://:5004", Direction::In).unwrap().second().is_none());
    }

    #[test]
    fn an_option_that_is_not_obeyed_is_refused() {
        let refused = |text, direction| read(text, direction).unwrap_err();
        assert!(refused("udp://a:1?foo=bar", Direction::Out).contains("'foo=bar' is not supported"));
        assert!(refused("udp://a:1?fifo_size=1000", Direction::In).contains("leave it out"));
        assert!(refused("udp://a:1?localaddr=", Direction::In).contains("localaddr=ADDR|IFACE"));
        assert!(refused("udp://a:1?pkt_size=100", Direction::Out).contains("188 to 65507"));
        assert!(refused("udp://a:1?ttl=0", Direction::Out).contains("1 to 255"));
        assert!(refused("udp://a:1?ttl=3", Direction::In).contains("for outputs"));
        assert!(refused("udp://a:1/path", Direction::In).contains("not a port"));
        assert!(refused("udp://a:1?copy=b:2", Direction::Out).contains("write rtp://"));
        assert!(refused("rtp://a:1?copy=b", Direction::Out).contains("port is missing"));
        assert!(refused("rtp://a:1?copy=b:1@", Direction::Out).contains("copy=@eth1"));
        for same in ["rtp://a:1?copy=a:1", "rtp://a:1?copy=@eth0&localaddr=eth0"] {
            assert!(refused(same, Direction::Out).contains("where the first one is"), "{same}");
        }
    }
}
