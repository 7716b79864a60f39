use braidcast_core::Instant;
use braidcast_media::voice::{Heard, JitterBuffer, Playout};
use braidcast_sim::traffic::{Kind, Stamp};
use std::collections::BTreeMap;

/// Listens to what arrives, each stream through a jitter buffer of its own.
#[derive(Debug)]
pub struct JitterBuffers {
    playout: Playout,
    streams: BTreeMap<(u16, Kind), JitterBuffer>,
}

impl JitterBuffers {
    /// Nothing heard yet.
    pub const fn new(playout: Playout) -> Self {
        Self { playout, streams: BTreeMap::new() }
    }

    /// A payload arrives. What only marks a silence is not heard.
    pub(super) fn arrive(&mut self, now: Instant, payload: &[u8]) {
        let Some(Stamp { flow, kind, sequence, sent }) = Stamp::read(payload).filter(|it| it.kind != Kind::Silence)
        else {
            return;
        };
        let stream = self.streams.entry((flow, kind)).or_insert_with(|| JitterBuffer::new(self.playout));
        stream.arrive(sequence.into(), sent, now);
    }

    /// The number of each call or other stream, and what was heard of it.
    pub fn streams(&self) -> impl Iterator<Item = (u16, Heard)> + '_ {
        self.streams.iter().map(|((flow, _), stream)| (*flow, stream.clone().finish()))
    }

    /// What was heard of each stream.
    pub fn heard(&self) -> impl Iterator<Item = Heard> + '_ {
        self.streams().map(|(_, heard)| heard)
    }
}
