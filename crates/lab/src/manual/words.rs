//! What the keys of scenarios mean, in words.

/// The keys at the top of a scenario and its lists: key, value, meaning.
pub(super) const TOP: &[(&str, &str, &str)] = &[
    ("name", "text, required", "the name that `lab run` and results use"),
    ("title", "text, required", "one line for people"),
    ("source", "text", "document, section and figure that it is compared with"),
    ("text", "text", "what it shows; empty lines separate paragraphs"),
    ("experiment", "a measure of the table above, required", "the code that measures a run"),
    ("runs", "a whole number from 1 (10)", "runs at each point, each with a seed of its own"),
    ("duration", "for example 60s, required", "how long each run measures, after handshake and warm-up"),
    (
        "[sweep]",
        "`param = [values]`",
        "parameters; the product of all lists is run, and `${param}` in any text is the value",
    ),
    (
        "[[case]]",
        "`params = { … }` and any setting",
        "points that are listed one by one; each is combined with the whole sweep",
    ),
    ("[[variant]]", "`name` and any setting", "what is compared; wins over the case"),
    (
        "[[reference]]",
        "see [The lab](lab.md)",
        "a CSV file of published values or of ns-2's, and how its columns relate to rows",
    ),
    ("[[claim]]", "see [The lab](lab.md)", "an order or factor that the source claims; checked by 95 % intervals"),
    ("[[difference]]", "see [The lab](lab.md)", "the reason why values are more than 15 % from a reference"),
    ("[[plot]]", "see [The lab](lab.md)", "a plot in the report"),
];

/// What a section is about.
pub(super) fn about(section: &str) -> &'static str {
    match section {
        "network" => "What concerns the network as a whole.",
        "link.NAME" => {
            "A link, one section each. Values are written as for `braidcast emulate`. `back-KEY` sets a key for the direction from the receiver to the sender alone; \
             loss, reordering, duplication and corruption act towards the receiver only unless `back-KEY` says otherwise."
        }
        "flow.NAME" => {
            "A sender and a receiver. Without any such section there is one flow, `main`, with each link as a path. `[flow.NAME.traffic]`, `[flow.NAME.sctp]` and so on \
             override `[traffic]`, `[sctp]` and so on for this flow."
        }
        "traffic" => "What flows send and what is noted about it.",
        "live" => "A session as `braidcast send` and `receive` run it. The section makes `live` the agent of flows.",
        "sctp" => "Options of SCTP associations, at both ends. Papers' variants are named as in the papers.",
        "dccp" => "Options of DCCP connections, at both ends.",
        "tcp" => "Options of TCP connections of the simulator.",
        _ => "",
    }
}

/// What a key means; empty for one that is not described yet.
pub(super) fn meaning(section: &str, key: &str) -> &'static str {
    let table = match section {
        "network" => NETWORK,
        "link.NAME" => LINK,
        "flow.NAME" => FLOW,
        "traffic" => TRAFFIC,
        "live" => LIVE,
        "sctp" => SCTP,
        "dccp" => DCCP,
        "tcp" => TCP,
        _ => &[],
    };
    table.iter().find(|(name, _)| *name == key).map_or("", |(_, text)| text)
}

type Words = &'static [(&'static str, &'static str)];

const NETWORK: Words = &[
    ("wrap", "headers around each packet: `udp` 28 bytes (default), `ip` 20"),
    ("vary_start", "each flow starts up to this much later, drawn for each seed"),
    ("vary_delay", "each link's delay differs by up to this share, drawn for each seed"),
];

const LINK: Words = &[
    ("rate", "capacity; steps and ramps over time are possible"),
    ("delay", "one-way delay, each direction"),
    ("rtt", "twice the delay: half of it in each direction"),
    ("delays", "a delay that changes with time"),
    ("jitter", "variation of the delay: uniform, or `normal:` with its standard deviation"),
    ("queue", "what may wait before the link: packets (p), bytes, or time; `red:…` and `codel:…` are disciplines"),
    ("mtu", "longest packet in bytes"),
    ("overhead", "bytes that the link adds to each packet"),
    ("outage", "times without service, or a list of them; `,hold` keeps packets instead of losing them"),
    ("loss", "random loss, losses in bursts, Gilbert-Elliott's model, or listed packets"),
    ("policer", "rate and depth of a token bucket before the queue, which drops what comes faster at once; or `off`"),
    ("reorder", "share of packets that skip the delay or come later"),
    ("duplicate", "share of packets that arrive twice"),
    ("corrupt", "share of packets with a wrong bit"),
    ("trace", "a recorded link in place of `rate`: one line for each chance to send 1500 bytes, its millisecond"),
    ("trace-from", "where in the recording to begin"),
];

const FLOW: Words = &[
    ("agent", "the protocol; all but `sctp` and `live` use the first path"),
    ("back", "what the receiver sends as well, over the same DCCP connection"),
    (
        "copies",
        "so many flows of this kind, named `NAME 1`, `NAME 2`, …; each has its own start and its own random choices",
    ),
    ("paths", "each path: its links in order; flows that name the same link share its queue"),
];

const TRAFFIC: Words = &[
    ("source", "when there is how much to send: see [words for traffic](#words-for-traffic)"),
    ("message", "bytes of each message of bulk traffic over SCTP or DCCP"),
    ("streams", "SCTP streams that messages take in turn"),
    ("by_kind", "a stream and priority for each kind of frame: I, then P, then B"),
    ("deadline", "a message is on time this long after it was made (200ms)"),
    ("log", "notes each message that arrives; some measures need it"),
    ("unordered", "messages are delivered in any order"),
    ("lifetime", "after this time a message is abandoned"),
    ("retransmissions", "how often a message over SCTP is repeated at most; `lifetime` goes before it"),
    ("start", "when the flow begins"),
    ("warmup", "what is not measured, from the first data on"),
    ("playout", "the listener's jitter buffer, over DCCP or UDP"),
    ("emodel", "which form of the E-model rates calls"),
    ("codec", "the codec of calls, for the E-model"),
    ("advantage", "the E-model's advantage factor A"),
    (
        "max_loss",
        "over DCCP, refuse a call that begins while the loss event rate is higher or no more fit, as `tunnel --max-loss`",
    ),
    (
        "encoder",
        "over DCCP, makes the frames of `gop:` smaller: to the rate that congestion control allows, beginning at a rate, or to a known one",
    ),
    ("sample", "how often windows, RTT and rates are noted, for curves"),
];

const LIVE: Words = &[
    ("latency", "from capture to output (500ms)"),
    ("queue", "as `send --queue`"),
    ("scheduler", "as `send --scheduler`"),
    ("cc", "as `send --cc`"),
    ("fec", "as `send --fec`"),
    ("path", "as `send --path`; `off`: all paths at once"),
    ("hysteresis", "as `send --hysteresis`, for `path`"),
    ("time_guard", "as `send --time-guard`, for `path`"),
    ("probe_interval", "as `send --probe-interval`, for `path`"),
    ("quick_failover", "as `send --quick-failover`"),
    ("path_max_retrans", "as `send --path-max-retrans`"),
    ("retransmission", "as `send --retransmission`"),
    ("early", "as `receive --early`"),
    ("reinject", "what would be late over its path goes over another one too, if that has room, as `send` does (true)"),
    ("lead", "how long the session exists before the clip begins (3s)"),
    ("encoder", "`follow`: in place of a clip, video whose encoder makes what the sender says it may (`off`)"),
    ("rate_range", "the rates that the encoder is able to make (100kbit-6mbit)"),
    ("fps", "frames in a second of that encoder (30)"),
    ("yardstick", "what senders without foresight could have shown is measured too, step by step (false)"),
    ("clip", "`test-1.7` (default), `test-3.6`, `bunny-1.7`, `bunny-3.6`, or a file beside the scenario"),
    ("rate", "scales the video so that the clip has this rate, for example 5mbit"),
];

const SCTP: Words = &[
    ("preset", "a set of options that others then change: `classic` is ns-2's"),
    ("pr_variant", "a variant of PR-CMT, with all the options that belong to it"),
    ("scheduler", "which path the next packet takes"),
    ("loss_detection", "by time for each path (after RFC 8985), or by counting reports"),
    ("concurrent", "`true`: all paths at once; `false`: the primary path, with failover"),
    ("selection", "by what the one path is chosen while it runs (needs `concurrent = false`); `off`: the primary path"),
    ("hysteresis", "how much less another path's delay must be, for `selection`"),
    ("time_guard", "for how long at most another path must be better, for `selection`: uniform from 0"),
    ("heartbeat_jitter", "pauses between heartbeats as in RFC 9260 §8.3: 50 % more or less, and an RTO"),
    ("retransmission", "which path a retransmission takes"),
    ("cwnd_update", "how CMT updates windows: CUC, CUCv2, or plain SCTP"),
    ("rtt_samples", "which chunks give RTT samples"),
    ("abandonment", "when PR-SCTP abandons a message"),
    ("stream_order", "which of the streams that wait is served next (RFC 8260 §3)"),
    ("nr_sack", "non-renegable SACKs"),
    ("buffer_split", "how paths share the send buffer"),
    ("sack_path", "which path a SACK takes"),
    (
        "reordering",
        "how long at most a packet may be overtaken before it counts as lost, with `sack_path = \"quickest\"` where SACKs \
         come back over another path; a quarter of the round trip by default",
    ),
    ("quick_failover", "potentially-failed after this many timeouts (RFC 7829); off by default"),
    (
        "switchover",
        "the primary path is another one after this many timeouts (RFC 7829 §5, needs `concurrent = false`); off by default",
    ),
    ("initial_ssthresh", "first slow-start threshold, bytes"),
    ("min_ssthresh", "least slow-start threshold, packets"),
    ("cwnd_unit", "what the window counts"),
    ("growth_in_recovery", "the window grows during fast recovery"),
    ("credit_when_full", "what is acknowledged cumulatively earns growth only if the window was full, as ns-2 has it"),
    ("timer_follows_cumulative", "T3-rtx starts anew with each cumulative acknowledgement of its path, as in ns-2"),
    ("reports_by_gaps", "gap blocks alone say for how many missing reports a SACK counts, as in ns-2"),
    ("max_burst", "packets sent at once at most; `after-retransmission`, four then only, as ns-2 has it; or off"),
    ("cc", "congestion controller of each path"),
    ("mark_response", "how windows answer ECN marks"),
    ("congestion", "windows for each path, or coupled"),
    ("sack", "when the receiver acknowledges"),
    ("sack_every", "packets for each SACK"),
    ("sack_delay", "longest wait before a SACK"),
    ("interleaving", "I-DATA (RFC 8260)"),
    ("pacing", "spreads packets over the round trip"),
    ("probe", "probes a path that fell silent before its timeout"),
    ("rto_initial", "first retransmission timeout"),
    ("rto_min", "least retransmission timeout"),
    ("rto_max", "longest retransmission timeout"),
    ("heartbeat", "interval of heartbeats on idle paths"),
    ("path_max_retrans", "timeouts after which a path is inactive"),
    ("association_max_retrans", "timeouts after which the association ends"),
    ("initial_window", "first congestion window, packets"),
    ("queueing_limit", "most queueing delay that the window may build"),
    ("send_buffer", "bytes"),
    ("receive_buffer", "bytes"),
    ("max_message", "longest message, bytes"),
    ("streams", "outgoing streams"),
    ("mtu", "bytes of the longest SCTP packet, or discovery"),
    ("queue", "the queue in front of the streams, or `off`"),
    ("queue_scope", "`alone`: by kinds of messages; `under`: within the priorities of streams"),
    ("send_queue", "messages that may wait in that queue"),
    ("ecn", "explicit congestion notification"),
    ("fec", "erasure code, or `off`"),
    ("fec_window", "whether redundancy counts in the congestion window"),
    ("fec_losses", "whether losses that were repaired shrink the window"),
    ("fec_spared", "percentage of automatic redundancy that is not sent in overload (75 in sessions, decision 44)"),
    ("fec_receive", "takes redundancy without sending any"),
    ("artx", "adaptive retransmission delay: the reading of eq. 8.2, or `off`"),
    ("forward_delay", "measures delays one way where the scheduler heeds them (decision 21)"),
    ("plan_from", "distance from the nearest path from which one takes parts by a plan, or `off` (decision 41)"),
    ("delay_error", "percentage by which the scheduler overestimates forward delays (THESIS §7.2.1)"),
    ("artx_from", "from when the delay of aRTX counts"),
];

const DCCP: Words = &[
    ("ccid", "congestion control"),
    ("cc", "in place of that of `ccid2` (`reno`) or `ccid-cubic` (`cubic`)"),
    ("rules", "TFRC: `rfc3448`, `rfc4342` (as CCID 3 amends it) or `rfc5348` (default)"),
    (
        "feedback",
        "TFRC: reports in a round trip, `dynamic`, or the part of it that has one, as `200ms` (RTT_ref of THESIS eq. 4.8; dynamic is 100 ms)",
    ),
    ("faster_restart", "Faster Restart after idle times"),
    ("reduce_oscillations", "RFC 5348 §4.5"),
    ("ask_loss_event_rate", "asks the receiver for its loss event rate option"),
    ("dup_acks", "later packets after which one is lost"),
    ("granularity", "of the sender's timer"),
    ("nominal_rtt", "round trip of CCID4-N100's initial rate (100 ms; THESIS eq. 4.13)"),
    ("discard_takes_turn", "a discarded message uses up its turn to send"),
    ("loss_event_divisor", "divides the loss event rate that TFRC goes by: SBPN's kernel, and no other"),
    ("reorder", "the receiver's reordering buffer: `off` (default) or its longest wait"),
    ("reorder_packets", "packets in that buffer, in place of X · D_max bytes"),
    ("queue", "which message goes next"),
    ("send_queue", "messages that may wait (64)"),
    ("one_way_delay", "what `queue` assumes: `half-rtt` (default, SBPN §3.4), `measured`, or a known time"),
    ("padding", "bytes that `keep-alive` sends in place of a discarded message"),
    ("receive_buffer", "bytes (1 MiB)"),
    ("max_packet", "bytes with DCCP's header (1400)"),
    ("sequence_window", "packets"),
    ("short_seqnos", "24-bit sequence numbers on data packets"),
    ("ndp_count", "sends the NDP Count option"),
    ("data_checksum", "sends the Data Checksum option"),
    ("ecn", "explicit congestion notification"),
    ("ecn_nonce", "the ECN nonce (RFC 3540)"),
];

const TCP: Words = &[
    ("mss", "bytes in a segment"),
    ("initial_window", "segments"),
    ("receive_window", "bytes"),
    ("delayed_ack", "longest wait before an acknowledgement"),
    ("rto_initial", "first retransmission timeout"),
    ("rto_min", "least retransmission timeout"),
    ("rto_max", "longest retransmission timeout"),
    ("ecn", "explicit congestion notification"),
    ("cc", "congestion control"),
];
