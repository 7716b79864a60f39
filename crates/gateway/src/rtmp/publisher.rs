use super::amf::Value;
use super::chunk::Message;
use super::connection::Wrong;
use super::pack::Piece;
use super::wire::{self, Heard, Wire};
use braidcast_core::Rng;
use std::collections::VecDeque;

/// Transactions of what is asked, in this order.
const CONNECT: f64 = 1.0;
const RELEASE: f64 = 2.0;
const ANNOUNCE: f64 = 3.0;
const CREATE: f64 = 4.0;
const PUBLISH: f64 = 5.0;
/// Longest answer that is read, in bytes.
const ANSWER: usize = 64 << 10;

/// What the other end says to being published to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The stream can come.
    Ready,
    /// It does not take the stream, or no more of it, with its code for why, for example
    /// `NetStream.Publish.BadName`. It is a stranger's text.
    Refused(String),
    /// It cannot be understood.
    Failed(Wrong),
}

/// One end of a TCP connection that publishes a stream to the other one (Adobe, "RTMP specification 1.0", §7.2).
///
/// Memory: 128 KiB of unfinished answers, and what [`take_output`](Self::take_output) was not called for.
pub struct Publisher {
    wire: Wire,
    app: String,
    url: String,
    key: String,
    /// The stream that the other end made.
    stream: u32,
    ready: bool,
    replies: VecDeque<Reply>,
}

impl Publisher {
    /// Publishes `key` of the application `app`; `url` is where that is, without the key.
    pub fn new(rng: Rng, app: &str, url: &str, key: &str) -> Self {
        Self {
            wire: Wire::calling(rng),
            app: app.into(),
            url: url.into(),
            key: key.into(),
            stream: 0,
            ready: false,
            replies: VecDeque::new(),
        }
    }

    /// Takes bytes that came. Take its replies and output then.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        loop {
            match self.wire.hear(&mut bytes) {
                Ok(Some(Heard::Greeting)) => self.connect(),
                Ok(Some(Heard::Message(message))) => match wire::command(&message, ANSWER) {
                    Ok(Some(values)) => self.answer(&values),
                    Ok(None) => {}
                    Err(wrong) => return self.end(Reply::Failed(wrong)),
                },
                Ok(None) => return,
                Err(wrong) => return self.end(Reply::Failed(wrong)),
            }
        }
    }

    fn end(&mut self, reply: Reply) {
        self.wire.end();
        self.ready = false;
        self.replies.push_back(reply);
    }

    fn answer(&mut self, values: &[Value]) {
        let number = |at: usize| values.get(at).and_then(Value::number);
        let about = |name: &str| values.iter().rev().find_map(|it| it.member(name)).and_then(Value::text);
        let code = about("code").unwrap_or_default();
        match values.first().and_then(Value::text).unwrap_or_default() {
            "_result" if number(1) == Some(CONNECT) => self.announce(),
            "_result" if number(1) == Some(CREATE) => {
                self.stream = number(3).filter(|it| (0.0..f64::from(u32::MAX)).contains(it)).unwrap_or(1.0) as u32;
                self.publish();
            }
            // A server that does not know the stream yet says so to the two that announce it.
            "_error" if number(1).is_some_and(|it| it == CONNECT || it == CREATE) => {
                self.end(Reply::Refused(code.into()));
            }
            "onStatus" if code == "NetStream.Publish.Start" && !self.ready => {
                self.ready = true;
                self.replies.push_back(Reply::Ready);
            }
            "onStatus" if about("level") == Some("error") => self.end(Reply::Refused(code.into())),
            _ => {}
        }
    }

    fn connect(&mut self) {
        self.wire.say_chunk_size();
        let text = |text: &str| Value::Text(text.into());
        let members = [
            ("app", text(&self.app)),
            ("type", text("nonprivate")),
            ("flashVer", text("FMLE/3.0 (compatible; Braidcast)")),
            ("tcUrl", text(&self.url)),
        ];
        let members = members.map(|(name, value)| (name.to_owned(), value)).to_vec();
        self.command(0, "connect", CONNECT, &[Value::Object(members)]);
    }

    /// Announces the stream, as encoders do and some servers want, and has it made.
    fn announce(&mut self) {
        let key = [Value::Null, Value::Text(self.key.clone())];
        self.command(0, "releaseStream", RELEASE, &key);
        self.command(0, "FCPublish", ANNOUNCE, &key);
        self.command(0, "createStream", CREATE, &[Value::Null]);
    }

    fn publish(&mut self) {
        let values = [Value::Null, Value::Text(self.key.clone()), Value::Text("live".into())];
        self.command(self.stream, "publish", PUBLISH, &values);
    }

    /// Sends a piece of the stream. Nothing goes before the other end is [ready](Reply::Ready), or after it has failed.
    pub fn send(&mut self, piece: &Piece) {
        if self.ready {
            let kind = if piece.video { 9 } else { 8 };
            let message = Message { kind, stream: self.stream, time: piece.time, payload: piece.payload.clone() };
            self.wire.say_message(if piece.video { 6 } else { 4 }, &message);
        }
    }

    /// Says that the stream is over.
    pub fn finish(&mut self) {
        if core::mem::take(&mut self.ready) {
            self.command(0, "FCUnpublish", 6.0, &[Value::Null, Value::Text(self.key.clone())]);
            self.command(0, "deleteStream", 7.0, &[Value::Null, Value::Number(self.stream.into())]);
        }
    }

    /// The next reply.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// What is to be sent; it is kept no longer.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.wire.take_output()
    }

    fn command(&mut self, stream: u32, name: &str, transaction: f64, values: &[Value]) {
        let head = [Value::Text(name.into()), Value::Number(transaction)];
        self.wire.say_values(3, stream, head.iter().chain(values));
    }
}
