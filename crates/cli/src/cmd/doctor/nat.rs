//! What kind of NAT stands before a network: one socket asks several relays where they see it (RFC 5780 §4.3).

use super::here::family;
use super::probe::Asked;
use super::tried::Nat;
use super::work::Work;
use crate::failure::Outcome;
use braidcast_core::Route;
use braidcast_driver::{Link, LinkChange, Target};
use braidcast_relay::{Credentials, OwnerSecret, Place};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long relays that answered before may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Where a socket is seen.
#[derive(Serialize)]
pub(super) struct Seen {
    pub(super) by: SocketAddr,
    #[serde(rename = "as")]
    pub(super) at: SocketAddr,
}

/// A network, and what stands before it.
#[derive(Serialize)]
pub(super) struct Before {
    pub(super) network: String,
    pub(super) family: &'static str,
    pub(super) local: Option<IpAddr>,
    pub(super) seen: Vec<Seen>,
    pub(super) kind: Nat,
}

/// A place of one's own at a relay, hidden from everybody else.
pub(super) fn credentials(work: &mut Work) -> Credentials {
    let mut secret = [0; 16];
    secret.fill_with(|| work.rng.u32() as u8);
    let epoch = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
    let place = Place::Owner(OwnerSecret(secret));
    Credentials { place, epoch, hidden: true, signer: work.signer.clone() }
}

/// Asks all relays that answered, from one socket for each network and family.
pub(super) fn find(work: &mut Work) -> Outcome<Vec<Before>> {
    let mut all: Vec<Before> = Vec::new();
    for place in 0..work.tried.len() {
        let it = &work.tried[place];
        let (Some(kind), Some(at)) = (it.nat(), it.seen_as) else { continue };
        let (network, family) = (it.network.clone(), family(it.remote.ip()));
        if all.iter().any(|before| before.network == network && before.family == family) {
            continue;
        }
        let alike = work.tried.iter().filter(|other| {
            other.network == network && other.remote.is_ipv4() == it.remote.is_ipv4() && work.is_relay(other)
        });
        let relays: Vec<SocketAddr> = alike.map(|other| other.remote).collect();
        let mut before = Before { network, family, local: it.local, seen: vec![Seen { by: it.remote, at }], kind };
        if let (true, [first, _, ..]) = (kind == Nat::Some, &relays[..]) {
            let link = Link::new(it.via.clone(), Target::Addr(*first), format!("{} NAT", before.network));
            before.seen = ask(work, link, &relays)?;
            before.kind = kind_of(&before.seen);
        }
        all.push(before);
    }
    Ok(all)
}

/// Where relays see one socket.
fn ask(work: &mut Work, link: Link, relays: &[SocketAddr]) -> Outcome<Vec<Seen>> {
    let Ok(Some(LinkChange::Joined { route, .. })) = work.links.add(link, &mut work.driver) else {
        return Ok(Vec::new());
    };
    for relay in relays {
        work.ask_relay(Route::new(route.socket, *relay));
    }
    let end = work.driver.now() + ANSWER;
    loop {
        let asked = |it: &&Asked| it.route.socket == route.socket;
        let seen: Vec<Seen> = (work.probe.relays.iter().filter(asked))
            .filter_map(|it| Some(Seen { by: it.route.remote, at: it.seen_as? }))
            .collect();
        if seen.len() == relays.len() || work.driver.now() >= end || work.interrupted {
            work.probe.relays.iter_mut().filter(|it| it.route.socket == route.socket).for_each(|it| it.client.leave());
            return Ok(seen);
        }
        work.turn(end)?;
    }
}

/// The same port everywhere, or not.
fn kind_of(seen: &[Seen]) -> Nat {
    match seen {
        [first, rest @ ..] if !rest.is_empty() => {
            if rest.iter().all(|it| it.at == first.at) {
                Nat::Cone
            } else {
                Nat::Symmetric
            }
        }
        _ => Nat::Some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_port_for_all_or_one_for_each() {
        let seen = |by: &str, at: &str| Seen { by: by.parse().unwrap(), at: at.parse().unwrap() };
        let first = || seen("192.0.2.1:9000", "203.0.113.1:5000");
        assert_eq!(kind_of(&[first()]), Nat::Some);
        assert_eq!(kind_of(&[first(), seen("192.0.2.2:9000", "203.0.113.1:5000")]), Nat::Cone);
        assert_eq!(kind_of(&[first(), seen("192.0.2.2:9000", "203.0.113.1:5001")]), Nat::Symmetric);
    }
}
