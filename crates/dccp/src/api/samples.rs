//! The samples of all connections of an endpoint in one line.

use super::Sample;
use crate::{Connection, ConnectionId, Endpoint};
use std::collections::{BTreeMap, VecDeque};

/// Samples that wait at most; then the oldest go. A driver's turn makes far fewer.
const MAX_WAITING: usize = 1 << 16;

/// Gathers what the connections of an endpoint noted with [`Options::probe`](crate::Options::probe).
#[derive(Debug, Default)]
pub struct Samples {
    /// What connections are called: the first is 1.
    numbers: BTreeMap<ConnectionId, u64>,
    named: u64,
    waiting: VecDeque<(u64, Sample)>,
    /// A buffer.
    ids: Vec<ConnectionId>,
}

impl Samples {
    /// Takes what was noted since the last time. To be called after each call of the endpoint, since samples vanish with
    /// their connection.
    pub fn gather(&mut self, endpoint: &mut Endpoint) {
        let mut ids = std::mem::take(&mut self.ids);
        ids.extend(endpoint.connections());
        for id in ids.drain(..) {
            let number = self.number(id, endpoint);
            while let Some(sample) = endpoint.connection_mut(id).and_then(Connection::poll_sample) {
                if self.waiting.len() == MAX_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((number, sample));
            }
        }
        self.ids = ids;
    }

    /// The oldest sample that was gathered, with the number of its connection, from 1.
    pub fn poll(&mut self) -> Option<(u64, Sample)> {
        self.waiting.pop_front()
    }

    fn number(&mut self, id: ConnectionId, endpoint: &Endpoint) -> u64 {
        if let Some(&number) = self.numbers.get(&id) {
            return number;
        }
        self.numbers.retain(|&known, _| endpoint.connection(known).is_some());
        self.named += 1;
        self.numbers.insert(id, self.named);
        self.named
    }
}
