//! What an experiment builds: hosts, links, and the paths between them.

use crate::clip::Timeline;
use crate::host::{DccpHost, Host, LiveReceiver, LiveSender, PlainHost, SctpReceiver, SctpSender};
use crate::scenario::{Agent, FlowSpec, LinkSpec, Point, Wrap};
use braidcast_core::events::Tracer;
use braidcast_core::{Instant, Rng};
use braidcast_sim::link::LinkStats;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who is told of what happens inside hosts, by their names.
pub type Listeners = BTreeMap<String, Tracer>;

/// One run of a point with one seed.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What is run.
    pub point: &'a Point,
    /// The seed.
    pub seed: u64,
    /// How long it measures.
    pub duration: Duration,
    /// Who is told of what happens inside the hosts. They do the same whoever listens.
    pub listeners: &'a Listeners,
}

impl Run<'_> {
    /// `flow` as the host `name` has it: with those who listen to that host.
    fn flow_of<'a>(&self, flow: &'a FlowSpec, name: &str) -> Cow<'a, FlowSpec> {
        let Some(tracer) = self.listeners.get(name) else { return Cow::Borrowed(flow) };
        let mut flow = flow.clone();
        flow.sctp.events = tracer.clone();
        flow.dccp.events = tracer.clone();
        flow.live.sender.events = tracer.clone();
        Cow::Owned(flow)
    }
}

/// A host with its name.
#[derive(Debug)]
pub struct HostPlan {
    /// Its name.
    pub name: String,
    /// The machine.
    pub host: Host,
    /// The UDP port of its interfaces; 0 if its packets stand in IP alone.
    pub port: u16,
}

/// A path between two hosts, with an interface of its own at each end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPlan {
    /// The host at the one end, by index.
    pub from: usize,
    /// The host at the other.
    pub to: usize,
    /// The links between them, by index. Paths that share a link share its queue.
    pub links: Vec<usize>,
}

/// Everything that a run is made of.
#[derive(Debug)]
pub struct Plan {
    /// The hosts.
    pub hosts: Vec<HostPlan>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The paths.
    pub paths: Vec<PathPlan>,
    /// When links begin to count for [`LinkDone::before`], if that is not at once.
    pub warm: Option<Instant>,
    /// When the run ends, even if not all hosts have measured what they are to measure.
    pub limit: Instant,
}

/// Time beyond what is measured: for handshakes, and until the first packet got through a lossy link.
const SLACK: Duration = Duration::from_secs(30);

impl Plan {
    /// The hosts `FLOW.sender` and `FLOW.receiver` for each flow of the scenario, joined by the flow's paths.
    pub fn of(run: &Run<'_>) -> Self {
        let Point { network, flows, .. } = run.point;
        let rng = Rng::from_seed(run.seed);
        let links = Self::links(run);
        let mut plan = Self { hosts: Vec::new(), links, paths: Vec::new(), warm: None, limit: Instant::ZERO };
        for flow in flows {
            let name = |end: &str| format!("{}.{end}", flow.name);
            let stream = |end: &str| rng.stream(&name(end));
            let start = flow.traffic.start + network.vary_start.mul_f64(stream("start").f64());
            let (from, begin) = (plan.hosts.len(), Instant::ZERO + start);
            let (sender, receiver) = (stream("sender"), stream("receiver"));
            let (there, back) = (run.flow_of(flow, &name("sender")), run.flow_of(flow, &name("receiver")));
            let (sender, receiver) = match flow.agent {
                Agent::Sctp => (
                    Host::SctpSender(Box::new(SctpSender::host(&there, run.duration, begin, &sender))),
                    Host::SctpReceiver(Box::new(SctpReceiver::host(&back, run.duration, &receiver))),
                ),
                Agent::Dccp => (
                    Host::Dccp(Box::new(DccpHost::sender(&there, run.duration, begin, &sender))),
                    Host::Dccp(Box::new(DccpHost::receiver(&back, run.duration, &receiver))),
                ),
                Agent::Live => {
                    let timeline = match flow.live.encoder {
                        None => Timeline::new(&flow.live.clip, run.duration),
                        Some(_) => Timeline::default(),
                    };
                    let timeline = Arc::new(timeline);
                    let begins = begin + flow.live.lead;
                    (
                        Host::LiveSender(Box::new(LiveSender::host(
                            &there,
                            Arc::clone(&timeline),
                            run.duration,
                            begin,
                            begins,
                            &sender,
                        ))),
                        Host::LiveReceiver(Box::new(LiveReceiver::host(
                            &back,
                            timeline,
                            run.duration,
                            begins,
                            &receiver,
                        ))),
                    )
                }
                Agent::Tcp | Agent::Udp => (
                    Host::Plain(Box::new(PlainHost::sender(flow, run.duration, begin, &sender))),
                    Host::Plain(Box::new(PlainHost::receiver(flow, run.duration))),
                ),
            };
            let port = if network.wrap == Wrap::Ip && flow.agent != Agent::Udp { 0 } else { 9899 };
            plan.hosts.push(HostPlan { name: name("sender"), host: sender, port });
            plan.hosts.push(HostPlan { name: name("receiver"), host: receiver, port });
            plan.paths.extend(flow.paths.iter().map(|links| PathPlan { from, to: from + 1, links: links.clone() }));
            let extra =
                if flow.agent == Agent::Live { flow.live.lead + flow.live.sender.latency } else { Duration::ZERO };
            plan.limit = plan.limit.max(Instant::ZERO + start + flow.traffic.warmup + run.duration + extra + SLACK);
        }
        plan
    }
}

impl Plan {
    /// The links of the scenario with the delays drawn for this run.
    pub(crate) fn links(run: &Run<'_>) -> Vec<LinkSpec> {
        let rng = Rng::from_seed(run.seed);
        let vary = |mut link: LinkSpec| {
            let mut draw = rng.stream(&format!("delay of {}", link.name));
            let factor = 1.0 + run.point.network.vary_delay * (2.0 * draw.f64() - 1.0);
            link.there.delay = link.there.delay.mul_f64(factor);
            link.back.delay = link.back.delay.mul_f64(factor);
            link
        };
        run.point.links.iter().cloned().map(vary).collect()
    }
}

/// What a link did in each direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkDone {
    /// Its name.
    pub name: String,
    /// From the first host of a path to the second.
    pub there: LinkStats,
    /// And back.
    pub back: LinkStats,
    /// Both at the time that [`Plan::warm`] says; nothing without, and in real time.
    pub before: [LinkStats; 2],
}

/// A run that is over.
#[derive(Debug)]
pub struct Done<'a> {
    /// The hosts with what they measured.
    pub hosts: Vec<(&'a str, &'a Host)>,
    /// The links.
    pub links: Vec<LinkDone>,
}

impl Done<'_> {
    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|(known, _)| *known == name).map(|&(_, host)| host)
    }

    /// The host that sends for this flow.
    pub fn sender(&self, flow: &str) -> Option<&Host> {
        self.host(&format!("{flow}.sender"))
    }

    /// The host that this flow goes to.
    pub fn receiver(&self, flow: &str) -> Option<&Host> {
        self.host(&format!("{flow}.receiver"))
    }
}
