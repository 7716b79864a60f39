//! `[link.NAME]`: a link in each direction, in the words of `braidcast emulate`.

use super::keys::{self, Key, apply, each, key, put, share, time, whole, word};
use super::value::{Setting, Settings};
use super::wrong::Wrong;
use crate::recording::{self, LTE};
use braidcast_sim::link::{LinkModel, Rate, Trace, parse};
use core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A link of a scenario.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name.
    pub name: String,
    /// From the first host of a flow to the second.
    pub there: LinkModel,
    /// And back.
    pub back: LinkModel,
}

/// What both directions share unless `back-KEY` says otherwise.
const BOTH: &[Key<LinkModel>] = &[
    key("rate", |link, v| put(&mut link.rate, word(v))),
    key("delay", |link, v| put(&mut link.delay, time(v))),
    key("rtt", |link, v| put(&mut link.delay, time(v).map(|rtt| rtt / 2))),
    key("delays", |link, v| {
        let schedule = parse::delay_schedule(&v.to_string()).map_err(|e| e.to_string());
        put(&mut link.delay_schedule, schedule.map(Some))
    }),
    key("jitter", |link, v| put(&mut link.jitter, word(v))),
    key("queue", |link, v| put(&mut link.queue, word(v))),
    key("mtu", |link, v| put(&mut link.mtu, whole(v, 68, 1 << 20))),
    key("overhead", |link, v| put(&mut link.overhead, whole(v, 0, 1 << 16))),
    key("outage", |link, v| put(&mut link.outages, each(v).iter().map(word).collect())),
];

/// Keys of the forward direction only, unless `back-KEY` says otherwise.
const THERE: &[Key<LinkModel>] = &[
    key("loss", |link, v| put(&mut link.loss, word(v))),
    key("policer", |link, v| {
        let policer = if v.says("off") { Ok(None) } else { word(v).map(Some) };
        put(&mut link.policer, policer)
    }),
    key("reorder", |link, v| put(&mut link.reorder, word(v))),
    key("duplicate", |link, v| put(&mut link.duplicate, share(v))),
    key("corrupt", |link, v| put(&mut link.corrupt, share(v))),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    let mut link = LinkModel::default();
    let recorded = [("trace", "a file in mahimahi's format"), ("trace-from", "for example 20s")];
    let recorded = recorded.map(|(name, what)| (name, what.to_owned()));
    [keys::accepted(BOTH, &mut link), keys::accepted(THERE, &mut link)].concat().into_iter().chain(recorded).collect()
}

/// Most links of a scenario.
const MAX_LINKS: usize = 250;

impl LinkSpec {
    /// All links of `settings`, the tables inside `[link]`.
    pub(super) fn all(settings: &Settings, traces: &mut Traces<'_>) -> Result<Vec<Self>, Wrong> {
        let names = settings.tables();
        if names.len() > MAX_LINKS {
            let place = settings.0.last().map_or("", |setting| &setting.place);
            return Err(Wrong::new(
                place,
                format!("there are {} links", names.len()),
                format!("use at most {MAX_LINKS}"),
            ));
        }
        names.into_iter().map(|name| Self::new(&name, &settings.table(&name), traces)).collect()
    }

    /// Returns `true` if time does not pass for a packet and its answer.
    pub(super) fn is_immediate(&self) -> bool {
        let immediate = |model: &LinkModel| {
            let free = matches!(model.rate, Rate::Unlimited) && model.delay.is_zero();
            free && model.delay_schedule.is_none() && model.jitter == LinkModel::default().jitter
        };
        immediate(&self.there) && immediate(&self.back)
    }

    fn new(name: &str, settings: &Settings, traces: &mut Traces<'_>) -> Result<Self, Wrong> {
        let section = format!("link.{name}");
        let (mut shared, mut there, mut back, mut recorded) =
            (Settings::default(), Settings::default(), Settings::default(), Vec::new());
        for setting in &settings.0 {
            let is = |keys: &[Key<LinkModel>], name: &str| keys.iter().any(|key| key.name == name);
            match setting.key.strip_prefix("back-") {
                Some("trace") => recorded.push((setting, false)),
                Some("trace-from") => needs_trace(settings, setting, "back-trace")?,
                Some(key) if is(BOTH, key) || is(THERE, key) => {
                    back.0.push(Setting { key: key.to_owned(), ..setting.clone() });
                }
                None if setting.key == "trace" => recorded.push((setting, true)),
                None if setting.key == "trace-from" => needs_trace(settings, setting, "trace")?,
                None if is(BOTH, &setting.key) => shared.0.push(setting.clone()),
                _ => there.0.push(setting.clone()),
            }
        }
        let all: Vec<_> = BOTH.iter().chain(THERE).map(|it| key(it.name, it.set)).collect();
        let mut link = Self { name: name.to_owned(), there: LinkModel::default(), back: LinkModel::default() };
        for model in [&mut link.there, &mut link.back] {
            apply(BOTH, model, &shared, &section)?;
        }
        apply(&all, &mut link.there, &there, &section)?;
        apply(&all, &mut link.back, &back, &section)?;
        for (setting, forward) in recorded {
            let begin = settings.get(if forward { "trace-from" } else { "back-trace-from" });
            let rate = Rate::Trace(traces.load(setting, begin)?);
            *if forward { &mut link.there.rate } else { &mut link.back.rate } = rate;
        }
        Ok(link)
    }
}

/// `from` says where in the recording `trace` a link begins.
fn needs_trace(settings: &Settings, from: &Setting, trace: &str) -> Result<(), Wrong> {
    let what = || Wrong::new(&from.place, format!("{} without a {trace}", from.key), "name the recording too");
    settings.get(trace).map(|_| ()).ok_or_else(what)
}

/// Recordings, each read once however many points use it: the one inside by its name, others by their path.
pub(super) struct Traces<'a> {
    folder: &'a Path,
    read: BTreeMap<(String, Duration), Arc<Trace>>,
}

impl<'a> Traces<'a> {
    /// Recordings that lie beside the scenario, in `folder`.
    pub(super) const fn new(folder: &'a Path) -> Self {
        Self { folder, read: BTreeMap::new() }
    }

    /// The recording that `setting` names, from the time on that `begin` says.
    fn load(&mut self, setting: &Setting, begin: Option<&Setting>) -> Result<Arc<Trace>, Wrong> {
        let name = setting.value.to_string();
        let from = begin.map(|it| time(&it.value).map_err(|why| Wrong::new(&it.place, why, ""))).transpose()?;
        let key = (name, from.unwrap_or_default());
        if let Some(trace) = self.read.get(&key) {
            return Ok(Arc::clone(trace));
        }
        let name = &key.0;
        let read = match LTE.name == name {
            true => Trace::read(name, LTE.text.as_bytes()),
            false => Trace::load(&recording::find(self.folder, name)),
        };
        let trace = read.map_err(|e| {
            let fix = format!(
                "give a recording in mahimahi's format, its path from the scenario's folder or from that which {} names",
                recording::FOLDER
            );
            Wrong::new(&setting.place, e.to_string(), fix)
        })?;
        let period = trace.period_millis();
        let trace = Arc::new(trace.beginning_at(key.1).ok_or_else(|| {
            let what = format!("trace-from lies behind the end of {name}, which lasts {period} ms");
            Wrong::new(begin.map_or("", |it| &it.place), what, "choose an earlier time")
        })?);
        self.read.insert(key, Arc::clone(&trace));
        Ok(trace)
    }
}
