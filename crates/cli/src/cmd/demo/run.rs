//! One run: `send` through emulated networks to `receive`.

use super::child::Process;
use super::networks::Network;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Seconds that an emulator outlives the clip at most.
const AFTERWARDS: u32 = 60;

/// What every run has in common.
pub(super) struct Setting<'a> {
    /// This very program.
    pub(super) program: &'a Path,
    /// What is sent.
    pub(super) clip: &'a Path,
    /// Path of the recording of the LTE link.
    pub(super) recording: &'a Path,
    /// Folder for what comes of it.
    pub(super) out: &'a Path,
    pub(super) latency: Duration,
    /// Length of the clip.
    pub(super) seconds: u32,
    pub(super) seed: u64,
}

/// What a run is to show.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// Its name in the summary.
    pub(super) name: &'static str,
    /// The networks that it goes over.
    pub(super) networks: &'static [Network],
    /// How long after its capture a frame is still worth showing, if not as the user says.
    pub(super) latency: Option<Duration>,
    /// Flags of `send` besides the usual ones.
    pub(super) send: &'static [&'static str],
}

impl Case {
    /// How many UDP ports it takes: one to receive, and one for each network.
    pub(super) const fn ports(&self) -> usize {
        self.networks.len() + 1
    }
}

/// A run under way.
pub(super) struct Run {
    pub(super) case: Case,
    /// The networks, their emulators, and the names by which the sender knows its paths through them.
    links: Vec<(Network, Process, String)>,
    receiver: Process,
    sender: Process,
    /// What was received.
    pub(super) output: PathBuf,
    /// The receiver's account of every frame.
    pub(super) log: PathBuf,
}

/// What a path carried.
#[derive(Serialize)]
pub(super) struct PathUse {
    pub(super) name: &'static str,
    /// Bytes that the sender put on it.
    pub(super) sent_bytes: u64,
    /// Packets that the network lost, by the emulator's count.
    pub(super) lost_packets: u64,
}

impl Run {
    /// Starts the processes on `ports`: one to receive, then one for each network.
    pub(super) fn start(setting: &Setting<'_>, case: Case, ports: &[u16]) -> Outcome<Self> {
        let name = case.name;
        let (output, log) = (setting.out.join(format!("{name}.ts")), setting.out.join(format!("{name}.csv")));
        let text = |path: &Path| path.display().to_string();
        let [receive_port, link_ports @ ..] = ports else {
            return Err(Failure::new("the demo ran out of ports", "please report this as a bug"));
        };
        let at = |port: &u16| format!("127.0.0.1:{port}");
        let trace = |end: &str| text(&setting.out.join(format!("{name}-{end}.trace")));
        let receive = [
            "receive".into(),
            at(receive_port),
            text(&output),
            "--overwrite".into(),
            "--log".into(),
            text(&log),
            "--trace".into(),
            trace("receive"),
        ];
        let receiver = Process::start(setting.program, &receive)?.ready()?;
        let mut links = Vec::new();
        let latency = format!("{}ms", case.latency.unwrap_or(setting.latency).as_millis());
        let mut send = vec!["send".into(), text(setting.clip), "--latency".into(), latency];
        send.extend(case.send.iter().map(|&flag| flag.into()));
        send.extend(["--trace".into(), trace("send")]);
        for ((network, port), nth) in case.networks.iter().zip(link_ports).zip(0..) {
            // They end by themselves should the demo be killed.
            let (seed, end) =
                (setting.seed.wrapping_add(nth).to_string(), format!("{}s", setting.seconds + AFTERWARDS));
            let mut emulate =
                vec!["emulate".into(), at(port), at(receive_port), "--seed".into(), seed, "--duration".into(), end];
            emulate.extend(network.flags(setting.recording));
            links.push((*network, Process::start(setting.program, &emulate)?.ready()?, at(port)));
            send.extend(["--to".into(), at(port)]);
        }
        let sender = Process::start(setting.program, &send)?;
        Ok(Self { case, links, receiver, sender, output, log })
    }

    /// Returns `true` if both ends have ended.
    pub(super) fn has_ended(&mut self) -> bool {
        // A sender that failed leaves a receiver that waits for ever.
        self.sender.has_ended() && (self.receiver.has_ended() || self.sender.failed())
    }

    /// Waits for the ends and reads what each path carried, and the log.
    pub(super) fn finish(self) -> Outcome<(Vec<PathUse>, PathBuf, PathBuf)> {
        let sent = self.sender.document()?;
        self.receiver.document()?;
        let mut paths = Vec::new();
        for (network, emulator, to) in self.links {
            emulator.interrupt();
            let link = emulator.document()?;
            let forward = &link["to_forward"];
            let dropped = ["dropped_loss", "dropped_queue", "dropped_outage", "dropped_too_big"];
            paths.push(PathUse {
                name: network.name(),
                sent_bytes: sent_bytes(&sent, &to),
                lost_packets: dropped.iter().filter_map(|reason| forward[reason].as_u64()).sum(),
            });
        }
        Ok((paths, self.output, self.log))
    }
}

/// What the sender put on the path that it calls `name`, by its report.
fn sent_bytes(report: &serde_json::Value, name: &str) -> u64 {
    let paths = report["paths"].as_array().into_iter().flatten().filter(|path| path["name"] == name);
    paths.filter_map(|path| path["sent_bytes"].as_u64()).sum()
}

/// Ports outside the range from which systems choose ports for sockets that ask for any (Linux
/// begins at 32,768, others at 49,152). So no other process of the demo takes a free one before its
/// own process is up.
const PORTS: core::ops::Range<u16> = 16_384..32_768;

/// `count` different UDP ports of the loopback interface that are free now. Two demos begin their
/// search in different places.
#[allow(clippy::disallowed_types, reason = "real ports for real processes")]
pub(super) fn free_ports(count: usize) -> Outcome<Vec<u16>> {
    let first = (std::process::id() as usize * 64) % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    let found: Vec<u16> =
        ports.filter(|&port| std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok()).take(count).collect();
    if found.len() < count {
        let reason = format!("cannot open {count} UDP ports from {} to {} on 127.0.0.1", PORTS.start, PORTS.end - 1);
        return Err(Failure::new(reason, "check the loopback interface"));
    }
    Ok(found)
}
