//! What `endpoint_of_many` and `dccp_endpoint_of_many` have in common: who is there, and what may be sent to whom.

use arbitrary::{Result, Unstructured};
use braidcast_core::{Instant, Machine};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Who is there from the beginning.
pub(crate) const MEMBERS: usize = 3;
/// Datagrams at one instant, after which a loop counts as endless.
pub(crate) const ENDLESS: usize = 20_000;
/// Packets of a member's that can be sent again.
const KEPT: usize = 8;
/// Bytes of an IPv4 header and of UDP's.
const HEADERS: usize = 28;

/// The address of the member with this number.
pub(crate) fn member_at(number: usize, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 1 + number as u8, 1], port))
}

/// The address that a stranger asks from: a member's, or in a network of its own, or in one of many.
pub(crate) fn stranger_at(what: u8, n: usize, own: u16, port: u16) -> SocketAddr {
    let [high, low] = own.to_be_bytes();
    match what >> 4 {
        0 => member_at(n % MEMBERS, port),
        1..=7 => SocketAddr::from(([172, 16, 0, low], 1024 + n as u16)),
        _ => SocketAddr::from(([172, high, low, 1], port)),
    }
}

/// Time has come to `now` at these ends.
pub(crate) fn tick<'a, M: Machine + 'a>(ends: impl Iterator<Item = &'a mut M>, now: Instant) {
    for end in ends {
        if end.poll_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
    }
}

/// The last packets of a member's.
#[derive(Default)]
pub(crate) struct Last(std::collections::VecDeque<Vec<u8>>);

impl Last {
    pub(crate) fn push(&mut self, packet: &[u8]) {
        self.0.push_back(packet.to_vec());
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// One of them, as it is, changed or cut, as `n` and the input say; `None` if there is no such one.
    pub(crate) fn again(&self, input: &mut Unstructured<'_>, n: usize) -> Result<Option<Vec<u8>>> {
        let Some(mut bytes) = self.0.get(n % KEPT).cloned() else { return Ok(None) };
        let place = usize::from(input.arbitrary::<u16>()?) % bytes.len();
        match n >> 6 {
            0 => bytes[place] ^= 1 << (n & 7),
            1 => bytes.truncate(place),
            _ => {}
        }
        Ok(Some(bytes))
    }
}

/// Bytes of IP packets from an address and to it, as long as that is not proved.
#[derive(Default)]
struct Account {
    from: usize,
    to: usize,
    proved: bool,
}

/// Those of all addresses. Nobody whose address is not proved may be sent more than three times what came from there.
#[derive(Default)]
pub(crate) struct Accounts(BTreeMap<SocketAddr, Account>);

impl Accounts {
    pub(crate) fn came(&mut self, from: SocketAddr, payload: &[u8]) {
        self.0.entry(from).or_default().from += payload.len() + HEADERS;
    }

    pub(crate) fn sent(&mut self, to: SocketAddr, payload: &[u8]) {
        let account = self.0.entry(to).or_default();
        if !account.proved {
            account.to += payload.len() + HEADERS;
            assert!(account.to <= 3 * account.from, "{} bytes for {}", account.to, account.from);
        }
    }

    /// Somebody there has shown what was sent there alone.
    pub(crate) fn prove(&mut self, at: SocketAddr) {
        self.0.entry(at).or_default().proved = true;
    }
}
