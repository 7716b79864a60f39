//! `-h`: the few flags that nearly everybody needs, with examples, on one screen. `--help` has all.

use super::Cli;
use clap::{Command, CommandFactory};
use std::ffi::OsString;

/// What `-h` shows of a command.
struct Brief {
    /// The words behind `braidcast`.
    path: &'static [&'static str],
    /// Arguments by their ids, each in a line.
    args: &'static [(&'static str, &'static str)],
    /// What stands below them.
    after: &'static str,
}

const ALL: [Brief; 6] = [
    Brief {
        path: &[],
        args: &[
            ("json", "One JSON document on stdout when done"),
            ("quiet", "Only errors and warnings"),
            ("verbose", "More on stderr; -vv still more"),
            ("config", "Flags from a file"),
            ("version", "Print the version"),
        ],
        after: "\
Begin with `braidcast demo`; `braidcast` alone says how to stream.
`braidcast COMMAND -h` shows what a command needs, `braidcast COMMAND --help` all that it takes.",
    },
    Brief {
        path: &["send"],
        args: &[
            ("input", "A FILE, - for stdin, udp://HOST:PORT to listen on, or srt://:PORT for who calls"),
            ("to", "Where `braidcast receive` is reached, or its ticket: @FILE"),
            ("via", "Networks to use at once: wlan0,wwan0"),
            ("latency", "From capture to playout [default: 500ms]"),
            ("reliable", "All of a file in order, however long it takes"),
            ("name", "What the receiver calls the stream, if it serves several"),
            ("key_file", "The secret that both ends share: `braidcast key new` makes one"),
            ("on_rate", "Run this when the encoder's rate, $BRAIDCAST_RATE, changes"),
            ("web", "A page to watch at http://127.0.0.1:PORT"),
            ("give_up", "End if nobody answers for this long [default: never]"),
            ("config", "Flags from a file"),
        ],
        after: "\
Examples:
  braidcast send camera.ts --to home.example:9000 --via wlan0,wwan0
  ffmpeg -i … -f mpegts - | braidcast send - --to home.example:9000 --via wlan0,wwan0 --web 8080
  braidcast send backup.tar --to home.example:9000 --reliable

`ip -br addr` lists the networks. `braidcast send --help` has all flags.",
    },
    Brief {
        path: &["receive"],
        args: &[
            ("listen", "The UDP port to listen at: 9000"),
            ("output", "A FILE, - for stdout, udp://HOST:PORT or srt://HOST:PORT; several get all of it"),
            ("from", "Call a sender that waits (`send --at`) in place of listening"),
            ("relay", "Meet the sender at a relay, and print the ticket that it needs"),
            ("keep", "Wait for the next sender when a stream ends"),
            ("accept", "Several senders: each NAME to its OUTPUT"),
            ("segment", "A new file each 10min, for example"),
            ("overwrite", "Replace what is in FILE"),
            ("key_file", "The secret that both ends share: `braidcast key new` makes one"),
            ("web", "A page to watch at http://127.0.0.1:PORT"),
            ("config", "Flags from a file"),
        ],
        after: "\
Examples:
  braidcast receive 9000 show.ts
  braidcast receive 9000 - | ffplay -probesize 200000 -
  braidcast receive 9000 show-%Y%m%d-%H%M%S.ts udp://127.0.0.1:5000 --keep --segment 10min

The sender sets the latency. `braidcast receive --help` has all flags.",
    },
    Brief {
        path: &["encode"],
        args: &[
            ("input", "camera, screen, test, a device, a FILE, or gst:PIPELINE"),
            ("to", "Where `braidcast receive` is reached"),
            ("via", "Networks to use at once: wlan0,wwan0"),
            ("latency", "From capture to playout [default: 500ms]"),
            ("audio", "auto, none, test, mic, or gst:PIPELINE"),
            ("size", "Size of the video: 1280x720"),
            ("fps", "Frames per second [default: 30]"),
            ("rate_range", "Lowest and highest rate: 300kbit-6mbit"),
            ("encoder", "GStreamer's element that encodes [default: x264enc]"),
            ("key_file", "The secret that both ends share: `braidcast key new` makes one"),
            ("web", "A page to watch at http://127.0.0.1:PORT"),
        ],
        after: "\
Examples:
  braidcast encode camera --audio mic --to home.example:9000 --via wlan0,wwan0
  braidcast encode screen --to home.example:9000 --rate-range 300kbit-6mbit
  braidcast encode test --to 127.0.0.1:9000 --web 8080

It needs the program braidcast-encode (`make gst`). `braidcast encode --help` has all flags.",
    },
    Brief {
        path: &["tunnel", "client"],
        args: &[
            ("to", "Where `braidcast tunnel server` is reached"),
            ("listen", "Ports of 127.0.0.1 that applications here send to: 5004,5005/audio"),
            ("forward", "Applications here that wait for what comes from there"),
            ("over", "sctp uses all networks, dccp one; the same at both ends [default: dccp]"),
            ("via", "Networks to use: wlan0,wwan0"),
            ("lifetime", "How long a datagram is of use [default: 1s]"),
            ("fec", "Redundancy, with --over sctp: none or auto"),
            ("key_file", "The secret that both ends share: `braidcast key new` makes one"),
            ("web", "A page to watch at http://127.0.0.1:PORT"),
        ],
        after: "\
Examples:
  braidcast tunnel client --to there.example:9000 --listen 5004,5005
  braidcast tunnel client --to there.example:9000 --listen 5004/audio,5006/video/300ms
  braidcast tunnel client --over sctp --to there.example:9000 --via wlan0,wwan0 --listen 51820

The n-th --listen of one end leads to the n-th --forward of the other. `braidcast tunnel client --help` has all flags.",
    },
    Brief {
        path: &["tunnel", "server"],
        args: &[
            ("at", "The UDP port to listen for clients at: 9000"),
            ("forward", "Applications here that get what clients send: 127.0.0.1:5004,127.0.0.1:5005"),
            ("listen", "Ports of 127.0.0.1 that applications here send to"),
            ("over", "sctp uses all networks, dccp one; the same at both ends [default: dccp]"),
            ("lifetime", "How long a datagram is of use [default: 1s]"),
            ("authorized", "Only clients in this file, by their keys"),
            ("key_file", "The secret that both ends share: `braidcast key new` makes one"),
            ("web", "A page to watch at http://127.0.0.1:PORT"),
        ],
        after: "\
Examples:
  braidcast tunnel server 9000 --forward 127.0.0.1:5004,127.0.0.1:5005
  braidcast tunnel server 9000 --over sctp --forward 127.0.0.1:51820
  braidcast tunnel server 9000 --forward 127.0.0.1:4569 --key-file stream.key

The n-th --listen of one end leads to the n-th --forward of the other. `braidcast tunnel server --help` has all flags.",
    },
];

/// What to type first.
pub(crate) const START: &str = "\
Live video and voice over several bad networks at once, on time.

See it on this machine:            braidcast demo
At home, with UDP port 9000 open:  braidcast receive 9000 show.ts
In the field, over two networks:   braidcast send camera.ts --to home.example:9000 --via wlan0,wwan0
A camera in place of a file:       braidcast encode camera --to home.example:9000 --via wlan0,wwan0

`ip -br addr` lists your networks. `braidcast -h` lists all commands, `braidcast send -h` what `send` takes.";

/// Returns `true` if `argv` asks for the short help.
pub(crate) fn is_asked(argv: &[OsString]) -> bool {
    argv.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "-h")
}

/// The command line as `-h` shows it. It takes what the whole one takes.
pub(crate) fn command() -> Command {
    let mut root = Cli::command();
    // Makes clap hand the flags that hold everywhere to each subcommand.
    root.build();
    shorten(root, &mut Vec::new())
}

fn shorten(command: Command, path: &mut Vec<String>) -> Command {
    let command = match ALL.iter().find(|it| it.path == path.as_slice()) {
        Some(brief) => brief.show(command),
        None => command,
    };
    command.mut_subcommands(|inner| {
        path.push(inner.get_name().to_owned());
        let shown = shorten(inner, path);
        path.pop();
        shown
    })
}

impl Brief {
    fn show(&self, command: Command) -> Command {
        let command = command.mut_args(|arg| {
            let place = self.args.iter().position(|(id, _)| *id == arg.get_id().as_str());
            match place {
                Some(place) => {
                    // Its other forms are behind `--help`.
                    let arg = if arg.get_id() == "via" { arg.value_name("NETWORK") } else { arg };
                    let arg = arg.help(self.args[place].1).help_heading(None::<&str>).display_order(place).hide(false);
                    arg.hide_default_value(true).hide_possible_values(true).hide_env(true)
                }
                None => arg.hide(true),
            }
        });
        command.after_help(self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_names_a_command_and_arguments_that_are_there() {
        let mut root = Cli::command();
        root.build();
        for brief in &ALL {
            let found = brief.path.iter().try_fold(&root, |at, name| at.find_subcommand(name));
            let command = found.unwrap_or_else(|| panic!("{:?}", brief.path));
            for (id, _) in brief.args {
                assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{:?} has no {id}", brief.path);
            }
        }
    }

    #[test]
    fn the_short_help_is_asked_for_by_its_letter_alone() {
        let asks = |line: &str| is_asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("braidcast send -h") && asks("braidcast -h"));
        assert!(!asks("braidcast send --help") && !asks("braidcast send -- -h") && !asks("-h"));
    }
}
