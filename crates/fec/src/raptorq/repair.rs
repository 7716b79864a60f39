use crate::symbol::PREFIX;
use raptorq::{ObjectTransmissionInformation, SourceBlockEncoder};

/// Sources of a block at most (RFC 6330 §5.1.2, K'_max).
pub const MAX_SOURCES: usize = 56_403;

/// Which repair symbol of which block. It goes with the repair symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Repair {
    /// The first source symbol of the block.
    pub first: u64,
    /// How many sources the block has.
    pub count: u16,
    /// Which of its repair symbols, from 0.
    pub key: u16,
}

/// There is no such block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a block has 1 to {MAX_SOURCES} sources, none longer than {} bytes", u16::MAX as usize - PREFIX)]
pub struct NoBlock;

impl Repair {
    /// The symbol after the last one of the block.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.count as u64)
    }

    /// The same, if numbers go that far.
    pub(crate) fn checked_end(&self) -> Option<u64> {
        self.first.checked_add(u64::from(self.count))
    }

    /// Makes the repair symbol of the source symbols `sources`, all of the block in order, into `out`.
    ///
    /// # Errors
    /// If a block cannot have this many symbols, or one of this length.
    ///
    /// # Panics
    /// If there is not one source for each of the block.
    pub fn encode(&self, sources: &[&[u8]], out: &mut Vec<u8>) -> Result<(), NoBlock> {
        assert_eq!(sources.len(), usize::from(self.count), "a source for each of the block");
        out.clear();
        let longest = sources.iter().map(|source| source.len()).max().unwrap_or(0);
        let symbol = u16::try_from(PREFIX + longest).map_err(|_| NoBlock)?;
        if sources.is_empty() || sources.len() > MAX_SOURCES {
            return Err(NoBlock);
        }
        let mut block = Vec::with_capacity(sources.len() * usize::from(symbol));
        for source in sources {
            let end = block.len() + usize::from(symbol);
            block.extend_from_slice(&(source.len() as u16).to_be_bytes());
            block.extend_from_slice(source);
            block.resize(end, 0);
        }
        let encoder = SourceBlockEncoder::new(0, &geometry(sources.len(), symbol), &block);
        for packet in encoder.repair_packets(u32::from(self.key), 1) {
            out.extend_from_slice(packet.data());
        }
        Ok(())
    }
}

/// One block, whole in memory, its symbols not cut further (RFC 6330 §4.3: Z = N = Al = 1).
pub(super) fn geometry(count: usize, symbol: u16) -> ObjectTransmissionInformation {
    ObjectTransmissionInformation::new(count as u64 * u64::from(symbol), symbol, 1, 1, 1)
}
