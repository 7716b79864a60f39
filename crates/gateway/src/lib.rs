//! What neighbours of Braidcast speak, as machines without I/O: cameras, phones, encoders and
//! servers on one side, Braidcast where the network is bad.
//!
//! [`srt`] is SRT live (draft-sharabayko-srt), [`srtla`] what brings it over several links, [`rist`]
//! RIST's simple and main profile, [`rtp`] MPEG-TS in RTP, [`rtmp`] what encoders publish. A machine
//! takes datagrams or bytes and time, and returns datagrams, events and the payloads that are due.
//! Braidcast's own code rather than crates: see decisions 27, 30 and 42.

mod block;
mod reception;
pub mod rist;
pub mod rtmp;
pub mod rtp;
pub mod srt;
pub mod srtla;
