use braidcast_core::Heard;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Strangers that are remembered, at most; and half of the peers, unless a program has more of them.
const MOST: usize = 4096;

/// Which of our addresses each remote sends to: the answers must come from there, or the remote (or a NAT before it)
/// does not know them. Learnt from what the remote itself sent, and from strangers only about remotes of whom nothing
/// better is known.
#[derive(Debug)]
pub(crate) enum Sources {
    Own(Table),
    /// Sockets of several threads, at one address and port, send to the same remotes.
    Shared(Arc<Mutex<Table>>),
}

impl Default for Sources {
    fn default() -> Self {
        Self::Own(Table::default())
    }
}

impl Sources {
    /// For another socket.
    pub(crate) fn share(&mut self) -> Self {
        let table = match self {
            Self::Own(table) => Arc::new(Mutex::new(std::mem::take(table))),
            Self::Shared(table) => table.clone(),
        };
        *self = Self::Shared(table.clone());
        Self::Shared(table)
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Table) -> T) -> T {
        match self {
            Self::Own(table) => act(table),
            Self::Shared(table) => act(&mut table.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// The address that `remote` sends to.
    pub(crate) fn of(&mut self, remote: SocketAddr) -> Option<IpAddr> {
        self.with(|table| table.of(remote))
    }

    /// It is ours no more.
    pub(crate) fn forget(&mut self, remote: SocketAddr) {
        self.with(|table| table.forget(remote));
    }

    /// From now on this many peers that are active are remembered.
    pub(crate) fn expect(&mut self, peers: usize) {
        self.with(|table| table.most = table.most.max(peers));
    }

    /// Notes that `remote` sends to our address `ip`, as a datagram says that was `heard` from there.
    pub(crate) fn learn(&mut self, remote: SocketAddr, ip: IpAddr, heard: Heard) {
        self.with(|table| table.learn(remote, ip, heard));
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    /// Peers that were heard since the last time that there were too many of them.
    young: BTreeMap<SocketAddr, IpAddr>,
    /// Those of the time before. Who is heard again is young again, so that those who are active are never forgotten.
    old: BTreeMap<SocketAddr, IpAddr>,
    /// Of their own, so that they push no peer out.
    strangers: BTreeMap<SocketAddr, IpAddr>,
    /// Of how many peers each of the two knows, at most.
    most: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { young: BTreeMap::new(), old: BTreeMap::new(), strangers: BTreeMap::new(), most: MOST }
    }
}

impl Table {
    fn peer(&self, remote: SocketAddr) -> Option<IpAddr> {
        self.young.get(&remote).or_else(|| self.old.get(&remote)).copied()
    }

    fn of(&self, remote: SocketAddr) -> Option<IpAddr> {
        self.peer(remote).or_else(|| self.strangers.get(&remote).copied())
    }

    fn forget(&mut self, remote: SocketAddr) {
        for known in [&mut self.young, &mut self.old, &mut self.strangers] {
            known.remove(&remote);
        }
    }

    fn learn(&mut self, remote: SocketAddr, ip: IpAddr, heard: Heard) {
        let unicast = match ip.to_canonical() {
            IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_multicast(),
        };
        match heard {
            _ if !unicast => {}
            Heard::Nothing => {}
            Heard::Stranger if self.peer(remote).is_some() => {}
            Heard::Stranger => {
                if self.strangers.len() >= MOST && !self.strangers.contains_key(&remote) {
                    self.strangers.clear();
                }
                self.strangers.insert(remote, ip);
            }
            Heard::Peer if self.young.get(&remote) == Some(&ip) => {}
            Heard::Peer => {
                self.forget(remote);
                if self.young.len() >= self.most {
                    self.old = std::mem::take(&mut self.young);
                }
                self.young.insert(remote, ip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_remote_sends_to_is_learnt_from_itself_and_not_from_others() {
        let remote = SocketAddr::from(([192, 0, 2, 1], 9));
        let [right, wrong] = [[192, 0, 2, 7], [192, 0, 2, 9]].map(IpAddr::from);
        let mut sources = Sources::default();
        let mut other = sources.share();
        let mut learn = |ip, heard| {
            sources.learn(remote, ip, heard);
            assert_eq!(other.of(remote), sources.of(remote), "both threads know the same");
            sources.of(remote)
        };
        assert_eq!(learn(wrong, Heard::Nothing), None);
        assert_eq!(learn(wrong, Heard::Stranger), Some(wrong), "where else should the answer come from?");
        assert_eq!(learn(right, Heard::Stranger), Some(right));
        assert_eq!(learn(right, Heard::Peer), Some(right));
        assert_eq!(learn(wrong, Heard::Stranger), Some(right));
        assert_eq!(learn(wrong, Heard::Nothing), Some(right));
        assert_eq!(learn(wrong, Heard::Peer), Some(wrong), "it moved to another address of ours");
    }

    #[test]
    fn strangers_fill_no_memory_and_push_no_peer_out() {
        let here = IpAddr::from([192, 0, 2, 7]);
        let remote = |n: u32| SocketAddr::from((n.to_be_bytes(), 9));
        let mut table = Table::default();
        table.learn(remote(1), here, Heard::Peer);
        for n in 2..20_000 {
            table.learn(remote(n), here, Heard::Stranger);
            assert!(table.young.len() == 1 && table.old.is_empty() && table.strangers.len() <= MOST);
        }
        assert_eq!((table.of(remote(1)), table.of(remote(19_999))), (Some(here), Some(here)));
    }

    #[test]
    fn as_many_peers_as_are_expected_are_remembered_and_those_that_left_fill_no_memory() {
        let here = IpAddr::from([192, 0, 2, 7]);
        let remote = |n: u32| SocketAddr::from((n.to_be_bytes(), 9));
        let mut sources = Sources::default();
        let mut other = sources.share();
        sources.expect(10_000);
        // Three times as many come one after the other, of which the last 10,000 are still there.
        for n in 0..30_000_u32 {
            other.learn(remote(n), here, Heard::Peer);
            sources.learn(remote(n.saturating_sub(9_999)), here, Heard::Peer);
        }
        assert!((20_000..30_000).all(|n| sources.of(remote(n)) == Some(here)));
        sources.with(|table| assert!(table.young.len() <= 10_000 && table.old.len() <= 10_000));
    }
}
