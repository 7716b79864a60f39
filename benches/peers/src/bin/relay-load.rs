//! Many streams through a relay, each between two sockets of its own. They take turns, so many packets at a time each,
//! which go and come as those of Braidcast's ends do: in one call.
//!   relay-load braidcast|turn RELAY:PORT STREAMS MBIT_EACH AT_A_TIME SECS
//! `turn` is any TURN server without a password (RFC 8656): a channel to a peer for each stream.
//! Prints RESULT: bytes that came out, without the relay's headers, and the share of the packets that did.

use braidcast_relay::{Control, Header, Leg, OwnerSecret, Place, Registration};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Payload of a packet: seven of MPEG-TS, and what a protocol needs.
const PACKET: usize = 1360;
/// The first channel number that TURN allows.
const CHANNEL: u16 = 0x4000;
/// What a TURN server and its clients know each other's messages by.
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
/// Packets that are late are sent at once, but not more of them: the receive buffers would overflow.
const MOST_BEHIND: Duration = Duration::from_millis(5);

/// The socket that a stream goes into, what stands before its packets, and the socket where it comes out.
struct Stream {
    from: std::net::UdpSocket,
    header: Vec<u8>,
    to: std::net::UdpSocket,
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, relay, streams, mbit, burst, secs] = &args[..] else {
        return Err("usage: relay-load braidcast|turn RELAY:PORT STREAMS MBIT_EACH AT_A_TIME SECS".into());
    };
    let (relay, count): (SocketAddr, usize) = (relay.parse()?, streams.parse()?);
    let open = match kind.as_str() {
        "braidcast" => by_braidcast,
        "turn" => by_turn,
        other => return Err(format!("'{other}' is neither braidcast nor turn").into()),
    };
    let streams: Vec<Stream> = (0..count).map(|number| open(relay, number)).collect::<Result<_>>()?;
    run(streams, mbit.parse()?, burst.parse()?, Duration::from_secs_f64(secs.parse()?))
}

/// A socket for a stream. Few streams have the same address: relays for all allow each address so many.
fn socket(stream: usize) -> Result<std::net::UdpSocket> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::new(127, 1, (stream >> 12) as u8, (stream >> 4) as u8), 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    Ok(socket)
}

/// Sends `question`, and returns the answer.
fn ask(socket: &std::net::UdpSocket, question: &[u8]) -> Result<Vec<u8>> {
    socket.send(question)?;
    let mut answer = vec![0; 2048];
    let len = socket.recv(&mut answer).map_err(|error| format!("the relay does not answer: {error}"))?;
    answer.truncate(len);
    Ok(answer)
}

fn by_braidcast(relay: SocketAddr, number: usize) -> Result<Stream> {
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&(number as u64 + 1).to_be_bytes());
    secret[8..12].copy_from_slice(&std::process::id().to_be_bytes());
    let owner = Place::Owner(OwnerSecret(secret));
    let (to, _) = register(relay, owner, number)?;
    let (from, header) = register(relay, Place::Guest(owner.circuit()), number)?;
    Ok(Stream { from, header: header.bytes().to_vec(), to })
}

fn register(relay: SocketAddr, place: Place, number: usize) -> Result<(std::net::UdpSocket, Header)> {
    let (socket, nonce, leg) = (socket(number)?, number as u64, Leg(0));
    socket.connect(relay)?;
    let bytes = |message: Control| {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        bytes
    };
    let answer = Control::read(&ask(&socket, &bytes(Control::Hello { nonce }))?)?;
    let Control::Challenge { cookie, .. } = answer else { return Err(format!("no cookie: {answer:?}").into()) };
    // Hidden: nobody is introduced, so nothing but packets comes.
    let registration = Registration { place, leg, epoch: 1, member: nonce, hidden: true, proof: None };
    let answer = Control::read(&ask(&socket, &bytes(Control::Register { nonce, cookie, registration }))?)?;
    let Control::Registered { tag, .. } = answer else { return Err(format!("no place: {answer:?}").into()) };
    Ok((socket, Header { tag, leg }))
}

fn by_turn(relay: SocketAddr, number: usize) -> Result<Stream> {
    let (from, to) = (socket(number)?, socket(number)?);
    from.connect(relay)?;
    let transaction = (number as u64 + 1).to_be_bytes();
    // UDP.
    turn(&from, 0x003, &transaction, &[(0x0019, &[17, 0, 0, 0])])?;
    let SocketAddr::V4(peer) = to.local_addr()? else { return Err("a peer of IPv6".into()) };
    let mut address = vec![0, 1];
    address.extend(peer.port().to_be_bytes().iter().zip(COOKIE).map(|(byte, mask)| byte ^ mask));
    address.extend(peer.ip().octets().iter().zip(COOKIE).map(|(byte, mask)| byte ^ mask));
    let [high, low] = CHANNEL.to_be_bytes();
    turn(&from, 0x009, &transaction, &[(0x000c, &[high, low, 0, 0]), (0x0012, &address)])?;
    let [long, short] = (PACKET as u16).to_be_bytes();
    Ok(Stream { from, header: vec![high, low, long, short], to })
}

/// Asks a TURN server for `method`, whose attributes are multiples of four bytes.
fn turn(socket: &std::net::UdpSocket, method: u16, transaction: &[u8; 8], attributes: &[(u16, &[u8])]) -> Result<()> {
    let mut body = Vec::new();
    for (kind, value) in attributes {
        body.extend(kind.to_be_bytes());
        body.extend((value.len() as u16).to_be_bytes());
        body.extend(*value);
    }
    let mut question = method.to_be_bytes().to_vec();
    question.extend((body.len() as u16).to_be_bytes());
    question.extend(COOKIE);
    question.extend(method.to_be_bytes().iter().chain(&[0, 0]).chain(transaction));
    question.extend(body);
    let answer = ask(socket, &question)?;
    let success = (method | 0x100).to_be_bytes();
    if answer.get(..2) == Some(&success[..]) { Ok(()) } else { Err(format!("TURN refused: {answer:02x?}").into()) }
}

fn run(streams: Vec<Stream>, mbit: f64, burst: u32, duration: Duration) -> Result<()> {
    let (over, packets, bytes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (ins, outs): (Vec<_>, Vec<_>) = streams.into_iter().map(|it| ((it.from, it.header), it.to)).unzip();
    let sent = thread::scope(|scope| -> Result<u64> {
        let sink = scope.spawn(|| receive(outs, &over, &packets, &bytes).map_err(|error| error.to_string()));
        let sent = send(&ins, mbit, burst, duration)?;
        thread::sleep(Duration::from_millis(300));
        over.store(true, Ordering::Relaxed);
        sink.join().map_err(|_| "the sink panicked")??;
        Ok(sent)
    })?;
    let (packets, bytes) = (packets.into_inner(), bytes.into_inner());
    let secs = duration.as_secs_f64();
    println!("RESULT bytes={bytes} share={:.6} sent={sent} secs={secs}", packets as f64 / sent as f64);
    Ok(())
}

/// Burst by burst, stream by stream, each when it is due.
fn send(ins: &[(std::net::UdpSocket, Vec<u8>)], mbit: f64, burst: u32, duration: Duration) -> Result<u64> {
    let packet = |header: &[u8]| [header, &[0x47; PACKET]].concat();
    let bursts: Vec<Vec<u8>> = ins.iter().map(|(_, header)| packet(header).repeat(burst as usize)).collect();
    let state = UdpSocketState::new(UdpSockRef::from(&ins[0].0))?;
    let gap = Duration::from_secs_f64(f64::from(burst) * PACKET as f64 * 8.0 / (mbit * 1e6 * ins.len() as f64));
    let (begin, mut due, mut stream, mut sent) = (Instant::now(), Instant::now(), 0, 0);
    while begin.elapsed() < duration {
        let now = Instant::now();
        if due > now {
            thread::sleep(due - now);
        }
        due = due.max(now.checked_sub(MOST_BEHIND).unwrap_or(now)) + gap;
        let (socket, contents) = (&ins[stream].0, &bursts[stream]);
        let segment_size = (burst > 1).then(|| contents.len() / burst as usize);
        let destination = socket.peer_addr()?;
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        state.send(UdpSockRef::from(socket), &transmit)?;
        sent += u64::from(burst);
        stream = (stream + 1) % ins.len();
    }
    Ok(sent)
}

fn receive(outs: Vec<std::net::UdpSocket>, over: &AtomicBool, packets: &AtomicU64, bytes: &AtomicU64) -> Result<()> {
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(256));
    let (mut sockets, mut states) = (Vec::new(), Vec::new());
    for (number, socket) in outs.into_iter().enumerate() {
        // It switches on joined receiving.
        states.push(UdpSocketState::new(UdpSockRef::from(&socket))?);
        let mut socket = UdpSocket::from_std(socket);
        poll.registry().register(&mut socket, Token(number), Interest::READABLE)?;
        sockets.push(socket);
    }
    let mut buf = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        // A packet each: what has come meanwhile is read at once, as a machine with this many streams would.
        thread::sleep(Duration::from_millis(2));
        poll.poll(&mut events, Some(Duration::from_millis(50)))?;
        for event in &events {
            while let Ok(len) = sockets[event.token().0].recv(&mut buf) {
                // Braidcast's header comes out, TURN's does not.
                let count = (len / PACKET) as u64;
                packets.fetch_add(count, Ordering::Relaxed);
                bytes.fetch_add(count * PACKET as u64, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}
