//! `braidcast lab clip`: the frames of a recording as text.

use crate::args::LabClipArgs;
use crate::failure::{Failure, Outcome};
use crate::out::text;
use braidcast_lab::clip::{Clip, NotTs};
use std::fs::File;

pub(super) fn run(args: &LabClipArgs) -> Outcome {
    let name = args.input.display();
    let file = File::open(&args.input)
        .map_err(|e| Failure::new(format!("cannot open {name}: {e}"), "check the path and its permissions"))?;
    let clip = Clip::of_ts(file).map_err(|e| {
        let fix = match e {
            NotTs::Io(_) => "check the disk that it comes from",
            NotTs::NoVideo => "give an MPEG transport stream with H.264, H.265 or MPEG-2 video; ffmpeg -i FILE -c copy -f mpegts OUT.ts makes one",
        };
        Failure::new(format!("{name}: {e}"), fix)
    })?;
    let file_name = args.input.file_name().unwrap_or_default().to_string_lossy();
    let head = format!(
        "{file_name}: {:.3} Mbit/s for {} s. MS BYTES KIND [PTS]; kinds: T tables, A audio, I, P, R (a B that others reference), B",
        clip.bits_per_second() / 1e6,
        clip.period().as_secs_f64()
    );
    let text = clip.to_text(&head);
    match &args.out {
        None => text::print(text.trim_end()),
        Some(out) => std::fs::write(out, text)
            .map_err(|e| Failure::new(format!("cannot write {}: {e}", out.display()), "choose another place by --out")),
    }
}
