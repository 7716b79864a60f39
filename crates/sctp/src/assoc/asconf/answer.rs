//! What the peer asks for by ASCONF, done and answered (RFC 5061 §5.2).

use super::Reconfiguration;
use crate::api::PathState;
use crate::assoc::Open;
use crate::assoc::control::Control;
use crate::path::{Hearsay, PathIndex};
use crate::wire::chunk::{Asconf, AsconfAck};
use crate::wire::{Cause, Causes, Chunk, Parameter, Parameters, RawTlv, UnknownAction};
use braidcast_core::{Instant, Route, Writer};
use std::net::{IpAddr, SocketAddr};

/// Changes that the peer may ask for with one request.
pub(super) const MAX_CHANGES: usize = 24;
/// Bytes of an answer up to which refusals repeat what they refuse; with [`MAX_CHANGES`] of them
/// the answer still fits the smallest packet, behind AUTH.
const COPIES: usize = 128;

/// The answer to an ASCONF while it is made.
#[derive(Debug, Default)]
struct Answer {
    bytes: Vec<u8>,
    /// Adding or deleting was refused, so that all that follows of it is as well (RFC 5061 §5.3 F11).
    refuses: bool,
}

impl Answer {
    /// The change was made. What follows a refusal counts as refused unless it is said to have
    /// succeeded (RFC 5061 §5.1 A7).
    fn grant(&mut self, correlation: u32) {
        if !self.bytes.is_empty() {
            Parameter::SuccessIndication { correlation }.emit(&mut Writer::new(&mut self.bytes));
        }
    }

    /// It was not, as `cause` says of `what`, in which it repeats that if there is room (RFC 5061 §4.3.1).
    fn refuse<'a>(&mut self, correlation: u32, cause: impl Fn(&'a [u8]) -> Cause<'a>, what: &'a [u8]) {
        let what = if self.bytes.len() + what.len() <= COPIES { what } else { &[] };
        let mut causes = Vec::new();
        cause(what).emit(&mut Writer::new(&mut causes));
        let causes = Causes::new(&causes);
        Parameter::ErrorCauseIndication { correlation, causes }.emit(&mut Writer::new(&mut self.bytes));
    }
}

/// Why a change is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    /// RFC 5061 §4.3.2.
    NoRoom,
    /// RFC 5061 §5.3 F7.
    LastAddress,
    /// RFC 5061 §5.3 F8.
    SourceAddress,
    /// The address is not one of the peer's.
    NoSuchAddress,
}

impl Refusal {
    const fn cause<'a>(self, what: &'a [u8]) -> Cause<'a> {
        match self {
            Self::NoRoom => Cause::ResourceShortage(what),
            Self::LastAddress => Cause::DeleteLastAddress(what),
            Self::SourceAddress => Cause::DeleteSourceAddress(what),
            Self::NoSuchAddress => Cause::UnresolvableAddress(what),
        }
    }

    /// What of the request `raw` its cause repeats.
    fn copied<'a>(self, raw: RawTlv<'a>) -> &'a [u8] {
        // The address alone stands behind the correlation.
        if self == Self::NoSuchAddress { raw.value.get(4..).unwrap_or_default() } else { raw.bytes }
    }
}

impl Open {
    /// ASCONF, authenticated, that came over `route` (RFC 5061 §5.2).
    pub(in crate::assoc) fn handle_asconf(&mut self, now: Instant, route: Route, asconf: &Asconf<'_>) {
        if !self.agreed.asconf || !self.state.is_up() {
            return;
        }
        let expected = self.reconfiguration.peer_serial.wrapping_add(1);
        if asconf.serial == expected {
            let parameters = self.reconfigure_all(now, route, asconf.parameters);
            let ack = AsconfAck { serial: asconf.serial, parameters: Parameters::new(&parameters) };
            self.reconfiguration.answer.clear();
            Chunk::AsconfAck(ack).emit(&mut Writer::new(&mut self.reconfiguration.answer));
            self.reconfiguration.peer_serial = expected;
        } else if asconf.serial == self.reconfiguration.peer_serial {
            self.take_in_repeated(now, route, asconf.parameters);
        } else {
            return; // Of before, with no answer kept (RFC 5061 §5.2 E2), or out of turn (E5).
        }
        let bytes = self.reconfiguration.answer.clone();
        let path = self.paths.by_route(route).or_else(|| self.paths.for_control(None));
        if let (Some(path), true) = (path, self.control.has_room()) {
            self.control.push(Control { path, tag: self.peer_tag, bytes, alone: false });
        }
    }

    /// A request that was granted came again, over `route`. A peer that does not know which path
    /// leads here asks over all at once: the copy that came first may have come over one that our
    /// answers do not get back by, and this one is to join as well.
    fn take_in_repeated(&mut self, now: Instant, route: Route, wanted: Parameters<'_>) {
        if self.paths.by_route(route).is_some() {
            return;
        }
        let mut wanted = wanted.iter().map_while(Result::ok).map_while(|raw| Parameter::parse(raw).ok());
        if let Some(join) = wanted.find(|it| matches!(it, Parameter::AddIp { address, .. } if address.is_unspecified()))
        {
            // What is refused for lack of room is asked for again.
            let _answered_already = self.reconfigure(now, route, &join);
        }
    }

    /// A new path over `route`, which the peer named; to be confirmed.
    pub(in crate::assoc) fn take_in(&mut self, now: Instant, route: Route) -> PathIndex {
        let index = self.paths.add(now, route, PathState::Unconfirmed);
        self.paths[index].ask(now);
        index
    }

    /// Does what the parameters of an ASCONF from `source` ask for, in their order, up to [`MAX_CHANGES`]. Returns the
    /// parameters of the answer; one refusal stands for all that is more than we do.
    pub(super) fn reconfigure_all(&mut self, now: Instant, source: Route, wanted: Parameters<'_>) -> Vec<u8> {
        let mut answer = Answer::default();
        for (n, raw) in wanted.iter().map_while(Result::ok).enumerate() {
            // What is not understood, too, is answered by its correlation (RFC 5061 §5.2 V2, V3).
            let Some(correlation) = raw.value.first_chunk().map(|it| u32::from_be_bytes(*it)) else { break };
            if n >= MAX_CHANGES {
                answer.refuse(correlation, Cause::ResourceShortage, &[]);
                break;
            }
            let parameter = match Parameter::parse(raw) {
                Ok(parameter) if parameter.correlation().is_some() => parameter,
                Ok(other) => {
                    let action = UnknownAction::for_parameter(other.kind());
                    if action.reports() {
                        let cause = |what| Cause::UnrecognizedParameters(Parameters::new(what));
                        answer.refuse(correlation, cause, raw.bytes);
                    }
                    if action.skips() {
                        continue;
                    }
                    break;
                }
                Err(_) => {
                    answer.refuse(correlation, Cause::UnresolvableAddress, Refusal::NoSuchAddress.copied(raw));
                    break;
                }
            };
            let address_list = !matches!(parameter, Parameter::SetPrimary { .. });
            let refused_before = answer.refuses && address_list;
            let outcome = if refused_before { Err(Refusal::NoRoom) } else { self.reconfigure(now, source, &parameter) };
            match outcome {
                Ok(()) => answer.grant(correlation),
                Err(refusal) => {
                    answer.refuses |= address_list;
                    answer.refuse(correlation, |what| refusal.cause(what), refusal.copied(raw));
                }
            }
        }
        answer.bytes
    }

    /// Does what one parameter of an ASCONF from `source` asks for, or says why not.
    fn reconfigure(&mut self, now: Instant, source: Route, parameter: &Parameter<'_>) -> Result<(), Refusal> {
        match *parameter {
            Parameter::AddIp { address, .. } => self.add_address(now, source, address),
            Parameter::DeleteIp { address, .. } => self.delete_address(now, source, address),
            Parameter::SetPrimary { address, .. } => {
                let named = named(source, address);
                let there = self.paths.enumerate().filter(|(_, path)| path.route().remote.ip() == named.remote.ip());
                // From any of ours that gets there, best from where the request came in.
                let best = there.min_by_key(|(_, path)| (!path.is_usable(), path.route() != named));
                self.paths.set_primary(best.ok_or(Refusal::NoSuchAddress)?.0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_address(&mut self, now: Instant, source: Route, address: IpAddr) -> Result<(), Refusal> {
        let route = named(source, address);
        let known = self.paths.by_route(route);
        if !address.is_unspecified() || known.is_some_and(|index| !self.paths[index].is_unproved_hearsay()) {
            self.list_address(route);
        }
        if known.is_some() {
            return Ok(());
        }
        self.make_room(now).ok_or(Refusal::NoRoom)?;
        let index = self.take_in(now, route);
        let hearsay = if address.is_unspecified() { Hearsay::Source } else { Hearsay::Word };
        self.paths[index].take_for_hearsay(hearsay);
        Ok(())
    }

    /// Makes room for one more path; `None` if there is none.
    fn make_room(&mut self, now: Instant) -> Option<()> {
        if self.paths.len() >= self.options.paths.max_paths {
            // A NAT that forgets leaves a dead path behind each time.
            let worst = self.paths.worst()?;
            self.remove_path(now, worst);
        }
        Some(())
    }

    /// A record of the peer's came over a new route: it is asked there, and until it has answered
    /// nothing else goes there. `None` if there is no room.
    pub(in crate::assoc) fn follow(&mut self, now: Instant, route: Route) -> Option<PathIndex> {
        self.make_room(now)?;
        let index = self.take_in(now, route);
        self.paths[index].take_for_hearsay(Hearsay::Source);
        Some(index)
    }

    /// If addresses are listed, that of `route` counts as one that the peer listed: it may use
    /// it towards any of ours.
    pub(in crate::assoc) fn list_address(&mut self, route: Route) {
        if !self.options.local_addresses.is_empty() {
            self.peer_addresses.add(route.remote.ip());
        }
    }

    /// The wildcard stands for all but the source (RFC 5061 §4.2.2). That there is no such address
    /// is no refusal: it is as was wished.
    fn delete_address(&mut self, now: Instant, source: Route, address: IpAddr) -> Result<(), Refusal> {
        let itself = !address.is_unspecified() && address == source.remote.ip();
        if itself && self.paths.len() == 1 {
            return Err(Refusal::LastAddress);
        }
        if itself || self.paths.by_route(source).is_none() {
            return Err(Refusal::SourceAddress);
        }
        // One of the two gives way: the end that called.
        if address.is_unspecified() && !self.initiator && self.reconfiguration.puts_off() {
            return Err(Refusal::NoRoom);
        }
        self.peer_addresses
            .retain(|it| if address.is_unspecified() { it == source.remote.ip() } else { it != address });
        let leaves = |route: Route| route != source && (address.is_unspecified() || route.remote.ip() == address);
        let gone: Vec<(PathIndex, Route)> = self.paths.enumerate().map(|(index, path)| (index, path.route())).collect();
        for (index, route) in gone.into_iter().filter(|&(_, route)| leaves(route)) {
            self.remove_path(now, index);
            self.reconfiguration.note_deleted(now, route);
        }
        self.repeat_if_carrier_left(now);
        // The peer may know that the path works when we do not yet: ask at once if it is all that is left.
        let unsure = self.paths.best_rank(None).is_none();
        if let Some(index) = self.paths.by_route(source).filter(|_| unsure) {
            self.paths[index].ask(now);
        }
        Ok(())
    }
}

impl Reconfiguration {
    /// Deleted routes that are remembered.
    const MAX_DELETED: usize = 8;

    fn note_deleted(&mut self, now: Instant, route: Route) {
        self.deleted.retain(|&(other, _)| other != route);
        if self.deleted.len() == Self::MAX_DELETED {
            self.deleted.pop_front();
        }
        self.deleted.push_back((route, now));
    }
}

/// The route that an address parameter stands for: the source of the packet for the wildcard, else that address
/// with the source's port, as SCTP over UDP has it (RFC 6951 §5.4).
fn named(source: Route, address: IpAddr) -> Route {
    if address.is_unspecified() {
        return source;
    }
    Route::new(source.socket, SocketAddr::new(address, source.remote.port()))
}
