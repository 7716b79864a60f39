//! Audio beside the video.

use gst::prelude::*;
use gstreamer as gst;
use std::sync::mpsc;
use std::time::Duration;

/// A file says within this time what is in it.
const LOOK: Duration = Duration::from_secs(10);
/// What a transport stream adds to a packet of audio: the header of its PES packet, and Opus' own.
const HEADERS: usize = 16;

/// Where audio comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Audio {
    /// The file's own track, if it has one.
    Own,
    None,
    Test,
    Microphone,
    /// A description of a pipeline.
    Gst(String),
}

impl Audio {
    /// What `text` names.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "auto" => Self::Own,
            "none" => Self::None,
            "test" => Self::Test,
            "mic" => Self::Microphone,
            _ => {
                let description = text.strip_prefix("gst:");
                Self::Gst(description.ok_or("audio is auto, none, test, mic, or gst:PIPELINE")?.into())
            }
        })
    }

    /// The beginning of its branch; `None` without audio. `own`: what begins the branch of the
    /// file's own track, if it has one.
    pub(crate) fn description(&self, own: Option<&str>) -> Option<String> {
        match self {
            Self::Own => own.map(str::to_owned),
            Self::None => None,
            Self::Test => Some("audiotestsrc is-live=true wave=ticks".into()),
            Self::Microphone => Some("autoaudiosrc name=microphone".into()),
            Self::Gst(description) => Some(description.clone()),
        }
    }

    /// What to do if it does not work.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Microphone => {
                "`pactl list short sources` lists microphones of PulseAudio and PipeWire, `arecord -l` those of ALSA; `--audio none` does without"
            }
            Self::Gst(_) => "try it as gst-launch-1.0 takes it, with ` ! autoaudiosink` behind it",
            Self::Own | Self::None | Self::Test => "`gst-inspect-1.0` says which plugins do not load",
        }
    }

    /// Elements that it needs.
    pub(crate) const fn needs(&self) -> &'static [&'static str] {
        match self {
            Self::Test => &["audiotestsrc"],
            Self::Microphone => &["autoaudiosrc"],
            Self::Own | Self::None | Self::Gst(_) => &[],
        }
    }
}

/// The rest of the branch, behind `beginning`, up to the multiplexer; `rate` in bit/s.
pub(crate) fn branch(beginning: &str, encoder: &str, rate: u32) -> String {
    let parser = parser(encoder).map_or_else(String::new, |parser| format!("! {parser} "));
    // Of most encoders the property is in bit/s; lamemp3enc's is in kbit/s.
    let unit = if encoder.starts_with("lame") || encoder.starts_with("twolame") { 1000 } else { 1 };
    format!(
        " {beginning} ! audioconvert ! audioresample ! {encoder} name=audio bitrate={} {parser}! queue name=heard ! mux.",
        rate / unit
    )
}

/// What puts an encoder's packets into the form that multiplexers take.
pub(crate) fn parser(encoder: &str) -> Option<&'static str> {
    match encoder {
        _ if encoder.contains("opus") => Some("opusparse"),
        _ if encoder.contains("aac") => Some("aacparse"),
        _ if encoder.contains("mp3") || encoder.contains("mp2") => Some("mpegaudioparse"),
        _ => None,
    }
}

/// Bytes of a transport stream that a packet of audio takes.
pub(crate) fn multiplexed(bytes: usize) -> u64 {
    ((bytes + HEADERS).div_ceil(184) * 188) as u64
}

/// Returns `true` if the file at `path` has audio that can be decoded.
pub(crate) fn has_audio(path: &str) -> Result<bool, String> {
    let pipeline = gst::parse::launch("filesrc name=input ! decodebin name=decoded")
        .map_err(|error| format!("cannot look into {path}: {error}"))?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().map_err(|_| "that is not a pipeline".to_owned())?;
    let (say, hear) = mpsc::channel();
    if let (Some(input), Some(decoded)) = (pipeline.by_name("input"), pipeline.by_name("decoded")) {
        input.set_property("location", path);
        let (bin, no_more) = (pipeline.downgrade(), say.clone());
        decoded.connect_pad_added(move |_, pad| {
            let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
            let is_audio = caps.structure(0).is_some_and(|it| it.name().starts_with("audio/x-raw"));
            // What leads nowhere would be an error.
            if let Some(bin) = bin.upgrade()
                && let Ok(end) = gst::ElementFactory::make("fakesink").build()
                && bin.add(&end).is_ok()
            {
                let _ = end.sync_state_with_parent();
                let _ = end.static_pad("sink").map(|sink| pad.link(&sink));
            }
            if is_audio {
                let _ = say.send(true);
            }
        });
        decoded.connect_no_more_pads(move |_| {
            let _ = no_more.send(false);
        });
    }
    let _ = pipeline.set_state(gst::State::Paused);
    let found = hear.recv_timeout(LOOK);
    let _ = pipeline.set_state(gst::State::Null);
    // What cannot be decoded at all is said when it is to be played.
    Ok(found.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_encoders_are_told_apart() {
        assert_eq!(Audio::parse("mic"), Ok(Audio::Microphone));
        assert_eq!(Audio::parse("gst:a ! b").unwrap().description(None).unwrap(), "a ! b");
        assert!(Audio::parse("microphone").is_err() && Audio::None.description(Some("x")).is_none());
        assert_eq!(Audio::Own.description(Some("decoded.")).unwrap(), "decoded.");
        assert!(branch("x", "opusenc", 64_000).contains("bitrate=64000 ! opusparse"));
        assert!(branch("x", "lamemp3enc", 64_000).contains("bitrate=64 ! mpegaudioparse"));
        // Opus of 20 ms at 64 kbit/s is 160 bytes: one packet; 240 bytes are two.
        assert_eq!((multiplexed(160), multiplexed(240)), (188, 376));
    }
}
