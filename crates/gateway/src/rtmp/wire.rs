use super::amf::Value;
use super::chunk::{self, Chunks, Message};
use super::connection::Wrong;
use braidcast_core::Rng;

/// The first byte of each end.
const VERSION: u8 = 3;
/// Bytes of the handshake's other parts (§5.2).
const PART: usize = 1536;

enum Stage {
    /// Bytes of the other end's version and first part so far.
    Greets(Vec<u8>),
    /// Bytes of its second part that are still to come.
    Echoes(usize),
    Talks,
    Over,
}

/// What came over the wire.
pub(super) enum Heard {
    /// The other end has greeted: commands may be said.
    Greeting,
    /// A message that is not about the wire itself.
    Message(Message),
}

/// The bytes of a connection, of whichever end: the handshake, messages in chunks, and those messages that are about
/// the wire itself (Adobe, "RTMP specification 1.0", §5.2 to §5.4 and §7.1.7).
///
/// Memory: 128 KiB of unfinished messages, 16 MiB once the other end is [trusted](Self::trust), and what
/// [`take_output`](Self::take_output) was not called for.
pub(super) struct Wire {
    stage: Stage,
    chunks: Chunks,
    rng: Rng,
    /// This end greets first.
    calls: bool,
    out: Vec<u8>,
    received: u32,
    acknowledged: u32,
    /// Bytes after which the other end wants to hear that they came (§5.4.4).
    window: u32,
}

impl Wire {
    /// The end that listens. It says half a `window` that it came.
    pub(super) const fn listening(rng: Rng, window: u32) -> Self {
        Self {
            stage: Stage::Greets(Vec::new()),
            chunks: Chunks::new(),
            rng,
            calls: false,
            out: Vec::new(),
            received: 0,
            acknowledged: 0,
            window,
        }
    }

    /// The end that calls. It says that bytes came once the other end has said its window.
    pub(super) fn calling(rng: Rng) -> Self {
        let mut it = Self { calls: true, ..Self::listening(rng, u32::MAX) };
        it.greet();
        it
    }

    /// Our version and first part.
    fn greet(&mut self) {
        let mut random = [0; PART - 8];
        self.rng.fill(&mut random);
        self.out.push(VERSION);
        self.out.extend([0; 8]);
        self.out.extend(random);
    }

    /// Takes `bytes` that came, up to what is to be looked at; `None` if that is all.
    ///
    /// # Errors
    /// Nothing behind it can be read; it is [over](Self::end) then.
    pub(super) fn hear(&mut self, bytes: &mut &[u8]) -> Result<Option<Heard>, Wrong> {
        let before = bytes.len();
        let heard = self.read(bytes);
        self.received = self.received.wrapping_add((before - bytes.len()) as u32);
        match heard {
            Ok(None) => self.acknowledge(),
            Err(_) => self.end(),
            Ok(Some(_)) => {}
        }
        heard
    }

    fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Heard>, Wrong> {
        while !bytes.is_empty() {
            match &mut self.stage {
                Stage::Greets(greeting) => {
                    let (piece, rest) = bytes.split_at(bytes.len().min(1 + PART - greeting.len()));
                    greeting.extend_from_slice(piece);
                    *bytes = rest;
                    if greeting[0] != VERSION {
                        return Err(Wrong::Handshake);
                    }
                    if greeting.len() == 1 + PART {
                        let theirs = core::mem::take(greeting);
                        if !self.calls {
                            self.greet();
                        }
                        // The other end's first part is our second one (§5.2.4).
                        self.out.extend_from_slice(&theirs[1..]);
                        self.stage = Stage::Echoes(PART);
                        return Ok(Some(Heard::Greeting));
                    }
                }
                Stage::Echoes(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    *bytes = &bytes[taken..];
                    if *left == 0 {
                        self.stage = Stage::Talks;
                    }
                }
                Stage::Talks => {
                    if let Some(message) = self.chunks.read(bytes).map_err(Wrong::Chunk)?
                        && !self.is_about_the_wire(&message)?
                    {
                        return Ok(Some(Heard::Message(message)));
                    }
                }
                Stage::Over => *bytes = &[],
            }
        }
        Ok(None)
    }

    /// Does what `message` says, if it is about the wire itself.
    fn is_about_the_wire(&mut self, message: &Message) -> Result<bool, Wrong> {
        let number = |at: usize| message.payload.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        match message.kind {
            1 => self.chunks.set_size(number(0).unwrap_or(0)).map_err(Wrong::Chunk)?,
            2 => self.chunks.abort(number(0).unwrap_or(0)),
            // A ping, which wants its number back (§7.1.7).
            4 if message.payload.starts_with(&[0, 6]) => {
                let number = number(2).unwrap_or(0).to_be_bytes();
                self.say(4, &[&[0, 7][..], &number].concat());
            }
            // Who listens has its own window, and says it.
            5 if self.calls => self.window = number(0).filter(|window| *window > 1).unwrap_or(u32::MAX),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn acknowledge(&mut self) {
        if self.received.wrapping_sub(self.acknowledged) >= self.window / 2 && !matches!(self.stage, Stage::Over) {
            self.acknowledged = self.received;
            self.say(3, &self.received.to_be_bytes());
        }
    }

    /// The other end may say messages as long as frames.
    pub(super) const fn trust(&mut self) {
        self.chunks.trust();
    }

    /// Nothing more is read; what is to be said still is.
    pub(super) fn end(&mut self) {
        (self.stage, self.chunks) = (Stage::Over, Chunks::new());
    }

    /// Says a message of the protocol itself, on chunk stream 2.
    pub(super) fn say(&mut self, kind: u8, payload: &[u8]) {
        chunk::write(2, &Message { kind, stream: 0, time: 0, payload: payload.to_vec() }, &mut self.out);
    }

    /// From now on chunks are of our own size.
    pub(super) fn say_chunk_size(&mut self) {
        self.say(1, &(chunk::OUR_SIZE as u32).to_be_bytes());
    }

    /// Says `values` as a command, on chunk stream `id`.
    pub(super) fn say_values<'a>(&mut self, id: u8, stream: u32, values: impl Iterator<Item = &'a Value>) {
        let mut payload = Vec::new();
        values.for_each(|value| value.write(&mut payload));
        self.say_message(id, &Message { kind: 20, stream, time: 0, payload });
    }

    /// Says `message` on chunk stream `id`.
    pub(super) fn say_message(&mut self, id: u8, message: &Message) {
        chunk::write(id, message, &mut self.out);
    }

    /// What is to be sent; it is kept no longer.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }
}

/// The values of a command, whose message is `kind` 20, or 17 of AMF3, where a byte stands before them; `None` if it is
/// no command. At most `most` bytes.
pub(super) fn command(message: &Message, most: usize) -> Result<Option<Vec<Value>>, Wrong> {
    let payload = match message.kind {
        20 => &message.payload[..],
        17 => message.payload.get(1..).unwrap_or_default(),
        _ => return Ok(None),
    };
    if payload.len() > most {
        return Err(Wrong::TooMuch);
    }
    Value::read_all(payload).map(Some).map_err(Wrong::Value)
}
