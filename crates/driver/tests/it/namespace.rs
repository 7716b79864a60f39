//! What needs interfaces of one's own to break: each test runs itself again inside a new network namespace.

use crate::common;
use crate::common::{Client, Echo, Idle};
use braidcast_core::{Ecn, Instant, Route, SocketId};
use braidcast_driver::{Bind, Driver, InterfaceChange, SocketStats, Wake};
use rustix::time::{ClockId, clock_gettime};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

const INSIDE: &str = "BRAIDCAST_TEST_NAMESPACE";

/// Runs `inside` in a new network namespace, with the loopback interface up, as the only test of a new process.
fn in_namespace(test: &str, inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        run("ip link set lo up");
        return inside();
    }
    let possible =
        |flags| Command::new("unshare").args([flags, "ip", "link"]).output().is_ok_and(|o| o.status.success());
    // -r: a user namespace, for those who are not root, if the kernel allows it.
    let Some(flags) = ["-n", "-rn"].into_iter().find(|flags| possible(*flags)) else {
        common::skipped(&format!("{test}: it needs root or user namespaces, and the tools unshare and ip"));
        return;
    };
    let mut command = Command::new("unshare");
    command.arg(flags).arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success() && said.contains("ok. 1 passed"), "{test} failed in there, or is not its name");
}

fn run(command: &str) {
    assert!(runs(command), "{command} failed");
}

fn runs(command: &str) -> bool {
    let mut words = command.split(' ');
    Command::new(words.next().unwrap()).args(words).status().is_ok_and(|status| status.success())
}

fn bind(driver: &mut Driver, addr: &str) -> (SocketId, SocketAddr) {
    let id = driver.bind(&Bind::to_addr(addr.parse().unwrap())).unwrap();
    (id, driver.socket(id).unwrap().local_addr())
}

fn stats(driver: &Driver, id: SocketId) -> SocketStats {
    driver.socket(id).unwrap().stats()
}

#[test]
fn interfaces_that_come_change_and_go_are_reported() {
    in_namespace("namespace::interfaces_that_come_change_and_go_are_reported", || {
        let mut driver = Driver::new().unwrap();
        driver.watch_interfaces().unwrap();
        let mut expect = |what: &str, change: InterfaceChange| {
            let until = driver.now() + Duration::from_secs(10);
            loop {
                match driver.drive(&mut Idle, Some(until)).unwrap() {
                    Wake::Interfaces(changes) if changes.contains(&change) => return,
                    Wake::Interfaces(_) => {}
                    other => panic!("{other:?} while waiting for {what}"),
                }
            }
        };
        let up = |addrs: &[&str]| InterfaceChange::Up {
            name: "veth0".into(),
            addrs: addrs.iter().map(|addr| addr.parse().unwrap()).collect(),
        };
        let down = || InterfaceChange::Down { name: "veth0".into() };

        run("ip link add veth0 type veth peer name veth1");
        run("ip link set veth1 up");
        run("ip address add 192.0.2.1/24 dev veth0");
        run("ip link set veth0 up");
        expect("the interface to come", up(&["192.0.2.1"]));
        let (second, prefix) = if common::has_ipv6() { ("2001:db8::1", 64) } else { ("192.0.2.2", 24) };
        run(&format!("ip address add {second}/{prefix} dev veth0"));
        expect("a second address", up(&["192.0.2.1", second]));
        let addr = SocketAddr::new(second.parse().unwrap(), 0);
        Driver::new().unwrap().bind(&Bind::to_addr(addr)).expect("an address is reported when it can be bound to");
        run(&format!("ip address del {second}/{prefix} dev veth0"));
        expect("the second address to go", up(&["192.0.2.1"]));
        run("ip link set veth1 down");
        expect("the cable to be pulled", down());
        run("ip link set veth1 up");
        expect("the cable to be put back", up(&["192.0.2.1"]));
        run("ip link del veth0");
        expect("the interface to vanish", down());
    });
}

#[test]
fn a_full_socket_is_waited_for_without_spinning_and_then_drops() {
    in_namespace("namespace::a_full_socket_is_waited_for_without_spinning_and_then_drops", || {
        if !runs("tc qdisc add dev lo root tbf rate 80mbit burst 64kb limit 64mb") {
            common::skipped("this kernel cannot limit the rate of an interface (tc tbf)");
            return;
        }
        let mut driver = Driver::new().unwrap();
        let (sender, _) = bind(&mut driver, "127.0.0.1:0");
        let (receiver, to) = bind(&mut driver, "127.0.0.1:0");
        let mut client = Client::new(sender, to, 6_000);
        client.window = 6_000;
        let limit = Instant::ZERO + Duration::from_secs(20);
        while !client.done() {
            assert_ne!(driver.drive(&mut client, Some(limit)).unwrap(), Wake::Until);
        }
        let sent = stats(&driver, sender);
        assert!(sent.blocked > 0 && sent.dropped_backlog > 0, "{sent:?}");
        assert_eq!(sent.sent_datagrams + sent.dropped_backlog, 6_000, "{sent:?}");
        assert_eq!(sent.sent_datagrams, stats(&driver, receiver).received_datagrams);
        assert!(client.answers.is_sorted_by_key(|(number, ..)| *number), "the order is kept");
        let (wall, cpu) = (driver.now().as_secs_f64(), clock_gettime(ClockId::ThreadCPUTime));
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        println!("{wall:.3} s, of which busy {cpu:.3} s: {sent:?}");
        assert!(cpu < 0.5 * wall, "busy {cpu} s of {wall} s");
    });
}

#[test]
fn an_address_that_vanishes_takes_neither_answers_nor_offload_with_it() {
    in_namespace("namespace::an_address_that_vanishes_takes_neither_answers_nor_offload_with_it", || {
        run("ip address add 192.0.2.1/32 dev lo");
        let mut driver = Driver::new().unwrap();
        for any in if common::has_ipv6() { &["0.0.0.0:0", "[::]:0"][..] } else { &["0.0.0.0:0"] } {
            run("ip address replace 192.0.2.1/32 dev lo");
            let (server, at) = bind(&mut driver, any);
            let (client, _) = bind(&mut driver, "127.0.0.1:0");
            let segments = driver.socket(server).unwrap().max_segments();
            let mut echo = Echo::default();
            let to = SocketAddr::new("192.0.2.1".parse().unwrap(), at.port());
            echo.queue.push_back((Route::new(client, to), Ecn::Ect0, b"hello".to_vec()));
            let until = driver.now() + Duration::from_secs(5);
            while stats(&driver, server).received_datagrams == 0 {
                // One turn only sends, receives, and sends the answer: hold that back until the address is gone.
                let mut once = HoldAnswers(&mut echo, server);
                assert_ne!(driver.drive(&mut once, Some(until)).unwrap(), Wake::Until);
            }
            run("ip address del 192.0.2.1/32 dev lo");
            while stats(&driver, client).received_datagrams == 0 {
                assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
            }
            assert_eq!(driver.socket(server).unwrap().max_segments(), segments);
            assert_eq!(stats(&driver, server).unsendable, 0);
        }
    });
}

/// An [`Echo`] that sends nothing through one socket.
struct HoldAnswers<'a>(&'a mut Echo, SocketId);

impl braidcast_core::Machine for HoldAnswers<'_> {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: braidcast_core::Datagram<'_>) {
        self.0.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<braidcast_core::Transmit> {
        let held = self.0.queue.front().is_none_or(|(route, ..)| route.socket == self.1);
        if held { None } else { self.0.poll_transmit(now, buf) }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}
