//! What became of messages, for who asks.

use super::{MessageKey, SendQueue};

impl SendQueue {
    /// The contexts of the application's messages that are neither acknowledged nor abandoned, in
    /// the order in which they came.
    pub(crate) fn unsettled(&self) -> Vec<u64> {
        let messages = self.messages.iter().map(|(_, message)| message);
        let mut open: Vec<_> = messages.filter(|it| !it.abandoned && !it.internal).collect();
        open.sort_unstable_by_key(|message| message.arrival);
        open.into_iter().map(|message| message.context).collect()
    }

    /// Frees a message of which all was acknowledged or abandoned.
    pub(crate) fn settle_message(&mut self, key: MessageKey) {
        let message = &self.messages[key.place()];
        if message.report && !message.abandoned {
            self.delivered.push_back(message.context);
        }
        self.release(key);
    }

    /// The context of the next message that was acknowledged and is to be reported.
    pub(crate) fn next_delivered(&mut self) -> Option<u64> {
        self.delivered.pop_front()
    }
}
