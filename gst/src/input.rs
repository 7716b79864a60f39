//! Sources of video.

use crate::audio;

/// An input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    Test,
    /// A device, or the system's first.
    Camera(Option<String>),
    Screen,
    File(String),
    /// A description of a pipeline.
    Gst(String),
}

impl Input {
    /// What `text` names.
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "test" => Self::Test,
            "camera" => Self::Camera(None),
            "screen" => Self::Screen,
            _ if text.starts_with("/dev/") => Self::Camera(Some(text.into())),
            _ => match text.strip_prefix("gst:") {
                Some(description) => Self::Gst(description.into()),
                None => Self::File(text.into()),
            },
        }
    }

    /// The beginning of the pipeline. What a user typed as a path is set as a property, not written into it.
    pub(crate) fn description(&self) -> String {
        match self {
            // Hard to encode at any rate, and its motion shows each missing frame.
            Self::Test => "videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=2".into(),
            Self::Camera(_) => "v4l2src name=input ! decodebin".into(),
            Self::Screen => "ximagesrc use-damage=false".into(),
            Self::File(_) => {
                "filesrc name=input ! decodebin name=decoded ! videoconvert ! queue ! identity sync=true".into()
            }
            Self::Gst(description) => description.clone(),
        }
    }

    /// The beginning of the branch of its own audio, if it has some.
    pub(crate) fn own_audio(&self) -> Result<Option<&'static str>, String> {
        let Self::File(path) = self else { return Ok(None) };
        Ok(audio::has_audio(path)?.then_some("decoded. ! audioconvert ! queue ! identity sync=true"))
    }

    /// The property of the element `input` that says what is meant, and its value.
    pub(crate) fn property(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Camera(Some(device)) => Some(("device", device)),
            Self::File(path) => Some(("location", path)),
            _ => None,
        }
    }

    /// Elements that it needs.
    pub(crate) const fn needs(&self) -> &'static [&'static str] {
        match self {
            Self::Test => &["videotestsrc"],
            Self::Camera(_) => &["v4l2src", "decodebin"],
            Self::Screen => &["ximagesrc"],
            Self::File(_) => &["decodebin"],
            Self::Gst(_) => &[],
        }
    }

    /// Returns `true` if it may come back when it is gone.
    pub(crate) const fn may_come_back(&self) -> bool {
        matches!(self, Self::Camera(_))
    }

    /// What to do if it does not work.
    pub(crate) const fn hint(&self) -> &'static str {
        match self {
            Self::Camera(_) => "`v4l2-ctl --list-devices` lists cameras; another program may be using this one",
            Self::Screen => "it needs an X11 display in DISPLAY; with Wayland `gst:pipewiresrc`",
            Self::File(_) => "`ffprobe FILE` says what is in it; for most codecs install gstreamer1.0-libav",
            Self::Gst(_) => "try it as gst-launch-1.0 takes it, with ` ! autovideosink` behind it",
            Self::Test => "`gst-inspect-1.0` says which plugins do not load",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_told_apart() {
        let it = |text| Input::parse(text);
        assert_eq!((it("test"), it("screen"), it("camera")), (Input::Test, Input::Screen, Input::Camera(None)));
        assert_eq!(it("/dev/video2").property(), Some(("device", "/dev/video2")));
        assert_eq!(it("a film.mp4").property(), Some(("location", "a film.mp4")));
        assert_eq!(it("gst:fakesrc ! x").description(), "fakesrc ! x");
    }
}
