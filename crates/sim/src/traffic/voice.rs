use super::{Emission, Kind};
use braidcast_core::{Rng, named};
use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

/// Mean length of a talk spurt (ITU-T P.59, table 1).
const TALK: f64 = 1.004;

/// Mean length of a pause (ITU-T P.59, table 1).
const PAUSE: f64 = 1.587;

/// Payload that describes a pause when it begins: an Annex B frame of G.729 (RFC 3551 §4.5.6); the others get as much.
const SILENCE_BYTES: usize = 2;

/// What a trunk packet has before its calls, and before each of them (RFC 5456 §8.4, without
/// timestamps in the entries).
const TRUNK_BYTES: usize = 8;
const TRUNK_ENTRY_BYTES: usize = 4;

/// Coders of speech, at a constant rate while there is any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// 64 kbit/s (RFC 3551 §4.5.14).
    G711,
    /// 8 kbit/s, frames of 10 bytes (RFC 3551 §4.5.6).
    G729,
    /// 11 kbit/s, frames of 28 bytes. The rate of Speex varies (THESIS table 4.1); this narrowband mode agrees with the
    /// 25 kbit/s that THESIS table 4.3 measures with headers.
    Speex,
}

impl Codec {
    /// Length and bytes of a frame (THESIS table 4.1).
    pub const fn frame(self) -> (Duration, usize) {
        match self {
            Self::G711 => (Duration::from_millis(10), 80),
            Self::G729 => (Duration::from_millis(10), 10),
            Self::Speex => (Duration::from_millis(20), 28),
        }
    }
}

named! {
    /// Every codec, by its name.
    Codec, "codec" {
        "g711" => G711,
        "g729" => G729,
        "speex" => Speex,
    }
}

/// One or more telephone calls, one direction of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Voice {
    /// The codec.
    pub codec: Codec,
    /// Speech in a packet; 20 ms if nothing else is said (THESIS §4.3, RFC 3551 table 1). A
    /// multiple of the codec's frame.
    pub packet: Duration,
    /// `true` if pauses are left out (discontinuous transmission). Talk spurts and pauses are
    /// exponentially distributed with the means of ITU-T P.59, 1.004 s and 1.587 s; each pause
    /// begins with one small packet.
    pub dtx: bool,
    /// Calls, at least 1. Their packets fall at random moments of the packet time.
    pub calls: u16,
    /// `true` if the calls share one packet each packet time, as IAX2 trunks do.
    pub trunk: bool,
}

impl Voice {
    /// One call, 20 ms in a packet, without DTX.
    pub const fn call(codec: Codec) -> Self {
        Self { codec, packet: Duration::from_millis(20), dtx: false, calls: 1, trunk: false }
    }

    /// Bytes of speech in a packet of one call.
    pub const fn payload(&self) -> usize {
        let (length, bytes) = self.codec.frame();
        (self.packet.as_nanos() / length.as_nanos()) as usize * bytes
    }
}

#[derive(Clone, Copy, Debug)]
struct Call {
    /// When this talk spurt ends.
    talks_until: Duration,
    frames: u64,
}

#[derive(Debug)]
pub(super) struct Calls {
    voice: Voice,
    rng: Rng,
    calls: Vec<Call>,
    /// The next packet of each call.
    due: BinaryHeap<Reverse<(Duration, u16)>>,
    trunks: u64,
}

impl Calls {
    pub(super) fn new(voice: Voice, mut rng: Rng) -> Self {
        let (mut calls, mut due) = (Vec::new(), BinaryHeap::new());
        for call in 0..voice.calls {
            let phase = if voice.trunk { Duration::ZERO } else { voice.packet.mul_f64(rng.f64()) };
            let silent = voice.dtx && rng.chance(PAUSE / (TALK + PAUSE));
            let first = phase + if silent { pause(&voice, &mut rng) } else { Duration::ZERO };
            calls.push(Call { talks_until: spurt_end(&voice, &mut rng, first), frames: 0 });
            due.push(Reverse((first, call)));
        }
        Self { voice, rng, calls, due, trunks: 0 }
    }

    /// The packet that call number `flow` sends at `at`.
    fn packet(&mut self, at: Duration, flow: u16) -> Emission {
        let call = &mut self.calls[usize::from(flow)];
        let frame = call.frames;
        call.frames += 1;
        let talks = at < call.talks_until;
        let next = if talks { at + self.voice.packet } else { at + pause(&self.voice, &mut self.rng) };
        if !talks {
            call.talks_until = spurt_end(&self.voice, &mut self.rng, next);
        }
        self.due.push(Reverse((next, flow)));
        let (kind, bytes) = if talks { (Kind::Audio, self.voice.payload()) } else { (Kind::Silence, SILENCE_BYTES) };
        Emission { at, bytes, kind, flow, frame }
    }
}

/// A pause in whole packet times, at least one, so that a call keeps its beat.
fn pause(voice: &Voice, rng: &mut Rng) -> Duration {
    let beats = (PAUSE * rng.exponential() / voice.packet.as_secs_f64()).round().clamp(1.0, 1e6);
    voice.packet.mul_f64(beats)
}

fn spurt_end(voice: &Voice, rng: &mut Rng, start: Duration) -> Duration {
    if voice.dtx { start + Duration::from_secs_f64(TALK * rng.exponential()) } else { Duration::MAX }
}

impl Iterator for Calls {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let Reverse((at, flow)) = self.due.pop()?;
        let first = self.packet(at, flow);
        if !self.voice.trunk {
            return Some(first);
        }
        let mut bytes = TRUNK_BYTES + TRUNK_ENTRY_BYTES + first.bytes;
        while let Some(&Reverse((_, flow))) = self.due.peek().filter(|Reverse((next, _))| *next == at) {
            self.due.pop();
            bytes += TRUNK_ENTRY_BYTES + self.packet(at, flow).bytes;
        }
        let frame = self.trunks;
        self.trunks += 1;
        Some(Emission { at, bytes, kind: Kind::Audio, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(voice: Voice, seconds: u64) -> Vec<Emission> {
        Calls::new(voice, Rng::from_seed(5)).take_while(|e| e.at < Duration::from_secs(seconds)).collect()
    }

    fn rate(packets: &[Emission], seconds: u64) -> f64 {
        packets.iter().map(|e| e.bytes as f64 * 8.0).sum::<f64>() / seconds as f64
    }

    #[test]
    fn codecs_have_their_rates_and_packets() {
        for (codec, bits, bytes) in [(Codec::G711, 64e3, 160), (Codec::G729, 8e3, 20), (Codec::Speex, 11.2e3, 28)] {
            let packets = run(Voice::call(codec), 60);
            assert_eq!(rate(&packets, 60), bits, "{codec:?}");
            assert!(packets.iter().all(|e| e.bytes == bytes));
            assert!(packets.windows(2).all(|w| w[1].at - w[0].at == Duration::from_millis(20)));
        }
    }

    #[test]
    fn with_dtx_a_call_is_active_for_39_percent_of_the_time() {
        let packets = run(Voice { dtx: true, ..Voice::call(Codec::G729) }, 20_000);
        let audio = packets.iter().filter(|e| e.kind == Kind::Audio).count() as f64;
        let share = audio / (20_000.0 * 50.0);
        assert!((share - TALK / (TALK + PAUSE)).abs() < 0.01, "{share}");
        // One small packet begins each pause.
        let pauses = packets.iter().filter(|e| e.kind == Kind::Silence).count() as f64;
        assert!((pauses * (TALK + PAUSE) / 20_000.0 - 1.0).abs() < 0.05, "{pauses}");
        assert!(packets.windows(2).all(|w| w[1].kind == Kind::Audio || w[0].kind == Kind::Audio));
    }

    #[test]
    fn calls_in_one_flow_have_phases_of_their_own() {
        let voice = Voice { calls: 12, ..Voice::call(Codec::G711) };
        let packets = run(voice, 60);
        assert_eq!(rate(&packets, 60), 12.0 * 64e3);
        let mut first: Vec<_> = packets.iter().filter(|e| e.frame == 0).map(|e| e.at).collect();
        first.dedup();
        assert_eq!(first.len(), 12);
        assert!(packets.windows(2).all(|w| w[0].at <= w[1].at));
    }

    #[test]
    fn a_trunk_carries_all_who_talk_in_one_packet() {
        let voice = Voice { calls: 12, trunk: true, ..Voice::call(Codec::G711) };
        let packets = run(voice, 10);
        assert_eq!(packets.len(), 500);
        assert!(packets.iter().all(|e| e.bytes == 8 + 12 * 164));
        let dtx = run(Voice { dtx: true, ..voice }, 1000);
        let mean = dtx.iter().map(|e| e.bytes as f64).sum::<f64>() / 50_000.0;
        assert!((0.3..0.5).contains(&(mean / (8.0 + 12.0 * 164.0))), "{mean}");
    }
}
