//! Live media: `braidcast_live` behind an opaque handle.

mod told;
mod types;

use crate::config::protection;
use crate::error::{check, fail, guard};
use crate::paths::chars;
use crate::rate::limits;
use crate::structs::{get, put, size};
use crate::text::{self, to_c};
use crate::*;
use braidcast_live::{AccessUnit, ChannelId, Coding, Error, MediaReceiver, MediaSender, PathReport, Report};
use braidcast_live::{ReceiverEvent, SenderEvent, Track};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Mutex, MutexGuard};
use told::{of_receiver, of_sender, path_report};
use types::EVENT;

pub use types::*;

/// A sender or a receiver of live media. It runs in a thread of its own, and several threads may use
/// it; one at a time may call braidcast_media_poll, because of what that hands out.
pub struct BraidcastMedia {
    end: End,
    /// What braidcast_media_poll handed out last.
    handed: Mutex<Handed>,
    /// Of a sender, by their numbers.
    tracks: Mutex<BTreeMap<u16, Track>>,
}

enum End {
    Sender(MediaSender),
    Receiver(MediaReceiver),
}

/// What an event refers to.
#[derive(Default)]
struct Handed {
    text: CString,
    data: Vec<u8>,
    unit: Option<Box<BraidcastMediaUnit>>,
}

// SAFETY: the pointers of `unit` lead to what stands beside it.
unsafe impl Send for Handed {}

/// Sends to the receiver that `count` paths lead to, and tries until there is one. `config` NULL: encrypted, to
/// anybody; of its fields those count that say who is let in. `options` NULL: the default. Returns NULL on
/// failure; braidcast_last_error says why. Free it with braidcast_media_free.
///
/// # Safety
/// `config` is NULL or one, as for braidcast_socket_new_config; `options` is NULL or one, whose
/// texts are NULL or end with a zero byte; `paths` are `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_send_to(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
    paths: *const BraidcastPath,
    count: usize,
) -> *mut BraidcastMedia {
    // SAFETY: the caller's.
    made(|| unsafe {
        let paths = paths_of(paths, count)?;
        media(sender(config, options)?.call(&paths)).map(End::Sender)
    })
}

/// Sends to whichever receiver calls at one of `count` addresses, for example "0.0.0.0:9000".
///
/// # Safety
/// As of braidcast_media_send_to; `addresses` are `count` texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_send_at(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
    addresses: *const *const c_char,
    count: usize,
) -> *mut BraidcastMedia {
    // SAFETY: the caller's.
    made(|| unsafe {
        let addresses = addresses_of(addresses, count)?;
        media(sender(config, options)?.listen(&addresses)).map(End::Sender)
    })
}

/// Receives from senders that call at one of `count` addresses, for example "0.0.0.0:9000".
///
/// # Safety
/// As of braidcast_media_send_at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_receive_at(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
    addresses: *const *const c_char,
    count: usize,
) -> *mut BraidcastMedia {
    // SAFETY: the caller's.
    made(|| unsafe {
        let addresses = addresses_of(addresses, count)?;
        media(receiver(config, options)?.listen(&addresses)).map(End::Receiver)
    })
}

/// Calls the sender that waits at the other end of `count` paths, and again when it is lost.
///
/// # Safety
/// As of braidcast_media_send_to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_receive_from(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
    paths: *const BraidcastPath,
    count: usize,
) -> *mut BraidcastMedia {
    // SAFETY: the caller's.
    made(|| unsafe {
        let paths = paths_of(paths, count)?;
        media(receiver(config, options)?.call(&paths)).map(End::Receiver)
    })
}

/// Ends it at once, which the other end is told, and frees it; NULL does nothing.
///
/// # Safety
/// `media` is NULL or one that was made here, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_free(media: *mut BraidcastMedia) {
    guard(|| {
        if !media.is_null() {
            // SAFETY: the caller's: it was made by `Box::into_raw` and nobody else has it.
            drop(unsafe { Box::from_raw(media) });
        }
        Ok(BRAIDCAST_OK)
    });
}

/// The port of the address number `place`, from 0, that it is called at.
///
/// # Safety
/// `media` was made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_port(media: *const BraidcastMedia, place: usize) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let addrs = match &unsafe { it(media)? }.end {
            End::Sender(sender) => sender.local_addrs(),
            End::Receiver(receiver) => receiver.local_addrs(),
        };
        let none = || fail(BRAIDCAST_ERROR_ARGUMENT, format!("there is no address number {place}"));
        addrs.get(place).map_or_else(none, |addr| Ok(addr.port().into()))
    })
}

/// A file descriptor that is readable while braidcast_media_poll has something to hand out. Do
/// not read from it, and do not close it.
///
/// # Safety
/// `media` was made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_fd(media: *const BraidcastMedia) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        Ok(match &unsafe { it(media)? }.end {
            End::Sender(sender) => sender.as_fd().as_raw_fd(),
            End::Receiver(receiver) => receiver.as_fd().as_raw_fd(),
        })
    })
}

/// Sends the next `len` bytes of a transport stream, captured now; they may begin and end anywhere. Never waits.
///
/// # Safety
/// `media` was made here; `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_write(media: *mut BraidcastMedia, data: *const u8, len: usize) -> c_int {
    guard(|| {
        if data.is_null() {
            return null();
        }
        // SAFETY: the caller's.
        let (it, bytes) = unsafe { (it(media)?, std::slice::from_raw_parts(data, len)) };
        self::media(it.sender()?.write(bytes)).map(|()| BRAIDCAST_OK)
    })
}

/// Adds a track of `coding`, BRAIDCAST_CODING_H264 and so on, for access units; `channels` of
/// Opus, else 0. Returns its number.
///
/// # Safety
/// `media` was made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_add_track(media: *mut BraidcastMedia, coding: u32, channels: u8) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { it(media)? };
        let coding = match coding {
            BRAIDCAST_CODING_H264 => Coding::H264,
            BRAIDCAST_CODING_H265 => Coding::H265,
            BRAIDCAST_CODING_AAC => Coding::Aac,
            BRAIDCAST_CODING_MPEG_AUDIO => Coding::MpegAudio,
            BRAIDCAST_CODING_AC3 => Coding::Ac3,
            BRAIDCAST_CODING_OPUS => Coding::Opus { channels },
            other if other & !0xff == BRAIDCAST_CODING_OTHER => Coding::Other(other as u8),
            other => return fail(BRAIDCAST_ERROR_ARGUMENT, format!("coding {other} is unknown")),
        };
        let track = self::media(it.sender()?.add_track(coding))?;
        it.tracks().insert(track.pid, track);
        Ok(track.pid.into())
    })
}

/// Sends an access unit, captured now; it is copied. Units of a track come in the order in which
/// they are decoded. Never waits; what would come too late is discarded.
///
/// # Safety
/// `media` was made here; `unit` is one, whose `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_send(media: *mut BraidcastMedia, unit: *const BraidcastMediaUnit) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { it(media)? };
        // SAFETY: the caller's; a null pointer is found by `size`.
        let given = unsafe {
            size(unit)?;
            get(unit)?
        };
        if given.data.is_null() {
            return null();
        }
        let unknown = || fail(BRAIDCAST_ERROR_ARGUMENT, format!("there is no track {}", given.track));
        let track = it.tracks().get(&given.track).copied().map_or_else(unknown, Ok)?;
        // SAFETY: the caller's.
        let bytes = unsafe { std::slice::from_raw_parts(given.data, given.len) };
        let mut unit = AccessUnit::new(track, Duration::from_micros(given.pts_us), bytes);
        unit.dts = (given.has_dts != 0).then(|| Duration::from_micros(given.dts_us));
        (unit.key, unit.layer) = (given.key != 0, given.layer);
        self::media(it.sender()?.send(unit)).map(|()| BRAIDCAST_OK)
    })
}

/// How many bits the next frame may have, and which rate will hold for the next second, into
/// `rate`. Ask before each frame.
///
/// # Safety
/// `media` was made here; `rate` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_rate(media: *mut BraidcastMedia, rate: *mut BraidcastRate) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { it(media)? };
        // SAFETY: the caller's.
        unsafe { size(rate) }?;
        let report = self::media(it.sender()?.rate_report())?;
        // SAFETY: the caller's.
        unsafe { put(rate, crate::rate::now(&report)) }?;
        Ok(BRAIDCAST_OK)
    })
}

/// What has been done so far, into `report`; of a receiver, on `stream`.
///
/// # Safety
/// `media` was made here; `report` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_report_now(
    media: *mut BraidcastMedia,
    stream: u32,
    report: *mut BraidcastMediaReport,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { it(media)? };
        // SAFETY: the caller's.
        unsafe { size(report) }?;
        let now = it.report(stream)?;
        let mut told = BraidcastMediaReport {
            buffered_bytes: now.buffered_bytes,
            seconds: now.seconds,
            restarts: now.restarts,
            ..BraidcastMediaReport::default()
        };
        for kind in &now.kinds {
            told.captured += kind.captured;
            told.on_time += kind.on_time;
            told.late += kind.late;
            told.given_up += kind.given_up;
            told.missing += kind.missing;
            told.not_known_yet += kind.not_known_yet;
            told.bytes += kind.bytes;
        }
        // SAFETY: the caller's.
        unsafe { put(report, told) }?;
        Ok(BRAIDCAST_OK)
    })
}

/// The paths, into `reports`, of which there are `count`; each has its size set. Of a receiver,
/// those of `stream`. Returns how many paths there are, which may be more than `count`; some have
/// left.
///
/// # Safety
/// `media` was made here; `reports` can be written, `count` of the size that the first one has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_paths(
    media: *mut BraidcastMedia,
    stream: u32,
    reports: *mut BraidcastPathReport,
    count: usize,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let paths = unsafe { it(media)? }.report(stream)?.paths;
        if count > 0 {
            // SAFETY: the caller's.
            let stride = unsafe { size(reports)? };
            for (n, path) in paths.iter().take(count).enumerate() {
                // SAFETY: the caller's; all have the size of the first.
                unsafe {
                    let out = reports.byte_add(n * stride);
                    out.cast::<usize>().write(stride);
                    put(out, path_report(path))?;
                }
            }
        }
        Ok(c_int::try_from(paths.len()).unwrap_or(c_int::MAX))
    })
}

/// Waits for what is next, for at most `timeout_ms` milliseconds, or for ever if that is below 0.
/// Returns 1 with `event`, or 0 if there was nothing in that time.
///
/// # Safety
/// `media` was made here; `event` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_poll(
    media: *mut BraidcastMedia,
    timeout_ms: c_int,
    event: *mut BraidcastMediaEvent,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { it(media)? };
        // SAFETY: the caller's.
        unsafe { size(event) }?;
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let (mut handed, mut told) = (Handed::default(), EVENT);
        match &it.end {
            End::Sender(sender) => match self::media(sender.poll(timeout))? {
                Some(event) => of_sender(event, &mut told, &mut handed),
                None => return Ok(0),
            },
            End::Receiver(receiver) => match self::media(receiver.poll(timeout))? {
                Some(event) => of_receiver(event, &mut told, &mut handed),
                None => return Ok(0),
            },
        }
        let mut kept = it.handed.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = handed;
        told.text = kept.text.as_ptr();
        (told.data, told.len) = (kept.data.as_ptr(), kept.data.len());
        told.unit = kept.unit.as_deref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the caller's.
        unsafe { put(event, told) }?;
        Ok(1)
    })
}

/// Has braidcast_media_poll return 0 now in the threads that wait in it; if none does, its next
/// call returns 0 at once. May be called from any thread, and from no signal handler.
///
/// # Safety
/// `media` was made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_interrupt(media: *mut BraidcastMedia) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        match &unsafe { it(media)? }.end {
            End::Sender(sender) => sender.interrupt(),
            End::Receiver(receiver) => receiver.interrupt(),
        }
        Ok(BRAIDCAST_OK)
    })
}

/// Sender: the stream has ended. Waits for at most `timeout_ms` milliseconds until what is not
/// too late has arrived. Returns 1 if the receiver has that, and the end, else 0. Receiver: ends
/// all streams; what has arrived is still handed out when it is due, and then
/// braidcast_media_poll says that it is over. Returns 1.
///
/// # Safety
/// `media` was made here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_media_finish(media: *mut BraidcastMedia, timeout_ms: u32) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        match &unsafe { it(media)? }.end {
            End::Sender(sender) => {
                let finished = sender.finish(Duration::from_millis(timeout_ms.into()));
                self::media(finished).map(c_int::from)
            }
            End::Receiver(receiver) => {
                receiver.stop();
                Ok(1)
            }
        }
    })
}

impl BraidcastMedia {
    fn tracks(&self) -> MutexGuard<'_, BTreeMap<u16, Track>> {
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> Result<&MediaSender, c_int> {
        match &self.end {
            End::Sender(sender) => Ok(sender),
            End::Receiver(_) => fail(BRAIDCAST_ERROR_ARGUMENT, "a receiver sends nothing"),
        }
    }

    fn report(&self, stream: u32) -> Result<Report, c_int> {
        match &self.end {
            End::Sender(sender) => Ok(sender.report()),
            End::Receiver(receiver) => media(receiver.report(ChannelId(stream))),
        }
    }
}

/// The handle of what `make` makes, or NULL.
fn made(make: impl FnOnce() -> Result<End, c_int>) -> *mut BraidcastMedia {
    let mut made = std::ptr::null_mut();
    guard(|| {
        let (end, handed, tracks) = (make()?, Mutex::default(), Mutex::default());
        made = Box::into_raw(Box::new(BraidcastMedia { end, handed, tracks }));
        Ok(BRAIDCAST_OK)
    });
    made
}

/// # Safety
/// `media` is NULL or was made here.
unsafe fn it<'a>(media: *const BraidcastMedia) -> Result<&'a BraidcastMedia, c_int> {
    // SAFETY: the caller's.
    unsafe { media.as_ref() }.map_or_else(null, Ok)
}

/// # Safety
/// As of [`braidcast_media_send_to`].
unsafe fn sender(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
) -> Result<braidcast_live::MediaSenderBuilder, c_int> {
    // SAFETY: the caller's.
    let (config, options) = unsafe { (get(config)?, get(options)?) };
    // SAFETY: the caller's.
    let (protection, name) = unsafe { (protection(&config)?, text::optional(options.name, "name")?) };
    let limits = limits(options.least, options.greatest)?;
    let mut builder = MediaSender::builder().protection(protection).encoder(limits).give_up(time(options.give_up_ms));
    if let Some(latency) = time(options.latency_ms) {
        builder = builder.latency(latency);
    }
    Ok(name.map_or(builder.clone(), |name| builder.name(name)))
}

/// # Safety
/// As of [`braidcast_media_send_to`].
unsafe fn receiver(
    config: *const BraidcastConfig,
    options: *const BraidcastMediaOptions,
) -> Result<braidcast_live::MediaReceiverBuilder, c_int> {
    // SAFETY: the caller's.
    let (config, options) = unsafe { (get(config)?, get(options)?) };
    // SAFETY: the caller's.
    let (protection, name) = unsafe { (protection(&config)?, text::optional(options.name, "name")?) };
    let mut builder = MediaReceiver::builder().protection(protection).give_up(time(options.give_up_ms));
    builder = match (name, options.streams) {
        (Some(_), 1..) => return fail(BRAIDCAST_ERROR_ARGUMENT, "a name and a number of streams do not go together"),
        (Some(name), 0) => builder.named([name]),
        (None, 1..) => builder.each(options.streams.into()),
        (None, 0) => builder,
    };
    builder = builder.early(options.early != 0);
    Ok(if options.units != 0 { builder.units() } else { builder })
}

fn time(ms: u32) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms.into()))
}

/// # Safety
/// `addresses` are `count` texts that end with a zero byte.
unsafe fn addresses_of(addresses: *const *const c_char, count: usize) -> Result<Vec<SocketAddr>, c_int> {
    if addresses.is_null() || count == 0 {
        return fail(BRAIDCAST_ERROR_ARGUMENT, "no addresses");
    }
    // SAFETY: the caller's.
    (0..count).map(|n| text::address(unsafe { required(*addresses.add(n), "an address")? })).collect()
}

/// The code of an error.
fn media<T>(result: Result<T, Error>) -> Result<T, c_int> {
    result.or_else(|error| {
        let code = match error {
            Error::Setup(error) => return check(Err(error)),
            Error::Start(_)
            | Error::Name(_)
            | Error::Latency(_)
            | Error::NoAddress
            | Error::TooManyTracks
            | Error::Channels(_) => BRAIDCAST_ERROR_ARGUMENT,
            Error::Mixed { .. } | Error::NoTrack(_) | Error::Unit { .. } => BRAIDCAST_ERROR_SEND,
            Error::Full => BRAIDCAST_ERROR_FULL,
            Error::Over => BRAIDCAST_ERROR_NO_CONNECTION,
            Error::Broken => BRAIDCAST_ERROR_PANIC,
            _ => BRAIDCAST_ERROR_SYSTEM,
        };
        fail(code, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_runs_as_documented;

    #[test]
    fn a_sender_runs_as_documented() {
        // SAFETY: NULL is the default.
        let builder = unsafe { sender(std::ptr::null(), std::ptr::null()) }.unwrap();
        _ = builder.options(|it| assert_runs_as_documented!("`braidcast_media`", it.transport(), it.redundancy));
    }
}
