use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::fmt;
use std::io;
use std::os::fd::AsFd;

/// Why nothing gets through, as this machine's kernel knows it: by itself, or by an ICMP message.
///
/// ICMP can be forged by who knows the ports: it is for people to read, and ends nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// The other machine is there, and nobody listens on the port.
    Refused,
    /// No route leads there from here, or nobody has the address on the last link.
    NoRoute,
    /// A machine in between says that it cannot be reached.
    Unreachable,
    /// A rule of this machine forbids the packets.
    Forbidden,
}

impl Trouble {
    /// What a packet that could not be sent says; `None` if that is for other reasons.
    pub(crate) fn of_sending(error: Errno) -> Option<Self> {
        match error {
            Errno::CONNREFUSED => Some(Self::Refused),
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => Some(Self::NoRoute),
            Errno::PERM | Errno::ACCESS => Some(Self::Forbidden),
            _ => None,
        }
    }

    /// What an error on receiving says, which an ICMP message made.
    pub(crate) fn of_receiving(error: Errno) -> Option<Self> {
        match Self::of_sending(error) {
            Some(Self::NoRoute) => Some(Self::Unreachable),
            other => other,
        }
    }
}

/// The end of a sentence that begins with the address.
impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused: the other machine is there, and nobody listens on that port",
            Self::NoRoute => "this machine has no route there",
            Self::Unreachable => "the network says that it is unreachable",
            Self::Forbidden => "not permitted: a firewall of this machine refuses the packets",
        })
    }
}

/// Throws away the ICMP messages that wait at a socket: they count as received bytes, and their
/// error was reported.
pub(crate) fn drain(socket: impl AsFd) {
    /// More than one batch of packets can cause; the rest goes with the next error.
    const MOST: usize = 64;
    let mut first_byte = [0_u8];
    for _ in 0..MOST {
        match recv(&socket, &mut first_byte[..], RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The trouble in an error of the standard library.
pub(crate) fn errno(error: &io::Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_errors_have_causes() {
        assert_eq!(Trouble::of_sending(Errno::PERM), Some(Trouble::Forbidden));
        assert_eq!(Trouble::of_sending(Errno::NETUNREACH), Some(Trouble::NoRoute));
        assert_eq!(Trouble::of_receiving(Errno::HOSTUNREACH), Some(Trouble::Unreachable));
        assert_eq!(Trouble::of_receiving(Errno::CONNREFUSED), Some(Trouble::Refused));
        assert_eq!(Trouble::of_sending(Errno::NOBUFS), None);
    }
}
