use crate::descriptors;
use crate::dicts::{rate_dict, transport_dict};
use crate::errors::{Broken, BufferFull, Error, Misuse, NoConnection, SystemFailure};
use crate::keys::Keys;
use braidcast_socket::{
    CloseReason, ConnectionId, Identity, Insecurity, Path, PathState, Profile, RateLimits, RateOptions, SendError,
    SendOptions, SharedSocket, Timing, Trust,
};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyByteArray, PyBytes, PyDict};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a wait goes on before Python's signals are looked at, so that Ctrl-C works.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// A socket for messages over several networks at once.
///
/// With a key, which both ends share, only who has it gets in. identity is the file of a key of this
/// end's own, which is made if it is not there; authorized, fingerprints of those who are let in, or
/// None for anybody. Without either it is encrypted, with anybody; plain=True encrypts nothing.
/// profile: "live", "bulk" or "voice". longest_silence: after how many seconds of silence a
/// connection ends. fec: a code by which redundancy is sent, for example "tetrys:10,9,200".
/// scheduler: which path the next packet takes, for example "earliest-delivery". queue: which message
/// leaves next, and which are discarded, for example "in-time". buffers: bytes that each connection
/// holds at most to be sent and to be received, 4 MiB each. max_message: bytes of the longest message,
/// 2 MiB. max_connections: how many others may begin, 1024; one more takes the place of one that is
/// silent. All that is to leave and to come does so within poll.
///
/// Several threads may use a socket: a call goes before a thread that waits in poll. As a context
/// manager it closes all connections at the end of the block, in good order, or aborts them if
/// there was an exception.
#[pyclass(frozen, module = "braidcast")]
pub struct Socket {
    socket: SharedSocket,
}

/// What happened to a connection.
#[pyclass(frozen, module = "braidcast")]
pub struct Event {
    kind: &'static str,
    /// The number of the connection.
    #[pyo3(get)]
    connection: u64,
    /// The path of "path up" and "path down", the reason of "closed" in words, else "". Of
    /// Reason.ABORTED_BY_PEER it is what the other end gave to abort.
    #[pyo3(get)]
    text: String,
    /// What a message that was "discarded" or "delivered" was sent with.
    #[pyo3(get)]
    context: u64,
    reason: Option<&'static str>,
    /// Of "closed": the code that the other end gave to abort; of an insecure one an Insecurity; of
    /// Reason.BY_TRANSPORT SCTP's error cause; else 0.
    #[pyo3(get)]
    code: u32,
    /// Of "closed": the contexts of messages of which it is not known whether they arrived.
    #[pyo3(get)]
    unsettled: Vec<u64>,
    data: Vec<u8>,
}

/// The fingerprint of the identity in a file, by which others know it. If there is no such file, a
/// new key is made in it.
#[pyfunction]
pub(crate) fn fingerprint(file: PathBuf) -> PyResult<String> {
    Ok(Identity::load_or_create(file).map_err(exception)?.fingerprint().to_string())
}

#[pymethods]
impl Event {
    /// A Kind: "connected", "readable", "writable", "path up", "path down", "discarded",
    /// "delivered", "restarted" or "closed".
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("braidcast.message")?.getattr("Kind")?.call1((self.kind,))
    }

    /// The Reason of "closed", else None.
    #[getter]
    fn reason<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let reason = |it| py.import("braidcast.message")?.getattr("Reason")?.call1((it,));
        self.reason.map(reason).transpose()
    }

    /// Of Reason.ABORTED_BY_PEER: the bytes that the other end gave to abort, else b"".
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    fn __repr__(&self) -> String {
        format!("<braidcast.Event {:?} connection={} text={:?}>", self.kind, self.connection, self.text)
    }
}

#[pymethods]
impl Socket {
    #[new]
    #[pyo3(signature = (key=None, plain=false, *, identity=None, authorized=None, profile="live", longest_silence=30.0, fec=None, scheduler=None, queue=None, buffers=None, max_message=None, max_connections=None))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        key: Option<String>,
        plain: bool,
        identity: Option<PathBuf>,
        authorized: Option<Vec<String>>,
        profile: &str,
        longest_silence: f64,
        fec: Option<&str>,
        scheduler: Option<&str>,
        queue: Option<&str>,
        buffers: Option<(usize, usize)>,
        max_message: Option<usize>,
        max_connections: Option<usize>,
    ) -> PyResult<Self> {
        let keys = Keys::new(key, plain, identity, authorized)?;
        let profile = match profile {
            "live" => Profile::Live,
            "bulk" => Profile::Bulk,
            "voice" => Profile::Voice,
            other => return Err(Misuse::new_err(format!("profile is {other:?}; give 'live', 'bulk' or 'voice'"))),
        };
        let silence = duration("longest_silence", longest_silence)?;
        let fec = fec.map(|code| code.parse().map_err(|why: String| Misuse::new_err(why))).transpose()?;
        let scheduler =
            scheduler.map(|name| name.parse().map_err(|why| Misuse::new_err(format!("{why}")))).transpose()?;
        let queue = queue.map(|name| name.parse().map_err(|why| Misuse::new_err(format!("{why}")))).transpose()?;
        // A passphrase takes a quarter of a second.
        let socket = py.detach(|| {
            let mut builder = braidcast_socket::Socket::builder().profile(profile).longest_silence(Some(silence));
            if let Some(code) = fec {
                builder = builder.fec(code);
            }
            if let Some(method) = queue {
                builder = builder.queue(method);
            }
            if let Some(kind) = scheduler {
                builder = builder.scheduler(kind);
            }
            if let Some((send, receive)) = buffers {
                builder = builder.buffers(send, receive);
            }
            if let Some(bytes) = max_message {
                builder = builder.max_message(bytes);
            }
            if let Some(most) = max_connections {
                builder = builder.max_connections(most);
            }
            builder.protection(keys.protection()?).build().and_then(SharedSocket::new)
        });
        Ok(Self { socket: socket.map_err(exception)? })
    }

    /// Lets in others from now on, by their fingerprints. Connections that there are stay.
    fn set_authorized(&self, py: Python<'_>, authorized: Vec<String>) -> PyResult<()> {
        self.with(py, |socket| socket.set_trust(Trust::only(&authorized)?))
    }

    /// The fingerprint of the key that the other end of a connection proved to have, or None.
    fn peer(&self, py: Python<'_>, connection: u64) -> PyResult<Option<String>> {
        let peer = self.with(py, |socket| socket.peer(ConnectionId(connection)))?;
        Ok(peer.and_then(|it| it.fingerprint).map(|it| it.to_string()))
    }

    /// What it runs with: "scheduler" (which path the next packet takes), "congestion", "queue", "reinject"
    /// (what would be late goes over a second path too) and "fec".
    #[getter]
    fn transport<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = self.with(py, |socket| Ok(socket.options().clone()))?;
        transport_dict(py, &options, options.redundancy.fec.map(|code| code.to_string()))
    }

    /// What did not go as asked since the last call, in words.
    fn take_warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |socket| Ok(socket.take_warnings()))
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
        if kind.is_none() {
            return self.close(py, 5.0).map(|_| ());
        }
        self.with(py, |socket| {
            for connection in socket.connections().collect::<Vec<_>>() {
                socket.abort(connection, 0, "an exception ended the program")?;
            }
            socket.poll(Some(Duration::ZERO)).map(|_| ())
        })
    }

    /// Opens a local address, for example "0.0.0.0:9000"; port 0 takes any that is free. Returns
    /// the address with its port.
    fn bind(&self, py: Python<'_>, address: &str) -> PyResult<String> {
        let address = parse(address)?;
        self.with(py, |socket| socket.bind(address)).map(|bound| bound.to_string())
    }

    /// Has others connect to a UDP socket that is bound, for example one that systemd has opened: a
    /// descriptor, or anything with fileno(). It is duplicated, and stays yours to close; it becomes
    /// non-blocking. Returns its address.
    fn adopt(&self, py: Python<'_>, socket: &Bound<'_, PyAny>) -> PyResult<String> {
        let descriptor = descriptors::duplicate(socket)?;
        self.with(py, |socket| socket.adopt(descriptor)).map(|address| address.to_string())
    }

    /// Calls prepare with the descriptor of each UDP socket that is opened from now on, before
    /// anything is sent through it: to set a mark, or to keep it out of a VPN. If it raises an
    /// exception, the path is not opened. It may not use this socket. None: no longer.
    fn on_open(&self, py: Python<'_>, prepare: Option<Py<PyAny>>) -> PyResult<()> {
        self.with(py, |socket| {
            socket.on_open(move |opened| descriptors::prepare(prepare.as_ref(), opened));
            Ok(())
        })
    }

    /// Accepts connections from now on; each begins with the event "connected".
    fn listen(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |socket| {
            socket.listen();
            Ok(())
        })
    }

    /// Begins a connection over paths, each an address or name with a port ("192.0.2.1:9000",
    /// "home.example:9000@wlan0") or a pair of it and what the path leaves through, an interface
    /// ("wlan0") or a local address. Returns its number; the event "connected" or "closed" follows.
    fn connect(&self, py: Python<'_>, paths: Vec<PathArgument>) -> PyResult<u64> {
        let paths = paths.into_iter().map(PathArgument::path).collect::<PyResult<Vec<_>>>()?;
        self.with(py, |socket| socket.connect(&paths)).map(|id| id.0)
    }

    /// Adds a path to a connection that was begun here.
    fn join(&self, py: Python<'_>, connection: u64, path: PathArgument) -> PyResult<()> {
        let path = path.path()?;
        self.with(py, |socket| socket.join(ConnectionId(connection), &path))
    }

    /// Takes the path of this name out. Returns whether there was one.
    fn leave(&self, py: Python<'_>, connection: u64, name: &str) -> PyResult<bool> {
        self.with(py, |socket| socket.leave(ConnectionId(connection), name))
    }

    /// Takes a message to be sent; it leaves in the next poll. deadline: seconds from now after
    /// which it is neither sent nor repeated; what has left may still come later if the delay grows
    /// meanwhile: Message.is_late. Raises BlockingIOError if there is no room: wait for "writable".
    #[pyo3(signature = (connection, data, *, stream=0, unordered=false, deadline=None, max_retransmissions=None, ppid=0, context=0, report=false, priority=0))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn send(
        &self,
        py: Python<'_>,
        connection: u64,
        data: &Bound<'_, PyAny>,
        stream: u16,
        unordered: bool,
        deadline: Option<f64>,
        max_retransmissions: Option<u16>,
        ppid: u32,
        context: u64,
        report: bool,
        priority: i8,
    ) -> PyResult<()> {
        let deadline = deadline.map(|seconds| duration("deadline", seconds)).transpose()?;
        let mut how = SendOptions::new().stream(stream).ppid(ppid).context(context).priority(priority);
        (how.unordered, how.deadline) = (unordered, deadline);
        (how.max_retransmissions, how.report) = (max_retransmissions, report);
        let id = ConnectionId(connection);
        if let Ok(bytes) = data.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            return self.with(py, |socket| socket.send(id, bytes, &how));
        }
        let copy = copied(py, data)?;
        self.with(py, |socket| socket.send(id, &copy, &how))
    }

    /// The next message of a connection, a Message, or None.
    fn recv<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut message = Vec::new();
        let received = self.with(py, |socket| socket.recv(ConnectionId(connection), &mut message))?;
        let Some(received) = received else { return Ok(None) };
        let seconds = |it: Timing| [it.age, it.late, it.uncertainty].map(|time| time.as_secs_f64());
        let known = [
            ("stream", received.stream.into_pyobject(py)?.into_any()),
            ("ppid", received.ppid.into_pyobject(py)?.into_any()),
            ("unordered", pyo3::types::PyBool::new(py, received.unordered).to_owned().into_any()),
            ("timing", received.timing.map(seconds).into_pyobject(py)?),
        ];
        let class = py.import("braidcast.message")?.getattr("Message")?;
        class.call((PyBytes::new(py, &message),), Some(&known.into_py_dict(py)?)).map(Some)
    }

    /// Waits for the next event for at most timeout seconds, or for ever (None); meanwhile
    /// everything runs. None: nothing happened.
    #[pyo3(signature = (timeout=None))]
    fn poll(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Event>> {
        let end = timeout.map(|seconds| duration("timeout", seconds)).transpose()?.map(|it| Instant::now() + it);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let (wait, began) = (left.map_or(SLICE, |left| left.min(SLICE)), Instant::now());
            let event = py.detach(|| self.socket.poll(Some(wait))).map_err(exception)?;
            if let Some((connection, event)) = event {
                return Ok(Some(told(connection, event)));
            }
            // What ends before its time is interrupted.
            if left.is_some_and(|left| left <= wait) || began.elapsed() < wait {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// Ends a connection once everything that was sent is delivered; the event "closed" follows.
    fn shutdown(&self, py: Python<'_>, connection: u64) -> PyResult<()> {
        self.with(py, |socket| socket.shutdown(ConnectionId(connection)))
    }

    /// Ends a connection at once; the other end is told the reason, a str or bytes, and a code that
    /// means what the programs agree on. The event "closed" follows.
    #[pyo3(signature = (connection, reason=None, *, code=0))]
    fn abort(&self, py: Python<'_>, connection: u64, reason: Option<&Bound<'_, PyAny>>, code: u32) -> PyResult<()> {
        let reason = match reason {
            None => Vec::new(),
            Some(reason) => match reason.extract::<String>() {
                Ok(text) => text.into_bytes(),
                Err(_) => copied(py, reason)?,
            },
        };
        self.with(py, |socket| socket.abort(ConnectionId(connection), code, reason))
    }

    /// Ends all connections once everything that was sent is delivered. Returns whether they ended
    /// within timeout seconds.
    #[pyo3(signature = (timeout=5.0))]
    fn close(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let end = Instant::now() + duration("timeout", timeout)?;
        let mut closing = py.detach(|| self.socket.begin_close()).map_err(exception)?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if let Some(orderly) = py.detach(|| closing.wait(left.min(SLICE))).map_err(exception)? {
                return Ok(orderly);
            }
            if left.is_zero() {
                return Ok(false);
            }
            py.check_signals()?;
        }
    }

    /// Ends the waits of all threads in poll, which return None; if none waits, the next poll
    /// returns None at once.
    fn interrupt(&self) {
        self.socket.interrupt();
    }

    /// Who asked for a connection and was turned away since the last call: pairs of an address and
    /// a reason in words, eight at most.
    fn refused(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let all = |socket: &mut braidcast_socket::Socket| {
            Ok(std::iter::from_fn(|| socket.next_refused()).collect::<Vec<_>>())
        };
        let refused = self.with(py, all)?;
        Ok(refused.into_iter().map(|it| (it.remote.to_string(), it.why.to_string())).collect())
    }

    /// Bytes of messages of a connection that wait or are not acknowledged yet.
    fn buffered(&self, py: Python<'_>, connection: u64) -> PyResult<usize> {
        self.with(py, |socket| socket.buffered(ConnectionId(connection)))
    }

    /// The numbers of the connections that there are, oldest first.
    fn connections(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |socket| Ok(socket.connections().map(|id| id.0).collect()))
    }

    /// Says from now on what messages of a connection may have, in rate_report. least and greatest:
    /// bit/s that the program is able to make. latency: seconds from when a message is sent until
    /// it has to be at the other end. interval: seconds from one frame to the next, 0.004 to 1;
    /// None: the times of messages show it, if each frame is one message or leaves at once. Called
    /// again, it begins anew.
    #[pyo3(signature = (connection, *, least=100_000, greatest=50_000_000, latency=0.5, interval=None))]
    fn follow_rate(
        &self,
        py: Python<'_>,
        connection: u64,
        least: u64,
        greatest: u64,
        latency: f64,
        interval: Option<f64>,
    ) -> PyResult<()> {
        let (limits, latency) = (limits(least, greatest)?, duration("latency", latency)?);
        let interval = interval.map(|seconds| duration("interval", seconds)).transpose()?;
        let mut options = RateOptions::new(limits).latency(latency);
        options.interval = interval;
        self.with(py, |socket| socket.follow_rate(ConnectionId(connection), &options))
    }

    /// Other rates that the program is able to make, bit/s. What is known of the paths stays.
    fn set_rate_limits(&self, py: Python<'_>, connection: u64, least: u64, greatest: u64) -> PyResult<()> {
        let limits = limits(least, greatest)?;
        self.with(py, |socket| socket.set_rate_limits(ConnectionId(connection), limits))
    }

    /// How many bits the next message of a connection may have (next_frame_bits; 0: leave it out),
    /// and which rate will hold for the next second (rate_bits_per_second; smoothed_bits_per_second
    /// for people), a dict with what else is known. Ask before each message. None before
    /// follow_rate, and while the connection is not up.
    fn rate_report<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let report = self.with(py, |socket| socket.rate_report(ConnectionId(connection)))?;
        report.map(|report| rate_dict(py, &report)).transpose()
    }

    /// The paths of a connection as they are now, a dict each.
    fn paths<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let paths = self.with(py, |socket| socket.paths(ConnectionId(connection)))?;
        let dict = |path: &braidcast_socket::PathReport| {
            let dict = PyDict::new(py);
            dict.set_item("name", &path.name)?;
            dict.set_item("remote", path.remote.to_string())?;
            dict.set_item("state", state(path.state))?;
            dict.set_item("rtt_ms", path.rtt.map(|it| it.as_secs_f64() * 1e3))?;
            dict.set_item("capacity_bits_per_second", path.capacity)?;
            dict.set_item("sent_bytes", path.sent_bytes)?;
            dict.set_item("received_bytes", path.received_bytes)?;
            dict.set_item("lost_chunks", path.lost_chunks)?;
            Ok(dict)
        };
        paths.iter().map(dict).collect()
    }

    /// A file descriptor that is readable when poll(0) has something to do, for select and asyncio.
    /// Do not close it.
    fn fileno(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The bytes of anything that has some. They may change while Python runs on.
pub(crate) fn copied(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(bytes) = data.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    let view = py.import("builtins")?.getattr("memoryview")?.call1((data,))?;
    view.call_method0("tobytes")?.extract()
}

/// A path as Python writes it.
#[derive(FromPyObject)]
pub(crate) enum PathArgument {
    To(String),
    Via(String, Option<String>),
}

impl PathArgument {
    pub(crate) fn path(self) -> PyResult<Path> {
        let path = |text: String| text.parse::<Path>().map_err(Misuse::new_err);
        Ok(match self {
            Self::To(remote) | Self::Via(remote, None) => path(remote)?,
            Self::Via(remote, Some(via)) => path(remote)?.through(&via),
        })
    }
}

impl Socket {
    /// Runs `call` while other Python threads go on.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut braidcast_socket::Socket) -> Result<T, braidcast_socket::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| self.socket.with(call)).map_err(exception)
    }
}

fn told(connection: ConnectionId, event: braidcast_socket::Event) -> Event {
    use braidcast_socket::Event as Inner;
    let (connection, text, unsettled, data) = (connection.0, String::new(), Vec::new(), Vec::new());
    let it = Event { kind: "other", connection, text, context: 0, reason: None, code: 0, unsettled, data };
    match event {
        Inner::Connected => Event { kind: "connected", ..it },
        Inner::Readable => Event { kind: "readable", ..it },
        Inner::Writable => Event { kind: "writable", ..it },
        Inner::PathUp { name, .. } => Event { kind: "path up", text: name, ..it },
        Inner::PathDown { name, .. } => Event { kind: "path down", text: name, ..it },
        Inner::Discarded { context } => Event { kind: "discarded", context, ..it },
        Inner::Delivered { context } => Event { kind: "delivered", context, ..it },
        Inner::Restarted => Event { kind: "restarted", ..it },
        Inner::Closed { reason: why, unsettled } => {
            let reason = Some(reason(&why));
            let code = match &why {
                CloseReason::ByPeer { code, .. } => *code,
                CloseReason::Insecure { why, .. } => *why as u32,
                CloseReason::ByTransport { cause, .. } => (*cause).into(),
                _ => 0,
            };
            let (text, data) = match why {
                CloseReason::ByPeer { reason, .. } => (String::from_utf8_lossy(&reason).into_owned(), reason),
                other => (other.to_string(), Vec::new()),
            };
            Event { kind: "closed", text, reason, code, unsettled, data, ..it }
        }
        _ => it,
    }
}

pub(crate) fn reason(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::Shutdown => "shutdown",
        CloseReason::Aborted => "aborted",
        CloseReason::ByPeer { .. } => "aborted by peer",
        CloseReason::PeerRestarted => "peer restarted",
        CloseReason::Unresolved { .. } => "unresolved",
        CloseReason::NoAnswer => "no answer",
        CloseReason::PathsFailed => "paths failed",
        CloseReason::Insecure { why: Insecurity::WrongKey, .. } => "wrong key",
        CloseReason::Insecure { why: Insecurity::NotLetIn, .. } => "not let in",
        CloseReason::Insecure { .. } => "insecure",
        CloseReason::ByTransport { .. } => "by transport",
        CloseReason::Violation(_) => "violation",
        _ => "other",
    }
}

fn state(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially failed",
        PathState::Inactive => "inactive",
    }
}

pub(crate) fn parse(address: &str) -> PyResult<SocketAddr> {
    address.parse().map_err(|_| {
        Misuse::new_err(format!(
            "{address:?} is not an address with a port, for example 192.0.2.1:9000 or [2001:db8::1]:9000"
        ))
    })
}

pub(crate) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    let what = || Misuse::new_err(format!("{name} is {seconds}; give seconds, 0 or more"));
    Duration::try_from_secs_f64(seconds).map_err(|_| what()).map(|it| it.min(Duration::from_secs(u32::MAX.into())))
}

pub(crate) fn limits(least: u64, greatest: u64) -> PyResult<RateLimits> {
    if least > greatest {
        return Err(Misuse::new_err(format!("least is {least}, more than greatest, {greatest}; give a lower least")));
    }
    Ok(RateLimits::new(least, greatest))
}

pub(crate) fn exception(error: braidcast_socket::Error) -> PyErr {
    use braidcast_socket::Error as Inner;
    let text = error.to_string();
    match error {
        Inner::NoConnection(_) => NoConnection::new_err(text),
        Inner::Send(SendError::BufferFull { .. } | SendError::QueueFull { .. }) => BufferFull::new_err(text),
        Inner::Io(_) => SystemFailure::new_err(text),
        Inner::Broken => Broken::new_err(text),
        _ => Error::new_err(text),
    }
}
