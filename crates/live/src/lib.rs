//! Live media of a program over several bad networks at once: a transport stream, or access
//! units, in at one end and out on time at the other.
//!
//! A [`MediaSender`] and a [`MediaReceiver`] are the two ends of a session as `braidcast send`
//! and `braidcast receive` have it: each frame is a message with a priority and a deadline, lost
//! packets are repeated or made up for as far as they would still be in time, connections that
//! break are made again, and what comes out does so a fixed latency after its capture. Either of
//! them may be at the other end, too.
//!
//! # Access units
//!
//! ```
//! use braidcast_live::{AccessUnit, Coding, MediaReceiver, MediaSender, Path, ReceiverEvent};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let receiver = MediaReceiver::builder().key("a passphrase that both ends know").units();
//! // Two addresses make two paths. In the field: Path::via("192.0.2.1:9000".parse()?, "wlan0").
//! let receiver = receiver.listen(&["127.0.0.1:0".parse()?, "127.0.0.1:0".parse()?])?;
//! let paths: Vec<Path> = receiver.local_addrs().iter().map(|at| Path::to(*at)).collect();
//!
//! let sender = MediaSender::builder().key("a passphrase that both ends know");
//! let sender = sender.latency(Duration::from_millis(200)).name("door").call(&paths)?;
//! let video = sender.add_track(Coding::H264)?;
//! # let frame = [0, 0, 0, 1, 0x65, 0x88, 0x84];
//! sender.send(AccessUnit::new(video, Duration::from_millis(40), frame).key())?;
//!
//! while let Some(event) = receiver.poll(Some(Duration::from_secs(10)))? {
//!     match event {
//!         ReceiverEvent::Connected { name, .. } => assert_eq!(name, "door"),
//!         ReceiverEvent::Unit { unit, .. } => {
//!             assert!(unit.key && unit.data.ends_with(&frame));
//!             break;
//!         }
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A receiver without [`units`](MediaReceiverBuilder::units) gets the same stream as MPEG-TS, which
//! players play; a sender may [`write`](MediaSender::write) MPEG-TS of its own.
//!
//! # An encoder that follows the networks
//!
//! ```no_run
//! # use braidcast_live::{AccessUnit, Error, MediaSender, Track};
//! # use std::time::Duration;
//! # fn encode(bits: u64) -> Vec<u8> { vec![0; bits as usize / 8] }
//! fn next_frame(sender: &MediaSender, video: Track, at: Duration) -> Result<(), Error> {
//!     let report = sender.rate_report()?;
//!     if report.next_frame_bits == 0 {
//!         // Too much waits: this frame is not worth encoding.
//!         return Ok(());
//!     }
//!     sender.send(AccessUnit::new(video, at, encode(report.next_frame_bits)))
//! }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod port;
mod protected;
mod receiver;
mod receiving;
mod sender;
mod sending;
#[cfg(feature = "tokio")]
mod streams;
mod unit;
mod wire;

pub use error::Error;
pub use receiver::{MediaReceiver, MediaReceiverBuilder, ReceiverEvent};
pub use sender::{MediaSender, MediaSenderBuilder, SenderEvent};
#[cfg(feature = "tokio")]
pub use streams::{ReceiverEvents, SenderEvents};
pub use unit::{AccessUnit, Track};

pub use braidcast_media::ts::Coding;
pub use braidcast_session::{
    Admission, ChannelId, Farewell, KindReport, PathReport, Permit, RateLimits, RateReport, ReceiverOptions, Report,
    SenderOptions, StartError,
};
pub use braidcast_socket::{CloseReason, Fingerprint, Identity, Insecurity, Path, Protection, Trust};
