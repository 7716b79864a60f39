//! How much ours carries to Linux and back, beside Linux to Linux over the same emulated link at the same time.

use super::flows::{plain, received, send};
use super::link::{self, Ends};
use super::{LIMIT, connect, number, options};
use braidcast_dccp::Ccid;
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::Guest;
use std::time::Duration;

/// What `netem` makes of each direction of a link.
const LINKS: [&str; 3] = [
    "rate 2mbit delay 30ms limit 50",
    "rate 2mbit delay 30ms loss 1% limit 50",
    "rate 2mbit delay 30ms loss 2% limit 50",
];

/// kbit/s of one run.
#[derive(Clone, Copy, Debug)]
struct Run {
    linux_to_linux: f64,
    ours: f64,
}

/// Linux to Linux beside ours to Linux (`sending`) or Linux to ours.
fn run(guest: &Guest, ccid: Ccid, sending: bool, seconds: u64) -> Run {
    let n = ccid.number();
    let mode = if sending { "sink" } else { "source" };
    let start = [
        format!("lp-start far /usr/bin/ip netns exec far dccp_peer -l -p 5001 -1 -C {n} -S TEST -Q"),
        format!("lp-start near dccp_peer -l -1 -p 5301 -m {mode} -C {n} -S TEST -Q"),
    ];
    let (said, status) = guest.shell(&start.join("; "));
    assert!(status.success(), "{said}");
    let mut ours = Dccp::new(options(&[ccid]));
    let id = connect(&mut ours, 5301);
    let begun = ours.now();
    let (mut next, mut bytes, mut done) = (0, 0, None);
    let between = format!("dccp_peer -h 10.99.0.2 -p 5001 -C {n} -S TEST -m source -t {seconds} -Q");
    ours.meanwhile(
        || guest.shell(&between),
        |ours| {
            let took = ours.now().since(begun);
            if took >= Duration::from_secs(seconds) && done.is_none() {
                done = Some(took);
                // Packets in flight still arrive, as at the end of the other connection.
                ours.with(id, |it, _| it.abort());
            }
            if done.is_some() {
                return;
            }
            ours.with(id, |it, now| {
                if sending {
                    send(it, now, &mut next, u32::MAX, plain);
                }
                bytes += received(it).iter().map(Vec::len).sum::<usize>();
            });
        },
    );
    ours.until(LIMIT, "end", |ours| ours.closed(id).is_some());
    let (far, near) = (guest.stop("far"), guest.stop("near"));
    let kbit = |bytes: u64, seconds: f64| bytes as f64 * 8e-3 / seconds;
    let seconds = seconds as f64;
    let linux_to_linux = kbit(number(&far, "rx_bytes"), seconds);
    let took = done.map_or(seconds, |it| it.as_secs_f64());
    let ours = kbit(if sending { number(&near, "rx_bytes") } else { bytes as u64 }, took);
    Run { linux_to_linux, ours }
}

/// Prints a row for each link and CCID: means of all runs.
pub(crate) fn table(guest: &Guest) {
    let setting = |name: &str, or: u64| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(or);
    let (seconds, runs) = (setting("SECONDS_EACH", 20).min(25), setting("RUNS", 4));
    link::prepare(guest, Ends::OursAndFar);
    let mut rows = Vec::new();
    for netem in LINKS {
        link::emulate(guest, Ends::OursAndFar, netem);
        for ccid in [Ccid::Two, Ccid::Three] {
            let mut all: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
            for n in 0..runs {
                for sending in [true, false] {
                    let run = run(guest, ccid, sending, seconds);
                    println!("{netem}, {ccid}, run {n}, we send: {sending}: {run:?}");
                    all[usize::from(sending)].push(run);
                }
            }
            let mean = |runs: &[Run], what: fn(&Run) -> f64| runs.iter().map(what).sum::<f64>() / runs.len() as f64;
            let both: Vec<Run> = all.concat();
            let linux = mean(&both, |it| it.linux_to_linux);
            let [to_us, from_us] = all.map(|runs| mean(&runs, |it| it.ours));
            rows.push(format!(
                "| {netem} | {ccid} | {linux:.0} | {from_us:.0} ({:+.0} %) | {to_us:.0} ({:+.0} %) |",
                (from_us / linux - 1.0) * 100.0,
                (to_us / linux - 1.0) * 100.0
            ));
        }
    }
    println!(
        "| link, each direction | | Linux to Linux, kbit/s | ours to Linux | Linux to ours |\n|---|---|---|---|---|"
    );
    println!("{}", rows.join("\n"));
}
