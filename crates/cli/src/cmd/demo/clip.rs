//! The clip to send: H.264 with B frames and AAC in MPEG-TS, about 2 Mbit/s, made by ffmpeg.

use super::ffmpeg;
use crate::failure::{Failure, Outcome};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Frames per second of the clip.
pub(super) const FPS: u32 = 25;

/// Name of the clip that `make demo` fetches, in the output folder.
const FETCHED: &str = "clip.mp4";

/// What is sent.
pub(super) struct Clip {
    /// MPEG-TS.
    pub(super) path: PathBuf,
    /// Name of the source of the video, for people.
    pub(super) origin: String,
}

/// Refuses a clip that is not there.
pub(super) fn check(clip: &Path) -> Outcome {
    let found = std::fs::metadata(clip).map(|_| ());
    found.map_err(|error| Failure::new(format!("cannot open the clip {}: {error}", clip.display()), "check --clip"))
}

/// Makes `seconds` of MPEG-TS in `out` from `clip`, or from the clip that `make demo` fetched, or
/// else from ffmpeg's own moving test video. If an earlier run left the result for the same file,
/// that is used again.
pub(super) fn make(clip: Option<&Path>, seconds: u32, out: &Path) -> Outcome<Clip> {
    let fetched = out.join(FETCHED);
    let source = clip.map(Path::to_owned).or_else(|| fetched.exists().then_some(fetched));
    let name = match &source {
        Some(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        None => "test-picture".into(),
    };
    let made = out.join(format!("source-{name}-{seconds}s.ts"));
    let origin = source.as_ref().map_or_else(|| "ffmpeg's test video".into(), |path| path.display().to_string());
    if !is_newer(&made, source.as_deref()) {
        // Under another name until it is whole, so that an interrupted run leaves nothing half made to be used again.
        let unfinished = made.with_extension("part");
        let mut args: Vec<OsString> = Vec::new();
        args.extend(["-y", "-nostdin", "-v", "error"].map(Into::into));
        match &source {
            Some(path) => args.extend(["-stream_loop".into(), "-1".into(), "-i".into(), path.into()]),
            None => args.extend(TEST_PICTURE.split(' ').map(Into::into)),
        }
        args.extend(encoding(seconds));
        args.push(unfinished.clone().into());
        ffmpeg::run(&args)?;
        std::fs::rename(&unfinished, &made).map_err(|e| {
            Failure::new(format!("cannot write {}: {e}", made.display()), "check the folder given by --out")
        })?;
    }
    Ok(Clip { path: made, origin })
}

/// Returns `true` if `made` exists and is no older than what it is made from, this program with its settings included.
fn is_newer(made: &Path, source: Option<&Path>) -> bool {
    let time = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    let program = std::env::current_exe().ok();
    let mut origins = source.into_iter().chain(program.as_deref());
    time(made).is_some_and(|made| origins.all(|origin| time(origin).is_some_and(|origin| made >= origin)))
}

/// A moving test video with a clock, noise so that it costs bits as a camera's video does, and a
/// tone.
const TEST_PICTURE: &str = "-f lavfi -i testsrc2=size=1280x720:rate=25,noise=alls=8:allf=t \
                            -f lavfi -i sine=frequency=330:sample_rate=48000";

/// A picture group of two seconds with two B frames between others, as live encoders send it; the rate held within a
/// quarter of a second, because a live link cannot average over more: no frame exceeds some 60 kB.
fn encoding(seconds: u32) -> Vec<OsString> {
    let words = format!(
        "-t {seconds} -vf scale=-2:'min(720,ih)',fps={FPS},format=yuv420p \
         -c:v libx264 -preset veryfast -b:v 1750k -maxrate 1900k -bufsize 500k -bf 2 -g {} -sc_threshold 0 \
         -c:a aac -b:a 96k -ac 2 -ar 48000 -sn -dn -f mpegts",
        2 * FPS
    );
    words.split(' ').map(Into::into).collect()
}
