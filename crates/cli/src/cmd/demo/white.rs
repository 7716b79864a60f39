//! PSNR of each frame of the source, with a white frame for each that did not arrive (THESIS §9.1).
//!
//! Both files are decoded side by side, luma only, frame by frame. A frame arrived if the received
//! file has one with its presentation time; it counts as it looks, with what the decoder conceals.
//! Identical frames count as 100 dB, "the peak value" (PRCMT §6.2).

use super::clip::FPS;
use super::ffmpeg;
use crate::failure::{Failure, Outcome};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// PSNR of identical frames.
const IDENTICAL_DB: f64 = 100.0;
const WHITE: u8 = 255;

/// Returns the mean PSNR of the frames of `source` beside `received`, in dB. Writes a line for each
/// frame to `table`: its time, `true` if it arrived, its PSNR.
pub(super) fn psnr(source: &Path, received: &Path, table: &Path) -> Outcome<f64> {
    let (mut theirs, mut ours) = (Pictures::open(source)?, Pictures::open(received).ok());
    let unwritten =
        |e: std::io::Error| Failure::new(format!("cannot write {}: {e}", table.display()), "check the folder of --out");
    let mut file = std::io::BufWriter::new(std::fs::File::create(table).map_err(unwritten)?);
    writeln!(file, "time_s,came,psnr_db").map_err(unwritten)?;
    let white = vec![WHITE; theirs.size];
    let (mut pictures, mut sum) = (0_u32, 0.0);
    let half = 0.5 / f64::from(FPS);
    let mut next = ours.as_mut().and_then(Pictures::next);
    while let Some(at) = theirs.next() {
        // What was shown before this one belongs to none that is asked for any more.
        while next.is_some_and(|time| time < at - half) {
            next = ours.as_mut().and_then(Pictures::next);
        }
        let shown = ours.as_ref().filter(|_| next.is_some_and(|time| time < at + half)).map(|it| &it.picture);
        // A broken stream may claim another frame size.
        let shown = shown.filter(|picture| picture.len() == theirs.size);
        let psnr = between(&theirs.picture, shown.unwrap_or(&white));
        writeln!(file, "{at:.3},{},{psnr:.2}", u8::from(shown.is_some())).map_err(unwritten)?;
        (pictures, sum) = (pictures + 1, sum + psnr);
    }
    file.flush().map_err(unwritten)?;
    Ok(sum / f64::from(pictures.max(1)))
}

/// Returns the PSNR of two frames in dB.
fn between(one: &[u8], other: &[u8]) -> f64 {
    let squares: u64 = one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    let mean = squares as f64 / one.len().max(1) as f64;
    if squares == 0 { IDENTICAL_DB } else { (10.0 * (255.0 * 255.0 / mean).log10()).min(IDENTICAL_DB) }
}

/// The frames of a file, one after the other.
struct Pictures {
    decoder: Child,
    luma: ChildStdout,
    /// Presentation time of each frame in seconds, sent before the frame itself.
    times: Receiver<f64>,
    /// Bytes of a frame.
    size: usize,
    picture: Vec<u8>,
}

impl Pictures {
    fn open(path: &Path) -> Outcome<Self> {
        let words = "-v quiet -select_streams v:0 -show_entries stream=width,height -of csv=p=0:nk=1";
        let mut args: Vec<OsString> = words.split(' ').map(Into::into).collect();
        args.push(path.into());
        let said = ffmpeg::probe(&args)?;
        let sides: Vec<usize> = said.split([',', '\n']).filter_map(|word| word.trim().parse().ok()).collect();
        let [width, height, ..] = sides[..] else {
            return Err(Failure::new(format!("{} has no video frame", path.display()), "give another --clip"));
        };
        // What did not arrive is in no order that a decoder likes; what it says of that is not asked for.
        let mut decoder = crate::process::command("ffmpeg")
            .args(["-nostdin", "-nostats", "-v", "info", "-copyts", "-i"])
            .arg(path)
            .args(["-map", "0:v:0", "-vf", "showinfo", "-fps_mode", "passthrough", "-pix_fmt", "gray"])
            .args(["-f", "rawvideo", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Failure::new(format!("cannot start ffmpeg: {e}"), "check that it runs at all"))?;
        let (Some(luma), Some(said)) = (decoder.stdout.take(), decoder.stderr.take()) else {
            return Err(Failure::new("ffmpeg has no output", "try again"));
        };
        let (tell, times) = channel();
        std::thread::spawn(move || {
            // To the end, even if nobody listens any more: ffmpeg must never wait.
            for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
                if let Some(time) = time_of(&String::from_utf8_lossy(&line)) {
                    let _ = tell.send(time);
                }
            }
        });
        Ok(Self { decoder, luma, times, size: width * height, picture: vec![0; width * height] })
    }

    /// Reads the next frame and returns its time; `None` after the last one.
    fn next(&mut self) -> Option<f64> {
        self.luma.read_exact(&mut self.picture).ok()?;
        self.times.recv().ok()
    }
}

impl Drop for Pictures {
    fn drop(&mut self) {
        let _ = self.decoder.kill();
        let _ = self.decoder.wait();
    }
}

/// Returns the time in a line of ffmpeg's filter `showinfo` about a frame.
fn time_of(line: &str) -> Option<f64> {
    let (_, rest) = line.split_once(" pts_time:")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(filter: &str, path: &Path) {
        let words = "-y -nostdin -v error -f lavfi -i testsrc2=size=64x48:rate=25:duration=2 -vf";
        let mut args: Vec<OsString> = words.split(' ').map(Into::into).collect();
        args.push(filter.into());
        args.extend("-fps_mode passthrough -c:v libx264 -qp 0 -bf 0 -f mpegts".split(' ').map(Into::into));
        args.push(path.into());
        ffmpeg::run(&args).unwrap_or_else(|e| panic!("{e:?}"));
    }

    #[test]
    fn a_picture_that_did_not_come_is_white_and_the_others_are_what_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        make("format=yuv420p", &at("source.ts"));
        make("format=yuv420p,select='not(between(n,20,29))'", &at("received.ts"));
        let mean = psnr(&at("source.ts"), &at("received.ts"), &at("psnr.csv")).unwrap_or_else(|e| panic!("{e:?}"));
        let table = std::fs::read_to_string(at("psnr.csv")).unwrap();
        let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 50);
        for (n, line) in lines.iter().enumerate() {
            let psnr: f64 = line[2].parse().unwrap();
            match line[1] {
                "1" => assert!(psnr == 100.0 && !(20..30).contains(&n), "{n}: {line:?}"),
                _ => assert!(psnr < 12.0 && (20..30).contains(&n), "{n}: {line:?}"),
            }
        }
        assert!(mean > 80.0 && mean < 83.0, "{mean}");
    }

    #[test]
    fn where_nothing_came_all_is_white() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        make("format=yuv420p", &at("source.ts"));
        std::fs::write(at("nothing.ts"), b"").unwrap();
        let mean = psnr(&at("source.ts"), &at("nothing.ts"), &at("psnr.csv")).unwrap_or_else(|e| panic!("{e:?}"));
        assert!(mean < 12.0, "{mean}");
        let table = std::fs::read_to_string(at("psnr.csv")).unwrap();
        assert!(table.lines().skip(1).all(|line| line.contains(",0,")) && table.lines().count() == 51, "{table}");
    }

    #[test]
    fn opposite_pictures_have_nothing_in_common() {
        assert_eq!((between(&[7, 8], &[7, 8]), between(&[0, 255], &[255, 0])), (IDENTICAL_DB, 0.0));
        assert!((between(&[100; 4], &[110; 4]) - 28.13).abs() < 0.01);
    }

    #[test]
    fn times_are_read_from_what_ffmpeg_says() {
        let line = "[Parsed_showinfo_0 @ 0x55] n:   3 pts: 136800 pts_time:1.52    pos:     564 fmt:yuv420p";
        assert_eq!(time_of(line), Some(1.52));
        assert_eq!(time_of("[mpegts @ 0x5] PES packet size mismatch"), None);
    }
}
