//! Frames, and what became of them.

use crate::rows::{Frame, NONE, Outcome};
use braidcast_core::events::{MediaEvent, Unsent};
use std::collections::HashMap;

/// The frames of all streams, by stream and number.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) rows: Vec<Frame>,
    places: HashMap<(u32, u32), u32>,
    /// The stream whose frames a sender's messages carry.
    sending: Option<u32>,
    /// Which rows have times of the second clock.
    theirs: Vec<bool>,
    /// Some end told of arrivals.
    pub(crate) has_arrivals: bool,
}

/// Milliseconds.
fn ms(at: braidcast_core::Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

impl Frames {
    fn row(&mut self, stream: u32, number: u32, make: impl FnOnce() -> Frame) -> &mut Frame {
        let rows = &mut self.rows;
        let theirs = &mut self.theirs;
        let place = *self.places.entry((stream, number)).or_insert_with(|| {
            rows.push(make());
            theirs.push(false);
            rows.len() as u32 - 1
        });
        &mut self.rows[place as usize]
    }

    /// `second`: told by the end whose clock is the second; such arrivals are moved by [`shift`](Self::shift).
    pub(crate) fn take(&mut self, at: f64, stream: u32, event: &MediaEvent) {
        match *event {
            MediaEvent::FrameCaptured { frame, kind, reference, bytes, captured, deadline, .. } => {
                self.sending = Some(stream);
                let (captured, deadline) = (ms(captured), deadline.map_or(f64::NAN, ms));
                let new = || Frame {
                    number: frame,
                    kind: kind as u8,
                    reference,
                    bytes,
                    captured,
                    deadline,
                    arrived: f64::NAN,
                    given_up: f64::NAN,
                    outcome: Outcome::Unknown,
                    why: 0,
                };
                // The sender's word on when it was captured counts more than the receiver's.
                let row = self.row(stream, frame, new);
                (row.captured, row.deadline, row.bytes) = (captured, deadline, bytes);
                let place = self.places[&(stream, frame)] as usize;
                self.theirs[place] = false;
            }
            MediaEvent::FrameUnsent { frame, .. } => {
                if let Some(&place) = self.places.get(&(stream, frame)) {
                    let row = &mut self.rows[place as usize];
                    (row.outcome, row.given_up) = (Outcome::Unsent, at);
                }
            }
            MediaEvent::FrameArrived { frame, kind, reference, bytes, captured, due, on_time, .. } => {
                self.has_arrivals = true;
                let known = self.places.contains_key(&(stream, frame));
                let new = || Frame {
                    number: frame,
                    kind: kind as u8,
                    reference,
                    bytes,
                    captured: ms(captured),
                    deadline: ms(due),
                    arrived: at,
                    given_up: f64::NAN,
                    outcome: Outcome::Unknown,
                    why: 0,
                };
                let row = self.row(stream, frame, new);
                row.arrived = at;
                row.outcome = if on_time { Outcome::OnTime } else { Outcome::Late };
                if !known {
                    let place = self.places[&(stream, frame)] as usize;
                    self.theirs[place] = true;
                }
            }
            _ => {}
        }
    }

    /// The row of the frame that a message of the sender carries.
    pub(crate) fn of_message(&self, message: u64) -> u32 {
        let number = (message != u64::MAX).then_some((message >> 8) as u32);
        let place = number.and_then(|number| self.places.get(&(self.sending?, number)));
        place.copied().unwrap_or(NONE)
    }

    /// A message of the sender was abandoned.
    pub(crate) fn abandoned(&mut self, at: f64, message: u64, sent: bool, why: Unsent) {
        let place = self.of_message(message);
        if let Some(row) = self.rows.get_mut(place as usize)
            && row.given_up.is_nan()
        {
            row.given_up = at;
            row.why = why as u8 + 1;
            if row.outcome == Outcome::Unknown {
                row.outcome = if sent { Outcome::GivenUp } else { Outcome::Unsent };
            }
        }
    }

    /// Moves what the receiver alone told to the first clock; arrivals always are the receiver's.
    pub(crate) fn shift(&mut self, ahead: f64) {
        for (row, theirs) in self.rows.iter_mut().zip(&self.theirs) {
            row.arrived -= ahead;
            if *theirs {
                row.captured -= ahead;
                row.deadline -= ahead;
            }
        }
    }

    /// What did not come by `end` though it was due, and was not abandoned, is missing.
    pub(crate) fn settle(&mut self, end: f64) {
        if self.has_arrivals {
            let overdue = |row: &&mut Frame| row.outcome == Outcome::Unknown && row.deadline < end;
            self.rows.iter_mut().filter(overdue).for_each(|row| row.outcome = Outcome::Missing);
        }
    }
}
