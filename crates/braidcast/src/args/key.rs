use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `braidcast key`.
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// What to do with keys.
#[derive(Subcommand, Debug)]
pub(crate) enum KeyCommand {
    /// Make a key that nobody can guess: twelve words, and the same in one short piece
    New,
}

/// What two ends share, for commands that talk to another one.
#[derive(Args, Debug)]
pub(crate) struct SharedArgs {
    /// Encrypt, and talk only to who has the same key: words or braid1… of `braidcast key new`, or a passphrase
    #[arg(long, value_name = "SECRET", env = "BRAIDCAST_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// The same with the key in a file, its first line, where `ps` does not show it
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    pub(crate) key_file: Option<PathBuf>,
}
