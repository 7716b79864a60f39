//! What messages may have.

use crate::error::{check, fail, guard};
use crate::structs::{get, put, size};
use crate::{BRAIDCAST_ERROR_ARGUMENT, BRAIDCAST_OK, BraidcastSocket, handle};
use braidcast_socket::{ConnectionId, RateLimits, RateOptions, RateReport};
use std::ffi::c_int;
use std::time::Duration;

/// What is to be reckoned with. All zero but the size is the default.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BraidcastRateOptions {
    /// sizeof(braidcast_rate_options).
    pub size: usize,
    /// The least rate that the program is able to make, bit/s. 0: 100,000.
    pub least: u64,
    /// The greatest, bit/s; no more is ever asked for. 0: 50,000,000.
    pub greatest: u64,
    /// How many milliseconds after it was sent a message has to be at the other end. 0: 500.
    pub latency_ms: u32,
    /// Interval of frames, in milliseconds, 4 to 1,000. 0: the times of messages show it, if each
    /// frame is one message or leaves at once.
    pub interval_ms: u32,
}

/// What a program may send now.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BraidcastRate {
    /// sizeof(braidcast_rate).
    pub size: usize,
    /// Bits that the next message, or frame, may have to come in time with what waits before it. 0:
    /// leave it out.
    pub next_frame_bits: u64,
    /// What will hold for the next second, bit/s: for encoders.
    pub rate: f64,
    /// The same, smoothed over two seconds: for people, and encoders that are slow to change.
    pub smoothed_rate: f64,
    /// Milliseconds that all that waits, here and in queues of the network, would take to arrive.
    pub waiting_ms: f64,
    /// Interval of frames, in milliseconds.
    pub frame_interval_ms: f64,
    /// Frames of which nothing has left yet.
    pub waiting_frames: u32,
    /// Not 0: no path was full in the last ten seconds. More may be possible, and is asked for as
    /// soon as this is used.
    pub is_floor: u8,
    /// Not 0: the paths carry less than the program's minimum rate.
    pub below_least: u8,
}

/// Says from now on what messages of a connection may have, in braidcast_rate_report. `options`
/// NULL: the default. Called again, it begins anew.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `options` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_follow_rate(
    socket: *mut BraidcastSocket,
    connection: u64,
    options: *const BraidcastRateOptions,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let (it, given) = unsafe { (handle(socket)?, get(options)?) };
        let usual = RateOptions::default();
        let time = |ms: u32| (ms > 0).then(|| Duration::from_millis(ms.into()));
        let latency = time(given.latency_ms).unwrap_or(usual.latency);
        let mut options = RateOptions::new(limits(given.least, given.greatest)?).latency(latency);
        options.interval = time(given.interval_ms);
        check(it.socket.with(|socket| socket.follow_rate(ConnectionId(connection), &options)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// Other rates that the program is able to make, bit/s, each as in braidcast_rate_options. What is
/// known of the paths stays.
///
/// # Safety
/// `socket` is of braidcast_socket_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_set_rate_limits(
    socket: *mut BraidcastSocket,
    connection: u64,
    least: u64,
    greatest: u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        let limits = limits(least, greatest)?;
        check(it.socket.with(|socket| socket.set_rate_limits(ConnectionId(connection), limits)))?;
        Ok(BRAIDCAST_OK)
    })
}

/// How much the next message of a connection may have, and which rate will hold for the next
/// second, into `rate`. Ask before each message. While no path is full the rate grows only as far
/// as it is used. Returns 1, or 0 before braidcast_follow_rate and while the connection is not up.
///
/// # Safety
/// `socket` is of braidcast_socket_new; `rate` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn braidcast_rate_report(
    socket: *mut BraidcastSocket,
    connection: u64,
    rate: *mut BraidcastRate,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's.
        let it = unsafe { handle(socket)? };
        // SAFETY: the caller's.
        unsafe { size(rate) }?;
        let report = check(it.socket.with(|socket| socket.rate_report(ConnectionId(connection))))?;
        let Some(report) = report else { return Ok(0) };
        // SAFETY: the caller's.
        unsafe { put(rate, now(&report)) }?;
        Ok(1)
    })
}

/// A report for C.
pub(crate) fn now(report: &RateReport) -> BraidcastRate {
    BraidcastRate {
        size: 0,
        next_frame_bits: report.next_frame_bits,
        rate: report.rate,
        smoothed_rate: report.smoothed_rate,
        waiting_ms: report.waiting_ms,
        frame_interval_ms: report.frame_interval_ms,
        waiting_frames: report.waiting_frames,
        is_floor: report.is_floor.into(),
        below_least: report.below_least.into(),
    }
}

pub(crate) fn limits(least: u64, greatest: u64) -> Result<RateLimits, c_int> {
    let usual = RateLimits::default();
    let or = |given: u64, usual: u64| if given > 0 { given } else { usual };
    let limits = RateLimits::new(or(least, usual.least), or(greatest, usual.greatest));
    if limits.least > limits.greatest {
        let RateLimits { least, greatest, .. } = limits;
        let what = format!("the least rate, {least} bit/s, is more than the greatest, {greatest}: give a lower least");
        return fail(BRAIDCAST_ERROR_ARGUMENT, what);
    }
    Ok(limits)
}
