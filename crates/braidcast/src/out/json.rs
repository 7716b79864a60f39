use super::text;
use crate::failure::{Failure, Outcome};
use serde::Serialize;

#[derive(Serialize)]
struct Envelope<'a, T> {
    command: &'a str,
    version: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

/// Prints `body`, which must be a struct or map, with the command's name and our version as the one JSON
/// document on stdout.
pub(crate) fn print(command: &str, body: &impl Serialize) -> Outcome {
    let document = serde_json::to_string_pretty(&Envelope { command, version: env!("CARGO_PKG_VERSION"), body })
        .map_err(|e| Failure::new(format!("cannot write the report as JSON: {e}"), "please report this as a bug"))?;
    text::print(&document)
}

/// `value` with three digits after the point: reports are for people and diffs, not for bit patterns.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
