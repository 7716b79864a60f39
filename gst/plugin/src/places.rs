//! Addresses as properties have them: `to` and `via` make paths, `listen` sockets.

use crate::failure::Failure;
use braidcast_driver::{Bind, Link, Target, Via};
use std::net::{IpAddr, SocketAddr};

/// Several with commas between.
pub(crate) fn parts(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// One of `via` goes with each of `to`, or one of `to` with each of `via`, or the n-th with the
/// n-th, as in `braidcast send`. `property`: what says where to.
pub(crate) fn links(property: &str, to: &str, via: &str) -> Result<Vec<Link>, Failure> {
    let (to, via) = (parts(to), parts(via));
    if to.is_empty() {
        let how = format!("say where the other end listens: {property}=home.example:9000");
        return Err(Failure::property(property, "it is empty", how));
    }
    let of = |text: &&str| {
        let Ok(via) = text.parse::<Via>();
        via
    };
    let vias: Vec<Via> = if via.is_empty() { vec![Via::Any] } else { via.iter().map(of).collect() };
    let pairs: Vec<(Via, &str)> = match (vias.as_slice(), to.as_slice()) {
        ([one], many) => many.iter().map(|to| (one.clone(), *to)).collect(),
        (many, [one]) => many.iter().map(|via| (via.clone(), *one)).collect(),
        (many, others) if many.len() == others.len() => many.iter().cloned().zip(others.iter().copied()).collect(),
        (many, others) => {
            let why = format!("{} do not pair up with {} of {property}", many.len(), others.len());
            let how = format!("give one of via or one of {property}, or as many of both");
            return Err(Failure::property("via", why, how));
        }
    };
    let mut links: Vec<Link> = Vec::new();
    for (nth, (via, to)) in pairs.iter().enumerate() {
        if pairs[..nth].contains(&(via.clone(), to)) {
            return Err(Failure::property(
                property,
                format!("the path from {via} to {to} is there twice"),
                "leave one out",
            ));
        }
        let name = match via {
            Via::Any => (*to).to_owned(),
            via if pairs.iter().filter(|(other, _)| other == via).count() == 1 => via.to_string(),
            via => format!("{via} to {to}"),
        };
        links.push(Link::new(via.clone(), target(property, to)?, name));
    }
    Ok(links)
}

/// Where HOST:PORT leads.
fn target(property: &str, to: &str) -> Result<Target, Failure> {
    let how = "write HOST:PORT, for example home.example:9000 or [2001:db8::1]:9000";
    let target = to.parse::<Target>().ok().filter(|it| it.port() != 0);
    let target =
        target.ok_or_else(|| Failure::property(property, format!("'{to}' is not an address with a port"), how))?;
    match target {
        Target::Addr(addr) if addr.ip().is_unspecified() || addr.ip().is_multicast() => {
            Err(Failure::property(property, format!("{} is not the address of one machine", addr.ip()), how))
        }
        target => Ok(target),
    }
}

/// `PORT`, `:PORT`, `ADDR:PORT`, or several, of the property that is called `name`.
pub(crate) fn binds(name: &str, text: &str) -> Result<Vec<Bind>, Failure> {
    let how = "write 9000, 192.0.2.1:9000 or [2001:db8::1]:9000, or several with commas";
    let all = parts(text);
    if all.is_empty() {
        return Err(Failure::property(name, "it is empty", how));
    }
    let bind = |part: &&str| {
        let digits = part.strip_prefix(':').unwrap_or(part);
        if let Ok(port) = digits.parse() {
            return Ok(Bind::default().with(|it| it.port = port));
        }
        let address = part.parse::<SocketAddr>();
        let wrong = |_| Failure::property(name, format!("'{part}' is neither PORT nor ADDR:PORT"), how);
        address.map(Bind::to_addr).map_err(wrong)
    };
    all.iter().map(bind).collect()
}

/// An address that stands for all of this machine.
fn is_any(addr: Option<IpAddr>) -> bool {
    addr.is_none_or(|addr| addr.is_unspecified())
}

/// Returns `true` if a packet may be for sockets of both: a port is the same, and its address is, or
/// may be.
pub(crate) fn meet(some: &[Bind], others: &[Bind]) -> bool {
    let same = |one: &Bind, other: &Bind| one.addr == other.addr || is_any(one.addr) || is_any(other.addr);
    some.iter().any(|one| others.iter().any(|other| other.port == one.port && one.port != 0 && same(one, other)))
}

/// Returns `true` if sockets for `all` serve who asks for `asked`: the same ports in any order, each at the
/// same address or at any. `0.0.0.0` is a part of any.
pub(crate) fn serve(all: &[Bind], asked: &[Bind]) -> bool {
    let fits = |one: &Bind, other: &Bind| {
        one.port == other.port && (one.addr == other.addr || (one.addr.is_none() && is_any(other.addr)))
    };
    all.iter().all(|one| asked.iter().any(|other| fits(one, other)))
        && asked.iter().all(|other| all.iter().any(|one| fits(one, other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gst::ResourceError as Code;
    use gstreamer as gst;

    #[test]
    fn one_goes_with_each_and_equal_numbers_go_in_order() {
        let names = |to, via| links("to", to, via).map(|links| links.into_iter().map(|it| it.name).collect::<Vec<_>>());
        assert_eq!(names("127.0.0.1:1,127.0.0.2:1", "").unwrap(), ["127.0.0.1:1", "127.0.0.2:1"]);
        assert_eq!(names("127.0.0.1:1", "lo, 127.0.0.1").unwrap(), ["lo", "127.0.0.1"]);
        assert_eq!(names("127.0.0.1:1,127.0.0.2:1", "lo").unwrap()[1], "lo to 127.0.0.2:1");
        for (to, via, words) in [
            ("", "", "to=home.example:9000"),
            ("127.0.0.1", "", "HOST:PORT"),
            ("127.0.0.1:0", "", "HOST:PORT"),
            ("0.0.0.0:9", "", "not the address of one machine"),
            ("127.0.0.1:1,127.0.0.2:1", "a,b,c", "do not pair up"),
            ("127.0.0.1:1,127.0.0.1:1", "", "there twice"),
        ] {
            let failure = names(to, via).unwrap_err();
            assert!(failure.to_string().contains(words) && failure.code == Code::Settings, "{failure}");
        }
    }

    #[test]
    fn sockets_are_ports_and_addresses() {
        let binds = |text: &str| super::binds("listen", text);
        let all = binds("9000, 127.0.0.1:9001,:9002").unwrap();
        assert_eq!(all.iter().map(|it| it.port).collect::<Vec<_>>(), [9000, 9001, 9002]);
        let of = |text| binds(text).unwrap();
        for (all, asked, serves) in [
            ("9000", "9000", true),
            ("9000", ":9000", true),
            ("9000", "0.0.0.0:9000", true),
            ("9000", "[::]:9000", true),
            ("9000,9001", "9001, 0.0.0.0:9000", true),
            ("0.0.0.0:9000", "9000", false),
            ("0.0.0.0:9000", "[::]:9000", false),
            ("9000", "127.0.0.1:9000", false),
            ("9000,9001", "9000", false),
            ("9000", "9000,9001", false),
        ] {
            assert_eq!(serve(&of(all), &of(asked)), serves, "{all} for {asked}");
            assert!(meet(&of(all), &of(asked)), "{all} and {asked}");
        }
        for apart in [["9000", "9001"], ["0", "0"], ["127.0.0.1:9000", "127.0.0.2:9000"]] {
            assert!(!meet(&of(apart[0]), &of(apart[1])), "{apart:?}");
        }
        assert!(binds("").is_err() && binds("home:9000").is_err() && binds("70000").is_err());
    }
}
