//! A queue with messages that are numbers, in milliseconds, so that a test reads like a story.

use crate::{Discard, Frame, Limits, Method, NeededBy, Outlook, Priority, SendQueue, Tag};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::BTreeMap;

/// A message: its number, and when it expires.
pub(crate) type Message = (u32, Tag);

fn message(number: u32, priority: u8, expiry: u64, len: usize) -> Message {
    let priority = Priority::new(priority).expect("a priority");
    (number, Tag { priority, expiry: Some(Instant::from_millis(expiry)), len, frame: None })
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

/// 1000 bytes of a frame of an elementary stream: I 1, P 2, a B that others need 3, other B 4. The
/// [`Bench`] joins them to groups. The first I or P frame was sent before.
pub(crate) fn frame_of(stream: u16, number: u32, priority: u8, expiry: u64) -> Message {
    let (number, tag) = message(number, priority, expiry, 1000);
    let needed_by = match priority {
        1 | 2 => NeededBy::Rest,
        3 => NeededBy::Some,
        _ => NeededBy::Nothing,
    };
    let due = tag.expiry;
    (number, Tag { frame: Some(Frame { needed_by, ..Frame::alone(0, stream, 1000, due) }), ..tag })
}

#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) queue: Box<dyn SendQueue<u32>>,
    pub(crate) outlook: Outlook,
    /// Frames so far.
    frames: u64,
    /// Of each elementary stream the frame before.
    streams: BTreeMap<u16, Before>,
    /// What each message last was pushed as.
    tags: BTreeMap<u32, Tag>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Before {
    group: u64,
    chain: u64,
    reference: u64,
    /// The frame before began a group.
    began: bool,
}

impl Bench {
    /// At the beginning of time, and with no delay to the receiver.
    pub(crate) fn new(method: Method, limits: Limits) -> Self {
        let (streams, tags) = (BTreeMap::new(), BTreeMap::new());
        Self { queue: method.queue(limits), outlook: Outlook::default(), frames: 0, streams, tags }
    }

    /// Joins a frame to those before it, as a session does: 0 is the number of one that was sent
    /// before. I frames side by side are parts of one frame.
    fn join(&mut self, mut tag: Tag) -> Tag {
        let Some(frame) = &mut tag.frame else { return tag };
        let before = self.streams.entry(frame.stream).or_default();
        self.frames += 1;
        let begins = tag.priority.get() == 1;
        frame.id = if begins && before.began { before.group } else { self.frames };
        match tag.priority.get() {
            1 => *before = Before { group: frame.id, chain: frame.id, reference: frame.id, began: true },
            2 => {
                frame.needs = Some(before.chain);
                (before.chain, before.reference) = (frame.id, frame.id);
            }
            3 => {
                frame.needs = Some(before.chain);
                before.reference = frame.id;
            }
            _ => frame.needs = Some(before.reference),
        }
        before.began = begins;
        frame.group = before.group;
        tag
    }

    /// A message that was taken out did not arrive in time.
    pub(crate) fn lose(&mut self, number: u32) {
        self.queue.on_lost(&self.tags[&number]);
    }

    /// Time passes, in ms.
    pub(crate) fn pass(&mut self, millis: u64) {
        self.outlook.now += Duration::from_millis(millis);
    }

    /// Puts these in; what was refused or discarded for it.
    pub(crate) fn push<const N: usize>(&mut self, messages: [Message; N]) -> Vec<String> {
        let (mut said, mut gone) = (Vec::new(), Vec::new());
        for (number, tag) in messages {
            let tag = self.join(tag);
            self.tags.insert(number, tag);
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
