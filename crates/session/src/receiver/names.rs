//! Names of streams that come and go while a receiver runs.

use super::Receiver;
use super::channel::ChannelId;
use crate::farewell::Farewell;
use braidcast_core::Instant;
use core::net::SocketAddr;

impl Receiver {
    /// Takes streams of this name from now on, beside those of
    /// [`Admission::Named`](crate::Admission::Named). Returns the channel that they come out of, which
    /// may be there already.
    pub fn add_name(&mut self, name: &str) -> ChannelId {
        let there = self.channels.iter().find(|(_, channel)| channel.name == name).map(|(id, _)| *id);
        there.unwrap_or_else(|| {
            let id = ChannelId(self.next_channel);
            self.make_channel(id, name);
            id
        })
    }

    /// The addresses that a channel's present sender sends from; none if it is not there.
    pub fn remotes(&self, channel: ChannelId) -> Vec<SocketAddr> {
        let stream = self.channels.get(&channel).and_then(|channel| channel.stream.as_ref());
        let association = stream.and_then(|stream| self.endpoint.association(stream.id?));
        association.map_or_else(Vec::new, |it| it.paths().map(|path| path.route.remote).collect())
    }

    /// Takes streams of this channel's name no more. What it has is lost; `why` is told to its sender.
    /// [`Farewell::UnknownName`] is told to those who wait for it.
    pub fn remove_name(&mut self, now: Instant, channel: ChannelId, why: Farewell) {
        self.refuse(now, channel, why);
        self.channels.remove(&channel);
        self.events.retain(|(of, _)| *of != Some(channel));
        self.pump(now);
    }
}
