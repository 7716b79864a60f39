//! What is run over the links of a set: which links are drawn for it, its scenario, and what is kept of its measures.

use super::{Set, Settings, Survey};
use braidcast_core::Rng;
use core::fmt::Write;
use serde::Serialize;

/// What is run over the sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A clip, as `braidcast send` sends it.
    #[default]
    Clip,
    /// Video whose encoder follows what the sender says it may make.
    Encoder,
    /// A bulk transfer over SCTP.
    Bulk {
        /// The receive buffer, bytes; none is the default one.
        receive_buffer: Option<u64>,
    },
}

/// One of `all`.
pub(super) fn one<T: Copy>(draw: &mut Rng, all: &[T]) -> T {
    all[draw.below(all.len() as u64) as usize]
}

fn between(draw: &mut Rng, (low, high): (f64, f64)) -> f64 {
    low + (high - low) * draw.f64()
}

impl What {
    /// Draws link number `n` of a set whose first link has `first_kbit`, for a stream of this rate and load: its
    /// rate, kbit/s, delay, ms, and loss, %.
    pub(super) fn draw(
        self,
        draw: &mut Rng,
        (stream_kbit, load): (f64, (f64, f64)),
        n: usize,
        first_kbit: f64,
    ) -> (f64, u64, f64) {
        let (rate, delays, losses): (_, &[u64], &[f64]) = match (self, n) {
            (Self::Bulk { .. }, 0) => {
                let rate = one(draw, &[1e3, 2e3, 5e3, 1e4, 2e4]) * between(draw, (0.7, 1.3));
                (rate, &[5, 10, 20, 40], &[0.0, 0.1, 0.5, 1.0])
            }
            (Self::Bulk { .. }, _) => {
                let rate = first_kbit * between(draw, (0.1, 1.0));
                (rate, &[10, 30, 60, 120, 200, 300], &[0.0, 0.1, 0.5, 1.0, 3.0])
            }
            (_, 0) => {
                let rate = stream_kbit / between(draw, load);
                (rate, &[10, 20, 30, 45, 60], &[0.0, 0.2, 0.5, 1.0, 2.0])
            }
            _ => {
                let rate = stream_kbit * between(draw, (0.08, 0.9));
                (rate, &[20, 40, 80, 120, 180, 250, 300], &[0.0, 0.5, 1.0, 3.0, 6.0])
            }
        };
        (rate, one(draw, delays), one(draw, losses))
    }

    /// Returns `true` if the rates of other links than the first may step.
    pub(super) const fn may_step(self) -> bool {
        !matches!(self, Self::Bulk { .. })
    }

    /// The section of a scenario that a key without a point belongs to.
    pub(super) const fn section(self) -> &'static str {
        if matches!(self, Self::Bulk { .. }) { "sctp" } else { "live" }
    }

    /// Of what the experiment measures so much is kept.
    pub(super) const fn metrics(self) -> &'static [&'static str] {
        match self {
            Self::Clip => &[
                "playable",
                "on time",
                "audio on time",
                "I on time",
                "P on time",
                "B on time",
                "oracle on time",
                "oracle playable",
                "sent for each byte shown",
                "causal, ideal",
                "causal, headers",
                "causal, late rates",
                "causal, 5 % more code",
                "causal, repeats",
                "causal, repeats told late",
                "causal, repeats, no plan",
            ],
            Self::Encoder => &[
                "on time",
                "longest freeze",
                "left out",
                "rate",
                "oracle rate",
                "share of the oracle rate",
                "oracle on time",
                "oracle longest freeze",
            ],
            Self::Bulk { .. } => &["goodput"],
        }
    }

    /// The scenario but for its links and variants.
    fn head(self, survey: &Survey, text: &mut String) {
        let latency = survey.latency.as_millis();
        let _ = match self {
            Self::Clip => write!(text, "[network]\nvary_start = \"2s\"\n[live]\nclip = \"{}\"\n", survey.clip),
            Self::Encoder => write!(text, "[network]\nvary_start = \"2s\"\n[live]\nencoder = \"follow\"\n"),
            Self::Bulk { receive_buffer } => {
                let size = receive_buffer.map_or_else(String::new, |it| format!("receive_buffer = {it}\n"));
                write!(text, "[network]\nwrap = \"ip\"\n[traffic]\nsource = \"bulk\"\nmessage = 1200\n[sctp]\n{size}")
            }
        };
        if !matches!(self, Self::Bulk { .. }) {
            let _ = writeln!(text, "latency = \"{latency}ms\"");
        }
    }
}

impl Survey {
    /// The scenario of `set` with `settings`, as text: its variants are `all` and the subsets.
    pub fn scenario_text(&self, set: &Set, settings: &Settings) -> String {
        let Self { seed, runs, what, .. } = self;
        let experiment = if matches!(what, What::Bulk { .. }) { "transfer" } else { "live" };
        let (index, duration) = (set.index, self.duration.as_millis());
        let mut text = format!(
            "name = \"survey-{index}\"\ntitle = \"Set {index} of seed {seed}\"\nexperiment = \"{experiment}\"\nruns = {runs}\n\
             duration = \"{duration}ms\"\n"
        );
        what.head(self, &mut text);
        for link in &set.links {
            let (name, rate, delay, loss) = (&link.name, &link.rate, link.delay_ms, link.loss_percent);
            let _ = writeln!(text, "[link.{name}]\nqueue = \"300ms\"\nrate = \"{rate}\"\ndelay = \"{delay}ms\"");
            if what.may_step() {
                // What carries acknowledgements of video is not what the survey asks about.
                text.push_str("back-rate = \"unlimited\"\n");
            }
            if !link.outages.is_empty() {
                let _ = writeln!(text, "outage = {:?}", link.outages);
            }
            if loss > 0.0 {
                let _ = writeln!(text, "loss = \"{loss}%\"");
            }
        }
        let all = (0..set.links.len()).collect();
        for subset in core::iter::once(all).chain(Self::subsets(set)) {
            let paths: Vec<String> = subset.iter().map(|&n| format!("[\"{}\"]", set.links[n].name)).collect();
            let (name, paths) = (Self::subset_name(set, &subset), paths.join(", "));
            let _ = writeln!(text, "[[variant]]\nname = \"{name}\"\nflow.main.paths = [{paths}]");
            settings.lines.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
        }
        text
    }
}
