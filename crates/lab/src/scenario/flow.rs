//! `[flow.NAME]` and `[traffic]`: what goes from where to where.

use super::keys::{self, Key, apply, each, flag, key, put, share, time, whole, word};
use super::link::LinkSpec;
use super::live::{Clips, LiveSpec};
use super::value::{Settings, Value};
use super::wrong::{Wrong, did_you_mean};
use super::{dccp, sctp, tcp};
use crate::host::{Header, Rate as EncoderRate};
use braidcast_dccp::{OneWayDelay, Options as DccpOptions};
use braidcast_media::voice::{Codec, EModel, Form, Playout};
use braidcast_sctp::{Options, Reliability};
use braidcast_sim::tcp::Config;
use braidcast_sim::traffic::Traffic as Source;
use core::time::Duration;

/// A flow: a host that sends, one that receives, and the paths between them.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its name.
    pub name: String,
    /// The protocol.
    pub agent: Agent,
    /// What it sends.
    pub traffic: Traffic,
    /// What its receiver sends in the other direction, over DCCP.
    pub back: Option<Source>,
    /// Each path: the links that it goes through, by index, from the sender to the receiver.
    pub paths: Vec<Vec<usize>>,
    /// The clip and how it goes, if the agent is `live`.
    pub live: LiveSpec,
    /// Options of SCTP, if that is the agent or what a live session uses.
    pub sctp: Options,
    /// Options of DCCP, if that is the agent.
    pub dccp: DccpOptions,
    /// Options of TCP, if that is the agent.
    pub tcp: Config,
}

/// Which protocol a flow uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agent {
    /// SCTP, over all its paths.
    Sctp,
    /// DCCP, over its first path.
    Dccp,
    /// TCP, over its first path.
    Tcp,
    /// Datagrams without any control, over its first path.
    Udp,
    /// A clip in a session, as `braidcast send` and `receive` have it, over all its paths.
    Live,
}

impl Agent {
    /// Every agent by its name.
    pub const ALL: [(&'static str, Self); 5] =
        [("sctp", Self::Sctp), ("dccp", Self::Dccp), ("tcp", Self::Tcp), ("udp", Self::Udp), ("live", Self::Live)];

    /// Returns `true` if it reports its internal events ([`braidcast_core::events`]).
    pub const fn tells_events(self) -> bool {
        matches!(self, Self::Sctp | Self::Dccp | Self::Live)
    }
}

/// What a flow sends.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// When there is how much to send.
    pub source: Source,
    /// Bytes of each message of bulk traffic over SCTP or DCCP; other sources say how long theirs are.
    pub message: usize,
    /// Streams that messages go over in turn.
    pub streams: u16,
    /// `true` if each kind of frame has a stream of its own instead: I the first and most important, then P, then B.
    pub by_kind: bool,
    /// `true` if order within a stream is not asked for.
    pub unordered: bool,
    /// After how long a message is worth nothing.
    pub lifetime: Option<Duration>,
    /// How often a message over SCTP is repeated at most; 0 is unreliable. `lifetime` goes before it.
    pub retransmissions: Option<u16>,
    /// Start after the beginning of the run.
    pub start: Duration,
    /// What is not counted, from the first data on.
    pub warmup: Duration,
    /// Time from its sending for which a message is on time.
    pub deadline: Duration,
    /// `true` if each message that arrives is noted.
    pub log: bool,
    /// How often the state of the sender is noted, for series; none is not at all.
    pub sample: Option<Duration>,
    /// When a listener plays what arrives over DCCP or as datagrams; none is nobody listens.
    pub playout: Option<Playout>,
    /// How a call is rated.
    pub emodel: EModel,
    /// Over DCCP, a call that begins is refused while the loss event rate is higher, or no more
    /// fit; none is all are carried.
    pub max_loss: Option<f64>,
    /// Over DCCP, the rate that an encoder of frames follows; none is that of its source.
    pub encoder: Option<EncoderRate>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            source: Source::Bulk(None),
            message: 1400,
            streams: 1,
            by_kind: false,
            deadline: Duration::from_millis(200),
            log: false,
            unordered: false,
            lifetime: None,
            retransmissions: None,
            start: Duration::ZERO,
            warmup: Duration::ZERO,
            sample: None,
            playout: None,
            emodel: EModel::new(Form::G107, Codec::G711Plc),
            max_loss: None,
            encoder: None,
        }
    }
}

const TRAFFIC: &[Key<Traffic>] = &[
    key("source", |t, v| put(&mut t.source, word(v))),
    key("message", |t, v| put(&mut t.message, whole(v, Header::LEN as u64, 1 << 20))),
    key("streams", |t, v| put(&mut t.streams, whole(v, 1, 65535))),
    key("by_kind", |t, v| put(&mut t.by_kind, flag(v))),
    key("deadline", |t, v| put(&mut t.deadline, time(v))),
    key("log", |t, v| put(&mut t.log, flag(v))),
    key("unordered", |t, v| put(&mut t.unordered, flag(v))),
    key("lifetime", |t, v| put(&mut t.lifetime, time(v).map(Some))),
    key("retransmissions", |t, v| put(&mut t.retransmissions, whole(v, 0, 1000).map(Some))),
    key("start", |t, v| put(&mut t.start, time(v))),
    key("warmup", |t, v| put(&mut t.warmup, time(v))),
    key("playout", |t, v| put(&mut t.playout, word(v).map(Some))),
    key("emodel", |t, v| put(&mut t.emodel.form, word(v))),
    key("codec", |t, v| put(&mut t.emodel.codec, word(v))),
    key("advantage", |t, v| put(&mut t.emodel.advantage, whole(v, 0, 40).map(|it: u8| it.into()))),
    key("max_loss", |t, v| put(&mut t.max_loss, share(v).map(Some))),
    key("encoder", |t, v| put(&mut t.encoder, word(v).map(Some))),
    key("sample", |t, v| put(&mut t.sample, time(v).and_then(positive).map(Some))),
];

/// `[flow.NAME]` and `[traffic]` for the manual.
pub(super) fn accepted() -> [Vec<(&'static str, String)>; 2] {
    let mut draft = Draft { links: Vec::new(), agent: Agent::Sctp, back: None, copies: 1, paths: Vec::new() };
    let mut flow = keys::accepted(FLOW, &mut draft);
    // It would name the links of this scenario.
    flow.retain(|(name, _)| *name != "paths");
    flow.push(("paths", "a list of paths, for example [[\"wifi\"], [\"lte\"]]".to_owned()));
    [flow, keys::accepted(TRAFFIC, &mut Traffic::default())]
}

impl Traffic {
    /// How long SCTP is to care for a message.
    pub fn reliability(&self) -> Reliability {
        let bounded = self.retransmissions.map_or(Reliability::Reliable, Reliability::Retransmissions);
        self.lifetime.map_or(bounded, Reliability::Lifetime)
    }
}

fn positive(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err("an interval of 0 never ends".to_owned()) } else { Ok(time) }
}

/// Most flows of a scenario.
const MAX_FLOWS: usize = 100;
/// Most paths of a flow.
const MAX_PATHS: usize = 250;

/// A flow while its section is read.
struct Draft {
    links: Vec<String>,
    agent: Agent,
    back: Option<Source>,
    copies: usize,
    paths: Vec<Vec<usize>>,
}

const FLOW: &[Key<Draft>] = &[
    key("agent", |draft, v| {
        let name = v.to_string();
        let found = Agent::ALL.iter().find(|(known, _)| *known == name);
        let unknown = || format!("no agent is called '{name}'; {}", did_you_mean(&name, Agent::ALL.map(|(n, _)| n)));
        put(&mut draft.agent, found.map(|&(_, agent)| agent).ok_or_else(unknown))
    }),
    key("back", |draft, v| put(&mut draft.back, word(v).map(Some))),
    key("copies", |draft, v| put(&mut draft.copies, whole(v, 1, MAX_FLOWS as u64))),
    key("paths", |draft, v| {
        let link = |name: &Value| {
            let name = name.to_string();
            let found = draft.links.iter().position(|link| *link == name);
            let names = || did_you_mean(&name, draft.links.iter().map(String::as_str));
            found.ok_or_else(|| format!("no link is called '{name}'; {}", names()))
        };
        let path = |path: &Value| each(path).iter().map(link).collect::<Result<Vec<_>, _>>();
        let paths = each(v).iter().map(path).collect::<Result<Vec<_>, _>>()?;
        for links in &paths {
            if let Some(twice) = links.iter().enumerate().find(|(i, link)| links[..*i].contains(link)) {
                return Err(format!("the path goes through '{}' twice", draft.links[*twice.1]));
            }
        }
        if paths.len() > MAX_PATHS {
            return Err(format!("{} paths are too many; use at most {MAX_PATHS}", paths.len()));
        }
        put(&mut draft.paths, Ok(paths))
    }),
];

impl FlowSpec {
    /// All flows of a scenario; without a section of its own there is one, `main`, over each link as a path.
    pub(super) fn all(settings: &Settings, links: &[LinkSpec], clips: &mut Clips<'_>) -> Result<Vec<Self>, Wrong> {
        let mut names = settings.table("flow").tables();
        if names.is_empty() {
            names.push("main".to_owned());
        }
        if names.len() > MAX_FLOWS {
            let place = settings.table("flow").0.pop().map_or_else(String::new, |setting| setting.place);
            return Err(Wrong::new(
                place,
                format!("there are {} flows", names.len()),
                format!("use at most {MAX_FLOWS}"),
            ));
        }
        let mut flows = Vec::new();
        for name in names {
            let (flow, copies) = Self::new(&name, settings, links, clips)?;
            if copies == 1 {
                flows.push(flow);
                continue;
            }
            // Each has a name, and so randomness, of its own.
            flows.extend((1..=copies).map(|n| Self { name: format!("{name} {n}"), ..flow.clone() }));
        }
        Ok(flows)
    }

    /// The flow of this name, and how many there are of its kind.
    fn new(name: &str, all: &Settings, links: &[LinkSpec], clips: &mut Clips<'_>) -> Result<(Self, usize), Wrong> {
        let own = all.table("flow").table(name);
        let section = |part: &str| format!("flow.{name}.{part}");
        let tables = |part: &str| (all.table(part), own.table(part));
        let (shared, special) = tables("live");
        let live = LiveSpec::new([(&shared, "live"), (&special, &section("live"))], clips)?;
        // A section of its own says what the flow is, unless it says so itself.
        let is_live = match own.get("agent") {
            Some(agent) => agent.value.says("live"),
            None => !shared.0.is_empty() || !special.0.is_empty(),
        };
        let mut flow = Self {
            name: name.to_owned(),
            agent: if is_live { Agent::Live } else { Agent::Sctp },
            traffic: Traffic::default(),
            back: None,
            paths: Vec::new(),
            sctp: if is_live { live.sender.transport() } else { Options::default() },
            live,
            // As the source of the queues' experiments has it (SBPN §3.4).
            dccp: DccpOptions { one_way_delay: OneWayDelay::HalfRoundTrip, ..DccpOptions::default() },
            tcp: Config::default(),
        };
        apply(TRAFFIC, &mut flow.traffic, &all.table("traffic"), "traffic")?;
        apply(TRAFFIC, &mut flow.traffic, &own.table("traffic"), &section("traffic"))?;
        let (shared, special) = tables("sctp");
        apply(sctp::KEYS, &mut flow.sctp, &shared, "sctp")?;
        apply(sctp::KEYS, &mut flow.sctp, &special, &section("sctp"))?;
        sctp::finish(&mut flow.sctp, [&special, &shared])?;
        let (shared, special) = tables("dccp");
        apply(dccp::KEYS, &mut flow.dccp, &shared, "dccp")?;
        apply(dccp::KEYS, &mut flow.dccp, &special, &section("dccp"))?;
        dccp::finish(&mut flow.dccp, [&special, &shared])?;
        apply(tcp::KEYS, &mut flow.tcp, &all.table("tcp"), "tcp")?;
        apply(tcp::KEYS, &mut flow.tcp, &own.table("tcp"), &section("tcp"))?;
        let nested =
            |key: &str| ["traffic.", "live.", "sctp.", "dccp.", "tcp."].iter().any(|table| key.starts_with(table));
        let plain = Settings(own.0.iter().filter(|setting| !nested(&setting.key)).cloned().collect());
        let paths = (0..links.len()).map(|link| vec![link]).collect();
        let (specs, links) = (links, links.iter().map(|link| link.name.clone()).collect());
        let mut draft = Draft { links, agent: flow.agent, back: None, copies: 1, paths };
        apply(FLOW, &mut draft, &plain, &format!("flow.{name}"))?;
        if draft.agent == Agent::Udp && matches!(flow.traffic.source, Source::Bulk(_)) {
            let place = own.get("agent").map_or_else(String::new, |setting| setting.place.clone());
            let what = format!("the flow '{name}' has bulk traffic over UDP, which has no pace of its own");
            return Err(Wrong::new(place, what, "give it a source, for example \"cbr:1mbit,1000B\""));
        }
        if draft.paths.is_empty() || draft.paths.iter().any(Vec::is_empty) {
            let place = own.get("paths").map_or_else(String::new, |setting| setting.place.clone());
            return Err(Wrong::new(
                place,
                "a flow needs a path, and a path a link",
                "write for example [[\"wifi\"], [\"lte\"]]",
            ));
        }
        let most = flow.sctp.paths.max_paths;
        if draft.agent == Agent::Live && draft.paths.len() > most {
            let place = own.get("paths").map_or_else(String::new, |setting| setting.place.clone());
            let what = format!("the flow '{name}' has {} paths; a session takes {most}", draft.paths.len());
            return Err(Wrong::new(place, what, format!("name at most {most}: paths = [[\"wifi\"], [\"lte\"]]")));
        }
        let bulk = draft.agent != Agent::Live && matches!(flow.traffic.source, Source::Bulk(_));
        let endless = |path: &&Vec<usize>| path.iter().all(|&link| specs[link].is_immediate());
        if let (true, Some(path)) = (bulk, draft.paths.iter().find(endless)) {
            let link = &draft.links[path[0]];
            let place = all.table("link").table(link).0.first().map_or_else(String::new, |it| it.place.clone());
            let what = format!("bulk traffic over '{link}', which has neither rate nor delay, would go on without end");
            return Err(Wrong::new(place, what, "give the link a rate or a delay"));
        }
        if draft.back.is_some() && draft.agent != Agent::Dccp {
            let place = own.get("back").map_or_else(String::new, |setting| setting.place.clone());
            let what = format!("the flow '{name}' has traffic back, which only DCCP carries here");
            return Err(Wrong::new(place, what, "use agent = \"dccp\", or a second flow"));
        }
        let has_calls = draft.agent == Agent::Dccp && matches!(flow.traffic.source, Source::Voice(_));
        if flow.traffic.max_loss.is_some() && !has_calls {
            let mut tables = [own.table("traffic"), all.table("traffic")].into_iter();
            let place = tables.find_map(|it| it.get("max_loss").map(|setting| setting.place.clone()));
            let what = format!("the flow '{name}' has max_loss, but no calls over DCCP");
            let fix = "use agent = \"dccp\" and a source, for example \"g729:calls=20\", or leave it out";
            return Err(Wrong::new(place.unwrap_or_default(), what, fix));
        }
        let has_frames = draft.agent == Agent::Dccp && matches!(flow.traffic.source, Source::Gop(_));
        if flow.traffic.encoder.is_some() && !has_frames {
            let mut tables = [own.table("traffic"), all.table("traffic")].into_iter();
            let place = tables.find_map(|it| it.get("encoder").map(|setting| setting.place.clone()));
            let what = format!("the flow '{name}' has an encoder, but no frames by type over DCCP");
            let fix =
                "use agent = \"dccp\" and a source, for example \"gop:IPPP,25fps,I=20kB,P=5kB,B=5kB\", or leave it out";
            return Err(Wrong::new(place.unwrap_or_default(), what, fix));
        }
        Ok((Self { agent: draft.agent, back: draft.back, paths: draft.paths, ..flow }, draft.copies))
    }
}
