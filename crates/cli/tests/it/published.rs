//! Streams that `receive` publishes to servers by RTMP.
#![allow(clippy::disallowed_methods, reason = "these tests are about real processes")]

use crate::border::{coded_sound, frames};
use crate::certificates::{certificate, is_installed};
use crate::common::{Running, command, free_ports, transport_stream};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// To ffmpeg, which waits for it, and to a receiver of ours, which has it as an input; both begin late.
#[test]
fn a_stream_is_published_to_servers_by_rtmp() {
    let (dir, [port, theirs, ours, second]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = transport_stream(dir, 6);
    fs::write(dir.join("platform.key"), "a-long-key\n").unwrap();
    let outputs = format!("rtmp://127.0.0.1:{theirs}/live/@platform.key rtmp://localhost:{ours}/app/ours?x=/1 all.ts");
    let receive = format!("receive 127.0.0.1:{port} {outputs} --give-up 1s --json");
    let receiver = Running::start(dir, &receive).wait_for("listening");
    let sender = Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port}"));
    let receiver = receiver.wait_for(&format!("rtmp://127.0.0.1:{theirs}/live: ")).wait_for("trying again");
    let there = Running::start(
        dir,
        &format!("receive {second},rtmp://:{ours}/app/ours out.ts --give-up 1s --key some-key-2026"),
    );
    let there = there.wait_for("listening on rtmp://");
    let from = format!("rtmp://127.0.0.1:{theirs}/live/a-long-key");
    let args = ["-nostdin", "-v", "error", "-listen", "1", "-i", &from, "-c", "copy", "ffmpeg.ts"];
    let mut ffmpeg = Command::new("ffmpeg").current_dir(dir).args(args).stderr(Stdio::null()).spawn().unwrap();
    sender.finish().says(0, &[]);
    let ran = receiver.finish();
    ran.says(0, &["the stream is published there"]);
    assert!(!ran.stderr.contains("a-long-key") && !ran.json().to_string().contains("a-long-key"), "a secret is shown");
    there.finish().says(0, &["publishes, not encrypted", "the encoder ended"]);
    assert!(ffmpeg.wait().unwrap().success());
    for out in ["ffmpeg.ts", "out.ts"] {
        let out = dir.join(out);
        let both = [(frames(&clip, "v"), frames(&out, "v")), (coded_sound(&clip), coded_sound(&out))];
        for (sent, came) in both {
            // From a key frame on; audio that goes on has frames that are the same.
            let first = (0..sent.len()).find(|&first| sent[first..].starts_with(&came[..5]));
            let first = first.unwrap_or_else(|| panic!("{out:?}: {came:?}"));
            let same = came.iter().zip(&sent[first..]).take_while(|(came, sent)| came == sent).count();
            assert!(same > 30 && same + 2 >= came.len(), "{out:?}: {same} of {}", came.len());
            assert!(first + same + 4 >= sent.len(), "{out:?}: {first} and {same} of {}", sent.len());
        }
    }
}

/// TLS in front of a port, by Python.
const TLS: &str = r#"
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("here.pem", "here.key")
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def carry(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
while True:
    caller = server.accept()[0]
    try:
        caller = context.wrap_socket(caller, server_side=True)
    except OSError:
        continue
    behind = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((caller, behind), (behind, caller)):
        threading.Thread(target=carry, args=pair, daemon=True).start()
"#;

/// Ends with the test.
struct Front(Child);

impl Drop for Front {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

fn tls(dir: &Path, at: u16, to: u16) -> Front {
    let mut command = Command::new("python3");
    command.current_dir(dir).args(["-c", TLS, &at.to_string(), &to.to_string()]).stderr(Stdio::null());
    Front(command.spawn().expect("python3 is installed"))
}

#[test]
fn in_tls_a_server_is_published_to_if_it_is_the_one_that_was_meant() {
    if !is_installed() {
        return;
    }
    let (dir, [port, front, behind, own]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let clip = transport_stream(dir, 4);
    certificate(dir, "authority", "cn = \"authority\"\nca\ncert_signing_key\nexpiration_days = 365\n", None);
    let here = "cn = \"here\"\ntls_www_server\nexpiration_days = 365\ndns_name = localhost\n";
    certificate(dir, "here", here, Some("authority"));
    let there = format!("receive {own},rtmp://:{behind}/live/key out.ts --give-up 1s --key some-key-2026");
    let there = Running::start(dir, &there).wait_for("listening on rtmp://");
    let _front = tls(dir, front, behind);
    let outputs = format!("rtmps://localhost:{front}/live/key rtmps://127.0.0.1:{front}/live/key");
    let receive = format!("receive 127.0.0.1:{port} {outputs} --give-up 1s");
    let mut receiver = command(dir);
    receiver.args(receive.split(' ')).env("SSL_CERT_FILE", "authority.pem");
    let receiver = Running::spawn(receiver, Stdio::null()).wait_for("listening");
    Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port}")).finish().says(0, &[]);
    let published = format!("rtmps://localhost:{front}/live: the stream is published there");
    receiver.finish().says(0, &[&published, "invalid peer certificate: certificate not valid for name \"127.0.0.1\""]);
    there.finish().says(0, &["publishes, not encrypted"]);
    let (sent, came) = (frames(&clip, "v"), frames(&dir.join("out.ts"), "v"));
    let first = sent.iter().position(|frame| Some(frame) == came.first()).expect("a frame that was sent");
    let same = came.iter().zip(&sent[first..]).take_while(|(came, sent)| came == sent).count();
    assert!(same > 30 && same + 2 >= came.len() && first + same + 4 >= sent.len(), "{first} and {same}");
}
