use crate::Instant;
use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Whom members are counted for: where keys are in use the key `K` that was proved, else a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Holder<K> {
    /// All who show this key are one.
    Key(K),
    /// An address; of IPv6 the network of 64 bits, as whoever has one address there has them all.
    Host(IpAddr),
}

impl<K> Holder<K> {
    /// The holder with this `key`, or else at `host`.
    pub fn of(key: Option<K>, host: IpAddr) -> Self {
        let host = match host.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
            v4 @ IpAddr::V4(_) => v4,
        };
        key.map_or(Self::Host(host), Self::Key)
    }
}

/// A member that was heard this long ago is idle enough to go for one whose holder has as many.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns which of `members`, each with its holder and when it was heard last, goes where there is
/// one too many: of the holder with most places the idlest, if the `newcomer`'s has fewer or it was
/// silent for 10 s; else the newcomer.
pub fn crowded_out<I: Copy + Ord, H: Copy + Eq + Hash>(now: Instant, members: &[(I, H, Instant)], newcomer: I) -> I {
    let mut counts = HashMap::new();
    members.iter().for_each(|(_, holder, _)| *counts.entry(*holder).or_insert(0_usize) += 1);
    let count = |holder: &H| counts.get(holder).copied().unwrap_or_default();
    let own = members.iter().find(|(id, ..)| *id == newcomer).map_or(0, |(_, holder, _)| count(holder));
    let most = counts.values().copied().max().unwrap_or_default();
    let crowd = members.iter().filter(|(id, holder, _)| *id != newcomer && count(holder) == most);
    let idlest = crowd.min_by_key(|(id, _, heard)| (*heard, *id));
    let may_go = |heard: Instant| most > own || now.since(heard) >= PATIENCE;
    idlest.filter(|(.., heard)| may_go(*heard)).map_or(newcomer, |(id, ..)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_with_many_places_loses_one_to_another_and_none_to_itself() {
        let at = |secs: u64| Instant::from_millis(secs * 1000);
        let mut members =
            vec![(1, 'm', at(60)), (2, 'm', at(59)), (3, 'm', at(61)), (4, 'a', at(40)), (9, 'b', at(62))];
        assert_eq!(crowded_out(at(62), &members, 9), 2, "the idlest of the one with most");
        members[4].1 = 'm';
        assert_eq!(crowded_out(at(62), &members, 9), 9, "it has as many as anybody");
        assert_eq!(crowded_out(at(70), &members, 9), 2, "one that crashed gives way to its successor");
    }

    #[test]
    fn a_network_of_ipv6_is_one_holder_and_a_key_is_one_wherever_it_is() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let host = |text: &str| Holder::<u8>::of(None, at(text));
        assert_eq!(host("2001:db8::1"), host("2001:db8::ffff:1"));
        assert_ne!(host("2001:db8::1"), host("2001:db8:0:1::1"));
        assert_eq!(host("::ffff:192.0.2.1"), host("192.0.2.1"));
        assert_ne!(host("192.0.2.1"), host("192.0.2.2"));
        assert_eq!(Holder::of(Some(1), at("192.0.2.1")), Holder::of(Some(1), at("2001:db8::1")));
    }
}
