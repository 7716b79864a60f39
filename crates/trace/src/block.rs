//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian.

/// `shb_userappl`: the program that wrote the file.
pub(crate) const SHB_USERAPPL: u16 = 4;
/// `if_name`.
pub(crate) const IF_NAME: u16 = 2;
/// `if_tsresol`: the negated power of ten of a timestamp's unit.
pub(crate) const IF_TSRESOL: u16 = 9;
/// `opt_comment`.
pub(crate) const COMMENT: u16 = 1;
/// `epb_flags`: direction in the lowest two bits.
pub(crate) const EPB_FLAGS: u16 = 2;

const END_OF_OPTIONS: u16 = 0;

/// Builds one block after another in the same storage.
#[derive(Debug, Default)]
pub(crate) struct Block(Vec<u8>);

impl Block {
    /// Starts a block of type `kind`.
    pub(crate) fn begin(&mut self, kind: u32) -> &mut Self {
        self.0.clear();
        self.u32(kind).u32(0) // the length is known at the end
    }

    pub(crate) fn u16(&mut self, v: u16) -> &mut Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    pub(crate) fn u32(&mut self, v: u32) -> &mut Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    /// Appends `bytes`, padded to four.
    pub(crate) fn padded(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an option; a value longer than the format can say is cut.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code).u16(value.len() as u16).padded(value)
    }

    /// Ends the options and the block: its bytes.
    pub(crate) fn end(&mut self) -> &[u8] {
        self.u16(END_OF_OPTIONS).u16(0);
        let len = self.0.len() as u32 + 4;
        self.0[4..8].copy_from_slice(&len.to_le_bytes());
        self.u32(len);
        &self.0
    }
}
