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
    /// Make a key that nobody can guess, as twelve words and as one short string
    New,
    /// Print the fingerprint of the private key in FILE, which others give to --peer-key; make the
    /// key if FILE is not there
    Identity {
        /// File for the private key
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Show a ticket that lasts, for `braidcast receive --ticket=NAME`; make it if there is none of that name
    Ticket {
        /// What you call it
        #[arg(value_name = "NAME", value_parser = values::ticket_name)]
        name: String,
        /// Relay at which the receiver is met (`braidcast relay`); several with commas, or repeated
        #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer)]
        relay: Vec<values::Remote>,
        /// Address at which the receiver listens, as senders reach it; several with commas, or repeated
        #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', value_parser = values::peer)]
        to: Vec<values::Remote>,
        /// The last day on which it is good: 2027-01-31
        #[arg(long, value_name = "DATE", value_parser = values::date)]
        until: Option<jiff::civil::Date>,
    },
    /// List the tickets that last
    Tickets,
    /// Delete a ticket: who has it is let in no more, and a stream by it ends
    Revoke {
        /// What you call it
        #[arg(value_name = "NAME", value_parser = values::ticket_name)]
        name: String,
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
#[command(next_help_heading = "Security", group = ArgGroup::new("own").args(["identity", "cert"]))]
pub(crate) struct SharedArgs {
    /// Accept the other end only if it has the same key: words or braid1… of `braidcast key new`,
    /// or a passphrase. Without a key everything is still encrypted, but the other end may be
    /// anybody
    #[arg(long, value_name = "SECRET", env = "BRAIDCAST_KEY", hide_env_values = true)]
    pub(crate) key: Option<Typed>,
    /// Read the key from the first line of this file, so that `ps` does not show it
    #[arg(long, short = 'k', value_name = "FILE", conflicts_with = "key")]
    pub(crate) key_file: Option<PathBuf>,
    /// What a passphrase is for, the same at both ends: a guess at one passphrase is then none at
    /// others'
    #[arg(long, value_name = "NAME", value_parser = values::key_name)]
    pub(crate) key_name: Option<String>,
    /// Identify this end by the private key in this file, made by `braidcast key identity`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "key_file", "plain"])]
    pub(crate) identity: Option<PathBuf>,
    /// Accept the other end only if its key has this fingerprint; several with commas, or repeated
    /// [default: anybody; a client remembers a server's --identity and accepts no other from then on]
    #[arg(long, value_name = "FINGERPRINT", value_delimiter = ',', conflicts_with_all = ["key", "key_file", "plain"], value_parser = values::fingerprint)]
    pub(crate) peer_key: Vec<Fingerprint>,
    /// Identify this end by this X.509 certificate: PEM, followed by the intermediate certificates
    #[arg(long, value_name = "FILE", requires_all = ["cert_key", "ca"], conflicts_with_all = ["key", "key_file", "identity", "peer_key", "plain"])]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key: PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) cert_key: Option<PathBuf>,
    /// Accept only certificates of these authorities: PEM. A client accepts only one for the host that it connects to
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) ca: Option<PathBuf>,
    /// Encrypt nothing, at both ends: anybody in between can read and change everything
    #[arg(long, conflicts_with_all = ["key", "key_file"])]
    pub(crate) plain: bool,
}
