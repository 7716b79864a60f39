//! `braidcast perf server`: takes what clients send and counts it.

use super::dccp::Dccp;
use super::latency::{self, Latencies, Percentiles};
use super::protocol::{ConnectionEvent, Dialled, Protocol, Purpose};
use crate::args::values::Place;
use crate::args::{Common, PerfServerArgs};
use crate::cmd::dccp::{IP_PROTOCOL, PORT_IN_UDP};
use crate::cmd::ends::Ends;
use crate::cmd::security::Security;
use crate::cmd::ticket::{ENDED, Held, LOOK_AT_TICKET, Meeting};
use crate::cmd::watch::{Carried, Watch};
use crate::cmd::{common, named};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, security, units};
use crate::process;
use braidcast_core::{Instant, Reader, SocketId};
use braidcast_driver::{Bind, Carrier, Driver, Wake};
use braidcast_sctp::Endpoint;
use braidcast_session::SecurityReport;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

/// Clients over SCTP at a time.
const MAX_CLIENTS: usize = 256;
/// Clients that are gone and of which `--json` says how it went.
const MOST_KNOWN: usize = 1024;

/// What one client sent.
#[derive(Clone, Serialize)]
struct Served {
    bytes: u64,
    messages: u64,
    /// From the first message to the last.
    seconds: f64,
    bits_per_second: f64,
    /// `true` if the client shut down in good order.
    complete: bool,
    /// One way, client to server; known only on one machine.
    latency_us: Option<Percentiles>,
    /// Null if nothing is encrypted.
    security: Option<SecurityReport>,
}

#[derive(Serialize)]
struct Document {
    clients: VecDeque<Served>,
}

/// A client that is being served.
struct Client {
    bytes: u64,
    messages: u64,
    first: Option<Instant>,
    last: Instant,
    one_way: Latencies,
    security: Option<SecurityReport>,
}

/// The connection by which a server calls a client.
struct Call<I> {
    id: I,
    security: Security,
}

struct Server<P: Protocol> {
    endpoint: P,
    /// Of a server that calls a client.
    call: Option<Call<P::Id>>,
    /// Of one that calls a client, or meets them at relays.
    ends: Option<Ends>,
    /// The ticket of one that meets them, and when it is looked at.
    held: Option<(Held, Instant)>,
    clients: BTreeMap<P::Id, Client>,
    served: VecDeque<Served>,
    machine: u64,
    plain: bool,
    message: Vec<u8>,
}

pub(super) fn run(args: &PerfServerArgs, common: &Common) -> Outcome {
    let mut driver = common::driver()?;
    let mut live = Live::new(common.quiet);
    let meeting = Meeting::of_server(&args.meet, &args.via)?;
    let mut held = Held::of(meeting)?;
    if held.is_some() && args.dccp.dccp.is_some() {
        return Err(Failure::usage("--dccp does not go with --relay", "leave it out, or measure DCCP without a relay"));
    }
    let places = args.listen.as_ref().map_or(&[][..], |listen| &listen.0);
    let sockets = open(places, args.dccp.native, &mut driver, &live)?;
    let ends = match &held {
        Some(held) => Some(held.meet(meeting, &mut driver, &live)?),
        None if args.from.is_empty() => None,
        None => {
            let plans = named::unlimited(&args.via, &args.from, "the other end sends")?;
            Some(Ends::dial_now(plans, Carrier::Udp, &mut driver, &live)?)
        }
    };
    let protocol = if args.dccp.dccp.is_some() { Carried::Dccp } else { Carried::Sctp };
    let mut watch = Watch::open(&args.watch, "perf server", &mut driver, protocol)?;
    process::drop_privileges()?;
    let rng = common::rng(None)?;
    let names: Vec<String> = args.from.iter().map(ToString::to_string).collect();
    let security = match &held {
        Some(held) => held.security(&live),
        None if ends.is_some() => Security::client(&args.shared, &names, &live)?,
        None => Security::server(&args.shared, &live)?,
    };
    if let Some(choice) = args.dccp.dccp {
        let mut dccp = Dccp::new(&args.dccp, choice, true, rng, (&security, watch.tracer()))?;
        for (place, socket) in places.iter().zip(sockets) {
            dccp.listen(if args.dccp.native { place.port } else { PORT_IN_UDP })?;
            if let Some(address) = place.addr.filter(|_| args.dccp.native) {
                dccp.set_local_address(socket, address);
            }
        }
        return serve(dccp, (None, None, None), driver, args, common, (&mut live, &mut watch));
    }
    let options = common::sctp_options(&security).with(|it| {
        it.redundancy.fec_receive = true;
        // Each of them may hold what it got so far; who is silent makes room for others.
        it.limits.max_associations = MAX_CLIENTS;
        it.events = watch.tracer();
    });
    let port = options.local_port;
    let mut sctp = Endpoint::new(options, rng)?;
    let mut call = None;
    match &ends {
        Some(ends) if !ends.is_called() => {
            live.note(format!("calling {}", names.join(", ")));
            let id = sctp.connect(driver.now(), port, &ends.routes());
            let id = id.map_err(|e| Failure::new(format!("cannot connect: {e}"), "give fewer paths"))?;
            call = Some(Call { id, security });
        }
        _ => sctp.listen(),
    }
    if let Some(held) = &mut held {
        held.print(meeting, None, common.json, ("client", "braidcast perf client …"), &live)?;
    }
    serve(sctp, (call, ends, held), driver, args, common, (&mut live, &mut watch))
}

/// A socket for each address.
fn open(places: &[Place], native: bool, driver: &mut Driver, live: &Live) -> Outcome<Vec<SocketId>> {
    let mut sockets = Vec::new();
    for place in places {
        let port = place.port;
        let bind = match place.addr {
            Some(addr) if native => Bind::to_ip(addr, IP_PROTOCOL),
            None if native => {
                return Err(Failure::usage(
                    "with --native the server must know its address: DCCP's checksum covers it",
                    format!("write LISTEN as ADDR:{port}"),
                ));
            }
            _ => place.bind(),
        };
        let socket = driver.bind(&bind).map_err(|e| Failure::new(e.to_string(), "choose another LISTEN"))?;
        let local = driver.socket(socket).map_or_else(String::new, |s| s.local_addr().to_string());
        live.note(if native {
            format!("listening on {bind}, DCCP port {port}")
        } else {
            format!("listening on {local}")
        });
        sockets.push(socket);
    }
    Ok(sockets)
}

fn serve<P: Protocol>(
    endpoint: P,
    (call, ends, held): (Option<Call<P::Id>>, Option<Ends>, Option<Held>),
    mut driver: Driver,
    args: &PerfServerArgs,
    common: &Common,
    (live, watch): (&mut Live, &mut Watch),
) -> Outcome {
    if !common.json {
        say("READY")?;
    }
    let (clients, served) = (BTreeMap::new(), VecDeque::new());
    let (machine, plain) = (latency::machine(), args.shared.plain);
    let held = held.map(|held| (held, driver.now()));
    let mut server = Server { endpoint, call, ends, held, clients, served, machine, plain, message: Vec::new() };
    server.serve(&mut driver, args.keep, common, (live, watch))?;
    if let Some(ends) = &mut server.ends {
        ends.say_goodbye(&mut driver, &mut server.endpoint);
    }
    server.endpoint.end_probe()?;
    watch.finish(live);
    if common.json {
        return json::print("perf server", &Document { clients: server.served });
    }
    Ok(())
}

impl<P: Protocol> Server<P> {
    fn serve(
        &mut self,
        driver: &mut Driver,
        keep: bool,
        common: &Common,
        (live, watch): (&mut Live, &Watch),
    ) -> Outcome {
        loop {
            let wake = match &mut self.ends {
                Some(ends) => {
                    let look = self.held.as_ref().map(|(_, at)| *at);
                    let until = [ends.next(), look].into_iter().flatten().min();
                    ends.drive(driver, &mut self.endpoint, until)
                }
                None => driver.drive(&mut self.endpoint, None),
            };
            let wake = wake.map_err(|e| common::broken(&e))?;
            let now = driver.now();
            self.tend(driver, live, matches!(wake, Wake::Interfaces(_)))?;
            watch.check(live);
            self.endpoint.probe()?;
            while let Some((id, event)) = self.endpoint.poll() {
                self.follow(driver, live, id, &event)?;
                let served = match self.take(now, id, event) {
                    None => continue,
                    Some(Err(why)) => {
                        live.warn_rarely(now, why);
                        continue;
                    }
                    Some(Ok(served)) => served,
                };
                live.note(format!(
                    "{} in {} messages in {:.2} s: {}",
                    units::bytes(served.bytes),
                    served.messages,
                    served.seconds,
                    units::rate(served.bits_per_second)
                ));
                security::lines(served.security.as_ref(), self.plain, true).iter().for_each(|line| live.note(line));
                if !common.json {
                    say(&result_line(&served))?;
                }
                remember(&mut self.served, served);
                if !keep {
                    return Ok(());
                }
            }
            while let Some(why) = self.endpoint.poll_turned_away() {
                live.warn_rarely(now, format!("a client was turned away: {why}"));
            }
            if wake == Wake::Interrupt {
                return Ok(());
            }
            if self.ticket_has_ended(now) {
                live.warn(ENDED);
                return Ok(());
            }
        }
    }

    /// Looks at the ticket now and then.
    fn ticket_has_ended(&mut self, now: Instant) -> bool {
        let Some((held, at)) = self.held.as_mut().filter(|(_, at)| *at <= now) else { return false };
        *at = now + LOOK_AT_TICKET;
        held.has_ended()
    }

    /// Paths of a call, and places at relays, join and leave.
    fn tend(&mut self, driver: &mut Driver, live: &Live, changed: bool) -> Outcome {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let (endpoint, id) = (&mut self.endpoint, self.call.as_ref().map(|call| call.id));
        if changed {
            ends.refresh(driver, live, &mut Dialled { endpoint, id })?;
        }
        ends.tend(driver, live, &mut Dialled { endpoint, id })
    }

    /// What an event means for the paths of a call, and for a call that nobody takes.
    fn follow(&mut self, driver: &mut Driver, live: &Live, id: P::Id, event: &ConnectionEvent) -> Outcome {
        let Some(Call { security, .. }) = self.call.as_mut().filter(|call| call.id == id) else { return Ok(()) };
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let endpoint = &mut self.endpoint;
        match event {
            ConnectionEvent::Connected => {
                live.note("connected");
                let report = endpoint.state(driver.now(), id).and_then(|state| state.security);
                security.connected(report.as_ref(), live);
            }
            ConnectionEvent::Answers(route) => {
                ends.up(*route, driver, live, &mut Dialled { endpoint, id: Some(id) });
            }
            ConnectionEvent::Silent(route) => {
                live.warn(format!("{} does not answer", ends.name(*route)));
                ends.down(driver.now(), *route);
            }
            ConnectionEvent::Closed(ending) if !self.clients.contains_key(&id) => {
                let hint = if let Some(why) = &ending.insecure {
                    security.hint(Some(why))
                } else {
                    "start `braidcast perf client --at` there first, with the same --key or --plain as here".into()
                };
                return Err(Failure::new(format!("no client was there: {}", ending.reason), hint));
            }
            _ => {}
        }
        Ok(())
    }

    /// Of a connection that has gone: the account, or a warning if it measured nothing.
    fn take(&mut self, now: Instant, id: P::Id, event: ConnectionEvent) -> Option<Result<Served, String>> {
        match event {
            ConnectionEvent::Connected => {
                let security = self.endpoint.state(now, id).and_then(|state| state.security);
                let one_way = Latencies::new();
                let client = Client { bytes: 0, messages: 0, first: None, last: now, one_way, security };
                self.clients.insert(id, client);
                None
            }
            ConnectionEvent::Readable => {
                self.read(now, id);
                None
            }
            ConnectionEvent::Closed(ending) => {
                self.read(now, id);
                match self.clients.remove(&id) {
                    None => {
                        ending.insecure.map(|why| Err(format!("a client was turned away: no secure connection: {why}")))
                    }
                    // Not a client of a measurement; it has to hear so before this end goes.
                    Some(client) if client.messages == 0 && !ending.orderly => {
                        Some(Err(format!("a client ended before it sent anything to measure: {}", ending.reason)))
                    }
                    Some(client) => Some(Ok(client.account(ending.orderly))),
                }
            }
            ConnectionEvent::Answers(_) | ConnectionEvent::Silent(_) | ConnectionEvent::Other => None,
        }
    }

    fn read(&mut self, now: Instant, id: P::Id) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        while let Some(purpose) = self.endpoint.recv(now, id, &mut self.message) {
            client.bytes += self.message.len() as u64;
            client.messages += 1;
            client.first.get_or_insert(now);
            client.last = now;
            if purpose == Purpose::Timed
                && let Some(stamp) = client.time(&self.message, self.machine)
            {
                self.endpoint.echo(now, id, &stamp.to_be_bytes());
            }
        }
    }
}

impl Client {
    /// The stamp of a message; notes how long it took if that can be known.
    fn time(&mut self, message: &[u8], machine: u64) -> Option<u64> {
        let mut reader = Reader::new(message);
        let (stamp, sent_by) = (reader.u64().ok()?, reader.u64().ok()?);
        if sent_by == machine {
            self.one_way.add(latency::clock().saturating_sub(stamp));
        }
        Some(stamp)
    }

    fn account(&self, complete: bool) -> Served {
        let seconds = self.first.map_or(0.0, |first| self.last.since(first).as_secs_f64());
        Served {
            bytes: self.bytes,
            messages: self.messages,
            seconds,
            bits_per_second: (self.bytes as f64 * 8.0 / seconds.max(1e-9)).round(),
            complete,
            latency_us: self.one_way.percentiles(),
            security: self.security.clone(),
        }
    }
}

/// One more is gone; of all of them the last are known.
fn remember(served: &mut VecDeque<Served>, one: Served) {
    if served.len() == MOST_KNOWN {
        served.pop_front();
    }
    served.push_back(one);
}

/// The line that the bench harness looks for.
fn result_line(served: &Served) -> String {
    let mut line = format!("RESULT bytes={} msgs={} secs={:.6}", served.bytes, served.messages, served.seconds);
    if let Some(p) = served.latency_us {
        line += &format!(" lat_us_p50={} lat_us_p99={} lat_us_p999={} lat_us_max={}", p.p50, p.p99, p.p999, p.max);
    }
    line
}

fn say(line: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| Failure::stdout(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_clients_that_are_gone_the_last_are_known() {
        let mut served = VecDeque::new();
        for bytes in 0..3000 {
            let (messages, seconds, bits_per_second) = (1, 1.0, 1.0);
            let (complete, latency_us, security) = (true, None, None);
            let one = Served { bytes, messages, seconds, bits_per_second, complete, latency_us, security };
            remember(&mut served, one);
        }
        assert!(served.iter().map(|it| it.bytes).eq(3000 - MOST_KNOWN as u64..3000));
    }
}
