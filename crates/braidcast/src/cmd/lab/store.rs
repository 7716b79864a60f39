//! The files that results are kept in.

use crate::failure::{Failure, Outcome};
use braidcast_lab::results::Results;
use std::path::Path;

/// Writes `results` to its file in `dir`.
pub(super) fn keep(dir: &Path, results: &Results) -> Outcome {
    let path = dir.join(format!("{}.json", results.experiment));
    let cannot = |e: &dyn std::fmt::Display| {
        Failure::new(format!("cannot write {}: {e}", path.display()), "choose another folder with --results")
    };
    let text = serde_json::to_string_pretty(results).map_err(|e| cannot(&e))?;
    std::fs::create_dir_all(dir).map_err(|e| cannot(&e))?;
    std::fs::write(&path, text + "\n").map_err(|e| cannot(&e))
}
