//! The example that sets OBS's bitrate (docs/examples/obs-follow.py), against a server that speaks
//! obs-websocket 5 as its documentation has it. OBS itself is not here.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a real server over a real socket")]

use crate::common::{Running, free_port, transport_stream};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

/// Password, salt and challenge of the protocol's guide, "Creating an authentication string", and
/// what that makes of them.
const PASSWORD: &str = "supersecretpassword";
const SALT: &str = "lM1GncleQOaCu9lT1yeUZhFYnqhsLLP1G5lAGo3ixaI=";
const CHALLENGE: &str = "+IxH4CnCiqpX1rM9scsNynZzbOe4KhDeYcTNS3PDaeY=";
const AUTHENTICATION: &str = "1Ct943GAT+6YQUUX47Ia/ncufilbe6+oD6lY+5kaCu4=";

/// The server's side of one connection (RFC 6455).
struct Obs(BufReader<TcpStream>);

impl Obs {
    fn accept(listener: &TcpListener) -> Self {
        let mut it = Self(BufReader::new(listener.accept().unwrap().0));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(it.0.read_line(&mut head).unwrap() > 0);
        }
        let head = head.to_lowercase();
        for line in ["upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-protocol: obswebsocket.json"] {
            assert!(head.contains(line), "{head}");
        }
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        it.0.get_mut().write_all(answer.as_bytes()).unwrap();
        it
    }

    fn send(&mut self, op: u32, data: &Value) {
        let text = json!({"op": op, "d": data}).to_string();
        let mut frame = vec![0x81, 126];
        frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend(text.as_bytes());
        self.0.get_mut().write_all(&frame).unwrap();
    }

    /// The next message; `None` at the end.
    fn receive(&mut self) -> Option<(u64, Value)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        assert!(head[0] == 0x81 && head[1] & 0x80 != 0, "a client's text is whole and masked: {head:?}");
        let mut length = usize::from(head[1] & 0x7f);
        if length == 126 {
            let mut more = [0; 2];
            self.0.read_exact(&mut more).unwrap();
            length = u16::from_be_bytes(more).into();
        }
        let (mut mask, mut text) = ([0; 4], vec![0; length]);
        self.0.read_exact(&mut mask).unwrap();
        self.0.read_exact(&mut text).unwrap();
        text.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        let message: Value = serde_json::from_slice(&text).unwrap();
        Some((message["op"].as_u64().unwrap(), message["d"].clone()))
    }

    /// Exchanges Hello, Identify and Identified. Returns `true` if it let the client in.
    fn identify(&mut self) -> bool {
        let authentication = json!({"challenge": CHALLENGE, "salt": SALT});
        let hello = json!({"obsStudioVersion": "30.2.2", "obsWebSocketVersion": "5.5.2", "rpcVersion": 1, "authentication": authentication});
        self.send(0, &hello);
        let (op, identify) = self.receive().unwrap();
        assert_eq!((op, &identify["rpcVersion"]), (1, &json!(1)));
        if identify["authentication"] != AUTHENTICATION {
            // 4009: AuthenticationFailed.
            let mut frame = vec![0x88, 2 + 22];
            frame.extend(4009u16.to_be_bytes());
            frame.extend(b"Authentication failed.");
            self.0.get_mut().write_all(&frame).unwrap();
            return false;
        }
        self.send(2, &json!({"negotiatedRpcVersion": 1}));
        true
    }

    /// Answers a request; `active`: an output runs.
    fn answer(&mut self, request: &Value, active: bool) {
        let (kind, id) = (&request["requestType"], &request["requestId"]);
        let (status, data) = (json!({"result": true, "code": 100}), json!({"outputActive": active}));
        self.send(7, &json!({"requestType": kind, "requestId": id, "requestStatus": status, "responseData": data}));
    }
}

fn example(obs: u16, rates: u16, password: &str, more: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/obs-follow.py"));
    command.args(["--obs", &format!("127.0.0.1:{obs}"), "--rates", &format!("http://127.0.0.1:{rates}/")]);
    command.args(more).env("OBS_PASSWORD", password).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn the_example_sets_the_bitrate_of_obs() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let rates = listener().1;
    transport_stream(dir.path(), 6);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let how = format!("--rate-report sse:{rates} --rate-interval 50ms --rate-range 200kbit-3mbit");
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} {how}")).wait_for("connected");
    let (listener, obs) = listener();
    let child = example(obs, rates, PASSWORD, &["--restart", "record"]).spawn().unwrap();
    let mut obs = Obs::accept(&listener);
    assert!(obs.identify());
    // What is no answer is passed over.
    obs.send(5, &json!({"eventType": "StudioModeStateChanged", "eventIntent": 1}));
    let (mut set, mut requests) = (Vec::new(), Vec::new());
    // As OBS 29 does it: it runs for a moment after it has been stopped, and forgets what it is told then.
    let (mut active, mut stopping, mut forgotten) = (true, 0, false);
    while let Some((op, request)) = obs.receive() {
        assert_eq!(op, 6);
        let kind = request["requestType"].as_str().unwrap().to_owned();
        if kind == "SetProfileParameter" {
            let data = &request["requestData"];
            assert_eq!((&data["parameterCategory"], &data["parameterName"]), (&json!("AdvOut"), &json!("FFVBitrate")));
            set.push(data["parameterValue"].as_str().unwrap().parse::<u64>().unwrap());
        }
        match &*kind {
            "StopRecord" => stopping = 2,
            "StartRecord" if forgotten => active = true,
            "StartRecord" => forgotten = true,
            "GetRecordStatus" if stopping > 0 => {
                stopping -= 1;
                active &= stopping > 0;
            }
            _ => {}
        }
        obs.answer(&request, active);
        if kind != "GetRecordStatus" {
            requests.push(kind);
        }
    }
    let ran = child.wait_with_output().unwrap();
    sender.finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(!set.is_empty() && set.iter().all(|kbits| (100..=3000).contains(kbits)), "{set:?}");
    assert_eq!(said, set.iter().map(|kbits| format!("{kbits} kbit/s\n")).collect::<String>());
    assert_eq!(requests[..4], ["SetProfileParameter", "StopRecord", "StartRecord", "StartRecord"]);
}

#[test]
fn a_wrong_password_is_said() {
    let (listener, obs) = listener();
    let child = example(obs, 9, "wrong", &[]).spawn().unwrap();
    assert!(!Obs::accept(&listener).identify());
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("Authentication failed."), "{said}");
}
