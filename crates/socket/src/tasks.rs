//! Sockets for tasks of tokio.

mod streams;

use crate::{
    CloseReason, ConnectionId, Error, Event, Path, PathReport, Peer, Received, SendError, SendOptions, Socket,
};
use braidcast_driver::ReadyFd;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
pub use streams::{ConnectionEvents, Incoming, Messages};
use tokio::sync::Notify;

/// A [`Socket`] for tasks: it listens, and connects. A task of its own runs it. When it and all its
/// connections are dropped, these shut down, and the task ends when they have.
#[derive(Clone, Debug)]
pub struct AsyncSocket(Arc<Handles>);

/// A connection of an [`AsyncSocket`], for any number of tasks. When its last clone is dropped it
/// shuts down: what was sent still arrives.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Open>);

/// A message that was received, and what is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Message {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Stream, order and kind.
    pub received: Received,
}

/// What all tasks share.
#[derive(Debug)]
struct Shared {
    socket: Mutex<Socket>,
    state: Mutex<State>,
    /// There is something to be driven.
    touched: Notify,
    /// A connection was accepted, or the socket failed.
    accepted: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    connections: BTreeMap<ConnectionId, Arc<News>>,
    accepted: VecDeque<(ConnectionId, Arc<News>)>,
    /// Connections whose last clone is dropped: nobody receives any more.
    abandoned: BTreeSet<ConnectionId>,
    /// All handles are dropped.
    dropped: bool,
    /// Its connections shut down: nobody receives any more.
    closing: bool,
    /// The socket does not work any more.
    failed: bool,
}

/// What a connection's tasks wait for.
#[derive(Debug, Default)]
struct News {
    changed: Arc<Notify>,
    connection: Mutex<Progress>,
}

/// Events of a connection that are kept for who asks for them.
const EVENTS: usize = 1024;

#[derive(Debug, Default)]
struct Progress {
    connected: bool,
    end: Option<(CloseReason, Vec<u64>)>,
    /// What nobody has asked for yet, at most [`EVENTS`].
    events: VecDeque<Event>,
}

impl Progress {
    /// Keeps `event`; if there are too many, the oldest goes.
    fn keep(&mut self, event: Event) {
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

/// What the task has. However that ends, by a panic or with its runtime too, nobody waits for it any more.
struct Driven(Arc<Shared>);

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// As long as there is one, the task goes on.
#[derive(Debug)]
struct Handles(Arc<Shared>);

#[derive(Debug)]
struct Open {
    socket: AsyncSocket,
    id: ConnectionId,
    news: Arc<News>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The socket, unless a call panicked and may have left it in disorder.
    fn socket(&self) -> Result<MutexGuard<'_, Socket>, Error> {
        self.socket.lock().map_err(|_| Error::Broken)
    }

    /// Does what there is to do. Returns `false` if the task is to end.
    fn drive(&self) -> Result<bool, Error> {
        loop {
            let event = self.socket()?.poll(Some(Duration::ZERO))?;
            match event {
                Some((id, event)) => self.happened(id, event),
                None => {
                    let (dropped, closing, abandoned) = {
                        let mut state = lock(&self.state);
                        let closing = state.closing;
                        state.closing |= state.dropped;
                        (state.dropped, closing, state.abandoned.iter().copied().collect::<Vec<_>>())
                    };
                    let mut socket = self.socket()?;
                    // What nobody reads would hold up the end.
                    let mut any = false;
                    for connection in abandoned {
                        any |= socket.discard_received_of(connection);
                    }
                    if any {
                        continue;
                    }
                    if dropped && !closing {
                        // What was sent is to arrive all the same; nobody receives any more.
                        socket.begin_close()?;
                    } else if !(closing && socket.discard_received()) {
                        return Ok(!dropped || socket.connections().next().is_some());
                    }
                }
            }
        }
    }

    fn happened(&self, id: ConnectionId, event: Event) {
        let mut state = lock(&self.state);
        let new = !state.connections.contains_key(&id);
        let news = Arc::clone(state.connections.entry(id).or_default());
        match event {
            Event::Connected => {
                lock(&news.connection).connected = true;
                if new {
                    state.accepted.push_back((id, Arc::clone(&news)));
                    self.accepted.notify_waiters();
                }
            }
            Event::Closed { reason, unsettled } => {
                lock(&news.connection).end = Some((reason, unsettled));
                state.connections.remove(&id);
                state.abandoned.remove(&id);
                // Nothing is left to read: who accepts late need not hear of it.
                state.accepted.retain(|(other, _)| *other != id);
            }
            // Who sends or receives waits for these.
            Event::Readable | Event::Writable => {}
            event => lock(&news.connection).keep(event),
        }
        news.changed.notify_waiters();
    }

    /// Nothing works any more: everybody who waits gets to know.
    fn fail(&self) {
        let mut state = lock(&self.state);
        state.failed = true;
        state.connections.values().for_each(|news| news.changed.notify_waiters());
        self.accepted.notify_waiters();
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        lock(&self.0.state).dropped = true;
        self.0.touched.notify_one();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let shared = &self.socket.0.0;
        {
            let mut state = lock(&shared.state);
            if state.connections.contains_key(&self.id) {
                state.abandoned.insert(self.id);
            }
        }
        // Where that fails there is nothing to end.
        _ = shared.socket().and_then(|mut socket| socket.shutdown(self.id));
        shared.touched.notify_one();
    }
}

impl AsyncSocket {
    /// Takes over `socket`, which may listen, and runs it in a task.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// Outside of a tokio runtime, or in one without I/O (`enable_io`).
    pub fn new(socket: Socket) -> Result<Self, Error> {
        let ready = ReadyFd::new(socket.as_fd())?;
        let shared = Arc::new(Shared {
            socket: Mutex::new(socket),
            state: Mutex::default(),
            touched: Notify::new(),
            accepted: Arc::default(),
        });
        let driven = Driven(Arc::clone(&shared));
        tokio::spawn(async move {
            let driven = &driven.0;
            let mut goes_on = driven.drive();
            while let Ok(true) = goes_on {
                tokio::select! {
                    done = ready.drained(|| driven.drive()) => goes_on = done.unwrap_or_else(|error| Err(error.into())),
                    () = driven.touched.notified() => goes_on = driven.drive(),
                }
            }
        });
        Ok(Self(Arc::new(Handles(shared))))
    }

    /// Waits for the next connection that another end begins. Dropping the future loses none.
    ///
    /// # Errors
    /// [`Error::Broken`] if the socket does not work any more.
    pub async fn accept(&self) -> Result<Connection, Error> {
        loop {
            let waits = self.0.0.accepted.notified();
            match self.accepted() {
                Poll::Ready(accepted) => return accepted,
                Poll::Pending => waits.await,
            }
        }
    }

    /// The connection that was accepted, if there is one.
    fn accepted(&self) -> Poll<Result<Connection, Error>> {
        let mut state = lock(&self.0.0.state);
        match state.accepted.pop_front() {
            Some((id, news)) => Poll::Ready(Ok(Connection(Arc::new(Open { socket: self.clone(), id, news })))),
            None if state.failed => Poll::Ready(Err(Error::Broken)),
            None => Poll::Pending,
        }
    }

    /// The connections that other ends begin, as a stream. Dropping it loses none.
    pub fn incoming(&self) -> Incoming {
        Incoming::new(self.clone())
    }

    /// Connects over these paths.
    ///
    /// # Errors
    /// As [`Socket::connect`], [`Error::Closed`] with what came of it, [`Error::Broken`].
    pub async fn connect(&self, paths: &[Path]) -> Result<Connection, Error> {
        let shared = &self.0.0;
        let connection = {
            // The task does not hear of it before it is known here.
            let mut state = lock(&shared.state);
            let id = shared.socket()?.connect(paths)?;
            let news = Arc::clone(state.connections.entry(id).or_default());
            Connection(Arc::new(Open { socket: self.clone(), id, news }))
        };
        shared.touched.notify_one();
        connection.0.socket.wait_for(&connection.0.news, |progress| progress.connected.then_some(())).await?;
        Ok(connection)
    }

    /// Accepts no more connections, and ends those that there are once everything that was sent is
    /// acknowledged. Messages that still come are lost. Returns whether all ended in good order
    /// within `timeout`.
    ///
    /// # Errors
    /// [`Error::Broken`] if the socket does not work any more.
    ///
    /// # Panics
    /// In a tokio runtime without time (`enable_time`).
    pub async fn close(&self, timeout: Duration) -> Result<bool, Error> {
        let all: Vec<_> = {
            let mut state = lock(&self.0.0.state);
            state.closing = true;
            state.connections.values().cloned().collect()
        };
        self.with(Socket::begin_close)?;
        let ends = async {
            let mut orderly = true;
            for news in all {
                let end = self.wait_for(&news, |it| it.end.clone()).await?;
                orderly &= end.0 == CloseReason::Shutdown;
            }
            Ok(orderly)
        };
        tokio::time::timeout(timeout, ends).await.unwrap_or(Ok(false))
    }

    /// Waits until `wanted` returns something of what is known of a connection.
    async fn wait_for<T>(&self, news: &News, wanted: impl Fn(&Progress) -> Option<T>) -> Result<T, Error> {
        loop {
            let waits = news.changed.notified();
            {
                let progress = lock(&news.connection);
                if let Some(it) = wanted(&progress) {
                    return Ok(it);
                }
                if let Some((reason, _)) = &progress.end {
                    return Err(Error::Closed(reason.clone()));
                }
            }
            if lock(&self.0.0.state).failed {
                return Err(Error::Broken);
            }
            waits.await;
        }
    }

    /// Calls `call` with the socket, for what this type does not have.
    ///
    /// # Errors
    /// Those of `call`, and [`Error::Broken`] if the socket does not work any more.
    pub fn with<T>(&self, call: impl FnOnce(&mut Socket) -> Result<T, Error>) -> Result<T, Error> {
        let shared = &self.0.0;
        if lock(&shared.state).failed {
            return Err(Error::Broken);
        }
        let done = call(&mut *shared.socket()?);
        shared.touched.notify_one();
        done
    }
}

impl Connection {
    /// Its number, for [`AsyncSocket::with`].
    #[must_use]
    pub fn id(&self) -> ConnectionId {
        self.0.id
    }

    /// Takes a message to be sent, as soon as there is room for it. Dropping the future before that
    /// sends nothing.
    ///
    /// # Errors
    /// [`Error::Send`]: it was not taken; [`Error::NoConnection`] if the connection is over.
    pub async fn send(&self, message: &[u8], options: &SendOptions) -> Result<(), Error> {
        loop {
            let waits = self.0.news.changed.notified();
            match self.try_send(message, options) {
                Err(Error::Send(SendError::BufferFull { .. } | SendError::QueueFull { .. })) => waits.await,
                done => return done,
            }
        }
    }

    /// Takes a message to be sent if there is room for it now.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`SendError::BufferFull`].
    pub fn try_send(&self, message: &[u8], options: &SendOptions) -> Result<(), Error> {
        self.0.socket.with(|socket| socket.send(self.0.id, message, options))
    }

    /// Waits for the next message. `None`: the connection is over, and all that came was received.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Broken`] if the socket does not work any more.
    pub async fn recv(&self) -> Result<Option<Message>, Error> {
        loop {
            let waits = self.0.news.changed.notified();
            match self.received() {
                Poll::Ready(received) => return received,
                Poll::Pending => waits.await,
            }
        }
    }

    /// The next message if there is one; `None` once the connection is over.
    fn received(&self) -> Poll<Result<Option<Message>, Error>> {
        let mut data = Vec::new();
        match self.0.socket.with(|socket| socket.recv(self.0.id, &mut data)) {
            Ok(None) => {}
            Ok(Some(received)) => return Poll::Ready(Ok(Some(Message { data, received }))),
            Err(error) => return Poll::Ready(Err(error)),
        }
        let state = lock(&self.0.socket.0.0.state);
        match state.connections.contains_key(&self.0.id) {
            false => Poll::Ready(Ok(None)),
            true if state.failed => Poll::Ready(Err(Error::Broken)),
            true => Poll::Pending,
        }
    }

    /// The messages that come, as a stream. Each comes once, to whoever asks first; dropping the stream
    /// loses none.
    pub fn messages(&self) -> Messages {
        Messages::new(self.clone())
    }

    /// Waits for the next thing that happened besides messages: one of ours was discarded or delivered, a path came or
    /// went, the other end began anew. Its last 1,024 events are kept, so a task that wants all of them should wait
    /// here. `None`: the connection is over, and nothing is left to tell. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Broken`] if the socket does not work any more.
    pub async fn event(&self) -> Result<Option<Event>, Error> {
        loop {
            let waits = self.0.news.changed.notified();
            match self.happened() {
                Poll::Ready(event) => return event,
                Poll::Pending => waits.await,
            }
        }
    }

    /// The next event if there is one; `None` once the connection is over.
    fn happened(&self) -> Poll<Result<Option<Event>, Error>> {
        let mut progress = lock(&self.0.news.connection);
        if let Some(event) = progress.events.pop_front() {
            return Poll::Ready(Ok(Some(event)));
        }
        if progress.end.is_some() {
            return Poll::Ready(Ok(None));
        }
        drop(progress);
        if lock(&self.0.socket.0.0.state).failed { Poll::Ready(Err(Error::Broken)) } else { Poll::Pending }
    }

    /// What happens besides messages, as a stream: [`event`](Self::event) after event.
    pub fn events(&self) -> ConnectionEvents {
        ConnectionEvents::new(self.clone())
    }

    /// Ends it once everything that was sent is acknowledged, and waits for that. What comes and is
    /// not received by another task is lost.
    ///
    /// # Errors
    /// [`Error::Closed`] if it ended otherwise, [`Error::Broken`].
    pub async fn shutdown(&self) -> Result<(), Error> {
        self.0.socket.with(|socket| socket.shutdown(self.0.id)).or_else(|error| match error {
            Error::NoConnection(_) => Ok(()),
            other => Err(other),
        })?;
        while self.recv().await?.is_some() {}
        match lock(&self.0.news.connection).end.clone() {
            Some((reason, _)) if reason != CloseReason::Shutdown => Err(Error::Closed(reason)),
            _ => Ok(()),
        }
    }

    /// Ends it at once; the other end is told `code` and `reason`, as by [`Socket::abort`].
    pub fn abort(&self, code: u32, reason: impl AsRef<[u8]>) {
        // There is nothing to abort where it is over.
        _ = self.0.socket.with(|socket| socket.abort(self.0.id, code, reason));
    }

    /// Who is at the other end; `None` if nothing is encrypted, or the connection is over.
    #[must_use]
    pub fn peer(&self) -> Option<Peer> {
        self.0.socket.with(|socket| socket.peer(self.0.id)).ok().flatten()
    }

    /// Its paths as they are now; none once it is over.
    #[must_use]
    pub fn paths(&self) -> Vec<PathReport> {
        self.0.socket.with(|socket| socket.paths(self.0.id)).unwrap_or_default()
    }

    /// Waits for its end: why it is over, and the contexts of messages of which it is not known
    /// whether they arrived. That comes once all that came was received.
    ///
    /// # Errors
    /// [`Error::Broken`] if the socket does not work any more.
    pub async fn closed(&self) -> Result<(CloseReason, Vec<u64>), Error> {
        match self.0.socket.wait_for(&self.0.news, |progress| progress.end.clone()).await {
            Err(Error::Closed(reason)) => Ok((reason, Vec::new())),
            done => done,
        }
    }
}
