//! `send` through `emulate` to `receive`: the same bytes, whatever happens to a path.

use crate::common::{Running, Test, free_port, free_ports, noise};

/// Two emulated links to one receiver, and the file `in.bin` in their folder.
struct Net {
    dir: tempfile::TempDir,
    input: Vec<u8>,
    receiver: Running,
    links: [Running; 2],
    /// `--to A --to B`.
    to: String,
}

impl Net {
    fn new(bytes: usize, receive: &str, links: [&str; 2]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let input = noise(bytes);
        std::fs::write(dir.path().join("in.bin"), &input).unwrap();
        let [port, a, b] = free_ports();
        let receiver = Running::start(dir.path(), &format!("receive 127.0.0.1:{port} {receive}")).wait_for("listening");
        let mut seed = 0;
        let links = [(a, links[0]), (b, links[1])].map(|(link, flags)| {
            seed += 1;
            let args = format!("emulate 127.0.0.1:{link} 127.0.0.1:{port} --seed {seed} --json {flags}");
            Running::start(dir.path(), &args).wait_for("listening")
        });
        Self { dir, input, receiver, links, to: format!("--to 127.0.0.1:{a} --to 127.0.0.1:{b}") }
    }

    fn send(&self, flags: &str) -> Running {
        Running::start(self.dir.path(), &format!("send in.bin {} {flags}", self.to))
    }

    /// Insists that the file arrived whole; the reports of the sender, the receiver and the links.
    fn whole(self, sender: Running) -> [serde_json::Value; 4] {
        let (sent, received) = (sender.finish(), self.receiver.finish());
        sent.says(0, &[]);
        received.says(0, &[]);
        let output = std::fs::read(self.dir.path().join("out.bin")).unwrap();
        assert_eq!(output.len(), self.input.len());
        assert!(output == self.input, "the bytes differ");
        let [a, b] = self.links.map(|link| {
            link.interrupt();
            link.finish().json()
        });
        [sent.json(), received.json(), a, b]
    }
}

fn lost(link: &serde_json::Value) -> u64 {
    ["dropped_loss", "dropped_queue", "dropped_outage"].iter().filter_map(|why| link["to_forward"][why].as_u64()).sum()
}

#[test]
fn a_file_comes_through_five_per_cent_loss_on_both_paths() {
    let flags = "--rate 20mbit --delay 15ms --loss 5%";
    let net = Net::new(4_000_000, "out.bin --json", [flags, flags]);
    let sender = net.send("--reliable --json");
    let [sent, received, a, b] = net.whole(sender);
    assert!(lost(&a) > 20 && lost(&b) > 20, "{a} {b}");
    assert_eq!(
        (&sent["complete"], &sent["format"], &sent["input_bytes"]),
        (&true.into(), &"plain".into(), &4_000_000.into())
    );
    assert_eq!((&received["complete_streams"], &received["output_bytes"]), (&1.into(), &4_000_000.into()));
    assert_eq!(sent["paths"].as_array().unwrap().len(), 2);
}

/// Sends for half a minute or so over two paths of 5 % loss; `outage` happens to the first.
fn long_transfer(outage: &str) -> [serde_json::Value; 4] {
    let flags = "--rate 2mbit --delay 10ms --loss 5%";
    let net = Net::new(7_000_000, "out.bin --json", [&format!("{flags} --outage {outage}"), flags]);
    let sender = net.send("--reliable --json").wait_for("does not answer");
    let reports = net.whole(sender);
    assert!(reports[2]["to_forward"]["dropped_outage"].as_u64().unwrap() > 0, "{}", reports[2]);
    reports
}

#[test]
fn a_file_comes_through_with_one_path_cut_after_ten_seconds() {
    long_transfer("10s-1h");
}

#[test]
fn a_file_comes_through_with_one_path_cut_after_ten_seconds_and_back_after_twenty() {
    let [_, _, a, b] = long_transfer("10s-20s");
    // It came back and carried its part.
    let delivered = |link: &serde_json::Value| link["to_forward"]["delivered_bytes"].as_u64().unwrap();
    assert!(delivered(&a) > delivered(&b) / 3, "{a} {b}");
}

#[test]
fn a_file_comes_through_with_one_path_dead_from_the_start() {
    let net = Net::new(200_000, "out.bin --json", ["--outage 0s-1h", "--delay 5ms"]);
    let sender = net.send("--reliable --json");
    net.whole(sender);
}

#[test]
fn stdin_goes_to_stdout() {
    let (dir, port, input) = (tempfile::tempdir().unwrap(), free_port(), noise(1_000_000));
    std::fs::write(dir.path().join("in.bin"), &input).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} -")).wait_for("listening");
    let sent = Test::new(&format!("send - --to 127.0.0.1:{port} --reliable")).stdin(&input).run();
    sent.says(0, &[]);
    let received = receiver.finish();
    received.says(0, &[]);
    assert!(received.stdout == input, "{} bytes came", received.stdout.len());
}

#[test]
fn a_file_that_is_no_media_goes_reliably_by_itself() {
    let net = Net::new(300_000, "out.bin --json", ["--loss 5%", "--loss 5%"]);
    let sender = net.send("--json").wait_for("sending it as with --reliable");
    let [sent, ..] = net.whole(sender);
    assert_eq!(sent["reliable"], true);
}

#[test]
fn with_keep_the_next_sender_follows_in_the_same_output() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut receiver =
        Running::start(dir.path(), &format!("receive {port} out.bin --keep --json")).wait_for("listening");
    for (name, content) in [("one", "first "), ("two", "second")] {
        let send = Test::new(&format!("send {name} --to 127.0.0.1:{port}")).file(name, content).run();
        send.says(0, &[]);
        receiver = receiver.wait_for("waiting for the next sender");
    }
    receiver.interrupt();
    let ran = receiver.finish();
    ran.says(0, &[]);
    assert_eq!(ran.json()["complete_streams"], 2);
    assert_eq!(std::fs::read_to_string(dir.path().join("out.bin")).unwrap(), "first second");
}

#[test]
fn the_same_key_lets_a_file_through_and_nobody_reads_it_on_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let key = Running::start(dir.path(), "key new --json").finish();
    let (words, short) = (key.json()["words"].to_string(), key.json()["short"].to_string());
    std::fs::write(dir.path().join("key"), words.trim_matches('"')).unwrap();
    let data = noise(300_000);
    std::fs::write(dir.path().join("in.bin"), &data).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin --key-file key")).wait_for("listening");
    let short = short.trim_matches('"');
    Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port} --key {short}")).finish().says(0, &[]);
    // Others may read the file just written.
    receiver.finish().says(0, &["others on this machine may read the key", "chmod 600 key"]);
    assert!(std::fs::read(dir.path().join("out.bin")).unwrap() == data);
}

#[test]
fn without_a_key_it_is_encrypted_all_the_same_and_both_ends_show_both_fingerprints() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), noise(10_000)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin --json")).wait_for("listening");
    let sent = Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port}")).finish();
    let received = receiver.finish();
    let security = &received.json()["security"];
    assert_eq!((security["authenticated"].as_bool(), security["peer_key"].as_str()), (Some(false), Some("ephemeral")));
    let fingerprints = ["fingerprint", "peer_fingerprint"].map(|name| security[name].as_str().unwrap().to_owned());
    assert!(fingerprints[0] != fingerprints[1] && fingerprints.iter().all(|it| it.len() == 64));
    let [theirs, ours] = fingerprints;
    sent.says(0, &["encrypted (AES-128-GCM), not authenticated", &format!("this end's fingerprint  {ours}"), &theirs]);
}

#[test]
fn plain_at_both_ends_encrypts_nothing_and_says_so() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("in.bin"), noise(1000)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin --plain")).wait_for("listening");
    let sent = Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port} --plain")).finish();
    sent.says(0, &["--plain: nothing is encrypted", "not encrypted (--plain)"]);
    receiver.finish().says(0, &["--plain: nothing is encrypted", "not encrypted (--plain)"]);
}

#[test]
fn ends_that_do_not_go_together_say_which_at_both_ends_and_nothing_is_written() {
    let here = |it: &str| format!("no secure connection: {it}");
    for (receive, send, at_receiver, at_sender) in [
        (
            "--key right",
            "--key wrong",
            "the other end has another key (fingerprint",
            "the other end does not accept our key",
        ),
        (
            "--key right",
            "",
            "this end has a key, and the other end has none",
            "the other end has a key, and this end has none",
        ),
        (
            "",
            "--key right",
            "the other end has a key, and this end has none",
            "this end has a key, and the other end has none",
        ),
        (
            "",
            "--plain",
            "the other end does not encrypt, and this end insists",
            "the other end encrypts, and this end does not",
        ),
        (
            "--plain",
            "",
            "the other end encrypts, and this end does not",
            "the other end does not encrypt, and this end insists",
        ),
    ] {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let receiver = Running::start(dir.path(), &format!("receive {port} out.bin {receive}")).wait_for("listening");
        std::fs::write(dir.path().join("in.bin"), noise(1000)).unwrap();
        let ran = Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{port} {send}")).finish();
        ran.says(1, &["no connection", &here(at_sender), "give both ends the same --key"]);
        drop(receiver.wait_for(&here(at_receiver)));
        assert_eq!(std::fs::read(dir.path().join("out.bin")).unwrap_or_default(), b"", "{receive} {send}");
    }
}

#[test]
fn a_key_that_was_typed_is_not_in_the_process_list_and_no_capability_is_kept() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let receiver =
        Running::start(dir.path(), &format!("receive {port} out.bin --key OPENSESAME")).wait_for("listening");
    let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", receiver.id())).unwrap();
    let (seen, status) = (of("cmdline"), of("status"));
    assert!(
        seen.contains("out.bin") && !seen.contains("OPENSESAME") && !of("environ").contains("OPENSESAME"),
        "{seen}"
    );
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!((field("NoNewPrivs:").as_str(), field("Name:").as_str()), ("1", "braidcast"));
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(u64::from_str_radix(&field(set), 16), Ok(0), "{set}");
    }
}

#[test]
fn nobody_there_is_an_error_that_says_what_to_do() {
    // A port that answers with ICMP errors or not at all; in both cases the handshake stops trying.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("in.bin"), b"x").unwrap();
    let sender = Running::start(dir.path(), &format!("send in.bin --to 127.0.0.1:{} --give-up 2s", free_port()));
    let ran = sender.finish();
    ran.says(1, &["no connection", "braidcast receive"]);
}
