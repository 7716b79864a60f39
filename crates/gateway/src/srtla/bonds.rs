//! Groups of links, and who belongs to which.

use super::wire::{ACKNOWLEDGED, ID, Packet, write_ack};
use braidcast_core::{Instant, Rng};
use core::time::Duration;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Groups at a time.
const GROUPS: usize = 256;
/// Links of one group.
const LINKS: usize = 16;
/// Silence after which a link is forgotten. Senders take 5 s.
const SILENT: Duration = Duration::from_secs(10);
/// Links that were heard within this get acknowledgements.
const ALIVE: Duration = Duration::from_secs(4);
/// How long an identifier is good before its first link joins, and the one before it.
const MINUTE: u64 = 60_000_000_000;
/// Answers that wait to leave.
const ANSWERS: usize = 256;
/// Buffers of answers that are kept for the next ones.
const SPARE: usize = 16;
/// A step of the registration is answered again after this time, if its sender has not gone on: senders wait one to
/// five seconds before they say anything again. It is more than the round trip of most.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is answered again. With all answers at most three times the bytes of the question are sent there, as
/// RFC 9000 §8.1 allows to addresses that are not known yet.
const REPEATS: u8 = 2;
/// Silence after which a link may be down for its sender too, which takes 4 s. Links without media say that they are
/// there each second.
const QUIET: Duration = Duration::from_secs(3);
/// Such a link is told so often that it is registered: a sender that hears it sends over the link at once, and does not
/// wait until it would ask again.
const RECALL: Duration = Duration::from_millis(250);

/// How a link goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkReport {
    /// Where its packets come from.
    pub remote: SocketAddr,
    /// Data packets that came over it.
    pub packets: u64,
    /// Bytes of all that came over it.
    pub bytes: u64,
    /// When it was heard last.
    pub heard: Instant,
}

struct Link {
    report: LinkReport,
    /// Numbers of data packets that are to be acknowledged.
    came: Vec<u32>,
}

struct Group {
    id: Box<[u8; ID]>,
    links: Vec<Link>,
    heard: Instant,
    /// When all its links were quiet and were told that they are registered.
    recalled: Option<Instant>,
    /// A link of it has joined another group since a link last joined it: its sender began anew.
    left: bool,
    /// A packet of SRT has come.
    used: bool,
}

/// An answer to a step of the registration, to be said again.
struct Repeat {
    at: Instant,
    /// When it was said first.
    said: Instant,
    left: u8,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// All groups.
///
/// To SRT each group is one remote address, its alias: one of the block for nobody (RFC 6666).
pub struct Bonds {
    secret: [u8; 20],
    groups: BTreeMap<SocketAddr, Group>,
    /// The group of each link.
    members: BTreeMap<SocketAddr, SocketAddr>,
    count: u64,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Buffers of answers that have left.
    spare: Vec<Vec<u8>>,
    /// In the order of their times.
    repeats: VecDeque<Repeat>,
    tend_at: Option<Instant>,
}

impl Bonds {
    /// Returns `true` if it is the alias of a group.
    pub fn is_alias(address: SocketAddr) -> bool {
        matches!(address.ip(), IpAddr::V6(ip) if ip.segments()[..4] == [0x0100, 0, 0, 0])
    }

    /// No groups yet.
    pub fn new(rng: &mut Rng) -> Self {
        let mut secret = [0; 20];
        rng.fill(&mut secret);
        Self {
            secret,
            groups: BTreeMap::new(),
            members: BTreeMap::new(),
            count: 0,
            answers: VecDeque::new(),
            spare: Vec::new(),
            repeats: VecDeque::new(),
            tend_at: None,
        }
    }

    /// A datagram came. Returns the alias of its group if it is a packet of SRT.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) -> Option<SocketAddr> {
        match Packet::parse(bytes)? {
            Packet::Srt(number) => return self.handle_srt(now, from, number, bytes.len()),
            Packet::KeepAlive(bytes) => {
                let bytes = bytes.to_vec();
                if self.hear(now, from, bytes.len(), false).is_some() {
                    self.answer(from, bytes);
                }
            }
            Packet::Register1(id) => {
                let id = self.identifier(id, now.as_nanos() / MINUTE);
                self.say_again(now, from, &Packet::Register2(&id));
            }
            Packet::Register2(id) => self.join(now, from, id),
            // What only receivers say.
            Packet::Register3 | Packet::Error | Packet::NoGroup | Packet::Ack(_) => {}
        }
        None
    }

    fn say(&mut self, to: SocketAddr, packet: &Packet<'_>) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        packet.write(&mut bytes);
        self.answer(to, bytes);
    }

    /// Says it now, and again if the sender does not go on.
    fn say_again(&mut self, now: Instant, to: SocketAddr, packet: &Packet<'_>) {
        self.say(to, packet);
        self.repeats.retain(|repeat| repeat.to != to);
        if self.repeats.len() < ANSWERS {
            let mut bytes = Vec::new();
            packet.write(&mut bytes);
            self.repeats.push_back(Repeat { at: now + AGAIN, said: now, left: REPEATS, to, bytes });
        }
    }

    fn answer(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.answers.len() < ANSWERS {
            self.answers.push_back((to, bytes));
        }
    }

    /// The sender's half of an identifier, and ours.
    fn identifier(&self, id: &[u8; ID], minute: u64) -> [u8; ID] {
        let mut whole = *id;
        let (theirs, ours) = whole.split_at_mut(ID / 2);
        for (block, bytes) in (0_u8..).zip(ours.chunks_mut(20)) {
            let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(&self.secret) else { continue };
            mac.update(theirs);
            mac.update(&minute.to_be_bytes());
            mac.update(&[block]);
            let code = mac.finalize().into_bytes();
            bytes.copy_from_slice(&code[..bytes.len()]);
        }
        whole
    }

    fn join(&mut self, now: Instant, from: SocketAddr, id: &[u8; ID]) {
        let there = self.groups.iter().find(|(_, group)| *group.id == *id).map(|(alias, _)| *alias);
        let minute = now.as_nanos() / MINUTE;
        let ours = |minute| self.identifier(id, minute) == *id;
        if there.is_none() && !ours(minute) && !minute.checked_sub(1).is_some_and(ours) {
            return self.say_again(now, from, &Packet::NoGroup);
        }
        let alias = match there.or_else(|| self.begins_anew(now, from, id)) {
            Some(alias) => alias,
            None if self.groups.len() >= GROUPS && !self.make_room() => return self.say(from, &Packet::Error),
            None => {
                self.count += 1;
                // 100::/64 leads nowhere.
                let alias = SocketAddr::new(Ipv6Addr::from_bits(0x0100 << 112 | u128::from(self.count)).into(), 1);
                let group = Group {
                    id: Box::new(*id),
                    links: Vec::new(),
                    heard: now,
                    recalled: None,
                    left: false,
                    used: false,
                };
                self.groups.insert(alias, group);
                alias
            }
        };
        if let Some(other) = self.members.get(&from).copied()
            && other != alias
        {
            self.leave(from, other);
        }
        let Some(group) = self.groups.get_mut(&alias) else { return };
        group.left = false;
        if !group.links.iter().any(|link| link.report.remote == from) {
            if group.links.len() >= LINKS {
                return self.say(from, &Packet::Error);
            }
            let report = LinkReport { remote: from, packets: 0, bytes: 0, heard: now };
            group.links.push(Link { report, came: Vec::with_capacity(ACKNOWLEDGED) });
            self.members.insert(from, alias);
        }
        self.hear(now, from, 0, false);
        self.tend_at.get_or_insert(now + QUIET);
        self.say_again(now, from, &Packet::Register3);
    }

    /// A sender that came back over a link of a group that was recalled, and asks for a group of its own. It may have
    /// taken the recall for its registration and called SRT by it, so that the group is its own: with another alias SRT
    /// would not know it again. Returns the alias.
    fn begins_anew(&mut self, now: Instant, from: SocketAddr, id: &[u8; ID]) -> Option<SocketAddr> {
        let alias = *self.members.get(&from)?;
        let group = self.groups.get_mut(&alias)?;
        // Nobody takes a group from who is heard.
        group.recalled.filter(|at| now - *at < ALIVE)?;
        *group.id = *id;
        Some(alias)
    }

    /// Forgets a group that never carried anything; `false` if there is none.
    fn make_room(&mut self) -> bool {
        let idle = self.groups.iter().filter(|(_, group)| !group.used).min_by_key(|(_, group)| group.heard);
        let Some(alias) = idle.map(|(alias, _)| *alias) else { return false };
        self.groups.remove(&alias);
        self.members.retain(|_, of| *of != alias);
        true
    }

    fn leave(&mut self, link: SocketAddr, alias: SocketAddr) {
        self.members.remove(&link);
        if let Some(group) = self.groups.get_mut(&alias) {
            group.links.retain(|it| it.report.remote != link);
            group.left = true;
        }
    }

    /// The link and the alias of its group, if it is one. `is_srt`: a packet of SRT came over it.
    fn hear(&mut self, now: Instant, from: SocketAddr, len: usize, is_srt: bool) -> Option<(SocketAddr, &mut Link)> {
        let alias = *self.members.get(&from)?;
        let group = self.groups.get_mut(&alias)?;
        group.heard = now;
        group.used |= is_srt;
        let at = group.links.iter().position(|link| link.report.remote == from)?;
        // The one that was heard last is the last one.
        let link = group.links.remove(at);
        group.links.push(link);
        let link = group.links.last_mut()?;
        link.report.heard = now;
        link.report.bytes += len as u64;
        Some((alias, link))
    }

    fn handle_srt(&mut self, now: Instant, from: SocketAddr, number: Option<u32>, len: usize) -> Option<SocketAddr> {
        let mut ack = self.spare.pop().unwrap_or_default();
        let heard = self.hear(now, from, len, true);
        let alias = heard.map(|(alias, link)| {
            if let Some(number) = number {
                link.report.packets += 1;
                link.came.push(number);
                if link.came.len() == ACKNOWLEDGED {
                    write_ack(&mut ack, &link.came);
                    link.came.clear();
                }
            }
            alias
        });
        if ack.is_empty() {
            self.spare.push(ack);
        } else {
            self.answer(from, ack);
        }
        alias
    }

    /// The links that a packet of SRT for `alias` goes over: an acknowledgement over all that live, anything else over
    /// the one that was heard last.
    pub fn routes(&self, now: Instant, alias: SocketAddr, packet: &[u8]) -> impl Iterator<Item = SocketAddr> {
        let ack = packet.starts_with(&[0x80, 0x02]);
        let links = self.groups.get(&alias).map_or(&[][..], |group| &group.links);
        links
            .iter()
            .rev()
            .enumerate()
            .filter(move |(nth, link)| *nth == 0 || (ack && now - link.report.heard < ALIVE))
            .map(|(_, link)| link.report.remote)
    }

    /// Appends the next answer to `buf`; returns where it goes.
    pub fn poll_answer(&mut self, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, mut answer) = self.answers.pop_front()?;
        buf.extend_from_slice(&answer);
        if self.spare.len() < SPARE {
            answer.clear();
            self.spare.push(answer);
        }
        Some(to)
    }

    /// When to [`tend`](Self::tend) them.
    pub fn timeout(&self) -> Option<Instant> {
        Instant::first_of([self.tend_at, self.repeats.front().map(|repeat| repeat.at)])
    }

    /// Repeats answers that may be lost, and recalls links that are quiet; forgets those that are silent, and groups
    /// without links.
    pub fn tend(&mut self, now: Instant) {
        self.repeat(now);
        if self.tend_at.is_none_or(|at| at > now) {
            return;
        }
        let mut quiet = Vec::new();
        for group in self.groups.values_mut() {
            group.links.retain(|link| now - link.report.heard < SILENT);
            let is_quiet = |link: &&Link| now - link.report.heard >= QUIET;
            // Its sender, which began anew and whose registration was lost, would take a recall for
            // the answer to that, and send over this link into a group that it has left.
            let recalls = |link: &&Link| !group.left && is_quiet(link);
            quiet.extend(group.links.iter().filter(recalls).map(|link| link.report.remote));
            if group.links.iter().all(|link| is_quiet(&link)) {
                group.recalled = Some(now);
            }
        }
        quiet.into_iter().for_each(|link| self.say(link, &Packet::Register3));
        self.groups.retain(|_, group| !group.links.is_empty());
        let groups = &self.groups;
        self.members.retain(|link, alias| {
            groups.get(alias).is_some_and(|group| group.links.iter().any(|it| it.report.remote == *link))
        });
        self.tend_at = (!self.groups.is_empty()).then(|| now + RECALL);
    }

    fn repeat(&mut self, now: Instant) {
        while self.repeats.front().is_some_and(|repeat| repeat.at <= now) {
            let Some(repeat) = self.repeats.pop_front() else { break };
            if self.heard(repeat.to).is_some_and(|heard| heard > repeat.said) {
                continue;
            }
            self.answer(repeat.to, repeat.bytes.clone());
            if repeat.left > 1 {
                self.repeats.push_back(Repeat { at: now + AGAIN, left: repeat.left - 1, ..repeat });
            }
        }
    }

    /// When a link was heard last.
    fn heard(&self, link: SocketAddr) -> Option<Instant> {
        let group = self.groups.get(self.members.get(&link)?)?;
        group.links.iter().find(|it| it.report.remote == link).map(|it| it.report.heard)
    }

    /// How the links of a group go, by address.
    pub fn links(&self, alias: SocketAddr) -> Vec<LinkReport> {
        let links = self.groups.get(&alias).map_or(&[][..], |group| &group.links);
        let mut reports: Vec<LinkReport> = links.iter().map(|link| link.report).collect();
        reports.sort_by_key(|report| report.remote);
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(n: u16) -> SocketAddr {
        ([192, 0, 2, 1], n).into()
    }

    fn bonds() -> Bonds {
        Bonds::new(&mut Rng::from_seed(1))
    }

    /// The next answer, and where it goes.
    fn answer(bonds: &mut Bonds) -> Option<(SocketAddr, Vec<u8>)> {
        let mut answer = Vec::new();
        bonds.poll_answer(&mut answer).map(|to| (to, answer))
    }

    fn say(bonds: &mut Bonds, at: u64, from: u16, packet: &Packet<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.write(&mut bytes);
        assert_eq!(bonds.handle(Instant::from_millis(at), addr(from), &bytes), None);
        let (to, answer) = answer(bonds).unwrap();
        assert!(to == addr(from) && answer.len() <= bytes.len());
        answer
    }

    /// Registers a group over these links.
    fn group(bonds: &mut Bonds, at: u64, mark: u16, links: &[u16]) -> [u8; ID] {
        let asked: [u8; ID] = std::array::from_fn(|n| mark.to_be_bytes()[n % 2]);
        let groups = bonds.groups.len();
        let answer = say(bonds, at, links[0], &Packet::Register1(&asked));
        let Some(Packet::Register2(id)) = Packet::parse(&answer) else { panic!("{answer:?}") };
        assert_eq!((&id[..ID / 2], bonds.groups.len()), (&asked[..ID / 2], groups), "the first step leaves nothing");
        for link in links {
            assert_eq!(say(bonds, at, *link, &Packet::Register2(id)), [0x92, 0x02]);
        }
        *id
    }

    fn data(number: u32) -> Vec<u8> {
        [&number.to_be_bytes()[..], &[0; 20]].concat()
    }

    #[test]
    fn links_of_a_group_are_one_address_and_are_told_what_came_over_each() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 1, &[1, 2]);
        let now = Instant::from_millis(10);
        let mut aliases = Vec::new();
        for number in 0..25_u32 {
            aliases.push(bonds.handle(now, addr(1 + (number % 2) as u16), &data(number)).unwrap());
        }
        aliases.dedup();
        assert!(aliases.len() == 1 && Bonds::is_alias(aliases[0]) && !Bonds::is_alias(addr(1)));
        let acks: Vec<_> = std::iter::from_fn(|| answer(&mut bonds)).collect();
        let [(first, ack), (second, _)] = &acks[..] else { panic!("{acks:?}") };
        assert_eq!((*first, *second), (addr(1), addr(2)));
        let Some(Packet::Ack(acknowledged)) = Packet::parse(ack) else { panic!("{ack:?}") };
        assert!(acknowledged.numbers().eq((0..20).step_by(2)));
        let alias = aliases[0];
        let routes = |packet: &[u8]| bonds.routes(now, alias, packet).collect::<Vec<_>>();
        assert_eq!(routes(&[0x80, 2, 0, 0]), [addr(1), addr(2)]);
        assert_eq!(routes(&[0x80, 3, 0, 0]), [addr(1)]);
        assert_eq!(bonds.links(alias).iter().map(|link| link.packets).collect::<Vec<_>>(), [13, 12]);
    }

    /// What is said by `at`, to whom.
    fn tend(bonds: &mut Bonds, at: u64) -> Vec<(SocketAddr, Vec<u8>)> {
        bonds.tend(Instant::from_millis(at));
        std::iter::from_fn(|| answer(bonds)).collect()
    }

    #[test]
    fn a_step_that_is_not_followed_by_the_next_is_answered_twice_more() {
        let mut bonds = bonds();
        let no_group = say(&mut bonds, 0, 1, &Packet::Register2(&[3; ID]));
        assert_eq!((bonds.timeout(), tend(&mut bonds, 249)), (Some(Instant::from_millis(250)), vec![]));
        assert_eq!(tend(&mut bonds, 250), [(addr(1), no_group.clone())]);
        assert_eq!(tend(&mut bonds, 500), [(addr(1), no_group)]);
        assert_eq!((bonds.timeout(), tend(&mut bonds, 900)), (None, vec![]));
        // A later step takes the place of one before.
        say(&mut bonds, 1000, 1, &Packet::Register2(&[3; ID]));
        let answer = say(&mut bonds, 1100, 1, &Packet::Register1(&[3; ID]));
        assert_eq!(tend(&mut bonds, 1349), []);
        assert_eq!(tend(&mut bonds, 1350), [(addr(1), answer.clone())]);
        let Some(Packet::Register2(id)) = Packet::parse(&answer) else { panic!("{answer:?}") };
        let joined = say(&mut bonds, 2000, 1, &Packet::Register2(id));
        assert_eq!(tend(&mut bonds, 2250), [(addr(1), joined.clone())]);
        // What comes over the link shows that its sender knows.
        bonds.handle(Instant::from_millis(2400), addr(1), &data(1)).unwrap();
        assert_eq!(tend(&mut bonds, 2500), []);
        // Strangers fill no memory with it.
        for n in 0..1000 {
            say(&mut bonds, 3000, n, &Packet::Register1(&[3; ID]));
        }
        assert_eq!(bonds.repeats.len(), ANSWERS);
    }

    #[test]
    fn a_link_that_is_quiet_is_told_that_it_is_registered() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 1, &[1, 2]);
        bonds.handle(Instant::from_millis(2000), addr(1), &data(1)).unwrap();
        tend(&mut bonds, 250);
        assert_eq!(tend(&mut bonds, 2999), [(addr(2), vec![0x92, 0x02])], "the second repeat of the registration");
        assert_eq!(tend(&mut bonds, 3000), [(addr(2), vec![0x92, 0x02])]);
        assert_eq!((bonds.timeout(), tend(&mut bonds, 3249)), (Some(Instant::from_millis(3250)), vec![]));
        assert_eq!(tend(&mut bonds, 3250), [(addr(2), vec![0x92, 0x02])]);
        bonds.handle(Instant::from_millis(3300), addr(2), &data(2)).unwrap();
        assert_eq!(tend(&mut bonds, 3500), []);
        // Not for ever.
        let told = (14..100).flat_map(|quarter| tend(&mut bonds, quarter * 250)).filter(|it| it.0 == addr(2)).count();
        assert_eq!(told, 28);
    }

    #[test]
    fn links_that_their_sender_has_left_behind_are_not_recalled() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 1, &[1, 2]);
        bonds.handle(Instant::from_millis(100), addr(2), &data(1)).unwrap();
        // It begins anew, and what it says over its second link is lost.
        let id = group(&mut bonds, 2500, 2, &[1]);
        bonds.handle(Instant::from_millis(2600), addr(1), &data(1)).unwrap();
        assert_eq!((12..20).flat_map(|quarter| tend(&mut bonds, quarter * 250)).count(), 0);
        // It says so again, and the link is told from then on.
        assert_eq!(say(&mut bonds, 5000, 2, &Packet::Register2(&id)), [0x92, 0x02]);
        assert!((32..36).flat_map(|quarter| tend(&mut bonds, quarter * 250)).any(|(to, _)| to == addr(2)));
    }

    #[test]
    fn a_sender_that_is_recalled_and_asks_for_another_group_keeps_its_address() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 1, &[1, 2]);
        let comes =
            |bonds: &mut Bonds, at: u64, from: u16| bonds.handle(Instant::from_millis(at), addr(from), &data(1));
        let alias = comes(&mut bonds, 100, 1);
        // One that is heard over a link keeps its group from whoever registers over the other.
        comes(&mut bonds, 2900, 1);
        tend(&mut bonds, 3000);
        group(&mut bonds, 3100, 2, &[2]);
        let other = comes(&mut bonds, 3200, 2);
        assert!(alias.is_some() && other.is_some() && other != alias);
        // Both are silent, and the first one is recalled.
        tend(&mut bonds, 6000);
        comes(&mut bonds, 6100, 1);
        let id = group(&mut bonds, 6200, 3, &[1]);
        assert_eq!((comes(&mut bonds, 6300, 1), bonds.groups.len()), (alias, 2));
        // Another link of it joins, and leaves the group that it had.
        assert_eq!(say(&mut bonds, 6300, 2, &Packet::Register2(&id)), [0x92, 0x02]);
        assert_eq!(comes(&mut bonds, 6400, 2), alias);
    }

    #[test]
    fn keep_alives_come_back_to_members_only() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 1, &[1]);
        let alive = [&[0x90, 0][..], &[5; 36]].concat();
        assert_eq!(bonds.handle(Instant::ZERO, addr(9), &alive), None);
        assert!(answer(&mut bonds).is_none());
        assert_eq!(bonds.handle(Instant::ZERO, addr(9), &data(1)), None);
        assert_eq!(say(&mut bonds, 5, 1, &Packet::KeepAlive(&alive)), alive);
    }

    #[test]
    fn who_is_not_known_is_told_and_who_is_silent_is_forgotten() {
        let mut bonds = bonds();
        assert_eq!(say(&mut bonds, 0, 1, &Packet::Register2(&[3; ID])), [0x92, 0x11]);
        let id = group(&mut bonds, 0, 1, &[1, 2]);
        bonds.handle(Instant::from_millis(9000), addr(1), &data(1)).unwrap();
        tend(&mut bonds, 9999);
        assert_eq!((bonds.members.len(), bonds.groups.len()), (2, 1));
        tend(&mut bonds, 10_249);
        assert_eq!((bonds.members.len(), bonds.groups.len()), (1, 1));
        // It comes back, into the same group, however old its identifier is.
        assert_eq!(say(&mut bonds, 18_000, 2, &Packet::Register2(&id)), [0x92, 0x02]);
        for at in [40_000, 40_250, 40_500] {
            tend(&mut bonds, at);
        }
        assert_eq!((bonds.members.len(), bonds.groups.len(), bonds.timeout()), (0, 0, None));
        assert_eq!(say(&mut bonds, 200_000, 2, &Packet::Register2(&id)), [0x92, 0x11]);
    }

    #[test]
    fn strangers_are_bounded_and_push_out_nobody_who_is_used() {
        let mut bonds = bonds();
        group(&mut bonds, 0, 0, &[1]);
        bonds.handle(Instant::ZERO, addr(1), &data(1)).unwrap();
        for n in 0..600_u16 {
            group(&mut bonds, u64::from(n), 100 + n, &[1000 + n]);
        }
        assert!(bonds.groups.len() <= GROUPS && bonds.members.len() <= GROUPS);
        assert!(bonds.handle(Instant::ZERO, addr(1), &data(2)).is_some());
        let id = group(&mut bonds, 0, 9, &[40_000]);
        for link in 1..LINKS as u16 {
            assert_eq!(say(&mut bonds, 0, 40_000 + link, &Packet::Register2(&id)), [0x92, 0x02]);
        }
        assert_eq!(say(&mut bonds, 0, 50_000, &Packet::Register2(&id)), [0x92, 0x10]);
    }
}
