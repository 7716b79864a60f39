//! `[sctp]`: the options of an SCTP association, by name. An option that a scenario shall be able
//! to set is a line here.

use super::keys::{self, Key, flag, key, misused, put, time, whole, word};
use super::value::{Settings, Value};
use super::wrong::Wrong;
use braidcast_sctp::{Limits, Options, PrVariant, SackOptions, SackPolicy};
use core::fmt::Display;
use core::str::FromStr;

/// The keys, those that set many options first.
pub(super) const KEYS: &[Key<Options>] = &[
    key("preset", preset),
    key("pr_variant", |o, v| {
        let variant: PrVariant = word(v)?;
        put(o, Ok(variant.apply(o.clone())))
    }),
    key("scheduler", |o, v| put(&mut o.paths.scheduler, word(v))),
    key("loss_detection", |o, v| put(&mut o.papers.loss_detection, word(v))),
    key("concurrent", |o, v| put(&mut o.paths.concurrent, flag(v))),
    key("selection", |o, v| off_or(&mut o.paths.selection, v)),
    key("hysteresis", |o, v| put(&mut o.paths.hysteresis, time(v))),
    key("time_guard", |o, v| put(&mut o.paths.time_guard, time(v))),
    key("retransmission", |o, v| put(&mut o.papers.retransmission, word(v))),
    key("cwnd_update", |o, v| put(&mut o.papers.cwnd_update, word(v))),
    key("rtt_samples", |o, v| put(&mut o.papers.rtt_samples, word(v))),
    key("abandonment", |o, v| put(&mut o.papers.abandonment, word(v))),
    key("stream_order", |o, v| put(&mut o.queue.stream_order, word(v))),
    key("nr_sack", |o, v| put(&mut o.papers.nr_sack, flag(v))),
    key("buffer_split", |o, v| put(&mut o.papers.buffer_split, word(v))),
    key("sack_path", |o, v| put(&mut o.sack.path, word(v))),
    key("quick_failover", quick_failover),
    key("switchover", switchover),
    key("initial_ssthresh", |o, v| put(&mut o.papers.initial_ssthresh, whole(v, 1, 1 << 30).map(Some))),
    key("min_ssthresh", |o, v| put(&mut o.papers.min_ssthresh, whole(v, 1, 1000))),
    key("cwnd_unit", |o, v| put(&mut o.papers.cwnd_unit, word(v))),
    key("growth_in_recovery", |o, v| put(&mut o.papers.growth_in_recovery, flag(v))),
    key("credit_when_full", |o, v| put(&mut o.papers.credit_when_full, flag(v))),
    key("timer_follows_cumulative", |o, v| put(&mut o.papers.timer_follows_cumulative, flag(v))),
    key("reports_by_gaps", |o, v| put(&mut o.papers.reports_by_gaps, flag(v))),
    key("max_burst", max_burst),
    key("cc", |o, v| put(&mut o.congestion.algorithm, word(v))),
    key("mark_response", |o, v| put(&mut o.congestion.mark_response, word(v))),
    key("congestion", |o, v| put(&mut o.congestion.coupling, word(v))),
    key("sack", sack),
    key("sack_every", |o, v| put(&mut o.sack.every, whole(v, 1, 1000))),
    key("sack_delay", |o, v| put(&mut o.sack.delay, time(v))),
    key("interleaving", |o, v| put(&mut o.interleaving, flag(v))),
    key("pacing", |o, v| put(&mut o.congestion.pacing, flag(v))),
    key("probe", |o, v| put(&mut o.paths.probe, flag(v))),
    key("rto_initial", |o, v| put(&mut o.timers.rto.initial, time(v))),
    key("rto_min", |o, v| put(&mut o.timers.rto.min, time(v))),
    key("rto_max", |o, v| put(&mut o.timers.rto.max, time(v))),
    key("reordering", |o, v| put(&mut o.timers.reordering, time(v).map(Some))),
    key("heartbeat", |o, v| put(&mut o.paths.heartbeat_interval, time(v))),
    key("heartbeat_jitter", |o, v| put(&mut o.paths.heartbeat_jitter, flag(v))),
    key("path_max_retrans", |o, v| put(&mut o.paths.path_max_retrans, whole(v, 0, 1000))),
    key("association_max_retrans", |o, v| put(&mut o.timers.association_max_retrans, whole(v, 0, 1000).map(Some))),
    key("initial_window", |o, v| put(&mut o.congestion.initial_window, whole(v, 1, 1000).map(Some))),
    key("queueing_limit", |o, v| put(&mut o.congestion.queueing_limit, time(v).map(Some))),
    key("send_buffer", |o, v| put(&mut o.limits.send_buffer, whole(v, 1, 1 << 30))),
    key("receive_buffer", |o, v| put(&mut o.limits.receive_buffer, whole(v, 1500, 1 << 30))),
    key("max_message", |o, v| put(&mut o.limits.max_message, whole(v, 1, 1 << 30))),
    key("streams", |o, v| put(&mut o.limits.streams, whole(v, 1, 65535))),
    key("mtu", mtu),
    key("queue", |o, v| off_or(&mut o.queue.method, v)),
    key("queue_scope", |o, v| put(&mut o.queue.scope, word(v))),
    key("send_queue", |o, v| put(&mut o.queue.limits, whole(v, 1, 1 << 20).map(Limits::messages))),
    key("ecn", |o, v| put(&mut o.congestion.ecn, flag(v))),
    key("fec", |o, v| off_or(&mut o.redundancy.fec, v)),
    key("fec_window", |o, v| put(&mut o.redundancy.fec_window, word(v))),
    key("fec_losses", |o, v| put(&mut o.redundancy.fec_losses, word(v))),
    key("fec_spared", |o, v| put(&mut o.redundancy.spared_in_a_crowd, whole(v, 0, 100))),
    key("fec_receive", |o, v| put(&mut o.redundancy.fec_receive, flag(v))),
    key("artx", |o, v| off_or(&mut o.redundancy.artx, v)),
    key("forward_delay", |o, v| put(&mut o.paths.forward_delay, flag(v))),
    key("plan_from", plan_from),
    key("delay_error", |o, v| put(&mut o.papers.delay_error, whole(v, 0, 1000))),
    key("artx_from", |o, v| put(&mut o.papers.artx_from, word(v))),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    keys::accepted(KEYS, &mut Options::default())
}

/// What a section in `tables`, the flow's own one first, has made of `options` must work. The
/// longest message fits both buffers unless the file says how long it is.
pub(super) fn finish(options: &mut Options, tables: [&Settings; 2]) -> Result<(), Wrong> {
    let limits = &mut options.limits;
    if tables.iter().all(|table| table.get("max_message").is_none()) {
        limits.max_message = limits.max_message.min(limits.send_buffer).min(limits.receive_buffer);
    }
    options.check().map_err(|misuse| misused(&misuse, tables, name))
}

/// What scenarios call an option.
fn name(option: &'static str) -> &'static str {
    match option {
        "paths.base_mtu" | "paths.max_mtu" => "mtu",
        "paths.heartbeat_interval" => "heartbeat",
        "timers.rto.initial" => "rto_initial",
        "timers.rto.min" => "rto_min",
        "timers.rto.max" => "rto_max",
        "sack.every" => "sack_every",
        "sack.delay" => "sack_delay",
        "queue.limits.messages" => "send_queue",
        _ => option.rsplit('.').next().unwrap_or(option),
    }
}

fn preset(options: &mut Options, value: &Value) -> Result<(), String> {
    *options = match value.to_string().as_str() {
        "default" => Options::default(),
        "live" => Options::live(),
        "classic" => Options::classic(),
        other => return Err(format!("no preset is called '{other}'; there are: default, live, classic")),
    };
    Ok(())
}

/// `off`, or after how many timeouts a path is potentially failed.
fn quick_failover(options: &mut Options, value: &Value) -> Result<(), String> {
    let after = if value.says("off") { Ok(None) } else { whole(value, 0, 1000).map(Some) };
    put(&mut options.paths.quick_failover, after)
}

/// `off`, or after how many timeouts the primary path is another one.
fn switchover(options: &mut Options, value: &Value) -> Result<(), String> {
    let after = if value.says("off") { Ok(None) } else { whole(value, 0, 1000).map(Some) };
    put(&mut options.paths.switchover, after)
}

/// `off`, or the distance from which a path takes parts by a plan.
fn plan_from(options: &mut Options, value: &Value) -> Result<(), String> {
    let from = if value.says("off") { Ok(None) } else { time(value).map(Some) };
    put(&mut options.paths.plan_from, from)
}

/// Packets that RFC 9260 recommends, and ns-2.35 has.
const MAX_BURST: u32 = 4;

/// `off`, packets for one acknowledgement, or a word for ns-2's rule.
fn max_burst(options: &mut Options, value: &Value) -> Result<(), String> {
    options.papers.max_burst_after_retransmission = value.says("after-retransmission");
    let most = if value.says("off") {
        Ok(None)
    } else if options.papers.max_burst_after_retransmission {
        Ok(Some(MAX_BURST))
    } else {
        whole(value, 1, 1000).map(Some)
    };
    put(&mut options.papers.max_burst, most)
}

/// `off`, or a word.
fn off_or<T: FromStr<Err: Display>>(option: &mut Option<T>, value: &Value) -> Result<(), String> {
    put(option, if value.says("off") { Ok(None) } else { word(value).map(Some) })
}

/// The name of a [`SackPolicy`].
fn sack(options: &mut Options, value: &Value) -> Result<(), String> {
    let SackOptions { every, dac, .. } = word::<SackPolicy>(value)?.into();
    (options.sack.every, options.sack.dac) = (every, dac);
    Ok(())
}

/// SCTP packets of exactly this size, without probing for larger ones.
fn mtu(options: &mut Options, value: &Value) -> Result<(), String> {
    let size: usize = whole(value, 576, 65000)?;
    (options.paths.base_mtu, options.paths.max_mtu) = (size, size);
    Ok(())
}
