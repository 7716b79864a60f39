//! Codes, and the structures that a program and the library exchange about live media.

use std::ffi::{c_char, c_int};

/// H.264 with start codes.
pub const BRAIDCAST_CODING_H264: u32 = 1;
/// H.265 with start codes.
pub const BRAIDCAST_CODING_H265: u32 = 2;
/// AAC, each frame with its ADTS header.
pub const BRAIDCAST_CODING_AAC: u32 = 3;
/// MPEG audio.
pub const BRAIDCAST_CODING_MPEG_AUDIO: u32 = 4;
/// AC-3.
pub const BRAIDCAST_CODING_AC3: u32 = 5;
/// Opus; braidcast_media_add_track takes the number of channels.
pub const BRAIDCAST_CODING_OPUS: u32 = 6;
/// And the stream_type of ISO/IEC 13818-1, table 2-34, by a bitwise or: anything else.
pub const BRAIDCAST_CODING_OTHER: u32 = 0x100;

/// Sender: a receiver takes the stream from here on. Receiver: a sender is there; `text` is the
/// name of its stream.
pub const BRAIDCAST_MEDIA_CONNECTED: c_int = 1;
/// The other end is gone, and is waited for; `reason` and `text` say why.
pub const BRAIDCAST_MEDIA_LOST: c_int = 2;
/// Receiver: the sender is back; its stream goes on.
pub const BRAIDCAST_MEDIA_BACK: c_int = 3;
/// Receiver: another sender, or the same one started anew, took the place of a silent one.
pub const BRAIDCAST_MEDIA_RESTARTED: c_int = 4;
/// Receiver: the sender's clock jumped; the playout follows it.
pub const BRAIDCAST_MEDIA_CLOCK_JUMPED: c_int = 5;
/// Sender: another stream is being received; this one has its turn after it.
pub const BRAIDCAST_MEDIA_IN_LINE: c_int = 6;
/// A path carries data; `text` is its name.
pub const BRAIDCAST_MEDIA_PATH_UP: c_int = 7;
/// A path no longer answers; `text` is its name.
pub const BRAIDCAST_MEDIA_PATH_DOWN: c_int = 8;
/// Somebody was turned away; `text` says why.
pub const BRAIDCAST_MEDIA_REFUSED: c_int = 9;
/// Something did not go as asked; `text` says what.
pub const BRAIDCAST_MEDIA_WARNING: c_int = 10;
/// Receiver: bytes of a stream are due, in `data`.
pub const BRAIDCAST_MEDIA_BYTES: c_int = 11;
/// Receiver: an access unit of a stream is due, in `unit`.
pub const BRAIDCAST_MEDIA_UNIT: c_int = 12;
/// It is over; `complete`, `reason` and `text` say how. After that of a sender, and after
/// braidcast_media_stop, braidcast_media_poll returns BRAIDCAST_ERROR_NO_CONNECTION.
pub const BRAIDCAST_MEDIA_ENDED: c_int = 13;

/// How to send or receive. All zero but the size is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastMediaOptions {
    /// sizeof(braidcast_media_options).
    pub size: usize,
    /// Sender: what the stream is called. Receiver that is called: the one that it takes. NULL: no name, or
    /// any.
    pub name: *const c_char,
    /// Sender: how many milliseconds after its capture everything comes out. 0: 500.
    pub latency_ms: u32,
    /// How many milliseconds the other end may be gone before it is over. 0: for ever.
    pub give_up_ms: u32,
    /// Sender: the least rate that the encoder is able to make, bit/s. 0: 100,000.
    pub least: u64,
    /// Sender: the greatest, bit/s. 0: 50,000,000.
    pub greatest: u64,
    /// Receiver: hands out access units, BRAIDCAST_MEDIA_UNIT. 0: a transport stream, BRAIDCAST_MEDIA_BYTES.
    pub units: u8,
    /// Receiver: hands out what is there as soon as all before it is.
    pub early: u8,
    /// Receiver: how many streams with names are taken at the same time. 0: one, of any name.
    pub streams: u16,
}

impl Default for BraidcastMediaOptions {
    fn default() -> Self {
        let (size, latency_ms, give_up_ms, least, greatest, units, early, streams) = Default::default();
        Self { size, name: std::ptr::null(), latency_ms, give_up_ms, least, greatest, units, early, streams }
    }
}

/// A frame of video, or a packet of audio.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastMediaUnit {
    /// sizeof(braidcast_media_unit).
    pub size: usize,
    /// Its bytes.
    pub data: *const u8,
    /// How many.
    pub len: usize,
    /// When it is to be shown, in microseconds by the encoder's clock; at a receiver one second more than the
    /// sender said.
    pub pts_us: u64,
    /// When it is to be decoded, if `has_dts`.
    pub dts_us: u64,
    /// The track, as braidcast_media_add_track returned it.
    pub track: u16,
    /// Not 0: `dts_us` counts. 0: it is decoded when it is shown.
    pub has_dts: u8,
    /// Not 0: a decoder can begin here.
    pub key: u8,
    /// The layer, 0 for the one that all others need. Of too many frames the highest layers are discarded
    /// first.
    pub layer: u8,
    /// Receiver: nothing of it is missing, as far as can be seen.
    pub whole: u8,
    /// Receiver: channels of Opus.
    pub channels: u8,
    /// Receiver: BRAIDCAST_CODING_H264 and so on.
    pub coding: u32,
}

impl Default for BraidcastMediaUnit {
    fn default() -> Self {
        Self {
            size: 0,
            data: std::ptr::null(),
            len: 0,
            pts_us: 0,
            dts_us: 0,
            track: 0,
            has_dts: 0,
            key: 0,
            layer: 0,
            whole: 0,
            channels: 0,
            coding: 0,
        }
    }
}

/// What a sender reports, and what a receiver hands out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BraidcastMediaEvent {
    /// sizeof(braidcast_media_event).
    pub size: usize,
    /// BRAIDCAST_MEDIA_CONNECTED and so on.
    pub kind: c_int,
    /// Of BRAIDCAST_MEDIA_LOST and BRAIDCAST_MEDIA_ENDED: BRAIDCAST_REASON_SHUTDOWN and so on.
    pub reason: c_int,
    /// What more is known of the reason, as in braidcast_event.
    pub code: u32,
    /// Receiver: which stream.
    pub stream: u32,
    /// Of BRAIDCAST_MEDIA_ENDED: not 0 if all that was promised came.
    pub complete: u8,
    /// A name or a reason in words, else "". This and what follows: until the next call of
    /// braidcast_media_poll or braidcast_media_free.
    pub text: *const c_char,
    /// Of BRAIDCAST_MEDIA_BYTES.
    pub data: *const u8,
    /// How many.
    pub len: usize,
    /// Of BRAIDCAST_MEDIA_UNIT, else NULL.
    pub unit: *const BraidcastMediaUnit,
}

/// What has been done so far: units are frames of video, packets of audio and tables.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BraidcastMediaReport {
    /// sizeof(braidcast_media_report).
    pub size: usize,
    /// Units that were captured.
    pub captured: u64,
    /// Units that came on time.
    pub on_time: u64,
    /// Units that came too late.
    pub late: u64,
    /// Units that the sender discarded, since they would have come too late.
    pub given_up: u64,
    /// Units that neither came nor were discarded, as far as is known.
    pub missing: u64,
    /// Units whose outcome is not known yet.
    pub not_known_yet: u64,
    /// Bytes of units sent or received.
    pub bytes: u64,
    /// Bytes that wait.
    pub buffered_bytes: u64,
    /// Seconds since the connection was made.
    pub seconds: f64,
    /// Times that a sender connected again, or that another one took its place.
    pub restarts: u64,
}

/// Nothing happened yet.
pub(super) const EVENT: BraidcastMediaEvent = BraidcastMediaEvent {
    size: 0,
    kind: 0,
    reason: 0,
    code: 0,
    stream: 0,
    complete: 0,
    text: std::ptr::null(),
    data: std::ptr::null(),
    len: 0,
    unit: std::ptr::null(),
};
