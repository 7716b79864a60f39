//! Which streams are taken, and where each goes.

use super::cut::Cutter;
use super::outputs::Outputs;
use super::place::Place;
use super::recording::Existing;
use super::room::Room;
use super::sink::Sink;
use crate::args::ReceiveArgs;
use crate::args::values::{Accept, Output};
use crate::cmd::watch::{Gallery, Thumbnail};
use crate::failure::{Failure, Outcome};
use braidcast_driver::Driver;
use braidcast_session::Admission;
use std::sync::Arc;
use std::time::Duration;

/// Streams at a time if each has a name of its own choice, unless `--streams` says otherwise.
const MOST: usize = 64;

/// Endings of files that players take for something else than MPEG-TS.
const CONTAINERS: [&str; 8] = ["mp4", "m4v", "m4a", "mov", "mkv", "webm", "avi", "flv"];

/// What `OUTPUT`, `--accept` and their flags come to.
pub(super) struct Plan {
    outputs: Vec<Output>,
    accept: Vec<Accept>,
    existing: Existing,
    segment: Option<Duration>,
    keep: bool,
    /// Streams at a time if each has a name of its own choice.
    most: usize,
    /// What comes is served too, and needs no output.
    serves: bool,
    /// Each sender has a name that its key says, and `accept` is what outputs they have of their own.
    by_key: bool,
    /// Where streams show what they are.
    gallery: Option<Arc<Gallery>>,
}

impl Plan {
    pub(super) fn new(args: &ReceiveArgs, outputs: Vec<Output>) -> Outcome<Self> {
        let existing = match (args.append, args.overwrite) {
            (true, _) => Existing::Append,
            (_, true) => Existing::Overwrite,
            _ => Existing::Keep,
        };
        let plan = Self {
            outputs,
            accept: args.accept.clone(),
            existing,
            segment: args.segment,
            keep: args.keep,
            most: args.streams.unwrap_or(MOST),
            by_key: args.authorized.is_some(),
            serves: args.serve.serve.is_some(),
            gallery: None,
        };
        plan.check()?;
        if args.streams.is_some() && !plan.needs_names() {
            return Err(Failure::usage(
                "--streams has no effect: there is one stream at a time, as no output is by its name",
                "leave out --streams, or put {name} into FILE",
            ));
        }
        Ok(plan)
    }

    fn check(&self) -> Outcome {
        let all: Vec<&Output> = self.outputs.iter().chain(self.accept.iter().map(|it| &it.output)).collect();
        for (nth, output) in all.iter().enumerate() {
            let twice = all[..nth].contains(output);
            let named = matches!(output, Output::File(path) if Place::is_named(path));
            if twice && (!named || self.accept.is_empty()) {
                return Err(Failure::usage(
                    format!("the output {output} is there twice"),
                    "leave one out, or put {name} into FILE: each stream then has its own",
                ));
            }
        }
        let to_file = all.iter().any(|output| matches!(output, Output::File(_)));
        let idle = [
            ("--segment", self.segment.is_some()),
            ("--append", self.existing == Existing::Append),
            ("--overwrite", self.existing == Existing::Overwrite),
        ];
        let idle = idle.iter().find(|(_, given)| *given && !to_file && !all.is_empty());
        if let Some((flag, _)) = idle {
            return Err(Failure::usage(
                format!("{flag} has no effect: no OUTPUT is a FILE"),
                format!("leave out {flag}, or add a FILE to record to"),
            ));
        }
        if self.is_named()
            && self.outputs.iter().any(|output| !is_named(output) && matches!(output, Output::File(_) | Output::Stdout))
        {
            return Err(Failure::usage(
                "one output has {name} and another one does not: several streams would be mixed in that file or on stdout",
                "put {name} into each FILE",
            ));
        }
        if self.segment.is_some() { all.into_iter().try_for_each(takes_live) } else { Ok(()) }
    }

    /// Refuses a live stream whose recording would be named after another format than its own.
    pub(super) fn check_live(&self, name: &str) -> Outcome {
        self.outputs_of(name).into_iter().try_for_each(takes_live)
    }

    /// Returns `true` if each stream has an output by its own name.
    pub(super) fn is_named(&self) -> bool {
        self.by_key || self.outputs.iter().any(is_named)
    }

    /// Streams show in `gallery` what they are, if there is one.
    pub(super) fn show_in(&mut self, gallery: Option<&Arc<Gallery>>) -> Outcome {
        self.gallery = gallery.cloned();
        if gallery.is_some() { Thumbnail::check() } else { Ok(()) }
    }

    /// Returns `true` if a sender by its key needs an output of its own.
    pub(super) fn needs_outputs(&self) -> bool {
        self.outputs.is_empty() && !self.serves
    }

    /// Outputs of senders by their keys.
    pub(super) fn set_accepted(&mut self, accept: Vec<Accept>) -> Outcome {
        self.accept = accept;
        self.check()
    }

    /// What the stream `name` goes to, for people.
    pub(super) fn describe(&self, name: &str) -> String {
        self.outputs_of(name).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Returns `true` if the name of a stream decides where it goes.
    pub(super) fn needs_names(&self) -> bool {
        self.is_named() || !self.accept.is_empty()
    }

    /// Neighbours that come in at one place at a time.
    pub(super) fn most_callers(&self) -> usize {
        if self.needs_names() { self.most } else { 1 }
    }

    /// Returns `true` if names are those of keys.
    pub(super) const fn is_by_key(&self) -> bool {
        self.by_key
    }

    /// The names that are taken; `None`: any.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        if let Admission::Named(names) = self.admission() { Some(names) } else { None }
    }

    fn outputs_of(&self, name: &str) -> Vec<&Output> {
        let accepted = self.accept.iter().filter(|accept| accept.name == name).map(|accept| &accept.output);
        self.outputs.iter().chain(accepted).collect()
    }

    /// Returns `true` if several streams are taken at a time.
    pub(super) fn is_many(&self) -> bool {
        self.is_named() || self.accept.len() > 1
    }

    pub(super) fn admission(&self) -> Admission {
        if self.is_named() {
            return Admission::Each(self.most);
        }
        let mut names: Vec<String> = self.accept.iter().map(|accept| accept.name.clone()).collect();
        names.sort();
        names.dedup();
        if names.is_empty() { Admission::One } else { Admission::Named(names) }
    }

    /// Opens what the stream `name` goes to.
    pub(super) fn open(&self, name: &str, driver: &mut Driver) -> Outcome<Room> {
        let outputs = self.outputs_of(name);
        let mut sinks = Vec::new();
        for output in &outputs {
            sinks.push(Sink::open(output, name, self.existing, self.segment.is_some(), driver)?);
        }
        let thumbnail = self.gallery.as_ref().map_or(Ok(None), Thumbnail::begin)?;
        let outputs = Outputs::new(sinks, self.segment.map(Cutter::new), self.keep, thumbnail);
        Ok(Room::new(name, self.describe(name), outputs))
    }
}

/// What is live is recorded as the MPEG-TS that it is.
fn takes_live(output: &Output) -> Outcome {
    let Output::File(path) = output else { return Ok(()) };
    let ending = path.extension().map(|it| it.to_string_lossy().to_lowercase()).unwrap_or_default();
    if !CONTAINERS.contains(&ending.as_str()) {
        return Ok(());
    }
    let fragments =
        if matches!(&*ending, "mp4" | "m4v" | "m4a" | "mov") { " -movflags frag_keyframe+empty_moov" } else { "" };
    Err(Failure::usage(
        format!("live streams are recorded as MPEG-TS, and {} is named after another format", path.display()),
        format!(
            "record {}, or have ffmpeg make the file: braidcast receive … - | ffmpeg -i - -c copy{fragments} {}",
            path.with_extension("ts").display(),
            path.display()
        ),
    ))
}

fn is_named(output: &Output) -> bool {
    matches!(output, Output::File(path) if Place::is_named(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_stream_is_not_recorded_under_the_name_of_another_format() {
        let refused = |name: &str| takes_live(&Output::File(name.into())).err().map(|failure| failure.to_string());
        assert_eq!([refused("a/show.ts"), refused("show"), refused("show.m2ts")], [None, None, None]);
        let mp4 = refused("a/Show.MP4").unwrap();
        assert!(mp4.contains("a/Show.MP4 is named after another format"), "{mp4}");
        assert!(refused("{name}.mkv").is_some());
    }
}
