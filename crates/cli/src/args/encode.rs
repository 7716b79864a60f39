use super::StreamArgs;
use braidcast_sim::link::parse;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `braidcast encode`.
#[derive(Args, Debug)]
#[command(after_help = "\
The encoder is the program braidcast-encode beside this one, or in PATH: `make gst` builds it. It needs GStreamer and the plugin of the \
encoder (docs/encode.md).

Examples:
  braidcast encode camera --to home.example:9000 --via wlan0,wwan0
  braidcast encode test --to 127.0.0.1:9000 --size 1280x720 --fps 30 --rate-range 300kbit-6mbit
  braidcast encode film.mp4 --to 192.0.2.1:9000 --profile quality
  braidcast encode camera --audio mic --to 192.0.2.1:9000
  braidcast encode 'gst:v4l2src device=/dev/video2 ! image/jpeg ! jpegdec' --to 192.0.2.1:9000")]
pub(crate) struct EncodeArgs {
    /// What to encode: test (a moving test pattern), camera or a device (for example /dev/video0),
    /// screen, a FILE, or gst:PIPELINE, a gst-launch-1.0 description that produces raw video. If a
    /// camera is unplugged, it is looked for once a second; meanwhile audio goes on, with black
    /// frames
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,
    /// How closely the encoder follows: live (every frame has the size that the network allows: a
    /// rate-control buffer of one frame, intra refresh in place of key frames) or quality (only the
    /// mean over a second follows: better video on networks that change slowly, with more latency)
    #[arg(help_heading = "Encoder", long, value_enum, default_value_t = Profile::Live)]
    pub(crate) profile: Profile,
    /// GStreamer element that encodes. If it is not x264enc, only its property `bitrate` is set
    #[arg(help_heading = "Encoder", long, value_name = "ELEMENT", default_value = "x264enc", value_parser = element)]
    pub(crate) encoder: String,
    /// Size of the video [default: that of the source; of test, 1280x720]
    #[arg(help_heading = "Encoder", long, value_name = "WIDTHxHEIGHT", value_parser = size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Frames per second, 1 to 240
    #[arg(help_heading = "Encoder", long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=240))]
    pub(crate) fps: u32,
    /// Audio: auto (the track of a FILE that has one), none, test (ticks), mic (the system's), or
    /// gst:PIPELINE, which produces raw audio. If a microphone is unplugged, it is looked for once
    /// a second; meanwhile video goes on
    #[arg(help_heading = "Encoder", long, value_name = "SOURCE", default_value = "auto", value_parser = audio)]
    pub(crate) audio: String,
    /// GStreamer element that encodes audio, for example avenc_aac
    #[arg(help_heading = "Encoder", long, value_name = "ELEMENT", default_value = "opusenc", value_parser = element)]
    pub(crate) audio_encoder: String,
    /// Rate of the audio, 6kbit to 512kbit; it does not change, as audio goes before video
    #[arg(help_heading = "Encoder", long, value_name = "RATE", default_value = "64kbit", value_parser = audio_rate)]
    pub(crate) audio_rate: AudioRate,
    /// Write the allowed and the actual size of each frame as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: StreamArgs,
}

/// How an encoder follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Profile {
    // Comments that are not documentation, as clap would make the help of each value of them.
    // Every frame has the size that the network allows.
    Live,
    // Only the mean over a second follows.
    Quality,
}

impl Profile {
    /// Its name on command lines.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Quality => "quality",
        }
    }
}

/// Bit/s of audio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AudioRate(pub(crate) u64);

/// A rate that encoders of audio are able to make.
fn audio_rate(text: &str) -> Result<AudioRate, String> {
    let rate = parse::rate(text.trim()).map_err(|error| error.to_string())?;
    let fits = (6_000..=512_000).contains(&rate);
    fits.then_some(AudioRate(rate)).ok_or_else(|| format!("'{text}' is not a rate of audio: write 6kbit to 512kbit"))
}

/// Checks the value of `--audio`: the source of the audio.
fn audio(text: &str) -> Result<String, String> {
    let fits = ["auto", "none", "test", "mic"].contains(&text) || text.starts_with("gst:");
    if fits { Ok(text.into()) } else { Err("write auto, none, test, mic, or gst:PIPELINE".into()) }
}

/// The name of an element.
fn element(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if fits { Ok(text.into()) } else { Err("name an element of GStreamer, for example x264enc or vah264enc".into()) }
}

/// `WIDTHxHEIGHT`, both even as 4:2:0 needs it.
fn size(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("'{text}' is not a size: write two even numbers of 16 to 8192, for example 1280x720");
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let side = |text: &str| text.parse().ok().filter(|side: &u32| (16..=8192).contains(side) && side.is_multiple_of(2));
    Ok((side(width).ok_or_else(wrong)?, side(height).ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_even() {
        assert_eq!(size("1280x720"), Ok((1280, 720)));
        for wrong in ["1280", "1280x", "1281x720", "8x8", "99999x16", "axb"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(audio("mic").is_ok() && audio("gst:x").is_ok() && audio("microphone").is_err());
        assert_eq!(audio_rate("96kbit"), Ok(AudioRate(96_000)));
        assert!(audio_rate("1kbit").is_err() && audio_rate("1mbit").is_err());
        assert!(element("x264enc").is_ok() && element("x264enc ! fakesink").is_err());
    }
}
