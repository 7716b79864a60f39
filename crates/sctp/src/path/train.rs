use super::{Info, Path};
use crate::rx::micros;
use braidcast_core::Instant;
use braidcast_mpath::{Dispersion, PathSelection, Train, mean_opinion_score};
use core::time::Duration;

/// What a call takes one way beside the network: coding, and a jitter buffer (PATHS §5.2: 300 to
/// 350 ms there and back are "twice the maximum one way delay with the addition of encoding and
/// decoding delays").
const CODING_MS: f64 = 25.0;

/// The trains of heartbeats that measure a path for the choice of one, at regular times.
#[derive(Debug, Default)]
pub(super) struct Trains {
    /// When the next one begins; `None`: none does.
    next: Option<Instant>,
    running: Option<Running>,
    latest: Option<Dispersion>,
    /// Bytes in a second that the bottleneck lets through, by the last train that showed it.
    bottleneck: Option<f64>,
}

/// A train that is under way.
#[derive(Debug)]
struct Running {
    nonce: u64,
    began: Instant,
    sent: u8,
    /// How long each took there and back, and when it came back after the first one left.
    answers: [Option<(Duration, Duration)>; Train::MOST],
    /// When each arrived there, by the peer's clock, µs.
    arrivals: [Option<u32>; Train::MOST],
}

impl Trains {
    /// They begin now.
    pub(super) fn start(&mut self, now: Instant) {
        self.next = self.next.or(Some(now));
    }

    /// No more of them.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    pub(super) fn poll_timeout(&self, train: &Train) -> Option<Instant> {
        match &self.running {
            Some(running) => Some(running.packet_due(train).unwrap_or(running.began + train.lasts())),
            None => self.next,
        }
    }

    /// Returns `true` if a packet is to leave at `now`. One that is over is worked off.
    pub(super) fn on_time(&mut self, now: Instant, train: &Train) -> bool {
        if let Some(running) = &self.running {
            if let Some(due) = running.packet_due(train) {
                return due <= now;
            }
            let all = running.answers.iter().flatten().count() == train.sizes.len();
            if !all && now < running.began + train.lasts() {
                return false;
            }
            let latest = Dispersion::of(train.sizes, &running.answers, &running.arrivals);
            self.bottleneck = latest.bottleneck.or(self.bottleneck);
            self.latest = Some(latest);
            self.running = None;
        }
        self.next.is_some_and(|next| next <= now)
    }

    /// A packet leaves, the first of a train with `nonce` if none is under way; the next one begins
    /// `pause` after this one began. Its place, size and the train's nonce.
    fn send(&mut self, now: Instant, train: &Train, nonce: u64, pause: Duration) -> Option<(u8, u16, u64)> {
        if self.running.is_none() {
            self.next = Some(now + pause);
        }
        let begun =
            || Running { nonce, began: now, sent: 0, answers: [None; Train::MOST], arrivals: [None; Train::MOST] };
        let running = self.running.get_or_insert_with(begun);
        let place = running.sent;
        let size = *train.sizes.get(usize::from(place))?;
        running.sent += 1;
        Some((place, size, running.nonce))
    }

    /// The packet with the timestamp `sent` arrived there at `arrived`. Returns `true` if it is of the train.
    fn arrived(&mut self, sent: u32, arrived: u32) -> bool {
        let Some(running) = &mut self.running else { return false };
        let place = sent.wrapping_sub(running.stamp(0));
        let is = place < u32::from(running.sent);
        if is {
            running.arrivals[place as usize] = Some(arrived);
        }
        is
    }

    /// An answer came.
    fn answered(&mut self, now: Instant, info: &Info, train: &Train) {
        let Some(running) = self.running.as_mut().filter(|it| it.nonce == info.nonce) else { return };
        let round_trip = now - info.sent;
        let Some(place) = info.place.filter(|&place| place < running.sent) else { return };
        if round_trip <= train.patience {
            running.answers[usize::from(place)] = Some((round_trip, now - running.began));
        }
    }
}

impl Running {
    /// What the timestamp of the packet in `place` says. Packets that leave together have different ones.
    const fn stamp(&self, place: u8) -> u32 {
        micros(self.began).wrapping_add(place as u32)
    }

    /// When the next packet leaves; `None`: all have.
    fn packet_due(&self, train: &Train) -> Option<Instant> {
        (usize::from(self.sent) < train.sizes.len()).then(|| self.began + train.gap * u32::from(self.sent))
    }
}

impl Path {
    /// The packets that measure it, if they do.
    pub(super) fn train(&self) -> Option<Train> {
        self.options.paths.selection.and_then(PathSelection::train)
    }

    /// A packet of a train leaves, marked with `nonce` if it is the first. Returns its size, its
    /// timestamp, and what stands in it.
    pub(crate) fn send_train_packet(&mut self, now: Instant, nonce: u64) -> Option<(usize, u32, Info)> {
        let train = self.train()?;
        let pause = self.options.paths.heartbeat_interval.max(train.lasts());
        let (place, size, nonce) = self.trains.send(now, &train, nonce, pause)?;
        self.pending.train = self.trains.on_time(now, &train);
        let size = usize::from(size).min(self.mtu());
        let stamp = self.trains.running.as_ref()?.stamp(place);
        Some((size, stamp, Info { path: self.id, sent: now, nonce, probe_size: 0, place: Some(place) }))
    }

    /// The peer says when a packet with the timestamp `sent` arrived. Returns `true` if it is of a train.
    pub(crate) fn on_train_arrival(&mut self, sent: u32, arrived: u32) -> bool {
        self.trains.arrived(sent, arrived)
    }

    /// A packet of a train was answered.
    pub(crate) fn on_train_answer(&mut self, now: Instant, info: &Info) {
        let Some(train) = self.train() else { return };
        self.trains.answered(now, info, &train);
        self.pending.train |= self.trains.on_time(now, &train);
    }

    /// A packet of a train waits for a packet of its own: its size is what is measured.
    pub(crate) const fn postpone_train_packet(&mut self) {
        self.pending.train = true;
    }

    /// Bytes in a second that the bottleneck lets through, by the last train.
    pub(crate) fn bottleneck(&self) -> Option<f64> {
        self.trains.bottleneck
    }

    /// What a call over it would sound like, by the last train; `None` before there was one.
    pub(crate) fn opinion(&self) -> Option<f64> {
        let Dispersion { loss, round_trip, .. } = self.trains.latest?;
        let one_way = round_trip.map_or(f64::INFINITY, |it| it.as_secs_f64() * 500.0);
        Some(mean_opinion_score((one_way + CODING_MS).min(1e6), loss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_leaves_in_time_and_is_worked_off() {
        let train = Train::CALL;
        let at = Instant::from_millis;
        let ms = Duration::from_millis;
        let mut trains = Trains::default();
        assert!(!trains.on_time(at(5), &train));
        trains.start(at(5));
        for place in 0..25_u8 {
            let due = at(5 + 10 * u64::from(place));
            assert_eq!(trains.poll_timeout(&train), Some(due));
            assert!(trains.on_time(due, &train));
            let (sent, size, nonce) = trains.send(due, &train, 7 + u64::from(place), ms(2000)).unwrap();
            assert_eq!((sent, size, nonce), (place, 80, 7));
            assert!(!trains.on_time(due, &train));
        }
        let info = |place: u8| Info {
            path: braidcast_core::PathId(0),
            sent: at(5 + 10 * u64::from(place)),
            nonce: 7,
            probe_size: 0,
            place: Some(place),
        };
        // Half a second late: as good as lost; and one that was never sent.
        trains.answered(at(800), &info(0), &train);
        trains.answered(at(400), &Info { nonce: 8, ..info(1) }, &train);
        (1..20).for_each(|place| trains.answered(at(65 + 10 * u64::from(place)), &info(place), &train));
        trains.answered(at(400), &info(200), &train);
        assert_eq!(trains.poll_timeout(&train), Some(at(5 + 590)));
        assert!(!trains.on_time(at(595), &train));
        let latest = trains.latest.unwrap();
        assert!((latest.loss - 6.0 / 25.0).abs() < 1e-9 && latest.round_trip == Some(ms(60)), "{latest:?}");
        assert_eq!(trains.poll_timeout(&train), Some(at(2005)));
        assert!(trains.on_time(at(2005), &train));
    }
}
