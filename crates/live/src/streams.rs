//! What happens at either end, as streams of tasks.

use crate::port::{Port, Weight};
use crate::{Error, MediaReceiver, MediaSender, ReceiverEvent, SenderEvent};
use braidcast_driver::Waiting;
use futures_core::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What happens at a sender: [`MediaSender::events`]. It ends once that is over, and after
/// [`Error::Broken`]. As it has a clone of the sender, that does not end before it is dropped.
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct SenderEvents {
    sender: MediaSender,
    turn: Turn,
}

/// What comes to a receiver: [`MediaReceiver::events`]. It ends once that has stopped and all was
/// handed out, and after [`Error::Broken`]. As it has a clone of the receiver, that does not end before
/// it is dropped.
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct ReceiverEvents {
    receiver: MediaReceiver,
    turn: Turn,
}

/// How far a stream is.
#[derive(Debug)]
struct Turn {
    waiting: Waiting,
    over: bool,
}

impl Turn {
    fn next<C, E>(&mut self, port: &Port<C, E>, context: &mut Context<'_>) -> Poll<Option<Result<E, Error>>>
    where
        C: Weight + Send + 'static,
        E: Weight + Send + 'static,
    {
        if self.over {
            return Poll::Ready(None);
        }
        let next = self.waiting.poll(context, || match port.take_next() {
            Ok(Some(event)) => Poll::Ready(Some(Ok(event))),
            Ok(None) => Poll::Pending,
            Err(Error::Over) => Poll::Ready(None),
            Err(error) => Poll::Ready(Some(Err(error))),
        });
        self.over = matches!(next, Poll::Ready(None | Some(Err(_))));
        next
    }
}

impl SenderEvents {
    pub(crate) fn new(sender: MediaSender) -> Self {
        let turn = Turn { waiting: sender.port().turns(), over: false };
        Self { sender, turn }
    }
}

impl ReceiverEvents {
    pub(crate) fn new(receiver: MediaReceiver) -> Self {
        let turn = Turn { waiting: receiver.port().turns(), over: false };
        Self { receiver, turn }
    }
}

impl Stream for SenderEvents {
    type Item = Result<SenderEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { sender, turn } = self.get_mut();
        turn.next(sender.port(), context)
    }
}

impl Stream for ReceiverEvents {
    type Item = Result<ReceiverEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { receiver, turn } = self.get_mut();
        turn.next(receiver.port(), context)
    }
}
