//! Applications that know only UDP, with a tunnel between them.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "these tests are about real processes and sockets"
)]

use crate::common::{PATIENCE, Ran, Running, free_port, free_ports};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

/// An application that answers what it gets with `word` before it.
fn answering(word: &'static str) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            let answer = [word.as_bytes(), &buf[..len]].concat();
            socket.send_to(&answer, from).unwrap();
        }
    });
    port
}

/// An application that asks.
struct Asking(UdpSocket);

impl Asking {
    fn at(port: u16) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        Self(socket)
    }

    /// Asks again and again, as applications over UDP must, until this answer comes.
    fn hears(&self, question: &str, answer: &str) {
        let (end, mut buf) = (Instant::now() + PATIENCE, [0; 2048]);
        while Instant::now() < end {
            // The entrance may be gone for a moment, which the system reports.
            let _ = self.0.send(question.as_bytes());
            if let Ok(len) = self.0.recv(&mut buf) {
                let heard = String::from_utf8_lossy(&buf[..len]);
                if heard == answer {
                    return;
                }
                assert!(heard.ends_with(question) || !heard.contains(question), "{heard} in place of {answer}");
            }
        }
        panic!("{question} was never answered with {answer}");
    }
}

fn server(dir: &Path, args: &str) -> Running {
    Running::start(dir, &format!("tunnel server {args} --json")).wait_for("waiting for clients")
}

fn client(dir: &Path, args: &str) -> Running {
    Running::start(dir, &format!("tunnel client {args} --json")).wait_for("connecting")
}

/// Ctrl-C, and what it says then.
fn interrupted(running: Running) -> (Ran, Value) {
    running.interrupt();
    let ran = running.finish();
    ran.says(0, &[]);
    let document = ran.json();
    (ran, document)
}

/// The document with every value replaced by its type, so that its shape can be compared.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(all) => all.iter().take(1).map(shape).collect(),
        Value::Number(_) | Value::Null => "number or null".into(),
        Value::String(_) => "text".into(),
        other => other.clone(),
    }
}

#[test]
fn each_application_gets_its_own_answers_over_a_link_with_delay() {
    let (dir, [at, link, one, two]) = (tempfile::tempdir().unwrap(), free_ports());
    let (first, second) = (answering("first "), answering("second "));
    let server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{first},127.0.0.1:{second}"));
    let _emulate = Running::start(dir.path(), &format!("emulate 127.0.0.1:{link} 127.0.0.1:{at} --delay 20ms"))
        .wait_for("listening");
    let client = client(
        dir.path(),
        &format!("--to 127.0.0.1:{link} --listen {one},{two}/video/300ms --ccid ccid4-n100 --calls g729"),
    );
    let [a, b, c] = [Asking::at(one), Asking::at(one), Asking::at(two)];
    for round in 0..3 {
        a.hears(&format!("a{round}"), &format!("first a{round}"));
        b.hears(&format!("b{round}"), &format!("first b{round}"));
        c.hears(&format!("c{round}"), &format!("second c{round}"));
    }
    let (_, document) = interrupted(client);
    let end = &document["ends"][0];
    assert_eq!((end["state"].as_str(), end["sending"].as_str()), (Some("closed"), Some("ccid4")));
    let flows = end["flows"].as_array().unwrap();
    assert_eq!(flows.iter().map(|flow| flow["port"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 0, 1]);
    assert!(flows.iter().all(|flow| flow["received_datagrams"].as_u64() >= Some(3)), "{document}");
    let how = [0, 2].map(|n| ["priority", "priority_is_guess", "lifetime_ms"].map(|key| flows[n][key].clone()));
    assert_eq!(serde_json::json!(how), serde_json::json!([[0, true, null], [1, false, 300.0]]));
    assert!(end["rtt_ms"].as_f64().unwrap() >= 40.0, "{document}");
    // Three questions are no call, but calls would fit.
    assert!(flows[0]["mos"].is_null() && end["more_calls"].is_number(), "{document}");
    insta::assert_snapshot!(serde_json::to_string_pretty(&shape(&document)).unwrap());
    let (ran, document) = interrupted(server);
    assert!(ran.stderr.contains("has gone: closed"), "{}", ran.stderr);
    assert_eq!(document["ends"][0]["flows"].as_array().unwrap().len(), 3);
}

#[test]
fn applications_behind_the_server_can_begin_too() {
    let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let here = answering("here ");
    let server = server(dir.path(), &format!("127.0.0.1:{at} --listen {entrance}")).wait_for("carrying");
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --forward 127.0.0.1:{here}"));
    let client = client.wait_for("connected with");
    Asking::at(entrance).hears("who?", "here who?");
    let (_, document) = interrupted(client);
    assert_eq!(document["ends"][0]["flows"][0]["opened_here"], false);
    interrupted(server);
}

/// Who dials and who has the application that begins are two separate choices.
#[test]
fn a_server_calls_a_client_that_waits() {
    for (over, networks) in [("dccp", 1), ("sctp", 2)] {
        let (dir, [at, other, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
        let (dir, there) = (dir.path(), answering("there "));
        let places = [at, other].map(|port| format!("127.0.0.1:{port}"))[..networks].join(",");
        let key = format!("--over {over} --key open-sesame-2026");
        let client = format!("tunnel client --at {places} --listen {entrance} {key} --json");
        let client = Running::start(dir, &client).wait_for("waiting for a server at");
        let server = format!("tunnel server --from {places} --forward 127.0.0.1:{there} {key} --json");
        let server = Running::start(dir, &server).wait_for("calling");
        let asking = Asking::at(entrance);
        asking.hears("one", "there one");
        // The end that waits is started anew, and is called again.
        let (_, document) = interrupted(client);
        assert_eq!(document["ends"][0]["flows"][0]["opened_here"], true, "{document}");
        let client = format!("tunnel client --at {places} --listen {entrance} {key}");
        let client = Running::start(dir, &client).wait_for("connected with");
        asking.hears("two", "there two");
        let (ran, document) = interrupted(server);
        assert!(ran.stderr.contains("trying again"), "{}", ran.stderr);
        let end = &document["ends"][0];
        assert_eq!((&end["connections"], &end["security"]["authenticated"]), (&2.into(), &true.into()), "{document}");
        client.kill();
    }
}

#[test]
fn over_sctp_a_tunnel_takes_two_networks_and_goes_on_over_one() {
    let (dir, [at, one, two, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let args = format!("127.0.0.1:{at} --over sctp --forward 127.0.0.1:{there} --deadline {there}=500ms");
    let server = server(dir.path(), &args);
    let link = |port: u16, more: &str| {
        Running::start(dir.path(), &format!("emulate 127.0.0.1:{port} 127.0.0.1:{at} --delay 10ms {more}"))
            .wait_for("listening")
    };
    let (first, _second) = (link(one, "--loss 5%"), link(two, ""));
    let client = client(
        dir.path(),
        &format!(
            "--over sctp --to 127.0.0.1:{one} --to 127.0.0.1:{two} --listen {entrance} --deadline {entrance}=300ms --fec auto"
        ),
    );
    let client = client.wait_for(&format!("127.0.0.1:{two} is up"));
    let asking = Asking::at(entrance);
    let long = "x".repeat(1900);
    for round in 0..20 {
        asking.hears(&format!("{round} {long}"), &format!("there {round} {long}"));
    }
    first.interrupt();
    first.finish();
    for round in 0..20 {
        asking.hears(&format!("later {round}"), &format!("there later {round}"));
    }
    let (_, document) = interrupted(client);
    let end = &document["ends"][0];
    assert_eq!((end["state"].as_str(), end["connections"].as_u64()), (Some("closed"), Some(1)), "{document}");
    assert_eq!(end["paths"].as_array().unwrap().len(), 2, "{document}");
    assert_eq!(end["flows"][0]["lifetime_ms"], 300.0);
    interrupted(server.wait_for("has gone: shut down"));
}

#[test]
fn an_encoder_is_told_what_it_may_send_through_a_tunnel() {
    for over in ["dccp", "sctp"] {
        let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
        let there = answering("there ");
        let server =
            server(dir.path(), &format!("127.0.0.1:{at} --over {over} --forward 127.0.0.1:{there} --rate-report back"));
        let how = "--rate-report rates --rate-interval 50ms --rate-range 200kbit-3mbit --stats 100ms,stats";
        let client = client(dir.path(), &format!("--over {over} --to 127.0.0.1:{at} --listen {entrance} {how}"));
        let asking = Asking::at(entrance);
        for round in 0..30 {
            asking.hears(&format!("{round}"), &format!("there {round}"));
            std::thread::sleep(Duration::from_millis(40));
        }
        interrupted(client);
        interrupted(server);
        let lines = |file: &str| -> Vec<Value> {
            let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        for (file, least, most) in [("rates", 200e3, 3e6), ("back", 100e3, 50e6)] {
            let told = lines(file);
            assert!(told.len() > 5, "{over}: {} lines of {file}", told.len());
            for line in &told {
                let rate = line["rate_bits_per_second"].as_f64().unwrap();
                assert!((least..=most).contains(&rate) && line["version"] == 1, "{over}: {line}");
                assert!(line["end"].as_str().unwrap().starts_with("127.0.0.1:"), "{over}: {line}");
            }
            let up = told.iter().find(|line| line["connected"] == true).expect("it was connected");
            assert!(up["next_frame_bits"].as_u64() > Some(0), "{over}: {up}");
        }
        let figures = lines("stats");
        assert!(figures.iter().any(|it| it["streams"][0]["encoder"]["rate_bits_per_second"].is_number()), "{over}");
    }
}

#[test]
fn over_sctp_a_key_lets_in_who_has_it() {
    let (dir, [at, entrance, elsewhere]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let server =
        server(dir.path(), &format!("127.0.0.1:{at} --over sctp --forward 127.0.0.1:{there} --key open-sesame-open"));
    let stranger = format!("--over sctp --to 127.0.0.1:{at} --listen {elsewhere} --key another-one-than-that");
    let stranger = client(dir.path(), &stranger);
    let asking = Asking::at(elsewhere);
    let client =
        client(dir.path(), &format!("--over sctp --to 127.0.0.1:{at} --listen {entrance} --key open-sesame-open"));
    Asking::at(entrance).hears("who?", "there who?");
    let _ = asking.0.send(b"who?");
    assert!(asking.0.recv(&mut [0; 64]).is_err(), "nothing gets through without the key");
    let (_, document) = interrupted(client);
    assert_eq!(document["ends"][0]["connections"], 1);
    stranger.interrupt();
    stranger.finish();
    let (_, document) = interrupted(server);
    assert_eq!(document["ends"].as_array().unwrap().len(), 1, "{document}");
}

#[test]
fn a_server_that_restarts_is_found_again() {
    let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let args = format!("127.0.0.1:{at} --forward 127.0.0.1:{there}");
    let first = server(dir.path(), &args);
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance}"));
    let asking = Asking::at(entrance);
    asking.hears("one", "there one");
    drop(first); // killed: it says no goodbye
    let _second = server(dir.path(), &args);
    let client = client.wait_for("trying again").wait_for("connected with");
    asking.hears("two", "there two");
    let (_, document) = interrupted(client);
    assert!(document["ends"][0]["connections"].as_u64() >= Some(2), "{document}");
}

#[test]
fn a_server_that_is_not_there_yet_is_waited_for() {
    let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance}"));
    let _server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{there}"));
    Asking::at(entrance).hears("hello", "there hello");
    interrupted(client);
}

#[test]
fn what_is_too_long_is_counted_and_said_once() {
    let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("");
    let _server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{there}"));
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance}"));
    let asking = Asking::at(entrance);
    asking.hears("short", "short");
    for len in [1389, 1500] {
        asking.0.send(&vec![0; len]).unwrap();
    }
    // It comes behind them, so they were looked at when its answer is there.
    let most = "x".repeat(1388);
    asking.hears(&most, &most);
    let (ran, document) = interrupted(client);
    assert_eq!(document["ends"][0]["dropped"]["too_long"], 2, "{document}");
    assert_eq!(ran.stderr.matches("1389 bytes was discarded, as all above 1388").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("was discarded").count(), 1, "{}", ran.stderr);
}

#[test]
fn more_listen_than_forward_is_said_at_the_other_end() {
    let (dir, [at, one, two]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{there}"));
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {one},{two}"));
    Asking::at(one).hears("hello", "there hello");
    Asking::at(two).0.send(b"nobody").unwrap();
    let server = server.wait_for("datagrams for the 2. are discarded");
    interrupted(client);
    assert_eq!(interrupted(server).1["ends"][0]["dropped"]["no_forward"], 1);
}

#[test]
fn a_probe_writes_a_line_for_each_packet() {
    let (dir, [at, entrance]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let _server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{there} --ccid ccid3"));
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance} --probe probe.csv"));
    Asking::at(entrance).hears("hello", "there hello");
    interrupted(client);
    let text = std::fs::read_to_string(dir.path().join("probe.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("time_s,connection,direction,type,seq,ack,payload_bytes"), "{text}");
    assert!(lines[1].contains(",1,sent,Request,"), "{text}");
    // The header of the tunnel is part of DCCP's payload.
    assert!(lines.iter().any(|line| line.contains(",sent,Data") && line.contains(",17,")), "{text}");
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()), "{text}");
}

#[test]
fn a_lost_server_costs_nothing_but_a_word() {
    let (dir, [entrance, at]) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance}"));
    let (_, document) = interrupted(client);
    assert_eq!(document["ends"][0]["state"], "not connected");
}

#[test]
fn over_dccp_who_has_another_key_or_none_is_refused_in_words_at_both_ends() {
    let (dir, [at, entrance, elsewhere]) = (tempfile::tempdir().unwrap(), free_ports());
    let there = answering("there ");
    let server = server(dir.path(), &format!("127.0.0.1:{at} --forward 127.0.0.1:{there} --key open-sesame-open"));
    for (flags, at_client) in [
        ("--key another-one-than-that", "the other end has another key (fingerprint"),
        ("", "the other end has a key, and this end has none"),
        ("--plain", "the other end encrypts, and this end does not"),
    ] {
        let stranger = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {elsewhere} {flags}"));
        let stranger = stranger.wait_for(&format!("no secure connection: {at_client}"));
        let (_, document) = interrupted(stranger);
        assert_eq!((&document["ends"][0]["connections"], &document["ends"][0]["security"]), (&0.into(), &Value::Null));
    }
    let client = client(dir.path(), &format!("--to 127.0.0.1:{at} --listen {entrance} --key open-sesame-open"));
    Asking::at(entrance).hears("hello", "there hello");
    let (_, document) = interrupted(client);
    assert_eq!(document["ends"][0]["security"]["authenticated"], true, "{document}");
    let (ran, document) = interrupted(server);
    assert_eq!(document["ends"].as_array().unwrap().len(), 1, "{document}");
    for why in [
        "the other end does not accept our key",
        "this end has a key, and the other end has none",
        "the other end does not encrypt, and this end insists",
    ] {
        assert!(ran.stderr.contains(&format!("was turned away: no secure connection: {why}")), "{why}: {}", ran.stderr);
    }
}

#[test]
fn a_list_of_keys_says_what_each_client_reaches_and_is_read_again() {
    let fingerprint = |dir: &Path, file: &str| {
        let ran = Running::start(dir, &format!("key identity {file}")).finish();
        ran.says(0, &[]);
        ran.out().trim().to_owned()
    };
    for over in ["dccp", "sctp"] {
        let (dir, [at, entrance, elsewhere]) = (tempfile::tempdir().unwrap(), free_ports());
        let (usual, special) = (answering("usual "), answering("special "));
        let [_home, one, two] = ["home", "one", "two"].map(|name| fingerprint(dir.path(), name));
        let list = |text: &str| std::fs::write(dir.path().join("list"), text).unwrap();
        list(&format!("{one} door 127.0.0.1:{special}\n"));
        let args =
            format!("127.0.0.1:{at} --over {over} --forward 127.0.0.1:{usual} --identity home --authorized list");
        let server = server(dir.path(), &args);
        let to = format!("--over {over} --to 127.0.0.1:{at}");
        let door = client(dir.path(), &format!("{to} --listen {entrance} --identity one"));
        Asking::at(entrance).hears("hello", "special hello");
        let stranger = client(dir.path(), &format!("{to} --listen {elsewhere} --identity two"));
        let stranger = stranger.wait_for("does not accept our key");
        // Now the other one may come, and the first one reaches what all do.
        list(&format!("{one} door\n{two} gate until=2999-01-01\n"));
        server.signal("HUP");
        let server = server.wait_for("list was read again");
        Asking::at(entrance).hears("again", "usual again");
        Asking::at(elsewhere).hears("hello", "usual hello");
        list("nonsense\n");
        server.signal("HUP");
        let server = server.wait_for("list:1: a fingerprint has 64 hexadecimal digits");
        interrupted(door);
        interrupted(stranger);
        let (ran, _) = interrupted(server);
        assert!(ran.stderr.contains("connected with door (127.0.0.1:"), "{}", ran.stderr);
    }
}
