/// Bytes of a transport packet.
pub const PACKET: usize = 188;
/// The first byte of each.
pub const SYNC: u8 = 0x47;

/// The PID of null packets.
pub const NULL_PID: u16 = 0x1fff;

/// A null packet as multiplexers write it: counter 0, payload all ones. Only packets equal to this are recreated
/// at the far end; one that differs is carried like any other.
pub const NULL_PACKET: [u8; PACKET] = {
    let mut packet = [0xff; PACKET];
    packet[0] = SYNC;
    packet[1] = 0x1f;
    packet[3] = 0x10;
    packet
};

/// A packet as a multiplexer writes it, with a payload that says nothing, for streams of which
/// sizes matter alone. It begins a PES packet if it `starts` one; `left` bytes that the payload
/// does not need, up to 184, are stuffing in an adaptation field, but for one or two.
pub fn sham_packet(pid: u16, starts: bool, counter: u8, left: usize) -> [u8; PACKET] {
    let mut packet = [SYNC; PACKET];
    let [high, low] = (pid & NULL_PID).to_be_bytes();
    let starts = if starts { 0x40 } else { 0 };
    packet[1..4].copy_from_slice(&[high | starts, low, 0x10 | counter & 0x0f]);
    let left = left.min(PACKET - 4);
    if left > 2 {
        packet[3] |= 0x20;
        packet[4..6].copy_from_slice(&[left as u8 - 1, 0]);
        packet[6..4 + left].fill(0xff);
    }
    packet
}

/// A program clock reference, in units of 27 MHz, below 2³³ · 300.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pcr(pub u64);

/// A view of one transport packet (ISO/IEC 13818-1 §2.4.3.2).
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a>(&'a [u8; PACKET]);

impl<'a> Packet<'a> {
    /// A view of `bytes`, which begin with the sync byte.
    pub const fn new(bytes: &'a [u8; PACKET]) -> Self {
        Self(bytes)
    }

    /// The packet identifier, 13 bits.
    pub const fn pid(&self) -> u16 {
        u16::from_be_bytes([self.0[1] & 0x1f, self.0[2]])
    }

    /// `payload_unit_start_indicator`: a PES packet or a section starts here.
    pub const fn starts_unit(&self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// Returns `true` if the payload is encrypted.
    pub const fn scrambled(&self) -> bool {
        self.0[3] & 0xc0 != 0
    }

    /// The adaptation field without its length byte; empty if there is none.
    fn adaptation(&self) -> &'a [u8] {
        if self.0[3] & 0x20 == 0 {
            return &[];
        }
        let length = usize::from(self.0[4]).min(PACKET - 5);
        &self.0[5..5 + length]
    }

    /// The payload; empty if there is none.
    pub fn payload(&self) -> &'a [u8] {
        match self.0[3] & 0x30 {
            0x10 => &self.0[4..],
            0x30 => &self.0[5 + self.adaptation().len()..],
            _ => &[],
        }
    }

    /// `continuity_counter`: goes up by 1, modulo 16, with each packet of a PID that has a payload.
    pub const fn counter(&self) -> u8 {
        self.0[3] & 0x0f
    }

    /// Returns `true` if there is a payload that stuffing in the adaptation field makes shorter than the
    /// packet has room for: there was no more of the PES packet (§2.4.3.5, `stuffing_byte`).
    pub fn is_stuffed(&self) -> bool {
        if self.0[3] & 0x30 != 0x30 {
            return false;
        }
        let field = self.adaptation();
        // A length of 0 inserts a single stuffing byte.
        let Some(flags) = field.first() else { return true };
        let mut used =
            1 + 6 * usize::from(flags >> 4 & 1) + 6 * usize::from(flags >> 3 & 1) + usize::from(flags >> 2 & 1);
        // Private data and the extension begin with their own lengths.
        for present in [flags & 0x02, flags & 0x01] {
            used += if present != 0 { 1 + field.get(used).copied().map_or(0, usize::from) } else { 0 };
        }
        used < field.len()
    }

    /// `random_access_indicator`: decoding can begin here.
    pub fn random_access(&self) -> bool {
        self.adaptation().first().is_some_and(|flags| flags & 0x40 != 0)
    }

    /// `discontinuity_indicator`: the clock or the counters start anew.
    pub fn discontinuity(&self) -> bool {
        self.adaptation().first().is_some_and(|flags| flags & 0x80 != 0)
    }

    /// `private_data_byte`s of the adaptation field; `None` if there are none.
    pub fn private_data(&self) -> Option<&'a [u8]> {
        let field = self.adaptation();
        let flags = field.first().filter(|flags| **flags & 0x02 != 0)?;
        // Behind the clock, the original clock and the countdown to a splice (§2.4.3.4).
        let at = 1 + 6 * usize::from(flags >> 4 & 1) + 6 * usize::from(flags >> 3 & 1) + usize::from(flags >> 2 & 1);
        let length = usize::from(*field.get(at)?);
        field.get(at + 1..at + 1 + length)
    }

    /// The program clock reference, if the packet has one.
    pub fn pcr(&self) -> Option<Pcr> {
        let [flags, a, b, c, d, e, f, ..] = *self.adaptation() else { return None };
        if flags & 0x10 == 0 {
            return None;
        }
        let base = u64::from(u32::from_be_bytes([a, b, c, d])) << 1 | u64::from(e >> 7);
        let extension = u64::from(e & 1) << 8 | u64::from(f);
        Some(Pcr(base * 300 + extension.min(299)))
    }
}
