use braidcast_core::Heard;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Remotes that are remembered, at most.
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
        self.with(|table| table.0.get(&remote).map(|(ip, _)| *ip))
    }

    /// It is ours no more.
    pub(crate) fn forget(&mut self, remote: SocketAddr) {
        self.with(|table| table.0.remove(&remote));
    }

    /// Notes that `remote` sends to our address `ip`, as a datagram says that was `heard` from there.
    pub(crate) fn learn(&mut self, remote: SocketAddr, ip: IpAddr, heard: Heard) {
        self.with(|table| table.learn(remote, ip, heard));
    }
}

#[derive(Default, Debug)]
pub(crate) struct Table(BTreeMap<SocketAddr, (IpAddr, Heard)>);

impl Table {
    fn learn(&mut self, remote: SocketAddr, ip: IpAddr, heard: Heard) {
        let unicast = match ip.to_canonical() {
            IpAddr::V4(v4) => !v4.is_multicast() && !v4.is_broadcast(),
            IpAddr::V6(v6) => !v6.is_multicast(),
        };
        let known = self.0.get(&remote).copied();
        let better = known.is_none_or(|(_, by)| heard >= by);
        if !unicast || heard == Heard::Nothing || !better || known == Some((ip, heard)) {
            return;
        }
        if self.0.len() >= MOST && known.is_none() {
            // Strangers make room first. Peers that are still active are learnt anew by their next datagrams.
            self.0.retain(|_, (_, by)| *by == Heard::Peer);
            if self.0.len() >= MOST {
                self.0.clear();
            }
        }
        self.0.insert(remote, (ip, heard));
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
            assert!(table.0.len() <= MOST);
        }
        assert!(table.0.contains_key(&remote(1)));
    }
}
