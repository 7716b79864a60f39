use crate::assoc::Association;

impl Association {
    /// The bits of a SACK's flags that count, beside those of delayed acknowledgements for CMT.
    const COUNT: u8 = 0b11_1111;

    /// What our SACK's flags tell: how many chunks were recovered so far, modulo 64. Without it a sender whose losses are made up
    /// for in time would see none, and take the redundancy for needless. RFC 9260 §3.3.4 has these bits ignored.
    pub(in crate::assoc) fn recovered_to_tell(&self) -> u8 {
        if self.fec.is_some() { self.stats.recovered_chunks as u8 & Self::COUNT } else { 0 }
    }

    /// What the peer's SACK tells. One that others overtook goes back a little, and counts for nothing.
    pub(in crate::assoc) fn note_recovered(&mut self, flags: u8) {
        let Some(fec) = &mut self.fec else { return };
        let more = flags.wrapping_sub(fec.told) & Self::COUNT;
        if more <= Self::COUNT / 2 {
            fec.told = flags & Self::COUNT;
            self.stats.recovered_by_peer += u64::from(more);
        }
    }
}
