use clap::{Args, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// `braidcast generate`, for those who build packages and the manual.
#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) what: Generated,
}

/// What can be made from the program itself.
#[derive(Subcommand, Debug)]
pub(crate) enum Generated {
    /// Man pages, one for each subcommand, into a folder
    Man {
        /// The folder; it must be there
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Completions for a shell, on stdout
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// The manual's page of experiments and scenario keys, on stdout
    Reference,
}
