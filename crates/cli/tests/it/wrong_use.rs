//! Wrong use ends with status 2 and says how it is done right.

use crate::common::Test;

/// Runs and insists on exit status 2, an empty stdout and these words on stderr.
fn refused(args: &str, words: &[&str]) {
    let ran = Test::new(args).run();
    ran.says(2, words);
    assert_eq!(ran.out(), "");
}

#[test]
fn an_unknown_subcommand_gets_the_nearest_one() {
    refused("sent x.ts", &["unrecognized subcommand 'sent'", "'send'"]);
}

#[test]
fn a_missing_argument_is_named() {
    refused("send x.ts", &["--to <HOST:PORT>"]);
    refused("receive 9000", &["<OUTPUT>"]);
}

#[test]
fn an_address_without_a_port_is_shown_how_to_get_one() {
    refused("send x.ts --to home.example", &["a port is missing", "home.example:9000"]);
    refused("send x.ts --to 2001:db8::1:9000", &["[2001:db8::1]:9000"]);
    refused("receive home.example x.ts", &["neither PORT nor ADDR:PORT", "192.0.2.1:9000"]);
}

#[test]
fn values_are_refused_with_an_example() {
    refused("send x.ts --to a:1 --latency 500", &["the unit of a duration", "15ms"]);
    refused("emulate 9000 a:1 --loss 5", &["5%"]);
    refused("emulate 9000 a:1 --rate 8MB", &["8mbit"]);
    refused("perf client a:1 --bytes lots", &["1GB"]);
    refused("perf client a:1 --fec auto", &["for live streams", "tetrys:10,9,200"]);
    refused("send x.ts --to a:1 --scheduler fastest", &["possible values", "round-robin"]);
    refused("send x.ts --to a:1 --path nearest", &["possible values", "best-delay", "echo"]);
    refused("send x.ts --to a:1 --hysteresis 20ms", &["--path"]);
    refused("send x.ts --to a:1 --path echo --hysteresis 2min", &["a time here is 0s to 60s"]);
    refused("send x.ts --to a:1 --path echo --time-guard -1s", &["a time here is 0s to 60s, and not below 0"]);
    refused("send x.ts --to a:1 --path echo --probe-interval 1ms", &["paths are measured each 100ms to 60s"]);
    refused("send x.ts --to a:1 --quick-failover 21", &["timeouts in a row are 0 to 20"]);
    refused("send x.ts --to a:1 --path echo --switchover 3", &["--switchover", "--path primary"]);
    refused("send - --to 127.0.0.1:1 --path primary --quick-failover 4 --switchover 3", &["--switchover", "4 or more"]);
    refused("send x.ts --to a:1 --path-max-retrans never", &["timeouts in a row are 0 to 20"]);
    refused("send x.ts --to a:1 --retransmission best", &["possible values", "rtx-asap", "all-rtx-alt"]);
    refused("send x.ts --to a:1 --queue best", &["possible values", "ring-sbpn2", "off"]);
}

#[test]
fn a_scheme_that_is_not_ours_is_not_taken_for_a_file() {
    refused("send rtmp://host/app --to a:1", &["rtmp:// is an OUTPUT of `receive`", "rtmp://:1935/live/KEY"]);
    refused("send srt://host:9000?latency=400000 --to a:1", &["milliseconds here", "latency=400ms"]);
    refused("send srt://:9000?passphrase=short --to a:1", &["10 to 79 bytes"]);
    refused("receive 9000 rtmp://host/x", &["APP or KEY is missing"]);
}

#[test]
fn only_what_sends_a_stream_keeps_to_the_most_of_a_path() {
    for (command, why) in [
        ("tunnel client --to a:1 --listen 5000 --plain", "a tunnel has no limit by path"),
        ("receive --from a:1 out.ts --plain", "the other end sends"),
        ("perf client a:1 --plain", "it measures what the paths carry"),
        ("perf server --from a:1 --plain", "the other end sends"),
    ] {
        refused(&format!("{command} --via lo?max=5mbit"), &["--via lo?max= has no effect here", why, "leave max= out"]);
    }
}

#[test]
fn vias_and_tos_that_do_not_pair_up_are_counted() {
    let args = "send x.ts --to a:1 --to b:1 --to c:1 --via wlan0 --via wwan0";
    refused(args, &["2 --via and 3 --to do not pair up", "the same number of both"]);
    refused("send x.ts --to a:1 --to a:1", &["there twice"]);
}

#[test]
fn an_emulated_link_has_one_address() {
    refused("emulate 127.0.0.1:9001,127.0.0.1:9002 a:1", &["one LISTEN"]);
}

#[test]
fn a_tunnel_says_what_it_lacks_and_what_does_not_go_together() {
    refused("tunnel client --to a:1", &["nothing to carry", "--listen PORT"]);
    refused("tunnel client --listen 5004", &["--to <HOST:PORT>"]);
    refused("tunnel server 9000 --forward 5004", &["a port is missing"]);
    refused("tunnel client --to a:1 --listen 1 --ccid ccid9", &["possible values", "ccid4-n100"]);
    refused("tunnel client --to a:1 --listen 1 --calls opus", &["no codec is called 'opus'", "g729"]);
    refused("tunnel client --to a:1 --listen 1 --ccid ccid2 --reorder 50ms", &["--reorder has no effect with ccid2"]);
    refused("tunnel server 9000 --listen 1 --ccid ccid2 --max-rate 1mbit", &["--max-rate", "--ccid ccid3"]);
    refused("tunnel client --to a:1 --listen 1 --min-rate 2mbit --max-rate 1mbit", &["--min-rate is more than"]);
    refused("tunnel client --to a:1 --listen 1 --max-loss 2%", &["--calls <CODEC>"]);
    refused("tunnel client --to a:1 --listen 1 --calls g729 --max-loss 200%", &["--max-loss <PERCENT>"]);
    refused(
        "tunnel client --to a:1 --listen 1 --ccid ccid2 --calls g729 --max-loss 2%",
        &["--max-loss has no effect with ccid2", "--ccid ccid3"],
    );
    refused(
        "tunnel client --to a:1 --listen 1 --over sctp --calls g729 --max-loss 2%",
        &["--max-loss is for --over dccp"],
    );
    refused("tunnel client --to a:1 --listen 1 --mtu 100", &["576..=9000"]);
    refused("tunnel client --to a:1 --listen 1 --over tcp", &["possible values: dccp, sctp"]);
    refused("tunnel client --to 127.0.0.1:1 --to 127.0.0.1:2 --listen 1", &["DCCP uses one path", "--over sctp"]);
    refused("tunnel client --to a:1 --listen 1 --fec auto", &["--fec is for --over sctp", "leave out --fec"]);
    refused("tunnel server 9000 --forward 127.0.0.1:1 --over sctp --ccid ccid2", &["--ccid is for --over dccp"]);
    refused("tunnel server 9000 --forward 127.0.0.1:1 --authorized list", &["--identity <FILE>"]);
    refused("send a.ts --to 127.0.0.1:1 --pcap-decrypted", &["--pcap <FILE>"]);
    refused("tunnel client --to a:1 --listen 1 --deadline 5004", &["5004=200ms"]);
    refused("tunnel server 9000 --listen 1 --deadline 2=1s", &["names port 2", "an application at this end"]);
}

#[test]
fn a_tunnel_takes_only_what_its_queues_can_do() {
    refused("tunnel client --to a:1 --listen 1 --queue best", &["possible values", "fifo", "ring-sbpn2", "weighted"]);
    refused("tunnel client --to a:1 --listen 1 --queue-length 0", &["1..=10000"]);
    refused("tunnel client --to a:1 --listen 5004/loud", &["'loud' says nothing of a flow", "5004/audio/150ms"]);
    refused("tunnel client --to a:1 --listen 1,5004/8", &["8 is not a priority; use 0 (first) to 7"]);
    refused("tunnel server 9000 --forward a:1/audio/0ms", &["over at once", "150ms"]);
    refused("tunnel server 9000 --forward a:1 --lifetime 0s", &["over at once"]);
}

#[test]
fn an_end_of_a_tunnel_dials_or_is_called() {
    refused("tunnel client --listen 1", &["--to <HOST:PORT>"]);
    refused("tunnel client --at 9000 --to a:1 --listen 1", &["--at <LISTEN>", "cannot be used with"]);
    refused("tunnel client --at 9000 --via 127.0.0.1 --listen 1", &["--at <LISTEN>", "cannot be used with"]);
    refused("tunnel server --forward a:1", &["<LISTEN>"]);
    refused("tunnel server 9000 --from a:1 --forward a:1", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("tunnel server --from a:1 --authorized list --forward a:1", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("tunnel server --from a:1,b:1 --forward a:1", &["DCCP uses one path, and 2 were given", "one --from"]);
}

#[test]
fn an_end_of_a_measurement_dials_or_is_called() {
    refused("perf client", &["<HOST:PORT>"]);
    refused("perf client a:1 --at 9000", &["--at <LISTEN>", "cannot be used with"]);
    refused("perf client --at 9000 --to a:1", &["--at <LISTEN>", "cannot be used with"]);
    refused("perf client --at 9000 --via 127.0.0.1", &["--at <LISTEN>", "cannot be used with"]);
    refused("perf client --at 9000 --dccp ccid2", &["--at <LISTEN>", "cannot be used with"]);
    refused("perf client --at 9000 --native", &["--at <LISTEN>", "cannot be used with"]);
    refused("perf client --at home.example:9000", &["neither PORT nor ADDR:PORT"]);
    refused("perf server", &["<LISTEN>"]);
    refused("perf server 9000 --from a:1", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("perf server --from a:1 --keep", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("perf server --from a:1 --dccp ccid2", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("perf server --from 9000", &["9000", "home.example:9000"]);
    refused("perf server --from a:1 --native", &["--from <HOST:PORT>", "cannot be used with"]);
    refused("perf server 9000 --via 127.0.0.1", &["--via", "cannot be used with", "[LISTEN]"]);
}

#[test]
fn a_dccp_measurement_keeps_to_what_dccp_can() {
    refused("perf client 127.0.0.1:9 --native", &["--dccp <CCID>"]);
    refused("perf client 127.0.0.1:9 --dccp ccid2 --to 127.0.0.1:10", &["cannot be used with"]);
    refused("perf client 127.0.0.1:9 --dccp ccid2 --via 127.0.0.1 --via 127.0.0.2", &["one path"]);
    refused("perf client 127.0.0.1:9 --dccp ccid2 --size 1500", &["carries 1400 bytes, not 1500", "--size 1400"]);
    refused("perf server 9 --dccp ccid2 --native", &["must know its address", "ADDR:9"]);
}

#[test]
fn a_key_that_cannot_be_right_is_not_taken_for_a_passphrase() {
    refused("send x.ts --to 127.0.0.1:1 --key=", &["the key is empty", "braidcast key new"]);
    refused("send x.ts --to 127.0.0.1:1 --plain --key some-secret", &["--plain", "cannot be used with", "--key"]);
    refused(
        "send x.ts --to 127.0.0.1:1 --key braid1qqqq",
        &["--key", "a character is wrong or missing", "braidcast key new"],
    );
}

#[test]
fn where_nobody_can_be_told_the_status_still_says_it() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_braidcast"))
        .args(["send", "no-such-file.ts", "--to", "127.0.0.1:9"])
        .stderr(full)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1), "an error, not a panic");
}

#[test]
fn a_latency_below_nothing_or_at_the_wrong_end_is_explained() {
    refused("send x.ts --to a:1 --latency -5ms", &["not below 0"]);
    refused("send x.ts --to a:1 --latency 0ms", &["a latency is 10ms to 60s"]);
    refused("send x.ts --to a:1 --latency 10h", &["a latency is 10ms to 60s"]);
    refused("receive 9000 x.ts --latency 1s", &["the sender sets the latency"]);
    refused("lab run all --seed -1", &["'-1' is not a seed", "from 0"]);
}

#[test]
fn an_address_that_no_machine_has_is_refused_at_once() {
    refused("send x.ts --to 255.255.255.255:9000", &["is the broadcast address"]);
    refused("send x.ts --to 0.0.0.0:9000", &["every address of a machine"]);
    refused("perf client 239.1.1.1:9000", &["is a multicast group"]);
    refused("emulate :9001 127.0.0.1:9001", &["go round for ever", "another port"]);
}

#[test]
fn an_option_behind_udp_is_obeyed_or_refused() {
    refused("send udp://127.0.0.1:5000?foo=bar --to a:1", &["'foo=bar' is not supported", "localaddr="]);
    refused("receive 9000 udp://127.0.0.1:5000?pkt_size=9", &["188 to 65507"]);
    let ran = Test::new("send udp://239.1.1.1:5600?localaddr=no-such-if0 --to 127.0.0.1:9").run();
    ran.says(1, &["there is no no-such-if0 with an IPv4 address", "this machine has"]);
}

#[test]
fn an_empty_file_is_called_empty() {
    Test::new("send empty.ts --to 127.0.0.1:9")
        .file("empty.ts", "")
        .run()
        .says(1, &["empty.ts is empty", "--reliable"]);
    let ran = Test::new("emulate 127.0.0.1:0 127.0.0.1:9 --trace empty.up").file("empty.up", "").run();
    ran.says(1, &["empty.up is empty"]);
}

#[test]
fn units_of_other_programs_get_the_nearest_one_here() {
    refused("emulate 9000 a:1 --rate 8M", &["write for example 8mbit"]);
    refused("emulate 9000 a:1 --rate 500kbps", &["write for example 500kbit"]);
}
