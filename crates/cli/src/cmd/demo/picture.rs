//! What a viewer sees of a received file, measured against the source.
//!
//! Both files are decoded with the presentation times that they carry (`-copyts`: no shifting to
//! zero, which would hide a lost beginning). ffmpeg's `psnr` filter compares each frame of the
//! source with the frame that a player would show at that time: the received frame, or, if it is
//! missing, the last one shown, frozen. The filter's `framesync` repeats it, after the last
//! received frame too. If frames at the very beginning are lost, `fps=start_time` puts the first
//! received frame in their place. What the decoder conceals or shows broken counts as it looks. The
//! result is ffmpeg's `average`: the PSNR of the mean squared error over all planes and frames.

use super::clip::FPS;
use super::ffmpeg;
use crate::failure::{Failure, Outcome};
use std::ffi::OsString;
use std::path::Path;

/// Reported if not a bit differs.
const IDENTICAL_DB: f64 = 100.0;

/// Returns the PSNR of `received` against `source` in dB; `None` if `received` has no frame at all.
pub(super) fn psnr(source: &Path, received: &Path) -> Outcome<Option<f64>> {
    if first_picture(received)?.is_none() {
        return Ok(None);
    }
    let Some(start) = first_picture(source)? else {
        return Err(Failure::new(format!("{} has no video frame", source.display()), "give another --clip"));
    };
    let same_clock = format!("settb=1/90000,fps={FPS}:start_time={start}:round=near");
    let graph = format!("[0:v]{same_clock}[source];[1:v]{same_clock}[shown];[source][shown]psnr");
    let mut args: Vec<OsString> = ["-nostdin", "-v", "info", "-nostats", "-copyts", "-i"].map(Into::into).into();
    args.extend([source.into(), "-i".into(), received.into()]);
    args.extend(["-lavfi", &graph, "-f", "null", "-"].map(Into::into));
    let (_, report) = ffmpeg::run(&args)?;
    average(&report).map(Some).ok_or_else(|| {
        Failure::new(format!("ffmpeg returned no PSNR for {}", received.display()), "check that the file plays")
    })
}

/// Returns the presentation time of the first key frame that decodes, in seconds. Without one, a
/// decoder shows nothing.
fn first_picture(path: &Path) -> Outcome<Option<String>> {
    let words = "-v quiet -select_streams v:0 -skip_frame nokey -show_entries frame=pts_time -of csv=p=0";
    let mut args: Vec<OsString> = words.split(' ').map(Into::into).collect();
    args.push(path.into());
    // To ffprobe an empty file is an error; to us it is a file without frames.
    let text = ffmpeg::probe(&args).unwrap_or_default();
    Ok(text
        .lines()
        .find_map(|line| line.split(',').next())
        .map(str::trim)
        .filter(|t| t.parse::<f64>().is_ok())
        .map(str::to_owned))
}

/// The figure in `… PSNR y:… u:… v:… average:38.1 min:… max:…`.
fn average(report: &str) -> Option<f64> {
    let line = report.lines().rev().find(|line| line.contains("PSNR") && line.contains("average:"))?;
    let figure = line.split("average:").nth(1)?.split_whitespace().next()?;
    if figure == "inf" { Some(IDENTICAL_DB) } else { figure.parse().ok().map(|db: f64| db.min(IDENTICAL_DB)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_read_from_ffmpegs_report() {
        let line = "[Parsed_psnr_4 @ 0x5] PSNR y:24.1 u:33.0 v:33.9 average:25.562 min:9.3 max:inf";
        assert_eq!(average(line), Some(25.562));
        assert_eq!(average("PSNR y:inf u:inf v:inf average:inf min:inf max:inf"), Some(IDENTICAL_DB));
        assert_eq!(average("nothing"), None);
    }
}
