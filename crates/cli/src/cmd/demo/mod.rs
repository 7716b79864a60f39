//! `braidcast demo`: the product at work on one machine.
//!
//! The runs go at the same time: each is a stream of 2 Mbit/s through processes of its own, of which even a
//! small machine carries many, and a minute is what a visitor waits. They share nothing but the processor.

mod child;
mod clip;
mod ffmpeg;
mod networks;
mod picture;
mod run;
mod score;
mod white;

use crate::args::{Common, DemoArgs};
use crate::failure::{Failure, Outcome};
use crate::out::json::{self, round};
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use networks::Network;
use run::{Case, PathUse, Run, Setting};
use score::{OnTime, Score, Source};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Two ways to somebody far away.
const FAR: [Network; 2] = [Network::Far, Network::Far2];
/// What those who talk with each other bear, at most (ITU-T G.114 has 150 to 400 ms).
const CONVERSATION: Option<Duration> = Some(Duration::from_millis(300));

/// The runs.
const CASES: [Case; 5] = [
    Case { name: "wifi", networks: &[Network::Wifi], latency: None, send: &[] },
    Case { name: "lte", networks: &[Network::Lte], latency: None, send: &[] },
    Case { name: "both", networks: &[Network::Wifi, Network::Lte], latency: None, send: &[] },
    Case { name: "far", networks: &FAR, latency: CONVERSATION, send: &["--fec", "none"] },
    Case { name: "far-fec", networks: &FAR, latency: CONVERSATION, send: &[] },
];
/// Time beyond the clip's length after which a run counts as stalled.
const PATIENCE: Duration = Duration::from_secs(30);

/// `summary.json`.
#[derive(Serialize)]
struct Summary {
    runs: Vec<RunSummary>,
}

#[derive(Serialize)]
struct RunSummary {
    name: &'static str,
    seconds: u32,
    on_time: OnTime,
    playable_share: f64,
    /// `null` if not a single frame arrived.
    psnr_db: Option<f64>,
    /// Mean PSNR of all frames, with a white frame for each that did not arrive; single values are
    /// in `NAME.psnr.csv`.
    psnr_white_db: f64,
    longest_freeze_s: f64,
    paths: Vec<PathUse>,
    output: PathBuf,
}

pub(super) fn run(args: &DemoArgs, common: &Common) -> Outcome {
    args.clip.as_deref().map_or(Ok(()), clip::check)?;
    std::fs::create_dir_all(&args.out).map_err(|e| {
        Failure::new(format!("cannot make the folder {}: {e}", args.out.display()), "choose another one with --out")
    })?;
    let program = std::env::current_exe()
        .map_err(|e| Failure::new(format!("cannot find this program's own file: {e}"), "run it by its full path"))?;
    let progress = Progress::new(common.quiet);
    progress.say("preparing the clip");
    let clip = clip::make(args.clip.as_deref(), args.seconds, &args.out)?;
    let recording = networks::write_recording(&args.out)?;
    progress.note(&format!("Clip:  {}, {} s, H.264 and AAC in MPEG-TS, 2 Mbit/s", clip.origin, args.seconds));
    for network in [Network::Wifi, Network::Lte, Network::Far] {
        progress.note(&network.describe());
    }
    let setting = Setting {
        program: &program,
        clip: &clip.path,
        recording: &recording,
        out: &args.out,
        latency: args.latency,
        seconds: args.seconds,
        seed: args.seed,
    };
    let finished = run_all(&setting, args.seconds, &progress)?;
    let source = Source::read(&clip.path)?;
    let mut runs = Vec::new();
    for (name, (paths, output, log)) in finished {
        progress.say(&format!("measuring the video of {name}"));
        let score = source.score(&log)?;
        let psnr = picture::psnr(&clip.path, &output)?;
        let white = white::psnr(&clip.path, &output, &args.out.join(format!("{name}.psnr.csv")))?;
        runs.push(summarise(name, args.seconds, score, (psnr, white), paths, output));
    }
    progress.close();
    let summary = Summary { runs };
    let file = write_summary(&args.out, &summary)?;
    if common.json {
        return json::print("demo", &summary);
    }
    print_table(&summary, &args.out, &file).map_err(|e| Failure::stdout(&e))
}

/// What a run leaves: its paths' use, the received file and the log.
type Finished = (&'static str, (Vec<PathUse>, PathBuf, PathBuf));

/// Runs all at the same time.
#[allow(clippy::disallowed_methods, reason = "the demo waits for real processes")]
fn run_all(setting: &Setting<'_>, seconds: u32, progress: &Progress) -> Outcome<Vec<Finished>> {
    let ports = run::free_ports(CASES.iter().map(Case::ports).sum())?;
    let (mut running, mut left) = (Vec::new(), ports.as_slice());
    for case in CASES {
        let (own, others) = left.split_at(case.ports());
        left = others;
        running.push(Run::start(setting, case, own)?);
    }
    let start = std::time::Instant::now();
    progress.begin(
        "Wi-Fi alone, LTE alone, both, and two far networks without and with redundancy, at the same time",
        seconds,
    );
    while !running.iter_mut().all(Run::has_ended) {
        let elapsed = start.elapsed();
        progress.set(elapsed);
        if elapsed > Duration::from_secs(seconds.into()) + PATIENCE {
            return Err(Failure::new("a run did not end", "try again; if it stays so, please report it as a bug"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    running.into_iter().map(|run| Ok((run.case.name, run.finish()?))).collect()
}

fn summarise(
    name: &'static str,
    seconds: u32,
    score: Score,
    (psnr, psnr_white): (Option<f64>, f64),
    paths: Vec<PathUse>,
    output: PathBuf,
) -> RunSummary {
    let OnTime { audio, frames, i, p, b } = score.on_time;
    // Four digits: a share of 60 s is of some thousand frames.
    let share = |value: f64| (value * 1e4).floor() / 1e4;
    RunSummary {
        name,
        seconds,
        on_time: OnTime { audio: share(audio), frames: share(frames), i: share(i), p: share(p), b: share(b) },
        playable_share: share(score.playable_share),
        psnr_db: psnr.map(round),
        psnr_white_db: round(psnr_white),
        longest_freeze_s: round(score.longest_freeze_s),
        paths,
        output,
    }
}

fn write_summary(out: &Path, summary: &Summary) -> Outcome<PathBuf> {
    let file = out.join("summary.json");
    let fail =
        |e: String| Failure::new(format!("cannot write {}: {e}", file.display()), "choose another folder with --out");
    let text = serde_json::to_string_pretty(summary).map_err(|e| fail(e.to_string()))?;
    std::fs::write(&file, text + "\n").map_err(|e| fail(e.to_string()))?;
    Ok(file)
}

fn print_table(summary: &Summary, out: &Path, file: &Path) -> std::io::Result<()> {
    use std::io::Write;
    let style = Style::stdout();
    let mut table =
        Table::new(&["on time", "audio", "frames", "I", "P", "B", "playable", "PSNR", "longest freeze"], style);
    for run in &summary.runs {
        let OnTime { audio, frames, i, p, b } = run.on_time;
        let shares = [audio, frames, i, p, b, run.playable_share];
        let psnr = run.psnr_db.map_or_else(|| "none".into(), |db| format!("{db:.1} dB"));
        let freeze = units::time(Duration::from_secs_f64(run.longest_freeze_s));
        let tone = if run.longest_freeze_s > 0.5 { Tone::Bad } else { Tone::Good };
        let cells = shares.into_iter().map(|share| (units::share(share), tone_of(share)));
        table.row(
            std::iter::once((run.name.to_owned(), Tone::Plain))
                .chain(cells)
                .chain([(psnr, Tone::Plain), (freeze, tone)]),
        );
    }
    let mut paths = Table::new(&["network", "sent", "packets lost"], style);
    for run in &summary.runs {
        for path in &run.paths {
            let name =
                if run.paths.len() > 1 { format!("{} in {}", path.name, run.name) } else { path.name.to_owned() };
            paths.row(
                [name, units::bytes(path.sent_bytes), path.lost_packets.to_string()].map(|cell| (cell, Tone::Plain)),
            );
        }
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{table}\n\n{paths}\n")?;
    for run in &summary.runs {
        writeln!(stdout, "watch {:<7} ffplay {}", run.name, run.output.display())?;
    }
    writeln!(stdout, "\nsee why frames were missed: braidcast viz {}/both-*.trace --open", out.display())?;
    writeln!(stdout, "Everything is in {}, the figures in {}", out.display(), file.display())
}

fn tone_of(share: f64) -> Tone {
    match share {
        s if s >= 0.99 => Tone::Good,
        s if s >= 0.9 => Tone::Doubtful,
        _ => Tone::Bad,
    }
}

/// A bar on stderr if that is a terminal, else lines.
struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        };
        bar.set_style(style("{spinner} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, quiet }
    }

    fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    fn note(&self, what: &str) {
        if !self.quiet {
            self.bar.suspend(|| say!("{what}"));
        }
    }

    fn begin(&self, what: &str, seconds: u32) {
        self.note(&format!("Running {what}: {seconds} s"));
        self.bar.set_length(u64::from(seconds) * 10);
        self.bar.set_style(style("{bar:40} {percent:>3} %  {msg}"));
    }

    fn set(&self, elapsed: Duration) {
        let Some(length) = self.bar.length() else { return };
        let tenths = u64::try_from(elapsed.as_millis() / 100).unwrap_or(length).min(length);
        self.bar.set_position(tenths);
        self.bar.set_message(match (length - tenths).div_ceil(10) {
            0 => "the last frames arrive".into(),
            left => format!("{left} s left"),
        });
    }

    fn close(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
