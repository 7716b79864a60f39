//! A phone that bonds, for measurements: it sends by SRTLA to `braidcast receive srtla://:PORT`, over a socket of its
//! own for each address.
//!
//!   phone PORT LATENCY_MS TO [TO …]              what comes to 127.0.0.1:PORT by UDP, until it is interrupted
//!   phone many COUNT MBIT SECONDS TO [TO …]      as many phones, each with null packets at this rate

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

#[path = "../tests/it/common/phone.rs"]
mod phone;

use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Bind, DatagramReader, Direction, Driver, Wake};
use braidcast_gateway::srt::{Event, Options};
use core::time::Duration;
use phone::Phone;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

/// Seven packets of MPEG-TS, as everyone sends them.
const PAYLOAD: usize = 7 * 188;
/// Time between batches of one of many phones: as often as 60 frames a second come.
const EACH: Duration = Duration::from_micros(16_667);
/// How long it is tried to reach the receiver.
const PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["many", count, mbit, seconds, ref to @ ..] if !to.is_empty() => {
            many(count.parse()?, mbit.parse()?, Duration::from_secs_f64(seconds.parse()?), &addresses(to)?)
        }
        [port, latency, ref to @ ..] if !to.is_empty() => {
            relay(port.parse()?, Duration::from_millis(latency.parse()?), &addresses(to)?)
        }
        _ => Err("usage: phone PORT LATENCY_MS TO … | phone many COUNT MBIT SECONDS TO …".into()),
    }
}

fn addresses(to: &[&str]) -> Outcome<Vec<SocketAddr>> {
    Ok(to.iter().map(|to| to.parse()).collect::<Result<_, _>>()?)
}

/// A phone with its sockets.
fn start(options: Options, to: &[SocketAddr], mark: u8) -> Outcome<(Driver, Phone)> {
    let mut driver = Driver::new()?;
    for _ in to {
        driver.bind(&Bind::to_addr((Ipv4Addr::UNSPECIFIED, 0).into()))?;
    }
    let rng = Rng::from_seed(u64::from(mark) << 32 | u64::from(std::process::id()));
    let phone = Phone::new(driver.now(), options, to.to_vec(), mark, rng).by_windows();
    Ok((driver, phone))
}

/// Sends what comes to `port`.
fn relay(port: u16, latency: Duration, to: &[SocketAddr]) -> Outcome {
    let (mut driver, mut phone) = start(Options { latency, peer_latency: latency, ..Options::default() }, to, 1)?;
    driver.catch_interrupts()?;
    let mut input = DatagramReader::new(OwnedFd::from(UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?))?;
    let id = driver.register(input.as_raw_fd(), Direction::Read)?;
    loop {
        let wake = driver.drive(&mut phone, None)?;
        while let Some(event) = phone.poll_event() {
            println!("{event:?}");
        }
        match wake {
            Wake::Input(_) => {
                let now = driver.now();
                if !input.receive(|bytes, _| phone.inside.push(now, bytes))?.more {
                    driver.drained(id);
                }
            }
            Wake::Interrupt => {
                phone.inside.close(driver.now());
                let until = driver.now() + Duration::from_millis(100);
                while driver.now() < until {
                    driver.drive(&mut phone, Some(until))?;
                }
                println!("{} packets acknowledged by links", phone.acknowledged);
                return Ok(());
            }
            _ => {}
        }
    }
}

/// Begins with one phone after another; each sends from when it is connected.
fn many(count: u8, mbit: f64, time: Duration, to: &[SocketAddr]) -> Outcome {
    let phones: Vec<_> = (0..count)
        .map(|mark| {
            let to = to.to_vec();
            // Not all at the same moment, as they would be in no real place.
            std::thread::sleep(EACH / u32::from(count));
            std::thread::spawn(move || one(mark, mbit, time, &to))
        })
        .collect();
    let mut bytes = 0;
    for phone in phones {
        bytes += phone.join().map_err(|_| "a phone broke")??;
    }
    println!("RESULT bytes={bytes} secs={:.6}", time.as_secs_f64());
    Ok(())
}

/// Returns the bytes that were sent.
fn one(mark: u8, mbit: f64, time: Duration, to: &[SocketAddr]) -> Outcome<u64> {
    let options = Options { stream_id: Some(format!("phone{mark}")), ..Options::default() };
    let (mut driver, mut phone) = start(options, to, mark)?;
    let mut drive = |phone: &mut Phone, until: Instant| -> Outcome<Instant> {
        while driver.now() < until {
            driver.drive(phone, Some(until))?;
        }
        Ok(driver.now())
    };
    let mut now = drive(&mut phone, Instant::ZERO)?;
    let give_up = now + PATIENCE;
    while !matches!(phone.poll_event(), Some(Event::Connected(_))) {
        now = drive(&mut phone, now + EACH)?;
        if now > give_up {
            return Err(format!("phone {mark} is not connected").into());
        }
    }
    let null = [[0x47, 0x1f, 0xff, 0x10].as_slice(), &[0xff; 184]].concat().repeat(PAYLOAD / 188);
    let (begin, mut sent) = (now, 0_u64);
    let mut due = begin;
    while now < begin + time {
        while (sent as f64) * 8.0 < mbit * 1e6 * now.since(begin).as_secs_f64() {
            phone.inside.push(now, &null);
            sent += PAYLOAD as u64;
        }
        due += EACH;
        now = drive(&mut phone, due)?;
    }
    let end = now + PATIENCE;
    while !phone.inside.is_drained() && now < end {
        now = drive(&mut phone, now + EACH)?;
    }
    phone.inside.close(now);
    drive(&mut phone, now + Duration::from_millis(200))?;
    Ok(sent)
}
