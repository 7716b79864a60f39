//! Xstream (THESIS §9.1): a clip over DCCP's CCID 3 and a link whose rate falls, encoded at a fixed
//! rate, at the rate that DCCP allows, and at the rate that the link has, which only foresight
//! knows.
//!
//! As in the thesis: 42 s; 1 Mbit/s, from 15 s on 700 kbit/s, from 30 s on 400 kbit/s; 10 ms round
//! trip; packets of 1400 bytes, several for a longer frame; a frame is lost if one of its packets
//! is; a white frame replaces it in PSNR. What the thesis leaves open: the router's queue (50
//! packets), the sender's (64 messages, our default; with Linux's five no I frame fits), I frames
//! each 250 frames and at most three B frames in a row (x264's defaults), luma only.

use crate::clip::Clip;
use crate::coder::X264;
use crate::shown::{self, Kind};
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_dccp::{Ccid, Connection, Endpoint, Event, Limits, Options, SendOptions, ServiceCode};
use braidcast_gst::x264;
use braidcast_sim::link::{Rate, parse};
use braidcast_sim::{Duplex, LinkModel, Network, TapAction};
use clap::Args;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

const FPS: i32 = 24;
const SECONDS: usize = 42;
/// Times at which the link's rate falls, s, and what it carries from there on, kbit/s.
const RATES: [(usize, u64); 3] = [(0, 1000), (15, 700), (30, 400)];
const DELAY: Duration = Duration::from_millis(5);
/// The handshake is done by then.
const START: Duration = Duration::from_millis(500);
/// Of each packet: number of the frame, of the part, of parts.
const HEAD: usize = 8;
/// Of 1400 bytes, what DCCP (12 + Ack Vector and options) and HEAD leave.
const PART: usize = 1300;
const LEAST: f64 = 100_000.0;
const MOST: f64 = 1_000_000.0;
/// IP, UDP and DCCP take this share of the link.
const PAYLOAD: f64 = 0.93;
const PORT: u16 = 5001;
const SERVICE: ServiceCode = ServiceCode(0x5853_5452);

/// The tables of THESIS §9.1 for one clip
#[derive(Args, Debug)]
pub(crate) struct Xstream {
    /// The clip, YUV4MPEG2
    #[arg(long)]
    clip: PathBuf,
    /// standard, cross-layer, or ideal
    #[arg(long, default_value = "cross-layer")]
    how: How,
    /// Rate to begin with, kbit/s
    #[arg(long, default_value_t = 1000)]
    first: u64,
    /// Packets that the router holds
    #[arg(long, default_value_t = 50)]
    queue: usize,
    /// Messages that wait at the sender at most
    #[arg(long, default_value_t = 64)]
    send_queue: usize,
    /// B frames in a row at most; each lets a frame leave one later
    #[arg(long, default_value_t = 3)]
    b_frames: u32,
    /// Longest interval of key frames, seconds; without it 250 frames, x264's default
    #[arg(long, value_parser = seconds)]
    key_every: Option<f64>,
    /// x264's rate-control buffer, ms
    #[arg(long, default_value_t = 1000)]
    buffer: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for what came
    #[arg(long)]
    out: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum How {
    Standard,
    CrossLayer,
    Ideal,
}

fn seconds(text: &str) -> Result<f64, String> {
    let length = text.parse().ok().filter(|it| (0.04..=60.0).contains(it));
    length.ok_or("write a number of seconds from 0.04 to 60, for example 2".into())
}

/// A frame: its number, its kind, the parts of it that came, and the state when it was sent.
struct Sent {
    number: usize,
    kind: Kind,
    coded: Vec<u8>,
    /// After the film began, s.
    at: f64,
    came: usize,
    parts: usize,
    /// Parts that found no room in the send queue.
    refused: usize,
    /// Messages that waited in the send queue before it.
    waiting: usize,
    /// Packets in the router's queue.
    router: usize,
    /// What x264 was set to, what CCID 3 allowed, and what the link carried, kbit/s.
    rates: [f64; 3],
}

/// Parts of each frame that the router dropped.
type Dropped = Rc<RefCell<BTreeMap<usize, usize>>>;

pub(crate) fn run(args: &Xstream) -> Result<Value, String> {
    let clip = Clip::read(&args.clip)?;
    std::fs::create_dir_all(&args.out).map_err(|e| format!("cannot make {}: {e}", args.out.display()))?;
    let dropped = Dropped::default();
    let sent = stream(args, &clip, &dropped)?;
    tables(&sent, &dropped.borrow(), &clip, &args.out)
}

fn stream(args: &Xstream, clip: &Clip, dropped: &Dropped) -> Result<Vec<Sent>, String> {
    let fail = |e: &dyn std::fmt::Debug| format!("{e:?}");
    let send_queue = Limits::messages(args.send_queue);
    let options = Options { ccids: vec![Ccid::Three], ecn: false, send_queue, ..Options::default() };
    let (mut net, rng) = (Network::new(args.seed), Rng::from_seed(args.seed));
    let address = |n: u8| SocketAddr::from(([10, 0, 0, n], 6511));
    let endpoint = |name: &str| Endpoint::new(options.clone(), rng.stream(name)).map_err(|e| fail(&e));
    let (source, sink) =
        (net.add(endpoint("source")?, ["10.0.0.1:6511"]), net.add(endpoint("sink")?, ["10.0.0.2:6511"]));
    let schedule = parse::rate_schedule(&link_rates()).map_err(|e| e.to_string())?;
    let queue = format!("{}p", args.queue).parse().map_err(|e| fail(&e))?;
    let there = LinkModel { rate: Rate::Schedule(schedule), queue, delay: DELAY, ..LinkModel::default() };
    let back = LinkModel { delay: DELAY, ..LinkModel::default() };
    let (link, _) = net.connect((source, 0), (sink, 0), Duplex::new(there, back));
    let dropped = dropped.clone();
    net.set_tap(move |it| {
        if let (TapAction::Dropped(..), Some(n)) = (it.action, picture_of(it.payload)) {
            *dropped.borrow_mut().entry(n).or_default() += 1;
        }
    });
    net.with(sink, |it, _| {
        it.set_local_address(SocketId(0), address(2).ip());
        it.listen(PORT, SERVICE)
    })
    .map_err(|e| fail(&e))?;
    let route = Route::new(SocketId(0), address(2));
    let id = net
        .with(source, |it, now| {
            it.set_local_address(SocketId(0), address(1).ip());
            it.connect(now, route, 4001, PORT, SERVICE)
        })
        .map_err(|e| fail(&e))?;
    let mut rate = args.first as f64 * 1000.0;
    let key_every = args.key_every.map_or(250, |it| (it * f64::from(FPS)).round() as u32);
    let words = x264::thesis_words(args.b_frames, key_every, args.buffer, rate as u64);
    let mut coder = X264::new(clip, &words, FPS)?;
    let mut sent: Vec<Sent> = Vec::new();
    let mut buffer = Vec::new();
    let (count, late) = (SECONDS * FPS as usize, args.b_frames as usize);
    for n in 0..count + late {
        net.run_until(Instant::ZERO + START + Duration::from_secs(1) * n as u32 / FPS as u32);
        let allowed = net.node(source).connection(id).and_then(|it| it.report(net.now()).ccid.allowed_rate);
        let kbit = RATES.iter().rev().find(|(at, _)| n >= at * FPS as usize).map_or(0, |(_, kbit)| *kbit);
        rate = match args.how {
            How::Standard => rate,
            How::Ideal => kbit as f64 * 1000.0 * PAYLOAD,
            // The first second goes at the rate to begin with: nothing is known before data has flowed.
            How::CrossLayer if n < FPS as usize => rate,
            How::CrossLayer => allowed.map_or(rate, |bytes| (bytes * 8.0 * PAYLOAD).clamp(LEAST, MOST)),
        };
        if n < count {
            coder.give(n, Some(rate as u64))?;
        } else if n == count {
            coder.end();
        }
        if n < late {
            continue;
        }
        let (number, coded) = coder.take()?;
        let parts = coded.len().div_ceil(PART);
        let router = net.link(link).backlog().0;
        let (waiting, refused) = net.with(source, |it, now| {
            let Some(connection) = it.connection_mut(id) else { return (0, parts) };
            let waiting = connection.report(now).queued_messages;
            let each = coded.chunks(PART).enumerate();
            (waiting, each.filter(|(part, bytes)| !send(connection, now, sent.len(), *part, bytes)).count())
        });
        let kind = shown::kind(&coded).ok_or_else(|| format!("frame {number} has no slice"))?;
        let rates = [rate / 1000.0, allowed.unwrap_or(0.0) * 8.0 / 1000.0, kbit as f64];
        let at = n as f64 / f64::from(FPS);
        sent.push(Sent { number, kind, coded, at, came: 0, parts, refused, waiting, router, rates });
        receive(&mut net, sink, &mut buffer, &mut sent);
    }
    net.run_for(Duration::from_secs(5));
    receive(&mut net, sink, &mut buffer, &mut sent);
    Ok(sent)
}

/// What the link carries, by the simulator's clock: the film begins at START.
fn link_rates() -> String {
    let from = |at: usize| if at == 0 { 0 } else { START.as_millis() as usize + 1000 * at };
    let words: Vec<String> = RATES.iter().map(|(at, kbit)| format!("{}ms:{kbit}kbit", from(*at))).collect();
    words.join(",")
}

/// Returns whether it found room in the queue; if not, it is lost.
fn send(connection: &mut Connection, now: Instant, n: usize, part: usize, bytes: &[u8]) -> bool {
    let mut packet = Vec::with_capacity(HEAD + bytes.len());
    packet.extend((n as u32).to_be_bytes());
    packet.extend((part as u32).to_be_bytes());
    packet.extend(bytes);
    connection.send(now, &packet, SendOptions::default()).is_ok()
}

/// Returns the frame that a DCCP packet has a part of. Byte 4 of its header is the length in words
/// (RFC 4340 §5.1).
fn picture_of(packet: &[u8]) -> Option<usize> {
    let data = packet.get(usize::from(*packet.get(4)?) * 4..)?;
    Some(u32::from_be_bytes(data.get(..HEAD)?[..4].try_into().ok()?) as usize)
}

fn receive(net: &mut Network<Endpoint>, sink: braidcast_sim::NodeId, buffer: &mut Vec<u8>, sent: &mut [Sent]) {
    while let Some((_, _event)) = net.poll_event(sink) as Option<(_, Event)> {}
    net.with(sink, |it, _| {
        let ids: Vec<_> = it.connections().collect();
        for id in ids {
            let Some(connection) = it.connection_mut(id) else { continue };
            while connection.recv(buffer) {
                let number = buffer.get(..4).and_then(|it| it.try_into().ok()).map(u32::from_be_bytes);
                if let Some(picture) = number.and_then(|n| sent.get_mut(n as usize)) {
                    picture.came += 1;
                }
            }
        }
    });
}

fn whole(it: &Sent) -> bool {
    it.came == it.parts
}

fn tables(sent: &[Sent], dropped: &BTreeMap<usize, usize>, clip: &Clip, folder: &Path) -> Result<Value, String> {
    let of = |which: &dyn Fn(&Sent) -> bool| -> Vec<(usize, Vec<u8>)> {
        sent.iter().filter(|it| which(it)).map(|it| (it.number, it.coded.clone())).collect()
    };
    // They were sent as they are decoded, and are looked at as they are shown.
    let mut is_there = vec![false; sent.len()];
    for it in sent {
        *is_there.get_mut(it.number).ok_or("x264enc returns more frames than it took")? = whole(it);
    }
    let psnr = |each: Vec<[f64; 2]>| -> Vec<f64> { each.iter().map(|it| it[1]).collect() };
    let encoded = psnr(shown::compare(clip, &of(&|_| true), sent.len(), &vec![true; sent.len()], folder)?.1);
    let white = psnr(shown::compare(clip, &of(&whole), sent.len(), &is_there, folder)?.1);
    pictures(sent, dropped, [&encoded, &white], folder)?;
    let percent =
        |which: &dyn Fn(&Sent) -> bool| 100.0 * sent.iter().filter(|it| which(it)).count() as f64 / sent.len() as f64;
    let lost = |kind: Kind| percent(&|it| it.kind == kind && !whole(it));
    let (mean, cv) = spread(&white);
    let region = |n: usize| {
        let until = RATES.get(n + 1).map_or(SECONDS, |(at, _)| *at);
        let pictures = RATES[n].0 * FPS as usize..until * FPS as usize;
        let (psnr, cv) = spread(&white[pictures.clone()]);
        let bits: usize = sent.iter().filter(|it| pictures.contains(&it.number)).map(|it| it.coded.len() * 8).sum();
        let seconds = pictures.len() as f64 / f64::from(FPS);
        // What is missing of the PSNR that x264 made: by white frames, and by frames that came but
        // reference what did not.
        let share = |sum: f64| sum / pictures.len() as f64;
        let less = |came: bool| {
            let those = pictures.clone().filter(|n| is_there[*n] == came);
            share(those.map(|n| encoded[n] - white[n]).sum())
        };
        json!({
            "kbit": RATES[n].1,
            "psnr": psnr,
            "cv": cv,
            "lost_pct": 100.0 * share(pictures.clone().filter(|n| !is_there[*n]).count() as f64),
            "encoded_psnr": spread(&encoded[pictures.clone()]).0,
            "less_by_white": less(false),
            "less_by_leaning": less(true),
            "encoded_mbit": bits as f64 / seconds / 1e6,
        })
    };
    Ok(json!({
        "psnr": mean,
        "cv": cv,
        "regions": [region(0), region(1), region(2)],
        "lost_pct": percent(&|it| !whole(it)),
        "lost_i_pct": lost(Kind::I),
        "lost_p_pct": lost(Kind::P),
        "lost_b_pct": lost(Kind::B),
        "i_pct": percent(&|it| it.kind == Kind::I),
        "b_pct": percent(&|it| it.kind == Kind::B),
        "encoded_mbit": sent.iter().map(|it| it.coded.len()).sum::<usize>() as f64 * 8.0 / SECONDS as f64 / 1e6,
    }))
}

/// Writes each frame, in the order in which they were sent.
fn pictures(sent: &[Sent], dropped: &BTreeMap<usize, usize>, psnr: [&[f64]; 2], folder: &Path) -> Result<(), String> {
    let mut table = String::from(
        "sent_s,shown,kind,bytes,parts,refused,dropped,came,waiting,router,set_kbit,allowed_kbit,link_kbit,psnr_encoded,psnr_white\n",
    );
    for (n, it) in sent.iter().enumerate() {
        let Sent { number, kind, at, parts, refused, came, waiting, router, rates: [set, allowed, link], .. } = it;
        let (bytes, dropped) = (it.coded.len(), dropped.get(&n).unwrap_or(&0));
        let _ = writeln!(
            table,
            "{at:.3},{number},{kind:?},{bytes},{parts},{refused},{dropped},{came},{waiting},{router},{set:.0},{allowed:.0},{link:.0},\
             {:.2},{:.2}",
            psnr[0][*number], psnr[1][*number]
        );
    }
    let path = folder.join("pictures.csv");
    std::fs::write(&path, table).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// The mean, and the standard deviation as a share of it.
fn spread(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / values.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_falls_when_the_film_is_15_and_30_seconds_old() {
        assert_eq!(link_rates(), "0ms:1000kbit,15500ms:700kbit,30500ms:400kbit");
    }

    #[test]
    fn a_part_tells_its_picture_behind_a_header_of_any_length() {
        let mut packet = vec![0; 16];
        packet[4] = 4;
        assert_eq!(picture_of(&packet), None, "no data");
        packet.extend([0, 0, 1, 2, 0, 0, 0, 0, 9]);
        assert_eq!(picture_of(&packet), Some(258));
        assert_eq!(picture_of(&[0; 3]), None);
    }

    #[test]
    fn how_often_a_key_frame_comes_has_limits() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for text in ["0", "61", "-1", "often", "NaN"] {
            assert!(seconds(text).unwrap_err().contains("for example 2"), "{text}");
        }
    }
}
