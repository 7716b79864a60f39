use super::amf::Value;
use super::chunk::{self, Chunks, Message};
use super::connection::{PART, VERSION, Wrong};
use super::pack::Piece;
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

enum Stage {
    /// Bytes of its version and the first part of its handshake so far.
    Greets(Vec<u8>),
    /// Bytes of its second part that are still to come.
    Echoes(usize),
    Talks,
    Failed,
}

/// One end of a TCP connection that publishes a stream to the other one (Adobe, "RTMP specification 1.0", §7.2).
///
/// Memory: 128 KiB of unfinished answers, and what [`take_output`](Self::take_output) was not called for.
pub struct Publisher {
    stage: Stage,
    chunks: Chunks,
    app: String,
    url: String,
    key: String,
    /// The stream that the other end made.
    stream: u32,
    ready: bool,
    out: Vec<u8>,
    replies: VecDeque<Reply>,
    received: u32,
    told: u32,
    /// Bytes after which the other end wants to hear that they came.
    window: u32,
}

impl Publisher {
    /// Publishes `key` of the application `app`; `url` is where that is, without the key.
    pub fn new(mut rng: Rng, app: &str, url: &str, key: &str) -> Self {
        let mut random = [0; PART - 8];
        rng.fill(&mut random);
        let out = [&[VERSION][..], &[0; 8], &random].concat();
        Self {
            stage: Stage::Greets(Vec::new()),
            chunks: Chunks::new(),
            app: app.into(),
            url: url.into(),
            key: key.into(),
            stream: 0,
            ready: false,
            out,
            replies: VecDeque::new(),
            received: 0,
            told: 0,
            window: u32::MAX,
        }
    }

    /// Takes bytes that came. Take its replies and output then.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        self.received = self.received.wrapping_add(bytes.len() as u32);
        while !bytes.is_empty() {
            match &mut self.stage {
                Stage::Greets(greeting) => {
                    let (piece, rest) = bytes.split_at(bytes.len().min(1 + PART - greeting.len()));
                    greeting.extend_from_slice(piece);
                    bytes = rest;
                    if greeting[0] != VERSION {
                        return self.fail(Wrong::Handshake);
                    }
                    if greeting.len() == 1 + PART {
                        // Its first part goes back as our second one (§5.2.4).
                        self.out.extend_from_slice(&greeting[1..]);
                        self.stage = Stage::Echoes(PART);
                        self.connect();
                    }
                }
                Stage::Echoes(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        self.stage = Stage::Talks;
                    }
                }
                Stage::Talks => match self.chunks.read(&mut bytes) {
                    Ok(Some(message)) => {
                        if let Err(wrong) = self.take(&message) {
                            return self.fail(wrong);
                        }
                    }
                    Ok(None) => {}
                    Err(wrong) => return self.fail(Wrong::Chunk(wrong)),
                },
                Stage::Failed => return,
            }
        }
        if self.received.wrapping_sub(self.told) >= self.window / 2 {
            self.told = self.received;
            self.say(3, &self.received.to_be_bytes());
        }
    }

    fn fail(&mut self, wrong: Wrong) {
        (self.stage, self.chunks, self.ready) = (Stage::Failed, Chunks::new(), false);
        self.replies.push_back(Reply::Failed(wrong));
    }

    fn refused(&mut self, why: &str) {
        (self.stage, self.ready) = (Stage::Failed, false);
        self.replies.push_back(Reply::Refused(why.into()));
    }

    fn take(&mut self, message: &Message) -> Result<(), Wrong> {
        let number = |at: usize| message.payload.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        match message.kind {
            1 => self.chunks.set_size(number(0).unwrap_or(0)).map_err(Wrong::Chunk)?,
            2 => self.chunks.abort(number(0).unwrap_or(0)),
            5 => self.window = number(0).filter(|window| *window > 1).unwrap_or(u32::MAX),
            // A ping, which wants its number back (§7.1.7).
            4 if message.payload.starts_with(&[0, 6]) => {
                let number = number(2).unwrap_or(0).to_be_bytes();
                self.say(4, &[&[0, 7][..], &number].concat());
            }
            20 => self.answer(&message.payload)?,
            // AMF3's commands have a byte before those of AMF0.
            17 => self.answer(message.payload.get(1..).unwrap_or_default())?,
            _ => {}
        }
        Ok(())
    }

    fn answer(&mut self, payload: &[u8]) -> Result<(), Wrong> {
        if payload.len() > ANSWER {
            return Err(Wrong::TooMuch);
        }
        let values = Value::read_all(payload).map_err(Wrong::Value)?;
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
            "_error" if number(1).is_some_and(|it| it == CONNECT || it == CREATE) => self.refused(code),
            "onStatus" if code == "NetStream.Publish.Start" && !self.ready => {
                self.ready = true;
                self.replies.push_back(Reply::Ready);
            }
            "onStatus" if about("level") == Some("error") => self.refused(code),
            _ => {}
        }
        Ok(())
    }

    fn connect(&mut self) {
        self.say(1, &(chunk::OUR_SIZE as u32).to_be_bytes());
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
            chunk::write(if piece.video { 6 } else { 4 }, &message, &mut self.out);
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
        core::mem::take(&mut self.out)
    }

    /// Says a message of the protocol itself, on chunk stream 2.
    fn say(&mut self, kind: u8, payload: &[u8]) {
        chunk::write(2, &Message { kind, stream: 0, time: 0, payload: payload.to_vec() }, &mut self.out);
    }

    fn command(&mut self, stream: u32, name: &str, transaction: f64, values: &[Value]) {
        let mut payload = Vec::new();
        let head = [Value::Text(name.into()), Value::Number(transaction)];
        head.iter().chain(values).for_each(|value| value.write(&mut payload));
        chunk::write(3, &Message { kind: 20, stream, time: 0, payload }, &mut self.out);
    }
}
