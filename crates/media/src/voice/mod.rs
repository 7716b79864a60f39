//! Quality of a telephone call: the E-model (ITU-T G.107) over what a jitter buffer makes of the
//! packets' arrivals.
//!
//! [`JitterBuffer`] turns arrivals into loss, delay and burst ratio, [`EModel`] turns these into R
//! and a mean opinion score, both during the call and when it is over:
//!
//! ```
//! use braidcast_core::Instant;
//! use braidcast_media::voice::{Codec, Conditions, EModel, Form, JitterBuffer, Playout};
//! use core::time::Duration;
//!
//! let mut buffer = JitterBuffer::new(Playout::Fixed(Duration::from_millis(60)));
//! for number in (0..500).filter(|number| number % 50 != 7) {
//!     let sent = Instant::from_millis(20 * number);
//!     buffer.arrive(number, sent, sent + Duration::from_millis(40));
//! }
//! let heard = buffer.finish();
//! assert_eq!((heard.played, heard.lost), (490, 10));
//! let call = Conditions {
//!     delay: heard.delay() + Codec::G711Plc.delay(Duration::from_millis(20)),
//!     loss: heard.loss(),
//!     burst_ratio: heard.burst_ratio(),
//! };
//! let quality = EModel::new(Form::G107, Codec::G711Plc).rate(&call);
//! assert!((82.0..84.0).contains(&quality.r) && (4.1..4.2).contains(&quality.mos));
//! ```

mod adaptive;
mod codec;
mod delay;
mod emodel;
mod heard;
mod jitter_buffer;

pub use codec::Codec;
pub use emodel::{Access, Conditions, EModel, Form, Quality, Satisfaction, mos};
pub use heard::Heard;
pub use jitter_buffer::{Arrival, JitterBuffer, Playout, UnknownPlayout};
