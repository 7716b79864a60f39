use std::sync::OnceLock;
static KNOBS: OnceLock<[f64; 24]> = OnceLock::new();
const NAMES: [(&str, f64); 24] = [
    ("K_PRICE", 0.1), ("K_LATE", 1.0), ("K_RATE", 0.8), ("K_FULL", 0.8), ("K_DOUBT", 1.0), ("K_SILENT", 1.0),
    ("K_SPARE", 0.04), ("K_COVER", 1.0), ("K_LEVEL", 0.02), ("K_MARGIN", 5.0), ("K_VICTIM", 0.0), ("K_FECPATH", 1.0),
    ("K_JUDGE", 1.0), ("K_A", 0.85), ("K_B", 0.1), ("K_C", 1.2), ("K_D", 0.0), ("K_E", 0.75), ("K_F", 0.1), ("K_G", 1.2),
    ("K_H", 0.0), ("K_I", 0.0), ("K_J", 0.0), ("K_K", 0.0),
];
/// A knob.
pub fn knob(name: &str) -> f64 {
    let all = KNOBS.get_or_init(|| NAMES.map(|(name, usual)| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)));
    all[NAMES.iter().position(|it| it.0 == name).unwrap()]
}
/// Debug.
pub fn debug() -> bool {
    static DEBUG: OnceLock<bool> = OnceLock::new();
    *DEBUG.get_or_init(|| std::env::var("K_DEBUG").is_ok())
}
