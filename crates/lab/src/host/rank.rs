use braidcast_dccp::Priority;
use braidcast_sim::traffic::Kind;

/// How important data of a kind is to a send queue: video less than audio (SBPN §3.3.1), and with
/// `layers` B less than P less than I (§8.4.4).
pub(super) fn priority(kind: Kind, layers: bool) -> Priority {
    let level = match kind {
        Kind::Data | Kind::Audio | Kind::Silence => 0,
        Kind::P if layers => 2,
        Kind::B if layers => 3,
        Kind::Video | Kind::I | Kind::P | Kind::B => 1,
    };
    Priority::new(level).unwrap_or(Priority::LAST)
}
