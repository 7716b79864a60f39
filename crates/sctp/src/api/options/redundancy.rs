use crate::api::{Artx, FecLosses, FecWindow};
use braidcast_core::Misuse;
use braidcast_fec::Code;

/// Redundancy by an erasure code, and by copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RedundancyOptions {
    /// The erasure code that redundancy is sent by, if the peer takes it: lost chunks come back
    /// without a retransmission (ECMT). Chunks are cut so much shorter that a redundancy chunk fits
    /// the MTU. Default `None`: none is sent.
    pub fec: Option<Code>,
    /// `true` if redundancy counts for the congestion window. Default inside.
    pub fec_window: FecWindow,
    /// `true` if congestion control learns of losses that it made up for. Default that it does.
    pub fec_losses: FecLosses,
    /// How long fast retransmissions wait for the code, where one is used. Default `None`: not at all.
    pub artx: Option<Artx>,
    /// Take redundancy from the peer even if `fec` sends none. Default false: with `fec` it is taken in any case.
    pub fec_receive: bool,
    /// Chunks of messages with a deadline that would miss it over the path that they are on go over
    /// another one too, at the rate of that and while it has room, before new data of a lower
    /// priority. Default false.
    pub reinject: bool,
    /// Percentage of what paths owe ([`set_fec_by_path`](crate::Association::set_fec_by_path)) that is not sent while
    /// they are crowded: while what waits in a queue takes them more than a fifth of the time that a
    /// frame has. 0 to 100. Default 0.
    pub spared_in_a_crowd: u8,
}

impl RedundancyOptions {
    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::unless_within("redundancy.spared_in_a_crowd", self.spared_in_a_crowd, 0..=100)?;
        let Some(code) = self.fec else { return Ok(()) };
        code.check().map_err(|why| {
            Misuse::other("redundancy.fec", code.to_string(), format!("a code: {why}"), "choose other numbers")
        })
    }
}
