use core::fmt;

/// The input ended before the field did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncated {
    /// Bytes that the field needs.
    pub needed: usize,
    /// Bytes that were left.
    pub left: usize,
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes needed, {} left", self.needed, self.left)
    }
}

impl core::error::Error for Truncated {}

/// Reads big-endian fields off the front of a byte slice; cannot panic.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(Truncated { needed: n, left: self.0.len() })?;
        self.0 = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, tail) = self.0.split_first_chunk().ok_or(Truncated { needed: N, left: self.0.len() })?;
        self.0 = tail;
        Ok(*head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(u8::from_be_bytes)
    }

    /// The next 16 bits.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        self.array().map(u64::from_be_bytes)
    }

    /// Everything that is left, without consuming it.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// How many bytes are left.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends big-endian fields to a buffer that the caller owns and reuses.
#[derive(Debug)]
pub struct Writer<'a>(&'a mut Vec<u8>);

impl<'a> Writer<'a> {
    /// A writer that appends to `buf`.
    pub const fn new(buf: &'a mut Vec<u8>) -> Self {
        Self(buf)
    }

    /// Appends a byte.
    pub fn u8(&mut self, v: u8) {
        self.0.push(v);
    }

    /// Appends 16 bits.
    pub fn u16(&mut self, v: u16) {
        self.0.extend_from_slice(&v.to_be_bytes());
    }

    /// Appends 32 bits.
    pub fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_be_bytes());
    }

    /// Appends 64 bits.
    pub fn u64(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_be_bytes());
    }

    /// Appends `bytes` as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends `n` zero bytes.
    pub fn zeros(&mut self, n: usize) {
        self.0.resize(self.0.len() + n, 0);
    }

    /// Offset of the next byte from the start of the buffer.
    pub fn position(&self) -> usize {
        self.0.len()
    }

    /// Overwrites the 16 bits at `position`, which were written before.
    pub fn patch_u16(&mut self, position: usize, v: u16) {
        self.0[position..position + 2].copy_from_slice(&v.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_more() {
        let mut buf = vec![9];
        let mut w = Writer::new(&mut buf);
        w.u8(1);
        w.u16(2);
        w.u32(3);
        w.u64(4);
        w.zeros(1);
        w.patch_u16(2, 0x0102);
        let mut r = Reader::new(&buf[1..]);
        assert_eq!((r.u8(), r.u16(), r.u32(), r.u64()), (Ok(1), Ok(0x0102), Ok(3), Ok(4)));
        assert_eq!(r.u16(), Err(Truncated { needed: 2, left: 1 }));
        assert_eq!(r.take(1), Ok(&[0][..]));
        assert!(r.is_empty());
    }
}
