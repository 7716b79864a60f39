//! `--trace` and `viz`, with the real programs and a real browser.

use crate::common::{Running, Test, browser, free_port, free_ports, transport_stream};
use std::path::Path;

/// A stream of three seconds over two emulated networks, one of which loses every tenth packet; both ends leave traces.
fn traced(dir: &Path) {
    transport_stream(dir, 3);
    let [port, good, bad] = free_ports();
    let emulators = [(good, "--delay 10ms"), (bad, "--delay 30ms --loss 10% --seed 3")].map(|(at, link)| {
        Running::start(dir, &format!("emulate 127.0.0.1:{at} 127.0.0.1:{port} {link} --duration 30s"))
            .wait_for("listening")
    });
    let receiver = Running::start(dir, &format!("receive {port} out.ts --trace receive.trace")).wait_for("listening");
    let to = format!("--to 127.0.0.1:{good} --to 127.0.0.1:{bad}");
    Running::start(dir, &format!("send clip.ts {to} --scheduler round-robin --trace send.trace")).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    emulators.into_iter().for_each(Running::kill);
}

/// What a browser makes of a page: its document after the script has run.
fn browse(page: &Path, place: &str) -> String {
    browser::document(&format!("file://{}#{place}", page.display()), 4000)
}

#[test]
fn traces_of_both_ends_become_a_page_that_a_browser_shows() {
    let dir = tempfile::tempdir().unwrap();
    traced(dir.path());
    let ran = Running::start(dir.path(), "viz send.trace receive.trace --json").finish();
    ran.says(0, &[]);
    let made = ran.json();
    assert_eq!(made["pages"].as_array().unwrap().len(), 1, "the two are of one association: {made}");
    assert!(made["pages"][0]["packets"].as_u64().unwrap() > 300, "{made}");
    let page = dir.path().join("send.trace.html");
    // Without an address the page opens where the answer is, with its legend.
    let opened = browse(&page, "");
    let is_first = opened.contains("aria-selected=\"true\">3 Frames")
        || opened.contains("data-view=\"frames\" aria-selected=\"true\"");
    assert!(is_first && opened.contains("in time") && opened.contains("thick tick"), "the page opens on the frames");
    let all = browse(&page, "view=frames");
    assert!(all.contains("data-ready=\"yes\""), "the script did not run to its end");
    assert!(all.contains("path 0") && all.contains("path 1") && !all.contains("path 2"), "two paths");
    assert!(
        all.contains("aria-selected=\"true\">3 Frames") || all.contains("data-view=\"frames\" aria-selected=\"true\"")
    );
    // The panel says of how many frames which were missed.
    let words = all.split_once("frames were missed").map(|(before, _)| before.rsplit_once('>').unwrap().1.trim());
    let frames: Vec<u32> = words.unwrap().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(frames[1] > 100, "{words:?}");
    // A moment's link shows that moment, and only some of the packets. It is longer than a busy machine
    // lets a stream wait.
    let counts = |document: &str| -> (u64, u64) {
        let status = document.split_once("role=\"status\">").unwrap().1.split_once('<').unwrap().0;
        let (inside, all) = status.split_once(": ").unwrap().1.split_once(" of ").unwrap();
        (inside.parse().unwrap(), all.split_once(' ').unwrap().0.parse().unwrap())
    };
    let (inside, every) = counts(&all);
    assert_eq!(inside, every);
    for view in ["exchange", "timeline", "sequence"] {
        let moment = browse(&page, &format!("view={view}&t=1.3-1.9&paths=0"));
        let (inside, of) = counts(&moment);
        assert!(inside > 0 && inside * 4 < of && of == every, "{view}: {inside} of {of}");
    }
}

/// Two lossy links that are full for two minutes.
const LARGE: &str = r#"name = "large"
title = "A hundred megabytes of trace"
experiment = "transfer"
duration = "110s"
[link.a]
rate = "12mbit"
rtt = "40ms"
loss = "1%"
[link.b]
rate = "6mbit"
rtt = "90ms"
[traffic]
message = 1200
"#;

/// Times every view while it moves, over all of the time and parts of it: the slowest median, ms.
const MEASURE: &str = r#"
let slowest = 0;
for (const view of Object.keys(views)) for (const share of [1, 0.1, 0.01]) {
  state.view = view;
  const span = (whole.to - whole.from) * share, times = [];
  for (let n = 0; n < 30; n++) {
    detail.moving = true;
    state.from = whole.from + ((whole.to - whole.from - span) * n) / 30; state.to = state.from + span;
    const began = performance.now();
    paint(); pen.getImageData(0, 0, 1, 1);
    times.push(performance.now() - began);
    detail.took(times[n], 16);
  }
  slowest = Math.max(slowest, times.sort((a, b) => a - b)[15]);
}
document.documentElement.dataset.slowest = Math.round(slowest);
"#;

#[test]
fn a_hundred_megabytes_open_and_move_quickly() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("large.toml"), LARGE).unwrap();
    Running::start(dir.path(), "lab run large.toml --trace large.trace --quiet").finish().says(0, &[]);
    let size = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().len();
    let traces = ["large.main.sender.trace", "large.main.receiver.trace"];
    assert!(traces.iter().map(|name| size(name)).sum::<u64>() > 100_000_000);
    Running::start(dir.path(), &format!("viz {} --out large.html", traces.join(" "))).finish().says(0, &[]);
    assert!(size("large.html") < 20_000_000, "{} bytes", size("large.html"));
    let page = dir.path().join("large.html");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, after) = text.rsplit_once("})();").unwrap();
    std::fs::write(&page, format!("{before}{MEASURE}}})();{after}")).unwrap();
    let document = browser::document_in_real_time(&format!("file://{}", page.display()));
    let millis = |name: &str| -> u32 {
        let value = document.split_once(&format!("data-{name}=\"")).expect(name).1.split_once('"').unwrap().0;
        value.parse().unwrap()
    };
    // On a quiet machine a fifth of this, or less (docs/traces.md).
    assert!(millis("opened") < 10_000, "opened in {} ms", millis("opened"));
    assert!(millis("slowest") < 200, "a drawing took {} ms", millis("slowest"));
}

#[test]
fn perfetto_gets_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let wifi_3g = include_bytes!("../../../trace/tests/data/wifi-3g.ns2");
    std::fs::write(dir.path().join("a.ns2"), wifi_3g).unwrap();
    let at = |command: &str| Running::start(dir.path(), command).finish();
    at("viz a.ns2 --perfetto a.json").says(0, &[]);
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("a.json")).unwrap()).unwrap();
    let arrows = document["traceEvents"].as_array().unwrap().iter().filter(|it| it["ph"] == "s").count();
    assert!(arrows > 80, "{arrows} arrows");
    at("viz a.ns2 --perfetto gone/a.json").says(1, &["cannot write gone/a.json", "--perfetto"]);
    at("viz a.ns2 --perfetto a.json --out a.html").says(2, &["--out"]);
}

#[test]
fn a_full_disk_ends_the_trace_and_not_the_stream() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 1);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let sent = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --trace /dev/full")).finish();
    sent.says(0, &["warning:", "the trace /dev/full ends here", "No space left", "all else goes on"]);
    receiver.finish().says(0, &[]);
}

#[test]
fn what_is_no_trace_is_refused_in_words() {
    let refused = |name: &str, content: &[u8], words: &[&str]| {
        let ran = Test::new(&format!("viz {name}")).file(name, content).run();
        ran.says(1, words);
    };
    refused("clip.ts", &[0x47; 4096], &["cannot read", "clip.ts", "it is not a trace", "--trace"]);
    refused("empty", b"", &["it is empty"]);
    let header = "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{}}\n";
    let broken = format!("{header}\u{1e}{{\"time\":1,\"name\":\"sctp:path_removed\",\"path\":\"x\",\"data\":{{}}}}\n");
    refused("broken.trace", broken.as_bytes(), &["line 2", "the path is not a number", "head -n"]);
    refused("nothing.trace", header.as_bytes(), &["there is nothing to show"]);
    Test::new("viz nowhere.trace").run().says(1, &["nowhere.trace", "No such file"]);
    Test::new("viz").run().says(2, &["<FILE>"]);
    Test::new("send x --to a:1 --trace").run().says(2, &["--trace <FILE>"]);
}
