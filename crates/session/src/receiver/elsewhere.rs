//! Streams that the application has from elsewhere: they take the places of senders.

use super::Receiver;
use super::admit::SILENT;
use super::channel::ChannelId;
use crate::farewell::Farewell;
use braidcast_core::Instant;

impl Receiver {
    /// Keeps the place of the stream `name` for one that does not come by a session: senders that
    /// want it wait in line or are turned away, as if it were played here, until
    /// [`free`](Self::free) is called. A stream there whose sender is gone, or silent for 3 s, makes
    /// room: its rest is handed out, and the place can be had after its
    /// [`Event::Ended`](crate::Event::Ended).
    ///
    /// # Errors
    /// As for a sender of this name: [`Farewell::Busy`] while a stream is there,
    /// [`Farewell::UnknownName`] and [`Farewell::Full`].
    pub fn occupy(&mut self, now: Instant, name: &str) -> Result<ChannelId, Farewell> {
        let id = self.find_channel(name)?;
        self.make_channel(id, name);
        let channel = self.channels.get_mut(&id).ok_or(Farewell::Full)?;
        if channel.elsewhere {
            return Err(Farewell::Busy);
        }
        if let Some(stream) = &channel.stream {
            let held = self.options.hold && stream.reliable && !stream.is_done();
            let is_silent = stream.id.is_none() || now.since(stream.heard_at()) >= SILENT;
            if is_silent && !held {
                self.displace_stream(now, id);
                self.pump(now);
            }
            return Err(Farewell::Busy);
        }
        channel.elsewhere = true;
        Ok(id)
    }

    /// What took the channel's place is gone; senders that wait have their turn.
    pub fn free(&mut self, now: Instant, channel: ChannelId) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.elsewhere = false;
        }
        self.pump(now);
    }
}
