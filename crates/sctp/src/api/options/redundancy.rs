use crate::api::{Artx, FecLosses, FecWindow};
use braidcast_core::Misuse;
use braidcast_fec::Code;

/// Redundancy by an erasure code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RedundancyOptions {
    /// The erasure code that redundancy is sent by, if the peer takes it: lost chunks come back without a retransmission
    /// (ECMT). Chunks are cut so much shorter that a redundancy chunk fits the MTU. It must be [linear](Code::is_linear).
    /// Default `None`: none is sent.
    pub fec: Option<Code>,
    /// Whether redundancy counts for the congestion window. Default inside.
    pub fec_window: FecWindow,
    /// Whether congestion control learns of losses that it made up for. Default that it does.
    pub fec_losses: FecLosses,
    /// How long fast retransmissions wait for the code, where one is used. Default `None`: not at all.
    pub artx: Option<Artx>,
    /// Take redundancy from the peer even if `fec` sends none. Default false: with `fec` it is taken in any case.
    pub fec_receive: bool,
}

impl RedundancyOptions {
    pub(super) fn check(&self) -> Result<(), Misuse> {
        let Some(code) = self.fec else { return Ok(()) };
        let wrong = |limit, mend| Err(Misuse::other("redundancy.fec", code.to_string(), limit, mend));
        match code.check() {
            Err(why) => wrong(format!("a code: {why}"), "choose other numbers"),
            Ok(()) if code.is_linear() => Ok(()),
            Ok(()) => {
                wrong("linear, as acknowledged chunks are left out".to_owned(), "use block, convolutional or tetrys")
            }
        }
    }
}
