//! What was found on the paths, in words, and what to do about it.

use super::finding::Finding;
use super::here::Here;
use super::nat::Before;
use super::tried::{Ecn, Nat, Other, State, Tried};
use crate::out::units;
use braidcast_driver::{Trouble, Via};
use braidcast_relay::Reason;
use std::net::IpAddr;
use std::time::Duration;

/// The smallest longest packet that IPv6 knows (RFC 8200 §5): less is a tunnel, or set wrongly.
const USUAL_MTU: usize = 1280;
/// A retransmission takes a round trip and a half: the default latency of 500 ms has room for one at most.
const FAR: Duration = Duration::from_millis(330);
/// More is seen in a stream without redundancy, 0 to 1.
const MUCH_LOSS: f64 = 0.02;
/// A queue that adds this to each packet takes most of the default latency.
const DEEP_QUEUE_MS: f64 = 300.0;
/// What is left for an encoder once headers and repairs have gone.
const FOR_ENCODERS: f64 = 0.9;
/// Video that is worth watching needs as much, bits per second.
const LITTLE: f64 = 300_000.0;
/// Clocks that are set by NTP differ by less, s.
const CLOCKS: f64 = 1.0;

/// What was found on each path.
pub(super) fn findings(tried: &[Tried], nats: &[Before], here: &Here) -> Vec<Finding> {
    let mut all: Vec<Finding> = tried.iter().map(|it| state(it, tried, here)).collect();
    all.extend(tried.iter().flat_map(details));
    all.extend(nats.iter().map(nat));
    all.extend(clock(tried));
    all.extend(together(tried));
    all
}

/// If the other end answers, and why not.
fn state(it: &Tried, tried: &[Tried], here: &Here) -> Finding {
    let name = &it.name;
    match &it.state {
        State::Answers => answers(it),
        State::Refuses(why, fix) => Finding::bad(format!("{name}: it answers, and refuses: {why}"), fix.clone()),
        State::Unusable(why) => unusable(it, why),
        State::Silent(trouble) => silent(it, *trouble, here, tried),
        State::Waiting => Finding::doubtful(format!("{name}: not known"), "let `doctor` run to its end"),
    }
}

fn unusable(it: &Tried, why: &str) -> Finding {
    let family = super::here::family(it.remote.ip());
    let fix = match &it.via {
        Via::Device(name) => format!("ip -br addr show {name}"),
        _ => format!("leave out --via, or give one that has {family}"),
    };
    Finding::bad(format!("{}: {why}", it.name), fix)
}

fn answers(it: &Tried) -> Finding {
    let (name, rtt) = (&it.name, it.rtt.map_or_else(String::new, |rtt| format!(", round trip {}", units::time(rtt))));
    match it.other {
        Some(Other::Receiver) => Finding::good(format!("{name}: a receiver answers{rtt}")),
        Some(Other::PerfServer) => Finding::good(format!("{name}: a perf server answers{rtt}")),
        Some(Other::Relay) if it.relay_refused == Some(Reason::NotAuthorized) => Finding::doubtful(
            format!("{name}: a relay answers{rtt}, and has a list that this end is not in"),
            "to send by it a ticket is enough; `receive --relay` needs a --relay-key that is in the list",
        ),
        Some(Other::Relay) => Finding::good(format!("{name}: a relay answers{rtt}")),
        Some(Other::Sender) => Finding::bad(
            format!("{name}: a sender waits there, and no receiver"),
            format!("to receive from it: braidcast receive --from {} OUTPUT", it.remote),
        ),
        _ => Finding::doubtful(
            format!("{name}: the other end answers{rtt}, and says nothing of what it sees"),
            "use the same version at both ends",
        ),
    }
}

/// Nobody answers.
fn silent(it: &Tried, trouble: Option<Trouble>, here: &Here, tried: &[Tried]) -> Finding {
    let (name, port) = (&it.name, it.remote.port());
    if let Some(missing) = missing(it, here) {
        return Finding { what: format!("{name}: {}", missing.what), ..missing };
    }
    if it.by_relay {
        return match (it.seen_as, it.relay_refused) {
            (Some(_), _) => Finding::bad(
                format!("{name}: the relay answers, and the receiver behind it does not"),
                "look at what `braidcast receive` says there",
            ),
            (None, Some(why)) => Finding::bad(
                format!("{name}: {why}"),
                "start `braidcast receive --relay …` there with this ticket's name, and look at what it says",
            ),
            (None, None) => Finding::bad(
                format!(
                    "{name}: the relay does not answer{}",
                    trouble.map_or_else(String::new, |it| format!(": {it}"))
                ),
                format!("check that `braidcast relay {port}` runs there and that UDP reaches it"),
            ),
        };
    }
    let Some(trouble) = trouble else {
        let answers = |other: &&Tried| other.state == State::Answers && other.remote.is_ipv4() != it.remote.is_ipv4();
        if let Some(other) = tried.iter().find(answers) {
            return Finding::doubtful(
                format!("{name}: {} does not get through", super::here::family(it.remote.ip())),
                format!("nothing: a stream goes over {}; if this was meant to work, look at the router", other.name),
            );
        }
        return Finding::bad(
            format!("{name}: nothing comes back"),
            format!(
                "check that `braidcast receive {port} …` runs there; if it does, UDP is dropped in between, in one \
                 direction or both: open UDP port {port} there, try another port, for example 443, or use a relay"
            ),
        );
    };
    let fix = match trouble {
        Trouble::Refused => format!("start `braidcast receive {port} …` there, or compare the ports"),
        Trouble::Forbidden => "look for a rule about outgoing UDP: nft list ruleset".into(),
        _ => format!("compare the address; what this machine would do: ip route get {}", it.remote.ip()),
    };
    Finding::bad(format!("{name}: {trouble}"), fix)
}

/// What the tables of this machine lack for a path.
fn missing(it: &Tried, here: &Here) -> Option<Finding> {
    let remote = it.remote;
    let (device, local): (&str, IpAddr) = match &it.via {
        Via::Any => return None,
        Via::Addr(addr) => (here.device_of(*addr)?, *addr),
        Via::Device(name) => (name, here.address(name, remote)?),
    };
    here.missing(device, local, remote.ip())
}

/// How good a path is that answers.
fn details(it: &Tried) -> Vec<Finding> {
    let (mut all, name) = (Vec::new(), &it.name);
    if it.state != State::Answers {
        return all;
    }
    if let Some(rtt) = it.rtt.filter(|rtt| *rtt > FAR) {
        let latency = (rtt * 3).as_millis().div_ceil(100) * 100;
        let what =
            format!("{name}: far away: what is lost comes again {} later at the earliest", units::time(rtt * 3 / 2));
        all.push(Finding::doubtful(what, format!("give `send` more time: --latency {latency}ms")));
    }
    if let Some(mtu) = it.mtu().filter(|mtu| *mtu < USUAL_MTU) {
        let what = format!("{name}: the longest packets that get through have {mtu} bytes, or a few more");
        all.push(Finding::doubtful(what, "nothing: Braidcast sends smaller ones; a tunnel or a wrong MTU makes it so"));
    }
    match it.ecn() {
        Some(Ecn::Dropped) => {
            all.push(Finding::good(format!("{name}: packets that say ECT are dropped; Braidcast does without")));
        }
        Some(Ecn::Bleached) => {
            all.push(Finding::good(format!("{name}: ECN is cleared in between; Braidcast does without")));
        }
        _ => {}
    }
    if let Some(carried) = it.carried {
        if carried.loss > MUCH_LOSS {
            let what = format!("{name}: {} of the packets are lost", units::share(carried.loss));
            all.push(Finding::doubtful(what, "keep --fec auto, and give repairs time by a larger --latency"));
        }
        let rtt = it.rtt.unwrap_or_default().as_secs_f64() * 1e3;
        if carried.rtt_ms - rtt > DEEP_QUEUE_MS {
            let grown = units::time(Duration::from_secs_f64((carried.rtt_ms - rtt) / 1e3));
            let what = format!("{name}: packets stand in a queue for {grown} when it is full");
            all.push(Finding::doubtful(what, "set the encoder's rate below what the path carries"));
        }
    }
    all
}

fn nat(before: &Before) -> Finding {
    let family = before.family;
    let place =
        if before.network == super::AS_ROUTED { family.to_owned() } else { format!("{}, {family}", before.network) };
    let seen = before.seen.first().map_or_else(String::new, |seen| format!(", which is seen as {}", seen.at));
    match before.kind {
        Nat::None => Finding::good(format!("{place}: there is no NAT")),
        Nat::Some => Finding::good(format!("{place}: there is a NAT{seen}; two relays would tell its kind")),
        Nat::Cone => Finding::good(format!("{place}: a NAT with one port for all destinations{seen}")),
        Nat::Symmetric => Finding::doubtful(
            format!("{place}: a NAT with another port for each destination (symmetric)"),
            "nothing if the other end can be reached; two ends behind such NATs need a relay",
        ),
    }
}

/// The clocks of both ends.
fn clock(tried: &[Tried]) -> Option<Finding> {
    let (_, ahead) = tried.iter().filter_map(|it| it.clock).min_by_key(|(rtt, _)| *rtt)?;
    if ahead.abs() < CLOCKS {
        return None;
    }
    let (span, word) =
        (units::time(Duration::from_secs_f64(ahead.abs())), if ahead > 0.0 { "ahead" } else { "behind" });
    let what = format!("the other end's clock is {span} {word}");
    Some(Finding::doubtful(
        what,
        "set the clock that is wrong: timedatectl set-ntp true; streams need no equal clocks, last days of tickets do",
    ))
}

/// What all paths carry.
fn together(tried: &[Tried]) -> Option<Finding> {
    let carried: Vec<f64> = tried.iter().filter_map(|it| it.carried).map(|it| it.bits_per_second).collect();
    if carried.is_empty() {
        return tried.iter().any(|it| it.other == Some(Other::Receiver)).then(|| {
            Finding::good("what the paths carry is measured against `braidcast perf server 9000 --keep` there")
        });
    }
    let sum: f64 = carried.iter().sum();
    let (all, encoder) = (units::rate(sum), units::rate(sum * FOR_ENCODERS));
    let whose =
        if carried.len() == 1 { "the path carries".into() } else { format!("{} paths together carry", carried.len()) };
    Some(if sum < LITTLE {
        Finding::doubtful(format!("{whose} {all}: enough for audio alone"), "add a network by --via")
    } else {
        Finding::good(format!("{whose} {all}: an encoder may make {encoder}"))
    })
}
