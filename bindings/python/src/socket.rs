use crate::{Error, NoConnection};
use braidcast_socket::{
    ConnectionId, Path, PathState, Protection, RateLimits, RateOptions, RateReport, SendError, SendOptions,
};
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a wait goes on before Python's signals are looked at, so that Ctrl-C works.
const SLICE: Duration = Duration::from_millis(100);

/// A socket for messages over several networks at once.
///
/// Socket(key=None, plain=False): with a key, which both ends share, only who has it gets in;
/// without one it is encrypted, with anybody; plain=True encrypts nothing. All that is to leave and
/// to come does so within poll.
#[pyclass(frozen, module = "braidcast")]
pub struct Socket {
    socket: Mutex<braidcast_socket::Socket>,
    fd: RawFd,
}

/// What happened to a connection.
#[pyclass(frozen, module = "braidcast")]
pub struct Event {
    /// "connected", "readable", "writable", "path up", "path down", "discarded" or "closed".
    #[pyo3(get)]
    kind: &'static str,
    /// The number of the connection.
    #[pyo3(get)]
    connection: u64,
    /// The path of "path up" and "path down", the reason of "closed", else "".
    #[pyo3(get)]
    text: String,
    /// What a message that was "discarded" was sent with.
    #[pyo3(get)]
    context: u64,
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        format!("<braidcast.Event {:?} connection={} text={:?}>", self.kind, self.connection, self.text)
    }
}

#[pymethods]
impl Socket {
    #[new]
    #[pyo3(signature = (key=None, plain=false))]
    fn new(py: Python<'_>, key: Option<String>, plain: bool) -> PyResult<Self> {
        let protection = match (key, plain) {
            (Some(_), true) => return Err(PyValueError::new_err("a key needs encryption: leave out key, or plain")),
            (Some(key), false) => Protection::Key(key),
            (None, true) => Protection::Plain,
            (None, false) => Protection::Anyone,
        };
        // A passphrase takes a quarter of a second.
        let socket = py.detach(|| braidcast_socket::Socket::new(&protection)).map_err(exception)?;
        Ok(Self { fd: socket.as_raw_fd(), socket: Mutex::new(socket) })
    }

    /// Opens a local address, for example "0.0.0.0:9000"; port 0 takes any that is free. Returns
    /// the address with its port.
    fn bind(&self, py: Python<'_>, address: &str) -> PyResult<String> {
        let address = parse(address)?;
        self.with(py, |socket| socket.bind(address)).map(|bound| bound.to_string())
    }

    /// Accepts connections from now on; each begins with the event "connected".
    fn listen(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |socket| {
            socket.listen();
            Ok(())
        })
    }

    /// Begins a connection over paths, each an address ("192.0.2.1:9000") or a pair of an address
    /// and what the path leaves through, an interface ("wlan0") or a local address. Returns its
    /// number; the event "connected" or "closed" follows.
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
    /// which it is discarded. Raises BlockingIOError if there is no room: wait for "writable".
    #[pyo3(signature = (connection, data, *, stream=0, unordered=false, deadline=None, max_retransmissions=None, ppid=0, context=0))]
    #[allow(clippy::too_many_arguments, reason = "keywords in Python")]
    fn send(
        &self,
        py: Python<'_>,
        connection: u64,
        data: &[u8],
        stream: u16,
        unordered: bool,
        deadline: Option<f64>,
        max_retransmissions: Option<u16>,
        ppid: u32,
        context: u64,
    ) -> PyResult<()> {
        let deadline = deadline.map(|seconds| duration("deadline", seconds)).transpose()?;
        let how = SendOptions { stream, unordered, deadline, max_retransmissions, ppid, context };
        // The bytes are Python's: they are not touched without its lock.
        let mut socket = self.lock(py);
        socket.send(ConnectionId(connection), data, &how).map_err(exception)
    }

    /// The next message of a connection, or None.
    fn recv<'py>(&self, py: Python<'py>, connection: u64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut message = Vec::new();
        let received = self.with(py, |socket| socket.recv(ConnectionId(connection), &mut message))?;
        Ok(received.map(|_| PyBytes::new(py, &message)))
    }

    /// Waits for the next event for at most timeout seconds, or for ever (None); meanwhile
    /// everything runs. None: nothing happened.
    #[pyo3(signature = (timeout=None))]
    fn poll(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Event>> {
        let end = timeout.map(|seconds| duration("timeout", seconds)).transpose()?.map(|it| Instant::now() + it);
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = left.map_or(SLICE, |left| left.min(SLICE));
            let event = self.with(py, |socket| socket.poll(Some(wait)))?;
            if let Some((connection, event)) = event {
                return Ok(Some(told(connection, event)));
            }
            if left.is_some_and(|left| left <= wait) {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// Ends a connection once everything that was sent is delivered; the event "closed" follows.
    fn shutdown(&self, py: Python<'_>, connection: u64) -> PyResult<()> {
        self.with(py, |socket| socket.shutdown(ConnectionId(connection)))
    }

    /// Ends a connection at once; the other end is told the reason. The event "closed" follows.
    #[pyo3(signature = (connection, reason=""))]
    fn abort(&self, py: Python<'_>, connection: u64, reason: &str) -> PyResult<()> {
        self.with(py, |socket| socket.abort(ConnectionId(connection), reason))
    }

    /// Ends all connections once everything that was sent is delivered. Returns whether they ended
    /// within timeout seconds.
    #[pyo3(signature = (timeout=5.0))]
    fn close(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = duration("timeout", timeout)?;
        self.with(py, |socket| socket.close(timeout))
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
        let options = RateOptions { latency, limits, interval };
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
        let dict = |report: RateReport| {
            let dict = PyDict::new(py);
            dict.set_item("next_frame_bits", report.next_frame_bits)?;
            dict.set_item("rate_bits_per_second", report.rate)?;
            dict.set_item("smoothed_bits_per_second", report.smoothed_rate)?;
            dict.set_item("is_floor", report.is_floor)?;
            dict.set_item("below_least", report.below_least)?;
            dict.set_item("waiting_ms", report.waiting_ms)?;
            dict.set_item("waiting_frames", report.waiting_frames)?;
            dict.set_item("frame_interval_ms", report.frame_interval_ms)?;
            Ok(dict)
        };
        report.map(dict).transpose()
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

    /// A file descriptor that is readable when poll(0) has something to do, for select and asyncio. Do not close it.
    fn fileno(&self) -> RawFd {
        self.fd
    }
}

/// A path as Python writes it.
#[derive(FromPyObject)]
enum PathArgument {
    To(String),
    Via(String, Option<String>),
}

impl PathArgument {
    fn path(self) -> PyResult<Path> {
        Ok(match self {
            Self::To(remote) | Self::Via(remote, None) => Path::to(parse(&remote)?),
            Self::Via(remote, Some(via)) => Path::via(parse(&remote)?, &via),
        })
    }
}

impl Socket {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, braidcast_socket::Socket> {
        match self.socket.try_lock() {
            Ok(socket) => socket,
            // Another thread polls: it releases the lock without Python's.
            Err(_) => loop {
                if let Ok(socket) = self.socket.try_lock() {
                    break socket;
                }
                py.detach(|| std::thread::sleep(Duration::from_micros(200)));
            },
        }
    }

    /// Runs `call` while other Python threads go on.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut braidcast_socket::Socket) -> Result<T, braidcast_socket::Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| call(&mut self.socket.lock().unwrap_or_else(PoisonError::into_inner))).map_err(exception)
    }
}

fn told(connection: ConnectionId, event: braidcast_socket::Event) -> Event {
    use braidcast_socket::Event as Inner;
    let (kind, text, context) = match event {
        Inner::Connected => ("connected", String::new(), 0),
        Inner::Readable => ("readable", String::new(), 0),
        Inner::Writable => ("writable", String::new(), 0),
        Inner::PathUp { name, .. } => ("path up", name, 0),
        Inner::PathDown { name, .. } => ("path down", name, 0),
        Inner::Discarded { context } => ("discarded", String::new(), context),
        Inner::Closed(reason) => ("closed", reason.to_string(), 0),
        _ => ("other", String::new(), 0),
    };
    Event { kind, connection: connection.0, text, context }
}

fn state(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially failed",
        PathState::Inactive => "inactive",
    }
}

fn parse(address: &str) -> PyResult<SocketAddr> {
    address.parse().map_err(|_| {
        PyValueError::new_err(format!(
            "{address:?} is not an address with a port, for example 192.0.2.1:9000 or [2001:db8::1]:9000"
        ))
    })
}

fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    let what = || PyValueError::new_err(format!("{name} is {seconds}; give seconds, 0 or more"));
    Duration::try_from_secs_f64(seconds).map_err(|_| what()).map(|it| it.min(Duration::from_secs(u32::MAX.into())))
}

fn limits(least: u64, greatest: u64) -> PyResult<RateLimits> {
    if least > greatest {
        return Err(PyValueError::new_err(format!(
            "least is {least}, more than greatest, {greatest}; give a lower least"
        )));
    }
    Ok(RateLimits { least, greatest })
}

fn exception(error: braidcast_socket::Error) -> PyErr {
    use braidcast_socket::Error as Inner;
    let text = error.to_string();
    match error {
        Inner::NoConnection(_) => NoConnection::new_err(text),
        Inner::Send(SendError::BufferFull { .. } | SendError::QueueFull { .. }) => PyBlockingIOError::new_err(text),
        Inner::Io(_) => PyOSError::new_err(text),
        _ => Error::new_err(text),
    }
}
