//! The chunk stream: messages in pieces, several at a time (Adobe, "RTMP specification 1.0", §5.3).

use braidcast_core::{Reader, Truncated, Writer};
use std::collections::BTreeMap;

/// Payload of a chunk until the other end says otherwise (§5.4.1).
const FIRST_SIZE: usize = 128;
/// Payload of chunks that we send.
pub(super) const OUR_SIZE: usize = 4096;
/// Longest message: a frame of a second at 64 Mbit/s.
const MESSAGE: usize = 8 << 20;
/// Bytes of unfinished messages, at most.
const HELD: usize = 16 << 20;
/// The same of who may not publish yet, and says commands of at most 64 KiB only.
const HELD_OF_STRANGER: usize = 128 << 10;
/// Chunk streams, at most; encoders use four or five.
const STREAMS: usize = 64;
/// A timestamp field of this value is followed by four bytes with the real one.
const EXTENDED: u32 = 0xff_ffff;
/// Longest header: 3 + 11 + 4 bytes.
const HEADER: usize = 18;

/// A whole message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) stream: u32,
    /// Milliseconds, from anywhere.
    pub(super) time: u32,
    pub(super) payload: Vec<u8>,
}

/// What is wrong with a chunk stream: nothing behind it can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrongChunk {
    /// A header that counts on one before it, which was not there.
    NoHeader,
    /// A message, or all unfinished ones, are too long.
    TooLong,
    /// A message begins before the one before it has ended.
    Begun,
    /// Too many chunk streams.
    TooMany,
    /// A size of chunks that cannot be.
    Size,
}

/// Puts messages together.
#[derive(Debug)]
pub(super) struct Chunks {
    size: usize,
    streams: BTreeMap<u32, Stream>,
    /// The chunk that is being read, and how much of its payload is still to come.
    current: Option<(u32, usize)>,
    /// Bytes of a header that is not whole.
    head: Vec<u8>,
    held: usize,
    may_hold: usize,
}

#[derive(Debug, Default)]
struct Stream {
    time: u32,
    delta: u32,
    extended: bool,
    length: usize,
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Chunks {
    pub(super) const fn new() -> Self {
        Self {
            size: FIRST_SIZE,
            streams: BTreeMap::new(),
            current: None,
            head: Vec::new(),
            held: 0,
            may_hold: HELD_OF_STRANGER,
        }
    }

    /// The other end may publish, and its messages may be as long as frames.
    pub(super) const fn trust(&mut self) {
        self.may_hold = HELD;
    }

    /// The other end's chunks are of this size from now on.
    pub(super) fn set_size(&mut self, size: u32) -> Result<(), WrongChunk> {
        if size == 0 || size > 0x7fff_ffff {
            return Err(WrongChunk::Size);
        }
        self.size = size as usize;
        Ok(())
    }

    /// The rest of an unfinished message does not come (§5.4.2).
    pub(super) fn abort(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.held -= stream.payload.len();
            stream.payload = Vec::new();
        }
    }

    /// Takes bytes off the front of `bytes`, until a message is whole or there are none left.
    pub(super) fn read(&mut self, bytes: &mut &[u8]) -> Result<Option<Message>, WrongChunk> {
        while !bytes.is_empty() {
            if let Some((id, left)) = self.current {
                let (piece, rest) = bytes.split_at(left.min(bytes.len()));
                *bytes = rest;
                self.current = (piece.len() < left).then_some((id, left - piece.len()));
                if let Some(message) = self.add(id, piece)? {
                    return Ok(Some(message));
                }
                continue;
            }
            let (first, rest) = bytes.split_at(1);
            self.head.extend_from_slice(first);
            *bytes = rest;
            if let Some(message) = self.read_header()? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn add(&mut self, id: u32, piece: &[u8]) -> Result<Option<Message>, WrongChunk> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(None) };
        self.held += piece.len();
        if self.held > self.may_hold {
            return Err(WrongChunk::TooLong);
        }
        stream.payload.extend_from_slice(piece);
        if stream.payload.len() < stream.length {
            return Ok(None);
        }
        self.current = None;
        self.held -= stream.payload.len();
        let payload = core::mem::take(&mut stream.payload);
        Ok(Some(Message { kind: stream.kind, stream: stream.stream, time: stream.time, payload }))
    }

    /// Looks at a header that may be whole; a message is whole with it if it has no payload.
    fn read_header(&mut self) -> Result<Option<Message>, WrongChunk> {
        let mut reader = Reader::new(&self.head);
        let parsed = parse(&mut reader, &self.streams);
        let Ok(header) = parsed else {
            debug_assert!(self.head.len() < HEADER);
            return Ok(None);
        };
        self.head.clear();
        let Some(header) = header else { return Err(WrongChunk::NoHeader) };
        if !self.streams.contains_key(&header.id) && self.streams.len() >= STREAMS {
            return Err(WrongChunk::TooMany);
        }
        let stream = self.streams.entry(header.id).or_default();
        let begins = stream.payload.is_empty();
        if let Some((length, kind)) = header.message {
            if !begins {
                return Err(WrongChunk::Begun);
            }
            if length > MESSAGE {
                return Err(WrongChunk::TooLong);
            }
            (stream.length, stream.kind) = (length, kind);
        }
        stream.stream = header.stream.unwrap_or(stream.stream);
        stream.extended = header.extended;
        match header.time {
            Some(Time::Absolute(time)) => (stream.time, stream.delta) = (time, 0),
            Some(Time::Delta(delta)) => (stream.time, stream.delta) = (stream.time.wrapping_add(delta), delta),
            None if begins => stream.time = stream.time.wrapping_add(stream.delta),
            None => {}
        }
        let left = (stream.length - stream.payload.len()).min(self.size);
        self.current = (left > 0).then_some((header.id, left));
        if left == 0 { self.add(header.id, &[]) } else { Ok(None) }
    }
}

enum Time {
    Absolute(u32),
    Delta(u32),
}

struct Header {
    id: u32,
    time: Option<Time>,
    extended: bool,
    /// Length and kind.
    message: Option<(usize, u8)>,
    stream: Option<u32>,
}

/// `None` if it counts on a header before it that was not there.
fn parse(reader: &mut Reader<'_>, streams: &BTreeMap<u32, Stream>) -> Result<Option<Header>, Truncated> {
    let first = reader.u8()?;
    let id = match first & 0x3f {
        0 => 64 + u32::from(reader.u8()?),
        1 => {
            let low = u32::from(reader.u8()?);
            64 + low + 256 * u32::from(reader.u8()?)
        }
        id => id.into(),
    };
    let kind = first >> 6;
    let before = streams.get(&id);
    if kind > 0 && before.is_none() {
        return Ok(None);
    }
    let mut header = Header { id, time: None, extended: false, message: None, stream: None };
    let mut time = 0;
    if kind < 3 {
        time = u24(reader)?;
        header.extended = time == EXTENDED;
        if kind < 2 {
            let length = u24(reader)? as usize;
            header.message = Some((length, reader.u8()?));
        }
        if kind == 0 {
            header.stream = Some(u32::from_le_bytes(reader.array()?));
        }
    } else {
        header.extended = before.is_some_and(|before| before.extended);
    }
    if header.extended {
        time = reader.u32()?;
    }
    header.time = match kind {
        0 => Some(Time::Absolute(time)),
        1 | 2 => Some(Time::Delta(time)),
        _ => None,
    };
    Ok(Some(header))
}

fn u24(reader: &mut Reader<'_>) -> Result<u32, Truncated> {
    let [a, b, c] = reader.array()?;
    Ok(u32::from_be_bytes([0, a, b, c]))
}

/// Appends a message in chunks of [`OUR_SIZE`] to `buf`; those before that size is told are shorter than 128 bytes.
pub(super) fn write(id: u8, message: &Message, buf: &mut Vec<u8>) {
    let length = (message.payload.len() as u32).to_be_bytes();
    // From 4.66 h on each chunk has the time in four bytes of its own (§5.3.1.3).
    let extended = (message.time >= EXTENDED).then(|| message.time.to_be_bytes());
    let mut w = Writer::new(buf);
    w.u8(id);
    w.bytes(&message.time.min(EXTENDED).to_be_bytes()[1..]);
    w.bytes(&length[1..]);
    w.u8(message.kind);
    w.bytes(&message.stream.to_le_bytes());
    buf.extend(extended.into_iter().flatten());
    for (nth, piece) in message.payload.chunks(OUR_SIZE).enumerate() {
        if nth > 0 {
            buf.push(0xc0 | id);
            buf.extend(extended.into_iter().flatten());
        }
        buf.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(kind: u8, time: u32, payload: Vec<u8>) -> Message {
        Message { kind, stream: 1, time, payload }
    }

    fn all(chunks: &mut Chunks, bytes: &[u8], each: usize) -> Result<Vec<Message>, WrongChunk> {
        let mut got = Vec::new();
        for mut piece in bytes.chunks(each) {
            while let Some(message) = chunks.read(&mut piece)? {
                got.push(message);
            }
        }
        Ok(got)
    }

    #[test]
    fn messages_in_pieces_of_any_size_are_whole_again() {
        let (long, short) = (message(9, 40, vec![7; 10_000]), message(8, 23, vec![]));
        let mut bytes = Vec::new();
        write(6, &long, &mut bytes);
        write(4, &short, &mut bytes);
        for each in [1, 2, 100, 20_000] {
            let mut chunks = Chunks::new();
            chunks.set_size(OUR_SIZE as u32).unwrap();
            assert_eq!(all(&mut chunks, &bytes, each).unwrap(), [long.clone(), short.clone()]);
        }
    }

    #[test]
    fn audio_between_the_pieces_of_a_frame_and_times_by_difference() {
        let mut bytes = vec![0x06, 0, 0, 10, 0, 0, 200, 9, 1, 0, 0, 0];
        bytes.extend([1; 128]);
        // Audio, whole, in between.
        bytes.extend([0x04, 0, 0, 11, 0, 0, 2, 8, 1, 0, 0, 0, 5, 5]);
        bytes.push(0xc6);
        bytes.extend([2; 72]);
        // The next frame 40 ms later, and one as much later and as long.
        bytes.extend([0x46, 0, 0, 40, 0, 0, 1, 9, 3]);
        bytes.extend([0xc6, 4]);
        let got = all(&mut Chunks::new(), &bytes, 3).unwrap();
        let times: Vec<_> = got.iter().map(|it| (it.kind, it.time, it.payload.len())).collect();
        assert_eq!(times, [(8, 11, 2), (9, 10, 200), (9, 50, 1), (9, 90, 1)]);
    }

    #[test]
    fn what_is_written_is_read_whatever_its_time() {
        for time in [0, 1, EXTENDED - 1, EXTENDED, EXTENDED + 1, u32::MAX] {
            let message = message(9, time, vec![5; 10_000]);
            let mut bytes = Vec::new();
            write(6, &message, &mut bytes);
            let mut chunks = Chunks::new();
            chunks.set_size(OUR_SIZE as u32).unwrap();
            assert_eq!(all(&mut chunks, &bytes, 777).unwrap(), [message]);
        }
    }

    #[test]
    fn times_after_four_and_a_half_hours_have_four_bytes_in_each_chunk() {
        let mut bytes = vec![0x06, 0xff, 0xff, 0xff, 0, 0, 200, 9, 1, 0, 0, 0, 1, 0, 0, 5];
        bytes.extend([1; 128]);
        bytes.extend([0xc6, 1, 0, 0, 5]);
        bytes.extend([2; 72]);
        let got = all(&mut Chunks::new(), &bytes, 7).unwrap();
        assert_eq!((got[0].time, got[0].payload.len(), got[0].payload[199]), (0x0100_0005, 200, 2));
    }

    #[test]
    fn garbage_and_long_messages_cost_nothing() {
        assert_eq!(all(&mut Chunks::new(), &[0xc3, 0], 1), Err(WrongChunk::NoHeader));
        // A message of 16 MB.
        assert_eq!(
            all(&mut Chunks::new(), &[3, 0, 0, 0, 0xff, 0xff, 0xff, 9, 0, 0, 0, 0], 20),
            Err(WrongChunk::TooLong)
        );
        let mut chunks = Chunks::new();
        assert_eq!((chunks.set_size(0), chunks.set_size(u32::MAX)), (Err(WrongChunk::Size), Err(WrongChunk::Size)));
        chunks.set_size(0x7fff_ffff).unwrap();
        let many = |from: u8, length: [u8; 3], chunks: &mut Chunks| {
            (from..60).try_for_each(|id| {
                let mut bytes = vec![id, 0, 0, 0, length[0], length[1], length[2], 9, 0, 0, 0, 0];
                bytes.extend(vec![0; 100]);
                let mut rest = &bytes[..];
                chunks.read(&mut rest).map(|_| ())
            })
        };
        // Unfinished messages of 7 MB, of which only what came is held.
        assert_eq!(many(2, [0x6f, 0, 0], &mut chunks), Ok(()));
        assert!(chunks.held < 100_000);
        // Nor is much held of who may not publish yet.
        let long = [&[3, 0, 0, 0, 4, 0, 0, 9, 0, 0, 0, 0][..], &[0; 200_000]].concat();
        for (trusted, expected) in [(false, Err(WrongChunk::TooLong)), (true, Ok(Vec::new()))] {
            let mut chunks = Chunks::new();
            chunks.set_size(0x7fff_ffff).unwrap();
            if trusted {
                chunks.trust();
            }
            assert_eq!(all(&mut chunks, &long, 1000), expected);
        }
        let mut chunks = Chunks::new();
        let ids: Vec<u8> = (0..100_u8).flat_map(|id| [0, id, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0]).collect();
        assert_eq!(all(&mut chunks, &ids, 1000).map(|_| ()), Err(WrongChunk::TooMany));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in prop::collection::vec(any::<u8>(), 0..3000), each in 1_usize..500) {
            let mut chunks = Chunks::new();
            let _ = all(&mut chunks, &bytes, each);
            prop_assert!(chunks.held <= bytes.len() && chunks.head.len() < HEADER);
        }
    }
}
