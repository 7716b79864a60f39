//! The addresses that one side lists in INIT or INIT ACK (RFC 9260 §3.3.2.1, §5.1.2).

use crate::api::Options;
use crate::capabilities::recognized;
use crate::wire::{Parameter, Parameters, param::emit_address};
use braidcast_core::Writer;
use std::net::IpAddr;

/// The first few addresses of a list; the rest is ignored, as no association has that number of paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Addresses {
    list: [Option<IpAddr>; Self::MAX],
}

impl Addresses {
    /// Addresses of a list.
    pub(crate) const MAX: usize = 8;
    /// Most bytes that [`emit`](Self::emit) writes: type, length and address of IPv6.
    pub(crate) const MAX_EMITTED: usize = Self::MAX * (4 + 16);

    /// The first of `addresses`, without those that name no host.
    pub(crate) fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut list = [None; Self::MAX];
        let hosts = addresses.into_iter().filter(|address| !address.is_unspecified());
        list.iter_mut().zip(hosts).for_each(|(slot, address)| *slot = Some(address));
        Self { list }
    }

    /// What our INIT and INIT ACK list.
    pub(crate) fn ours(options: &Options) -> Self {
        Self::new(options.local_addresses.iter().copied())
    }

    /// What the peer's INIT or INIT ACK with `parameters` lists, if it counts: where we list none either, it does not.
    pub(crate) fn of_peer(options: &Options, parameters: Parameters<'_>) -> Self {
        if options.local_addresses.is_empty() { Self::default() } else { Self::parse(parameters) }
    }

    /// What `parameters` list.
    pub(crate) fn parse(parameters: Parameters<'_>) -> Self {
        Self::new(recognized(parameters).map_while(Result::ok).filter_map(|parameter| match parameter {
            Parameter::Ipv4(v4) => Some(IpAddr::V4(v4)),
            Parameter::Ipv6(v6) => Some(IpAddr::V6(v6)),
            _ => None,
        }))
    }

    /// Appends them as parameters.
    pub(crate) fn emit(&self, w: &mut Writer<'_>) {
        self.list.iter().flatten().for_each(|&address| emit_address(w, address));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.list.iter().flatten().copied()
    }

    /// One more, if there is room.
    pub(crate) fn add(&mut self, address: IpAddr) {
        if !self.contains(address)
            && let Some(free) = self.list.iter_mut().find(|slot| slot.is_none())
        {
            *free = Some(address);
        }
    }

    /// Without those that are not `kept`.
    pub(crate) fn retain(&mut self, kept: impl Fn(IpAddr) -> bool) {
        self.list.iter_mut().filter(|slot| slot.is_some_and(|address| !kept(address))).for_each(|slot| *slot = None);
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.list.contains(&Some(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_and_go() {
        let [a, b, c] = [1, 2, 3].map(|n| IpAddr::from([192, 0, 2, n]));
        let mut all = Addresses::new([a, b]);
        all.add(b);
        all.add(c);
        assert_eq!(all.iter().collect::<Vec<_>>(), [a, b, c]);
        all.retain(|address| address != b);
        assert!(!all.contains(b));
        assert_eq!(all.iter().collect::<Vec<_>>(), [a, c]);
        (0..20).for_each(|n| all.add([198, 51, 100, n].into()));
        assert_eq!(all.iter().count(), Addresses::MAX);
    }
}
