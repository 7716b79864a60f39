//! `--pcap`, and captures in `viz`: tshark reads what is written, and a page shows it.

use crate::common::{Running, browser, free_port, transport_stream};
use std::path::Path;
use std::process::Command;

/// What tshark makes of the capture, a line for each packet.
fn tshark(path: &Path, filter: &str, fields: &[&str]) -> Vec<String> {
    let output = Command::new("tshark")
        .args(["-o", "sctp.checksum:CRC 32c", "-T", "fields", "-E", "separator=;", "-Y", filter, "-r"])
        .arg(path)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark; tools/setup.sh test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A second of a stream, with captures and traces of both ends.
fn captured(dir: &Path, flags: &str) {
    let port = free_port();
    transport_stream(dir, 1);
    let receiver = format!("receive {port} out.ts {flags} --pcap receive.pcapng --trace receive.trace");
    let receiver = Running::start(dir, &receiver).wait_for("listening");
    let sender = format!("send clip.ts --to 127.0.0.1:{port} {flags} --pcap send.pcapng --trace send.trace");
    Running::start(dir, &sender).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
}

#[test]
fn each_packet_of_sctp_is_there_and_says_what_it_was_for() {
    let dir = tempfile::tempdir().unwrap();
    captured(dir.path(), "--plain");
    let capture = dir.path().join("send.pcapng");
    // 10 is COOKIE ECHO, 64 I-DATA, 3 SACK.
    let all = tshark(&capture, "sctp", &["sctp.chunk_type", "sctp.checksum.status", "frame.comment"]);
    assert!(all.len() > 50 && all.iter().all(|line| line.split(';').nth(1) == Some("1")), "{} packets", all.len());
    let data: Vec<_> = all.iter().filter(|line| line.starts_with("64;")).collect();
    assert!(data.len() > 30, "{all:?}");
    let told = |line: &&&String| line.contains("new: TSN ") && line.contains(" of frame ");
    assert!(data.iter().filter(told).count() * 10 > data.len() * 9, "{data:?}");
    assert!(all.iter().any(|line| line.contains("SACK of TSN")), "what comes says what it did");
    assert!(tshark(&capture, "_ws.malformed", &["frame.number"]).is_empty());
    // Both captures on a page: each chunk that one end sent came to the other.
    let ran = Running::start(dir.path(), "viz send.pcapng receive.pcapng --json").finish();
    ran.says(0, &[]);
    assert_eq!(ran.json()["pages"].as_array().unwrap().len(), 1, "they are of one association");
    let of_traces = Running::start(dir.path(), "viz send.trace receive.trace --json").finish().json();
    let packets = |document: &serde_json::Value| document["pages"][0]["packets"].as_f64().unwrap();
    let (captured, traced) = (packets(&ran.json()), packets(&of_traces));
    assert!((captured / traced - 1.0).abs() < 0.05, "{captured} and {traced}");
    let page = dir.path().join("send.pcapng.html");
    let document = browser::document(&format!("file://{}#view=sequence", page.display()), 4000);
    assert!(document.contains("data-ready=\"yes\"") && document.contains(" path 0"), "the page shows nothing");
}

#[test]
fn what_is_encrypted_stays_so_and_only_the_comment_tells() {
    let dir = tempfile::tempdir().unwrap();
    captured(dir.path(), "");
    let all = tshark(&dir.path().join("send.pcapng"), "sctp", &["sctp.chunk_type", "frame.comment"]);
    // The key handshake is in clear, in one chunk or several of a packet; nothing of the stream is.
    let has_data = |line: &&String| line.split(';').next().unwrap_or_default().split(',').any(|kind| kind == "64");
    let clear: Vec<_> = all.iter().filter(has_data).collect();
    assert!(!clear.is_empty() && clear.iter().all(|line| !line.contains(" of frame ")), "{clear:?}");
    // 65: DTLS.
    let told = all.iter().filter(|line| line.starts_with("65;") && line.contains(" of frame ")).count();
    assert!(told > 30, "{all:?}");
    // Records have no checksum (RFC 9653), and are well-formed without.
    let sums = tshark(&dir.path().join("send.pcapng"), "sctp.chunk_type == 65", &["sctp.checksum"]);
    assert!(!sums.is_empty() && sums.iter().all(|sum| sum == "0x00000000"), "{sums:?}");
    assert!(tshark(&dir.path().join("send.pcapng"), "_ws.malformed", &["frame.number"]).is_empty());
    let ran = Running::start(dir.path(), "viz send.pcapng").finish();
    ran.says(0, &["packets of send.pcapng are encrypted", "--trace"]);
}

#[test]
fn what_is_encrypted_is_shown_where_that_is_asked_for() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("send.pcapng"), "").unwrap(); // Which others could read.
    captured(dir.path(), "--pcap-decrypted");
    for file in ["send.pcapng", "receive.pcapng"] {
        let file = dir.path().join(file);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let all = tshark(&file, "sctp", &["sctp.chunk_type", "sctp.checksum.status", "frame.comment"]);
        assert!(all.iter().all(|line| !line.starts_with("65;") && line.split(';').nth(1) == Some("1")), "{all:?}");
        let data = all.iter().filter(|line| line.starts_with("64;")).count();
        assert!(data > 30, "{all:?}");
        assert!(tshark(&file, "_ws.malformed", &["frame.number"]).is_empty());
    }
    // Transport stream packets begin with 0x47; the clip's first ones are in one message or another.
    let clip = std::fs::read(dir.path().join("clip.ts")).unwrap();
    let shows = |file: &str| {
        let bytes = std::fs::read(dir.path().join(file)).unwrap();
        clip.chunks(188).filter(|packet| bytes.windows(60).any(|window| window == &packet[60..120])).count()
    };
    assert!(shows("send.pcapng") * 10 > clip.len() / 188 * 9);
    let ran = Running::start(dir.path(), "viz send.pcapng receive.pcapng --json").finish();
    ran.says(0, &[]);
    let packets = ran.json()["pages"][0]["packets"].as_f64().unwrap();
    let of_traces = Running::start(dir.path(), "viz send.trace receive.trace --json").finish().json();
    let traced = of_traces["pages"][0]["packets"].as_f64().unwrap();
    assert!((packets / traced - 1.0).abs() < 0.05, "{packets} and {traced}");
}

#[test]
fn encrypted_dccp_is_shown_where_that_is_asked_for() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --dccp ccid2"));
    let server = server.wait_for("listening");
    let client =
        format!("perf client 127.0.0.1:{port} --dccp ccid2 --bytes 200kB --pcap client.pcapng --pcap-decrypted");
    Running::start(dir.path(), &client).finish().says(0, &[]);
    server.finish().says(0, &[]);
    let all = tshark(&dir.path().join("client.pcapng"), "dccp", &["dccp.type", "dccp.checksum.status", "data.data"]);
    assert!(all.len() > 140 && all.iter().all(|line| line.split(';').nth(1) == Some("1")), "{all:?}");
    // Records begin with 001010EE and have a tag, so that no empty one would be without data.
    let bare = all.iter().filter(|line| line.starts_with("3;") && line.ends_with(';')).count();
    assert!(bare > 10, "acknowledgements hold nothing: {all:?}");
}

#[test]
fn dccp_in_udp_is_shown_as_dccp() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --dccp ccid2 --plain"));
    let server = server.wait_for("listening");
    let client = format!("perf client 127.0.0.1:{port} --dccp ccid2 --plain --bytes 1MB --pcap client.pcapng");
    Running::start(dir.path(), &client).finish().says(0, &[]);
    server.finish().says(0, &[]);
    let capture = dir.path().join("client.pcapng");
    let all = tshark(&capture, "dccp", &["dccp.type", "dccp.checksum.status", "frame.comment"]);
    assert!(all.len() > 700, "{} packets", all.len());
    assert!(all[0].starts_with("0;") && all[0].contains("Request "), "{}", all[0]);
    assert!(all.iter().all(|line| line.split(';').nth(1) == Some("1")), "checksums");
    assert!(tshark(&capture, "_ws.malformed", &["frame.number"]).is_empty());
    let ran = Running::start(dir.path(), "viz client.pcapng --json").finish();
    ran.says(0, &[]);
    assert!(ran.json()["pages"][0]["packets"].as_u64().unwrap() > 700);
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_stream() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 1);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let sent = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} --pcap /dev/full")).finish();
    sent.says(0, &["warning:", "the capture /dev/full ends here", "No space left", "all else goes on"]);
    receiver.finish().says(0, &[]);
    let refused = Running::start(dir.path(), "perf server 127.0.0.1:0 --pcap gone/x.pcapng").finish();
    refused.says(1, &["cannot write the capture gone/x.pcapng", "--pcap"]);
}

#[test]
fn broken_captures_are_told_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    captured(dir.path(), "--plain");
    let whole = std::fs::read(dir.path().join("send.pcapng")).unwrap();
    let viz = |name: &str, content: &[u8]| {
        std::fs::write(dir.path().join(name), content).unwrap();
        Running::start(dir.path(), &format!("viz {name}")).finish()
    };
    viz("cut.pcapng", &whole[..whole.len() / 2 + 3]).says(0, &["cut.pcapng breaks off within a packet"]);
    let mut broken = whole.clone();
    let middle = broken.len() / 2;
    broken[middle..middle + 4000].fill(0xff);
    viz("broken.pcapng", &broken).says(1, &["cannot read", "broken.pcapng", "after ", " packets: "]);
    viz("head.pcapng", &whole[..40]).says(1, &["head.pcapng"]);
    // What neither protocol is in is no error of the file's, but there is nothing to show.
    std::fs::write(dir.path().join("wifi.ns2"), include_bytes!("../../../trace/tests/data/wifi-3g.ns2")).unwrap();
    let ran = Running::start(dir.path(), "viz wifi.ns2 --flow tcp/3").finish();
    ran.says(2, &["has no flow tcp/3", "its flows are sctp/0"]);
    Running::start(dir.path(), "viz wifi.ns2 --flow tcp").finish().says(2, &["PROTOCOL/FID"]);
    let ran = Running::start(dir.path(), "viz wifi.ns2").finish();
    ran.says(0, &[]);
    assert_eq!(ran.out(), "wifi.ns2.html\n");
}
