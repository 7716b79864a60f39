use core::fmt;

/// Why a connection is refused, as the number that goes over the wire (draft-sharabayko-srt §4.3, and libsrt's
/// access control guidelines for 1400 and up, which are HTTP's numbers plus 1000).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(pub u32);

impl Refusal {
    /// There is no room for one more.
    pub const RESOURCE: Self = Self(1003);
    /// What the handshake says is wrong.
    pub const ROGUE: Self = Self(1004);
    /// It is about to end.
    pub const CLOSE: Self = Self(1007);
    /// A handshake of version 4.
    pub const VERSION: Self = Self(1008);
    /// The cookie is not the one that the listener gives to this address. libsrt has no other code
    /// for it: the draft calls it a collision of cookies of two ends that call each other.
    pub const COOKIE: Self = Self(1009);
    /// Passphrases differ.
    pub const BAD_SECRET: Self = Self(1010);
    /// One end has a passphrase, the other has none.
    pub const UNSECURE: Self = Self(1011);
    /// One end wants a byte stream.
    pub const MESSAGE_API: Self = Self(1012);
    /// One end wants file mode.
    pub const CONGESTION: Self = Self(1013);
    /// One end wants a packet filter.
    pub const FILTER: Self = Self(1014);
    /// One end wants a group of connections.
    pub const GROUP: Self = Self(1015);
    /// The stream identifier is not one that is taken.
    pub const FORBIDDEN: Self = Self(1403);
    /// The identifier asks to fetch where one sends, or the other way round.
    pub const BAD_MODE: Self = Self(1405);
    /// Somebody else is sending.
    pub const CONFLICT: Self = Self(1409);
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            1000 => "no reason given",
            1001 => "a system function failed there",
            1002 => "refused by the application there",
            1003 => "there is no room for one more connection",
            1004 => "the handshake is wrong",
            1005 => "too many are waiting to be accepted",
            1006 => "an internal error there",
            1007 => "it is closing",
            1008 => "the versions of SRT do not fit: version 1.3.0 is the first that does",
            1009 => "the cookie of the handshake is not a current one",
            1010 => "the passphrases differ",
            1011 => "one end has a passphrase, the other has none",
            1012 => "one end wants a byte stream, not live mode",
            1013 => "one end wants file mode, not live mode",
            1014 => "one end wants a packet filter",
            1015 => "one end wants a group of connections",
            1016 => "no answer in time",
            1017 => "one end wants another mode of encryption",
            1401 | 1403 => "the stream identifier is not allowed",
            1404 => "there is no such stream",
            1405 => "the stream identifier asks for the other direction",
            1409 => "somebody else is sending",
            1402 | 1503 => "it is overloaded or down",
            code => return write!(f, "code {code}"),
        };
        write!(f, "{words} (code {})", self.0)
    }
}
