//! What a rate buys, beside what is wanted.

use crate::args::StreamArgs;
use crate::failure::{Failure, Outcome};
use crate::out::json::round;
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_media::video::Screen;
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use braidcast_session::{RateReport, Report, Sender};
use serde::Serialize;
use std::time::Duration;

/// No rate beyond this is looked for, bit/s.
const MOST_RATE: f64 = 100e6;
/// Audio is judged by what came in the last one or two of these.
const HEARD: Duration = Duration::from_secs(5);

/// `--target-quality`: mean opinion scores, 1 to 5, of video by ITU-T G.1070 for H.264 of 640x480
/// if nothing is missing, and of audio by the E-model (SBPN §8.4.2).
#[derive(Serialize)]
pub(super) struct Quality {
    /// Score that the rate of the video buys.
    mos: f64,
    target_mos: f64,
    /// What the target takes; `None` if no rate does.
    #[serde(rename = "target_bits_per_second")]
    target_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioQuality>,
}

/// `--target-quality`, and what there is of audio.
pub(super) struct Target {
    mos: f64,
    heard: Heard,
}

impl Target {
    /// What the flags ask for.
    pub(super) fn of(now: Instant, args: &StreamArgs) -> Outcome<Option<Self>> {
        let report = args.rates.rate_report.as_ref();
        let own = report.and_then(|it| it.mos);
        if args.target_quality.is_some() && own.is_some() {
            return Err(Failure::usage(
                "mos= of --rate-report and --target-quality say the same",
                "leave out --target-quality",
            ));
        }
        if args.target_quality.is_some() && report.is_none() {
            return Err(Failure::usage(
                "--target-quality needs --rate-report",
                "say where the report goes: --rate-report FILE, - or sse:PORT",
            ));
        }
        Ok(own.or(args.target_quality).map(|mos| Self { mos, heard: Heard::new(now, args.latency) }))
    }

    pub(super) fn judge(&mut self, now: Instant, report: &RateReport, sender: &Sender) -> Quality {
        let audio = self.heard.look(now, &sender.report(now));
        Quality::of(report, self.mos, audio)
    }
}

/// What is heard, by the E-model as SBPN has it (eq. 4.1 to 4.5) for G.711: what is late or lost, and how late all is.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct AudioQuality {
    /// Of a call.
    mos: f64,
    /// Of who only listens: delay takes nothing off.
    listening_mos: f64,
    r: f64,
    /// Packets of audio that were not on time, of those of the last ten seconds, 0 to 1.
    loss_share: f64,
}

impl AudioQuality {
    fn of(latency: Duration, loss: f64) -> Self {
        let rate = |delay| EModel::new(Form::Sbpn, Codec::G711).rate(&Conditions { delay, loss, burst_ratio: 1.0 });
        let (call, listening) = (rate(latency), rate(Duration::ZERO));
        let rounded = |mos: f64| (mos * 100.0).round() / 100.0;
        Self {
            mos: rounded(call.mos),
            listening_mos: rounded(listening.mos),
            r: rounded(call.r),
            loss_share: round(loss),
        }
    }
}

/// How much of the audio is on time, of late.
#[derive(Debug)]
struct Heard {
    latency: Duration,
    /// When, packets that the receiver knows of, and those of them on time; twice, [`HEARD`] apart.
    before: (Instant, f64, f64),
    last: (Instant, f64, f64),
}

impl Heard {
    const fn new(now: Instant, latency: Duration) -> Self {
        Self { latency, before: (now, 0.0, 0.0), last: (now, 0.0, 0.0) }
    }

    /// `None` before any audio came.
    fn look(&mut self, now: Instant, report: &Report) -> Option<AudioQuality> {
        let audio = report.kinds.iter().find(|kind| kind.kind == Kind::Audio.name())?;
        let on_time = audio.on_time as f64;
        let known =
            audio.on_time_share.filter(|share| *share > 0.0).map_or(audio.captured as f64, |share| on_time / share);
        if now.since(self.last.0) >= HEARD {
            self.before = std::mem::replace(&mut self.last, (now, known, on_time));
        }
        let (came, in_time) = (known - self.before.1, on_time - self.before.2);
        (came >= 1.0).then(|| AudioQuality::of(self.latency, (1.0 - in_time / came).clamp(0.0, 1.0)))
    }
}

impl Quality {
    fn of(report: &RateReport, target: f64, audio: Option<AudioQuality>) -> Self {
        let fps = 1000.0 / report.frame_interval_ms.max(1.0);
        let mos = |rate: f64| Screen::H264Vga.mos(rate / 1e3, fps, 0.0);
        // More is better at the same frame rate, up to what the model ends at.
        let (mut low, mut high) = (0.0, MOST_RATE);
        let target_rate = (mos(high) >= target).then(|| {
            for _ in 0..30 {
                let middle = f64::midpoint(low, high);
                *(if mos(middle) < target { &mut low } else { &mut high }) = middle;
            }
            high.round()
        });
        Self { mos: (mos(report.video_rate) * 100.0).round() / 100.0, target_mos: target, target_rate, audio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_session::KindReport;

    fn audio(captured: u64, on_time: u64) -> Report {
        let share = (captured > 0).then(|| on_time as f64 / captured as f64);
        let (mut kind, mut report) = (KindReport::default(), Report::default());
        (kind.kind, kind.captured, kind.on_time) = (Kind::Audio.name(), captured, on_time);
        (kind.missing, kind.on_time_share) = (captured - on_time, share);
        report.kinds = vec![kind];
        report
    }

    #[test]
    fn audio_is_judged_by_what_came_of_late_and_how_late_all_is() {
        let at = Instant::from_millis;
        let mut heard = Heard::new(at(0), Duration::from_millis(150));
        assert_eq!(heard.look(at(0), &Report::default()), None);
        let good = heard.look(at(1000), &audio(50, 50)).unwrap();
        // SBPN eq. 4.3: 94.2 less 0.024 for each ms of 150.
        assert_eq!((good.r, good.loss_share), (90.6, 0.0));
        assert!(good.listening_mos > good.mos && good.mos > 4.3);
        // A tenth of the last ten seconds: 30 ln(1 + 1.5).
        heard.look(at(5000), &audio(250, 250));
        heard.look(at(10_000), &audio(500, 500));
        heard.look(at(15_000), &audio(750, 750));
        let bad = heard.look(at(19_900), &audio(1000, 950)).unwrap();
        assert!((bad.loss_share - 0.1).abs() < 1e-3 && (bad.r - (90.6 - 27.49)).abs() < 0.02, "{bad:?}");
    }
}
