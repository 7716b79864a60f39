//! `encode-trial`: x264 frame by frame over simulated links, with the very code of `send`,
//! `receive` and `braidcast-encode`; one line of JSON. Time is simulated and the encoder waits for
//! it, so a busy machine changes nothing: the same command prints the same line.

mod aimd;
mod clip;
mod coder;
mod known;
mod link;
mod oracle;
mod rule;
mod scene;
mod shown;
mod xstream;

use aimd::Aimd;
use braidcast_gst::x264;
use braidcast_rate::{Follower, Profile};
use braidcast_session::RateLimits;
use braidcast_sim::LinkModel;
use braidcast_sim::link::{Rate, Trace};
use clap::Parser;
use clip::Clip;
use coder::{Coder, Model, X264};
use known::Known;
use oracle::Pictures;
use rule::Rule;
use scene::{Picture, START, Setup};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Encodes a clip for simulated links by a rule, and says what came on time
#[derive(Parser, Debug)]
#[command(version, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Recorded link (mahimahi's format, or .txt with "seconds Mbit/s"), or kbit/s; one for each path
    #[arg(long, required = true)]
    link: Vec<String>,
    /// Delay of each link, ms
    #[arg(long, value_delimiter = ',', default_value = "30,45")]
    delay: Vec<u64>,
    /// What each link's queue holds, ms
    #[arg(long, default_value_t = 300)]
    queue: u64,
    /// Position in the recordings to begin at, ms
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// follow, aimd-rtt, fixed:KBIT, or known (it is told what links carry) and known:MS (in the next MS ms)
    #[arg(long, default_value = "follow")]
    rule: String,
    /// The clip, YUV4MPEG2; without one a model of x264's sizes encodes
    #[arg(long)]
    clip: Option<PathBuf>,
    #[arg(long, default_value_t = Profile::Live)]
    profile: Profile,
    #[arg(long, default_value_t = 30)]
    fps: i32,
    #[arg(long, default_value_t = 40)]
    seconds: u64,
    #[arg(long, default_value_t = 500)]
    latency: u64,
    /// Least and greatest rate, kbit/s
    #[arg(long, default_value = "100-6000", value_parser = range)]
    rate_range: (u64, u64),
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for what came, and for each frame as CSV; with --clip, PSNR needs it
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum Other {
    Xstream(xstream::Xstream),
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let rates = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    rates.filter(|(a, b)| 0 < *a && a <= b).ok_or("write for example 100-6000".into())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let line = match &args.other {
        Some(Other::Xstream(args)) => xstream::run(args),
        None => run(&args),
    };
    match line {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<Value, String> {
    let length = START + args.seconds * 1000 + 2 * args.latency;
    let delay = |n: usize| args.delay.get(n).or(args.delay.last()).copied().unwrap_or(30);
    let chances = args.link.iter().map(|path| link::chances(path, args.from, length)).collect::<Result<Vec<_>, _>>()?;
    let links =
        chances.iter().enumerate().map(|(n, it)| model(it, delay(n), args.queue)).collect::<Result<Vec<_>, _>>()?;
    let limits = RateLimits::new(args.rate_range.0 * 1000, args.rate_range.1 * 1000);
    let count = args.seconds as usize * args.fps as usize;
    let clip = args.clip.as_deref().map(Clip::read).transpose()?;
    let mut follower = Follower::new(args.profile, args.fps, (limits.least, limits.greatest));
    let first = follower.first();
    let (rule, first) = match args.rule.as_str() {
        "follow" => (Rule::Follow(Box::new(follower)), first),
        "aimd-rtt" => {
            let it = Aimd::new(args.latency as f64, limits.greatest as f64);
            (Rule::Aimd(Box::new(it), 0, aimd::LEAST), aimd::LEAST as u64)
        }
        other if other == "known" || other.starts_with("known:") => {
            let ahead = other
                .strip_prefix("known:")
                .map_or(Ok(0), str::parse)
                .map_err(|_| format!("{other} is not a rule\nhint: known or known:MS"))?;
            let links = chances.iter().enumerate().map(|(n, it)| (it.clone(), delay(n))).collect();
            let it = Known { links, ahead, greatest: limits.greatest as f64, fps: f64::from(args.fps) };
            (Rule::Known(Box::new(follower), it), first)
        }
        other => match other.strip_prefix("fixed:").and_then(|it| it.parse::<u64>().ok()) {
            Some(kbit) if kbit > 0 => (Rule::Fixed, kbit * 1000),
            _ => return Err(format!("{other} is not a rule\nhint: follow, aimd-rtt, fixed:KBIT, known or known:MS")),
        },
    };
    let coder: Box<dyn Coder + '_> = match &clip {
        Some(clip) => Box::new(X264::new(clip, &x264::words(args.profile, args.fps, first), args.fps)?),
        None => Box::new(Model::new(args.fps, first)),
    };
    let latency = Duration::from_millis(args.latency);
    let setup = Setup { seed: args.seed, latency, limits, fps: args.fps, count, coder, rule, first_rate: first, links };
    let pictures = scene::run(setup)?;
    let with_delays: Vec<(Vec<u32>, u64)> =
        chances.into_iter().enumerate().map(|(n, it)| (it, delay(n) * 1000)).collect();
    let interval = 1_000_000 / args.fps as u64;
    let foresight = Pictures {
        count,
        first: START * 1000,
        interval,
        whole: interval,
        latency: args.latency * 1000,
        most: limits.greatest / 8 / args.fps as u64,
    };
    let ideal = oracle::sizes(&foresight, &with_delays);
    report(args, &pictures, &ideal, limits, clip.as_ref())
}

fn model(chances: &[u32], delay: u64, queue: u64) -> Result<LinkModel, String> {
    let trace = Trace::from_millis(chances.to_vec()).ok_or("a recording that is not a trace")?;
    Ok(LinkModel {
        rate: Rate::Trace(Arc::new(trace)),
        queue: format!("{queue}ms").parse().map_err(|e| format!("--queue {queue}: {e:?}"))?,
        delay: Duration::from_millis(delay),
        ..LinkModel::default()
    })
}

/// Returns how long the longest run of frames that were not on time lasted, ms.
fn longest_freeze(on_time: &[bool], fps: i32) -> u64 {
    let longest = on_time.split(|it| *it).map(<[bool]>::len).max().unwrap_or(0);
    // The last one on time stands for its own time, too.
    if longest == 0 { 0 } else { (longest as u64 + 1) * 1000 / fps as u64 }
}

fn report(
    args: &Args,
    pictures: &[Picture],
    ideal: &[u64],
    limits: RateLimits,
    clip: Option<&Clip>,
) -> Result<Value, String> {
    let on_time: Vec<bool> = pictures.iter().map(|it| it.on_time).collect();
    let mbit = |bytes: u64| bytes as f64 * 8.0 / args.seconds as f64 / 1e6;
    let good: u64 = pictures.iter().zip(&on_time).filter(|(_, it)| **it).map(|(it, _)| it.bytes as u64).sum();
    let encoded: u64 = pictures.iter().map(|it| it.bytes as u64).sum();
    let least = limits.least / 8 / args.fps as u64;
    let possible: Vec<bool> = ideal.iter().map(|bytes| *bytes >= least).collect();
    let share = |which: &[bool]| 100.0 * which.iter().filter(|it| **it).count() as f64 / which.len().max(1) as f64;
    let best = mbit(ideal.iter().sum());
    let mut line = json!({
        "rule": args.rule,
        "links": args.link,
        "on_time": share(&on_time),
        "left_out": pictures.iter().filter(|it| !it.made).count(),
        "freeze_ms": longest_freeze(&on_time, args.fps),
        "encoded_mbit": mbit(encoded),
        "mbit": mbit(good),
        "oracle_mbit": best,
        "oracle_on_time": share(&possible),
        "oracle_freeze_ms": longest_freeze(&possible, args.fps),
        "share": 100.0 * mbit(good) / best,
    });
    let Some(folder) = &args.out else { return Ok(line) };
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut each = Vec::new();
    if let Some(clip) = clip {
        let came = pictures
            .iter()
            .enumerate()
            .filter(|(_, it)| it.used)
            .map(|(n, it)| (n, it.coded.clone()))
            .collect::<Vec<_>>();
        let shown;
        (shown, each) = shown::compare(clip, &came, pictures.len(), &on_time, folder)?;
        line["psnr"] = json!(shown.frozen);
        line["psnr_white"] = json!(shown.white);
    }
    let mut table = String::from("n,ideal_bits,allowed_bits,set_bits,bits,delay_ms,on_time,psnr,psnr_white\n");
    for (n, it) in pictures.iter().enumerate() {
        let delay = it.delay.map_or(String::new(), |it| format!("{:.1}", it.as_secs_f64() * 1e3));
        let psnr = each.get(n).map_or(",".into(), |[a, b]| format!("{a:.2},{b:.2}"));
        let bits = if it.made { it.bytes * 8 } else { 0 };
        let set = it.set / args.fps as u64;
        let _ =
            writeln!(table, "{n},{},{},{set},{bits},{delay},{},{psnr}", ideal[n] * 8, it.allowed, u8::from(on_time[n]));
    }
    let path = folder.join("pictures.csv");
    std::fs::write(&path, table).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    Ok(line)
}
