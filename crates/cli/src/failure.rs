use crate::out::style::Style;
use braidcast_core::Misuse;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a command did not do what it was asked: what happened and where, and how to fix it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    what: String,
    fix: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// The command was used wrongly: exit status 2.
    Usage,
    /// The command was right, the world was not: exit status 1.
    Failed,
    /// Whoever read our stdout has seen enough: exit status 0.
    BrokenPipe,
}

/// What commands return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Something failed while running: `what` names the thing and the place, `fix` what to do about it.
    pub(crate) fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, what: what.into(), fix: fix.into() }
    }

    /// The arguments or the configuration cannot be meant.
    pub(crate) fn usage(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, what: what.into(), fix: fix.into() }
    }

    /// Writing to stdout failed; a reader that went away counts as success.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { kind: Kind::BrokenPipe, what: String::new(), fix: String::new() };
        }
        Self::new(format!("cannot write to stdout: {error}"), "check where stdout leads")
    }

    /// The reader of a stream from our stdout, for example a player, went away. This counts as
    /// success too, but is reported, as the stream ends with it.
    pub(crate) fn reader_gone() -> Self {
        let what = "the program that read the stream from stdout is gone, so receiving ends";
        Self { kind: Kind::BrokenPipe, what: what.into(), fix: String::new() }
    }

    /// Returns `true` if something went wrong, and not only whoever read our stdout has seen enough.
    pub(crate) fn is_one(&self) -> bool {
        self.kind != Kind::BrokenPipe
    }

    /// Prints the failure to stderr and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let style = Style::stderr();
        match self.kind {
            Kind::BrokenPipe if self.what.is_empty() => {}
            Kind::BrokenPipe => say!("{}", self.what),
            Kind::Usage | Kind::Failed => {
                say!("{} {}", style.red("error:"), self.what);
                if !self.fix.is_empty() {
                    say!("{} {}", style.bold(" hint:"), self.fix);
                }
            }
        }
        ExitCode::from(match self.kind {
            Kind::Usage => 2,
            Kind::Failed => 1,
            Kind::BrokenPipe => 0,
        })
    }
}

impl From<Misuse> for Failure {
    /// Options that come from flags are called as these are.
    fn from(misuse: Misuse) -> Self {
        let flag = |option| match option {
            "key" => "--key",
            "paths.scheduler" => "--scheduler",
            "paths.selection" => "--path",
            "paths.switchover" => "--switchover",
            "redundancy.fec" => "--fec",
            "queue.method" => "--queue",
            "send_queue.messages" => "--queue-length",
            "max_packet" => "--mtu less headers",
            other => other,
        };
        Self::usage(misuse.what(flag), misuse.fix(flag))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)
    }
}

/// The operating system refused something that it never refuses.
pub(crate) fn broken(error: &io::Error) -> Failure {
    Failure::new(format!("a system call failed: {error}"), "check limits on open files (`ulimit -n`)")
}
