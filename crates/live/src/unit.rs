use crate::Error;
use braidcast_media::ts::{Coding, ElementaryUnit, MuxUnit};
use std::time::Duration;

/// Units of the program's clock in a second (ISO/IEC 13818-1 §2.4.3.4).
const TICKS: u128 = 90_000;
/// Bytes of the longest access unit of video: what a message of the transport holds, less the packets' headers.
const LONGEST_VIDEO: usize = 1 << 21;
/// The same of audio and other: what a PES packet holds, less its header and what Opus has before its packets.
const LONGEST_OTHER: usize = 65_000;

/// An elementary stream: a camera's video, or a microphone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Track {
    /// Its PID in the transport stream that carries it.
    pub pid: u16,
    /// What it is coded as.
    pub coding: Coding,
}

/// A frame of video, or a packet of audio.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AccessUnit {
    /// What it is part of.
    pub track: Track,
    /// Its bytes, as [`Coding`] has them. The sender puts an access unit delimiter before video that has none.
    pub data: Vec<u8>,
    /// When it is to be shown, by the encoder's clock. From [`MediaReceiver`](crate::MediaReceiver):
    /// one second more than the sender said, and modulo 26.5 hours (33 bits at 90 kHz).
    pub pts: Duration,
    /// When it is to be decoded, if that is earlier.
    pub dts: Option<Duration>,
    /// A decoder can begin here. Always true of received audio.
    pub key: bool,
    /// The layer, 0 for the one that all others need. Frames of a layer need those of lower ones and
    /// none of higher ones: of too many frames the highest layers are discarded first.
    pub layer: u8,
    /// Nothing of it is missing, as far as the receiver can see.
    pub whole: bool,
}

impl AccessUnit {
    /// A unit of `track` that is shown at `pts`, and that others are needed for.
    #[must_use]
    pub fn new(track: Track, pts: Duration, data: impl Into<Vec<u8>>) -> Self {
        Self { track, data: data.into(), pts, dts: None, key: false, layer: 0, whole: true }
    }

    /// The same, where a decoder can begin.
    #[must_use]
    pub const fn key(self) -> Self {
        self.with_key(true)
    }

    /// The same; `key`: a decoder can begin here.
    #[must_use]
    pub const fn with_key(mut self, key: bool) -> Self {
        self.key = key;
        self
    }

    /// The same, decoded at `dts`.
    #[must_use]
    pub const fn decoded_at(mut self, dts: Duration) -> Self {
        self.dts = Some(dts);
        self
    }

    /// The same in this layer.
    #[must_use]
    pub const fn in_layer(mut self, layer: u8) -> Self {
        self.layer = layer;
        self
    }

    /// # Errors
    /// [`Error::Unit`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |what| Err(Error::Unit { track: self.track, what });
        let longest = if self.track.coding.is_video() { LONGEST_VIDEO } else { LONGEST_OTHER };
        if self.data.is_empty() {
            return refuse("it has no bytes");
        }
        if self.data.len() > longest {
            return refuse("it is too long: video has 2 MiB at most, anything else 65,000 bytes");
        }
        match self.track.coding {
            Coding::H264 | Coding::H265 if !begins_with_start_code(&self.data) => {
                refuse("it begins without a start code (00 00 00 01); lengths of MP4 have to become start codes")
            }
            Coding::Aac if !matches!(self.data[..], [0xff, 0xf0..=0xf1 | 0xf8..=0xf9, ..]) => {
                refuse("it begins without an ADTS header; have the encoder write ADTS")
            }
            _ => Ok(()),
        }
    }

    /// Its bytes with a delimiter, which H.264 and H.265 have to have in a transport stream (ISO/IEC
    /// 13818-1 §2.14.1, §2.17.1).
    pub(crate) fn delimited(&mut self) -> &[u8] {
        let (delimiter, is): (&[u8], fn(u8) -> bool) = match self.track.coding {
            Coding::H264 => (&[0, 0, 0, 1, 0x09, 0xf0], |first| first & 0x1f == 9),
            Coding::H265 => (&[0, 0, 0, 1, 0x46, 0x01, 0x50], |first| first >> 1 & 0x3f == 35),
            _ => return &self.data,
        };
        let first = self.data.iter().position(|byte| *byte == 1).and_then(|at| self.data.get(at + 1));
        if !first.is_some_and(|first| is(*first)) {
            self.data.splice(..0, delimiter.iter().copied());
        }
        &self.data
    }

    /// Presentation and decoding time on the program's clock, which is a second ahead of the encoder's, so
    /// that its references, which are earlier, have a time too.
    pub(crate) fn times(&self) -> (u64, u64) {
        let pts = ticks(self.pts);
        (pts, self.dts.map_or(pts, ticks).min(pts))
    }

    pub(crate) fn mux<'a>(bytes: &'a [u8], (pts, dts): (u64, u64), key: bool, layer: u8) -> MuxUnit<'a> {
        MuxUnit { bytes, pts, dts, key, layer: Some(layer) }
    }
}

impl From<ElementaryUnit> for AccessUnit {
    fn from(unit: ElementaryUnit) -> Self {
        let time = |ticks: u64| Duration::from_nanos((u128::from(ticks) * 1_000_000_000 / TICKS) as u64);
        Self {
            track: Track { pid: unit.pid, coding: unit.coding },
            pts: time(unit.pts.unwrap_or_default()),
            dts: unit.dts.map(time),
            key: unit.key,
            layer: unit.layer,
            whole: unit.whole,
            data: unit.bytes,
        }
    }
}

fn ticks(time: Duration) -> u64 {
    // To the nearest: a time that came out goes in as the same one.
    let ticks = (time.as_nanos() * TICKS + 500_000_000) / 1_000_000_000 + TICKS;
    ticks as u64
}

fn begins_with_start_code(data: &[u8]) -> bool {
    let zeros = data.iter().take_while(|byte| **byte == 0).count();
    zeros >= 2 && data.get(zeros) == Some(&1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(coding: Coding, data: &[u8]) -> AccessUnit {
        AccessUnit::new(Track { pid: 0x100, coding }, Duration::ZERO, data)
    }

    #[test]
    fn video_gets_a_delimiter_unless_it_has_one() {
        let mut slice = unit(Coding::H264, &[0, 0, 1, 0x65, 7]);
        assert_eq!(slice.delimited(), [0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65, 7]);
        let mut known = unit(Coding::H264, &[0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65, 7]);
        assert_eq!(known.delimited().len(), 10);
        let mut hevc = unit(Coding::H265, &[0, 0, 0, 1, 0x26, 1, 7]);
        assert_eq!(hevc.delimited()[..7], [0, 0, 0, 1, 0x46, 1, 0x50]);
        let mut known = unit(Coding::H265, &[0, 0, 0, 1, 0x46, 1, 0x50, 0, 0, 1, 0x26, 1]);
        assert_eq!(known.delimited().len(), 12);
    }

    #[test]
    fn what_is_no_access_unit_is_refused_with_what_is_wrong() {
        let wrong = |coding, data: &[u8]| unit(coding, data).check().unwrap_err().to_string();
        assert!(wrong(Coding::H264, &[]).contains("no bytes"));
        assert!(wrong(Coding::H264, &[0, 0, 0, 9, 0x65]).contains("start code"));
        assert!(wrong(Coding::Aac, &[0x21, 0x10]).contains("ADTS"));
        assert!(wrong(Coding::Opus { channels: 2 }, &[0; 65_001]).contains("too long"));
        for (coding, data) in [
            (Coding::H265, &[0, 0, 1, 0x26, 1][..]),
            (Coding::Aac, &[0xff, 0xf1, 0]),
            (Coding::Opus { channels: 1 }, &[0; 65_000]),
        ] {
            unit(coding, data).check().unwrap();
        }
    }

    #[test]
    fn times_come_out_a_second_later_and_are_the_same_when_they_are_sent_on() {
        for nanos in [0, 1, 33_333_333, 1_000_000_000, 3_599_999_999_999] {
            let pts = Duration::from_nanos(nanos);
            let (ticks, _) = AccessUnit { pts, ..unit(Coding::H264, &[0]) }.times();
            let came = Duration::from_nanos(ticks * 100_000 / 9);
            assert!((came - Duration::from_secs(1)).abs_diff(pts) < Duration::from_micros(6), "{pts:?} {came:?}");
            assert_eq!(AccessUnit { pts: came, ..unit(Coding::H264, &[0]) }.times().0, ticks + 90_000);
        }
    }
}
