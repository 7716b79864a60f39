//! x264 in step with simulated time: a picture goes in, and what is made of it comes out before anything else happens.

use crate::clip::Clip;
use braidcast_gst::follow::Profile;
use braidcast_gst::x264;
use gst::prelude::*;
use gstreamer as gst;

/// An encoder.
pub(crate) trait Coder {
    /// Encodes picture `n` at `rate`, bit/s, or as before.
    fn encode(&mut self, n: usize, rate: Option<u64>) -> Result<Vec<u8>, String>;
}

/// GStreamer's x264enc.
pub(crate) struct X264<'a> {
    clip: &'a Clip,
    fps: i32,
    pipeline: gst::Pipeline,
    encoder: gst::Element,
    source: gst::Element,
    sink: gst::Element,
}

impl<'a> X264<'a> {
    pub(crate) fn new(clip: &'a Clip, profile: Profile, fps: i32, first: u64) -> Result<Self, String> {
        gst::init().map_err(|e| format!("GStreamer does not start: {e}"))?;
        let words = format!(
            "appsrc name=in format=time caps=video/x-raw,format=I420,width={},height={},framerate={fps}/1 ! {} threads=1 \
             ! video/x-h264,stream-format=byte-stream,alignment=au ! appsink name=out sync=false",
            clip.width,
            clip.height,
            x264::words(profile, fps, first)
        );
        let made = gst::parse::launch(&words).map_err(|e| format!("cannot make the pipeline: {e}"))?;
        let pipeline = made.downcast::<gst::Pipeline>().map_err(|_| "the description is no pipeline".to_owned())?;
        let by_name = |name: &str| pipeline.by_name(name).ok_or_else(|| format!("the pipeline has no {name}"));
        let (source, encoder, sink) = (by_name("in")?, by_name("encoder")?, by_name("out")?);
        pipeline.set_state(gst::State::Playing).map_err(|e| format!("the pipeline does not start: {e}"))?;
        Ok(Self { clip, fps, pipeline, encoder, source, sink })
    }
}

impl Coder for X264<'_> {
    fn encode(&mut self, n: usize, rate: Option<u64>) -> Result<Vec<u8>, String> {
        if let Some(rate) = rate {
            self.encoder.set_property("bitrate", u32::try_from(rate / 1000).unwrap_or(u32::MAX).clamp(1, 2_048_000));
        }
        let mut picture = gst::Buffer::from_slice(self.clip.picture(n).to_vec());
        let interval = gst::ClockTime::SECOND / self.fps as u64;
        if let Some(it) = picture.get_mut() {
            it.set_pts(interval * n as u64);
            it.set_duration(interval);
        }
        let pushed = self.source.emit_by_name::<gst::FlowReturn>("push-buffer", &[&picture]);
        if pushed != gst::FlowReturn::Ok {
            return Err(format!("x264enc takes no picture: {pushed:?}"));
        }
        let wait = gst::ClockTime::from_seconds(20);
        let sample = self.sink.emit_by_name::<Option<gst::Sample>>("try-pull-sample", &[&wait.nseconds()]);
        let made = sample.as_ref().and_then(|it| it.buffer()).and_then(|it| it.map_readable().ok());
        made.map(|it| it.to_vec()).ok_or_else(|| format!("x264enc gives nothing for picture {n}"))
    }
}

impl Drop for X264<'_> {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Sizes as x264 has them, and nothing to look at: for runs where only time counts.
///
/// With a rate-control buffer of one picture x264 keeps below what a picture may have, by another amount each time, as it does not foresee
/// what a picture takes. How far off this is: `python3 tools/encode-trial.py model`.
pub(crate) struct Model {
    fps: f64,
    rate: f64,
    random: u64,
}

/// The mean share of what a picture may have, and half the width of what it varies by.
const SHARE: f64 = 0.85;
const WIDTH: f64 = 0.113;
/// No picture is smaller, bytes.
const SMALLEST: f64 = 90.0;

impl Model {
    pub(crate) const fn new(fps: i32, first: u64) -> Self {
        Self { fps: fps as f64, rate: first as f64, random: 0x9E37_79B9_7F4A_7C15 }
    }

    /// From -1 to 1.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

impl Coder for Model {
    fn encode(&mut self, _: usize, rate: Option<u64>) -> Result<Vec<u8>, String> {
        self.rate = rate.map_or(self.rate, |it| it as f64);
        let share = SHARE + WIDTH * self.draw();
        Ok(vec![0; (self.rate / self.fps / 8.0 * share).max(SMALLEST) as usize])
    }
}
