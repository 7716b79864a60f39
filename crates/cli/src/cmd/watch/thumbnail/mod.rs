//! `--thumbnail`: what a stream shows, once a second, on the page of `--web`.
//!
//! A child decodes it: decoders are large and read what strangers made. It has no rights but to read
//! its own libraries ([`confined`]), and what it answers is bounded. It never holds up the stream.

pub(crate) mod confined;
mod jpeg;

use super::background::lock;
use crate::failure::{Failure, Outcome};
use crate::process;
use jpeg::Images;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Streams that have a image at a time: each costs a decoder.
const MOST_STREAMS: usize = 4;
/// Pieces that wait for the decoder at most; a second of a fast stream. What comes beyond is left out.
const MOST_WAITING: usize = 1024;
/// Time after which a decoder that ended is started again.
const AGAIN: Duration = Duration::from_secs(5);
/// Decoders in a row that showed nothing, after which no other is started.
const MOST_FAILURES: u32 = 5;

/// The newest image of each stream.
#[derive(Default)]
pub(crate) struct Gallery(Mutex<Hung>);

#[derive(Default)]
struct Hung {
    next: u64,
    images: BTreeMap<u64, Image>,
}

#[derive(Default)]
struct Image {
    number: u64,
    jpeg: Arc<[u8]>,
}

impl Gallery {
    /// Returns a place for the images of one more stream, if there is one.
    fn place(&self) -> Option<u64> {
        let mut hung = lock(&self.0);
        if hung.images.len() >= MOST_STREAMS {
            return None;
        }
        let place = hung.next;
        hung.next += 1;
        hung.images.insert(place, Image::default());
        Some(place)
    }

    fn show(&self, place: u64, jpeg: &[u8]) {
        if let Some(image) = lock(&self.0).images.get_mut(&place) {
            *image = Image { number: image.number + 1, jpeg: jpeg.into() };
        }
    }

    fn leave(&self, place: u64) {
        lock(&self.0).images.remove(&place);
    }

    /// Where a page finds the newest image: another address for each.
    fn address(&self, place: u64) -> Option<String> {
        let number = lock(&self.0).images.get(&place)?.number;
        (number > 0).then(|| format!("thumbnail/{place}?{number}"))
    }

    /// The image at `path`, which is what [`address`](Self::address) says before the question mark.
    pub(super) fn image(&self, path: &str) -> Option<Vec<u8>> {
        let place = path.strip_prefix("/thumbnail/")?.parse().ok()?;
        let jpeg = Arc::clone(&lock(&self.0).images.get(&place)?.jpeg);
        (!jpeg.is_empty()).then(|| jpeg.to_vec())
    }
}

/// The images of one stream, for who has its bytes.
pub(crate) struct Thumbnail {
    gallery: Arc<Gallery>,
    place: u64,
    pieces: SyncSender<Vec<u8>>,
    /// The decoder, so that one that hangs can be ended.
    child: Arc<Mutex<Option<Child>>>,
}

impl Thumbnail {
    /// Refuses where there is no decoder.
    pub(crate) fn check() -> Outcome {
        let lacks =
            || Failure::usage("--thumbnail needs ffmpeg, which is not in PATH", "install it, or leave --thumbnail out");
        confined::decoder().map(|_| ()).ok_or_else(lacks)
    }

    /// Begins to show a stream; `None` if as many are shown as there may be.
    pub(crate) fn begin(gallery: &Arc<Gallery>) -> Outcome<Option<Self>> {
        Self::check()?;
        let Some(place) = gallery.place() else { return Ok(None) };
        let (pieces, waiting) = sync_channel(MOST_WAITING);
        let child = Arc::<Mutex<Option<Child>>>::default();
        let (shown, kept) = (Arc::clone(gallery), Arc::clone(&child));
        std::thread::spawn(move || decode(&shown, place, &waiting, &kept));
        Ok(Some(Self { gallery: Arc::clone(gallery), place, pieces, child }))
    }

    /// Takes bytes of the transport stream. Those for which the decoder has no time are left out.
    pub(crate) fn see(&self, bytes: &[u8]) {
        let _behind = self.pieces.try_send(bytes.to_vec());
    }

    /// Where the page has the newest image; `None` before there is one.
    pub(crate) fn address(&self) -> Option<String> {
        self.gallery.address(self.place)
    }
}

impl Drop for Thumbnail {
    fn drop(&mut self) {
        self.gallery.leave(self.place);
        end(&self.child);
    }
}

/// Ends the decoder, if there is one.
fn end(child: &Mutex<Option<Child>>) {
    if let Some(mut child) = lock(child).take() {
        // One that has ended by itself needs no more than to be waited for.
        let _ended = child.kill();
        let _status = child.wait();
    }
}

/// The thread's work: one decoder after the other, until the stream is over.
fn decode(gallery: &Arc<Gallery>, place: u64, pieces: &Receiver<Vec<u8>>, kept: &Mutex<Option<Child>>) {
    // Capabilities belong to a thread, and this one and its children need none.
    let mut failures = if process::drop_privileges().is_ok() { 0 } else { MOST_FAILURES };
    while failures < MOST_FAILURES {
        let Ok((child, input, output)) = start() else { return };
        *lock(kept) = Some(child);
        let (shown, seen) = (Arc::clone(gallery), gallery.address(place));
        let reader = std::thread::spawn(move || read(&shown, place, output));
        let over = write(pieces, input);
        end(kept);
        // It ends with its output.
        let _panic = reader.join();
        failures = if gallery.address(place) == seen { failures + 1 } else { 0 };
        if over || !rest(pieces) {
            return;
        }
    }
}

/// A decoder with its input and output.
fn start() -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let mut command: Command = process::command(std::env::current_exe()?);
    command.arg(confined::COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes"))?;
    Ok((child, input, output))
}

/// Writes what comes until the stream is over, which returns `true`, or the decoder.
fn write(pieces: &Receiver<Vec<u8>>, mut input: ChildStdin) -> bool {
    pieces.iter().try_for_each(|piece| input.write_all(&piece)).is_ok()
}

fn read(gallery: &Gallery, place: u64, mut output: ChildStdout) {
    let (mut images, mut buf) = (Images::default(), vec![0; 64 * 1024]);
    while let Ok(len @ 1..) = output.read(&mut buf) {
        images.push(&buf[..len], |jpeg| gallery.show(place, jpeg));
    }
}

/// Lets pass what comes for a while. Returns `false` if the stream is over.
fn rest(pieces: &Receiver<Vec<u8>>) -> bool {
    #[allow(clippy::disallowed_methods, reason = "a thread of its own has a clock")]
    let end = Instant::now() + AGAIN;
    loop {
        #[allow(clippy::disallowed_methods, reason = "a thread of its own has a clock")]
        let left = end.saturating_duration_since(Instant::now());
        match pieces.recv_timeout(left) {
            Ok(_) if left.is_zero() => return true,
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gallery_has_few_places_and_an_address_for_each_image() {
        let gallery = Gallery::default();
        let places: Vec<_> = (0..MOST_STREAMS).map(|_| gallery.place().unwrap()).collect();
        assert_eq!(gallery.place(), None);
        assert_eq!((gallery.address(places[1]), gallery.image("/thumbnail/1")), (None, None));
        gallery.show(places[1], b"first");
        gallery.show(places[1], b"second");
        assert_eq!(gallery.address(places[1]).as_deref(), Some("thumbnail/1?2"));
        assert_eq!(gallery.image("/thumbnail/1").as_deref(), Some(&b"second"[..]));
        assert_eq!((gallery.image("/thumbnail/x"), gallery.image("/thumbnail/9")), (None, None));
        gallery.leave(places[1]);
        gallery.show(places[1], b"late");
        assert_eq!(gallery.image("/thumbnail/1"), None);
        assert!(gallery.place().is_some_and(|place| !places.contains(&place)), "a place that was left is taken anew");
    }

    #[test]
    fn a_stream_whose_decoder_takes_nothing_goes_on() {
        let (pieces, _waiting) = sync_channel(2);
        let thumbnail = Thumbnail { gallery: Arc::default(), place: 0, pieces, child: Arc::default() };
        (0..100).for_each(|_| thumbnail.see(&[0; 188]));
        assert_eq!(thumbnail.address(), None);
    }
}
