use super::{Controller, Setup, cubic, live, reno, scream, veno};

/// Makes the registry from a row for each controller: its variant, its name, and the type that implements it.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident, $name:literal, $type:ty;)*) => {
        /// A congestion controller, by the name that options, scenarios and the command line share.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
        }

        braidcast_core::named! {
            /// Every controller, by the name that options, scenarios and the command line share.
            Algorithm, "congestion control" { $($name => $variant),* }
        }

        impl Algorithm {
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
    /// Follows what the path delivers and bounds the time in queues; losses alone do not slow it down. For live media.
    Live, "live", live::Live;
    /// SCReAM v2: holds a window by the time in queues, losses and marks
    /// (draft-johansson-ccwg-rfc8298bis-screamv2). For live media.
    Scream, "scream", scream::Scream;
}
