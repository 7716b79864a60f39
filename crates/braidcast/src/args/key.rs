use super::values;
use braidcast_secure::Fingerprint;
use clap::{ArgGroup, Args, Subcommand};
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use zeroize::Zeroizing;

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
    /// Make a private key in FILE for --identity, unless it is there; print the fingerprint, which others give to --peer-key
    Identity {
        /// Where the private key is kept
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// A secret as it was typed. Wiped when dropped, and never printed.
#[derive(Clone)]
pub(crate) struct Typed(pub(crate) Zeroizing<String>);

impl FromStr for Typed {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(Zeroizing::new(text.to_owned())))
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Typed(…)")
    }
}

/// What two ends share, for commands that talk to another one.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("own").args(["identity", "cert"]))]
pub(crate) struct SharedArgs {
    /// Talk only to who has the same key: words or braid1… of `braidcast key new`, or a passphrase. Without a key, what goes is
    /// encrypted too, but anybody may be the other end
    #[arg(long, value_name = "SECRET", env = "BRAIDCAST_KEY", hide_env_values = true)]
    pub(crate) key: Option<Typed>,
    /// The same with the key in a file, its first line, where `ps` does not show it
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    pub(crate) key_file: Option<PathBuf>,
    /// Show the private key in this file, made by `braidcast key identity`, so that the other end can know this one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "key_file", "plain"])]
    pub(crate) identity: Option<PathBuf>,
    /// Talk only to who shows the key with this fingerprint; repeat for more [default: anybody; who connects remembers the key of
    /// who has an --identity, and takes no other from then on]
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["key", "key_file", "plain"], value_parser = values::fingerprint)]
    pub(crate) peer_key: Vec<Fingerprint>,
    /// Show this X.509 certificate, for who has a PKI: PEM, those between it and the authority behind it
    #[arg(long, value_name = "FILE", requires_all = ["cert_key", "ca"], conflicts_with_all = ["key", "key_file", "identity", "peer_key", "plain"])]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key: PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) cert_key: Option<PathBuf>,
    /// Talk only to who has a certificate of these authorities: PEM. Who connects takes only one for the host that it connects to
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ca: Option<PathBuf>,
    /// Encrypt nothing, at both ends: whoever is on the way reads and changes what goes
    #[arg(long, conflicts_with_all = ["key", "key_file"])]
    pub(crate) plain: bool,
}
