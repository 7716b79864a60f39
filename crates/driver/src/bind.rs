use crate::watch::Interfaces;
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket as RawSocket, Type};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What carries the datagrams of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Carrier {
    /// UDP, for example SCTP over UDP (RFC 6951).
    #[default]
    Udp,
    /// IP itself, with this protocol number: 132 is SCTP, 33 DCCP. All ports are 0 then, since
    /// ports are the protocol's own business. It needs the right `CAP_NET_RAW`, and gets a copy of
    /// every packet of the protocol that comes to its address. While the socket is open the kernel
    /// sends no ICMP "protocol unreachable" for them; if it speaks the protocol itself (its `sctp`
    /// or `dccp` module is loaded), it answers too, and resets what is not its own.
    Ip(u8),
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp => f.write_str("UDP"),
            Self::Ip(protocol) => write!(f, "IP protocol {protocol}"),
        }
    }
}

/// Where to open a socket. The default is UDP, any address, any port, any interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Bind {
    /// What carries the datagrams.
    pub carrier: Carrier,
    /// The local address. `None`: any address, IPv4 and IPv6 in one socket; with [`Carrier::Ip`],
    /// whose sockets have one family, any address of IPv4.
    pub addr: Option<IpAddr>,
    /// The local UDP port. 0: the kernel picks one. Not used with [`Carrier::Ip`].
    pub port: u16,
    /// The interface, for example `wlan0`, that everything is sent and received through, whatever
    /// the routing table says.
    pub device: Option<String>,
    /// Sockets of other drivers have the same address and port.
    pub(crate) shared: bool,
}

impl Bind {
    /// A UDP socket on one local address.
    pub fn to_addr(addr: SocketAddr) -> Self {
        Self { addr: Some(addr.ip()), port: addr.port(), ..Self::default() }
    }

    /// A UDP socket on one interface and local port.
    pub fn to_device(name: &str, port: u16) -> Self {
        Self { port, device: Some(name.to_owned()), ..Self::default() }
    }

    /// A socket for the IP protocol `protocol` on one local address, or on all of its family if it
    /// is unspecified.
    pub fn to_ip(addr: IpAddr, protocol: u8) -> Self {
        Self { carrier: Carrier::Ip(protocol), addr: Some(addr), ..Self::default() }
    }

    /// This socket with a `change`: `Bind::default().with(|it| it.port = 9000)`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.carrier)?;
        match (self.carrier, self.addr) {
            (Carrier::Udp, Some(addr)) => write!(f, "{}", SocketAddr::new(addr, self.port))?,
            (Carrier::Udp, None) => write!(f, "port {}", self.port)?,
            (Carrier::Ip(_), Some(addr)) => write!(f, "on {addr}")?,
            (Carrier::Ip(_), None) => write!(f, "on any IPv4 address")?,
        }
        self.device.as_ref().map_or(Ok(()), |device| write!(f, " on interface {device}"))
    }
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The machine has no such interface.
    #[error("there is no interface {device:?}; this machine has {available}")]
    NoSuchInterface {
        /// The name asked for.
        device: String,
        /// What there is instead.
        available: Interfaces,
    },
    /// No interface of this machine has the address.
    #[error("{addr} is not an address of this machine; it has {available}")]
    NoSuchAddress {
        /// The address asked for.
        addr: IpAddr,
        /// What there is instead.
        available: Interfaces,
    },
    /// Another socket has the port.
    #[error("{bind} is in use by another program; pick another port, or 0 for any")]
    InUse {
        /// What was asked for.
        bind: Bind,
    },
    /// Binding to the interface needs a right that we lack (Linux before 5.7), and it has no
    /// address to bind instead.
    #[error("not allowed to bind to interface {device}, and it has no address to bind to instead")]
    NoAddressOnInterface {
        /// The name asked for.
        device: String,
    },
    /// Native IP needs a right that we lack.
    #[error(
        "{carrier} needs the right to open raw sockets (CAP_NET_RAW): run as root, or once \"setcap cap_net_raw+ep PROGRAM\", \
         or use UDP encapsulation, which needs no rights"
    )]
    NotAllowed {
        /// What was asked for.
        carrier: Carrier,
    },
    /// 65,536 sockets are open, as many as there are [`SocketId`](braidcast_core::SocketId)s.
    #[error("this driver has 65536 sockets open; close some")]
    TooMany,
    /// The operating system refused for another reason.
    #[error("cannot open {bind}: {source}")]
    Os {
        /// What was asked for.
        bind: Bind,
        /// What the operating system said.
        source: io::Error,
    },
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        let kind = match &error {
            BindError::NoSuchInterface { .. } => io::ErrorKind::NotFound,
            BindError::NoSuchAddress { .. } | BindError::NoAddressOnInterface { .. } => io::ErrorKind::AddrNotAvailable,
            BindError::InUse { .. } => io::ErrorKind::AddrInUse,
            BindError::NotAllowed { .. } => io::ErrorKind::PermissionDenied,
            BindError::TooMany => io::ErrorKind::Other,
            BindError::Os { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Opens the socket, non-blocking. The text is a warning for the user: what was done in place of
/// what was asked for.
pub(crate) fn open(bind: &Bind) -> Result<(RawSocket, Option<String>), BindError> {
    let os = |source| BindError::Os { bind: bind.clone(), source };
    let mut addr = bind.addr;
    let mut warning = None;
    let socket = loop {
        let (socket, local) = create(bind, addr).map_err(|error| match bind.carrier {
            Carrier::Ip(_) if error.kind() == io::ErrorKind::PermissionDenied => {
                BindError::NotAllowed { carrier: bind.carrier }
            }
            _ => os(error),
        })?;
        if let Some(device) = &bind.device
            && warning.is_none()
            && let Err(error) = socket.bind_device(Some(device.as_bytes()))
        {
            match Errno::from_io_error(&error) {
                // INVAL, NAMETOOLONG: longer than any interface's name can be.
                Some(Errno::NODEV | Errno::INVAL | Errno::NAMETOOLONG) => {
                    let available = Interfaces::list().map_err(os)?;
                    return Err(BindError::NoSuchInterface { device: device.clone(), available });
                }
                Some(Errno::PERM) => {
                    addr = Some(address_of(device, addr).map_err(os)??);
                    warning = Some(format!(
                        "binding to interface {device} needs Linux 5.7 or root: bound to its address instead, so the \
                         routing table decides which way packets leave"
                    ));
                    continue;
                }
                _ => return Err(os(error)),
            }
        }
        if bind.shared {
            socket.set_reuse_port(true).map_err(os)?;
        }
        socket.bind(&SockAddr::from(local)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => BindError::InUse { bind: bind.clone() },
            io::ErrorKind::AddrNotAvailable => match Interfaces::list() {
                Ok(available) => BindError::NoSuchAddress { addr: local.ip(), available },
                Err(error) => os(error),
            },
            _ => os(error),
        })?;
        break socket;
    };
    if bind.carrier != Carrier::Udp {
        drain(&socket);
    }
    Ok((socket, warning))
}

/// Drops what a raw socket has heard before it was bound: all of its protocol, for any address.
fn drain(socket: &RawSocket) {
    /// More than the kernel's default buffer holds, so that a flood cannot keep us here.
    const MOST: usize = 4096;
    let mut first_byte = [MaybeUninit::uninit()];
    for _ in 0..MOST {
        if socket.recv(&mut first_byte).is_err() {
            return;
        }
    }
}

/// A socket of the right family for `addr`, and the address to bind it to.
fn create(bind: &Bind, addr: Option<IpAddr>) -> io::Result<(RawSocket, SocketAddr)> {
    let create = |domain| match bind.carrier {
        Carrier::Udp => RawSocket::new(domain, Type::DGRAM, Some(Protocol::UDP)),
        Carrier::Ip(protocol) => RawSocket::new(domain, Type::RAW, Some(Protocol::from(i32::from(protocol)))),
    };
    let any_v4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let (socket, ip) = match addr {
        Some(ip @ IpAddr::V4(_)) => (create(Domain::IPV4)?, ip),
        Some(ip @ IpAddr::V6(_)) => {
            let socket = create(Domain::IPV6)?;
            if bind.carrier == Carrier::Udp {
                // [::] means both families here as it does in `None`; any other address is of one
                // family.
                socket.set_only_v6(!ip.is_unspecified())?;
            }
            (socket, ip)
        }
        None if bind.carrier != Carrier::Udp => (create(Domain::IPV4)?, any_v4),
        None => match create(Domain::IPV6) {
            Ok(socket) => {
                socket.set_only_v6(false)?;
                (socket, IpAddr::V6(Ipv6Addr::UNSPECIFIED))
            }
            // A kernel without IPv6.
            Err(_) => (create(Domain::IPV4)?, any_v4),
        },
    };
    socket.set_nonblocking(true)?;
    Ok((socket, SocketAddr::new(ip, bind.port)))
}

/// The address to bind to in place of the interface `device`: the one asked for, or else the
/// interface's first.
fn address_of(device: &str, asked: Option<IpAddr>) -> io::Result<Result<IpAddr, BindError>> {
    let interfaces = Interfaces::list()?;
    let first = interfaces.addrs(device).and_then(|addrs| addrs.first().copied());
    Ok(asked.or(first).ok_or_else(|| BindError::NoAddressOnInterface { device: device.to_owned() }))
}
