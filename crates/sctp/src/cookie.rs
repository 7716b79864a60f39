//! The state cookie: what a listener would have to remember of a handshake, kept by the peer instead (RFC 9260 §5.1.3).

use core::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    time::Duration,
};

use braidcast_core::{Instant, Reader, Rng, Route, SocketId, Truncated, Writer};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::{addresses::Addresses, capabilities::Offer, wire::Parameters};

/// Everything from INIT and INIT-ACK that it takes to build the association. Holds no secret (RFC 9260 §5.1.3,
/// RFC 4895 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cookie {
    /// When it was made, by the clock of its maker.
    pub(crate) created: Instant,
    /// How long it is good for.
    pub(crate) lifespan: Duration,
    /// The verification tag that we chose.
    pub(crate) local_tag: u32,
    /// The verification tag that the peer chose.
    pub(crate) peer_tag: u32,
    /// TSN of our first DATA chunk.
    pub(crate) local_initial_tsn: u32,
    /// TSN of the peer's first DATA chunk.
    pub(crate) peer_initial_tsn: u32,
    /// The peer's receiver window in bytes.
    pub(crate) peer_a_rwnd: u32,
    /// Streams that we may send on.
    pub(crate) outbound_streams: u16,
    /// Streams that the peer may send on.
    pub(crate) inbound_streams: u16,
    /// Our SCTP port.
    pub(crate) local_port: u16,
    /// The peer's SCTP port.
    pub(crate) peer_port: u16,
    /// The route by which the INIT came.
    pub(crate) route: Route,
    /// Our tag in the association that existed when the INIT came, or 0 (RFC 9260 §5.2.2).
    pub(crate) local_tie_tag: u32,
    /// The peer's tag in that association, or 0.
    pub(crate) peer_tie_tag: u32,
    /// What our INIT-ACK offered.
    pub(crate) local_offer: Offer,
    /// What the peer's INIT offered.
    pub(crate) peer_offer: Offer,
    /// The addresses that the peer's INIT listed, as far as they count.
    pub(crate) peer_addresses: Addresses,
    /// What keys depend on ([`binding`](crate::wire::binding)). It is only there if both ends
    /// encrypt, else zeros.
    pub(crate) bound: [u8; 16],
}

/// Why a cookie does not lead to an association.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum CookieError {
    /// Not one of ours, altered, or older than the secrets that are kept: drop the packet (RFC 9260 §5.1.5 steps 1, 2).
    #[error("cookie does not verify")]
    Forged,
    /// Ours, but too old: answer with a Stale Cookie cause (RFC 9260 §5.1.5 step 4), unless its tags are those of the
    /// association that there is (§5.2.4).
    #[error("cookie is {by:?} too old")]
    Stale {
        /// How much longer than its lifespan it took.
        by: Duration,
        /// The cookie.
        cookie: Box<Cookie>,
    },
    /// Too short or too long to be one of ours: drop the packet.
    #[error("{given} bytes cannot be a cookie")]
    Malformed {
        /// Bytes that came.
        given: usize,
    },
}

/// Bytes of an HMAC-SHA-256.
const MAC: usize = 32;

/// Makes cookies and knows its own again.
///
/// ```text
/// | generation 8 | fields of the cookie … | HMAC-SHA-256 over both 256 |
/// ```
pub(crate) struct CookieJar {
    rng: Rng,
    /// The secret of this generation, ready to hash with, and the one before.
    current: Hmac<Sha256>,
    previous: Hmac<Sha256>,
    /// Counts secrets, modulo 256, so that a cookie says which of the two made it.
    generation: u8,
    /// When the current secret came into use; `None` before the first cookie.
    since: Option<Instant>,
}

impl CookieJar {
    /// How long a secret makes cookies (RFC 9260 §5.1.3: "e.g., hourly"). For as long again it opens them, so that
    /// lifespans up to this are kept.
    pub(crate) const ROTATION: Duration = Duration::from_secs(3600);

    /// Most bytes of a cookie; those of our own kind take about 250.
    pub(crate) const MAX: usize = 1
        + (2 * 8 + 5 * 4 + 4 * 2 + ROUTE_MAX + 2 * 4)
        + 2 * (2 + Offer::MAX_EMITTED)
        + (2 + Addresses::MAX_EMITTED)
        + 16
        + MAC;

    /// A jar whose secrets are drawn from `rng`, which nobody else should draw from.
    pub(crate) fn new(mut rng: Rng) -> Self {
        let (current, previous) = (secret(&mut rng), secret(&mut rng));
        Self { rng, current, previous, generation: 0, since: None }
    }

    /// Appends `cookie`, [`Self::MAX`] bytes at most. Changes the secret if it is due when the cookie is created.
    pub(crate) fn issue(&mut self, cookie: &Cookie, out: &mut Vec<u8>) {
        self.rotate(cookie.created);
        let start = out.len();
        out.push(self.generation);
        cookie.emit(out);
        let mac = self.current.clone().chain_update(&out[start..]).finalize().into_bytes();
        out.extend_from_slice(&mac);
        debug_assert!(out.len() - start <= Self::MAX, "the bound counts every field");
    }

    /// The cookie in `bytes`, if this jar made it and it is fresh at `now`. Takes the same time wherever a forgery
    /// differs.
    ///
    /// # Errors
    /// [`CookieError`].
    pub(crate) fn open(&self, bytes: &[u8], now: Instant) -> Result<Cookie, CookieError> {
        let malformed = CookieError::Malformed { given: bytes.len() };
        let Some((signed, mac)) = bytes.split_last_chunk::<MAC>().filter(|_| bytes.len() <= Self::MAX) else {
            return Err(malformed);
        };
        let Some((&generation, fields)) = signed.split_first() else {
            return Err(malformed);
        };
        let key = match self.generation.wrapping_sub(generation) {
            0 => &self.current,
            1 => &self.previous,
            _ => return Err(CookieError::Forged),
        };
        key.clone().chain_update(signed).verify_slice(mac).map_err(|_| CookieError::Forged)?;
        let cookie = Cookie::parse(fields).ok_or(malformed)?;
        let by = now.since(cookie.created).saturating_sub(cookie.lifespan);
        if by.is_zero() { Ok(cookie) } else { Err(CookieError::Stale { by, cookie: Box::new(cookie) }) }
    }

    /// Draws new secrets where the old ones have served their time.
    fn rotate(&mut self, now: Instant) {
        let age = now - *self.since.get_or_insert(now);
        if age < Self::ROTATION {
            return;
        }
        self.previous = core::mem::replace(&mut self.current, secret(&mut self.rng));
        self.generation = self.generation.wrapping_add(1);
        if age >= 2 * Self::ROTATION {
            // What was current has been out of use for a whole rotation already.
            self.previous = secret(&mut self.rng);
        }
        self.since = Some(now);
    }
}

/// Leaves the secrets out.
impl core::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CookieJar").field("generation", &self.generation).finish_non_exhaustive()
    }
}

fn secret(rng: &mut Rng) -> Hmac<Sha256> {
    // A key of exactly one block needs neither hashing nor filling up (RFC 2104 §2).
    let mut key = [0; 64];
    rng.fill(&mut key);
    Hmac::new(&key.into())
}

impl Cookie {
    fn emit(&self, out: &mut Vec<u8>) {
        let w = &mut Writer::new(out);
        w.u64(self.created.as_nanos());
        w.u64(u64::try_from(self.lifespan.as_nanos()).unwrap_or(u64::MAX));
        for field in [self.local_tag, self.peer_tag, self.local_initial_tsn, self.peer_initial_tsn, self.peer_a_rwnd] {
            w.u32(field);
        }
        for field in [self.outbound_streams, self.inbound_streams, self.local_port, self.peer_port] {
            w.u16(field);
        }
        emit_route(w, self.route);
        w.u32(self.local_tie_tag);
        w.u32(self.peer_tie_tag);
        emit_parameters(w, |w| self.local_offer.emit(w));
        emit_parameters(w, |w| self.peer_offer.emit(w));
        emit_parameters(w, |w| self.peer_addresses.emit(w));
        if self.is_for_keys() {
            w.bytes(&self.bound);
        }
    }

    const fn is_for_keys(&self) -> bool {
        self.local_offer.encrypts() && self.peer_offer.encrypts()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader::new(bytes);
        let cookie = Self::read(&mut r).ok()??;
        r.is_empty().then_some(cookie)
    }

    /// The fields as [`emit`](Self::emit) writes them; the inner `None` is an offer or an address that is none.
    fn read(r: &mut Reader<'_>) -> Result<Option<Self>, Truncated> {
        let (created, lifespan) = (Instant::from_nanos(r.u64()?), Duration::from_nanos(r.u64()?));
        let (local_tag, peer_tag) = (r.u32()?, r.u32()?);
        let (local_initial_tsn, peer_initial_tsn) = (r.u32()?, r.u32()?);
        let peer_a_rwnd = r.u32()?;
        let (outbound_streams, inbound_streams) = (r.u16()?, r.u16()?);
        let (local_port, peer_port) = (r.u16()?, r.u16()?);
        let Some(route) = read_route(r)? else { return Ok(None) };
        let (local_tie_tag, peer_tie_tag) = (r.u32()?, r.u32()?);
        let (Ok(local_offer), Ok(peer_offer)) = (Offer::parse(read_parameters(r)?), Offer::parse(read_parameters(r)?))
        else {
            return Ok(None);
        };
        let peer_addresses = Addresses::parse(read_parameters(r)?);
        let mut cookie = Self {
            created,
            lifespan,
            local_tag,
            peer_tag,
            local_initial_tsn,
            peer_initial_tsn,
            peer_a_rwnd,
            outbound_streams,
            inbound_streams,
            local_port,
            peer_port,
            route,
            local_tie_tag,
            peer_tie_tag,
            local_offer,
            peer_offer,
            peer_addresses,
            bound: [0; 16],
        };
        if cookie.is_for_keys() {
            cookie.bound = r.array::<16>()?;
        }
        Ok(Some(cookie))
    }
}

/// Most bytes of a route: socket, port, family, and address, flow and scope of IPv6.
const ROUTE_MAX: usize = 2 + 2 + 1 + 16 + 4 + 4;

fn emit_route(w: &mut Writer<'_>, route: Route) {
    w.u16(route.socket.0);
    w.u16(route.remote.port());
    match route.remote {
        SocketAddr::V4(v4) => {
            w.u8(4);
            w.bytes(&v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            w.u8(6);
            w.bytes(&v6.ip().octets());
            w.u32(v6.flowinfo());
            w.u32(v6.scope_id());
        }
    }
}

fn read_route(r: &mut Reader<'_>) -> Result<Option<Route>, Truncated> {
    let (socket, port) = (SocketId(r.u16()?), r.u16()?);
    let remote = match r.u8()? {
        4 => SocketAddrV4::new(Ipv4Addr::from(r.array::<4>()?), port).into(),
        6 => SocketAddrV6::new(Ipv6Addr::from(r.array::<16>()?), port, r.u32()?, r.u32()?).into(),
        _ => return Ok(None),
    };
    Ok(Some(Route { socket, remote }))
}

/// Appends the parameters that stood in the handshake, their length in front.
fn emit_parameters(w: &mut Writer<'_>, emit: impl FnOnce(&mut Writer<'_>)) {
    let at = w.position();
    w.u16(0);
    emit(w);
    // At most `CookieJar::MAX`, so it fits.
    let length = w.position() - at - 2;
    w.patch_u16(at, length as u16);
}

fn read_parameters<'a>(r: &mut Reader<'a>) -> Result<Parameters<'a>, Truncated> {
    let length = usize::from(r.u16()?);
    Ok(Parameters::new(r.take(length)?))
}

#[cfg(test)]
mod tests;
