//! The link over time that the program has inside, and where recordings of others are looked for.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// An LTE uplink from a moving car, made by `examples/fading_link.rs`, in mahimahi's format; see `traces/README.md`.
pub const LTE: Recording =
    Recording { name: "lte-drive.up", text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/lte-drive.up")) };

/// A link over time: one line for each chance to send 1500 bytes, with its millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// The name of its file.
    pub name: &'static str,
    /// What stands in it.
    pub text: &'static str,
}

/// The environment variable that names a folder of recordings.
pub const FOLDER: &str = "BRAIDCAST_TRACES";

/// Longest text file that is read beside a scenario, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Returns the path of the recording `name` that a scenario in `folder` names: beside it, else in
/// the folder that `BRAIDCAST_TRACES` names.
pub(crate) fn find(folder: &Path, name: &str) -> PathBuf {
    let beside = folder.join(name);
    let elsewhere =
        || std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join(name)).filter(|path| path.exists());
    if beside.exists() { beside } else { elsewhere().unwrap_or(beside) }
}

/// The text in the file at `path`, if it is not too long.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(text)
}
