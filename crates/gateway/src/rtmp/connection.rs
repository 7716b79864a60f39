use super::amf::{Value, WrongValue};
use super::chunk::{Message, WrongChunk};
use super::tag::Tag;
use super::wire::{self, Heard, Wire};
use braidcast_core::Rng;
use core::fmt;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use std::collections::VecDeque;

/// Bytes after which an end wants to hear that they came, in each direction (§5.4.4).
const WINDOW: u32 = 2_500_000;
/// Commands before a stream is published, at most; encoders send five.
const COMMANDS: u32 = 32;
/// Longest command or set of metadata.
const COMMAND: usize = 64 << 10;
/// Longest name of a stream.
const NAME: usize = 512;
/// The one stream of a connection.
const STREAM: u32 = 1;

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It wants to publish a stream: application, `/` and key, without what is behind a question mark. To be
    /// [accepted](Connection::accept) or [refused](Connection::refuse).
    Asks(String),
    /// A piece of the stream.
    Tag(Tag),
    /// The stream is over, by the other end's word.
    Ended,
    /// Nothing more can be read; what is still to be said can be sent.
    Failed(Wrong),
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// It is not RTMP, or a version of it that is not spoken.
    Handshake,
    /// The chunk stream.
    Chunk(WrongChunk),
    /// A command's values.
    Value(WrongValue),
    /// A command that is too long, or too many of them.
    TooMuch,
    /// It wants to play.
    Play,
    /// It was refused.
    Refused,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "it does not speak RTMP",
            Self::Chunk(WrongChunk::TooLong) => "a message is longer than 8 MiB",
            Self::Chunk(_) => "its messages are not whole",
            Self::Value(WrongValue::TooMuch) => "a command has too many values",
            Self::Value(_) => "a command cannot be read",
            Self::TooMuch => "too many commands, or one that is too long",
            Self::Play => "it wants to play a stream, and there is none to play",
            Self::Refused => "its stream is not expected",
        })
    }
}

/// One end of a TCP connection, the other one of which publishes a stream.
///
/// Memory: 128 KiB of unfinished messages, 16 MiB once its stream is [accepted](Self::accept), and what
/// [`take_output`](Self::take_output) was not called for.
pub struct Connection {
    wire: Wire,
    app: String,
    /// Transaction of a stream that it asked to publish.
    asked: bool,
    publishes: bool,
    commands: u32,
    events: VecDeque<Event>,
}

impl Connection {
    /// A connection that has just been made.
    pub const fn new(rng: Rng) -> Self {
        Self {
            wire: Wire::listening(rng, WINDOW),
            app: String::new(),
            asked: false,
            publishes: false,
            commands: 0,
            events: VecDeque::new(),
        }
    }

    /// Takes bytes that came. Take its events and output then.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        loop {
            let taken = match self.wire.hear(&mut bytes) {
                Ok(Some(Heard::Message(message))) => self.take(&message),
                Ok(Some(Heard::Greeting)) => Ok(()),
                Ok(None) => return,
                Err(wrong) => Err(wrong),
            };
            if let Err(wrong) = taken {
                return self.fail(wrong);
            }
        }
    }

    fn fail(&mut self, wrong: Wrong) {
        self.wire.end();
        self.events.push_back(Event::Failed(wrong));
    }

    fn take(&mut self, message: &Message) -> Result<(), Wrong> {
        if self.publishes && matches!(message.kind, 8 | 9) {
            let tag = Tag::parse(message.kind == 9, message.time, &message.payload);
            self.events.extend(tag.map(Event::Tag));
        }
        // Its acknowledgements, windows and metadata: nothing here depends on them.
        match wire::command(message, COMMAND)? {
            Some(values) => self.command(&values),
            None => Ok(()),
        }
    }

    fn command(&mut self, values: &[Value]) -> Result<(), Wrong> {
        self.commands += u32::from(!self.publishes);
        if self.commands > COMMANDS {
            return Err(Wrong::TooMuch);
        }
        let text = |at: usize| values.get(at).and_then(Value::text);
        let transaction = values.get(1).and_then(Value::number).unwrap_or(0.0);
        match text(0).unwrap_or_default() {
            "connect" => {
                let app = values.get(2).and_then(|it| it.member("app")).and_then(Value::text).unwrap_or_default();
                app.get(..NAME.min(app.len())).unwrap_or_default().trim_matches('/').clone_into(&mut self.app);
                self.connected(transaction);
            }
            "releaseStream" | "FCPublish" => self.answer(transaction, &[Value::Null, Value::Other]),
            "createStream" => self.answer(transaction, &[Value::Null, Value::Number(STREAM.into())]),
            "publish" if !self.asked => {
                let key = text(3).unwrap_or_default();
                let key = key.split('?').next().unwrap_or_default();
                self.asked = true;
                let app = self.app.split('?').next().unwrap_or_default();
                let path: String = format!("{app}/{key}").chars().take(NAME).collect();
                self.events.push_back(Event::Asks(path));
            }
            "play" | "play2" => {
                self.status("error", "NetStream.Play.Failed", "there is nothing to play");
                return Err(Wrong::Play);
            }
            "deleteStream" | "closeStream" | "FCUnpublish" if self.publishes => {
                self.publishes = false;
                self.events.push_back(Event::Ended);
            }
            _ => {}
        }
        Ok(())
    }

    fn connected(&mut self, transaction: f64) {
        self.wire.say(5, &WINDOW.to_be_bytes());
        self.wire.say(6, &[&WINDOW.to_be_bytes()[..], &[2]].concat());
        self.wire.say_chunk_size();
        let text = |text: &str| Value::Text(text.into());
        let object = |members: &[(&str, Value)]| {
            Value::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        };
        let about = object(&[("fmsVer", text("FMS/3,0,1,123")), ("capabilities", Value::Number(31.0))]);
        let status = object(&[
            ("level", text("status")),
            ("code", text("NetConnection.Connect.Success")),
            ("description", text("connected")),
            ("objectEncoding", Value::Number(0.0)),
        ]);
        self.answer(transaction, &[about, status]);
    }

    /// The stream that it asked for may come.
    pub fn accept(&mut self) {
        self.publishes = true;
        self.wire.trust();
        self.wire.say(4, &[&[0, 0][..], &STREAM.to_be_bytes()].concat());
        self.status("status", "NetStream.Publish.Start", "go on");
    }

    /// The stream that it asked for may not come; it is told `why`.
    pub fn refuse(&mut self, why: &str) {
        self.status("error", "NetStream.Publish.BadName", why);
        self.fail(Wrong::Refused);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is to be sent; it is kept no longer.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.wire.take_output()
    }

    fn answer(&mut self, transaction: f64, values: &[Value]) {
        let head = [Value::Text("_result".into()), Value::Number(transaction)];
        self.wire.say_values(3, 0, head.iter().chain(values));
    }

    fn status(&mut self, level: &str, code: &str, description: &str) {
        let members = [("level", level), ("code", code), ("description", description)];
        let members = members.map(|(name, value)| (name.to_owned(), Value::Text(value.into())));
        let values = [Value::Text("onStatus".into()), Value::Number(0.0), Value::Null, Value::Object(members.to_vec())];
        self.wire.say_values(5, STREAM, values.iter());
    }
}

/// Returns `true` if `asked` is the path `wanted`, in a time that does not depend on where they differ: a path's key is
/// a secret.
pub fn is_path(asked: &str, wanted: &str, rng: &mut Rng) -> bool {
    let mut key = [0; 20];
    rng.fill(&mut key);
    let mac = |text: &str| {
        let mut mac = Hmac::<Sha1>::new_from_slice(&key).ok()?;
        mac.update(text.as_bytes());
        Some(mac)
    };
    match (mac(asked), mac(wanted)) {
        (Some(asked), Some(wanted)) => asked.verify(&wanted.finalize().into_bytes()).is_ok(),
        _ => false,
    }
}
