//! `tunnel server --authorized FILE`: the clients that are let in, and what each may reach.

use super::Work;
use crate::args::values::{self, Exit};
use crate::cmd::authorized::{Authorized, Rights};
use crate::cmd::resolve::resolve;
use crate::failure::{Failure, Outcome};
use braidcast_secure::Fingerprint;
use braidcast_session::tunnel::Permit;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval at which the dates in the list are checked.
const LOOK: Duration = Duration::from_secs(60);

/// What a client may reach, if the list says so.
#[derive(Default, Debug)]
pub(super) struct MayReach {
    forwards: Option<Vec<Exit>>,
}

impl Rights for MayReach {
    const FORM: &str = "FINGERPRINT|dns:HOST NAME [HOST:PORT[/HOW],…] [until=2027-01-31]";

    fn add(&mut self, word: &str) -> Result<(), String> {
        if self.forwards.is_some() {
            return Err(format!("'{word}' stands behind what the client reaches; write all of that with commas"));
        }
        self.forwards = Some(word.split(',').map(values::exit).collect::<Result<_, _>>()?);
        Ok(())
    }
}

/// The list.
pub(super) type Clients = Authorized<MayReach>;

impl Work {
    /// Lets in who is in the list today.
    pub(super) fn admit_clients(&mut self) -> Outcome {
        let now = self.driver.now();
        let Some(clients) = &mut self.clients else { return Ok(()) };
        let mut permits: BTreeMap<Fingerprint, Permit> = BTreeMap::new();
        for line in clients.in_force() {
            let exits = line.rights.forwards.as_ref();
            let resolved = |exit: &Exit| Ok((resolve(&exit.to, |_| true)?, exit.class));
            let forwards = exits.map(|exits| exits.iter().map(resolved).collect::<Outcome<Vec<_>>>()).transpose()?;
            permits.insert(line.who.listed(), Permit { name: line.name.clone(), forwards });
        }
        self.look_at = now + LOOK;
        self.security.trust(&clients.trusted());
        self.tunnel.set_permits(now, permits);
        Ok(())
    }

    /// SIGHUP: the list is read again. If it makes no sense, what it said before still holds.
    pub(super) fn reload(&mut self) {
        let Some(path) = self.clients.as_ref().map(|it| it.path().to_owned()) else { return };
        let before = match Clients::read(&path, self.security.is_certified()) {
            Ok(clients) => self.clients.replace(clients),
            Err(error) => return self.keep_list(&error),
        };
        match self.admit_clients() {
            Ok(()) => self.live.note(format!("{} was read again", path.display())),
            Err(error) => {
                self.clients = before;
                self.keep_list(&error);
            }
        }
    }

    fn keep_list(&self, error: &Failure) {
        self.live.warn(format!("{error}; going on with what it said before"));
    }

    /// Whose last day is over has to go.
    pub(super) fn look_at_days(&mut self) {
        self.look_at_ticket();
        let now = self.driver.now();
        if self.look_at > now || self.clients.is_none() {
            return;
        }
        self.look_at = now + LOOK;
        if self.clients.as_ref().is_some_and(Clients::has_changed)
            && let Err(error) = self.admit_clients()
        {
            self.keep_list(&error);
        }
    }
}
