//! The pipeline: input, encoder, multiplexer, stdout.

use crate::Args;
use crate::audio::{self, Audio};
use crate::input::Input;
use crate::log::Log;
use crate::needs;
use braidcast_gst::follow::{Follower, Verdict};
use braidcast_gst::told::Told;
use braidcast_gst::x264;
use gst::prelude::*;
use gstreamer as gst;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A camera that is gone is looked for so often.
const AGAIN: Duration = Duration::from_secs(1);
/// GST_PARAM_MUTABLE_PLAYING (gstparamspecs.h): the property can be set while it runs.
const WHILE_PLAYING: u32 = 1 << 12;

/// How a pipeline ended.
enum End {
    /// The input is over.
    Over,
    /// Why it failed, and whether pictures had come.
    Failed(String, bool),
}

/// What the probes share.
struct Shared {
    begun: Instant,
    told: Told,
    follower: Mutex<Follower>,
    log: Mutex<Log>,
    /// Bytes out of the encoder and of the multiplexer.
    encoded: AtomicU64,
    /// What audio has of the latter, as far as that can be reckoned.
    heard: AtomicU64,
    multiplexed: AtomicU64,
    pictures: AtomicU64,
    left_out: AtomicU64,
    allowed: AtomicU64,
    connected: AtomicBool,
}

/// Runs until the input is over or stdin ends.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    gst::init().map_err(|e| format!("GStreamer does not start: {e}\nhint: `gst-inspect-1.0` says more"))?;
    let input = Input::parse(&args.input);
    if let Input::File(path) = &input {
        std::fs::File::open(path).map_err(|e| {
            format!(
                "cannot open {path}: {e}\nhint: INPUT is test, camera, /dev/videoN, screen, a file, or gst:PIPELINE"
            )
        })?;
    }
    let parser = if args.encoder.contains("265") || args.encoder.contains("hevc") { "h265parse" } else { "h264parse" };
    let common = ["videoconvert", "videoscale", "videorate", parser, "mpegtsmux"];
    for element in input.needs().iter().copied().chain(common).chain([&*args.encoder]) {
        if gst::ElementFactory::find(element).is_none() {
            return Err(needs::missing(element));
        }
    }
    Dial::check(&args.encoder)?;
    let audio = audio(args, &input)?;
    let mut follower = Follower::new(args.profile, args.fps, args.rate_range);
    let first = follower.first();
    let shared = Arc::new(Shared {
        begun: Instant::now(),
        told: Told::default(),
        follower: Mutex::new(follower),
        log: Mutex::new(Log::open(args.log.as_deref())?),
        encoded: AtomicU64::new(0),
        heard: AtomicU64::new(0),
        multiplexed: AtomicU64::new(0),
        pictures: AtomicU64::new(0),
        left_out: AtomicU64::new(0),
        allowed: AtomicU64::new(first),
        connected: AtomicBool::new(false),
    });
    let reader = Arc::clone(&shared);
    let quiet = args.quiet;
    std::thread::spawn(move || {
        reader.told.read(BufReader::new(std::io::stdin()));
        reader.summary(quiet);
        // Who started us is gone, or wants no more.
        std::process::exit(0);
    });
    loop {
        match play(args, &input, &audio, parser, first, &shared)? {
            End::Over => {
                shared.summary(quiet);
                return Ok(());
            }
            End::Failed(why, true) if input.may_come_back() => {
                eprintln!("warning: {why}; looking for the camera again");
                std::thread::sleep(AGAIN);
            }
            // It was there once.
            End::Failed(_, false) if input.may_come_back() && shared.pictures.load(Relaxed) > 0 => {
                std::thread::sleep(AGAIN)
            }
            End::Failed(why, _) => return Err(format!("{why}\nhint: {}", input.hint())),
        }
    }
}

/// The words of the branch of audio; empty without any.
fn audio(args: &Args, input: &Input) -> Result<String, String> {
    let audio = Audio::parse(&args.audio)?;
    let own = if audio == Audio::Own { input.own_audio()? } else { None };
    let Some(beginning) = audio.description(own) else { return Ok(String::new()) };
    let parser = audio::parser(&args.audio_encoder);
    let common = ["audioconvert", "audioresample", &*args.audio_encoder];
    for element in audio.needs().iter().copied().chain(common).chain(parser) {
        if gst::ElementFactory::find(element).is_none() {
            return Err(needs::missing(element));
        }
    }
    let encoder = gst::ElementFactory::make(&args.audio_encoder).build();
    if encoder.is_ok_and(|encoder| encoder.find_property("bitrate").is_none()) {
        let hint = "hint: `--audio-encoder` takes one with such a property, as opusenc, avenc_aac or voaacenc";
        return Err(format!("{} has no property bitrate\n{hint}", args.audio_encoder));
    }
    Ok(audio::branch(&beginning, &args.audio_encoder, args.audio_rate))
}

/// The words of the pipeline.
fn description(args: &Args, input: &Input, audio: &str, parser: &str, first: u64) -> String {
    let size = match (args.size, input) {
        (Some((width, height)), _) => format!(",width={width},height={height}"),
        (None, Input::Test) => ",width=1280,height=720".into(),
        (None, _) => String::new(),
    };
    let fps = args.fps;
    let encoder = match (&*args.encoder, args.profile) {
        ("x264enc", profile) => x264::words(profile, fps, first),
        (other, _) => format!("{other} name=encoder"),
    };
    format!(
        "{} ! videoconvert ! videoscale ! videorate ! video/x-raw,format=I420,framerate={fps}/1{size} \
         ! queue max-size-buffers=1 max-size-bytes=0 max-size-time=0 leaky=downstream \
         ! {encoder} ! {parser} config-interval=1 ! mpegtsmux name=mux ! fdsink name=out fd=1 sync=false{audio}",
        input.description()
    )
}

/// Makes the pipeline and runs it to its end.
fn play(
    args: &Args,
    input: &Input,
    audio: &str,
    parser: &str,
    first: u64,
    shared: &Arc<Shared>,
) -> Result<End, String> {
    let before = shared.pictures.load(Relaxed);
    let words = description(args, input, audio, parser, first);
    let made =
        gst::parse::launch(&words).map_err(|e| format!("cannot make the pipeline: {e}\nhint: {}", input.hint()))?;
    let pipeline = made.downcast::<gst::Pipeline>().map_err(|_| "the description is no pipeline".to_owned())?;
    let by_name = |name: &str| pipeline.by_name(name).ok_or_else(|| format!("the pipeline has no {name}"));
    if let Some((property, value)) = input.property() {
        by_name("input")?.set_property(property, value);
    }
    let encoder = by_name("encoder")?;
    let dial = Dial::of(&encoder, &args.encoder)?;
    dial.set(first);
    watch(&encoder, &by_name("out")?, dial, shared)?;
    if let Some(queue) = pipeline.by_name("heard") {
        listen(&queue, shared)?;
    }
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    let failed = |why: String| Ok(End::Failed(why, shared.pictures.load(Relaxed) > before));
    if pipeline.set_state(gst::State::Playing).is_err() {
        let why = bus.timed_pop_filtered(gst::ClockTime::from_mseconds(200), &[gst::MessageType::Error]);
        let _ = pipeline.set_state(gst::State::Null);
        return failed(why.map_or_else(|| "the input does not start".into(), |message| in_words(&message)));
    }
    let end = bus.timed_pop_filtered(None, &[gst::MessageType::Error, gst::MessageType::Eos]);
    let _ = pipeline.set_state(gst::State::Null);
    match end {
        Some(message) if message.type_() == gst::MessageType::Error => failed(in_words(&message)),
        _ => Ok(End::Over),
    }
}

/// What an error says.
fn in_words(message: &gst::Message) -> String {
    let gst::MessageView::Error(error) = message.view() else { return "the pipeline failed".into() };
    let from = message.src().map_or_else(String::new, |it| format!("{}: ", it.name()));
    let details = error.debug().unwrap_or_default();
    let last = details.lines().last().filter(|it| !it.is_empty()).map_or_else(String::new, |it| format!(" ({it})"));
    format!("{from}{}{last}", error.error())
}

/// The property of an encoder that sets its rate.
struct Dial {
    encoder: gst::Element,
    /// Bit/s of one.
    unit: u64,
    greatest: u64,
    type_: gst::glib::Type,
}

impl Dial {
    /// Whether the encoder `name` has a rate at all, before anything is made of it.
    fn check(name: &str) -> Result<(), String> {
        let element =
            gst::ElementFactory::make(name).build().map_err(|e| format!("cannot make the element {name}: {e}"))?;
        Self::of(&element, name)?;
        let follows = element.find_property("bitrate").is_some_and(|spec| spec.flags().bits() & WHILE_PLAYING != 0);
        if !follows {
            eprintln!("warning: {name} does not say that its bitrate can change while it runs; it may not follow");
        }
        Ok(())
    }

    fn of(encoder: &gst::Element, name: &str) -> Result<Self, String> {
        let hint = "hint: `--encoder` takes one whose `bitrate` can change while it runs, such as x264enc, openh264enc, vah264enc or nvh264enc";
        let spec = encoder.find_property("bitrate").ok_or_else(|| format!("{name} has no property bitrate\n{hint}"))?;
        let in_bits = name == "openh264enc" || name.starts_with("avenc_") || name.starts_with("omx");
        let greatest =
            match (spec.downcast_ref::<gst::glib::ParamSpecUInt>(), spec.downcast_ref::<gst::glib::ParamSpecInt>()) {
                (Some(it), _) => u64::from(it.maximum()),
                (_, Some(it)) => it.maximum().unsigned_abs().into(),
                _ => i32::MAX as u64,
            };
        Ok(Self { encoder: encoder.clone(), unit: if in_bits { 1 } else { 1000 }, greatest, type_: spec.value_type() })
    }

    fn set(&self, rate: u64) {
        let value = (rate / self.unit).clamp(1, self.greatest);
        if self.type_ == u32::static_type() {
            self.encoder.set_property("bitrate", value as u32);
        } else if self.type_ == i32::static_type() {
            self.encoder.set_property("bitrate", value as i32);
        } else {
            self.encoder.set_property("bitrate", value);
        }
    }
}

/// Has each picture asked for before it is encoded, and counted behind.
fn watch(encoder: &gst::Element, out: &gst::Element, dial: Dial, shared: &Arc<Shared>) -> Result<(), String> {
    let pad = |element: &gst::Element, name: &str| {
        element.static_pad(name).ok_or_else(|| format!("{} has no pad {name}", element.name()))
    };
    let (sink, source) = (pad(encoder, "sink")?, pad(encoder, "src")?);
    let (it, refresh) = (Arc::clone(shared), source.clone());
    sink.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let (verdict, begins) = it.judge();
        let pts = info.buffer().and_then(|buffer| Some((buffer.pts()?, buffer.duration())));
        if begins {
            // Whoever receives now has seen nothing before.
            let fields = gst::Structure::builder("GstForceKeyUnit").field("all-headers", true).field("count", 0u32);
            refresh.send_event(gst::event::CustomUpstream::new(fields.build()));
        }
        match verdict {
            Verdict::LeaveOut => {
                // The multiplexer would have audio wait for this picture.
                if let Some((pts, duration)) = pts.filter(|_| it.pictures.load(Relaxed) > 0) {
                    refresh.push_event(gst::event::Gap::builder(pts).duration(duration).build());
                }
                drop(info.data.take());
                return gst::PadProbeReturn::Handled;
            }
            Verdict::Encode(Some(rate)) => dial.set(rate),
            Verdict::Encode(None) => {}
        }
        gst::PadProbeReturn::Ok
    });
    let it = Arc::clone(shared);
    source.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        it.on_encoded(info.buffer().map_or(0, |buffer| buffer.size() as u64));
        gst::PadProbeReturn::Ok
    });
    let it = Arc::clone(shared);
    pad(out, "sink")?.add_probe(gst::PadProbeType::BUFFER | gst::PadProbeType::BUFFER_LIST, move |_, info| {
        let list = info.buffer_list().map_or(0, |list| list.calculate_size());
        it.multiplexed.fetch_add((info.buffer().map_or(0, |buffer| buffer.size()) + list) as u64, Relaxed);
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

/// Has audio counted.
fn listen(queue: &gst::Element, shared: &Arc<Shared>) -> Result<(), String> {
    let it = Arc::clone(shared);
    let pad = queue.static_pad("sink").ok_or("the queue of audio has no pad")?;
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        it.heard.fetch_add(info.buffer().map_or(0, |buffer| audio::multiplexed(buffer.size())), Relaxed);
        gst::PadProbeReturn::Ok
    });
    Ok(())
}

impl Shared {
    /// What becomes of the next picture, and whether a receiver has just come.
    fn judge(&self) -> (Verdict, bool) {
        let now = self.begun.elapsed();
        let said = self.told.latest().map(|(it, at)| (it, at.saturating_duration_since(self.begun)));
        let connected = said.is_some_and(|(it, _)| it.connected);
        let begins = connected && !self.connected.swap(connected, Relaxed);
        self.connected.store(connected, Relaxed);
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        let pictures = self.multiplexed.load(Relaxed).saturating_sub(self.heard.load(Relaxed));
        follower.measure(self.encoded.load(Relaxed), pictures);
        let verdict = follower.next(now, said);
        if verdict == Verdict::LeaveOut {
            self.left_out.fetch_add(1, Relaxed);
            self.log.lock().unwrap_or_else(PoisonError::into_inner).left_out(now);
        }
        self.allowed.store(said.map_or(0, |(it, _)| it.next_frame_bits), Relaxed);
        (verdict, begins)
    }

    fn on_encoded(&self, bytes: u64) {
        self.encoded.fetch_add(bytes, Relaxed);
        self.pictures.fetch_add(1, Relaxed);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.encoded(self.begun.elapsed(), self.allowed.load(Relaxed), bytes * 8);
    }

    fn summary(&self, quiet: bool) {
        let (pictures, left_out) = (self.pictures.load(Relaxed), self.left_out.load(Relaxed));
        if !quiet {
            let rate = self.encoded.load(Relaxed) as f64 * 8.0 / self.begun.elapsed().as_secs_f64().max(1e-3) / 1e6;
            eprintln!("encoded {pictures} pictures at {rate:.2} Mbit/s, left out {left_out}");
        }
    }
}
