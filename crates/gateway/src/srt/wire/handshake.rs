use super::Malformed;
use braidcast_core::{Reader, Writer};
use core::ops::{BitOr, BitOrAssign};
use std::net::IpAddr;

/// What a listener that speaks version 5 says in place of the extension flags (§4.3.1.1).
pub const MAGIC: u16 = 0x4a17;
/// Extensions of one handshake that are looked at; five kinds are known.
const MAX_EXTENSIONS: usize = 16;
/// Longest stream identifier in bytes (§3.2.1.3).
const MAX_STREAM_ID: usize = 512;

/// What a handshake is for (§3.2.1, "Handshake Type").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeType {
    /// Asks for, or brings, a cookie.
    Induction,
    /// Asks for, or confirms, a connection.
    Conclusion,
    /// Two callers that call each other.
    WaveAHand,
    /// The answer to a conclusion between two callers.
    Agreement,
    /// No: the reason, 1000 and up (§4.3).
    Refusal(u32),
    /// Any other value.
    Other(u32),
}

impl HandshakeType {
    const fn of(value: u32) -> Self {
        match value {
            0 => Self::WaveAHand,
            1 => Self::Induction,
            0xffff_ffff => Self::Conclusion,
            0xffff_fffe => Self::Agreement,
            1000..=9999 => Self::Refusal(value),
            other => Self::Other(other),
        }
    }

    const fn value(self) -> u32 {
        match self {
            Self::WaveAHand => 0,
            Self::Induction => 1,
            Self::Conclusion => 0xffff_ffff,
            Self::Agreement => 0xffff_fffe,
            Self::Refusal(value) | Self::Other(value) => value,
        }
    }
}

/// The kind of an extension (§3.2.1, "Extension Type").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExtensionKind {
    /// 1: [`Hello`] of the caller.
    Request,
    /// 2: [`Hello`] of the listener.
    Response,
    /// 3: keys of the caller.
    KeyRequest,
    /// 4: the same keys, or why not.
    KeyResponse,
    /// 5: the stream that is meant.
    StreamId,
    /// 6: the congestion control, `live` or `file`.
    Congestion,
    /// 7: a packet filter.
    Filter,
    /// 8: one of several connections.
    Group,
    /// Any other number.
    Other(u16),
}

impl ExtensionKind {
    const ALL: [(Self, u16); 8] = [
        (Self::Request, 1),
        (Self::Response, 2),
        (Self::KeyRequest, 3),
        (Self::KeyResponse, 4),
        (Self::StreamId, 5),
        (Self::Congestion, 6),
        (Self::Filter, 7),
        (Self::Group, 8),
    ];

    fn of(value: u16) -> Self {
        Self::ALL.into_iter().find(|(_, number)| *number == value).map_or(Self::Other(value), |(kind, _)| kind)
    }

    fn value(self) -> u16 {
        match self {
            Self::Other(value) => value,
            kind => Self::ALL.into_iter().find(|(it, _)| *it == kind).map_or(0, |(_, number)| number),
        }
    }
}

/// An extension of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extension {
    /// What it is.
    pub kind: ExtensionKind,
    /// What it says, in whole words of four bytes.
    pub content: Vec<u8>,
}

impl Extension {
    /// An extension that holds text: its bytes stand in words of four, the last byte first
    /// (§3.2.1.3). Text of more than 512 bytes is cut.
    pub fn text(kind: ExtensionKind, text: &str) -> Self {
        let mut content = text.as_bytes()[..text.len().min(MAX_STREAM_ID)].to_vec();
        content.resize(content.len().next_multiple_of(4), 0);
        content.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        Self { kind, content }
    }

    /// The text that it holds, without the zeros behind it; what is no UTF-8 is replaced.
    pub fn to_text(&self) -> String {
        let mut bytes = self.content.clone();
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A handshake packet's body (§3.2.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handshake {
    /// 4 or 5.
    pub version: u32,
    /// Bytes of the key that is asked for, divided by 8; 0 says nothing of it.
    pub encryption: u16,
    /// [`MAGIC`], or which extensions follow.
    pub flags: u16,
    /// Sequence number of the first data packet.
    pub first_sequence: u32,
    /// Longest IP packet in bytes.
    pub mtu: u32,
    /// Packets that may be out.
    pub window: u32,
    /// What it is for.
    pub kind: HandshakeType,
    /// Socket of who sent it.
    pub socket: u32,
    /// What the listener wants to see again.
    pub cookie: u32,
    /// Address that it was sent to, as its sender sees it.
    pub address: [u8; 16],
    /// What comes behind it.
    pub extensions: Vec<Extension>,
}

impl Handshake {
    /// Reads the body of a handshake.
    ///
    /// Fails if a field is not all there, or an extension is longer than what follows.
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let version = r.u32()?;
        let (encryption, flags) = (r.u16()?, r.u16()?);
        let [first_sequence, mtu, window, kind, socket, cookie] =
            [r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?];
        let address = r.array()?;
        let mut extensions = Vec::new();
        while version == 5 && flags != MAGIC && r.len() >= 4 {
            let kind = ExtensionKind::of(r.u16()?);
            let len = usize::from(r.u16()?) * 4;
            if extensions.len() == MAX_EXTENSIONS {
                return Err(Malformed::Length("the list of extensions", body.len()));
            }
            extensions.push(Extension { kind, content: r.take(len)?.to_vec() });
        }
        let kind = HandshakeType::of(kind);
        let first_sequence = first_sequence & 0x7fff_ffff;
        Ok(Self { version, encryption, flags, first_sequence, mtu, window, kind, socket, cookie, address, extensions })
    }

    /// Appends the body to `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        w.u32(self.version);
        w.u16(self.encryption);
        w.u16(self.flags);
        w.u32(self.first_sequence);
        w.u32(self.mtu);
        w.u32(self.window);
        w.u32(self.kind.value());
        w.u32(self.socket);
        w.u32(self.cookie);
        w.bytes(&self.address);
        for Extension { kind, content } in &self.extensions {
            w.u16(kind.value());
            w.u16((content.len() / 4) as u16);
            w.bytes(content);
        }
    }

    /// The first extension of a kind.
    pub fn extension(&self, kind: ExtensionKind) -> Option<&Extension> {
        self.extensions.iter().find(|extension| extension.kind == kind)
    }

    /// How an address stands in a handshake: IPv4's in the first word. Each word is in the order of the machine that
    /// libsrt was first written on, and nobody looks at it.
    pub fn address_of(ip: IpAddr) -> [u8; 16] {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        bytes
    }
}

/// Flags of a [`Hello`] (§3.2.1.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HelloFlags(pub u32);

impl HelloFlags {
    /// It sends by timestamps.
    pub const TIMED_SENDING: Self = Self(1);
    /// It delivers by timestamps.
    pub const TIMED_DELIVERY: Self = Self(2);
    /// It knows field KK.
    pub const KEYS: Self = Self(4);
    /// It drops what is too late.
    pub const DROPS_LATE: Self = Self(8);
    /// It repeats NAKs.
    pub const REPEATS_NAKS: Self = Self(16);
    /// It marks what is repeated.
    pub const MARKS_REPEATS: Self = Self(32);
    /// It has a byte stream: no live mode.
    pub const STREAM: Self = Self(64);

    /// Returns `true` if all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for HelloFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for HelloFlags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// What both ends say of themselves (§3.2.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Version of the program: major, minor and patch in a byte each, 0x00010501 is 1.5.1.
    pub version: u32,
    /// What it can do.
    pub flags: HelloFlags,
    /// Its latency as a receiver in ms.
    pub receive_latency: u16,
    /// What it wants the other's latency as a receiver to be at least, in ms.
    pub send_latency: u16,
}

impl Hello {
    /// Reads the content of an extension.
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(content);
        let (version, flags) = (r.u32()?, HelloFlags(r.u32()?));
        Ok(Self { version, flags, receive_latency: r.u16()?, send_latency: r.u16()? })
    }

    /// The extension that says so.
    pub fn extension(&self, kind: ExtensionKind) -> Extension {
        let mut content = Vec::with_capacity(12);
        let mut w = Writer::new(&mut content);
        w.u32(self.version);
        w.u32(self.flags.0);
        w.u16(self.receive_latency);
        w.u16(self.send_latency);
        Extension { kind, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn conclusion() -> Handshake {
        Handshake {
            version: 5,
            encryption: 2,
            flags: 5,
            first_sequence: 77,
            mtu: 1500,
            window: 8192,
            kind: HandshakeType::Conclusion,
            socket: 9,
            cookie: 0xc00c_1e00,
            address: Handshake::address_of("127.0.0.1".parse().unwrap()),
            extensions: vec![
                Hello { version: 0x01_05_01, flags: HelloFlags(0xbf), receive_latency: 120, send_latency: 0 }
                    .extension(ExtensionKind::Request),
                Extension::text(ExtensionKind::StreamId, "#!::r=cam1,m=publish"),
            ],
        }
    }

    #[test]
    fn a_conclusion_comes_back_with_its_extensions() {
        let mut body = Vec::new();
        conclusion().write(&mut body);
        assert_eq!(body.len(), 48 + 4 + 12 + 4 + 20);
        // As libsrt writes them: the first four letters of the identifier, last one first.
        assert_eq!(&body[68..72], b"::!#");
        let read = Handshake::parse(&body).unwrap();
        assert_eq!(read, conclusion());
        assert_eq!(read.extension(ExtensionKind::StreamId).unwrap().to_text(), "#!::r=cam1,m=publish");
        let hello = Hello::parse(&read.extension(ExtensionKind::Request).unwrap().content).unwrap();
        assert_eq!((hello.receive_latency, hello.flags.has(HelloFlags::STREAM)), (120, false));
        for cut in 0..body.len() {
            // Behind a whole extension the body may end.
            assert_eq!(
                Handshake::parse(&body[..cut]).is_ok(),
                (48..52).contains(&cut) || (64..68).contains(&cut),
                "{cut}"
            );
        }
    }

    #[test]
    fn many_extensions_are_refused() {
        let mut many = conclusion();
        many.extensions = vec![Extension { kind: ExtensionKind::Other(99), content: Vec::new() }; 17];
        let mut body = Vec::new();
        many.write(&mut body);
        assert!(matches!(Handshake::parse(&body), Err(Malformed::Length("the list of extensions", _))));
    }

    proptest! {
        #[test]
        fn any_text_of_512_bytes_comes_back(text in "[^\0]{0,128}") {
            prop_assert_eq!(Extension::text(ExtensionKind::StreamId, &text).to_text(), text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(handshake) = Handshake::parse(&body) {
                let mut again = Vec::new();
                handshake.write(&mut again);
                prop_assert!(again.len() <= body.len());
            }
        }
    }
}
