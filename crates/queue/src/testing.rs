//! A queue with messages that are numbers, in milliseconds, so that a test reads like a story.

use crate::{Discard, Limits, Method, Outlook, Priority, SendQueue, Tag};
use braidcast_core::Instant;
use core::time::Duration;

/// A message: its number, and when it expires.
pub(crate) type Message = (u32, Tag);

fn message(number: u32, priority: u8, expiry: u64, len: usize) -> Message {
    let priority = Priority::new(priority).expect("a priority");
    (number, Tag { priority, expiry: Some(Instant::from_millis(expiry)), len })
}

/// 100 bytes of audio that are useless after `expiry` ms.
pub(crate) fn audio(number: u32, expiry: u64) -> Message {
    message(number, 0, expiry, 100)
}

/// 1000 bytes of frames.
pub(crate) fn video(number: u32, expiry: u64) -> Message {
    message(number, 1, expiry, 1000)
}

/// Frames that matter less, 1000 bytes.
pub(crate) fn b_frame(number: u32, expiry: u64) -> Message {
    message(number, 3, expiry, 1000)
}

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) queue: Box<dyn SendQueue<u32>>,
    pub(crate) outlook: Outlook,
}

impl Bench {
    /// At the beginning of time, and with no delay to the receiver.
    pub(crate) fn new(method: Method, limits: Limits) -> Self {
        Self { queue: method.queue(limits), outlook: Outlook::default() }
    }

    /// Time passes, in ms.
    pub(crate) fn pass(&mut self, millis: u64) {
        self.outlook.now += Duration::from_millis(millis);
    }

    /// Puts these in; what was refused or discarded for it.
    pub(crate) fn push<const N: usize>(&mut self, messages: [Message; N]) -> Vec<String> {
        let (mut said, mut gone) = (Vec::new(), Vec::new());
        for (number, tag) in messages {
            if let Err(refused) = self.queue.push(&self.outlook, tag, number, &mut gone) {
                said.push(format!("{} refused", refused.into_message()));
            }
            tell(&mut gone, &mut said);
        }
        said
    }

    /// Takes the next one out; what was discarded before it, and its number.
    pub(crate) fn pop(&mut self) -> Vec<String> {
        let (mut said, mut gone) = (Vec::new(), Vec::new());
        let next = self.queue.pop(&self.outlook, &mut gone);
        tell(&mut gone, &mut said);
        said.extend(next.map(|(_, number)| number.to_string()));
        said
    }

    /// Takes all out at once.
    pub(crate) fn pop_all(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while !self.queue.is_empty() {
            said.extend(self.pop());
        }
        said
    }
}

fn tell(gone: &mut Vec<Discard<u32>>, said: &mut Vec<String>) {
    said.extend(gone.drain(..).map(|it| format!("{} {}", it.message, it.why)));
}
