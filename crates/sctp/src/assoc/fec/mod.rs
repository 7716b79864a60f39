//! Erasure codes inside the association (ECMT = THESIS ch. 8; decision 14): what is lost is made up
//! for without a retransmission.
//!
//! A symbol is a whole DATA or I-DATA chunk, by its TSN. `send` says when redundancy is due, over
//! what and over which path; `receive` decodes and hands what came back to where data chunks go;
//! `artx` holds fast retransmissions back meanwhile.

mod artx;
mod credit;
mod overtaken;
mod receive;
mod send;

use super::Open;
use crate::api::Options;
use crate::number::Tsn;
use crate::wire::chunk::{Data, IData, Redundancy};
use braidcast_core::PathId;
use braidcast_fec::{Code, Combination, DecoderLimits, Encoder, LinearDecoder};
use core::time::Duration;
use credit::Credit;
use overtaken::Overtaken;
use std::collections::VecDeque;

/// What an association keeps for its code, once both ends agreed on redundancy.
#[derive(Debug)]
pub(super) struct Fec {
    sender: Option<Sender>,
    /// Chunks that the range of random coefficients may have.
    range: u16,
    decoder: LinearDecoder,
    /// What redundancy seems to have made up for, and may be in flight still.
    overtaken: Overtaken,
    /// Solutions that the decoder did not believe, as far as they are counted.
    inconsistent: u64,
}

/// The sending half.
#[derive(Debug)]
struct Sender {
    code: Code,
    encoder: Box<dyn Encoder>,
    /// The TSN that the encoder hears of next, and the first of which it heard.
    next: Tsn,
    first: Tsn,
    /// What is owed, if redundancy is not due in the code's rounds.
    credit: Option<Credit>,
    /// Redundancy that is due, oldest first: which range it covers.
    due: VecDeque<Combination>,
    scratch: Scratch,
}

/// Buffers that are kept so that nothing is allocated for a packet.
#[derive(Debug, Default)]
struct Scratch {
    coefficients: Vec<u8>,
    covered: Vec<u8>,
    coded: Vec<u8>,
    /// Headers of chunks, one behind the other.
    heads: Vec<u8>,
}

impl Fec {
    /// Redundancy that waits for room at most; the oldest is dropped.
    const MAX_DUE: usize = 64;
    /// Redundancy that waits for data which may go at the same moment.
    const MAX_WAITING: usize = 16;
    /// What comes later than a window's worth of later chunks would be useless: twice
    /// the range, as paths differ.
    const LIMITS: DecoderLimits =
        DecoderLimits { window: 2 * Redundancy::MAX_RANGE as usize, repairs: 64, symbol: 9000 };

    /// Our first TSN is `local`, the peer's `peer`.
    ///
    /// What lies further back than two thirds of the peer's `buffer` is evicted there when
    /// redundancy over it comes, as data that waits for order needs room too: ranges are shorter
    /// than that.
    pub(super) fn new(options: &Options, interleaving: bool, local: Tsn, peer: Tsn, buffer: usize) -> Self {
        let kept = buffer * 2 / 3 / options.paths.base_mtu;
        let range = u16::try_from(kept).unwrap_or(u16::MAX).clamp(1, Redundancy::MAX_RANGE);
        let limits = DecoderLimits {
            symbol: options.paths.max_mtu.max(options.paths.base_mtu).max(Self::LIMITS.symbol),
            ..Self::LIMITS
        };
        let check = if interleaving {
            is_data_chunk::<{ IData::KIND }, { IData::HEADER }>
        } else {
            is_data_chunk::<{ Data::KIND }, { Data::HEADER }>
        };
        let decoder = LinearDecoder::with_check(limits, peer.get(), check);
        Self {
            sender: Sender::of(options.redundancy.fec, local),
            decoder,
            overtaken: Overtaken::default(),
            inconsistent: 0,
            range,
        }
    }

    /// Goes on with another code, or none, from the TSN `next` on.
    fn change(&mut self, code: Option<Code>, next: Tsn) {
        if self.sender.as_ref().map(|sender| sender.code) != code {
            self.sender = Sender::of(code, next);
        }
    }

    /// Bytes by which data chunks are cut shorter than packets would allow, so that redundancy over them fits.
    pub(super) fn reserve(&self) -> usize {
        self.sender.as_ref().map_or(0, |sender| Redundancy::reserve(sender.code))
    }
}

impl Sender {
    fn of(code: Option<Code>, first: Tsn) -> Option<Self> {
        let code = code?;
        let (due, scratch) = (VecDeque::new(), Scratch::default());
        Some(Self { code, encoder: code.encoder(), next: first, first, credit: None, due, scratch })
    }
}

impl Open {
    /// Returns `true` if redundancy is sent.
    pub(super) fn sends_redundancy(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.sender.is_some())
    }

    /// Another code, or none, over what is sent from now on. Whether redundancy was agreed on.
    pub(super) fn set_fec(&mut self, code: Option<Code>) -> bool {
        let next = self.ledger.next_tsn();
        if let Some(fec) = &mut self.fec {
            fec.change(code, next);
        }
        self.fec.is_some()
    }

    /// Redundancy by `code` as each path owes it, from now on; it leaves after `hold` at the
    /// latest. Whether it was agreed on.
    pub(super) fn set_fec_by_path(&mut self, code: Code, hold: Duration, owed: impl Fn(PathId) -> f64) -> bool {
        let (base, next) = (self.ledger.base(), self.ledger.next_tsn());
        let Some(fec) = &mut self.fec else { return false };
        let kept = fec.sender.take().filter(|sender| sender.credit.is_some() && sender.code.is_like(code));
        let renewed = || {
            // What is in flight already is covered too.
            let mut sender = Sender::of(Some(code), next)?;
            base.until(next).for_each(|tsn| sender.encoder.on_source(tsn.get()));
            Some(sender)
        };
        fec.sender = kept.or_else(renewed);
        if let Some(sender) = &mut fec.sender {
            sender.code = code;
            sender.credit.get_or_insert_default().hold = hold;
        }
        for path in self.paths.iter_mut() {
            path.owe_redundancy(owed(path.id()));
        }
        true
    }
}

/// The bits of the flags that belong to a symbol: T, U, B, E. I may differ from one transmission to the next.
const SYMBOL_FLAGS: u8 = 0b1_0111;

/// Returns `true` if `symbol` can be the data chunk with the unwrapped TSN `tsn`, of the type that was agreed on.
fn is_data_chunk<const KIND: u8, const HEADER: usize>(tsn: u64, symbol: &[u8]) -> bool {
    let Some((&[kind, flags, l0, l1, t0, t1, t2, t3], _)) = symbol.split_first_chunk() else { return false };
    kind == KIND
        && symbol.len() > HEADER
        && usize::from(u16::from_be_bytes([l0, l1])) == symbol.len()
        && u32::from_be_bytes([t0, t1, t2, t3]) == tsn as u32
        && flags & !SYMBOL_FLAGS == 0
}
