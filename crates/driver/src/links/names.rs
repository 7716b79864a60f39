//! Names of hosts, asked for in threads of their own: the system's resolver may take half a minute.

use braidcast_core::Instant;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Pauses between questions for a name whose addresses do not answer are this share of the time since
/// one did, from the first to the last of `PAUSES`: who waited for `t` waits for `t / 8` more at most.
const SHARE: u32 = 8;
/// Servers of dynamic DNS give their answers a lifetime of 30 to 60 s.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A name with an address that answers is asked for this often, so that the next address is known when that one
/// fails. The system's resolver knows hosts files and mDNS too, but it does not say how long an answer holds; it keeps
/// answers itself for that long.
const LIFETIME: Duration = Duration::from_secs(60);
/// An answer that is waited for is looked for at this interval, and at the second one if nothing hangs on it.
const LOOK: Duration = Duration::from_millis(10);
const LOOK_SETTLED: Duration = Duration::from_millis(500);

/// What the resolver said of a name.
type Answer = io::Result<Vec<SocketAddr>>;

/// What a thread has asked for, and its answer.
type Asked = (String, Answer);

#[derive(Debug)]
pub(super) struct Names {
    /// Answers come in here from the threads.
    answers: (Sender<Asked>, Receiver<Asked>),
    /// One that was waited for.
    came: Option<Asked>,
    hosts: BTreeMap<String, Host>,
}

#[derive(Debug, Default)]
struct Host {
    /// A thread asks.
    asking: bool,
    asked: Option<Instant>,
    /// Since when none of its addresses answers; `None`: one does.
    since: Option<Instant>,
    /// When it is asked for again, or its answer is looked for.
    due: Option<Instant>,
}

impl Host {
    /// From an answer to the next question.
    fn pause(&self, now: Instant) -> Duration {
        self.since.map_or(LIFETIME, |since| (now.since(since) / SHARE).clamp(PAUSES.0, PAUSES.1))
    }

    const fn look(&self) -> Duration {
        if self.since.is_some() { LOOK } else { LOOK_SETTLED }
    }
}

impl Names {
    pub(super) fn new() -> Self {
        Self { answers: channel(), came: None, hosts: BTreeMap::new() }
    }

    /// Asks for `host`, at once unless that was done a moment ago, and then again and again, less often once it
    /// is [settled](Self::settle).
    pub(super) fn ask(&mut self, now: Instant, host: &str) {
        let it = self.hosts.entry(host.to_owned()).or_default();
        it.since.get_or_insert(now);
        it.due = Some(if it.asking { now + LOOK } else { it.asked.map_or(now, |asked| now.max(asked + PAUSES.0)) });
        self.tend(now);
    }

    /// One of its addresses answers: it is only asked for when its addresses may have changed.
    pub(super) fn settle(&mut self, host: &str) {
        if let Some(it) = self.hosts.get_mut(host).filter(|it| it.since.is_some()) {
            it.since = None;
            let asked = it.asked;
            it.due = if it.asking { it.due } else { asked.map(|asked| asked + LIFETIME) };
        }
    }

    /// No path needs its addresses any more.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.hosts.retain(|host, it| it.asking || is_wanted(host));
    }

    /// Asks for what is due.
    pub(super) fn tend(&mut self, now: Instant) {
        for (host, it) in &mut self.hosts {
            if it.due.is_none_or(|due| due > now) {
                continue;
            }
            if it.asking {
                it.due = Some(now + it.look());
                continue;
            }
            let (name, answers) = (host.clone(), self.answers.0.clone());
            let ask = move || {
                let found = (name.as_str(), 0).to_socket_addrs().map(Iterator::collect);
                // Nobody may wait any more.
                _ = answers.send((name, found));
            };
            it.asked = Some(now);
            // Without a thread it is tried again at the next turn.
            it.asking = std::thread::Builder::new().name("resolver".into()).spawn(ask).is_ok();
            it.due = Some(now + if it.asking { it.look() } else { it.pause(now) });
        }
    }

    /// Waits for an answer, `most` at most.
    pub(super) fn wait(&mut self, most: Duration) {
        if self.came.is_none() {
            self.came = self.answers.1.recv_timeout(most).ok();
        }
    }

    /// An answer that has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<Asked> {
        let (host, answer) = self.came.take().or_else(|| self.answers.1.try_recv().ok())?;
        if let Some(it) = self.hosts.get_mut(&host) {
            it.asking = false;
            it.due = Some(now + it.pause(now));
        }
        Some((host, answer))
    }

    /// Returns `true` if an answer is waited for.
    pub(super) fn is_asking(&self) -> bool {
        self.hosts.values().any(|it| it.asking)
    }

    /// When there is something to do next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.hosts.values().filter_map(|it| it.due).min()
    }
}

/// In the order in which they are tried: the resolver's, but the families take turns (RFC 8305 §4).
pub(super) fn in_turn(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v4 = found.first().is_some_and(SocketAddr::is_ipv4);
    let (firsts, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|addr| addr.is_ipv4() == first_is_v4);
    let (mut firsts, mut others) = (firsts.into_iter(), others.into_iter());
    let mut all: Vec<SocketAddr> = Vec::new();
    loop {
        let pair = [firsts.next(), others.next()];
        if pair == [None, None] {
            return all;
        }
        for addr in pair.into_iter().flatten() {
            if !all.contains(&addr) {
                all.push(addr);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addrs(all: &[&str]) -> Vec<SocketAddr> {
        all.iter().map(|it| it.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns() {
        let found = addrs(&["[::1]:0", "[::2]:0", "[::1]:0", "1.0.0.1:0", "1.0.0.2:0", "1.0.0.3:0"]);
        let tried = addrs(&["[::1]:0", "1.0.0.1:0", "[::2]:0", "1.0.0.2:0", "1.0.0.3:0"]);
        assert_eq!(in_turn(found), tried);
        assert_eq!(in_turn(Vec::new()), []);
    }

    /// Waits for the answers that are asked for, and counts them.
    fn answers(names: &mut Names, now: Instant) -> u32 {
        let mut count = 0;
        while names.is_asking() {
            names.wait(LOOK);
            count += u32::from(names.take(now).is_some());
        }
        count
    }

    #[test]
    fn a_name_is_asked_for_each_eighth_of_the_time_for_which_it_is_missed() {
        let (mut names, mut now, mut asked) = (Names::new(), Instant::ZERO, Vec::new());
        names.ask(now, "localhost");
        for _ in 0..60 {
            assert_eq!(answers(&mut names, now), 1);
            asked.push(now);
            now = names.next().expect("it is asked for again");
            names.tend(now);
        }
        answers(&mut names, now);
        for pair in asked.windows(2) {
            let (pause, since) = (pair[1] - pair[0], pair[0] - Instant::ZERO);
            assert_eq!(pause, (since / 8).clamp(Duration::from_secs(1), Duration::from_secs(30)), "after {since:?}");
        }
        assert_eq!(asked.iter().filter(|at| **at < Instant::from_millis(60_000)).count(), 26);
    }

    #[test]
    fn a_name_that_is_settled_is_asked_for_once_a_minute() {
        let (mut names, mut now) = (Names::new(), Instant::ZERO);
        names.ask(now, "localhost");
        assert_eq!(answers(&mut names, now), 1);
        names.settle("localhost");
        for minute in 1..4 {
            now = names.next().expect("its addresses may change");
            assert_eq!(now, Instant::ZERO + LIFETIME * minute);
            names.tend(now);
            assert_eq!(answers(&mut names, now), 1);
        }
        // Its address fails.
        now += Duration::from_secs(10);
        names.ask(now, "localhost");
        assert!(names.is_asking(), "at once");
        answers(&mut names, now);
        names.retain(|_| false);
        assert_eq!(names.next(), None);
    }
}
