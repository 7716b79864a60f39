//! The ticket of a receiver at work.

use super::store::{Kept, path_of};
use super::{is_over, print, reach};
use crate::args::values::{Listen, Place as At, Remote};
use crate::args::via::Via;
use crate::args::{MeetArgs, ReceiveArgs};
use crate::cmd::ends::Ends;
use crate::cmd::key::{identity, no_randomness};
use crate::cmd::links::Links;
use crate::cmd::named;
use crate::cmd::security::Security;
use crate::cmd::through::Through;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_driver::{Carrier, Driver, Interfaces};
use braidcast_relay::Place;
use braidcast_secure::Fingerprint;
use braidcast_secure::identity::Identity;
use braidcast_session::Permit;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Addresses of this machine that a ticket names, at most.
const MOST_ADDRESSES: usize = 8;

/// Interval at which a ticket is looked at, which may have been revoked.
pub(crate) const LOOK_AT_TICKET: Duration = Duration::from_secs(2);
/// What is said once it has ended.
pub(crate) const ENDED: &str = "the ticket was revoked, or its last day is over: nobody is let in by it any more";

/// What flags say of it.
#[derive(Clone, Copy)]
pub(crate) struct Meeting<'a> {
    /// A name for one that lasts; an empty one for one that does not.
    ticket: Option<&'a str>,
    relays: &'a [Remote],
    relay_key: Option<&'a Path>,
    relay_only: bool,
    via: &'a [Via],
}

impl<'a> Meeting<'a> {
    /// Of a receiver. If it has a ticket and no relay, senders reach it at LISTEN.
    pub(crate) fn of_receiver(args: &'a ReceiveArgs) -> Outcome<Self> {
        let ReceiveArgs { ticket, relay, relay_key, relay_only, via, .. } = args;
        let (ticket, relay_key) = (ticket.as_deref(), relay_key.as_deref());
        Self { ticket, relays: relay, relay_key, relay_only: *relay_only, via }.checked(false)
    }

    /// Of a server, which calls over `via`.
    pub(crate) fn of_server(args: &'a MeetArgs, via: &'a [Via]) -> Outcome<Self> {
        let MeetArgs { ticket, relay, relay_key, relay_only } = args;
        let (ticket, relay_key) = (ticket.as_deref(), relay_key.as_deref());
        Self { ticket, relays: relay, relay_key, relay_only: *relay_only, via }.checked(true)
    }

    /// Refuses what has no effect without a relay. Clap does not: what `requires` a flag is let through beside another
    /// one that excludes this flag, here LISTEN and --from. `ticket`: one has no effect either.
    fn checked(self, ticket: bool) -> Outcome<Self> {
        let flags = [
            ("--ticket", ticket && self.ticket.is_some()),
            ("--relay-key", self.relay_key.is_some()),
            ("--relay-only", self.relay_only),
        ];
        match flags.into_iter().find(|(_, given)| *given && self.relays.is_empty()) {
            Some((flag, _)) => Err(Failure::usage(
                format!("{flag} is for --relay, and there is none"),
                format!("give --relay HOST:PORT in place of an address, or leave out {flag}"),
            )),
            None => Ok(self),
        }
    }
}

/// A ticket, and who is let in by it.
pub(crate) struct Held {
    kept: Kept,
    sender: Fingerprint,
    /// Of one that lasts.
    path: Option<PathBuf>,
    over: bool,
}

impl Held {
    /// The one that is asked for, if any.
    pub(crate) fn of(wanted: Meeting<'_>) -> Outcome<Option<Self>> {
        if wanted.ticket.is_none() && wanted.relays.is_empty() {
            return Ok(None);
        }
        if wanted.via.len() > 1 {
            return Err(Failure::usage(
                "with --relay one network is enough: each of the other end's paths comes through it",
                "give one --via",
            ));
        }
        let path = match wanted.ticket {
            None | Some("") => None,
            Some(name) => Some(path_of(name)?),
        };
        let kept = path.as_deref().map(Kept::read).transpose()?.flatten();
        let kept = kept.map_or_else(Kept::new, Ok)?;
        if is_over(kept.until()) {
            return Err(Failure::usage(
                "the last day of this ticket is over",
                "give it another: braidcast key ticket NAME --until DATE",
            ));
        }
        let sender = Identity::permitted(&kept.permission).map_err(no_randomness)?.fingerprint();
        Ok(Some(Self { kept, sender, path, over: false }))
    }

    /// How what comes is protected.
    pub(crate) fn security(&self, live: &Live) -> Security {
        Security::pinned(self.kept.receiver.clone(), self.sender, live)
    }

    /// Who is let in now.
    pub(crate) fn permits(&self) -> BTreeMap<Fingerprint, Permit> {
        let permit = || (self.sender, Permit::default());
        (!self.over).then(permit).into_iter().collect()
    }

    /// Opens places at the relays.
    pub(crate) fn meet(&self, wanted: Meeting<'_>, driver: &mut Driver, live: &Live) -> Outcome<Ends> {
        let plans = named::unlimited(wanted.via, wanted.relays, "the other end sends")?;
        let key = wanted.relay_key.map(|path| identity(path, live)).transpose()?;
        let paths = plans.iter().map(|plan| plan.name.clone()).collect();
        let through = Through::new(Place::Owner(self.kept.owner), key, wanted.relay_only, paths)?;
        Ok(Ends::meet(Links::open(plans, Carrier::Udp, driver, live)?, through, true, driver.now()))
    }

    /// Prints the ticket: on stdout, or beside what else goes there. `user`: what it is for, and the command there.
    pub(crate) fn print(
        &mut self,
        wanted: Meeting<'_>,
        listen: Option<&Listen>,
        stdout_is_taken: bool,
        (user, command): (&str, &str),
        live: &Live,
    ) -> Outcome {
        let addresses = listen.map_or_else(|| Ok(Vec::new()), addresses)?;
        if let Some(path) = &self.path
            && (self.kept.set_places(wanted.relays, &addresses) || !path.exists())
        {
            self.kept.write(path)?;
        }
        let reached = wanted.relays.iter().map(|it| reach(it, true)).chain(addresses.iter().map(|it| reach(it, false)));
        let line = self.kept.ticket(reached.collect()).text();
        if stdout_is_taken {
            live.warn(format!("the ticket for the {user}, a secret: {line}"));
            return Ok(());
        }
        live.note(format!("the ticket for the {user}, a secret: {command}"));
        print(&line)
    }

    /// Returns `true` if it has ended since this was asked last: its last day is over, or it was revoked.
    pub(crate) fn has_ended(&mut self) -> bool {
        let gone = self.path.as_ref().is_some_and(|path| !path.exists());
        let is_new = !self.over && (gone || is_over(self.kept.until()));
        self.over |= is_new;
        is_new
    }
}

/// The addresses of this machine where a receiver listens, as others may reach it.
fn addresses(listen: &Listen) -> Outcome<Vec<Remote>> {
    let mut all = Vec::new();
    for At { addr, port, .. } in &listen.0 {
        if *port == 0 {
            return Err(Failure::usage("a ticket needs a certain port", "write LISTEN as 9000, for example"));
        }
        let own = match addr {
            Some(addr) if !addr.is_unspecified() => vec![*addr],
            _ => own_addresses()?,
        };
        all.extend(own.into_iter().map(|ip| Remote { host: ip.to_string(), port: *port }));
    }
    all.truncate(MOST_ADDRESSES);
    if all.is_empty() {
        return Err(Failure::new("this machine has no address that a ticket could name", "give --relay HOST:PORT"));
    }
    Ok(all)
}

/// Those that are worth naming.
fn own_addresses() -> Outcome<Vec<IpAddr>> {
    let interfaces = Interfaces::list().map_err(|error| {
        Failure::new(format!("cannot list the network interfaces: {error}"), "write LISTEN as ADDR:PORT")
    })?;
    let is_far = |ip: &IpAddr| match ip {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    Ok(interfaces.iter().flat_map(|(_, addrs)| addrs.to_vec()).filter(is_far).collect())
}
