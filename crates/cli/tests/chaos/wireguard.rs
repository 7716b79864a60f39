//! WireGuard through a tunnel over two networks, one of which goes: TCP inside does not notice.

use crate::common::network::{in_namespace, ip, runs};
use crate::common::{command, noise};
use crate::networks::{Fault, Networks};
use crate::process::Process;
use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One end of WireGuard: its private key in a file, its public key.
struct Keys {
    file: String,
    public: String,
}

fn wg(words: &[&str], stdin: Option<File>) -> String {
    let mut command = Command::new("wg");
    command.args(words).stdin(stdin.map_or_else(Stdio::null, Stdio::from));
    let output = command.output().unwrap();
    assert!(output.status.success(), "wg {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().into()
}

impl Keys {
    fn new(dir: &Path, name: &str) -> Self {
        let file = dir.join(name);
        fs::write(&file, wg(&["genkey"], None)).unwrap();
        Self { public: wg(&["pubkey"], Some(File::open(&file).unwrap())), file: file.to_str().unwrap().into() }
    }
}

/// What needs root or a program that is not there is not tried; if tests must not be skipped, that
/// is a failure.
fn has_wireguard() -> bool {
    let has = |program: &str| runs(Command::new("which").arg(program));
    let there = has("wireguard-go") && has("wg") && Path::new("/dev/net/tun").exists();
    if !there {
        assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none() || !Path::new("/dev/net/tun").exists());
        eprintln!(
            "skipped: WireGuard needs wireguard-go, wg and /dev/net/tun (tools/setup.sh test installs the programs)"
        );
    }
    there
}

#[test]
fn wireguard_goes_on_over_the_network_that_is_left() {
    in_namespace("wireguard::wireguard_goes_on_over_the_network_that_is_left", |dir| {
        if !has_wireguard() || !Networks::are_possible() {
            return;
        }
        // Folder of wireguard-go's control sockets.
        assert!(runs(Command::new("mount").args(["-t", "tmpfs", "none", "/var/run"])));
        fs::create_dir("/var/run/wireguard").unwrap();
        let mut networks = Networks::new(&["8mbit", "6mbit"]);
        let (home, field) = (Keys::new(dir, "home"), Keys::new(dir, "field"));

        let mut server = command(dir);
        server.args("tunnel server 9000 --over sctp --forward 127.0.0.1:51820".split(' '));
        let mut server = Process::start(server, &dir.join("server.said"));
        server.wait_for("waiting");
        let args = format!("tunnel client --over sctp --listen 51821{}", networks.paths(9000));
        let mut client = Process::start(networks.in_the_field(dir, &args), &dir.join("client.said"));
        client.wait_for("connected");

        let interface = |name: &str, command: &mut dyn FnMut(&str) -> Command| {
            // In the foreground, so that it ends with the test.
            let mut go = command("wireguard-go");
            go.args(["-f", name]);
            let process = Process::start(go, &dir.join(format!("{name}.said")));
            let end = Instant::now() + Duration::from_secs(10);
            while !runs(command("wg").args(["show", name])) {
                assert!(Instant::now() < end, "{}", process.said());
                std::thread::sleep(Duration::from_millis(50));
            }
            process
        };
        let _home = interface("wghome", &mut |program| Command::new(program));
        let _field = interface("wgfield", &mut |program| networks.field.command(program));
        wg(
            &[
                "set",
                "wghome",
                "listen-port",
                "51820",
                "private-key",
                &home.file,
                "peer",
                &field.public,
                "allowed-ips",
                "10.77.0.2/32",
            ],
            None,
        );
        let set = format!(
            "set wgfield private-key {} peer {} allowed-ips 10.77.0.1/32 endpoint 127.0.0.1:51821",
            field.file, home.public
        );
        assert!(networks.field.tries("wg", &set), "{set}");
        for words in ["addr add 10.77.0.1/24 dev wghome", "link set wghome mtu 1280 up"] {
            ip(words);
        }
        networks.field.ip("addr add 10.77.0.2/24 dev wgfield");
        networks.field.ip("link set wgfield mtu 1280 up");

        let listener = TcpListener::bind("10.77.0.1:7000").unwrap();
        let bytes = noise(4_000_000);
        fs::write(dir.join("in.bin"), &bytes).unwrap();
        let mut cat = networks.field.command("bash");
        cat.args(["-c", "cat in.bin > /dev/tcp/10.77.0.1/7000"]).current_dir(dir);
        let mut sender = Process::start(cat, &dir.join("cat.said"));
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut came, mut buffer, mut faults) = (Vec::new(), vec![0; 65_536], 0);
        loop {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => came.extend_from_slice(&buffer[..len]),
                Err(error) => {
                    panic!("after {} bytes: {error}\n{}\n{}", came.len(), client.last_words(), server.last_words())
                }
            }
            // One network goes at a quarter, and the other when the first is back.
            if faults == 0 && came.len() > 1_000_000 {
                networks.begin(0, Fault::Cut);
                faults = 1;
            } else if faults == 1 && came.len() > 2_000_000 {
                networks.end(0, Fault::Cut);
                networks.begin(1, Fault::Off);
                faults = 2;
            } else if faults == 2 && came.len() > 3_000_000 {
                networks.end(1, Fault::Off);
                faults = 3;
            }
        }
        assert_eq!(sender.wait(Duration::from_secs(10)), 0, "{}", sender.said());
        assert!(came == bytes && faults == 3, "{} of {} bytes, {faults} faults", came.len(), bytes.len());
        // It was encrypted by WireGuard: what the tunnel carried is more than TCP's bytes, and none of them.
        let carried = wg(&["show", "wghome", "transfer"], None);
        let received: u64 = carried.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap();
        assert!(received > 4_000_000, "{carried}");
    });
}
