//! What a viewer sees of the frames that came: PSNR of luma against the clip, frame by frame.

use crate::clip::Clip;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// PSNR of equal frames, dB.
const EQUAL: f64 = 100.0;

/// What a run looked like, dB: the mean over its frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The last one that was shown stands for one that is missing.
    pub(crate) frozen: f64,
    /// A white one does (THESIS §9.1).
    pub(crate) white: f64,
}

/// Decodes `came`, numbered frames of an H.264 stream, and compares what is shown of `count` with
/// the clip. Files go into `folder`.
pub(crate) fn compare(
    clip: &Clip,
    came: &[(usize, Vec<u8>)],
    count: usize,
    on_time: &[bool],
    folder: &Path,
) -> Result<(Shown, Vec<[f64; 2]>), String> {
    let (luma, whole) = (clip.width * clip.height, clip.width * clip.height * 3 / 2);
    let (numbers, pictures) = if came.iter().any(|(_, it)| has_parameters(it)) {
        decode(clip, came, luma, whole, folder)?
    } else {
        // Nothing can be decoded, and ffmpeg would call that an error.
        (Vec::new(), Vec::new())
    };
    let (mut shown, white): (Option<usize>, _) = (None, vec![255_u8; luma]);
    let mut at = 0;
    let each: Vec<[f64; 2]> = (0..count)
        .map(|n| {
            while numbers.get(at).is_some_and(|number| *number <= n) {
                if on_time[numbers[at]] {
                    shown = Some(at);
                }
                at += 1;
            }
            let original = clip.luma(n);
            let frozen = shown.map_or_else(|| difference(original, &white), |it| difference(original, &pictures[it]));
            let came = shown.is_some_and(|it| numbers[it] == n);
            [frozen, if came { frozen } else { difference(original, &white) }]
        })
        .collect();
    let mean = |which: usize| each.iter().map(|it| it[which]).sum::<f64>() / count.max(1) as f64;
    Ok((Shown { frozen: mean(0), white: mean(1) }, each))
}

/// Decodes the frames. Returns their numbers, and luma of each. Files go into `folder`.
fn decode(
    clip: &Clip,
    came: &[(usize, Vec<u8>)],
    luma: usize,
    whole: usize,
    folder: &Path,
) -> Result<(Vec<usize>, Vec<Vec<u8>>), String> {
    let (stream, log) = (folder.join("came.ivf"), folder.join("decoder.log"));
    fs::write(&stream, ivf(clip, came)).map_err(|e| format!("cannot write {}: {e}", stream.display()))?;
    let told = fs::File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
    let mut decoder = Command::new("ffmpeg")
        .args([
            "-nostdin",
            "-v",
            "info",
            "-threads",
            "1",
            "-flags",
            "+output_corrupt",
            "-flags2",
            "+showall",
            "-copyts",
            "-i",
        ])
        .arg(from(&stream))
        .args(["-vf", "showinfo=checksum=0", "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .stdout(Stdio::piped())
        .stderr(told)
        .spawn()
        .map_err(|e| format!("cannot start ffmpeg: {e}"))?;
    // Their numbers come in the log, which is whole at the end.
    let mut pictures = Vec::new();
    let mut out = decoder.stdout.take().ok_or("ffmpeg has no stdout")?;
    let mut picture = vec![0; whole];
    while out.read_exact(&mut picture).is_ok() {
        pictures.push(picture[..luma].to_vec());
    }
    let status = decoder.wait().map_err(|e| format!("ffmpeg is lost: {e}"))?;
    let words = fs::read_to_string(&log).map_err(|e| format!("cannot read {}: {e}", log.display()))?;
    let numbers: Vec<usize> = words.lines().filter_map(number).collect();
    if !status.success() || numbers.len() != pictures.len() {
        return Err(format!(
            "ffmpeg returned {} frames and {} numbers ({status}); see {}",
            pictures.len(),
            numbers.len(),
            log.display()
        ));
    }
    Ok((numbers, pictures))
}

/// The name of a file as ffmpeg takes it, whatever stands in it.
fn from(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

/// The number in a line of ffmpeg's `showinfo`.
fn number(line: &str) -> Option<usize> {
    let rest = line.contains("Parsed_showinfo").then(|| line.split(" pts:").nth(1))??;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the frames in IVF, which has a time for each.
fn ivf(clip: &Clip, came: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut out = b"DKIF\0\0\x20\0H264".to_vec();
    out.extend((clip.width as u16).to_le_bytes());
    out.extend((clip.height as u16).to_le_bytes());
    // 30 units a second: numbers are their own times.
    out.extend(30_u32.to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend((came.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    for (n, bytes) in came {
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend((*n as u64).to_le_bytes());
        out.extend(bytes);
    }
    out
}

/// Returns `true` if an access unit has a sequence parameter set (H.264 §7.4.1), without which nothing is decoded.
fn has_parameters(coded: &[u8]) -> bool {
    coded.windows(4).any(|it| it[..3] == [0, 0, 1] && it[3] & 0x1F == 7)
}

/// Returns `true` if an access unit has a slice of an IDR frame.
pub(crate) fn is_key(coded: &[u8]) -> bool {
    coded.windows(4).take(4096).any(|it| it[..3] == [0, 0, 1] && it[3] & 0x1F == 5)
}

/// What a frame references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    I,
    P,
    B,
}

/// The kind of an access unit, by the type of its first slice (H.264 §7.4.3); none if it has no slice.
pub(crate) fn kind(coded: &[u8]) -> Option<Kind> {
    let at = coded.windows(4).position(|it| it[..3] == [0, 0, 1] && matches!(it[3] & 0x1F, 1 | 5))? + 4;
    let (_first_macroblock, next) = unsigned(&coded[at..], 0)?;
    match unsigned(&coded[at..], next)?.0 % 5 {
        0 | 3 => Some(Kind::P),
        1 => Some(Kind::B),
        _ => Some(Kind::I),
    }
}

/// The number at bit `from` in Exp-Golomb code (H.264 §9.1), and where the next one begins.
fn unsigned(bytes: &[u8], from: usize) -> Option<(u32, usize)> {
    let bit = |at: usize| Some(u32::from(bytes.get(at / 8)? >> (7 - at % 8) & 1));
    let mut zeros = 0;
    while bit(from + zeros)? == 0 {
        zeros += 1;
    }
    if zeros > 30 {
        return None;
    }
    let begin = from + zeros;
    let value = (begin..=begin + zeros).try_fold(0, |value, at| Some(value << 1 | bit(at)?))?;
    Some((value - 1, begin + zeros + 1))
}

/// Returns the PSNR of two frames, dB.
fn difference(one: &[u8], other: &[u8]) -> f64 {
    let squares: u64 = one.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum();
    let mean = squares as f64 / one.len().max(1) as f64;
    if squares == 0 { EQUAL } else { (10.0 * (255.0 * 255.0 / mean).log10()).min(EQUAL) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psnr_is_what_it_is_and_numbers_are_read() {
        assert!((difference(&[100; 4], &[110; 4]) - 28.13).abs() < 0.01);
        assert_eq!(difference(&[1, 2], &[1, 2]), EQUAL);
        assert_eq!(number("[Parsed_showinfo_0 @ 0x5] n:   3 pts:     17 pts_time:0.56 fmt:yuv420p"), Some(17));
        assert_eq!(number("Stream #0:0 pts: 4"), None);
    }

    #[test]
    fn without_parameters_nothing_is_shown() {
        let mut file = b"YUV4MPEG2 W16 H16 C420jpeg\nFRAME\n".to_vec();
        file.extend([100; 384]);
        let clip = Clip::parse(file).unwrap();
        let came = [(1, vec![0, 0, 0, 1, 0x41, 0x9A, 0])];
        let (shown, each) = compare(&clip, &came, 2, &[false, true], Path::new("/nowhere")).unwrap();
        assert_eq!(each.len(), 2);
        assert!(each.iter().all(|it| it[0] == it[1] && (it[1] - difference(&[100], &[255])).abs() < 1e-9));
        assert!((shown.white - shown.frozen).abs() < 1e-9);
    }

    #[test]
    fn the_kind_of_a_picture_is_that_of_its_first_slice() {
        // first_mb_in_slice 0 is the bit 1, then slice_type: 7 is 0001000, 5 is 00110, 6 is 00111.
        for (bits, wanted) in [(0b1000_1000, Kind::I), (0b1001_1000, Kind::P), (0b1001_1100, Kind::B)] {
            assert_eq!(kind(&[0, 0, 0, 1, 0x09, 0x10, 0, 0, 1, 0x41, bits, 0]), Some(wanted));
        }
        assert_eq!(kind(&[0, 0, 1, 0x65, 0b1000_1000, 0]), Some(Kind::I));
        assert_eq!(kind(&[0, 0, 1, 0x67, 0x88]), None);
        assert_eq!(kind(&[0, 0, 1, 0x41, 0]), None, "it ends too early");
    }
}
