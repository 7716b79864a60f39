//! What comes to sockets of tasks, as streams.

use super::{AsyncSocket, Connection, Message};
use crate::{Error, Event};
use braidcast_driver::Waiting;
use futures_core::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The connections that other ends begin: [`AsyncSocket::incoming`]. It ends after [`Error::Broken`].
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct Incoming {
    socket: AsyncSocket,
    waiting: Waiting,
    over: bool,
}

/// The messages of a connection: [`Connection::messages`]. It ends with the connection, once all that
/// came was received, and after [`Error::Broken`]. As it has a clone of the connection, that does not
/// shut down before it is dropped.
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct Messages {
    connection: Connection,
    waiting: Waiting,
    over: bool,
}

/// What happens to a connection besides messages: [`Connection::events`]. It ends with the connection,
/// and after [`Error::Broken`]. As it has a clone of the connection, that does not shut down before it
/// is dropped.
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct ConnectionEvents {
    connection: Connection,
    waiting: Waiting,
    over: bool,
}

impl Incoming {
    pub(super) fn new(socket: AsyncSocket) -> Self {
        let waiting = Waiting::new(Arc::clone(&socket.0.0.accepted));
        Self { socket, waiting, over: false }
    }
}

impl Messages {
    pub(super) fn new(connection: Connection) -> Self {
        let waiting = Waiting::new(Arc::clone(&connection.0.news.changed));
        Self { connection, waiting, over: false }
    }
}

impl ConnectionEvents {
    pub(super) fn new(connection: Connection) -> Self {
        let waiting = Waiting::new(Arc::clone(&connection.0.news.changed));
        Self { connection, waiting, over: false }
    }
}

/// What a stream has next: nothing after the end, and nothing after an error. `over`: either was.
fn next<T>(over: &mut bool, poll: impl FnOnce() -> Poll<Result<Option<T>, Error>>) -> Poll<Option<Result<T, Error>>> {
    if *over {
        return Poll::Ready(None);
    }
    let polled = poll();
    *over = matches!(polled, Poll::Ready(Ok(None) | Err(_)));
    polled.map(Result::transpose)
}

impl Stream for Incoming {
    type Item = Result<Connection, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { socket, waiting, over } = self.get_mut();
        next(over, || waiting.poll(context, || socket.accepted().map_ok(Some)))
    }
}

impl Stream for Messages {
    type Item = Result<Message, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { connection, waiting, over } = self.get_mut();
        next(over, || waiting.poll(context, || connection.received()))
    }
}

impl Stream for ConnectionEvents {
    type Item = Result<Event, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { connection, waiting, over } = self.get_mut();
        next(over, || waiting.poll(context, || connection.happened()))
    }
}
