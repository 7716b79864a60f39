//! `[live]`: a clip that goes as `braidcast send` sends it, and how. The names are those of its flags.

use super::keys::{self, Key, apply, flag, key, put, time, whole, word};
use super::value::{Setting, Settings, Value};
use super::wrong::Wrong;
use crate::clip::Clip;
use crate::recording;
use braidcast_session::{RateLimits, SenderOptions};
use braidcast_sim::link::parse;
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A clip and how it is sent and played.
#[derive(Clone, Debug)]
pub struct LiveSpec {
    /// The clip. Default: the first that the program has inside.
    pub clip: Arc<Clip>,
    /// Options of the sender, its latency among them. Default: those of `braidcast send`.
    pub sender: SenderOptions,
    /// `true` if the receiver hands out what it has at once (`receive --early`).
    pub early: bool,
    /// How long the session is there before the clip begins. Default: 3 s.
    pub lead: Duration,
    /// What makes the frames in place of the clip, if it follows what the sender says.
    pub encoder: Option<Encoding>,
    /// `true` if it is measured too what senders without foresight could have done.
    pub yardstick: bool,
}

/// An encoder that follows what the sender says it may make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Encoding {
    /// Frames in a second. Default: 30.
    pub fps: u32,
    /// The rates that it is able to make. Default: 100 kbit/s to 6 Mbit/s, as `braidcast encode`.
    pub limits: RateLimits,
}

/// While the section is read.
struct Draft {
    sender: SenderOptions,
    early: bool,
    lead: Duration,
    follows: bool,
    encoding: Encoding,
    yardstick: bool,
}

impl Draft {
    fn new(sender: SenderOptions) -> Self {
        let limits = RateLimits::new(100_000, 6_000_000);
        let encoding = Encoding { fps: 30, limits };
        Self { sender, early: false, lead: Duration::from_secs(3), follows: false, encoding, yardstick: false }
    }
}

const KEYS: &[Key<Draft>] = &[
    key("latency", |it, v| put(&mut it.sender.latency, time(v))),
    key("queue", |it, v| {
        let queue = if v.says("off") { Ok(None) } else { word(v).map(Some) };
        put(&mut it.sender.queue, queue)
    }),
    key("scheduler", |it, v| put(&mut it.sender.scheduler, word(v))),
    key("cc", |it, v| put(&mut it.sender.congestion, word(v))),
    key("fec", |it, v| put(&mut it.sender.redundancy, word(v))),
    key("early", |it, v| put(&mut it.early, flag(v))),
    key("path", |it, v| {
        let selection = if v.says("off") { Ok(None) } else { word(v).map(Some) };
        put(&mut it.sender.selection, selection)
    }),
    key("hysteresis", |it, v| put(&mut it.sender.hysteresis, within(v, Duration::ZERO))),
    key("time_guard", |it, v| put(&mut it.sender.time_guard, within(v, Duration::ZERO))),
    key("probe_interval", |it, v| put(&mut it.sender.probe_interval, within(v, Duration::from_millis(100)))),
    key("quick_failover", |it, v| {
        let after = if v.says("off") { Ok(None) } else { whole(v, 0, 20).map(Some) };
        put(&mut it.sender.quick_failover, after)
    }),
    key("path_max_retrans", |it, v| put(&mut it.sender.path_max_retrans, whole(v, 0, 20))),
    key("retransmission", |it, v| put(&mut it.sender.retransmission, word(v))),
    key("reinject", |it, v| put(&mut it.sender.reinject, flag(v))),
    key("lead", |it, v| put(&mut it.lead, time(v))),
    key("encoder", |it, v| match (v.says("follow"), v.says("off")) {
        (false, false) => Err(format!("`{v}` is not `follow` or `off`")),
        (follows, _) => put(&mut it.follows, Ok(follows)),
    }),
    key("rate_range", |it, v| put(&mut it.encoding.limits, range(v))),
    key("fps", |it, v| put(&mut it.encoding.fps, whole(v, 1, 240))),
    key("yardstick", |it, v| put(&mut it.yardstick, flag(v))),
    // Read by `Clips`.
    key("clip", |_, _| Ok(())),
    key("rate", |_, _| Ok(())),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    keys::accepted(KEYS, &mut Draft::new(SenderOptions::default()))
}

/// Longest latency that the header of a unit holds.
const MAX_LATENCY: Duration = Duration::from_secs(71 * 60);

impl LiveSpec {
    /// What `tables`, the flow's own one last, say.
    pub(super) fn new(tables: [(&Settings, &str); 2], clips: &mut Clips<'_>) -> Result<Self, Wrong> {
        let sender = SenderOptions::default().with(|it| it.skip_tsns = true);
        let mut draft = Draft::new(sender);
        let find = |key: &str| tables.iter().rev().find_map(|(table, _)| table.get(key));
        for (table, section) in tables {
            apply(KEYS, &mut draft, table, section)?;
        }
        if draft.sender.latency > MAX_LATENCY || draft.sender.latency.is_zero() {
            let place = find("latency").map_or("", |it| &it.place);
            return Err(Wrong::new(place, "the latency is 0, or longer than 71 minutes", "write for example 500ms"));
        }
        let clip = clips.load(find("clip"), find("rate"))?;
        let Draft { mut sender, early, lead, follows, encoding, yardstick } = draft;
        if follows {
            sender.encoder = encoding.limits;
        }
        Ok(Self { clip, sender, early, lead, encoder: follows.then_some(encoding), yardstick })
    }
}

/// Clips, each read once however many points use it: those inside by their names, others by their paths.
pub(super) struct Clips<'a> {
    folder: &'a Path,
    read: BTreeMap<String, Arc<Clip>>,
    scaled: BTreeMap<(String, u64), Arc<Clip>>,
}

impl<'a> Clips<'a> {
    /// Clips that lie beside the scenario, in `folder`.
    pub(super) const fn new(folder: &'a Path) -> Self {
        Self { folder, read: BTreeMap::new(), scaled: BTreeMap::new() }
    }

    /// The clip that `name` names, at the rate that `rate` says.
    fn load(&mut self, name: Option<&Setting>, rate: Option<&Setting>) -> Result<Arc<Clip>, Wrong> {
        let place = |setting: Option<&Setting>| setting.map_or_else(String::new, |it| it.place.clone());
        let text = name.map(|it| it.value.to_string()).or_else(|| Clip::names().next().map(str::to_owned));
        let text = text.unwrap_or_default();
        let clip = match self.read.get(&text) {
            Some(clip) => Arc::clone(clip),
            None => {
                let clip = Arc::new(self.read(&text).map_err(|what| {
                    let names: Vec<_> = Clip::names().collect();
                    let fix = format!(
                        "clips inside: {}; `braidcast lab clip FILE.ts` makes one of a recording",
                        names.join(", ")
                    );
                    Wrong::new(place(name), what, fix)
                })?);
                self.read.insert(text.clone(), Arc::clone(&clip));
                clip
            }
        };
        let Some(rate) = rate else { return Ok(clip) };
        let wrong = |what: String| Wrong::new(&rate.place, format!("rate: {what}"), "");
        let bits = bits(&rate.value).map_err(wrong)?;
        if let Some(scaled) = self.scaled.get(&(text.clone(), bits)) {
            return Ok(Arc::clone(scaled));
        }
        let scaled = Arc::new(clip.at_rate(bits).map_err(wrong)?);
        self.scaled.insert((text, bits), Arc::clone(&scaled));
        Ok(scaled)
    }

    fn read(&self, name: &str) -> Result<Clip, String> {
        if let Some(clip) = Clip::embedded(name) {
            return Ok(clip);
        }
        let text =
            recording::read_text(&self.folder.join(name)).map_err(|e| format!("there is no clip '{name}': {e}"))?;
        Clip::parse(name, &text).map_err(|e| e.to_string())
    }
}

/// A time from `least` to a minute, as the flags of `braidcast send` have it.
fn within(value: &Value, least: Duration) -> Result<Duration, String> {
    let most = Duration::from_secs(60);
    let inside = time(value).map(|it| (least..=most).contains(&it).then_some(it))?;
    inside.ok_or_else(|| format!("`{value}` is not a time from {least:?} to {most:?}"))
}

/// `LEAST-GREATEST`, as `braidcast encode --rate-range` has it.
fn range(value: &Value) -> Result<RateLimits, String> {
    let text = value.to_string();
    let rates = text.split_once('-').and_then(|(least, greatest)| {
        let rate = |text: &str| parse::rate(text.trim()).ok();
        rate(least).zip(rate(greatest)).filter(|(least, greatest)| least <= greatest)
    });
    let limits = rates.map(|(least, greatest)| RateLimits::new(least, greatest));
    limits.ok_or_else(|| format!("`{text}` is not a range of rates; write for example 300kbit-8mbit"))
}

fn bits(value: &Value) -> Result<u64, String> {
    parse::rate(&value.to_string()).map_err(|e| e.to_string())
}
