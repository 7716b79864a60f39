//! How x264enc is told to follow.

use braidcast_rate::Profile;

/// The element as `gst-launch-1.0` takes it, named `encoder`, beginning at `first` bit/s.
pub fn words(profile: Profile, fps: i32, first: u64) -> String {
    // As long as each frame is sent at once, refreshing a stripe at a time keeps them alike in
    // size.
    let keys = match profile {
        Profile::Live => format!("intra-refresh=true key-int-max={fps}"),
        Profile::Quality => format!("key-int-max={}", 2 * fps),
    };
    format!(
        "x264enc name=encoder tune=zerolatency speed-preset=veryfast {keys} bitrate={} vbv-buf-capacity={}",
        first / 1000,
        profile.buffer_ms(fps)
    )
}

/// The same with a key frame at least every `key_every` frames, at most `b_frames` B frames in a
/// row, and a rate-control buffer of `buffer_ms` (THESIS §9.1 names none of these). A frame comes
/// out `b_frames` frames later.
pub fn thesis_words(b_frames: u32, key_every: u32, buffer_ms: u32, first: u64) -> String {
    format!(
        "x264enc name=encoder tune=zerolatency speed-preset=veryfast key-int-max={key_every} bframes={b_frames} b-pyramid=false \
         bitrate={} vbv-buf-capacity={buffer_ms}",
        first / 1000
    )
}
