//! A file holds whatever flags hold; flags win.

use crate::common;
use crate::common::Test;

fn send_with(config: &str, args: &str) -> common::Ran {
    Test::new(&format!("--config braidcast.toml {args}")).file("braidcast.toml", config).run()
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
    let ran = send_with("[send]\nto = \"a:1\"\nlatenzy = \"200ms\"\n", "send x.ts");
    ran.says(2, &["braidcast.toml:3: unknown key 'latenzy' in [send]", "did you mean 'latency'?"]);
}

#[test]
fn other_sections_are_checked_too() {
    send_with("[recieve]\n", "send x.ts --to a:1").says(2, &["braidcast.toml:1", "did you mean 'receive'?"]);
    let perf = "[perf.client]\nbites = \"1GB\"\n";
    send_with(perf, "send x.ts --to a:1").says(2, &["braidcast.toml:2", "[perf.client]", "did you mean 'bytes'?"]);
}

#[test]
fn a_wrong_value_is_named_with_its_line() {
    let ran = send_with("[send]\n\nlatency = 500\n", "send x.ts --to a:1");
    ran.says(2, &["braidcast.toml:3:", "'500'", "'--latency <TIME>'", "15ms"]);
    send_with("[send]\nreliable = \"yes\"\n", "send x.ts --to a:1")
        .says(2, &["braidcast.toml:2: reliable must be true or false"]);
    send_with("[send\n", "send x.ts --to a:1").says(2, &["braidcast.toml:1:"]);
}

#[test]
fn a_missing_file_is_named() {
    Test::new("--config nowhere.toml demo").run().says(2, &["nowhere.toml", "No such file", "--config"]);
}

#[test]
fn the_file_stands_in_for_flags_and_arguments() {
    // The input that the file names is what the error is about.
    let config = "[send]\ninput = \"from-the-file.ts\"\nto = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\nlatency = \"100ms\"\n";
    send_with(config, "send").says(1, &["from-the-file.ts"]);
}

#[test]
fn what_a_receiver_needs_may_be_in_the_file() {
    // The file names a folder that is not there.
    let config = "[receive]\nlisten = \"127.0.0.1:0\"\noutput = [\"no/such/folder/x.ts\"]\nkeep = true\n";
    send_with(config, "receive").says(1, &["no/such/folder/x.ts"]);
    send_with("[receive]\nkeep = true\n", "receive 127.0.0.1:0").says(2, &["OUTPUT"]);
}

#[test]
fn what_is_typed_wins() {
    let config = "[send]\ninput = \"from-the-file.ts\"\nto = [\"a:1\", \"a:1\"]\n";
    let ran = send_with(config, "send typed.ts --to 127.0.0.1:1");
    ran.says(1, &["typed.ts"]);
    let clash = "[perf.client]\nbytes = \"1GB\"\n";
    let ran = send_with(clash, "perf client 127.0.0.1:1 --duration 1s --via no-such-if0");
    ran.says(1, &["no-such-if0"]);
}

#[test]
fn a_tunnel_may_be_all_in_the_file() {
    let config =
        "[tunnel.client]\nto = \"127.0.0.1:1\"\nlisten = 5004\nforward = [\"a:1\", \"b:2\"]\nccid = \"ccid5\"\n";
    send_with(config, "tunnel client").says(2, &["braidcast.toml:5: invalid value 'ccid5'", "tunnel client --help"]);
    let config = "[tunnel.server]\nat = 9000\nlisten = \"192.0.2.77:5004\"\n";
    send_with(config, "tunnel server").says(1, &["192.0.2.77 is not an address of this machine", "another --listen"]);
}
