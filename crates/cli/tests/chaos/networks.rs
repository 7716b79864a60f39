//! A sender in the field, networks of a router each, and a receiver at home, which is where the
//! test itself runs: namespaces and cables that can be pulled, narrowed, made lossy and deaf.
//!
//! Of network n the field has f and a changing address 10.1.n.x, the router a (10.1.n.1) and b
//! (10.2.n.1), home h (10.2.n.2).

use crate::common::network::{Namespace, ip, runs};
use std::path::Path;
use std::process::Command;

pub(crate) struct Networks {
    pub(crate) field: Namespace,
    router: Namespace,
    rates: Vec<&'static str>,
    /// The last byte of each address in the field.
    hosts: Vec<u8>,
}

/// What can be wrong with a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The cable is pulled: the interface has no carrier.
    Unplugged,
    /// The interface is switched off.
    Off,
    /// The interface is gone, as a modem that is pulled out.
    Gone,
    /// The router forwards nothing, and says nothing.
    Cut,
    /// Nothing gets home, answers get out.
    NoWayThere,
    /// What is sent gets home, no answer gets out.
    NoWayBack,
    /// This percentage of the packets is lost, in each direction.
    Loss(u32),
    /// Larger packets vanish without a word.
    BlackHole(u32),
    /// Larger packets are refused by the router, in words (ICMP).
    SmallMtu(u32),
    /// The field has another address there from now on.
    NewAddress,
}

impl Fault {
    /// Returns `true` if the network carries packets of some size while this lasts.
    pub(crate) fn lets_through(self) -> bool {
        matches!(self, Self::Loss(_) | Self::BlackHole(_) | Self::SmallMtu(_) | Self::NewAddress)
    }
}

/// Instructions of the classic BPF for `tc`, which drop a packet where they return 2 (TC_ACT_SHOT)
/// and let it pass with 0.
mod bpf {
    pub(super) const ALL: &str = "1,6 0 0 2";

    /// A random number of 32 bits (SKF_AD_RANDOM) is below the share.
    pub(super) fn percent(percent: u32) -> String {
        let share = u64::from(u32::MAX) * u64::from(percent) / 100;
        format!("4,32 0 0 4294963256,53 1 0 {share},6 0 0 2,6 0 0 0")
    }

    /// The frame's length is above that of an IP packet and 14 bytes of Ethernet.
    pub(super) fn above(octets: u32) -> String {
        format!("4,128 0 0 0,37 0 1 {},6 0 0 2,6 0 0 0", octets + 14)
    }
}

impl Networks {
    /// One for each rate (in `tc`'s words), which holds towards home.
    pub(crate) fn new(rates: &[&'static str]) -> Self {
        ip("link set lo up");
        let new = Self {
            field: Namespace::new(),
            router: Namespace::new(),
            rates: rates.to_vec(),
            hosts: vec![2; rates.len()],
        };
        let write = |value: &str, file: &str| format!("echo {value} > /proc/sys/net/ipv4/{file}");
        for (value, file) in [("1", "ip_forward"), ("0", "conf/all/rp_filter"), ("0", "conf/default/rp_filter")] {
            for command in [&mut Command::new("sh"), &mut new.field.command("sh"), &mut new.router.command("sh")] {
                assert!(runs(command.args(["-c", &write(value, file)])), "{file}");
            }
        }
        for n in 0..rates.len() {
            new.plug_in(n);
            ip(&format!("link add h{n} type veth peer name b{n} netns {}", new.router.pid()));
            ip(&format!("link set h{n} gso_max_segs 1 up"));
            ip(&format!("addr add 10.2.{n}.2/24 dev h{n}"));
            new.router.ip(&format!("link set b{n} up"));
            new.router.ip(&format!("addr add 10.2.{n}.1/24 dev b{n}"));
            ip(&format!("route add 10.1.{n}.0/24 via 10.2.{n}.1"));
        }
        new
    }

    /// Returns `true` if this kernel has what the faults are made with.
    pub(crate) fn are_possible() -> bool {
        ip("link add tried type veth peer name other");
        let tc = |words: &str| runs(Command::new("tc").args(words.split(' ')));
        let possible = tc("qdisc add dev tried root tbf rate 8mbit burst 64kb latency 50ms")
            && tc("qdisc add dev tried clsact")
            && runs(Command::new("tc").args(drop_rule("tried", "egress", &bpf::percent(5))));
        ip("link del tried");
        if !possible {
            eprintln!("skipped: this kernel has no tbf, clsact or cls_bpf to make networks bad with");
        }
        possible
    }

    /// Arguments of `braidcast send` for all of them.
    pub(crate) fn paths(&self, port: u16) -> String {
        (0..self.rates.len()).map(|n| format!(" --to 10.2.{n}.2:{port} --via f{n}")).collect()
    }

    /// `braidcast` with these arguments in the field.
    pub(crate) fn in_the_field(&self, dir: &Path, args: &str) -> Command {
        let mut command = self.field.command(env!("CARGO_BIN_EXE_braidcast"));
        command.args(args.split_whitespace()).current_dir(dir);
        command
    }

    fn plug_in(&self, n: usize) {
        self.field.ip(&format!("link add f{n} type veth peer name a{n} netns {}", self.router.pid()));
        // Packets are lost and measured one by one, not in the batches that they leave in.
        self.field.ip(&format!("link set f{n} gso_max_segs 1 up"));
        self.router.ip(&format!("link set a{n} up"));
        self.router.ip(&format!("addr add 10.1.{n}.1/24 dev a{n}"));
        self.field.ip(&format!("addr add 10.1.{n}.{}/24 dev f{n}", self.hosts[n]));
        self.route(n);
        let shape = format!("qdisc add dev f{n} root tbf rate {} burst 16kb latency 100ms", self.rates[n]);
        assert!(self.field.tries("tc", &shape), "{shape}");
        assert!(self.router.tries("tc", &format!("qdisc add dev a{n} clsact")));
    }

    /// Sets the route home over this network, as its DHCP server would announce it.
    fn route(&self, n: usize) {
        self.field.ip(&format!("route replace default via 10.1.{n}.1 dev f{n} metric {}", 100 + n));
    }

    fn drop(&self, n: usize, direction: &str, program: &str) {
        let rule = drop_rule(&format!("a{n}"), direction, program);
        assert!(runs(self.router.command("tc").args(&rule)), "{rule:?}");
    }

    /// The router hides the field behind its own address, with a port for each flow, as a CGNAT does.
    pub(crate) fn translate(&self) {
        let rules = "table ip nat { chain post { type nat hook postrouting priority 100; oifname \"b*\" masquerade fully-random; }; }";
        assert!(runs(self.router.command("nft").arg(rules)), "{rules}");
    }

    /// The flows that went home over this network so far get other ports: their translations are forgotten.
    pub(crate) fn forget_ports(&self, n: usize) {
        self.router.ip(&format!("link set b{n} down"));
        self.router.ip(&format!("link set b{n} up"));
    }

    /// The field prefers this network from now on.
    pub(crate) fn prefer(&self, n: usize) {
        self.field.tries("ip", "route del default metric 50");
        self.field.tries("ip", &format!("route add default via 10.1.{n}.1 dev f{n} metric 50"));
    }

    /// The network over which the field's kernel sends to `address`.
    pub(crate) fn preferred(&self, address: &str) -> Option<usize> {
        let said = self.field.command("ip").args(["route", "get", address]).output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        said.split(" dev f").nth(1)?.split_whitespace().next()?.parse().ok()
    }

    /// Begins the fault, on a network that has none.
    pub(crate) fn begin(&mut self, n: usize, fault: Fault) {
        match fault {
            Fault::Unplugged => self.router.ip(&format!("link set a{n} down")),
            Fault::Off => self.field.ip(&format!("link set f{n} down")),
            Fault::Gone => self.field.ip(&format!("link del f{n}")),
            Fault::Cut => ["ingress", "egress"].iter().for_each(|way| self.drop(n, way, bpf::ALL)),
            Fault::NoWayThere => self.drop(n, "ingress", bpf::ALL),
            Fault::NoWayBack => self.drop(n, "egress", bpf::ALL),
            Fault::Loss(percent) => {
                ["ingress", "egress"].iter().for_each(|way| self.drop(n, way, &bpf::percent(percent)));
            }
            Fault::BlackHole(octets) => {
                ["ingress", "egress"].iter().for_each(|way| self.drop(n, way, &bpf::above(octets)));
            }
            Fault::SmallMtu(octets) => self.mtu(n, octets),
            Fault::NewAddress => {
                let old = self.hosts[n];
                self.hosts[n] = old % 200 + 2;
                self.field.ip(&format!("addr del 10.1.{n}.{old}/24 dev f{n}"));
                self.field.ip(&format!("addr add 10.1.{n}.{}/24 dev f{n}", self.hosts[n]));
                self.route(n);
            }
        }
    }

    /// Ends it.
    pub(crate) fn end(&mut self, n: usize, fault: Fault) {
        match fault {
            Fault::Unplugged => {
                self.router.ip(&format!("link set a{n} up"));
                self.route(n);
            }
            Fault::Off => {
                self.field.ip(&format!("link set f{n} up"));
                self.route(n);
            }
            Fault::Gone => self.plug_in(n),
            Fault::SmallMtu(_) => self.mtu(n, 1500),
            Fault::NewAddress => {}
            _ => {
                for way in ["ingress", "egress"] {
                    self.router.tries("tc", &format!("filter del dev a{n} {way}"));
                }
            }
        }
    }

    fn mtu(&self, n: usize, octets: u32) {
        self.router.ip(&format!("link set b{n} mtu {octets}"));
        ip(&format!("link set h{n} mtu {octets}"));
    }
}

fn drop_rule(device: &str, direction: &str, program: &str) -> Vec<String> {
    let words = format!("filter add dev {device} {direction} protocol ip bpf direct-action bytecode");
    words.split(' ').map(Into::into).chain([program.into()]).collect()
}

/// A process in the field that sends its stdin home in datagrams of one size, and writes what comes
/// from there to stdout.
#[cfg(test)]
struct Probe {
    process: crate::process::Process,
    stdin: std::process::ChildStdin,
    came: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    octets: usize,
    home: std::net::UdpSocket,
}

#[cfg(test)]
impl Probe {
    const SCRIPT: &str = "exec 3<>/dev/udp/10.2.0.2/7000; printf hello >&3; timeout 9 cat <&3 & exec dd bs=$0 iflag=fullblock status=none >&3";

    fn new(networks: &Networks, dir: &Path, octets: usize) -> Self {
        use std::io::Read;
        use std::sync::atomic::Ordering;
        let home = std::net::UdpSocket::bind("10.2.0.2:7000").unwrap();
        home.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let mut bash = networks.field.command("bash");
        bash.args(["-c", Self::SCRIPT, &octets.to_string()]);
        let mut process = crate::process::Process::start(bash, &dir.join("probe.said"));
        let (stdin, mut stdout) = (process.stdin(), process.stdout());
        let (_, from) = home.recv_from(&mut [0; 10]).unwrap();
        home.connect(from).unwrap();
        home.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
        let came = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
        let count = came.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(len @ 1..) = stdout.read(&mut buffer) {
                count.fetch_add(len, Ordering::Relaxed);
            }
        });
        Self { process, stdin, came, octets, home }
    }

    /// How many of 20 datagrams get through, there and back.
    fn through(mut self) -> [usize; 2] {
        use std::io::Write;
        let datagram = vec![0; self.octets];
        for _ in 0..20 {
            let _refused = self.stdin.write_all(&datagram);
            let _refused = self.home.send(&datagram);
        }
        let there = std::iter::from_fn(|| self.home.recv(&mut [0; 2000]).ok()).count();
        let back = self.came.load(std::sync::atomic::Ordering::Relaxed) / self.octets;
        self.process.kill();
        [there, back]
    }
}

#[test]
fn each_fault_is_what_it_says() {
    crate::common::network::in_namespace("networks::each_fault_is_what_it_says", |dir| {
        if !Networks::are_possible() {
            return;
        }
        let mut networks = Networks::new(&["50mbit"]);
        let mut check = |fault: Fault, octets: usize, expected: [std::ops::RangeInclusive<usize>; 2]| {
            // Of an IP packet 28 octets are headers.
            let probe = Probe::new(&networks, dir, octets - 28);
            networks.begin(0, fault);
            let came = probe.through();
            networks.end(0, fault);
            assert!(expected[0].contains(&came[0]) && expected[1].contains(&came[1]), "{fault:?}, {octets}: {came:?}");
            assert_eq!(Probe::new(&networks, dir, 1000).through(), [20, 20], "after {fault:?}");
        };
        let (none, some, all) = (0..=0, 1..=19, 20..=20);
        for fault in [Fault::Unplugged, Fault::Off, Fault::Gone, Fault::Cut] {
            check(fault, 1000, [none.clone(), none.clone()]);
        }
        check(Fault::NoWayThere, 1000, [none.clone(), all.clone()]);
        check(Fault::NoWayBack, 1000, [all.clone(), none.clone()]);
        check(Fault::Loss(50), 1000, [some.clone(), some.clone()]);
        check(Fault::BlackHole(1000), 1000, [all.clone(), all.clone()]);
        check(Fault::BlackHole(1000), 1001, [none.clone(), none.clone()]);
        // The first one is refused; once the router has said so, the kernel cuts what follows.
        check(Fault::SmallMtu(1280), 1400, [0..=19, 0..=20]);
        // What goes to the old one is lost.
        check(Fault::NewAddress, 1000, [0..=20, none]);
    });
}
