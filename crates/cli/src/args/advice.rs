//! What somebody who typed a flag or a word of another program wants. A guess is made only where the input fits it.

use super::Cli;
use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// A word that is typed at some commands, without its dashes, and what is meant by it here.
struct Habit {
    /// Commands by their first word, or by both; empty: all.
    commands: &'static [&'static str],
    words: &'static [&'static str],
    tip: &'static str,
}

const SENDING: &[&str] = &["send", "encode"];
const KEYED: &[&str] = &["send", "encode", "receive", "tunnel", "perf"];

/// Flags of ffmpeg, SRT's and RIST's tools, iperf3, OBS and our own past.
const FLAGS: [Habit; 26] = [
    Habit {
        commands: SENDING,
        words: &[
            "port",
            "p",
            "host",
            "ip",
            "server",
            "dest",
            "dst",
            "destination",
            "address",
            "addr",
            "url",
            "target",
            "remote",
            "peer",
            "receiver",
        ],
        tip: "the other end is --to HOST:PORT",
    },
    Habit {
        commands: SENDING,
        words: &["bitrate", "b", "vb", "rate", "maxrate", "bandwidth", "bw"],
        tip: "the encoder sets the rate: `braidcast encode` follows the networks, and --rate-report and --on-rate tell other encoders",
    },
    Habit {
        commands: SENDING,
        words: &["input", "in", "file", "f", "source", "src"],
        tip: "the INPUT has no flag: braidcast send clip.ts --to HOST:PORT",
    },
    Habit {
        commands: &["send", "encode", "tunnel client", "perf client"],
        words: &["interface", "interfaces", "iface", "ifname", "dev", "device", "nic", "bind", "network", "networks"],
        tip: "networks are named by --via: --via wlan0,wwan0",
    },
    Habit {
        commands: SENDING,
        words: &["delay", "buffer", "rcvlatency", "peerlatency", "lat"],
        tip: "the end-to-end delay is --latency TIME",
    },
    Habit {
        commands: SENDING,
        words: &["streamid", "stream-id", "stream", "stream-name"],
        tip: "a stream's name is --name NAME",
    },
    Habit {
        commands: SENDING,
        words: &["timeout", "retry", "retries", "reconnect"],
        tip: "it goes on trying by itself; --give-up TIME ends it once nobody has answered for that time",
    },
    Habit { commands: SENDING, words: &["listen"], tip: "--at PORT waits there for the receiver's call" },
    Habit {
        commands: SENDING,
        words: &["re", "loop", "realtime"],
        tip: "a FILE is played once, at its own speed; for more, ffmpeg writes to stdin: ffmpeg -stream_loop -1 …",
    },
    Habit {
        commands: &["receive"],
        words: &["to", "server", "host", "dest", "connect"],
        tip: "`receive` listens: braidcast receive 9000 OUTPUT; --from HOST:PORT calls a sender that waits",
    },
    Habit {
        commands: &["receive", "perf server", "tunnel server", "emulate"],
        words: &["port", "p", "bind", "at", "l", "address", "addr"],
        tip: "the port to listen at has no flag and stands first, for example 9000",
    },
    Habit {
        commands: &["receive", "perf server", "emulate"],
        words: &["listen"],
        tip: "the port to listen at has no flag and stands first, for example 9000",
    },
    Habit {
        commands: &["receive"],
        words: &["output", "out", "o", "file", "f", "write", "w", "save"],
        tip: "the OUTPUT has no flag and stands behind the port: braidcast receive 9000 show.ts",
    },
    Habit {
        commands: &["receive"],
        words: &["interface", "iface", "dev", "device", "nic", "network"],
        tip: "it listens on every network; ADDR:PORT in place of the port chooses an address",
    },
    Habit {
        commands: &["receive"],
        words: &["delay", "buffer", "jitter", "rcvlatency", "lat"],
        tip: "the sender sets the latency: braidcast send --latency TIME; --early hands frames out sooner",
    },
    Habit { commands: &["receive"], words: &["streamid"], tip: "--accept NAME=OUTPUT takes a stream by its name" },
    Habit {
        commands: &["receive"],
        words: &["loop", "forever", "daemon", "persistent"],
        tip: "--keep waits for the next sender when a stream ends",
    },
    Habit {
        commands: KEYED,
        words: &["password", "passphrase", "pass", "passwd", "pw", "secret", "psk", "token", "keyfile"],
        tip: "what both ends share is --key-file FILE, or --key SECRET",
    },
    Habit {
        commands: KEYED,
        words: &["no-encryption", "insecure", "unencrypted", "no-crypto", "no-key"],
        tip: "without a key everything is encrypted with nobody authenticated; --plain at both ends encrypts nothing",
    },
    Habit {
        commands: &["tunnel client", "perf client"],
        words: &["server", "host", "address", "connect", "remote", "c"],
        tip: "the server is --to HOST:PORT for `tunnel client`, and stands behind `perf client` without a flag",
    },
    Habit {
        commands: &["tunnel"],
        words: &["local", "from", "source", "input", "l"],
        tip: "applications here send to --listen PORT; those that wait here are --forward HOST:PORT",
    },
    Habit { commands: &["perf client"], words: &["time", "t", "seconds"], tip: "how long to send is --duration TIME" },
    Habit {
        commands: &["perf client"],
        words: &["bandwidth", "bitrate", "b", "speed"],
        tip: "a rate is --rate RATE; without it the network decides",
    },
    Habit {
        commands: &["emulate"],
        words: &["latency", "lat", "rtt", "ping"],
        tip: "the one-way delay is --delay TIME",
    },
    Habit {
        commands: &["emulate"],
        words: &["bandwidth", "bw", "speed", "bitrate", "limit"],
        tip: "the rate is --rate RATE, for example 8mbit",
    },
    Habit {
        commands: &["emulate"],
        words: &["drop", "plr", "packet-loss"],
        tip: "losses are --loss SHARE, for example 5%",
    },
];

/// Words in the place of a subcommand.
const WORDS: [Habit; 6] = [
    Habit { commands: &[], words: &["version", "ver"], tip: "that is: braidcast --version" },
    Habit {
        commands: &[],
        words: &["server", "listen", "serve", "recv", "rx", "play", "home", "sink"],
        tip: "to take a stream: braidcast receive 9000 show.ts",
    },
    Habit {
        commands: &[],
        words: &["client", "connect", "stream", "tx", "push", "publish", "caller"],
        tip: "to send one: braidcast send INPUT --to HOST:PORT",
    },
    Habit {
        commands: &[],
        words: &["iperf", "iperf3", "speedtest", "bench"],
        tip: "to measure: braidcast perf server, braidcast perf client",
    },
    Habit { commands: &[], words: &["keygen", "genkey", "password"], tip: "to make a key: braidcast key new" },
    Habit {
        commands: &[],
        words: &["netem", "tc", "simulate"],
        tip: "to stand in for a bad network: braidcast emulate",
    },
];

/// Adds to `error` what is meant in its place, and takes away guesses that do not fit.
pub(crate) fn advise(error: &mut clap::Error, argv: &[OsString]) {
    let words: Vec<String> = argv.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let command = typed_command(&words);
    let tip = one_dash(&words, &command).or_else(|| match error.kind() {
        ErrorKind::UnknownArgument => unknown(error, &command),
        ErrorKind::InvalidSubcommand => subcommand(&text(error, ContextKind::InvalidSubcommand), &command),
        ErrorKind::MissingRequiredArgument => missing(error, &words, &command),
        ErrorKind::ArgumentConflict => conflict(error),
        _ => None,
    });
    if let Some(tip) = tip {
        for guess in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
            error.remove(guess);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return;
    }
    let typed = text(error, ContextKind::InvalidArg);
    let guess = text(error, ContextKind::SuggestedArg);
    if !is_near(typed.trim_start_matches('-'), guess.trim_start_matches('-')) {
        error.remove(ContextKind::SuggestedArg);
    }
    // That a flag nobody knows could be the name of a file is no help.
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let kept: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().starts_with("to pass ")).collect();
        if !kept.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(kept));
        }
    }
}

/// Returns `true` if `typed` is `meant` with a slip or two, or a part of it.
fn is_near(typed: &str, meant: &str) -> bool {
    let part = typed.len() >= 3 && (meant.starts_with(typed) || typed.starts_with(meant));
    part || strsim::normalized_damerau_levenshtein(typed, meant) >= 0.6
}

/// The subcommand that was typed: its words.
fn typed_command(words: &[String]) -> Vec<String> {
    let root = Cli::command();
    let (mut at, mut found) = (&root, Vec::new());
    for word in words.iter().take_while(|word| *word != "--").filter(|word| !word.starts_with('-')) {
        let Some(inner) = at.find_subcommand(word) else { break };
        found.push(word.clone());
        at = inner;
    }
    found
}

/// What of `error` is a text; empty without it.
fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    }
}

fn applies(habit: &Habit, command: &[String]) -> bool {
    let both = command.join(" ");
    let first = command.first().map_or("", String::as_str);
    habit.commands.is_empty() || habit.commands.iter().any(|it| *it == both || *it == first)
}

fn unknown(error: &clap::Error, command: &[String]) -> Option<String> {
    let typed = text(error, ContextKind::InvalidArg);
    let flag = typed.trim_start_matches('-');
    if flag == typed {
        let (first, is_address) = (command.first().map_or("", String::as_str), super::values::remote(&typed).is_ok());
        let takes_to = SENDING.contains(&first) || command.join(" ") == "tunnel client";
        return (is_address && takes_to).then(|| format!("the other end has a flag: --to {typed}"));
    }
    let name = flag.split('=').next().unwrap_or(flag);
    let habit = FLAGS.iter().find(|it| it.words.contains(&name) && applies(it, command));
    habit.map(|it| it.tip.to_owned())
}

fn subcommand(word: &str, command: &[String]) -> Option<String> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    match command.first().map_or("", String::as_str) {
        "tunnel" if is_number => {
            Some(format!("say which end this is: braidcast tunnel server {word} --forward HOST:PORT"))
        }
        "tunnel" if super::values::remote(word).is_ok() => {
            Some(format!("say which end this is: braidcast tunnel client --to {word} --listen PORT"))
        }
        "perf" if is_number => Some(format!("say which end this is: braidcast perf server {word}")),
        "perf" if super::values::remote(word).is_ok() => {
            Some(format!("say which end this is: braidcast perf client {word}"))
        }
        "lab" if word.ends_with(".toml") || braidcast_lab::Scenario::find(word).is_ok() => {
            Some(format!("to run it: braidcast lab run {word}"))
        }
        "key" if word.contains('.') || word.contains('/') => {
            Some(format!("for a private key in a file: braidcast key identity {word}"))
        }
        "" => {
            let habit = WORDS.iter().find(|it| it.words.contains(&word));
            let is_media = word.contains("://") || word.contains('.') || word == "-";
            habit
                .map(|it| it.tip.to_owned())
                .or_else(|| {
                    let both = format!(
                        "say what to do with it: braidcast send {word} --to HOST:PORT, or braidcast receive 9000 {word}"
                    );
                    is_media.then_some(both)
                })
                .or_else(|| is_number.then(|| format!("to take a stream there: braidcast receive {word} show.ts")))
        }
        _ => None,
    }
}

/// `-latency` is `-l atency` to a parser, and `-to` is `-t`.
fn one_dash(words: &[String], command: &[String]) -> Option<String> {
    let mut root = Cli::command();
    root.build();
    let command = command.iter().try_fold(&root, |at, name| at.find_subcommand(name))?;
    let longs: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let before = words.iter().take_while(|word| *word != "--");
    let slip = before.filter_map(|word| word.strip_prefix('-')).find(|word| {
        let name = word.split('=').next().unwrap_or(word);
        name.len() > 1 && longs.contains(&name)
    })?;
    Some(format!("long flags have two dashes: --{slip}"))
}

fn missing(error: &clap::Error, words: &[String], command: &[String]) -> Option<String> {
    let lacks = text(error, ContextKind::InvalidArg);
    let first = command.first().map_or("", String::as_str);
    if lacks.contains("<INPUT>") && words.iter().any(|word| word == "-i") {
        return Some(format!(
            "-i is --via, a network; the INPUT has no flag: braidcast {first} clip.ts --to HOST:PORT"
        ));
    }
    let queue = lacks.contains("--rate <RATE>") && first == "emulate";
    queue.then(|| "--queue has no effect without --rate or --trace: nothing waits before a link without a limit".into())
}

/// Flags that say nothing beside --reliable.
fn conflict(error: &clap::Error) -> Option<String> {
    let both = [text(error, ContextKind::InvalidArg), text(error, ContextKind::PriorArg)];
    if !both.iter().any(|it| it == "--reliable") {
        return None;
    }
    let other = both.iter().find(|it| *it != "--reliable")?;
    let flag = other.split(' ').next().unwrap_or(other);
    let why = match flag {
        "--end-with-receiver" => "a reliable stream ends with its receiver anyway",
        _ => "a reliable stream is delivered in order, however late",
    };
    Some(format!("{flag} has no effect with --reliable, as {why}: leave one of them out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_is_made_only_where_it_fits() {
        assert!(is_near("latancy", "latency") && is_near("rate", "rate-report") && is_near("overwite", "overwrite"));
        for (typed, guess) in [("port", "on-rate"), ("bitrate", "trace"), ("to", "authorized"), ("", "to")] {
            assert!(!is_near(typed, guess), "{typed} {guess}");
        }
    }

    #[test]
    fn habits_are_of_commands_and_hide_no_flag() {
        let mut root = Cli::command();
        root.build();
        for habit in &FLAGS {
            for name in habit.commands {
                let found = name.split(' ').try_fold(&root, |at, word| at.find_subcommand(word));
                let command = found.unwrap_or_else(|| panic!("{name}"));
                for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                    let long = arg.get_long().is_some_and(|long| habit.words.contains(&long));
                    let short = arg.get_short().is_some_and(|short| habit.words.contains(&short.to_string().as_str()));
                    assert!(!long && !short, "{name} has {}", arg.get_id());
                }
            }
        }
    }
}
