use crate::dicts::{rate_dict, transport_dict};
use crate::errors::{Broken, BufferFull, Error, Misuse, NoConnection, SystemFailure};
use crate::keys::Keys;
use crate::socket::{PathArgument, SLICE, copied, duration, exception, limits, parse, reason};
use braidcast_live::{AccessUnit, ChannelId, Coding, MediaReceiver, MediaSender, ReceiverEvent, SenderEvent, Track};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sends live media: a transport stream, or access units of several tracks.
///
/// It calls the receiver that paths lead to, as Socket.connect has them, until there is one; with
/// listen, addresses, it waits for whoever calls. key, plain, identity and authorized are as of
/// Socket. name: what the receiver knows the stream by. latency: seconds from the capture of a frame
/// to its output. least and greatest: bit/s that the encoder is able to make. give_up: seconds
/// without a receiver after which it ends; None: never. It runs in a thread of its own, and any
/// thread may use it. As a context manager it finishes at the end of the block, or ends at once if
/// there was an exception.
#[pyclass(frozen, module = "braidcast.media")]
pub struct Sender {
    sender: Mutex<Option<MediaSender>>,
    tracks: Mutex<BTreeMap<u16, Track>>,
}

/// Receives live media, and hands each piece out on time.
///
/// It waits for senders at addresses, listen; with paths it calls one that listens. key, plain,
/// identity and authorized are as of Socket. units: hands out access units in place of a transport
/// stream. names: takes streams of these names, all at the same time. each: takes up to this many of any
/// name. early: hands out what is there as soon as all before it is. give_up: seconds that a sender
/// may be gone before its stream is over; None: for ever.
#[pyclass(frozen, module = "braidcast.media")]
pub struct Receiver {
    receiver: Mutex<Option<MediaReceiver>>,
}

/// What a Sender reports, and what a Receiver hands out.
#[pyclass(frozen, module = "braidcast.media")]
#[derive(Default)]
pub struct MediaEvent {
    kind: &'static str,
    /// Of a receiver: the number of the stream.
    #[pyo3(get)]
    stream: u32,
    /// A name, or a reason in words, else "".
    #[pyo3(get)]
    text: String,
    reason: Option<&'static str>,
    /// Of "ended": true if all that was promised came.
    #[pyo3(get)]
    complete: bool,
    data: Option<Vec<u8>>,
    unit: Option<AccessUnit>,
}

/// An access unit that was received: a frame of video, or a packet of audio.
#[pyclass(frozen, module = "braidcast.media", name = "Unit")]
pub struct MediaUnit(AccessUnit);

#[pymethods]
impl MediaEvent {
    /// A Kind.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("braidcast.media")?.getattr("Kind")?.call1((self.kind,))
    }

    /// The Reason of "lost" and "ended", else None.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reason = |it| py.import("braidcast.message")?.getattr("Reason")?.call1((it,));
        self.reason.map(reason).transpose()
    }

    /// The bytes of "bytes", else None.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.data.as_ref().map(|data| PyBytes::new(py, data))
    }

    /// The Unit of "unit", else None.
    #[getter]
    fn unit(&self) -> Option<MediaUnit> {
        self.unit.clone().map(MediaUnit)
    }

    fn __repr__(&self) -> String {
        format!("<braidcast.media.MediaEvent {:?} stream={} text={:?}>", self.kind, self.stream, self.text)
    }
}

#[pymethods]
impl MediaUnit {
    /// The number of its track.
    #[getter]
    fn track(&self) -> u16 {
        self.0.track.pid
    }

    /// What it is coded as: a Coding's value, or "other".
    #[getter]
    fn coding(&self) -> &'static str {
        match self.0.track.coding {
            Coding::H264 => "h264",
            Coding::H265 => "h265",
            Coding::Aac => "aac",
            Coding::MpegAudio => "mpeg audio",
            Coding::Ac3 => "ac3",
            Coding::Opus { .. } => "opus",
            _ => "other",
        }
    }

    /// Its bytes.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.data)
    }

    /// When it is to be shown, in seconds: one more than its sender said.
    #[getter]
    fn pts(&self) -> f64 {
        self.0.pts.as_secs_f64()
    }

    /// When it is to be decoded, if that is earlier.
    #[getter]
    fn dts(&self) -> Option<f64> {
        self.0.dts.map(|dts| dts.as_secs_f64())
    }

    /// True if a decoder can begin here.
    #[getter]
    fn key(&self) -> bool {
        self.0.key
    }

    /// The layer, 0 for the one that all others need.
    #[getter]
    fn layer(&self) -> u8 {
        self.0.layer
    }

    /// True if nothing of it is missing, as far as can be seen.
    #[getter]
    fn whole(&self) -> bool {
        self.0.whole
    }

    fn __repr__(&self) -> String {
        format!("<braidcast.media.Unit of {} bytes, {} pts={:.3}>", self.0.data.len(), self.coding(), self.pts())
    }
}

#[pymethods]
impl Sender {
    #[new]
    #[pyo3(signature = (paths=None, *, listen=None, key=None, plain=false, identity=None, authorized=None, name="", latency=0.5, least=100_000, greatest=50_000_000, give_up=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        paths: Option<Vec<PathArgument>>,
        listen: Option<Vec<String>>,
        key: Option<String>,
        plain: bool,
        identity: Option<PathBuf>,
        authorized: Option<Vec<String>>,
        name: &str,
        latency: f64,
        least: u64,
        greatest: u64,
        give_up: Option<f64>,
    ) -> PyResult<Self> {
        let (keys, latency) = (Keys::new(key, plain, identity, authorized)?, duration("latency", latency)?);
        let (limits, give_up) = (limits(least, greatest)?, seconds("give_up", give_up)?);
        let at = Place::of(paths, listen)?;
        let sender = py.detach(|| {
            let builder = MediaSender::builder().protection(keys.protection()?).latency(latency);
            let builder = builder.name(name).encoder(limits).give_up(give_up);
            match at {
                Place::Call(paths) => builder.call(&paths),
                Place::Listen(addrs) => builder.listen(&addrs),
            }
        });
        Ok(Self { sender: Mutex::new(Some(sender.map_err(raised)?)), tracks: Mutex::default() })
    }

    /// The addresses that it listens at.
    #[getter]
    fn addresses(&self) -> PyResult<Vec<String>> {
        Ok(texts(self.get()?.local_addrs()))
    }

    /// What it runs with: "scheduler" (which path the next packet takes), "congestion", "queue", "reinject"
    /// (what would be late goes over a second path too) and "fec".
    #[getter]
    fn transport<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sender = self.get()?;
        let options = sender.options();
        transport_dict(py, &options.transport(), Some(options.redundancy.to_string()))
    }

    /// Sends the next bytes of a transport stream, captured now; they may begin and end anywhere.
    /// Never waits.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let (sender, data) = (self.get()?, copied(py, data)?);
        py.detach(|| sender.write(&data)).map_err(raised)
    }

    /// Adds a track for access units: coding is a Coding, or its value. channels: of Opus, 1 to 8.
    /// Returns its number.
    #[pyo3(signature = (coding, *, channels=2))]
    fn add_track(&self, coding: &str, channels: u8) -> PyResult<u16> {
        let coding = match coding {
            "h264" => Coding::H264,
            "h265" => Coding::H265,
            "aac" => Coding::Aac,
            "mpeg audio" => Coding::MpegAudio,
            "ac3" => Coding::Ac3,
            "opus" => Coding::Opus { channels },
            other => {
                let what = format!("coding is {other:?}; give 'h264', 'h265', 'aac', 'mpeg audio', 'ac3' or 'opus'");
                return Err(Misuse::new_err(what));
            }
        };
        let track = self.get()?.add_track(coding).map_err(raised)?;
        self.tracks.lock().unwrap_or_else(PoisonError::into_inner).insert(track.pid, track);
        Ok(track.pid)
    }

    /// Sends an access unit of a track, captured now. pts and dts: when it is shown and decoded, in
    /// seconds by the encoder's clock. key: a decoder can begin here. layer: 0 is the one that all
    /// others need; of too many frames the highest layers are discarded first. Never waits.
    #[pyo3(signature = (track, data, pts, *, dts=None, key=false, layer=0))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn send(
        &self,
        py: Python<'_>,
        track: u16,
        data: &Bound<'_, PyAny>,
        pts: f64,
        dts: Option<f64>,
        key: bool,
        layer: u8,
    ) -> PyResult<()> {
        let known = self.tracks.lock().unwrap_or_else(PoisonError::into_inner).get(&track).copied();
        let track = known.ok_or_else(|| Misuse::new_err(format!("there is no track {track}; add_track makes one")))?;
        let mut unit = AccessUnit::new(track, duration("pts", pts)?, copied(py, data)?);
        (unit.dts, unit.key, unit.layer) = (seconds("dts", dts)?, key, layer);
        let sender = self.get()?;
        py.detach(|| sender.send(unit)).map_err(raised)
    }

    /// How many bits the next frame may have, and which rate will hold for the next second, as
    /// Socket.rate_report has it. Ask before each frame.
    fn rate_report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sender = self.get()?;
        rate_dict(py, &py.detach(|| sender.rate_report()).map_err(raised)?)
    }

    /// What has been done so far, a dict as --json of `braidcast send` has it: kinds, paths and
    /// more.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sender = self.get()?;
        json(py, &py.detach(|| sender.report()))
    }

    /// Waits for the next event for at most timeout seconds, or for ever (None). None: nothing
    /// happened. Raises NoConnection after "ended".
    #[pyo3(signature = (timeout=None))]
    fn poll(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<MediaEvent>> {
        wait(
            py,
            timeout,
            || Ok(self.get()?.interrupts()),
            |slice| {
                let sender = self.get()?;
                Ok(py.detach(|| sender.poll(Some(slice))).map_err(raised)?.map(of_sender))
            },
        )
    }

    /// The stream has ended: waits for at most timeout seconds until what is not too late has
    /// arrived. Returns whether the receiver has that, and the end.
    #[pyo3(signature = (timeout=10.0))]
    fn finish(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let (sender, end) = (self.get()?, Instant::now() + duration("timeout", timeout)?);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if py.detach(|| sender.finish(left.min(SLICE))).map_err(raised)? {
                return Ok(true);
            }
            if left.is_zero() || matches!(sender.rate_report(), Err(braidcast_live::Error::Over)) {
                return Ok(false);
            }
            py.check_signals()?;
        }
    }

    /// Ends the waits of all threads in poll, which return None, or else the next one.
    fn interrupt(&self) -> PyResult<()> {
        self.get()?.interrupt();
        Ok(())
    }

    /// Ends at once; the receiver is told.
    fn close(&self, py: Python<'_>) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Another thread that waits holds it for a slice longer.
        sender.iter().for_each(MediaSender::interrupt);
        py.detach(|| drop(sender));
    }

    /// A file descriptor that is readable while poll(0) has an event, for select and asyncio. Do not
    /// read from it, nor close it.
    fn fileno(&self) -> PyResult<RawFd> {
        Ok(self.get()?.as_fd().as_raw_fd())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let finished = if kind.is_none() { self.finish(py, 10.0).map(|_| ()) } else { Ok(()) };
        self.close(py);
        finished
    }
}

impl Sender {
    fn get(&self) -> PyResult<MediaSender> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sender.ok_or_else(|| NoConnection::new_err("it was closed"))
    }
}

#[pymethods]
impl Receiver {
    #[new]
    #[pyo3(signature = (listen=None, *, paths=None, key=None, plain=false, identity=None, authorized=None, units=false, names=None, each=None, early=false, give_up=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        listen: Option<Vec<String>>,
        paths: Option<Vec<PathArgument>>,
        key: Option<String>,
        plain: bool,
        identity: Option<PathBuf>,
        authorized: Option<Vec<String>>,
        units: bool,
        names: Option<Vec<String>>,
        each: Option<usize>,
        early: bool,
        give_up: Option<f64>,
    ) -> PyResult<Self> {
        let (keys, give_up) = (Keys::new(key, plain, identity, authorized)?, seconds("give_up", give_up)?);
        let at = Place::of(paths, listen)?;
        if names.is_some() && each.is_some() {
            return Err(Misuse::new_err("names and each do not go together: leave out one"));
        }
        let receiver = py.detach(|| {
            let builder = MediaReceiver::builder().protection(keys.protection()?).early(early).give_up(give_up);
            let builder = match (names, each) {
                (Some(names), _) => builder.named(names),
                (None, Some(each)) => builder.each(each),
                (None, None) => builder,
            };
            let builder = if units { builder.units() } else { builder };
            match at {
                Place::Call(paths) => builder.call(&paths),
                Place::Listen(addrs) => builder.listen(&addrs),
            }
        });
        Ok(Self { receiver: Mutex::new(Some(receiver.map_err(raised)?)) })
    }

    /// The addresses that it listens at.
    #[getter]
    fn addresses(&self) -> PyResult<Vec<String>> {
        Ok(texts(self.get()?.local_addrs()))
    }

    /// Waits for the next event for at most timeout seconds, or for ever (None). None: nothing
    /// happened. Raises NoConnection once it has stopped and all was handed out.
    #[pyo3(signature = (timeout=None))]
    fn poll(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<MediaEvent>> {
        wait(
            py,
            timeout,
            || Ok(self.get()?.interrupts()),
            |slice| {
                let receiver = self.get()?;
                Ok(py.detach(|| receiver.poll(Some(slice))).map_err(raised)?.map(of_receiver))
            },
        )
    }

    /// What has come of a stream, a dict as --json of `braidcast receive` has it.
    #[pyo3(signature = (stream=0))]
    fn report<'py>(&self, py: Python<'py>, stream: u32) -> PyResult<Bound<'py, PyAny>> {
        let receiver = self.get()?;
        json(py, &py.detach(|| receiver.report(ChannelId(stream))).map_err(raised)?)
    }

    /// How many seconds after its capture what is handed out of a stream is so; None before anything
    /// came.
    #[pyo3(signature = (stream=0))]
    fn latency(&self, py: Python<'_>, stream: u32) -> PyResult<Option<f64>> {
        let receiver = self.get()?;
        let latency = py.detach(|| receiver.latency(ChannelId(stream))).map_err(raised)?;
        Ok(latency.map(|it| it.as_secs_f64()))
    }

    /// Ends all streams. What has arrived is still handed out when it is due.
    fn stop(&self) -> PyResult<()> {
        self.get()?.stop();
        Ok(())
    }

    /// Ends the waits of all threads in poll, which return None, or else the next one.
    fn interrupt(&self) -> PyResult<()> {
        self.get()?.interrupt();
        Ok(())
    }

    /// Ends at once; the senders are told.
    fn close(&self, py: Python<'_>) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        receiver.iter().for_each(MediaReceiver::interrupt);
        py.detach(|| drop(receiver));
    }

    /// As of Sender.
    fn fileno(&self) -> PyResult<RawFd> {
        Ok(self.get()?.as_fd().as_raw_fd())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) {
        self.close(py);
    }
}

impl Receiver {
    fn get(&self) -> PyResult<MediaReceiver> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).clone();
        receiver.ok_or_else(|| NoConnection::new_err("it was closed"))
    }
}

/// Who calls whom.
enum Place {
    Call(Vec<braidcast_live::Path>),
    Listen(Vec<SocketAddr>),
}

impl Place {
    fn of(paths: Option<Vec<PathArgument>>, listen: Option<Vec<String>>) -> PyResult<Self> {
        match (paths, listen) {
            (Some(paths), None) => Ok(Self::Call(paths.into_iter().map(PathArgument::path).collect::<PyResult<_>>()?)),
            (None, Some(addrs)) => Ok(Self::Listen(addrs.iter().map(|it| parse(it)).collect::<PyResult<_>>()?)),
            _ => Err(Misuse::new_err("give either paths, to call, or listen, to be called")),
        }
    }
}

fn texts(addrs: &[SocketAddr]) -> Vec<String> {
    addrs.iter().map(ToString::to_string).collect()
}

fn seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    value.map(|value| duration(name, value)).transpose()
}

/// Waits in slices, so that Ctrl-C works, and that another thread can close what is waited for.
fn wait(
    py: Python<'_>,
    timeout: Option<f64>,
    interrupts: impl Fn() -> PyResult<u64>,
    poll: impl Fn(Duration) -> PyResult<Option<MediaEvent>>,
) -> PyResult<Option<MediaEvent>> {
    let end = seconds("timeout", timeout)?.map(|it| Instant::now() + it);
    let before = interrupts()?;
    loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let (slice, began) = (left.map_or(SLICE, |left| left.min(SLICE)), Instant::now());
        let event = poll(slice)?;
        // What ends before its time was interrupted before it began; at its end both may come together.
        let interrupted = began.elapsed() < slice || interrupts()? != before;
        if event.is_some() || left.is_some_and(|left| left <= slice) || interrupted {
            return Ok(event);
        }
        py.check_signals()?;
    }
}

fn json<'py>(py: Python<'py>, report: &braidcast_live::Report) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(report).map_err(|error| Error::new_err(error.to_string()))?;
    py.import("json")?.getattr("loads")?.call1((text,))
}

fn of_sender(event: SenderEvent) -> MediaEvent {
    let it = MediaEvent { kind: "other", ..MediaEvent::default() };
    match event {
        SenderEvent::Connected => MediaEvent { kind: "connected", ..it },
        SenderEvent::InLine => MediaEvent { kind: "in line", ..it },
        SenderEvent::Lost { reason: why } => because("lost", &why),
        SenderEvent::Refused { reason: why } => because("refused", &why),
        SenderEvent::PathUp { name, .. } => MediaEvent { kind: "path up", text: name, ..it },
        SenderEvent::PathDown { name, .. } => MediaEvent { kind: "path down", text: name, ..it },
        SenderEvent::Warning(text) => MediaEvent { kind: "warning", text, ..it },
        SenderEvent::Ended { complete, reason: why } => MediaEvent { complete, ..because("ended", &why) },
        _ => it,
    }
}

fn of_receiver(event: ReceiverEvent) -> MediaEvent {
    let it = MediaEvent { kind: "other", ..MediaEvent::default() };
    match event {
        ReceiverEvent::Connected { stream, name, .. } => {
            MediaEvent { kind: "connected", stream: stream.0, text: name, ..it }
        }
        ReceiverEvent::Bytes { stream, data } => MediaEvent { kind: "bytes", stream: stream.0, data: Some(data), ..it },
        ReceiverEvent::Unit { stream, unit } => MediaEvent { kind: "unit", stream: stream.0, unit: Some(unit), ..it },
        ReceiverEvent::Lost { stream, reason: why } => MediaEvent { stream: stream.0, ..because("lost", &why) },
        ReceiverEvent::Back { stream } => MediaEvent { kind: "back", stream: stream.0, ..it },
        ReceiverEvent::Restarted { stream } => MediaEvent { kind: "restarted", stream: stream.0, ..it },
        ReceiverEvent::ClockJumped { stream } => MediaEvent { kind: "clock jumped", stream: stream.0, ..it },
        ReceiverEvent::PathUp { name, .. } => MediaEvent { kind: "path up", text: name, ..it },
        ReceiverEvent::PathDown { name, .. } => MediaEvent { kind: "path down", text: name, ..it },
        ReceiverEvent::Refused { why, .. } => MediaEvent { kind: "refused", text: why, ..it },
        ReceiverEvent::Warning(text) => MediaEvent { kind: "warning", text, ..it },
        ReceiverEvent::Ended { stream, complete, reason: why } => {
            MediaEvent { stream: stream.0, complete, ..because("ended", &why) }
        }
        _ => it,
    }
}

fn because(kind: &'static str, why: &braidcast_live::CloseReason) -> MediaEvent {
    MediaEvent { kind, text: why.to_string(), reason: Some(reason(why)), ..MediaEvent::default() }
}

fn raised(error: braidcast_live::Error) -> PyErr {
    use braidcast_live::Error as Inner;
    let text = error.to_string();
    match error {
        Inner::Setup(error) => exception(error),
        Inner::Over => NoConnection::new_err(text),
        Inner::Full => BufferFull::new_err(text),
        Inner::Broken => Broken::new_err(text),
        Inner::Io(_) => SystemFailure::new_err(text),
        Inner::Start(_) => Error::new_err(text),
        _ => Misuse::new_err(text),
    }
}
