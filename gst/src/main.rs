//! `braidcast-encode`: raw video in, a transport stream on stdout, whose rate follows what stdin
//! says. `braidcast encode` starts it.
//!
//! stdin: a line of JSON each time that something has changed, as `braidcast send --rate-report`
//! writes it (version 1). Its end ends the program. Without a line it encodes at the greatest rate,
//! so that it can be tried by itself: `braidcast-encode test </dev/tty | ffplay -`.
#![allow(clippy::disallowed_methods, reason = "a program beside a live pipeline, in real time")]

mod audio;
mod input;
mod log;
mod needs;
mod parts;
mod pipeline;

use braidcast_rate::Profile;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Encodes video at the rate that it is told, into MPEG-TS on stdout
#[derive(Parser, Debug)]
#[command(version)]
pub(crate) struct Args {
    /// test, camera, a device (for example /dev/video0), screen, a FILE, or gst:PIPELINE
    pub(crate) input: String,
    /// live: each frame is as large as it may be; quality: the mean over a second is
    #[arg(long, default_value_t = Profile::Live)]
    pub(crate) profile: Profile,
    /// GStreamer's element that encodes
    #[arg(long, default_value = "x264enc")]
    pub(crate) encoder: String,
    /// WIDTHxHEIGHT of the video
    #[arg(long, value_parser = size)]
    pub(crate) size: Option<(i32, i32)>,
    /// Frames per second
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(i32).range(1..=240))]
    pub(crate) fps: i32,
    /// Least and greatest rate, bit/s
    #[arg(long, default_value = "100000-6000000", value_parser = range)]
    pub(crate) rate_range: (u64, u64),
    /// auto (a FILE's own track), none, test, mic, or gst:PIPELINE
    #[arg(long, default_value = "auto")]
    pub(crate) audio: String,
    /// GStreamer's element that encodes audio
    #[arg(long, default_value = "opusenc")]
    pub(crate) audio_encoder: String,
    /// Its rate, bit/s
    #[arg(long, default_value_t = 64_000, value_parser = clap::value_parser!(u32).range(6_000..=512_000))]
    pub(crate) audio_rate: u32,
    /// Write what became of each frame, as CSV
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(long)]
    pub(crate) quiet: bool,
}

fn size(text: &str) -> Result<(i32, i32), String> {
    let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    sides.filter(|(w, h)| (16..=8192).contains(w) && (16..=8192).contains(h)).ok_or("write for example 1280x720".into())
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let rates = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    rates.filter(|(a, b)| 0 < *a && a <= b).ok_or("write for example 300000-6000000".into())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match pipeline::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
