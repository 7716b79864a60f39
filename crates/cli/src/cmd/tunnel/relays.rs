//! `tunnel server --relay`: clients come by a relay, and by a ticket.

use super::options::options;
use super::{Side, Work};
use crate::args::values::Over;
use crate::args::{Common, TunnelEndArgs};
use crate::cmd::ticket::{ENDED, Held, LOOK_AT_TICKET, Meeting};
use crate::failure::{Failure, Outcome};
use crate::process;
use braidcast_session::tunnel::Permit;

/// The server that dials out to a relay, where clients join it by its ticket.
pub(super) fn meet_clients(mut held: Held, meeting: Meeting<'_>, args: &TunnelEndArgs, common: &Common) -> Outcome {
    refuse_dccp(args)?;
    let mut work = Work::new(Side::Server, args, options(args, false)?, |live| Ok(held.security(live)), common)?;
    work.ends = Some(held.meet(meeting, &mut work.driver, &work.live)?);
    work.serve_at_relays()?;
    work.open_entrances(args)?;
    process::drop_privileges()?;
    let user = ("client", "braidcast tunnel client --over sctp --to …");
    held.print(meeting, None, common.json || args.figures.to_stdout(), user, &work.live)?;
    work.held = Some(held);
    work.admit_ticket();
    work.run(common)
}

/// Relays carry both protocols, but paths past them are SCTP's alone.
pub(super) fn refuse_dccp(args: &TunnelEndArgs) -> Outcome {
    match args.over {
        Over::Sctp => Ok(()),
        Over::Dccp => Err(Failure::usage("a tunnel by a relay goes over SCTP", "give --over sctp at both ends")),
    }
}

impl Work {
    /// Clients come by sockets at relays; a network that comes back has another one.
    pub(super) fn serve_at_relays(&mut self) -> Outcome {
        let Some(ends) = self.ends.as_ref().filter(|ends| ends.is_called()) else { return Ok(()) };
        let port = self.port();
        for socket in ends.sockets() {
            if self.served.insert(socket) {
                self.tunnel.serve(socket, port).map_err(|e| {
                    Failure::new(format!("cannot listen at SCTP port {port}: {e}"), "please report this as a bug")
                })?;
            }
        }
        Ok(())
    }

    /// Who comes by the ticket, while it is good, is let in; nobody else is.
    fn admit_ticket(&mut self) {
        let Some(held) = &self.held else { return };
        let permit = || Permit { name: "the ticket".into(), forwards: None };
        let permits = held.permits().into_keys().map(|key| (key, permit())).collect();
        self.tunnel.set_permits(self.driver.now(), permits);
    }

    /// If the ticket has ended, whom it let in has to go.
    pub(super) fn look_at_ticket(&mut self) {
        let now = self.driver.now();
        if self.look_at > now || self.held.is_none() {
            return;
        }
        self.look_at = now + LOOK_AT_TICKET;
        if self.held.as_mut().is_some_and(Held::has_ended) {
            self.live.warn(ENDED);
            self.admit_ticket();
        }
    }
}
