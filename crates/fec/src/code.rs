//! Codes: when a repair symbol is due, and which source symbols it covers.

mod block;
mod convolutional;
mod tetrys;

use crate::{Coefficients, Combination, Decoder, DecoderLimits, LinearDecoder, RaptorqDecoder};
use core::fmt;
use core::str::FromStr;

/// A code with its parameters, as ECMT §III has them: of `n` symbols `k` are sources.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// After each `k` sources, n − k repairs of just those.
    Block {
        /// Symbols of a block.
        n: u16,
        /// Sources among them.
        k: u16,
    },
    /// After each `k` sources, n − k repairs of the last `m`.
    Convolutional {
        /// Symbols of a round.
        n: u16,
        /// Sources among them.
        k: u16,
        /// Sources that a repair covers.
        m: u16,
    },
    /// After each `k` sources, n − k repairs of all that are not acknowledged: an elastic window (RFC 9407), of `m` at most.
    Tetrys {
        /// Symbols of a round.
        n: u16,
        /// Sources among them.
        k: u16,
        /// Sources that a repair covers at most.
        m: u16,
    },
    /// As `Block`, by RFC 6330: for blocks longer than 256 symbols.
    RaptorQ {
        /// Symbols of a block.
        n: u16,
        /// Sources among them.
        k: u16,
    },
}

/// Decides at the sender; the data stays where it is.
///
/// Source symbols are numbered without gaps. What a repair symbol covers is encoded by [`Combination::encode`].
pub trait Encoder: fmt::Debug + Send {
    /// The source symbol `id` was sent for the first time.
    fn on_source(&mut self, id: u64);

    /// No symbol below `id` needs protection any more.
    fn on_acknowledged(&mut self, below: u64);

    /// The repair symbol to be sent now, if one is due.
    fn poll_repair(&mut self) -> Option<Combination>;

    /// A repair symbol out of turn, for those who have their own rule for when one is due. `None` if nothing is left to cover, and
    /// of blocks, whose repairs cover whole blocks only.
    fn repair(&mut self) -> Option<Combination> {
        None
    }
}

impl Code {
    /// Whether the numbers make a code.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(self) -> Result<(), String> {
        let (n, k) = self.rate();
        if k == 0 || n <= k {
            return Err("of n symbols k are sources, so 0 < k < n".to_owned());
        }
        match self {
            Self::Block { n, .. } if usize::from(n) > Combination::CAUCHY_SIZE => {
                Err(format!("a block has no more than {} symbols", Combination::CAUCHY_SIZE))
            }
            Self::Convolutional { m: 0, .. } | Self::Tetrys { m: 0, .. } => {
                Err("a repair has to cover something, so 0 < m".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// An encoder at the start of its numbers. The code must be one that [`check`](Self::check) lets pass.
    pub fn encoder(self) -> Box<dyn Encoder> {
        match self {
            Self::Block { n, k } => Box::new(block::Block::new(n, k, Coefficients::Cauchy)),
            Self::RaptorQ { n, k } => Box::new(block::Block::new(n, k, Coefficients::RaptorQ)),
            Self::Convolutional { n, k, m } => Box::new(convolutional::Convolutional::new(n, k, m)),
            Self::Tetrys { n, k, m } => Box::new(tetrys::Tetrys::new(n, k, m)),
        }
    }

    /// Whether repair symbols are sums of multiples of the sources: then a [`LinearDecoder`] takes them, and any of the sources may
    /// be left out.
    pub const fn is_linear(self) -> bool {
        !matches!(self, Self::RaptorQ { .. })
    }

    /// A decoder for it; the first source symbol has the number `first`.
    pub fn decoder(self, limits: DecoderLimits, first: u64) -> Box<dyn Decoder> {
        if self.is_linear() {
            Box::new(LinearDecoder::new(limits, first))
        } else {
            Box::new(RaptorqDecoder::new(limits, first))
        }
    }

    /// `n` and `k`.
    const fn rate(self) -> (u16, u16) {
        match self {
            Self::Block { n, k }
            | Self::Convolutional { n, k, .. }
            | Self::Tetrys { n, k, .. }
            | Self::RaptorQ { n, k } => (n, k),
        }
    }

    /// Source symbols that a repair covers at most.
    pub const fn window(self) -> u16 {
        match self {
            Self::Block { k, .. } | Self::RaptorQ { k, .. } => k,
            Self::Convolutional { m, .. } | Self::Tetrys { m, .. } => m,
        }
    }

    /// Whether repairs cover the same as those of `other`, however many there are.
    pub fn is_like(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other) && self.window() == other.window()
    }

    /// Repair symbols in proportion to all.
    pub fn redundancy(self) -> f64 {
        let (n, k) = self.rate();
        f64::from(n - k) / f64::from(n)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { n, k } => write!(f, "block:{n},{k}"),
            Self::RaptorQ { n, k } => write!(f, "raptorq:{n},{k}"),
            Self::Convolutional { n, k, m } => write!(f, "convolutional:{n},{k},{m}"),
            Self::Tetrys { n, k, m } => write!(f, "tetrys:{n},{k},{m}"),
        }
    }
}

impl FromStr for Code {
    type Err = String;

    /// `block:10,9`, `convolutional:10,9,20`, `tetrys:10,9,43`, `raptorq:1100,1000`.
    fn from_str(text: &str) -> Result<Self, String> {
        const HINT: &str = "write for example block:10,9, convolutional:10,9,20, tetrys:10,9,43 or raptorq:1100,1000";
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Result<Vec<u16>, _> = numbers.split(',').map(str::parse).collect();
        let code = match (name, numbers.as_deref()) {
            ("block", Ok(&[n, k])) => Self::Block { n, k },
            ("raptorq", Ok(&[n, k])) => Self::RaptorQ { n, k },
            ("convolutional", Ok(&[n, k, m])) => Self::Convolutional { n, k, m },
            ("tetrys", Ok(&[n, k, m])) => Self::Tetrys { n, k, m },
            _ => return Err(format!("'{text}' is no code; {HINT}")),
        };
        code.check().map_err(|why| format!("'{text}': {why}; {HINT}"))?;
        Ok(code)
    }
}

/// Repairs that are due in rounds: after each `k` sources, n − k.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    n: u16,
    k: u16,
    sources: u16,
    due: u16,
}

impl Rounds {
    const fn new(n: u16, k: u16) -> Self {
        Self { n, k, sources: 0, due: 0 }
    }

    /// One source more; whether the round is full.
    fn on_source(&mut self) -> bool {
        self.sources += 1;
        let full = self.sources == self.k;
        if full {
            self.sources = 0;
            self.due = self.n - self.k;
        }
        full
    }

    /// Takes one that is due; which of the round it is, from 0.
    fn take(&mut self) -> Option<u16> {
        self.due = self.due.checked_sub(1)?;
        Some(self.n - self.k - 1 - self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the code covers after each source, and with sources below the second number acknowledged then.
    fn covers(code: &str, sources: &[(u64, u64)]) -> Vec<String> {
        let mut encoder = code.parse::<Code>().unwrap().encoder();
        let mut said = Vec::new();
        for &(id, below) in sources {
            encoder.on_source(id);
            encoder.on_acknowledged(below);
            while let Some(it) = encoder.poll_repair() {
                said.push(format!("{id}: {}..{}", it.first, it.end()));
            }
        }
        said
    }

    #[test]
    fn each_code_covers_what_it_should() {
        let sources: Vec<_> = (100..108).map(|id| (id, 0)).collect();
        assert_eq!(covers("block:5,3", &sources), ["102: 100..103", "102: 100..103", "105: 103..106", "105: 103..106"]);
        assert_eq!(
            covers("convolutional:3,2,5", &sources),
            ["101: 100..102", "103: 100..104", "105: 101..106", "107: 103..108"]
        );
        assert_eq!(
            covers("tetrys:3,2,5", &sources),
            ["101: 100..102", "103: 100..104", "105: 101..106", "107: 103..108"]
        );
        // The window shrinks by acknowledgements; when all is acknowledged there is nothing to repair.
        let acknowledged =
            [(100, 0), (101, 101), (102, 101), (103, 103), (104, 105), (105, 106), (106, 106), (107, 106)];
        assert_eq!(covers("tetrys:3,2,5", &acknowledged), ["101: 101..102", "103: 103..104", "107: 106..108"]);
        assert_eq!(covers("block:5,3", &acknowledged), ["102: 100..103", "102: 100..103"]);
    }

    #[test]
    fn codes_are_read_and_written() {
        for text in ["block:10,9", "convolutional:10,9,20", "tetrys:10,9,43", "raptorq:1100,1000"] {
            assert_eq!(text.parse::<Code>().unwrap().to_string(), text);
        }
        for wrong in ["block", "block:9,10", "block:300,200", "tetrys:10,9", "tetrys:10,9,0", "xor:2,1", "block:1,0"] {
            assert!(wrong.parse::<Code>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
