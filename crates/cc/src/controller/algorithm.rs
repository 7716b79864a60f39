use super::{Controller, Setup, cubic, reno, veno};
use core::fmt;
use core::str::FromStr;

/// Makes the registry from a row for each controller: its variant, its name, and the type that implements it.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $type:ty;)*) => {
        /// A congestion controller, by the name that options, scenarios and the command line share.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
        }

        impl Algorithm {
            /// Every controller, with its name.
            pub const ALL: [(&'static str, Self); [$($name),*].len()] = [$(($name, Self::$variant)),*];

            /// A controller of this kind for one path.
            pub fn controller(self, setup: &Setup) -> Box<dyn Controller> {
                match self {
                    $(Self::$variant => Box::new(<$type>::new(setup)),)*
                }
            }
        }
    };
}

algorithms! {
    /// Halves upon loss, grows by a packet for each round trip (RFC 5681, RFC 9260 §7.2, RFC 4341 §5).
    #[default]
    Reno, "reno", reno::Reno;
    /// Reno that keeps four fifths where a loss met no queue (TCP Veno).
    Veno, "veno", veno::Veno;
    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic, "cubic", cubic::Cubic;
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|&(_, it)| it).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("no congestion control is called '{name}'; there are: {names}")
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(_, it)| it == self).map_or("", |(name, _)| name))
    }
}
