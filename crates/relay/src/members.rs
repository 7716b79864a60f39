//! Who is at the relay, and which circuits they make.

use crate::wire::{Circuit, Leg, Side, Tag};
use braidcast_core::{Holder, Instant, Rng, Route};
use std::collections::BTreeMap;

/// Members at most: the part of a tag that says which place is 16 bits.
pub(crate) const MOST: usize = 1 << 16;
/// Legs of one side of a circuit.
pub(crate) const MOST_LEGS: usize = 64;

/// Who pays for a circuit: by its name in a list, else by its host.
pub(crate) type Payer = Holder<String>;

/// An address that has proved itself, and its place in a circuit.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) tag: Tag,
    pub(crate) route: Route,
    pub(crate) circuit: Circuit,
    pub(crate) side: Side,
    pub(crate) leg: Leg,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    /// Nobody is told where it is.
    pub(crate) hidden: bool,
    pub(crate) heard: Instant,
}

/// Two sides, and who pays for what they send.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) payer: Payer,
    /// Places of the members of each side; by side, then in the order in which they came.
    members: [Vec<u16>; 2],
}

/// Why a member is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotTaken {
    Full,
    Replaced,
}

/// All members by their places, and all circuits.
#[derive(Debug)]
pub(crate) struct Members {
    places: Vec<Option<Member>>,
    /// Places that are free.
    free: Vec<u16>,
    circuits: BTreeMap<Circuit, Pair>,
    /// How many circuits each pays for.
    paid: BTreeMap<Payer, usize>,
    most: usize,
    rng: Rng,
}

impl Members {
    pub(crate) fn new(most: usize, rng: Rng) -> Self {
        let (circuits, paid) = (BTreeMap::new(), BTreeMap::new());
        Self { places: Vec::new(), free: Vec::new(), circuits, paid, most: most.min(MOST), rng }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many circuits there are.
    pub(crate) fn circuits(&self) -> usize {
        self.circuits.len()
    }

    /// How many circuits `payer` pays for.
    pub(crate) fn paid_by(&self, payer: &Payer) -> usize {
        self.paid.get(payer).copied().unwrap_or_default()
    }

    pub(crate) fn pair(&self, circuit: Circuit) -> Option<&Pair> {
        self.circuits.get(&circuit)
    }

    /// The member with this tag, if it is at `route`.
    pub(crate) fn at(&mut self, tag: Tag, route: Route) -> Option<&mut Member> {
        let member = self.places.get_mut(place_of(tag))?.as_mut()?;
        (member.tag == tag && member.route == route).then_some(member)
    }

    /// The one that `leg` of the side opposite `from` is.
    pub(crate) fn opposite(&self, circuit: Circuit, from: Side, leg: Leg) -> Option<&Member> {
        let pair = self.circuits.get(&circuit)?;
        let mut all = pair.members[from.other() as usize].iter().filter_map(|place| self.get(*place));
        all.find(|member| member.leg == leg)
    }

    /// Members of the side opposite `from`, `most` of them at most.
    pub(crate) fn all_opposite(&self, circuit: Circuit, from: Side, most: usize) -> Vec<Member> {
        let places = self.circuits.get(&circuit).map_or(&[][..], |pair| &pair.members[from.other() as usize]);
        places.iter().filter_map(|place| self.get(*place)).take(most).cloned().collect()
    }

    fn get(&self, place: u16) -> Option<&Member> {
        self.places.get(usize::from(place))?.as_ref()
    }

    /// Takes a member in, or again at another address, and gives it a tag. Whoever had its leg before
    /// makes room if it came earlier.
    pub(crate) fn take(&mut self, member: Member, payer: Payer) -> Result<Tag, NotTaken> {
        let Member { circuit, side, leg, .. } = member;
        if let Some(before) = self.opposite(circuit, side.other(), leg).cloned() {
            if before.number == member.number {
                let Some(place) = self.places.get_mut(place_of(before.tag)) else { return Err(NotTaken::Full) };
                *place = Some(Member { tag: before.tag, ..member });
                return Ok(before.tag);
            }
            if before.epoch > member.epoch {
                return Err(NotTaken::Replaced);
            }
            self.remove(before.tag);
        }
        let legs = self.circuits.get(&circuit).map_or(0, |pair| pair.members[side as usize].len());
        if legs >= MOST_LEGS || self.len() >= self.most {
            return Err(NotTaken::Full);
        }
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.places.push(None);
                u16::try_from(self.places.len() - 1).map_err(|_| NotTaken::Full)?
            }
        };
        let tag = Tag::new((self.rng.u64() << 16) | u64::from(place));
        self.places[usize::from(place)] = Some(Member { tag, ..member });
        let paid = &mut self.paid;
        let pair = self.circuits.entry(circuit).or_insert_with(|| {
            *paid.entry(payer.clone()).or_default() += 1;
            Pair { payer, members: Default::default() }
        });
        pair.members[side as usize].push(place);
        Ok(tag)
    }

    /// Forgets a member; a circuit without an owner is none any more.
    pub(crate) fn remove(&mut self, tag: Tag) {
        let place = place_of(tag);
        let Some(member) = self.places.get_mut(place).and_then(|it| it.take_if(|it| it.tag == tag)) else { return };
        self.free.push(place as u16);
        if let Some(pair) = self.circuits.get_mut(&member.circuit) {
            pair.members[member.side as usize].retain(|it| usize::from(*it) != place);
            if pair.members.iter().all(Vec::is_empty) {
                if let Some(paid) = self.paid.get_mut(&pair.payer) {
                    *paid -= 1;
                    if *paid == 0 {
                        self.paid.remove(&pair.payer);
                    }
                }
                self.circuits.remove(&member.circuit);
            }
        }
    }

    /// Returns `true` if the circuit has an owner now.
    pub(crate) fn is_open(&self, circuit: Circuit) -> bool {
        self.circuits.get(&circuit).is_some_and(|pair| !pair.members[Side::Owner as usize].is_empty())
    }

    /// Forgets who has not been heard since `before`, and who `keep` refuses. Returns how many.
    pub(crate) fn retain(&mut self, before: Instant, keep: impl Fn(&Payer) -> bool) -> usize {
        let is_over = |member: &&Member| {
            member.heard < before || self.circuits.get(&member.circuit).is_none_or(|pair| !keep(&pair.payer))
        };
        let over: Vec<Tag> = self.places.iter().flatten().filter(is_over).map(|member| member.tag).collect();
        over.iter().for_each(|tag| self.remove(*tag));
        over.len()
    }
}

fn place_of(tag: Tag) -> usize {
    (tag.bits() & 0xffff) as usize
}
