//! `braidcast perf server`: takes what clients send and counts it.

use super::latency::{self, Latencies, Percentiles};
use super::{ECHO, TIMED};
use crate::args::{Common, PerfServerArgs};
use crate::cmd::common;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, units};
use braidcast_core::{Instant, Machine, Reader};
use braidcast_driver::{Bind, Driver, Wake};
use braidcast_sctp::{Association, AssociationId, CloseReason, Endpoint, Event, SendOptions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// What one client sent.
#[derive(Clone, Serialize)]
struct Served {
    bytes: u64,
    messages: u64,
    /// From the first message to the last.
    seconds: f64,
    bits_per_second: f64,
    /// Whether the client shut down in good order.
    complete: bool,
    /// One way, client to server; known only on one machine.
    latency_us: Option<Percentiles>,
}

#[derive(Serialize)]
struct Document {
    clients: Vec<Served>,
}

/// A client that is being served.
struct Client {
    bytes: u64,
    messages: u64,
    first: Option<Instant>,
    last: Instant,
    one_way: Latencies,
}

struct Server {
    endpoint: Endpoint,
    clients: BTreeMap<AssociationId, Client>,
    served: Vec<Served>,
    machine: u64,
    message: Vec<u8>,
}

pub(super) fn run(args: &PerfServerArgs, common: &Common) -> Outcome {
    let mut driver = common::driver()?;
    let live = Live::new(common.quiet);
    for (addr, port) in &args.listen.0 {
        let bind = Bind { addr: *addr, port: *port, ..Bind::default() };
        let socket = driver.bind(&bind).map_err(|e| Failure::new(e.to_string(), "choose another LISTEN"))?;
        live.note(format!(
            "listening on {}",
            driver.socket(socket).map_or_else(String::new, |s| s.local_addr().to_string())
        ));
    }
    if !common.json {
        say("READY")?;
    }
    let mut endpoint = Endpoint::new(common::sctp_options(args.key.as_deref()), common::rng(None)?);
    endpoint.listen();
    let (clients, served) = (BTreeMap::new(), Vec::new());
    let mut server = Server { endpoint, clients, served, machine: latency::machine(), message: Vec::new() };
    server.serve(&mut driver, args.keep, common, &live)?;
    if common.json {
        return json::print("perf server", &Document { clients: server.served });
    }
    Ok(())
}

impl Server {
    fn serve(&mut self, driver: &mut Driver, keep: bool, common: &Common, live: &Live) -> Outcome {
        loop {
            let wake = driver.drive(&mut self.endpoint, None).map_err(|e| common::broken(&e))?;
            let now = driver.now();
            while let Some((id, event)) = self.endpoint.poll_event() {
                let Some(served) = self.take_event(now, id, event) else { continue };
                live.note(format!(
                    "{} in {} messages in {:.2} s: {}",
                    units::bytes(served.bytes),
                    served.messages,
                    served.seconds,
                    units::rate(served.bits_per_second)
                ));
                if !common.json {
                    say(&result_line(&served))?;
                }
                self.served.push(served);
                if !keep {
                    return Ok(());
                }
            }
            if wake == Wake::Interrupt {
                return Ok(());
            }
        }
    }

    /// The account of a client that has gone.
    fn take_event(&mut self, now: Instant, id: AssociationId, event: Event) -> Option<Served> {
        match event {
            Event::Connected => {
                let client = Client { bytes: 0, messages: 0, first: None, last: now, one_way: Latencies::new() };
                self.clients.insert(id, client);
                None
            }
            Event::Readable => {
                self.read(now, id);
                None
            }
            Event::Closed(reason) => {
                self.read(now, id);
                self.clients.remove(&id).map(|client| client.account(&reason))
            }
            _ => None,
        }
    }

    fn read(&mut self, now: Instant, id: AssociationId) {
        let (Some(client), Some(association)) = (self.clients.get_mut(&id), self.endpoint.association_mut(id)) else {
            return;
        };
        while let Some(received) = association.recv(now, &mut self.message) {
            client.bytes += self.message.len() as u64;
            client.messages += 1;
            client.first.get_or_insert(now);
            client.last = now;
            if received.ppid == TIMED {
                client.answer(now, association, &self.message, self.machine);
            }
        }
    }
}

impl Client {
    /// Notes how long a message took if that can be known, and sends its stamp back.
    fn answer(&mut self, now: Instant, association: &mut Association, message: &[u8], machine: u64) {
        let mut reader = Reader::new(message);
        let (Ok(stamp), Ok(sent_by)) = (reader.u64(), reader.u64()) else { return };
        if sent_by == machine {
            self.one_way.add(latency::clock().saturating_sub(stamp));
        }
        let how = SendOptions { ppid: ECHO, unordered: true, ..SendOptions::default() };
        // A client that is closing takes no more echoes; it has counted what it has.
        let _closing = association.send(now, &stamp.to_be_bytes(), how);
    }

    fn account(&self, reason: &CloseReason) -> Served {
        let seconds = self.first.map_or(0.0, |first| self.last.since(first).as_secs_f64());
        Served {
            bytes: self.bytes,
            messages: self.messages,
            seconds,
            bits_per_second: (self.bytes as f64 * 8.0 / seconds.max(1e-9)).round(),
            complete: *reason == CloseReason::Shutdown,
            latency_us: self.one_way.percentiles(),
        }
    }
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
