//! `[sctp]`: the options of an SCTP association, by name. An option that a scenario shall be able to set is a line here.

use super::keys::{Key, flag, key, time, whole, word};
use super::value::Value;
use braidcast_sctp::{Options, SackOptions};

/// The keys, those that set many options first.
pub(super) const KEYS: &[Key<Options>] = &[
    key("preset", preset),
    key("scheduler", |o, v| Ok(o.scheduler = word(v)?)),
    key("loss_detection", |o, v| Ok(o.loss_detection = word(v)?)),
    key("loss_response", |o, v| Ok(o.loss_response = word(v)?)),
    key("sack", sack),
    key("sack_every", |o, v| Ok(o.sack.every = whole(v, 1, 1000)? as u32)),
    key("sack_delay", |o, v| Ok(o.sack.delay = time(v)?)),
    key("interleaving", |o, v| Ok(o.interleaving = flag(v)?)),
    key("pacing", |o, v| Ok(o.pacing = flag(v)?)),
    key("probe", |o, v| Ok(o.probe = flag(v)?)),
    key("rto_initial", |o, v| Ok(o.rto.initial = time(v)?)),
    key("rto_min", |o, v| Ok(o.rto.min = time(v)?)),
    key("rto_max", |o, v| Ok(o.rto.max = time(v)?)),
    key("heartbeat", |o, v| Ok(o.heartbeat_interval = time(v)?)),
    key("path_max_retrans", |o, v| Ok(o.path_max_retrans = whole(v, 0, 1000)? as u32)),
    key("association_max_retrans", |o, v| Ok(o.association_max_retrans = whole(v, 0, 1000)? as u32)),
    key("initial_window", |o, v| Ok(o.initial_window = Some(whole(v, 1, 1000)? as usize))),
    key("queueing_limit", |o, v| Ok(o.queueing_limit = Some(time(v)?))),
    key("send_buffer", |o, v| Ok(o.send_buffer = whole(v, 1, 1 << 30)? as usize)),
    key("receive_buffer", |o, v| Ok(o.receive_buffer = whole(v, 1500, 1 << 30)? as usize)),
    key("max_message", |o, v| Ok(o.max_message = whole(v, 1, 1 << 30)? as usize)),
    key("streams", |o, v| Ok(o.streams = whole(v, 1, 65535)? as u16)),
    key("mtu", mtu),
];

fn preset(options: &mut Options, value: &Value) -> Result<(), String> {
    *options = match value.to_string().as_str() {
        "default" => Options::default(),
        "live" => Options::live(),
        other => return Err(format!("no preset is called '{other}'; there are: default, live")),
    };
    Ok(())
}

/// Plain RFC 9260 each packet, RFC 9260 delayed, or delayed acknowledgement for CMT (THESIS §6.1: "CMT-SACK").
fn sack(options: &mut Options, value: &Value) -> Result<(), String> {
    let (every, dac) = match value.to_string().as_str() {
        "every-packet" => (1, false),
        "delayed" => (2, false),
        "dac" => (2, true),
        other => return Err(format!("no SACK rule is called '{other}'; there are: every-packet, delayed, dac")),
    };
    options.sack = SackOptions { every, dac, ..options.sack };
    Ok(())
}

/// SCTP packets of exactly this size, without probing for larger ones.
fn mtu(options: &mut Options, value: &Value) -> Result<(), String> {
    let size = whole(value, 576, 65000)? as usize;
    (options.base_mtu, options.max_mtu) = (size, size);
    Ok(())
}
