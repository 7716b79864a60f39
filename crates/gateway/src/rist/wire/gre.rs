//! GRE over UDP as RIST's main profile has it (TR-06-2 §5).

use crate::srt::KeyLength;
use braidcast_core::{Reader, Truncated, Writer};

/// What is carried (TR-06-2 §5.3).
const KEEP_ALIVE: u16 = 0x88b5;
const REDUCED: u16 = 0x88b6;
const LOGIN: u16 = 0x888e;
const VSF: u16 = 0xcce0;
/// Bits of the first byte: a key, a number.
const KEY: u8 = 0x20;
const NUMBER: u8 = 0x10;
/// A bit of the second byte, since version 1: the key has 256 bits.
const LONG: u8 = 0x40;

/// The header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// RIST's version of it, 0 to 7; 0, 1 and 2 are in use.
    pub version: u8,
    /// What it carries.
    protocol: u16,
    /// What the key that encrypts it was derived with.
    pub nonce: Option<u32>,
    /// The key has 256 bits, if the version is above 0.
    long: bool,
    /// Number of the packet, which encryption needs.
    pub number: Option<u32>,
}

/// What a packet is, once it is decrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// RTP or RTCP, with its virtual ports.
    Media {
        /// Where it comes from and goes to.
        ports: (u16, u16),
        /// What would be in a UDP datagram.
        payload: &'a [u8],
    },
    /// The other end is there; what it says of its next nonce and its buffers is not read.
    KeepAlive,
    /// The other end wants a name and a password (EAP).
    Login,
    /// Anything else.
    Other,
}

impl Header {
    /// Reads a header and what is behind it; `None` if it is not RIST's.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        Self::read(bytes).ok().flatten()
    }

    fn read(bytes: &[u8]) -> Result<Option<(Self, &[u8])>, Truncated> {
        let mut r = Reader::new(bytes);
        let (flags, second, protocol) = (r.u8()?, r.u8()?, r.u16()?);
        let nonce = if flags & KEY != 0 { Some(r.u32()?) } else { None };
        let number = if flags & NUMBER != 0 { Some(r.u32()?) } else { None };
        let header = Self { version: second >> 3 & 7, protocol, nonce, long: second & LONG != 0, number };
        Ok((flags & !(KEY | NUMBER) == 0).then_some((header, r.rest())))
    }

    /// Of a packet with media.
    pub const fn of_media(version: u8, key: Option<(u32, KeyLength)>, number: u32) -> Self {
        let protocol = if version >= 2 { VSF } else { REDUCED };
        let (nonce, long, number) = match key {
            Some((nonce, length)) => (Some(nonce), length.bytes() == 32, Some(number)),
            None => (None, false, None),
        };
        Self { version, protocol, nonce, long, number }
    }

    /// Returns `true` if it may carry media; what is in some packets is encrypted too.
    pub const fn may_be_media(&self) -> bool {
        matches!(self.protocol, REDUCED | VSF)
    }

    /// Length of the key, where `otherwise` is agreed on for what does not say it.
    pub const fn key_length(&self, otherwise: KeyLength) -> KeyLength {
        match (self.version, self.long) {
            (0, _) => otherwise,
            (_, true) => KeyLength::Aes256,
            (_, false) => KeyLength::Aes128,
        }
    }

    /// The block that counting begins with: the number, in front since version 1.
    pub(crate) fn counter(&self) -> [u8; 16] {
        let mut block = [0; 16];
        let at = if self.version == 0 { 12 } else { 0 };
        block[at..at + 4].copy_from_slice(&self.number.unwrap_or(0).to_be_bytes());
        block
    }

    /// Writes the header behind what is in `buf`.
    pub fn write(&self, buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        let flag = |is_there, flag| if is_there { flag } else { 0 };
        w.u8(flag(self.nonce.is_some(), KEY) | flag(self.number.is_some(), NUMBER));
        w.u8((self.version & 7) << 3 | flag(self.long && self.version > 0, LONG));
        w.u16(self.protocol);
        self.nonce.into_iter().chain(self.number).for_each(|field| w.u32(field));
    }

    /// Writes what stands between the header and media, which is encrypted with it.
    pub fn write_ports(&self, ports: (u16, u16), buf: &mut Vec<u8>) {
        let mut w = Writer::new(buf);
        if self.protocol == VSF {
            w.u32(0);
        }
        w.u16(ports.0);
        w.u16(ports.1);
    }

    /// What is in `body`, which stood behind this header and is decrypted.
    pub fn content<'a>(&self, body: &'a [u8]) -> Content<'a> {
        self.read_content(body).unwrap_or(Content::Other)
    }

    fn read_content<'a>(&self, body: &'a [u8]) -> Result<Content<'a>, Truncated> {
        let mut r = Reader::new(body);
        let kind = match self.protocol {
            VSF if r.u16()? != 0 => return Ok(Content::Other),
            VSF => match r.u16()? {
                0 => REDUCED,
                // It is there, its next nonce, its buffers (librist): nothing else of these is heeded.
                0x8000..=0x8002 => KEEP_ALIVE,
                _ => return Ok(Content::Other),
            },
            protocol => protocol,
        };
        Ok(match kind {
            REDUCED => Content::Media { ports: (r.u16()?, r.u16()?), payload: r.rest() },
            KEEP_ALIVE => Content::KeepAlive,
            LOGIN => Content::Login,
            _ => Content::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_read_as_librist_means_them() {
        // `ristsender` 0.2.7: plain, and with keys of 128 and 256 bits.
        let plain = [0, 0, 0x88, 0xb6, 0x80, 0, 0x07, 0xb1, 0x80, 0xc8];
        let (header, body) = Header::parse(&plain).unwrap();
        assert_eq!(header, Header::of_media(0, None, 0));
        assert_eq!(header.content(body), Content::Media { ports: (0x8000, 1969), payload: &[0x80, 0xc8] });
        for (second, length) in [(0x08, KeyLength::Aes128), (0x48, KeyLength::Aes256)] {
            let keyed = [0x30, second, 0x88, 0xb6, 0x08, 0x7f, 0x52, 0xc0, 0, 0, 0, 7];
            let (header, rest) = Header::parse(&keyed).unwrap();
            assert_eq!((header, rest.len()), (Header::of_media(1, Some((0x087f_52c0, length)), 7), 0));
            assert_eq!((header.key_length(KeyLength::Aes192), header.counter()[3]), (length, 7));
            let mut again = Vec::new();
            header.write(&mut again);
            assert_eq!(again, keyed);
        }
        assert_eq!(Header::parse(&[0x80, 33, 0, 0, 0, 0, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(version in 0_u8..3, key in any::<Option<u32>>(), number: u32, ports: (u16, u16)) {
            let header = Header::of_media(version, key.map(|nonce| (nonce, KeyLength::Aes256)), number);
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            header.write_ports(ports, &mut bytes);
            bytes.push(9);
            let (read, body) = Header::parse(&bytes).unwrap();
            prop_assert_eq!(read.content(body), Content::Media { ports, payload: &[9] });
            prop_assert_eq!((read.version, read.nonce), (version, key));
            for cut in 0..bytes.len() - 1 {
                let read = Header::parse(&bytes[..cut]).map(|(header, body)| header.content(body));
                let is_media = matches!(read, Some(Content::Media { payload: [_, ..], .. }));
                prop_assert!(!is_media);
            }
        }
    }
}
