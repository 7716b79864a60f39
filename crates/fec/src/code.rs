//! Linear codes: when a repair symbol is due, and which source symbols it covers. Each is a file
//! here and an entry in `codes!`.

mod block;
mod convolutional;
mod tetrys;

pub(crate) use block::Block;

use crate::Combination;
use convolutional::Convolutional;
use core::fmt;
use core::str::FromStr;
use tetrys::Tetrys;

/// What codes differ in, as far as a sender has to know how long their redundancy takes (RFC 8406:
/// block and sliding-window coding).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Redundancy comes when a block is full.
    Block {
        /// Symbols of a block.
        n: u16,
        /// Sources among them.
        k: u16,
    },
    /// Redundancy comes all along, over the last sources.
    SlidingWindow,
}

/// Makes [`Code`] of its entries `NAME TYPE { PARAMETERS }`. The type, of a file here, is the
/// code's encoder, and says what each method of `Code` asks of it; `n` and `k` are among the
/// parameters.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:literal $code:ident { $($(#[$field_doc:meta])* $field:ident),* })*) => {
        /// A code with its parameters, as ECMT §III has them: of `n` symbols `k` are sources. Its
        /// repair symbols are sums of multiples of the sources, any of which may be left out; a
        /// [`LinearDecoder`](crate::LinearDecoder) takes them.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Code {
            $($(#[$doc])* $code { $($(#[$field_doc])* $field: u16),* },)*
        }

        impl Code {
            const EXAMPLES: &[&str] = &[$($code::EXAMPLE),*];

            /// An encoder at the start of its numbers. The code must be one that [`check`](Self::check) lets pass.
            pub fn encoder(self) -> Box<dyn Encoder> {
                match self {
                    $(Self::$code { $($field),* } => Box::new($code::new($($field),*)),)*
                }
            }

            /// Returns `true` if its redundancy comes block by block or all along.
            pub const fn family(self) -> Family {
                match self {
                    $(Self::$code { $($field),* } => $code::family($($field),*),)*
                }
            }

            /// Source symbols that a repair covers at most.
            pub const fn window(self) -> u16 {
                match self {
                    $(Self::$code { $($field),* } => $code::window($($field),*),)*
                }
            }

            /// `n` and `k`.
            const fn rate(self) -> (u16, u16) {
                match self {
                    $(Self::$code { n, k, .. } => (n, k),)*
                }
            }

            /// What the code itself wants of its numbers.
            fn check_own(self) -> Result<(), String> {
                match self {
                    $(Self::$code { $($field),* } => $code::check($($field),*),)*
                }
            }

            /// Returns the code of this name with these parameters, if it has this number of them.
            fn named(name: &str, numbers: &[u16]) -> Option<Self> {
                match (name, numbers) {
                    $(($name, &[$($field),*]) => Some(Self::$code { $($field),* }),)*
                    _ => None,
                }
            }

            /// Its name and parameters.
            fn parts(self) -> (&'static str, Vec<u16>) {
                match self {
                    $(Self::$code { $($field),* } => ($name, vec![$($field),*]),)*
                }
            }
        }
    };
}

codes! {
    /// After each `k` sources, n − k repairs of just those.
    "block" Block {
        /// Symbols of a block.
        n,
        /// Sources among them.
        k
    }
    /// After each `k` sources, n − k repairs of the last `m`.
    "convolutional" Convolutional {
        /// Symbols of a round.
        n,
        /// Sources among them.
        k,
        /// Sources that a repair covers.
        m
    }
    /// After each `k` sources, n − k repairs of all that are not acknowledged: an elastic window
    /// (RFC 9407), of `m` at most.
    "tetrys" Tetrys {
        /// Symbols of a round.
        n,
        /// Sources among them.
        k,
        /// Sources that a repair covers at most.
        m
    }
}

impl Code {
    /// Returns `true` if the numbers make a code.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(self) -> Result<(), String> {
        match self.rate() {
            (n, k) if 0 < k && k < n => self.check_own(),
            _ => Err("of n symbols k are sources, so 0 < k < n".to_owned()),
        }
    }

    /// Returns `true` if repairs cover the same as those of `other`, however many there are.
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
        let (name, numbers) = self.parts();
        for (i, number) in numbers.iter().enumerate() {
            let before = if i == 0 { name } else { "" };
            let mark = if i == 0 { ':' } else { ',' };
            write!(f, "{before}{mark}{number}")?;
        }
        Ok(())
    }
}

impl FromStr for Code {
    type Err = String;

    /// `block:10,9`, `convolutional:10,9,20`, `tetrys:10,9,43`.
    fn from_str(text: &str) -> Result<Self, String> {
        let hint = || format!("write for example {}", Self::EXAMPLES.join(" or "));
        let (name, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Result<Vec<u16>, _> = numbers.split(',').map(str::parse).collect();
        let code = numbers.ok().and_then(|numbers| Self::named(name, &numbers));
        let code = code.ok_or_else(|| format!("'{text}' is not a code; {}", hint()))?;
        code.check().map_err(|why| format!("'{text}': {why}; {}", hint()))?;
        Ok(code)
    }
}

/// What every code with a window wants of it.
fn check_window(m: u16) -> Result<(), String> {
    if m == 0 { Err("a repair has to cover something, so 0 < m".to_owned()) } else { Ok(()) }
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

    /// A repair symbol out of turn, for those who have their own rule for when one is due. `None`
    /// if nothing is left to cover, and of blocks, whose repairs cover whole blocks only.
    fn repair(&mut self) -> Option<Combination> {
        None
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

    /// One source more. Returns `true` if the round is full.
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
        for text in ["block:10,9", "convolutional:10,9,20", "tetrys:10,9,43"] {
            assert_eq!(text.parse::<Code>().unwrap().to_string(), text);
        }
        for wrong in [
            "block",
            "block:9,10",
            "block:300,200",
            "tetrys:10,9",
            "tetrys:10,9,0",
            "xor:2,1",
            "block:1,0",
            "raptorq:11,10",
        ] {
            assert!(wrong.parse::<Code>().unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
