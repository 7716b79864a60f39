//! What makes a stream the same stream, and bytes the same bytes.

use braidcast_core::Rng;
use core::fmt;
use sha2::{Digest as _, Sha256};

/// Names a stream: random, or for a file what both ends can find again after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity(pub [u8; 16]);

impl Identity {
    /// One that there has never been.
    pub fn random(rng: &mut Rng) -> Self {
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        Self(bytes)
    }

    /// That of a file: the same as long as its name, its size and its first bytes are.
    pub fn of_file(name: &str, size: u64, first: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"braidcast file\0");
        hash.update(size.to_be_bytes());
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update(first);
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        Self(bytes)
    }
}

/// In hexadecimal.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// SHA-256 of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(pub [u8; 32]);

/// Bytes as they go by: how many, and their hash so far.
#[derive(Clone, Debug, Default)]
pub struct Content {
    hash: Sha256,
    len: u64,
}

impl Content {
    /// Adds the bytes that come next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// How many bytes there were.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns `true` if there were none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The hash of all of them.
    pub fn digest(&self) -> Digest {
        Digest(self.hash.clone().finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_size_or_beginning_is_another_file() {
        let file = Identity::of_file("a.bin", 100, b"head");
        assert_eq!(file, Identity::of_file("a.bin", 100, b"head"));
        assert_eq!(file.to_string().len(), 32);
        for other in [
            Identity::of_file("b.bin", 100, b"head"),
            Identity::of_file("a.bin", 101, b"head"),
            Identity::of_file("a.bin", 100, b"heap"),
        ] {
            assert_ne!(file, other);
        }
    }

    #[test]
    fn bytes_hash_the_same_in_any_pieces() {
        let (mut one, mut two) = (Content::default(), Content::default());
        one.update(b"abc");
        two.update(b"a");
        two.update(b"bc");
        assert_eq!((one.digest(), one.len()), (two.digest(), 3));
        // FIPS 180-2, appendix B.1.
        assert_eq!(one.digest().0[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
