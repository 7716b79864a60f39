//! Decoders of erasure codes: any sequence of sources and repair symbols, in any order, repeated, out of range, lying.
//!
//! Nothing may panic or hold more than the limits say; what came or was found is not found again;
//! and as long as nobody lied, what is found is what was sent.

use braidcast_core::Rng;
use braidcast_fec::raptorq::{self, Repair};
use braidcast_fec::{Coefficients, Combination, DecoderLimits, LinearDecoder, PREFIX, Stats};
use arbitrary::{Result, Unstructured};
use std::collections::BTreeSet;

/// Packets per input at most.
const PACKETS: usize = 300;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input);
}

/// The source symbol of this number.
fn symbol(id: u64) -> Vec<u8> {
    let mut rng = Rng::from_seed(id);
    let mut bytes = vec![0; rng.below(60) as usize];
    rng.fill(&mut bytes);
    bytes
}

enum Under {
    Linear(LinearDecoder),
    RaptorQ(raptorq::Decoder),
}

impl Under {
    fn on_source(&mut self, id: u64, data: &[u8]) {
        match self {
            Self::Linear(it) => it.on_source(id, data),
            Self::RaptorQ(it) => it.on_source(id, data),
        }
    }

    fn on_repair(&mut self, combination: &Combination, data: &[u8]) {
        let _ = match self {
            Self::Linear(it) => it.on_repair(combination, data),
            Self::RaptorQ(it) => it.on_repair(&block(combination), data),
        };
    }

    fn poll_recovered(&mut self, data: &mut Vec<u8>) -> Option<u64> {
        match self {
            Self::Linear(it) => it.poll_recovered(data),
            Self::RaptorQ(it) => it.poll_recovered(data),
        }
    }

    fn stats(&self) -> Stats {
        match self {
            Self::Linear(it) => it.stats(),
            Self::RaptorQ(it) => it.stats(),
        }
    }

    /// The true repair symbol; `None` if there is none, or it would take too long for a fuzzer.
    fn encode(&self, combination: &Combination) -> Option<Vec<u8>> {
        combination.first.checked_add(u64::from(combination.count))?;
        if combination.count > 100 {
            return None;
        }
        let sources: Vec<Vec<u8>> = (combination.first..combination.end()).map(symbol).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        match self {
            Self::Linear(_) => combination.encode(&sources, &mut Vec::new(), &mut out).ok()?,
            Self::RaptorQ(_) => block(combination).encode(&sources, &mut out).ok()?,
        }
        Some(out)
    }
}

/// The repair symbol of RaptorQ with the same numbers.
fn block(combination: &Combination) -> Repair {
    Repair { first: combination.first, count: combination.count, key: combination.key }
}

struct World {
    under: Under,
    limits: DecoderLimits,
    /// Numbers are near this one: the newest that was sent.
    newest: u64,
    /// Something was not the truth: what is found proves nothing any more.
    lied: bool,
    /// What came or was found, and has not been left behind before.
    there: BTreeSet<u64>,
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let settings: u8 = input.arbitrary()?;
    let limits = DecoderLimits {
        window: 1 + usize::from(settings >> 2 & 15) * 5,
        repairs: 1 + usize::from(settings >> 6) * 6,
        symbol: 64,
    };
    let first = if settings & 2 == 0 { 1000 } else { u64::MAX - 40 };
    let under = match settings & 1 {
        0 => Under::Linear(LinearDecoder::new(limits, first)),
        _ => Under::RaptorQ(raptorq::Decoder::new(limits, first)),
    };
    let mut world = World { under, limits, newest: first, lied: false, there: BTreeSet::new() };
    for _ in 0..PACKETS {
        if input.is_empty() {
            break;
        }
        world.step(input)?;
        world.check();
    }
    Ok(())
}

impl World {
    /// A number near the newest.
    fn near(&self, input: &mut Unstructured<'_>) -> Result<u64> {
        let delta: i8 = input.arbitrary()?;
        Ok(if delta == i8::MIN { input.arbitrary()? } else { self.newest.saturating_add_signed(i64::from(delta)) })
    }

    fn step(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        match input.arbitrary::<u8>()? % 16 {
            // The next one comes, or is lost.
            0..=4 => {
                self.source(self.newest, &symbol(self.newest));
                self.newest = self.newest.saturating_add(1);
            }
            5 | 6 => self.newest = self.newest.saturating_add(1),
            7 => {
                let id = self.near(input)?;
                self.source(id, &symbol(id));
            }
            8..=12 => {
                let combination = self.combination(input)?;
                if let Some(data) = self.under.encode(&combination) {
                    self.under.on_repair(&combination, &data);
                }
            }
            13 => {
                let (combination, len) = (self.combination(input)?, usize::from(input.arbitrary::<u8>()?));
                let data = input.bytes(len.min(input.len()))?;
                self.lied = true;
                self.under.on_repair(&combination, data);
            }
            14 => {
                let (id, len) = (self.near(input)?, usize::from(input.arbitrary::<u8>()?));
                let data = input.bytes(len.min(input.len()))?;
                self.lied = true;
                self.source(id, data);
            }
            _ => {
                let (what, id) = (input.arbitrary::<u8>()? % 3, self.near(input)?);
                if let Under::Linear(decoder) = &mut self.under {
                    match what {
                        0 => decoder.settle(id),
                        1 => {
                            decoder.evict();
                        }
                        _ => decoder.forget_below(id),
                    }
                }
            }
        }
        Ok(())
    }

    fn combination(&self, input: &mut Unstructured<'_>) -> Result<Combination> {
        let coefficients = match input.arbitrary::<u8>()? % 8 {
            0..=3 => Coefficients::Cauchy,
            _ => Coefficients::Random,
        };
        let count = u16::from(input.arbitrary::<u8>()?);
        let count = if count > 250 { input.arbitrary()? } else { count % 32 };
        let key = if count > 200 { input.arbitrary()? } else { u16::from(input.arbitrary::<u8>()? % 12) };
        Ok(Combination { coefficients, first: self.near(input)?, count, key })
    }

    fn source(&mut self, id: u64, data: &[u8]) {
        self.under.on_source(id, data);
        if data.len() <= self.limits.symbol {
            self.there.insert(id);
        }
    }

    fn check(&mut self) {
        let lied = self.lied;
        let mut data = Vec::new();
        while let Some(id) = self.under.poll_recovered(&mut data) {
            assert!(self.there.insert(id), "{id} was there already");
            assert!(data.len() <= self.limits.symbol + PREFIX, "{} bytes", data.len());
            assert!(lied || data == symbol(id), "{id} is not what was sent");
        }
        let stats = self.under.stats();
        assert!(stats.unusable + stats.given_up <= stats.repairs);
        assert!(lied || stats.inconsistent == 0);
        if let Under::Linear(decoder) = &self.under {
            assert!(decoder.waiting() <= self.limits.repairs);
            let most = (2 * self.limits.window + self.limits.repairs) * (self.limits.symbol + PREFIX);
            assert!(decoder.held() <= most, "{} bytes are held", decoder.held());
        }
    }
}
