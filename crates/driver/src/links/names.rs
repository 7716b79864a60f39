//! Names of hosts, asked for in threads of their own: the system's resolver may take half a minute.

use braidcast_core::Instant;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Pauses between questions for a name whose addresses do not answer double from the first to the
/// last. Servers of dynamic DNS give their answers a lifetime of 30 to 60 s.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// An answer that is waited for is looked for at this interval.
const LOOK: Duration = Duration::from_millis(10);

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
    pause: Duration,
    /// When it is asked for again, or its answer is looked for.
    due: Option<Instant>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { answers: channel(), came: None, hosts: BTreeMap::new() }
    }

    /// Asks for `host`, at once unless that was done a moment ago, and then again and again until
    /// it is [settled](Self::settle).
    pub(super) fn ask(&mut self, now: Instant, host: &str) {
        let it = self.hosts.entry(host.to_owned()).or_default();
        it.pause = PAUSES.0;
        if !it.asking {
            it.due = Some(it.asked.map_or(now, |asked| now.max(asked + PAUSES.0)));
        }
        self.tend(now);
    }

    /// One of its addresses answers: it need not be asked for.
    pub(super) fn settle(&mut self, host: &str) {
        if let Some(it) = self.hosts.get_mut(host).filter(|it| !it.asking) {
            it.due = None;
        }
    }

    /// Asks for what is due.
    pub(super) fn tend(&mut self, now: Instant) {
        for (host, it) in &mut self.hosts {
            if it.due.is_none_or(|due| due > now) {
                continue;
            }
            if it.asking {
                it.due = Some(now + LOOK);
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
            it.due = Some(now + if it.asking { LOOK } else { it.pause });
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
            it.due = Some(now + it.pause);
            it.pause = (it.pause * 2).min(PAUSES.1);
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

    #[test]
    fn a_name_is_asked_for_until_it_is_settled() {
        let mut names = Names::new();
        let mut now = Instant::ZERO;
        names.ask(now, "localhost");
        let mut answers = 0;
        for _ in 0..3 {
            while names.is_asking() {
                names.wait(LOOK);
                answers += usize::from(names.take(now).is_some());
            }
            now = names.next().expect("it is asked for again");
            names.tend(now);
        }
        assert_eq!((answers, now), (3, Instant::ZERO + PAUSES.0 * 7), "after 1, 2 and 4 s");
        while names.is_asking() {
            names.wait(LOOK);
            answers += usize::from(names.take(now).is_some());
        }
        names.settle("localhost");
        assert_eq!((answers, names.next()), (4, None));
    }
}
