//! Prototype only.
use std::sync::OnceLock;
static KNOBS: OnceLock<[f64; 16]> = OnceLock::new();
const NAMES: [(&str, f64); 16] = [
    ("K_RISK", 1.0), ("K_PRICE", 0.1), ("K_MARGIN", 5.0), ("K_SIGMA", 0.2), ("K_EACH", 5.0), ("K_FULL", 0.8),
    ("K_DOUBT", 1.0), ("K_RATE", 0.8), ("K_SILENT", 1.0), ("K_HOPELESS", 0.05), ("K_SLOW", 1.0), ("K_LATE", 1.0),
    ("K_SPARE", 0.04), ("K_COVER", 0.1), ("K_FECPATH", 1.0), ("K_OVER", 0.6),
];
static DEBUG: OnceLock<bool> = OnceLock::new();
pub fn debug() -> bool {
    *DEBUG.get_or_init(|| std::env::var("K_DEBUG").is_ok())
}
pub fn knob(n: usize) -> f64 {
    KNOBS.get_or_init(|| NAMES.map(|(name, value)| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(value)))[n]
}
