//! `[dccp]`: the options of a DCCP connection, by name, at both ends. An option that a scenario
//! shall be able to set is a line here.

use super::keys::{self, Key, flag, key, misused, put, time, whole, word};
use super::value::{Settings, Value};
use super::wrong::Wrong;
use braidcast_dccp::{Ccid, Limits, OneWayDelay, Options, ReorderOptions, Variant};
use core::time::Duration;

/// The keys, what a choice of congestion control sets first.
pub(super) const KEYS: &[Key<Options>] = &[
    key("ccid", ccid),
    key("cc", |o, v| put(&mut o.cc, word(v).map(Some))),
    key("rules", |o, v| put(&mut o.tfrc.rules, word(v))),
    key("feedback", |o, v| put(&mut o.tfrc.feedback, word(v).map(Some))),
    key("faster_restart", |o, v| put(&mut o.tfrc.faster_restart, flag(v))),
    key("reduce_oscillations", |o, v| put(&mut o.tfrc.reduce_oscillations, flag(v))),
    key("ask_loss_event_rate", |o, v| put(&mut o.tfrc.ask_loss_event_rate, flag(v))),
    key("dup_acks", |o, v| put(&mut o.tfrc.dup_acks, whole(v, 1, 3))),
    key("granularity", |o, v| put(&mut o.tfrc.granularity, time(v))),
    key("nominal_rtt", |o, v| put(&mut o.tfrc.nominal_rtt, time(v))),
    key("discard_takes_turn", |o, v| put(&mut o.tfrc.discard_takes_turn, flag(v))),
    key("loss_event_divisor", |o, v| put(&mut o.tfrc.loss_event_divisor, whole(v, 1, 10))),
    key("reorder", reorder),
    key("reorder_packets", reorder_packets),
    key("queue", |o, v| put(&mut o.queue, word(v))),
    key("send_queue", |o, v| put(&mut o.send_queue, whole(v, 1, 1 << 20).map(Limits::messages))),
    key("one_way_delay", one_way_delay),
    key("padding", padding),
    key("receive_buffer", |o, v| put(&mut o.receive_buffer, whole(v, 1500, 1 << 30))),
    key("max_packet", |o, v| put(&mut o.max_packet, whole(v, 128, 65_000))),
    key("sequence_window", |o, v| put(&mut o.sequence_window, whole(v, 32, (1 << 46) - 1))),
    key("short_seqnos", |o, v| put(&mut o.short_seqnos, flag(v))),
    key("ndp_count", |o, v| put(&mut o.ndp_count, flag(v))),
    key("data_checksum", |o, v| put(&mut o.data_checksum, flag(v))),
    key("ecn", |o, v| put(&mut o.ecn, flag(v))),
    key("ecn_nonce", |o, v| put(&mut o.ecn_nonce, flag(v))),
];

/// For the manual.
pub(super) fn accepted() -> Vec<(&'static str, String)> {
    keys::accepted(KEYS, &mut Options::default())
}

/// What a section in `tables`, the flow's own one first, has made of `options` must work.
pub(super) fn finish(options: &mut Options, tables: [&Settings; 2]) -> Result<(), Wrong> {
    // The networks of experiments carry what they are given: no probes of the path's size among the
    // packets that are counted.
    options.base_packet = options.max_packet;
    options.check().map_err(|misuse| misused(&misuse, tables, name))
}

/// What scenarios call an option.
fn name(option: &'static str) -> &'static str {
    match option {
        "base_packet" => "max_packet",
        "send_queue.messages" => "send_queue",
        _ => option.rsplit('.').next().unwrap_or(option),
    }
}

/// A CCID by its name, or a variant of CCID 4.
fn ccid(options: &mut Options, value: &Value) -> Result<(), String> {
    let variant = [Variant::Ccid4N, Variant::Ccid4N100].into_iter().find(|it| value.says(&it.to_string()));
    options.ccids = match variant {
        Some(_) => vec![Ccid::Four],
        None => vec![word(value).map_err(|e| format!("{e}, ccid4-n, ccid4-n100"))?],
    };
    options.tfrc.ccid4 = variant.unwrap_or(Variant::TfrcSp);
    Ok(())
}

/// `half-rtt`, `measured`, or a time that is known.
fn one_way_delay(options: &mut Options, value: &Value) -> Result<(), String> {
    options.one_way_delay = match value {
        _ if value.says("half-rtt") => OneWayDelay::HalfRoundTrip,
        _ if value.says("measured") => OneWayDelay::Measured,
        known => OneWayDelay::Known(time(known).map_err(|e| format!("{e}; or half-rtt, or measured"))?),
    };
    Ok(())
}

/// Sets a message of `value` bytes that no source makes: its check is wrong.
fn padding(options: &mut Options, value: &Value) -> Result<(), String> {
    let mut message = vec![0; whole(value, 1, 65_000)?];
    message[0] = 1;
    options.padding = Some(message.into());
    Ok(())
}

/// `off`, or how long a packet may wait for those before it.
fn reorder(options: &mut Options, value: &Value) -> Result<(), String> {
    let buffer = if value.says("off") { Ok(None) } else { time(value).map(|it| Some(ReorderOptions::new(it))) };
    put(&mut options.reorder, buffer)
}

/// Packets that may wait, in place of as many as arrive in that time.
fn reorder_packets(options: &mut Options, value: &Value) -> Result<(), String> {
    let packets = whole(value, 1, 100_000)?;
    // Packets alone bound the buffer if no time is said: a second is more than any of them should wait.
    options.reorder.get_or_insert(ReorderOptions::new(Duration::from_secs(1))).packets = Some(packets);
    Ok(())
}
