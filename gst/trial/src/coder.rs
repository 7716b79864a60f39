//! x264 in step with simulated time: a frame goes in, and its coded form comes out before anything
//! else happens.

use crate::clip::Clip;
use braidcast_lab::X264Sizes;
use gst::prelude::*;
use gstreamer as gst;

/// An encoder.
pub(crate) trait Coder {
    /// Encodes frame `n` at `rate`, bit/s, or as before.
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
    plays: bool,
    /// When the first frame that came out is shown.
    first_at: Option<gst::ClockTime>,
}

impl<'a> X264<'a> {
    /// By `words`, as `gst-launch-1.0` takes an element named `encoder`.
    pub(crate) fn new(clip: &'a Clip, words: &str, fps: i32) -> Result<Self, String> {
        gst::init().map_err(|e| format!("GStreamer does not start: {e}"))?;
        let pipeline = format!(
            "appsrc name=in format=time caps=video/x-raw,format=I420,width={},height={},framerate={fps}/1 ! {} threads=1 \
             ! video/x-h264,stream-format=byte-stream,alignment=au ! appsink name=out sync=false",
            clip.width, clip.height, words
        );
        let made = gst::parse::launch(&pipeline).map_err(|e| format!("cannot make the pipeline: {e}"))?;
        let pipeline = made.downcast::<gst::Pipeline>().map_err(|_| "the description is not a pipeline".to_owned())?;
        let by_name = |name: &str| pipeline.by_name(name).ok_or_else(|| format!("the pipeline has no {name}"));
        let (source, encoder, sink) = (by_name("in")?, by_name("encoder")?, by_name("out")?);
        Ok(Self { clip, fps, pipeline, encoder, source, sink, plays: false, first_at: None })
    }
}

impl X264<'_> {
    /// Hands it frame `n`, to be encoded at `rate`, bit/s, or as before.
    pub(crate) fn give(&mut self, n: usize, rate: Option<u64>) -> Result<(), String> {
        if let Some(rate) = rate {
            self.encoder.set_property("bitrate", u32::try_from(rate / 1000).unwrap_or(u32::MAX).clamp(1, 2_048_000));
        }
        if !self.plays {
            // Only now: else it is a matter of chance whether x264 is opened at the first rate or changes to it.
            self.pipeline.set_state(gst::State::Playing).map_err(|e| format!("the pipeline does not start: {e}"))?;
            self.plays = true;
        }
        let mut picture = gst::Buffer::from_slice(self.clip.picture(n).to_vec());
        let interval = gst::ClockTime::SECOND / self.fps as u64;
        if let Some(it) = picture.get_mut() {
            it.set_pts(interval * n as u64);
            it.set_duration(interval);
        }
        let pushed = self.source.emit_by_name::<gst::FlowReturn>("push-buffer", &[&picture]);
        if pushed != gst::FlowReturn::Ok {
            return Err(format!("x264enc takes no frame: {pushed:?}"));
        }
        Ok(())
    }

    /// No more frames come: what is left comes out.
    pub(crate) fn end(&mut self) {
        let _ = self.source.emit_by_name::<gst::FlowReturn>("end-of-stream", &[]);
    }

    /// Returns what comes out next, in coding order, and the number of that frame.
    pub(crate) fn take(&mut self) -> Result<(usize, Vec<u8>), String> {
        let wait = gst::ClockTime::from_seconds(20);
        let sample = self.sink.emit_by_name::<Option<gst::Sample>>("try-pull-sample", &[&wait.nseconds()]);
        let buffer = sample.as_ref().and_then(|it| it.buffer()).ok_or("x264enc returns no frame")?;
        let shown_at = buffer.pts().ok_or("x264enc returns a frame without a time")?;
        let bytes = buffer.map_readable().map_err(|e| format!("x264enc returns a frame that cannot be read: {e}"))?;
        // GStreamer's times do not begin at zero; the first frame that comes out is frame 0.
        let since = shown_at.saturating_sub(*self.first_at.get_or_insert(shown_at)).nseconds();
        let interval = gst::ClockTime::SECOND.nseconds() / self.fps as u64;
        Ok((((since + interval / 2) / interval) as usize, bytes.to_vec()))
    }
}

impl Coder for X264<'_> {
    fn encode(&mut self, n: usize, rate: Option<u64>) -> Result<Vec<u8>, String> {
        self.give(n, rate)?;
        Ok(self.take()?.1)
    }
}

impl Drop for X264<'_> {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Sizes as x264 has them, and nothing to look at, for runs where only time counts: the lab's. A test
/// below measures how far off they are.
pub(crate) struct Model(X264Sizes);

/// Sizes vary the same each time.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

impl Model {
    pub(crate) const fn new(fps: i32, first: u64) -> Self {
        Self(X264Sizes::new(fps as u32, first, SEED))
    }
}

impl Coder for Model {
    fn encode(&mut self, _: usize, rate: Option<u64>) -> Result<Vec<u8>, String> {
        Ok(vec![0; self.0.next(rate)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;
    use braidcast_gst::x264;
    use braidcast_rate::Profile;

    /// Waves that move, and noise: 320x180.
    fn clip(pictures: usize) -> Clip {
        let (width, height) = (320_usize, 180_usize);
        let mut file = format!("YUV4MPEG2 W{width} H{height} F30:1 C420jpeg\n").into_bytes();
        let mut random = Rng::from_seed(1);
        for n in 0..pictures {
            file.extend(b"FRAME\n");
            for y in 0..height {
                for x in 0..width {
                    let wave =
                        ((x + 3 * n) as f64 / 9.0).sin() + ((y + 2 * n) as f64 / 7.0 + (x as f64 / 40.0).sin()).cos();
                    file.push((128.0 + 40.0 * wave + 6.0 * (2.0 * random.f64() - 1.0)) as u8);
                }
            }
            file.extend(std::iter::repeat_n(128, width * height / 2));
        }
        Clip::parse(file).unwrap()
    }

    /// Returns the mean share of their allowance that frames take, and its standard deviation.
    fn share(coder: &mut dyn Coder, rate: u64) -> (f64, f64) {
        let may = rate as f64 / 30.0 / 8.0;
        let shares: Vec<f64> =
            (0..90).map(|n| coder.encode(n, Some(rate)).unwrap().len() as f64 / may).skip(30).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let variance = shares.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / shares.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn the_model_has_x264s_sizes() {
        let clip = clip(90);
        // What it was fitted to is a film of 640x360; of noise x264 makes less at high rates.
        for rate in [600_000, 2_000_000] {
            let words = x264::words(Profile::Live, 30, rate);
            let (real, real_width) = share(&mut X264::new(&clip, &words, 30).unwrap(), rate);
            let (model, model_width) = share(&mut Model::new(30, rate), rate);
            println!("{rate} bit/s: x264 {real:.3} ± {real_width:.3}, the model {model:.3} ± {model_width:.3}");
            assert!((real - model).abs() < 0.13, "{rate} bit/s: x264 {real:.3}, the model {model:.3}");
            assert!(real_width < 0.25, "{rate} bit/s: ± {real_width:.3}");
        }
    }

    #[test]
    fn the_very_next_picture_has_the_new_rate() {
        let clip = clip(60);
        let words = x264::words(Profile::Live, 30, 4_000_000);
        let mut coder = X264::new(&clip, &words, 30).unwrap();
        (0..40).for_each(|n| assert!(!coder.encode(n, None).unwrap().is_empty()));
        let next = coder.encode(40, Some(1_000_000)).unwrap().len() as f64 * 8.0 * 30.0;
        assert!(next < 1.15e6, "{next:.0} bit/s after a fall to 1 Mbit/s");
    }

    #[test]
    fn below_its_least_rate_x264_keeps_the_size_that_pictures_had() {
        let clip = clip(90);
        let after = |rate: u64| {
            let words = x264::words(Profile::Live, 30, 2_000_000);
            let mut coder = X264::new(&clip, &words, 30).unwrap();
            let mut sum = |pictures: std::ops::Range<usize>, rate| {
                pictures.map(|n| coder.encode(n, rate).unwrap().len()).sum::<usize>()
            };
            sum(0..50, None);
            sum(50..60, Some(rate)) as f64 * 8.0 * 3.0
        };
        let least = Profile::Live.least_rate(30);
        let (at, below) = (after(least), after(least - 1000));
        println!("set to {least} bit/s x264 makes {at:.0}, to 1 kbit/s less {below:.0}");
        assert!(below > 3.0 * at, "{below:.0} bit/s, {at:.0}");
    }
}
