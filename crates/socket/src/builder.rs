use crate::socket::usual_options;
use crate::{Error, Identity, Protection, Socket, Trust};
use braidcast_sctp::{Code, Method, Options, SchedulerKind};
use std::time::Duration;

/// What a socket is for. It sets how the transport works; limits and protection stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Live data: quick acknowledgements and timers, short queues ([`Options::live`]).
    #[default]
    Live,
    /// As much as the paths carry, by the transport's standard timers ([`Options::default`]). A dead
    /// path is noticed after seconds.
    Bulk,
    /// As [`Live`](Self::Live), for few data that matter at once: a part of a message with a
    /// deadline that would miss it over its path goes over another one too.
    Voice,
}

impl Profile {
    fn options(self) -> Options {
        match self {
            Self::Live => usual_options(Options::live()),
            Self::Bulk => usual_options(Options::default()),
            Self::Voice => usual_options(Options::live()).with(|it| it.redundancy.reinject = true),
        }
    }
}

/// What a [`Socket`] is made with, of [`Socket::builder`].
///
/// ```
/// use braidcast_socket::Socket;
/// use std::time::Duration;
///
/// let socket = Socket::builder()
///     .key("a passphrase that both ends know")
///     .longest_silence(Some(Duration::from_secs(5)))
///     .buffers(1 << 20, 1 << 20)
///     .max_message(100_000)
///     .options(|it| it.paths.max_paths = 2)
///     .build()?;
/// # drop(socket);
/// # Ok::<(), braidcast_socket::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it makes nothing before `build`"]
pub struct SocketBuilder {
    protection: Protection,
    options: Options,
}

impl SocketBuilder {
    pub(crate) fn new() -> Self {
        Self { protection: Protection::default(), options: Profile::default().options() }
    }

    /// What it is for. Call it before [`fec`](Self::fec), [`scheduler`](Self::scheduler) and
    /// [`options`](Self::options), whose changes it would undo.
    pub fn profile(mut self, profile: Profile) -> Self {
        let (limits, silence) = (self.options.limits, self.options.timers.give_up);
        self.options = profile.options();
        self.options.limits = limits;
        self.options.timers.give_up = silence;
        self
    }

    /// Each end has a key of its own, and says whose it takes ([`Protection::Identity`]).
    pub fn identity(self, own: Identity, trust: Trust) -> Self {
        self.protection(Protection::Identity { own, trust })
    }

    /// Only who has the same key gets in ([`Protection::Key`]). Default: encrypted, with anybody.
    pub fn key(self, key: &str) -> Self {
        self.protection(Protection::Key(key.to_owned()))
    }

    /// How all that goes over it is protected.
    pub fn protection(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// How long nothing may be heard from the other end before a connection ends, at least 1 ms.
    /// `None`: for ever. Default [`Socket::LONGEST_SILENCE`].
    pub fn longest_silence(self, limit: Option<Duration>) -> Self {
        self.options(|it| it.timers.give_up = limit)
    }

    /// Sends redundancy by this code, for example `"tetrys:10,9,200".parse()`: what is lost need not
    /// be sent again if enough of the rest arrives. It is taken by every socket. Default: none is sent.
    pub fn fec(self, code: Code) -> Self {
        self.options(|it| it.redundancy.fec = Some(code))
    }

    /// Which path the next packet takes, for example `"earliest-delivery".parse()`. Default: as the
    /// [`profile`](Self::profile) has it.
    pub fn scheduler(self, scheduler: SchedulerKind) -> Self {
        self.options(|it| it.paths.scheduler = scheduler)
    }

    /// In which order messages leave while none can, and which are discarded then, for example
    /// `"in-time".parse()`: by priority, each only if it can still be in time. Default: streams by
    /// their priority, and each in the order in which its messages came.
    pub fn queue(self, method: Method) -> Self {
        self.options(|it| it.queue.method = Some(method))
    }

    /// Bytes of messages that each connection holds at most, to be sent and to be received, 1500
    /// bytes to 1 GiB. Default 4 MiB each. The longest message becomes as short as the smaller one.
    pub fn buffers(self, send: usize, receive: usize) -> Self {
        self.options(|it| {
            (it.limits.send_buffer, it.limits.receive_buffer) = (send, receive);
            it.limits.max_message = it.limits.max_message.min(send).min(receive);
        })
    }

    /// Bytes of the longest message, at most as many as each buffer has: call it after
    /// [`buffers`](Self::buffers). Default 2 MiB.
    pub fn max_message(self, bytes: usize) -> Self {
        self.options(|it| it.limits.max_message = bytes)
    }

    /// Connections that others may begin; 0 refuses them all. One more takes the place of one that
    /// is silent. Default 1024.
    pub fn max_connections(self, most: usize) -> Self {
        self.options(|it| it.limits.max_associations = most)
    }

    /// Changes any option of the transport. [`Options::security`] is set by
    /// [`protection`](Self::protection).
    pub fn options(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.options);
        self
    }

    /// Makes the socket.
    ///
    /// # Errors
    /// [`Error::Options`] if options contradict each other, and as [`Socket::new`].
    pub fn build(self) -> Result<Socket, Error> {
        let secured = self.protection.secured()?;
        let mut socket = Socket::with_options(self.options.with(|it| it.security = secured.options()))?;
        socket.is_secured(secured);
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_testing::assert_runs_as_documented;

    #[test]
    fn a_socket_runs_as_documented() {
        assert_runs_as_documented!("`Options::live()`", Options::live(), "none");
        let sockets = [
            Socket::new(&Protection::Plain),
            Socket::builder().build(),
            Socket::builder().profile(Profile::Live).build(),
        ];
        for socket in sockets.map(Result::unwrap) {
            let options = socket.options();
            let redundancy = options.redundancy.fec.map_or_else(|| "none".to_owned(), |it| it.to_string());
            assert_runs_as_documented!("`Socket`", options, redundancy);
        }
    }
}
