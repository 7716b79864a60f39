//! The features that are understood, and their rules (RFC 4340 §6.4 table 4, RFC 4342 §8).

/// Feature numbers.
pub(crate) mod number {
    /// Congestion control of the half-connection whose data the location sends.
    pub(crate) const CCID: u8 = 1;
    /// The location may send short sequence numbers.
    pub(crate) const ALLOW_SHORT_SEQNOS: u8 = 2;
    /// Packets that the location may have out.
    pub(crate) const SEQUENCE_WINDOW: u8 = 3;
    /// The location cannot read ECN bits.
    pub(crate) const ECN_INCAPABLE: u8 = 4;
    /// Data packets of the location for each acknowledgement.
    pub(crate) const ACK_RATIO: u8 = 5;
    /// The location sends Ack Vectors.
    pub(crate) const SEND_ACK_VECTOR: u8 = 6;
    /// The location sends NDP Counts.
    pub(crate) const SEND_NDP_COUNT: u8 = 7;
    /// Least checksum coverage that the location accepts.
    pub(crate) const MIN_COVERAGE: u8 = 8;
    /// The location checks Data Checksums.
    pub(crate) const CHECK_DATA_CHECKSUM: u8 = 9;
    /// CCID 3, at the data receiver: it sends Loss Event Rate options (RFC 4342 §8.4).
    pub(crate) const SEND_LOSS_EVENT_RATE: u8 = 192;
}

/// At which end a feature lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Ours.
    Local,
    /// The peer's.
    Remote,
}

/// How two preferences become one value (RFC 4340 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// The first of the server's values that the client has too. Values are bytes.
    ServerPriority,
    /// The location decides. A value of `width` bytes, within these limits.
    NonNegotiable { width: usize, min: u64, max: u64 },
}

/// What is known of a feature.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) number: u8,
    pub(super) rule: Rule,
    pub(super) initial: u64,
    /// Every implementation must understand it.
    pub(super) required: bool,
}

const fn sp(number: u8, initial: u64, required: bool) -> Definition {
    Definition { number, rule: Rule::ServerPriority, initial, required }
}

pub(super) const COUNT: usize = 10;

pub(super) const TABLE: [Definition; COUNT] = [
    sp(number::CCID, 2, true),
    sp(number::ALLOW_SHORT_SEQNOS, 0, true),
    Definition {
        number: number::SEQUENCE_WINDOW,
        rule: Rule::NonNegotiable { width: 6, min: 32, max: (1 << 46) - 1 },
        initial: 100,
        required: true,
    },
    sp(number::ECN_INCAPABLE, 0, false),
    Definition {
        number: number::ACK_RATIO,
        rule: Rule::NonNegotiable { width: 2, min: 0, max: 0xffff },
        initial: 2,
        required: false,
    },
    sp(number::SEND_ACK_VECTOR, 0, false),
    sp(number::SEND_NDP_COUNT, 0, false),
    sp(number::MIN_COVERAGE, 0, false),
    sp(number::CHECK_DATA_CHECKSUM, 0, false),
    sp(number::SEND_LOSS_EVENT_RATE, 0, false),
];

/// The row of a feature. Asked several times for each packet, so without a search.
pub(super) const fn index(number: u8) -> Option<usize> {
    match number {
        number::CCID..=number::CHECK_DATA_CHECKSUM => Some(number as usize - 1),
        number::SEND_LOSS_EVENT_RATE => Some(COUNT - 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_in_its_row() {
        for number in 0..=255 {
            assert_eq!(index(number), TABLE.iter().position(|it| it.number == number), "{number}");
        }
    }
}
