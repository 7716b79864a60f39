//! Wherever they are: default routes, prefixes, a home's name, packet sizes and the ports of a NAT that change at
//! random, under a stream that names its networks and one that leaves them to the kernel. No stream ends, and each
//! flows again soon after it could.

use crate::common::network::{has_nft, in_namespace, ip, runs};
use crate::live::Live;
use crate::networks::{Fault, Networks};
use crate::process::Stalls;
use crate::random::{duration, from_env};
use braidcast_core::Rng;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RATES: [&str; 2] = ["8mbit", "5mbit"];
const NAME: &str = "home.example";
/// How soon after a way works a whole frame must have come out: a second and six round trips of at most 100 ms, which
/// is what the queue before a network holds, the latency, and the frames before and after it.
const BACK: Duration = Duration::from_millis(1000 + 6 * 100 + 500 + 80);

/// The same while the packets that one of them carries have become smaller: those before must first be missed (RFC 8899
/// §4.3).
const BACK_SMALLER: Duration = Duration::from_millis(BACK.as_millis() as u64 + 1500);

/// A home whose address and name change, and the networks to it.
struct Places {
    networks: Networks,
    streams: [Live; 2],
    /// When each of them could flow since.
    good: [Option<Instant>; 2],
    /// The longest pause of each, and while packets had become smaller.
    worst: [[Duration; 2]; 2],
    /// What ails each network, and until when.
    faults: [Option<(Fault, Instant)>; 2],
    /// By which network home is reached, the last byte of its address there, and what is still to be told of it.
    home: (usize, u8),
    untold: Option<Instant>,
    hosts: PathBuf,
    stalls: Stalls,
    dir: PathBuf,
}

impl Places {
    fn start(dir: &Path) -> Self {
        let hosts = dir.join("hosts");
        std::fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
        assert!(runs(Command::new("mount").arg("--bind").arg(&hosts).arg("/etc/hosts")), "no mount");
        let networks = Networks::new(&RATES);
        networks.translate();
        let vias = format!("--to {NAME}:9001 --via f0 --via f1");
        tell(&hosts, &address((0, 2)));
        let streams = [("routed", 9000, format!("--to {NAME}:9000")), ("named", 9001, vias)]
            .map(|(name, port, to)| Live::start_to(&networks, dir, (name, port, 15), to));
        Self {
            networks,
            streams,
            good: [Some(Instant::now()); 2],
            worst: [[Duration::ZERO; 2]; 2],
            faults: [None; 2],
            home: (0, 2),
            untold: None,
            hosts,
            stalls: Stalls::watch(),
            dir: dir.into(),
        }
    }

    /// One random change; says which.
    fn change(&mut self, rng: &mut Rng) -> String {
        let (n, lasts) = (rng.below(2) as usize, duration(rng, 8.0));
        let fault = |it: &mut Self, fault: Fault| {
            if it.faults[n].is_none() {
                it.networks.begin(n, fault);
                it.faults[n] = Some((fault, Instant::now() + lasts));
            }
            format!("{fault:?} of network {n} for {lasts:.2?}")
        };
        match rng.below(10) {
            0 | 1 => {
                self.networks.prefer(n);
                format!("the default route goes over network {n}")
            }
            2 | 3 => fault(self, Fault::NewAddress),
            4 => self.move_home(n, rng),
            5 => {
                self.networks.forget_ports(n);
                format!("new ports of network {n}")
            }
            6 => fault(self, Fault::SmallMtu(1280 + rng.below(220) as u32)),
            7 => fault(self, Fault::BlackHole(1000 + rng.below(500) as u32)),
            8 => fault(self, Fault::Cut),
            _ => fault(self, Fault::Unplugged),
        }
    }

    /// Home has another address, by network `n`; its name says so a little later.
    fn move_home(&mut self, n: usize, rng: &mut Rng) -> String {
        let (old, told) = (self.home, duration(rng, 2.0));
        self.home = (n, old.1 % 200 + 3);
        // The first one of a network takes the others with it when it goes.
        ip(&format!("addr del {}/24 dev h{}", address(old), old.0));
        ip(&format!("addr add {}/24 dev h{n}", address(self.home)));
        self.untold = Some(Instant::now() + told);
        format!("home is at {}, and its name says so after {told:.2?}", address(self.home))
    }

    /// Notes who can flow from now on.
    fn note(&mut self) {
        let works = |n: usize| self.faults[n].is_none_or(|(fault, _)| fault.lets_through());
        let preferred = self.networks.preferred(&address(self.home));
        let known = self.untold.is_none();
        let can = [known && preferred.is_some_and(works), known && (0..2).any(works)];
        self.good = can.map(|can| can.then(Instant::now));
    }

    fn go_on(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn step(&mut self) {
        let now = Instant::now();
        let mut changed = false;
        for n in 0..RATES.len() {
            if let Some((fault, _)) = self.faults[n].take_if(|(_, until)| *until <= now) {
                self.networks.end(n, fault);
                changed = true;
            }
        }
        if self.untold.take_if(|at| *at <= now).is_some() {
            tell(&self.hosts, &address(self.home));
            changed = true;
        }
        if changed {
            self.note();
        }
        let smaller = |fault: Fault| matches!(fault, Fault::SmallMtu(_) | Fault::BlackHole(_));
        let smaller = self.faults.iter().flatten().any(|(fault, _)| smaller(*fault));
        let back = if smaller { BACK_SMALLER } else { BACK };
        for (n, live) in self.streams.iter_mut().enumerate() {
            live.tend(&self.networks, &self.dir);
            assert_eq!((live.tx.starts, live.rx.starts), (1, 1), "stream {n} ended");
            let Some(good) = self.good[n] else { continue };
            let since = good.max(live.came());
            let pause = since.elapsed().saturating_sub(2 * self.stalls.since(since));
            let worst = &mut self.worst[n][usize::from(smaller)];
            *worst = pause.max(*worst);
            assert!(
                pause <= back,
                "stream {n} has no video for {pause:?} though it could: faults {:?}\n-- sender\n{}\n-- receiver\n{}",
                self.faults,
                live.tx.last_words(),
                live.rx.last_words()
            );
        }
    }

    fn report(&self) -> String {
        let lines = self.streams.iter().zip(self.worst).map(|(live, [worst, smaller])| {
            let (packets, frames) = live.amount();
            format!(
                "{packets} packets and {frames} frames came whole, {} packets did not; at most {worst:.2?} without a frame while they could come, {smaller:.2?} with smaller packets",
                live.missing()
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn address((n, host): (usize, u8)) -> String {
    format!("10.2.{n}.{host}")
}

/// What the name says from now on; written in place.
fn tell(hosts: &Path, address: &str) {
    std::fs::write(hosts, format!("127.0.0.1 localhost\n{address} {NAME}\n")).unwrap();
}

#[test]
#[ignore = "takes CHAOS_PLACES minutes: make chaos"]
fn chaos_of_routes_names_and_sizes() {
    let (seed, minutes): (u64, f64) = (from_env("BRAIDCAST_SEED", 1), from_env("CHAOS_PLACES", 2.0));
    eprintln!(
        "again: CHAOS_PLACES={minutes} BRAIDCAST_SEED={seed} cargo test -p braidcast-cli --test chaos -- --ignored --nocapture places"
    );
    in_namespace("places::chaos_of_routes_names_and_sizes", |dir| {
        if !has_nft() || !Networks::are_possible() {
            return;
        }
        let (mut rng, begun) = (Rng::from_seed(seed).stream("places"), Instant::now());
        let mut places = Places::start(dir);
        places.go_on(Duration::from_secs(5));
        while begun.elapsed() < Duration::from_secs_f64(minutes * 60.0) {
            let what = places.change(&mut rng);
            places.note();
            eprintln!("{:9.2?} {what}", begun.elapsed());
            places.go_on(duration(&mut rng, 8.0));
        }
        println!("{}", places.report());
    });
}
