//! The networks of the demo, as arguments of `braidcast emulate`.

use crate::failure::{Failure, Outcome};
use braidcast_lab::recording::LTE;
use std::path::{Path, PathBuf};

/// Position in the recorded drive at which the demo begins. The minute from here carries 1.7 Mbit/s
/// on average, with peaks of 3.4, and ends in a fade to nothing: just not enough for the clip. If
/// that fade coincides with a stall of the Wi-Fi, no sender could help.
const LTE_FROM: &str = "24s";

/// A network that is emulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Network {
    /// 3 Mbit/s with 5 % loss in bursts, that stands still for a quarter of a second every two seconds or so.
    Wifi,
    /// A drive through fading, with an uplink's deep queue.
    Lte,
    /// Another continent, over a lossy last mile: a loss is known a round trip and a quarter later
    /// (RFC 8985 §6.2), and what is repeated is there after 350 ms, too late for a conversation.
    Far,
    /// Its twin.
    Far2,
}

impl Network {
    /// The name in reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wifi => "wifi",
            Self::Lte => "lte",
            Self::Far => "far",
            Self::Far2 => "far2",
        }
    }

    /// What the network is like, for people.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Wifi => "Wi-Fi: 3 Mbit/s, 8 ms, bursts of loss (5 %), stalls (0.14 to 0.41 s, every 2 s)".into(),
            Self::Lte => format!("LTE:   {} from {LTE_FROM} on, 30 ms, 300 ms of queue", LTE.name),
            Self::Far | Self::Far2 => {
                "Far:   10 Mbit/s, 100 ms, 2 % lost at random; two such, and a latency of 300 ms".into()
            }
        }
    }

    /// The flags for `braidcast emulate`.
    pub(super) fn flags(self, recording: &Path) -> Vec<String> {
        let words = match self {
            Self::Wifi => {
                "--rate 3mbit --delay 8ms --queue 200ms --loss burst:5%,3 --outage every:2s,275ms,hold".to_owned()
            }
            Self::Lte => format!("--delay 30ms --queue 300ms --trace-from {LTE_FROM} --trace"),
            Self::Far | Self::Far2 => "--rate 10mbit --delay 100ms --queue 200ms --loss 2%".to_owned(),
        };
        let mut flags: Vec<String> = words.split(' ').map(Into::into).collect();
        if self == Self::Lte {
            flags.push(recording.display().to_string());
        }
        flags
    }
}

/// Puts the drive where the emulator can read it.
pub(super) fn write_recording(out: &Path) -> Outcome<PathBuf> {
    let path = out.join(LTE.name);
    std::fs::write(&path, LTE.text).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", path.display()), "choose another folder with --out")
    })?;
    Ok(path)
}
