//! What neighbours of Braidcast speak, as machines without I/O: cameras, phones, encoders and
//! servers on one side, Braidcast where the network is bad.
//!
//! [`srt`] is SRT live (draft-sharabayko-srt), [`srtla`] what brings it over several links, [`rtp`]
//! MPEG-TS in RTP. A machine takes datagrams and time, and returns datagrams, events and the
//! payloads that are due. Braidcast's own code rather than a crate: see decision 27.

pub mod rtp;
pub mod srt;
pub mod srtla;
