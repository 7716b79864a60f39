//! What of the inputs is there. A camera or a microphone that is gone is looked for again, and the
//! stream goes on with what works.

use crate::audio::Audio;
use crate::input::Input;
use gst::prelude::*;
use gstreamer as gst;

/// What is gone is looked for this often.
pub(crate) const AGAIN: gst::ClockTime = gst::ClockTime::SECOND;
/// A device that is there delivers something within this time.
const FIRST: gst::ClockTime = gst::ClockTime::from_seconds(3);
/// Video beside audio while the camera is gone.
pub(crate) const BLACK: &str = "videotestsrc is-live=true pattern=black";

/// An input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Video,
    Audio,
}

/// Which inputs are there.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) video: bool,
    pub(crate) audio: bool,
    input: &'a Input,
    source: &'a Audio,
    /// The kind of element that is the microphone, once it has played.
    microphone: Option<String>,
}

impl<'a> Parts<'a> {
    pub(crate) const fn new(input: &'a Input, source: &'a Audio, audio: bool) -> Self {
        Self { video: true, audio, input, source, microphone: None }
    }

    /// Returns `true` if there is nothing to send.
    pub(crate) const fn nothing(&self) -> bool {
        !self.video && !self.audio
    }

    /// Which input an element of a pipeline belongs to; `None`: it is behind them.
    pub(crate) fn part(&self, pipeline: &gst::Pipeline, from: &gst::Object) -> Option<Part> {
        // A microphone that does not start is no longer in its bin when that is heard of.
        let is_microphone = *self.source == Audio::Microphone && from.name().starts_with("microphone");
        // A file's own track fails with the file.
        if is_microphone || *self.source != Audio::Own && is_before(pipeline, "heard", from) {
            return Some(Part::Audio);
        }
        // Not what is before the encoder: a source whose video format is not known yet leads
        // nowhere.
        let is_behind = ["encoder", "parser", "mux", "out"]
            .iter()
            .any(|name| pipeline.by_name(name).is_some_and(|element| is_in(&element, from)));
        (!is_behind).then_some(Part::Video)
    }

    /// Returns `true` if the stream can go on, or wait, without it.
    pub(crate) const fn may_go_on_without(&self, part: Part) -> bool {
        match part {
            Part::Video => self.input.may_come_back(),
            // A file would begin anew.
            Part::Audio => !matches!(self.input, Input::File(_)),
        }
    }

    /// What to do if it does not work; `None`: something behind the inputs.
    pub(crate) const fn hint(&self, part: Option<Part>) -> &'static str {
        match part {
            Some(Part::Video) => self.input.hint(),
            Some(Part::Audio) => self.source.hint(),
            None => "with GST_DEBUG=2 in its environment it says more; `--encoder` takes another encoder",
        }
    }

    /// It is gone.
    pub(crate) fn gone(&mut self, part: Part, why: &str) {
        match part {
            Part::Video => {
                self.video = false;
                let meanwhile = if self.audio { ", and sending black frames with the audio" } else { "" };
                eprintln!("warning: the camera is gone: {why}; looking for it{meanwhile}");
            }
            Part::Audio => {
                self.audio = false;
                let until = if *self.source == Audio::Microphone { " until the microphone is back" } else { "" };
                eprintln!("warning: the audio is gone: {why}; going on without it{until}");
            }
        }
    }

    /// It is there again.
    pub(crate) fn back(&mut self, part: Part, quiet: bool) {
        let what = match part {
            Part::Video => {
                self.video = true;
                "camera"
            }
            Part::Audio => {
                self.audio = true;
                "microphone"
            }
        };
        if !quiet {
            eprintln!("the {what} is back");
        }
    }

    /// Remembers the microphone of a pipeline that plays.
    pub(crate) fn remember(&mut self, pipeline: &gst::Pipeline) {
        // If no microphone works, autoaudiosrc puts in silence: the first one, which worked,
        // counts.
        if *self.source != Audio::Microphone || self.microphone.is_some() {
            return;
        }
        let bin = pipeline.by_name("microphone").and_then(|it| it.downcast::<gst::Bin>().ok());
        let factory = bin.and_then(|bin| bin.children().first().and_then(gst::Element::factory));
        self.microphone = factory.map(|it| it.name().into());
    }

    /// How long a pipeline plays before something is looked for; `None`: nothing is.
    pub(crate) fn patience(&self) -> Option<gst::ClockTime> {
        (!self.video || self.missed_microphone().is_some()).then_some(AGAIN)
    }

    fn missed_microphone(&self) -> Option<&str> {
        self.microphone.as_deref().filter(|_| !self.audio)
    }

    /// Looks for what is gone.
    pub(crate) fn look(&self) -> Option<Part> {
        if !self.video && delivers("v4l2src name=input", self.input.property()) {
            return Some(Part::Video);
        }
        delivers(self.missed_microphone()?, None).then_some(Part::Audio)
    }
}

/// Returns `true` if `from` is `element` or in it.
fn is_in(element: &gst::Element, from: &gst::Object) -> bool {
    *from == *element.upcast_ref::<gst::Object>() || from.has_as_ancestor(element)
}

/// Returns `true` if `from` is before the element of this name.
fn is_before(pipeline: &gst::Pipeline, name: &str, from: &gst::Object) -> bool {
    let mut to_see: Vec<gst::Element> = pipeline.by_name(name).into_iter().collect();
    while let Some(element) = to_see.pop() {
        if name != element.name() && is_in(&element, from) {
            return true;
        }
        let before = |pad: gst::Pad| pad.peer().and_then(|it| it.parent_element());
        to_see.extend(element.sink_pads().into_iter().filter_map(before));
    }
    false
}

/// Returns `true` if a source delivers anything.
fn delivers(source: &str, property: Option<(&str, &str)>) -> bool {
    let Ok(made) = gst::parse::launch(&format!("{source} num-buffers=1 ! fakesink")) else { return false };
    let (Some(bus), Some(bin)) = (made.bus(), made.downcast_ref::<gst::Bin>()) else { return false };
    if let (Some((name, value)), Some(input)) = (property, bin.by_name("input")) {
        input.set_property(name, value);
    }
    let ends = [gst::MessageType::Error, gst::MessageType::Eos];
    let delivers = made.set_state(gst::State::Playing).is_ok()
        && bus.timed_pop_filtered(FIRST, &ends).is_some_and(|it| it.type_() == gst::MessageType::Eos);
    let _ = made.set_state(gst::State::Null);
    delivers
}
