//! Which of the streams that wait is served next.

use super::{MessageKey, SendQueue};
use crate::api::{Priority, StreamOrder};
use crate::tx::Front;
use std::collections::VecDeque;

impl SendQueue {
    pub(crate) fn set_priority(&mut self, id: u16, priority: Priority) {
        self.stream(id).priority = priority;
        if self.order != StreamOrder::Priority || self.front.as_ref().is_some_and(Front::is_alone) {
            return;
        }
        let paused = self.paused.get(&id).into_iter().flat_map(|it| &it.waiting);
        for &key in self.streams[usize::from(id)].waiting.iter().chain(paused) {
            self.messages[key.place()].priority = priority;
        }
        self.move_turn(id, priority);
    }

    /// Puts a stream that has messages waiting behind the others of `priority`.
    pub(super) fn move_turn(&mut self, id: u16, priority: Priority) {
        let stream = &mut self.streams[usize::from(id)];
        if !stream.waiting.is_empty() {
            let before = core::mem::replace(&mut stream.turn, priority);
            self.turns[before.index()].retain(|&it| it != id);
            self.turns[priority.index()].push_back(id);
        }
    }

    /// The message that the next chunk is cut from, and how many bytes of it wait.
    pub(crate) fn peek(&self) -> Option<(MessageKey, usize)> {
        let key = self.under_way.or_else(|| self.express.front().copied()).or_else(|| {
            if self.held_back {
                return None;
            }
            let head = |stream: &u16| self.streams[usize::from(*stream)].waiting.front().copied();
            match self.order {
                StreamOrder::RoundRobinPacket if self.packet_of.is_some() => head(self.packet_of.as_ref()?),
                StreamOrder::Priority | StreamOrder::RoundRobin | StreamOrder::RoundRobinPacket => {
                    head(self.turns.iter().find_map(VecDeque::front)?)
                }
                StreamOrder::Fcfs => {
                    self.turns.iter().flatten().filter_map(head).min_by_key(|&key| self.get(key).arrival)
                }
                StreamOrder::FairCapacity | StreamOrder::WeightedFair => {
                    head(self.turns.iter().flatten().min_by_key(|&&id| (self.shares.given(id), id))?)
                }
            }
        })?;
        let message = self.get(key);
        Some((key, message.payload.len() - message.taken))
    }

    /// Moves `id` behind the other streams of its priority, or out if it has nothing to send.
    pub(super) fn pass_turn(&mut self, id: u16) {
        let stream = &self.streams[usize::from(id)];
        let turns = &mut self.turns[stream.turn.index()];
        let more = !stream.waiting.is_empty();
        if turns.front() == Some(&id) {
            turns.pop_front();
            if more {
                turns.push_back(id);
            }
        } else if !more {
            turns.retain(|&it| it != id);
        }
    }
}
