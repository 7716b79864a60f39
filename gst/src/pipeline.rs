//! The pipeline: input, encoder, multiplexer, stdout.

use crate::Args;
use crate::audio::{self, Audio};
use crate::input::Input;
use crate::log::Log;
use crate::needs;
use crate::parts::{self, AGAIN, Part, Parts};
use braidcast_gst::told::Told;
use braidcast_gst::x264;
use braidcast_rate::{Follower, Verdict};
use gst::prelude::*;
use gstreamer as gst;
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// GST_PARAM_MUTABLE_PLAYING (gstparamspecs.h): the property can be set while it runs.
const WHILE_PLAYING: u32 = 1 << 12;

/// How a pipeline ended.
enum End {
    /// The input is over.
    Over,
    /// What failed, if it is an input, and why.
    Failed(Option<Part>, String),
    /// An input that was gone is there again.
    Back(Part),
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
    /// When the first pipeline began to play: the times in the stream count from then on.
    played: OnceLock<Instant>,
    /// Width and height of the video.
    size: OnceLock<(i32, i32)>,
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
    let source = Audio::parse(&args.audio)?;
    let audio = audio(args, &source, &input)?;
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
        played: OnceLock::new(),
        size: OnceLock::new(),
    });
    let reader = Arc::clone(&shared);
    let quiet = args.quiet;
    std::thread::spawn(move || {
        reader.told.read(BufReader::new(std::io::stdin()));
        reader.summary(quiet);
        // Who started us is gone, or wants no more.
        std::process::exit(0);
    });
    let mut there = Parts::new(&input, &source, !audio.is_empty());
    loop {
        if there.nothing() {
            std::thread::sleep(AGAIN.into());
            if let Some(part) = there.look() {
                there.back(part, quiet);
            }
            continue;
        }
        match play(args, &input, &audio, parser, &mut there, &shared)? {
            End::Over => {
                shared.summary(quiet);
                return Ok(());
            }
            End::Back(part) => there.back(part, quiet),
            End::Failed(part, why) => {
                // What never worked will not come back.
                let worked = |part: &Part| match part {
                    Part::Video => shared.pictures.load(Relaxed) > 0,
                    Part::Audio => shared.heard.load(Relaxed) > 0,
                };
                match part.filter(|part| worked(part) && there.may_go_on_without(*part)) {
                    Some(part) => there.gone(part, &why),
                    None => return Err(format!("{why}\nhint: {}", there.hint(part))),
                }
            }
        }
    }
}

/// The words of the branch of audio; empty without any.
fn audio(args: &Args, audio: &Audio, input: &Input) -> Result<String, String> {
    let own = if *audio == Audio::Own { input.own_audio()? } else { None };
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

/// Returns the description of the pipeline, which begins at `first` bit/s; with black video of this
/// size if `black`.
fn description(args: &Args, input: &Input, audio: &str, parser: &str, first: u64, black: Option<(i32, i32)>) -> String {
    let size = match (black.or(args.size), input) {
        (Some((width, height)), _) => format!(",width={width},height={height}"),
        (None, Input::Test) => ",width=1280,height=720".into(),
        (None, _) => String::new(),
    };
    let begin = if black.is_some() { parts::BLACK.into() } else { input.description() };
    let fps = args.fps;
    let encoder = match (&*args.encoder, args.profile) {
        ("x264enc", profile) => x264::words(profile, fps, first),
        (other, _) => format!("{other} name=encoder"),
    };
    format!(
        "{begin} ! videoconvert ! videoscale ! videorate ! video/x-raw,format=I420,framerate={fps}/1{size} \
         ! queue max-size-buffers=1 max-size-bytes=0 max-size-time=0 leaky=downstream \
         ! {encoder} ! {parser} name=parser config-interval=1 ! mpegtsmux name=mux ! fdsink name=out fd=1 sync=false{audio}"
    )
}

/// Makes the pipeline of what is there and runs it to its end, or until more is there.
fn play(
    args: &Args,
    input: &Input,
    audio: &str,
    parser: &str,
    there: &mut Parts<'_>,
    shared: &Arc<Shared>,
) -> Result<End, String> {
    let rate = shared.follower.lock().unwrap_or_else(PoisonError::into_inner).rate();
    let black = if there.video { None } else { shared.size.get().copied() };
    let words = description(args, input, if there.audio { audio } else { "" }, parser, rate, black);
    let made =
        gst::parse::launch(&words).map_err(|e| format!("cannot make the pipeline: {e}\nhint: {}", input.hint()))?;
    let pipeline = made.downcast::<gst::Pipeline>().map_err(|_| "the description is not a pipeline".to_owned())?;
    let by_name = |name: &str| pipeline.by_name(name).ok_or_else(|| format!("the pipeline has no {name}"));
    if let Some((property, value)) = input.property().filter(|_| black.is_none()) {
        by_name("input")?.set_property(property, value);
    }
    let encoder = by_name("encoder")?;
    let dial = Dial::of(&encoder, &args.encoder)?;
    dial.set(rate);
    watch(&encoder, &by_name("out")?, dial, shared)?;
    if let Some(queue) = pipeline.by_name("heard") {
        listen(&queue, shared)?;
    }
    // A microphone's own clock would jump, and go with it.
    pipeline.use_clock(Some(&gst::SystemClock::obtain()));
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    let failed = |there: &Parts<'_>, message: &gst::Message| {
        let part = message.src().and_then(|from| there.part(&pipeline, from));
        End::Failed(part, in_words(message))
    };
    // Devices are opened while it pauses, which takes a while; its clock begins when it plays.
    let begins = pipeline.set_state(gst::State::Paused).and_then(|_| {
        let since = shared.played.get_or_init(Instant::now).elapsed();
        for pad in by_name("mux").iter().flat_map(|mux| mux.sink_pads()) {
            pad.set_offset(since.as_nanos() as i64);
        }
        pipeline.set_state(gst::State::Playing)
    });
    if begins.is_err() {
        let why = bus.timed_pop_filtered(gst::ClockTime::from_mseconds(200), &[gst::MessageType::Error]);
        let end = why
            .map_or_else(|| End::Failed(Some(Part::Video), "the input does not start".into()), |it| failed(there, &it));
        let _ = pipeline.set_state(gst::State::Null);
        return Ok(end);
    }
    there.remember(&pipeline);
    let patience = there.patience();
    let end = loop {
        match bus.timed_pop_filtered(patience, &[gst::MessageType::Error, gst::MessageType::Eos]) {
            Some(message) if message.type_() == gst::MessageType::Error => break failed(there, &message),
            Some(_) => break End::Over,
            None => {
                if let Some(part) = there.look() {
                    break End::Back(part);
                }
            }
        }
    };
    let _ = pipeline.set_state(gst::State::Null);
    Ok(end)
}

/// What an error says.
fn in_words(message: &gst::Message) -> String {
    let gst::MessageView::Error(error) = message.view() else { return "the pipeline failed".into() };
    let from = message.src().map_or_else(String::new, |it| format!("{}: ", it.name()));
    let details = error.debug().unwrap_or_default();
    // A line that only names a place in GStreamer's source is useless.
    let last = details.lines().last().filter(|it| !it.is_empty() && !it.contains(".c("));
    let last = last.map_or_else(String::new, |it| format!(" ({it})"));
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
    /// Returns `true` if the encoder `name` has a rate at all, before anything is made of it.
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
        let hint = "hint: `--encoder` takes one whose `bitrate` can change while it runs, for example x264enc, openh264enc, vah264enc or nvh264enc";
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

/// Has each frame asked for before it is encoded, and counted behind.
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
                // The multiplexer would have audio wait for this frame.
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
    source.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        it.on_encoded(info.buffer().map_or(0, |buffer| buffer.size() as u64));
        if it.size.get().is_none()
            && let Some(caps) = pad.current_caps()
            && let Some(Ok(size)) = caps.structure(0).map(|it| it.get("width").and_then(|w| Ok((w, it.get("height")?))))
        {
            let _ = it.size.set(size);
        }
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
    /// Returns what becomes of the next frame, and `true` if a receiver has just come.
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
            eprintln!("encoded {pictures} frames at {rate:.2} Mbit/s, left out {left_out}");
        }
    }
}
