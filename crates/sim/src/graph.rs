//! Topologies by name: hosts with interfaces, routers, and links between them.

use crate::link::LinkModel;
use crate::net::Network;
use crate::topology::{Duplex, LinkId, NodeId};
use braidcast_core::Machine;
use core::fmt;
use std::collections::{BTreeMap, VecDeque};

/// A vertex: a router, or one interface of a host.
#[derive(Clone, Debug)]
struct Vertex {
    name: String,
    /// Host and interface; `None` for a router.
    interface: Option<(usize, u16)>,
    /// Links that begin here, in the order in which they were added.
    out: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Edge {
    name: String,
    to: usize,
    model: LinkModel,
}

/// A graph of named hosts, routers and links, from which routes follow.
///
/// A router has a name. A host is named too, and its interfaces are `name/0`, `name/1` and so on; the name alone stands
/// for its first. Links join routers and interfaces, and hosts forward nothing. Packets between two interfaces
/// take the route of the fewest links, of equal ones that whose links were added first, unless
/// [`pin`](Self::pin) says another one.
///
/// ```
/// use braidcast_sim::{Duplex, LinkModel, Network, Topology, testing::Pinger};
/// use core::time::Duration;
///
/// let mut topology = Topology::default();
/// topology.host("a", 1)?;
/// topology.router("r")?;
/// topology.host("b", 1)?;
/// topology.connect("a", "r", Duplex::both(LinkModel::default()))?;
/// topology.link("slow", "r", "b", LinkModel::wire(1_000_000, Duration::from_millis(20)))?;
/// topology.link("back", "b", "a", LinkModel::default())?;
///
/// let mut net = Network::new(1);
/// let a = net.add(Pinger::to(["10.0.1.1:9"], Duration::from_millis(100)), ["10.0.0.1:9"]);
/// let b = net.add(Pinger::answering(), ["10.0.1.1:9"]);
/// let links = topology.wire(&mut net, &[("a", a), ("b", b)])?;
/// net.run_for(Duration::from_secs(1));
/// assert_eq!(net.link(links["slow"]).stats().delivered, 10);
/// # Ok::<(), braidcast_sim::TopologyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Topology {
    vertices: Vec<Vertex>,
    /// Vertices by name.
    by_name: BTreeMap<String, usize>,
    /// Names and vertices of hosts' interfaces, by host.
    hosts: Vec<(String, Vec<usize>)>,
    edges: Vec<Edge>,
    edge_by_name: BTreeMap<String, usize>,
    /// Edges of pinned routes, by first and last vertex.
    pinned: BTreeMap<(usize, usize), Vec<usize>>,
}

/// Building it.
impl Topology {
    /// Adds a host with `interfaces` interfaces, at least one.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn host(&mut self, name: &str, interfaces: u16) -> Result<(), TopologyError> {
        let mut ids = Vec::new();
        for i in 0..interfaces.max(1) {
            ids.push(self.vertex(format!("{name}/{i}"), Some((self.hosts.len(), i)))?);
        }
        self.claim(name, ids[0])?;
        self.hosts.push((name.to_owned(), ids));
        Ok(())
    }

    /// Adds a router.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn router(&mut self, name: &str) -> Result<(), TopologyError> {
        self.vertex(name.to_owned(), None).map(drop)
    }

    /// Adds a link called `name` in one direction.
    ///
    /// # Errors
    /// If the name is taken, or there is no such end.
    pub fn link(&mut self, name: &str, from: &str, to: &str, model: LinkModel) -> Result<(), TopologyError> {
        let (start, to) = (self.find(from)?, self.find(to)?);
        if self.edge_by_name.insert(name.to_owned(), self.edges.len()).is_some() {
            return Err(TopologyError::NameTaken(name.to_owned()));
        }
        self.vertices[start].out.push(self.edges.len());
        self.edges.push(Edge { name: name.to_owned(), to, model });
        Ok(())
    }

    /// Adds a link in each direction, called `a>b` and `b>a` after its ends.
    ///
    /// # Errors
    /// If there is such a link already, there is no such end, or `duplex` has a NAT: routes by name know none
    /// ([`Network::connect`] does).
    pub fn connect(&mut self, a: &str, b: &str, duplex: Duplex) -> Result<(), TopologyError> {
        if duplex.nat.is_some() {
            return Err(TopologyError::Nat { a: a.to_owned(), b: b.to_owned() });
        }
        self.link(&format!("{a}>{b}"), a, b, duplex.there)?;
        self.link(&format!("{b}>{a}"), b, a, duplex.back)
    }

    /// Says which way packets go from the first of `names`, an interface, to the last, another one.
    ///
    /// # Errors
    /// If a name is unknown, an end is not a host's, two neighbours have no link (of several the first is taken),
    /// a name comes twice, or a host between would have to forward.
    pub fn pin(&mut self, names: &[&str]) -> Result<(), TopologyError> {
        let vertices = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>, _>>()?;
        let (Some(&from), Some(&to)) = (vertices.first(), vertices.last()) else { return Ok(()) };
        let mut edges = Vec::new();
        for (i, pair) in vertices.windows(2).enumerate() {
            if vertices[..=i].contains(&pair[1]) {
                return Err(TopologyError::Loop { at: names[i + 1].to_owned(), route: owned(names) });
            }
            let edge = self.vertices[pair[0]].out.iter().find(|edge| self.edges[**edge].to == pair[1]);
            edges.push(
                *edge
                    .ok_or_else(|| TopologyError::NoLink { from: names[i].to_owned(), to: names[i + 1].to_owned() })?,
            );
        }
        for (i, vertex) in vertices.iter().enumerate() {
            let is_end = i == 0 || i == vertices.len() - 1;
            if self.vertices[*vertex].interface.is_some() != is_end {
                let name = names[i].to_owned();
                return Err(if is_end { TopologyError::NotAHost(name) } else { TopologyError::Forwards(name) });
            }
        }
        self.pinned.insert((from, to), edges);
        Ok(())
    }

    fn vertex(&mut self, name: String, interface: Option<(usize, u16)>) -> Result<usize, TopologyError> {
        let id = self.vertices.len();
        self.claim(&name, id)?;
        self.vertices.push(Vertex { name, interface, out: Vec::new() });
        Ok(id)
    }

    fn claim(&mut self, name: &str, vertex: usize) -> Result<(), TopologyError> {
        if self.by_name.contains_key(name) {
            return Err(TopologyError::NameTaken(name.to_owned()));
        }
        self.by_name.insert(name.to_owned(), vertex);
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, TopologyError> {
        self.by_name.get(name).copied().ok_or_else(|| TopologyError::Unknown {
            name: name.to_owned(),
            known: self.vertices.iter().map(|vertex| vertex.name.clone()).collect(),
        })
    }
}

/// Using it.
impl Topology {
    /// The names of the links that packets pass between two interfaces, in order.
    ///
    /// # Errors
    /// If a name is unknown or not a host's, or no route leads there.
    pub fn route(&self, from: &str, to: &str) -> Result<Vec<&str>, TopologyError> {
        let (start, end) = (self.find(from)?, self.find(to)?);
        for (name, vertex) in [(from, start), (to, end)] {
            if self.vertices[vertex].interface.is_none() {
                return Err(TopologyError::NotAHost(name.to_owned()));
            }
        }
        let edges = self.edges_between(&self.shortest(start), start, end);
        let edges = edges.ok_or_else(|| TopologyError::NoRoute { from: from.to_owned(), to: to.to_owned() })?;
        Ok(edges.iter().map(|edge| self.edges[*edge].name.as_str()).collect())
    }

    /// Adds all links to `net`, and routes from each interface to every one of other hosts that it reaches. `hosts`
    /// says which node is which host. Gives the links by name.
    ///
    /// # Errors
    /// If `hosts` lacks a host or has one too many, or a node has another number of addresses than its host has
    /// interfaces; then nothing was added.
    pub fn wire<M: Machine>(
        &self,
        net: &mut Network<M>,
        hosts: &[(&str, NodeId)],
    ) -> Result<BTreeMap<String, LinkId>, TopologyError> {
        let hosts: BTreeMap<&str, NodeId> = hosts.iter().copied().collect();
        if let Some(name) = hosts.keys().find(|name| !self.hosts.iter().any(|(host, _)| host == *name)) {
            return Err(TopologyError::NotAHost((*name).to_owned()));
        }
        let mut nodes = Vec::new();
        for (name, interfaces) in &self.hosts {
            let node = *hosts.get(name.as_str()).ok_or_else(|| TopologyError::NoNode(name.clone()))?;
            let (has, needs) = (net.interfaces(node), interfaces.len());
            if has != needs {
                return Err(TopologyError::Interfaces { host: name.clone(), has, needs });
            }
            nodes.push(node);
        }
        let links: Vec<LinkId> = self.edges.iter().map(|edge| net.add_link(edge.model.clone())).collect();
        let ends = |vertex: &Vertex| vertex.interface.map(|(host, interface)| (nodes[host], interface));
        for (start, from) in self.vertices.iter().enumerate() {
            let Some(from) = ends(from) else { continue };
            let tree = self.shortest(start);
            for (end, to) in self.vertices.iter().enumerate() {
                let Some(to) = ends(to).filter(|to| to.0 != from.0) else { continue };
                let Some(route) = self.edges_between(&tree, start, end) else { continue };
                let chain: Vec<LinkId> = route.iter().map(|edge| links[*edge]).collect();
                net.route(from, net.address(to), &chain, to, net.address(from));
            }
        }
        Ok(core::iter::zip(&self.edges, links).map(|(edge, link)| (edge.name.clone(), link)).collect())
    }

    /// Breadth first from `start`: by vertex, the edge by which it is reached first and the vertex before it.
    fn shortest(&self, start: usize) -> Vec<Option<(usize, usize)>> {
        let mut reached = vec![None; self.vertices.len()];
        let mut next = VecDeque::from([start]);
        while let Some(vertex) = next.pop_front() {
            if vertex != start && self.vertices[vertex].interface.is_some() {
                continue;
            }
            for &edge in &self.vertices[vertex].out {
                let to = self.edges[edge].to;
                if to != start && reached[to].is_none() {
                    reached[to] = Some((edge, vertex));
                    next.push_back(to);
                }
            }
        }
        reached
    }

    /// The edges of the route from `start`, whose tree of shortest routes is given, to `end`.
    fn edges_between(&self, tree: &[Option<(usize, usize)>], start: usize, end: usize) -> Option<Vec<usize>> {
        if let Some(pinned) = self.pinned.get(&(start, end)) {
            return Some(pinned.clone());
        }
        let mut edges = Vec::new();
        let mut at = end;
        while let Some((edge, before)) = tree[at] {
            edges.push(edge);
            at = before;
        }
        edges.reverse();
        (!edges.is_empty()).then_some(edges)
    }
}

/// The usual ones.
impl Topology {
    /// Two hosts, `a` and `b`, and disjoint paths between them: path i joins `a/i` and `b/i` by links `a/i>b/i` and
    /// `b/i>a/i`.
    ///
    /// # Errors
    /// If there is a path with a NAT.
    pub fn disjoint(paths: impl IntoIterator<Item = Duplex>) -> Result<Self, TopologyError> {
        let paths: Vec<Duplex> = paths.into_iter().collect();
        let mut topology = Self::default();
        topology.host("a", count(&paths))?;
        topology.host("b", count(&paths))?;
        for (i, path) in paths.into_iter().enumerate() {
            topology.connect(&format!("a/{i}"), &format!("b/{i}"), path)?;
        }
        Ok(topology)
    }

    /// Pairs of hosts over one bottleneck `left>right` and back: `a0`, `a1` … at router `left` and `b0`, `b1` … at
    /// router `right`, each on an access link of its own, those of pair i both like `access[i]`.
    ///
    /// # Errors
    /// If a link has a NAT.
    pub fn dumbbell(access: &[Duplex], bottleneck: Duplex) -> Result<Self, TopologyError> {
        let mut topology = Self::routers(bottleneck)?;
        for (i, link) in access.iter().enumerate() {
            for (host, router) in [(format!("a{i}"), "left"), (format!("b{i}"), "right")] {
                topology.host(&host, 1)?;
                topology.connect(&host, router, link.clone())?;
            }
        }
        Ok(topology)
    }

    /// Two hosts, `a` and `b`, whose paths share the bottleneck `left>right` and back: `a/i` reaches router `left` over
    /// `access[i]`, and from router `right` a perfect link leads to `b/i`.
    ///
    /// # Errors
    /// If a link has a NAT.
    pub fn shared_bottleneck(access: &[Duplex], bottleneck: Duplex) -> Result<Self, TopologyError> {
        let mut topology = Self::routers(bottleneck)?;
        topology.host("a", count(access))?;
        topology.host("b", count(access))?;
        for (i, link) in access.iter().enumerate() {
            topology.connect(&format!("a/{i}"), "left", link.clone())?;
            topology.connect("right", &format!("b/{i}"), Duplex::both(LinkModel::default()))?;
        }
        Ok(topology)
    }

    fn routers(bottleneck: Duplex) -> Result<Self, TopologyError> {
        let mut topology = Self::default();
        topology.router("left")?;
        topology.router("right")?;
        topology.connect("left", "right", bottleneck)?;
        Ok(topology)
    }
}

/// As many interfaces as paths, as far as they can be numbered.
fn count(paths: &[Duplex]) -> u16 {
    u16::try_from(paths.len()).unwrap_or(u16::MAX)
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What is wrong with a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TopologyError {
    /// A name was given twice.
    NameTaken(String),
    /// There is no such router or interface.
    Unknown {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// This is not a host.
    NotAHost(String),
    /// This host would have to forward packets.
    Forwards(String),
    /// No node was given for this host.
    NoNode(String),
    /// A node has another number of addresses than its host has interfaces.
    Interfaces {
        /// The host.
        host: String,
        /// Addresses of the node.
        has: usize,
        /// Interfaces of the host.
        needs: usize,
    },
    /// No link leads from one to the other.
    NoLink {
        /// From here.
        from: String,
        /// To here.
        to: String,
    },
    /// No chain of links leads from one to the other.
    NoRoute {
        /// From here.
        from: String,
        /// To here.
        to: String,
    },
    /// A route comes by the same place twice.
    Loop {
        /// Where.
        at: String,
        /// The route.
        route: Vec<String>,
    },
    /// A link between these has a NAT.
    Nat {
        /// One end.
        a: String,
        /// The other.
        b: String,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(f, "there are two of the name {name}; names are unique"),
            Self::Unknown { name, known } => write!(f, "there is no {name}; there is {}", known.join(", ")),
            Self::NotAHost(name) => write!(f, "{name} is not a host"),
            Self::Forwards(name) => write!(f, "{name} belongs to a host, and hosts do not forward; put a router there"),
            Self::NoNode(host) => write!(f, "no node was given for the host {host}"),
            Self::Interfaces { host, has, needs } => {
                write!(f, "the host {host} has {needs} interfaces, but its node has {has} addresses")
            }
            Self::NoLink { from, to } => write!(f, "no link leads from {from} to {to}"),
            Self::NoRoute { from, to } => write!(f, "no route leads from {from} to {to}"),
            Self::Loop { at, route } => write!(f, "the route {} comes to {at} twice", route.join(", ")),
            Self::Nat { a, b } => write!(f, "the link between {a} and {b} has a NAT, which topologies do not know"),
        }
    }
}

impl core::error::Error for TopologyError {}
