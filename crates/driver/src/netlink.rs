//! Questions to the kernel's tables of interfaces, routes and rules (rtnetlink(7)).

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;

/// `NLM_F_REQUEST | NLM_F_DUMP` of `linux/netlink.h`: all of a table.
const DUMP: u16 = 0x1 | 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Longer than any part of an answer: the kernel makes them 32 KiB at most.
const PART: usize = 1 << 16;

/// Asks for all of a table by messages of `kind`, which begin with `fixed` zeros, and hands the body of each answer
/// to `take`.
///
/// # Errors
/// The kernel's.
pub(crate) fn dump(kind: u16, fixed: usize, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    let mut request = Vec::with_capacity(HEADER + fixed);
    request.extend_from_slice(&((HEADER + fixed) as u32).to_ne_bytes());
    request.extend_from_slice(&kind.to_ne_bytes());
    request.extend_from_slice(&DUMP.to_ne_bytes());
    // Sequence number, and the kernel's port.
    request.resize(HEADER + fixed, 0);
    send(&socket, &request, SendFlags::empty())?;
    let mut part = vec![0; PART];
    loop {
        let (read, len) = match recv(&socket, &mut part[..], RecvFlags::empty()) {
            Ok(received) => received,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut rest = &part[..read.min(len)];
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ => take(body),
            }
            rest = after;
        }
    }
}

/// Kind and body of the first message, and what comes after it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let len = number(bytes, 0)? as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER..len)?;
    Some((kind, body, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

/// The attributes behind the first `fixed` bytes of a body: kinds and values.
pub(crate) fn attributes(body: &[u8], fixed: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body.get(fixed..).unwrap_or_default();
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        // Without the bits NLA_F_NESTED and NLA_F_NET_BYTEORDER.
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?) & 0x3fff;
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The number of 32 bits at `place`.
pub(crate) fn number(bytes: &[u8], place: usize) -> Option<u32> {
    bytes.get(place..)?.first_chunk().map(|it| u32::from_ne_bytes(*it))
}

/// A text that ends with a zero.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_no_message_and_no_attribute() {
        let bytes = [&20_u32.to_ne_bytes()[..], &16_u16.to_ne_bytes(), &[0; 10], b"abcd"].concat();
        assert_eq!(message(&bytes), Some((16, &b"abcd"[..], &[][..])));
        assert_eq!(message(&bytes[..19]), None);
        let attribute = [&7_u16.to_ne_bytes()[..], &3_u16.to_ne_bytes(), b"lo\0\0"].concat();
        assert_eq!(
            attributes(&attribute, 0).map(|(kind, it)| (kind, text(it))).collect::<Vec<_>>(),
            [(3, "lo".into())]
        );
        assert_eq!(attributes(&attribute[..6], 0).count(), 0);
        assert_eq!(attributes(&attribute, 9).count(), 0);
    }
}
