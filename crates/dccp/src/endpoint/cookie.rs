//! The Init Cookie: what a server would have to remember between Response and Ack, kept by the
//! client (RFC 4340 §8.1.4).

use crate::seq::Seq;
use crate::wire::ServiceCode;
use braidcast_core::{Instant, Reader, Rng, Route, Writer};
use core::time::Duration;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::net::IpAddr;

/// What a connection is made of, beside its addresses and ports, which the packet that brings the
/// cookie back must have too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cookie {
    /// When the Response left.
    pub(super) created: Instant,
    /// What the client asked for.
    pub(super) service: ServiceCode,
    /// Number of the Response.
    pub(super) iss: Seq,
    /// Number of the Request.
    pub(super) isr: Seq,
    /// The Change options of the Request.
    pub(super) changes: Vec<u8>,
}

/// The ends that a cookie is for: it is worth nothing elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) route: Route,
    pub(super) local_port: u16,
    pub(super) remote_port: u16,
}

/// Bytes of the truncated HMAC-SHA-256 (RFC 2104 §5).
const MAC: usize = 16;
/// Bytes of Change options that a cookie holds.
pub(super) const MAX_CHANGES: usize = 400;

/// Makes cookies and knows its own again.
///
/// ```text
/// | created 64 | service 32 | iss 64 | isr 64 | changes … | HMAC over both and the ends 128 |
/// ```
pub(super) struct CookieJar {
    secret: Hmac<Sha256>,
    numbers: Hmac<Sha256>,
    life: Duration,
}

impl CookieJar {
    /// A jar whose secrets are drawn from `rng`, which nobody else should draw from.
    pub(super) fn new(mut rng: Rng, life: Duration) -> Self {
        let mut secret = || {
            let mut key = [0; 64];
            rng.fill(&mut key);
            Hmac::new(&key.into())
        };
        Self { secret: secret(), numbers: secret(), life }
    }

    /// The cookie as bytes.
    pub(super) fn seal(&self, cookie: &Cookie, ends: Ends) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        w.u64(cookie.created.as_nanos());
        w.u32(cookie.service.0);
        w.u64(cookie.iss.get());
        w.u64(cookie.isr.get());
        w.bytes(&cookie.changes);
        let mac = with_ends(self.secret.clone(), ends).chain_update(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&mac[..MAC]);
        bytes
    }

    /// The cookie in `bytes`, if it was made here for these ends and is fresh.
    pub(super) fn open(&self, bytes: &[u8], ends: Ends, now: Instant) -> Option<Cookie> {
        let (fields, mac) = bytes.split_last_chunk::<MAC>()?;
        with_ends(self.secret.clone(), ends).chain_update(fields).verify_truncated_left(mac).ok()?;
        let mut r = Reader::new(fields);
        let created = Instant::from_nanos(r.u64().ok()?);
        let service = ServiceCode(r.u32().ok()?);
        let (iss, isr) = (Seq::new(r.u64().ok()?), Seq::new(r.u64().ok()?));
        let fresh = now.since(created) <= self.life;
        fresh.then(|| Cookie { created, service, iss, isr, changes: r.rest().to_vec() })
    }

    /// The number of the Response to the Request `request`: a secret function of the ends added to
    /// it (RFC 4340 §7.2, RFC 1948), so that Responses to repeated Requests have the numbers that
    /// they would have had if we had remembered the first.
    pub(super) fn response_number(&self, request: Seq, ends: Ends) -> Seq {
        let mac = with_ends(self.numbers.clone(), ends).finalize().into_bytes();
        let offset = mac.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        request.plus(offset)
    }
}

/// Leaves the secrets out.
impl core::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CookieJar").field("life", &self.life).finish_non_exhaustive()
    }
}

fn with_ends(mac: Hmac<Sha256>, ends: Ends) -> Hmac<Sha256> {
    let address = match ends.route.remote.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    mac.chain_update(address.octets())
        .chain_update(ends.route.remote.port().to_be_bytes())
        .chain_update(ends.route.socket.0.to_be_bytes())
        .chain_update(ends.local_port.to_be_bytes())
        .chain_update(ends.remote_port.to_be_bytes())
}
