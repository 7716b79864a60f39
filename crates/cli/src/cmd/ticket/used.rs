//! `send --to`: addresses, or a ticket.

use super::{is_over, moment};
use crate::args::SharedArgs;
use crate::args::destination::To;
use crate::args::values::{self, Remote};
use crate::args::via::Via;
use crate::cmd::ends::Ends;
use crate::cmd::key::no_randomness;
use crate::cmd::links::Links;
use crate::cmd::named;
use crate::cmd::paths::Plan;
use crate::cmd::security::Security;
use crate::cmd::through::Through;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::Instant;
use braidcast_driver::{Carrier, Driver};
use braidcast_relay::{Place, Ticket};
use braidcast_secure::identity::Identity;
use braidcast_secure::{Fingerprint, Secret};
use std::collections::BTreeSet;
use std::fs;

/// Where a stream goes.
pub(crate) enum Towards {
    Remotes(Vec<Remote>),
    Ticket(Box<Ticket>),
}

impl Towards {
    /// Reads what `--to` says.
    pub(crate) fn of(to: &[To]) -> Outcome<Self> {
        let mut remotes = Vec::new();
        let mut ticket = None;
        for to in to {
            match to {
                To::Remote(remote) => remotes.push(remote.clone()),
                To::Ticket(it) => ticket = Some(it.clone()),
                To::File(path) => {
                    let text = fs::read_to_string(path).map_err(|error| {
                        let what = format!("cannot read the ticket in {}: {error}", path.display());
                        Failure::usage(
                            what,
                            "give the name of a text file with the line that `receive --ticket` prints",
                        )
                    })?;
                    let line = text.lines().find(|line| Ticket::is_meant(line)).unwrap_or(&text);
                    let read = line.parse().map_err(|error| {
                        let what = format!("{}: {error}", path.display());
                        Failure::usage(what, "put the line that `receive --ticket` prints into it")
                    })?;
                    ticket = Some(Box::new(read));
                }
            }
        }
        match ticket {
            None => Ok(Self::Remotes(remotes)),
            Some(_) if to.len() > 1 => Err(Failure::usage(
                "a ticket does not go with another --to",
                "give the ticket alone: it has every address",
            )),
            Some(ticket) if is_over(ticket.until) => Err(Failure::usage(
                format!("the ticket was good until {}", moment(ticket.until.unwrap_or_default())),
                "ask the receiver's user for a new one, or check this machine's clock",
            )),
            Some(ticket) => Ok(Self::Ticket(ticket)),
        }
    }

    /// What it is called, each address.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Self::Remotes(all) => all.iter().map(values::Remote::to_string).collect(),
            Self::Ticket(ticket) => remotes(ticket).map(|(remote, _)| remote.to_string()).collect(),
        }
    }

    /// The paths over these networks: with a ticket from each to each of its places.
    pub(crate) fn plans(&self, via: &[Via]) -> Outcome<Vec<Plan>> {
        let ticket = match self {
            Self::Remotes(all) => return named::pair(via, all),
            Self::Ticket(ticket) => ticket,
        };
        let mut plans = Vec::new();
        for (remote, _) in remotes(ticket) {
            for mut plan in named::pair(via, std::slice::from_ref(&remote))? {
                let to = remote.to_string();
                if ticket.reached.len() > 1 && !plan.name.ends_with(&to) {
                    plan.name = format!("{} to {to}", plan.name);
                }
                plans.push(plan);
            }
        }
        Ok(plans)
    }

    /// The same where this end cannot hold back what it sends by path. `why`: in words.
    pub(crate) fn unlimited_plans(&self, via: &[Via], why: &str) -> Outcome<Vec<Plan>> {
        named::refuse_limits(via, why)?;
        self.plans(via)
    }

    /// How what goes there is protected.
    pub(crate) fn security(&self, args: &SharedArgs, live: &Live) -> Outcome<Security> {
        let ticket = match self {
            Self::Remotes(_) => return Security::client(args, &self.names(), live),
            Self::Ticket(ticket) => ticket,
        };
        let others = [
            ("--key", args.key.is_some()),
            ("--key-file", args.key_file.is_some()),
            ("--identity", args.identity.is_some()),
            ("--peer-key", !args.peer_key.is_empty()),
            ("--cert", args.cert.is_some()),
            ("--plain", args.plain),
        ];
        if let Some((flag, _)) = others.into_iter().find(|(_, given)| *given) {
            return Err(Failure::usage(
                format!("{flag} does not go with a ticket, which says who both ends are"),
                format!("leave out {flag} (or BRAIDCAST_KEY)"),
            ));
        }
        let identity = Identity::permitted(&Secret::new(ticket.permission)).map_err(no_randomness)?;
        Ok(Security::pinned(identity, Fingerprint(ticket.receiver), live))
    }

    /// Opens a socket for each path.
    pub(crate) fn dial(&self, plans: Vec<Plan>, relay_only: bool, driver: &mut Driver, live: &Live) -> Outcome<Ends> {
        let links = Links::open(plans.clone(), Carrier::Udp, driver, live)?;
        self.by(links, &plans, relay_only, driver.now())
    }

    /// The same for measurements, which do not wait for networks: at least one path can be used.
    pub(crate) fn dial_now(
        &self,
        plans: Vec<Plan>,
        relay_only: bool,
        driver: &mut Driver,
        live: &Live,
    ) -> Outcome<Ends> {
        let links = Links::open_now(plans.clone(), Carrier::Udp, driver, live)?;
        self.by(links, &plans, relay_only, driver.now())
    }

    /// Has those sockets that lead to relays ask for places there.
    fn by(&self, links: Links, plans: &[Plan], relay_only: bool, now: Instant) -> Outcome<Ends> {
        let ticket = match self {
            Self::Ticket(ticket) if !relay_only || ticket.reached.iter().all(|it| it.is_relay) => ticket,
            Self::Remotes(_) if !relay_only => return Ok(Ends::over(links)),
            _ => {
                return Err(Failure::usage(
                    "--relay-only needs a ticket by a relay, and this --to leads straight to the receiver",
                    "leave it out, or have the receiver's user give --relay",
                ));
            }
        };
        let relays: Vec<Remote> = remotes(ticket).filter(|(_, is_relay)| *is_relay).map(|(remote, _)| remote).collect();
        let paths: BTreeSet<String> =
            plans.iter().filter(|plan| relays.contains(&plan.to)).map(|plan| plan.name.clone()).collect();
        let through = Through::new(Place::Guest(ticket.circuit), None, relay_only, paths)?;
        Ok(Ends::meet(links, through, false, now))
    }
}

/// The addresses that a ticket leads to, and `true` for relays.
fn remotes(ticket: &Ticket) -> impl Iterator<Item = (Remote, bool)> + '_ {
    ticket.reached.iter().map(|it| (Remote { host: it.host.clone(), port: it.port }, it.is_relay))
}
