//! What has to be installed, in words.

/// Debian's package of an element.
fn package(element: &str) -> Option<&'static str> {
    Some(match element {
        "videotestsrc" | "videoconvert" | "videoscale" | "videorate" | "decodebin" | "audiotestsrc"
        | "audioconvert" | "audioresample" | "opusenc" => "gstreamer1.0-plugins-base",
        "v4l2src" | "ximagesrc" | "v4l2h264enc" | "autoaudiosrc" | "aacparse" | "mpegaudioparse" | "lamemp3enc"
        | "twolamemp2enc" => "gstreamer1.0-plugins-good",
        "mpegtsmux" | "h264parse" | "h265parse" | "openh264enc" | "vah264enc" | "vah265enc" | "nvh264enc"
        | "nvh265enc" | "x265enc" | "qsvh264enc" | "opusparse" | "voaacenc" | "fdkaacenc" => "gstreamer1.0-plugins-bad",
        "x264enc" => "gstreamer1.0-plugins-ugly",
        "vaapih264enc" => "gstreamer1.0-vaapi",
        _ if element.starts_with("avenc_") => "gstreamer1.0-libav",
        _ => return None,
    })
}

/// Why `element` cannot be had, and what to do.
pub(crate) fn missing(element: &str) -> String {
    match package(element) {
        Some(package) => format!(
            "GStreamer has no element {element}\nhint: `apt-get install {package}` on Debian; elements for hardware are there only with the hardware"
        ),
        None => format!("GStreamer has no element {element}\nhint: `gst-inspect-1.0` lists those that there are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_its_package() {
        assert!(missing("x264enc").contains("gstreamer1.0-plugins-ugly"));
        assert!(missing("nonsense").contains("gst-inspect-1.0"));
    }
}
