//! One PID: the unit that grows there, and what is known of its frames.

use super::assembly::{Assembly, Share};
use super::gather::Gather;
use super::small::Small;
use super::{Codec, PACKET, Packet, PesHeader};
use crate::nal::{Av1, Found, Picture, Scanner, Syntax};
use crate::unit::Kind;
use braidcast_core::Instant;
use core::time::Duration;

/// Bytes of the largest unit; a longer access unit is cut into several.
const MAX_UNIT: usize = 11_000 * PACKET;
/// Packets of one unit that is neither video nor audio.
pub(super) const MAX_SMALL: usize = 64 * PACKET;
/// Bytes in front of a frame that may be a start code: 00 00 00 01.
const START_CODE: usize = 4;
/// Packets at its beginning by which an AV1 frame is known.
const AV1_HEAD: usize = 4;
/// How long the first null packet of a unit waits for others.
const STUFFING_WAITS: Duration = Duration::from_millis(100);
/// Presentation times wrap here.
const TIMES: u64 = 1 << 33;

/// What stuffing says in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stuffing {
    /// A video frame was closed by a packet with this counter.
    Closed(u8),
    /// Nothing: frames went on behind it.
    Meaningless,
}

/// The frames of one PID.
#[derive(Debug)]
struct Video {
    how: How,
    /// The access unit that is being read.
    picture: Option<Picture>,
    /// No unit of it was closed yet.
    fresh: bool,
    /// Presentation time of the latest frame in order of presentation.
    latest: Option<u64>,
}

/// How frames are found.
#[derive(Debug)]
enum How {
    /// By what stands behind start codes.
    Scan(Box<Scanner>),
    Av1(Av1),
    /// Each PES packet is taken for one.
    Pes,
}

impl Video {
    fn new(codec: Codec) -> Option<Self> {
        let syntax = match codec {
            Codec::H264 => Some(Syntax::H264),
            Codec::H265 => Some(Syntax::h265()),
            Codec::H266 => Some(Syntax::H266(crate::nal::H266::default())),
            Codec::Mpeg2 => Some(Syntax::Mpeg2),
            Codec::Mpeg4 => Some(Syntax::Mpeg4),
            _ => None,
        };
        let how = match (syntax, codec) {
            (Some(syntax), _) => How::Scan(Box::new(Scanner::new(syntax))),
            (None, Codec::Av1) => How::Av1(Av1::default()),
            (None, Codec::Video) => How::Pes,
            _ => return None,
        };
        Some(Self { how, picture: None, fresh: false, latest: None })
    }

    fn is_in_picture(&self) -> bool {
        matches!(&self.how, How::Scan(scanner) if scanner.is_in_picture())
    }

    /// The frame of a unit whose bits say nothing.
    fn guess(&self, unit: &Assembly) -> Picture {
        // Random access means I. What is shown before a frame that came earlier is B; P is the safe
        // guess for the rest.
        let later = !self.leans_on_the_past(unit) && !unit.scrambled;
        let kind = if unit.random_access {
            Kind::I
        } else if later {
            Kind::B
        } else {
            Kind::P
        };
        Picture { kind, reference: true }
    }

    /// Returns `true` if nothing that came before the unit is shown after it, so that it is predicted
    /// from the past alone.
    fn leans_on_the_past(&self, unit: &Assembly) -> bool {
        let pts = unit.pes.and_then(|pes| pes.pts);
        pts.zip(self.latest).is_none_or(|(pts, latest)| pts.wrapping_sub(latest) % TIMES < TIMES / 2)
    }

    /// What `unit` is, the frame's beginning or a later part of it.
    fn settle(&mut self, unit: &Assembly, stream: &mut Vec<u8>) -> Picture {
        let announced = unit.pes.is_some_and(|pes| pes.pts.is_some());
        if announced && !self.fresh {
            // A PES packet with a time has a frame that begins in it, though none could be read.
            (self.picture, self.fresh) = (None, true);
        }
        if let (How::Av1(av1), true, false) = (&mut self.how, unit.pes.is_some(), unit.scrambled) {
            unit.elementary_stream(AV1_HEAD, stream);
            self.picture = av1.picture(stream);
        }
        let mut picture = self.picture.unwrap_or_else(|| self.guess(unit));
        if picture.kind == Kind::B && self.fresh && announced && self.latest.is_some() && self.leans_on_the_past(unit) {
            // Low-delay B, as hardware encoders write them: others reference it as they do P.
            picture.kind = Kind::P;
        }
        self.picture = Some(picture);
        let pts = unit.pes.and_then(|pes| pes.pts);
        if picture.kind == Kind::I || self.leans_on_the_past(unit) {
            self.latest = pts.or(self.latest);
        }
        picture
    }
}

/// One PID of a transport stream.
#[derive(Debug)]
pub(super) struct Stream {
    pid: u16,
    codec: Codec,
    unit: Option<Assembly>,
    video: Option<Video>,
    stuffing: Option<Stuffing>,
    small: Small,
}

/// What a stream shares with the others while it takes a packet.
pub(super) struct Shared<'a> {
    pub(super) gather: &'a mut Gather,
    /// Room for what is found in a packet, and for an elementary stream.
    pub(super) found: &'a mut Vec<Found>,
    pub(super) bytes: &'a mut Vec<u8>,
    /// How long a frame may take to come before the part of it that is there goes.
    pub(super) patience: Option<Duration>,
}

impl Stream {
    pub(super) fn new(pid: u16, codec: Codec) -> Self {
        Self { pid, codec, unit: None, video: Video::new(codec), stuffing: None, small: Small::default() }
    }

    /// The growing unit.
    pub(super) const fn growing(&self) -> Option<&Assembly> {
        self.unit.as_ref()
    }

    /// Takes packet number `index`, which came at `now`.
    pub(super) fn take(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET], codec: Codec, with: &mut Shared<'_>) {
        let packet = Packet::new(bytes);
        if codec != self.codec {
            self.close(false, with);
            (self.codec, self.video, self.stuffing) = (codec, Video::new(codec), None);
        }
        let in_picture = self.video.as_ref().is_some_and(Video::is_in_picture);
        self.scan(&packet, with);
        let begins = with.found.iter().any(|found| matches!(found, Found::Begins(_)));
        if packet.starts_unit() && self.codec != Codec::Stuffing {
            // A PES packet with a time has a frame that begins in it.
            let timed = || PesHeader::parse(packet.payload()).is_some_and(|pes| pes.pts.is_some());
            self.close(in_picture && !begins && !timed(), with);
            if let Some(video) = self.video.as_mut().filter(|_| !in_picture) {
                (video.fresh, video.picture) = (true, None);
            }
        } else if let Some(Stuffing::Closed(counter)) = self.stuffing
            && self.unit.is_none()
            && !packet.payload().is_empty()
            && packet.counter() == (counter + 1) & 0x0f
        {
            self.stuffing = Some(Stuffing::Meaningless);
        } else if !begins && self.is_long(now, with.patience) {
            // Only now it is known that more of it comes.
            self.close(true, with);
        }
        if !self.cut_at_frames(now, index, bytes, with) {
            self.add(now, index, bytes);
        }
        self.close_if_complete(with);
    }

    fn add(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET]) {
        let codec = self.codec;
        self.unit.get_or_insert_with(|| Assembly::new(now, &Packet::new(bytes), codec)).add(now, index, bytes);
    }

    /// Looks for frames in a packet of video.
    fn scan(&mut self, packet: &Packet<'_>, with: &mut Shared<'_>) {
        with.found.clear();
        let Some(Video { how: How::Scan(scanner), .. }) = &mut self.video else { return };
        if packet.scrambled() {
            return scanner.restart();
        }
        let payload = packet.payload();
        let header = if packet.starts_unit() { PesHeader::parse(payload).map_or(0, |it| it.header) } else { 0 };
        scanner.scan(payload.get(header..).unwrap_or_default(), with.found);
    }

    /// Cuts where a frame begins that was found in a packet. Returns `true` if the packet was added.
    fn cut_at_frames(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET], with: &mut Shared<'_>) -> bool {
        let mut taken = false;
        for place in 0..with.found.len() {
            match with.found[place] {
                Found::Begins(at) => taken |= self.cut(now, index, bytes, at <= START_CODE || taken, with),
                Found::Picture(picture) => {
                    if let Some(video) = &mut self.video {
                        video.picture = Some(video.picture.map_or(picture, |it| it.with(picture)));
                    }
                }
            }
        }
        taken
    }

    /// Another frame begins in this packet, or with it if `clean`. Returns `true` if the packet went
    /// with the one before.
    fn cut(&mut self, now: Instant, index: u64, bytes: &[u8; PACKET], clean: bool, with: &mut Shared<'_>) -> bool {
        let needed = self.video.as_ref().and_then(|video| video.picture).is_none_or(|picture| picture.reference);
        // The packet with the end of one and the beginning of the next goes with the one that the other needs.
        let takes = self.unit.is_some() && !clean && needed;
        if takes {
            self.add(now, index, bytes);
        }
        self.close(false, with);
        if let Some(video) = &mut self.video {
            (video.picture, video.fresh) = (None, true);
        }
        takes
    }

    /// Returns `true` if the frame that grows is too large for one unit, or longer in coming than `patience`.
    fn is_long(&self, now: Instant, patience: Option<Duration>) -> bool {
        let Some(unit) = &self.unit else { return false };
        let age = now.since(unit.first_captured);
        let known = match &self.video {
            Some(Video { how: How::Scan(_), picture, .. }) => picture.is_some(),
            Some(_) => unit.len() >= AV1_HEAD * PACKET,
            // Null packets that come one by one.
            None => return self.codec == Codec::Stuffing && age >= STUFFING_WAITS,
        };
        unit.len() >= MAX_UNIT || known && patience.is_some_and(|patience| age >= patience)
    }

    /// Closes a unit that is whole, or must not grow any longer.
    fn close_if_complete(&mut self, with: &mut Shared<'_>) {
        let Some(unit) = &self.unit else { return };
        let limit = match self.codec {
            codec if codec.is_video() => usize::MAX,
            Codec::Audio => MAX_UNIT,
            _ => MAX_SMALL,
        };
        // A clock reference alone waits for no frame, and a section that stuffing follows for no other.
        let alone = match self.codec {
            Codec::Stuffing => false,
            Codec::Sections | Codec::Other | Codec::Unknown if unit.pes.is_none() => unit.ends_stuffed(),
            _ => !unit.has_payload,
        };
        if unit.is_whole() || unit.len() >= limit || alone {
            self.close(false, with);
        } else if unit.is_stuffed() && self.stuffing != Some(Stuffing::Meaningless) {
            self.stuffing = Some(Stuffing::Closed(unit.counter));
            self.close(false, with);
        }
    }

    /// Closes the growing unit, if there is one. `more`: its frame goes on.
    pub(super) fn close(&mut self, more: bool, with: &mut Shared<'_>) {
        let Some(unit) = self.unit.take() else { return };
        let small = !self.codec.is_video() && self.codec != Codec::Audio;
        let small = small && self.small.takes(unit.last_captured, unit.len());
        let (mut continues, mut reference) = (false, true);
        let kind = match (self.codec, &mut self.video) {
            (Codec::Stuffing, _) => {
                reference = false;
                Kind::Other
            }
            (Codec::Audio, _) => Kind::Audio,
            _ if !unit.has_payload => Kind::Tables,
            (_, Some(video)) => {
                let picture = video.settle(&unit, with.bytes);
                continues = !core::mem::replace(&mut video.fresh, false);
                reference = picture.reference;
                picture.kind
            }
            (Codec::Tables, _) => Kind::Tables,
            _ if small => Kind::Tables,
            (codec, _) => {
                reference = codec != Codec::Sections;
                Kind::Other
            }
        };
        let share = Share { kind, reference, continues, more };
        let unit = unit.finish(share, &mut with.gather.nulls);
        with.gather.unit(unit);
    }

    /// The PID.
    pub(super) const fn pid(&self) -> u16 {
        self.pid
    }
}
