use core::fmt;

/// Why a connection was reset (RFC 4340 §5.6 table 2). Any number may come; those without a name count as unspecified.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResetCode(pub u8);

impl ResetCode {
    /// No reason given.
    pub const UNSPECIFIED: Self = Self(0);
    /// Closed as both ends wanted.
    pub const CLOSED: Self = Self(1);
    /// Aborted for lack of progress.
    pub const ABORTED: Self = Self(2);
    /// There is no such connection.
    pub const NO_CONNECTION: Self = Self(3);
    /// A packet of a type that does not belong here; data 1 is the type.
    pub const PACKET_ERROR: Self = Self(4);
    /// A bad option; data 1 is its type, data 2 and 3 begin its value.
    pub const OPTION_ERROR: Self = Self(5);
    /// A mandatory option that could not be obeyed; data as for an option error.
    pub const MANDATORY_ERROR: Self = Self(6);
    /// Nobody listens at the port.
    pub const CONNECTION_REFUSED: Self = Self(7);
    /// Somebody listens there, for something else.
    pub const BAD_SERVICE_CODE: Self = Self(8);
    /// No more connections now.
    pub const TOO_BUSY: Self = Self(9);
    /// The Init Cookie is not what was given out.
    pub const BAD_INIT_COOKIE: Self = Self(10);
    /// The peer cheats at congestion control.
    pub const AGGRESSION_PENALTY: Self = Self(11);

    /// All codes that have a name.
    pub const ALL: [(Self, &'static str); 12] = [
        (Self::UNSPECIFIED, "unspecified"),
        (Self::CLOSED, "closed"),
        (Self::ABORTED, "aborted"),
        (Self::NO_CONNECTION, "no connection"),
        (Self::PACKET_ERROR, "packet error"),
        (Self::OPTION_ERROR, "option error"),
        (Self::MANDATORY_ERROR, "mandatory error"),
        (Self::CONNECTION_REFUSED, "connection refused"),
        (Self::BAD_SERVICE_CODE, "bad service code"),
        (Self::TOO_BUSY, "too busy"),
        (Self::BAD_INIT_COOKIE, "bad init cookie"),
        (Self::AGGRESSION_PENALTY, "aggression penalty"),
    ];
}

impl fmt::Display for ResetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (Self::ALL.iter().find(|(code, _)| code == self), self.0) {
            (Some((_, name)), _) => f.write_str(name),
            (None, 128..) => write!(f, "CCID-specific code {}", self.0),
            (None, _) => write!(f, "reserved code {}", self.0),
        }
    }
}

/// The fields of a Reset packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reset {
    /// Why.
    pub code: ResetCode,
    /// More about it; zero where the code has nothing to say.
    pub data: [u8; 3],
}

impl Reset {
    /// A reset that needs no data.
    pub const fn new(code: ResetCode) -> Self {
        Self { code, data: [0; 3] }
    }

    /// A packet of type `kind` does not belong here.
    pub const fn packet_error(kind: u8) -> Self {
        Self { code: ResetCode::PACKET_ERROR, data: [kind, 0, 0] }
    }

    /// An option or mandatory error about the option of type `kind` with this value.
    pub fn option(code: ResetCode, kind: u8, value: &[u8]) -> Self {
        let byte = |at: usize| value.get(at).copied().unwrap_or(0);
        Self { code, data: [kind, byte(0), byte(1)] }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)?;
        match self.code {
            ResetCode::PACKET_ERROR => {
                write!(f, " ({})", super::Kind::NAMES.get(usize::from(self.data[0])).unwrap_or(&"reserved type"))
            }
            ResetCode::OPTION_ERROR | ResetCode::MANDATORY_ERROR => {
                let [kind, a, b] = self.data;
                write!(f, " (option {kind}, value {a} {b} …)")
            }
            _ => Ok(()),
        }
    }
}
