use super::table::{self, COUNT, Definition, Place, Rule, TABLE, number};
use crate::seq::Seq;
use crate::wire::option::{FeatureOption, Side, emit_mandatory};
use crate::wire::{Reset, ResetCode};
use braidcast_core::{Instant, Writer};
use core::time::Duration;

/// Values in the order in which they are liked, eight at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Preferences {
    values: [u8; Self::MAX],
    len: u8,
}

impl Preferences {
    pub(crate) const MAX: usize = 8;

    /// The first eight of `values`.
    pub(crate) fn new(values: &[u8]) -> Self {
        let mut it = Self::default();
        for (slot, &value) in it.values.iter_mut().zip(values) {
            *slot = value;
            it.len += 1;
        }
        it
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.values[..usize::from(self.len)]
    }
}

/// Where a feature stands (RFC 4340 §6.6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Both ends agree.
    Stable,
    /// Stable, and a Change leaves with the next packet that can carry it.
    Wanted,
    /// A Change is out.
    Changing,
    /// A Change is out, and our preference is another one by now.
    Unstable,
}

/// One feature at one end.
#[derive(Clone, Copy, Debug)]
struct Feature {
    state: State,
    value: u64,
    preferences: Preferences,
    /// What our Change of a non-negotiable feature says.
    proposed: u64,
    mandatory: bool,
    /// The peer has answered by an empty Confirm: it does not know the feature, and need not be told of it again.
    refused: bool,
}

/// A Confirm that waits for a packet.
#[derive(Clone, Copy, Debug)]
struct Confirm {
    side: Side,
    feature: u8,
    /// What was agreed and the preferences that went into it; empty if the feature is unknown or the value invalid.
    agreed: Option<(u64, Preferences)>,
}

/// All features of a connection, at both ends.
#[derive(Debug)]
pub(crate) struct Negotiation {
    is_server: bool,
    local: [Feature; COUNT],
    remote: [Feature; COUNT],
    /// Greatest number of a packet with feature options that came (RFC 4340 §6.6.4).
    fgsr: Option<Seq>,
    /// Greatest number of a packet with a new Change that left.
    fgss: Option<Seq>,
    confirms: Vec<Confirm>,
    /// Some feature may be in another state than [`State::Stable`]: else nothing need be looked through.
    active: bool,
    /// Confirms that left while the peer may not have got them, if they are kept: see `keep_confirms`.
    kept: Vec<Confirm>,
    keeps: bool,
    /// When Changes are repeated, and after how long then.
    repeat: Option<(Instant, Duration)>,
}

/// Longest pause between repeated Changes (RFC 4340 §6.6.3: not less than 64 s).
const REPEAT_MAX: Duration = Duration::from_secs(64);
/// Confirms that wait at most; a packet holds no more.
const MAX_CONFIRMS: usize = 255;

impl Negotiation {
    pub(crate) fn new(is_server: bool) -> Self {
        let initial = TABLE.map(|it| Feature {
            state: State::Stable,
            value: it.initial,
            preferences: Preferences::new(&[it.initial as u8]),
            proposed: it.initial,
            mandatory: false,
            refused: false,
        });
        Self {
            is_server,
            local: initial,
            remote: initial,
            fgsr: None,
            fgss: None,
            confirms: Vec::new(),
            active: false,
            kept: Vec::new(),
            keeps: false,
            repeat: None,
        }
    }

    fn feature(&self, place: Place, index: usize) -> &Feature {
        match place {
            Place::Local => &self.local[index],
            Place::Remote => &self.remote[index],
        }
    }

    fn feature_mut(&mut self, place: Place, index: usize) -> &mut Feature {
        match place {
            Place::Local => &mut self.local[index],
            Place::Remote => &mut self.remote[index],
        }
    }

    /// The value that holds now. 0 for what is not known.
    pub(crate) fn value(&self, place: Place, number: u8) -> u64 {
        table::index(number).map_or(0, |index| self.feature(place, index).value)
    }

    /// Returns `true` if both ends agree, as far as we know.
    pub(crate) fn is_stable(&self, place: Place, number: u8) -> bool {
        table::index(number).is_none_or(|index| self.feature(place, index).state == State::Stable)
    }

    /// What we answer and ask for from now on, for a server-priority feature. Asks nothing by itself.
    pub(crate) fn prefer(&mut self, place: Place, number: u8, preferences: Preferences) {
        if let Some(index) = table::index(number) {
            let feature = self.feature_mut(place, index);
            if feature.preferences != preferences {
                feature.preferences = preferences;
                if feature.state == State::Changing {
                    feature.state = State::Unstable; // §6.6.5
                }
            }
        }
    }

    /// Asks the peer for what [`prefer`](Self::prefer) said, unless the value is our favourite already.
    pub(crate) fn ask(&mut self, place: Place, number: u8, mandatory: bool) {
        let Some(index) = table::index(number) else { return };
        let feature = self.feature_mut(place, index);
        if feature.preferences.as_slice().first().is_some_and(|&best| u64::from(best) != feature.value)
            && matches!(feature.state, State::Stable | State::Wanted)
        {
            feature.mandatory = mandatory;
            feature.want();
            self.active = true;
        }
    }

    /// The value of a non-negotiable feature of ours that the peer was told last, or will be.
    pub(crate) fn told(&self, number: u8) -> u64 {
        let feature = table::index(number).map(|index| self.feature(Place::Local, index));
        feature.map_or(0, |it| if it.state == State::Stable { it.value } else { it.proposed })
    }

    /// Announces a new value of a non-negotiable feature of ours.
    pub(crate) fn tell(&mut self, number: u8, value: u64) {
        let Some(index) = table::index(number) else { return };
        let told = self.told(number);
        let feature = self.feature_mut(Place::Local, index);
        if told != value && !feature.refused {
            feature.proposed = value;
            feature.want();
            self.active = true;
        }
    }

    /// Features that belong to CCID 3 and its like exist while such a CCID is in use there (RFC 4340 §10.3).
    fn known(&self, place: Place, number: u8) -> Option<(usize, &'static Definition)> {
        let index = table::index(number)?;
        if number == number::SEND_LOSS_EVENT_RATE {
            // Located at the data receiver: the CCID is that of the other end's data.
            let other = if place == Place::Local { Place::Remote } else { Place::Local };
            if !matches!(self.value(other, number::CCID), 3 | 4) {
                return None;
            }
        }
        Some((index, &TABLE[index]))
    }

    /// Takes a feature option of a valid packet `seq` that is no Data and acknowledges `ack` (RFC 4340 §6.6.2).
    ///
    /// # Errors
    /// The Reset that ends the connection.
    pub(crate) fn receive(
        &mut self,
        seq: Seq,
        ack: Option<Seq>,
        option: &FeatureOption<'_>,
        mandatory: bool,
    ) -> Result<(), Reset> {
        let refused = |code| Err(Reset::option(code, option.kind(), &[option.feature]));
        // What lives at the sender of the option is remote to us.
        let place = if option.side == Side::Location { Place::Remote } else { Place::Local };
        let Some((index, definition)) = self.known(place, option.feature) else {
            return match (option.confirm, mandatory) {
                (true, _) => {
                    self.refused(place, option);
                    Ok(())
                }
                (false, true) => refused(ResetCode::MANDATORY_ERROR),
                (false, false) => {
                    self.confirm(option, None);
                    Ok(())
                }
            };
        };
        let state = self.feature(place, index).state;
        if self.fgsr.is_some_and(|fgsr| seq <= fgsr) {
            return Ok(());
        }
        if state == State::Unstable {
            // A Confirm that still waits would now acknowledge the Change that is ignored here.
            if !option.confirm {
                self.withdraw(option);
            }
            return Ok(());
        }
        if !option.confirm {
            return self.receive_change(place, index, definition, option, mandatory);
        }
        let current = ack.is_some_and(|ack| self.fgss.is_none_or(|fgss| ack >= fgss));
        if state != State::Changing || !current {
            return Ok(());
        }
        if option.values.is_empty() {
            // §6.6.7: all must understand the required ones.
            if definition.required {
                return refused(ResetCode::OPTION_ERROR);
            }
            self.feature_mut(place, index).refused = true;
        } else {
            match self.confirmed(place, index, definition, option.values) {
                Some(value) => self.feature_mut(place, index).value = value,
                // The peer may have got a later packet of ours without the one with our latest Change: then its Confirm
                // is about the Change before. That ends nothing: the latest one is repeated.
                None if number_of(definition.rule, option.values).is_some() => return Ok(()),
                None => return refused(ResetCode::OPTION_ERROR),
            }
        }
        self.settled(place, index);
        Ok(())
    }

    /// A Confirm of a feature that is unknown here (§6.6.7). If we asked for it, its CCID was not agreed to: then the
    /// peer does not know it either, and need not be asked again.
    fn refused(&mut self, place: Place, option: &FeatureOption<'_>) {
        if let Some(index) = table::index(option.feature)
            && option.values.is_empty()
            && self.feature(place, index).state == State::Changing
        {
            self.settled(place, index);
        }
    }

    fn receive_change(
        &mut self,
        place: Place,
        index: usize,
        definition: &Definition,
        option: &FeatureOption<'_>,
        mandatory: bool,
    ) -> Result<(), Reset> {
        let failed = || Reset::option(ResetCode::MANDATORY_ERROR, option.kind(), &[option.feature]);
        let value = match definition.rule {
            // §6.3.2: only the location decides.
            Rule::NonNegotiable { .. } if option.side == Side::Remote => None,
            Rule::NonNegotiable { .. } => number_of(definition.rule, option.values),
            Rule::ServerPriority if option.values.is_empty() => None,
            Rule::ServerPriority => match self.reconcile(place, index, option.values) {
                // §6.6.9: a mandatory Change without a shared entry ends the connection.
                None if mandatory => return Err(failed()),
                None => Some(self.feature(place, index).value),
                shared => shared,
            },
        };
        match value {
            Some(value) => {
                // §6.6.6 lets this end a Change of ours too. But this one may be old and repeated,
                // settled at the peer by an earlier Confirm, who then would ignore this one: only
                // the Confirm of ours says that both ends agree. It still ends: a peer must confirm
                // each Change that is not reordered (§6.6.3), and ours is repeated till then.
                self.feature_mut(place, index).value = value;
                let preferences = self.feature(place, index).preferences;
                self.confirm(option, Some((value, preferences)));
            }
            None if mandatory => return Err(failed()),
            None => self.confirm(option, None),
        }
        Ok(())
    }

    /// The first entry of the server's list that the client has too (RFC 4340 §6.3.1).
    fn reconcile(&self, place: Place, index: usize, theirs: &[u8]) -> Option<u64> {
        let ours = self.feature(place, index).preferences;
        let (server, client) = if self.is_server { (ours.as_slice(), theirs) } else { (theirs, ours.as_slice()) };
        server.iter().find(|value| client.contains(value)).map(|&value| u64::from(value))
    }

    /// The value that a Confirm gives, if it is the one that the rule gives (RFC 4340 §6.6.8).
    fn confirmed(&self, place: Place, index: usize, definition: &Definition, values: &[u8]) -> Option<u64> {
        let feature = self.feature(place, index);
        match definition.rule {
            Rule::NonNegotiable { .. } => number_of(definition.rule, values).filter(|&it| it == feature.proposed),
            Rule::ServerPriority => {
                let (&value, list) = values.split_first()?;
                let expected = if list.is_empty() {
                    // §4.5 shows Confirms without a list: any value that we asked for will do.
                    return feature.preferences.as_slice().contains(&value).then_some(u64::from(value));
                } else {
                    self.reconcile(place, index, list).unwrap_or(feature.value)
                };
                (u64::from(value) == expected).then_some(expected)
            }
        }
    }

    fn settled(&mut self, place: Place, index: usize) {
        self.feature_mut(place, index).state = State::Stable;
        if !self.any(State::Changing) {
            self.repeat = None;
            self.active = self.any(State::Wanted) || self.any(State::Unstable);
        }
    }

    fn any(&self, state: State) -> bool {
        self.local.iter().chain(&self.remote).any(|feature| feature.state == state)
    }

    fn confirm(&mut self, change: &FeatureOption<'_>, agreed: Option<(u64, Preferences)>) {
        self.withdraw(change);
        if self.confirms.len() < MAX_CONFIRMS {
            self.confirms.push(Confirm { side: change.side.flip(), feature: change.feature, agreed });
        }
    }

    /// Takes back a Confirm of an earlier Change of the same feature.
    fn withdraw(&mut self, change: &FeatureOption<'_>) {
        let other = |old: &Confirm| (old.side.flip(), old.feature) != (change.side, change.feature);
        self.confirms.retain(other);
        self.kept.retain(other);
    }

    /// All options of packet `seq` have been taken, and some were feature options.
    pub(crate) fn end_of_packet(&mut self, seq: Seq) {
        self.fgsr = Some(self.fgsr.map_or(seq, |fgsr| crate::seq::later(fgsr, seq)));
    }

    /// Returns `true` if options wait for a packet at `now`.
    pub(crate) fn is_pending(&self, now: Instant) -> bool {
        !self.confirms.is_empty()
            || (self.active && (self.any(State::Wanted) || self.any(State::Unstable)))
            || self.repeat.is_some_and(|(at, _)| at <= now)
    }

    /// Returns `true` if options may wait for a packet, now or soon.
    pub(crate) fn is_due(&self) -> bool {
        self.active || !self.confirms.is_empty()
    }

    /// When Changes are repeated next.
    pub(crate) fn timer(&self) -> Option<Instant> {
        self.repeat.map(|(at, _)| at)
    }

    /// Returns `true` if each packet from now on has all Confirms again. A client in PARTOPEN does
    /// so, as Linux's server knows no features but those of the one packet that makes it OPEN, and
    /// refuses the connection without.
    pub(crate) const fn keep_confirms(&mut self, keeps: bool) {
        self.keeps = keeps;
    }

    /// Appends what waits to packet `seq`, as far as `room` bytes go. Changes that are out are
    /// repeated if they are due, or if `repeat` says so, as on a repeated Request.
    pub(crate) fn emit(
        &mut self,
        now: Instant,
        seq: Seq,
        rtt: Duration,
        repeat: bool,
        room: usize,
        w: &mut Writer<'_>,
    ) {
        if self.confirms.is_empty() && self.kept.is_empty() && !self.active {
            return;
        }
        let end = w.position() + room;
        let mut kept = core::mem::take(&mut self.kept);
        kept.iter().filter(|_| self.keeps).for_each(|confirm| _ = self.emit_confirm(*confirm, end, w));
        let mut confirms = core::mem::take(&mut self.confirms);
        confirms.retain(|confirm| {
            let left = self.emit_confirm(*confirm, end, w);
            if left && self.keeps {
                kept.push(*confirm);
            }
            !left
        });
        self.confirms = confirms;
        if self.keeps {
            self.kept = kept;
        }
        let due = repeat || self.repeat.is_some_and(|(at, _)| at <= now);
        let (mut new, mut again) = (false, false);
        for place in [Place::Local, Place::Remote] {
            for (index, definition) in TABLE.iter().enumerate() {
                let state = self.feature(place, index).state;
                let first = matches!(state, State::Wanted | State::Unstable);
                if (first || (state == State::Changing && due)) && self.emit_change(place, index, definition, end, w) {
                    self.feature_mut(place, index).state = State::Changing;
                    new |= first;
                    again |= !first;
                }
            }
        }
        let shortest = rtt.max(Duration::from_millis(500));
        if new {
            self.fgss = Some(seq);
            self.repeat = Some((now + shortest, shortest));
        } else if again {
            let pause = self.repeat.map_or(shortest, |(_, pause)| (pause * 2).min(REPEAT_MAX));
            self.repeat = Some((now + pause, pause));
        }
    }

    fn emit_confirm(&self, confirm: Confirm, end: usize, w: &mut Writer<'_>) -> bool {
        let (mut values, mut len) = ([0; Preferences::MAX + 1], 0);
        if let (Some((value, preferences)), Some(index)) = (confirm.agreed, table::index(confirm.feature)) {
            len = match TABLE[index].rule {
                Rule::NonNegotiable { width, .. } => {
                    values[..width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
                    width
                }
                Rule::ServerPriority => {
                    let list = preferences.as_slice();
                    values[0] = value as u8;
                    values[1..=list.len()].copy_from_slice(list);
                    1 + list.len()
                }
            };
        }
        let option =
            FeatureOption { confirm: true, side: confirm.side, feature: confirm.feature, values: &values[..len] };
        let fits = w.position() + option.size() <= end;
        if fits {
            option.emit(w);
        }
        fits
    }

    fn emit_change(&self, place: Place, index: usize, it: &Definition, end: usize, w: &mut Writer<'_>) -> bool {
        let feature = self.feature(place, index);
        let proposed = feature.proposed.to_be_bytes();
        let values = match it.rule {
            Rule::NonNegotiable { width, .. } => &proposed[8 - width..],
            Rule::ServerPriority => feature.preferences.as_slice(),
        };
        let side = if place == Place::Local { Side::Location } else { Side::Remote };
        let option = FeatureOption { confirm: false, side, feature: it.number, values };
        let fits = w.position() + option.size() + usize::from(feature.mandatory) <= end;
        if fits {
            if feature.mandatory {
                emit_mandatory(w);
            }
            option.emit(w);
        }
        fits
    }
}

impl Feature {
    const fn want(&mut self) {
        self.state = match self.state {
            State::Stable | State::Wanted => State::Wanted,
            State::Changing | State::Unstable => State::Unstable,
        };
    }
}

/// The number in the value of a non-negotiable feature, if it has the right width and lies within the limits.
fn number_of(rule: Rule, values: &[u8]) -> Option<u64> {
    let Rule::NonNegotiable { width, min, max } = rule else { return None };
    let value = values.iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
    (values.len() == width && (min..=max).contains(&value)).then_some(value)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
