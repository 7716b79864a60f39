//! Our send queues with Linux's receiver, which knows nothing of them: audio and video over a link
//! that carries less than both.

use super::flows::received;
use super::link;
use super::{LIMIT, connect, options};
use braidcast_core::Instant;
use braidcast_dccp::{
    Ccid, Connection, ConnectionId, Event, Limits, Method, Options, Priority, SendError, SendOptions,
};
use braidcast_interop::dccp::Dccp;
use braidcast_interop::linux::Guest;
use std::collections::BTreeSet;
use std::time::Duration;

const CALL: Duration = Duration::from_secs(6);
/// From us to Linux; back there is nothing in the way.
const LINK: &str = "rate 400kbit delay 30ms limit 10";
const LIFETIME: Duration = Duration::from_millis(300);
/// A message that was in time is back by then: Linux's echo and its congestion control may take a while.
const BACK: Duration = Duration::from_millis(700);
const PORT: u16 = 5500;

/// Priority, messages, bytes in each; the former each 20 ms, the latter each 100 ms. In all 40 and 800 kbit/s.
const SOUND: (u8, u32, usize) = (0, 1, 100);
const PICTURES: (u8, u32, usize) = (1, 10, 1000);

/// How a call went.
#[derive(Debug, Default)]
struct Call {
    /// Of audio and of video.
    sent: [u32; 2],
    refused: [u32; 2],
    back: [u32; 2],
    back_in_time: [u32; 2],
    began: Vec<Instant>,
    came: BTreeSet<u64>,
}

impl Call {
    fn share_in_time(&self, what: usize) -> f64 {
        f64::from(self.back_in_time[what]) / f64::from(self.sent[what])
    }

    /// A message holds its priority and number.
    fn say(&mut self, connection: &mut Connection, now: Instant, (level, count, len): (u8, u32, usize)) {
        for _ in 0..count {
            let number = self.began.len() as u64;
            self.began.push(now);
            self.sent[usize::from(level)] += 1;
            let mut payload = vec![level; len];
            payload[1..9].copy_from_slice(&number.to_be_bytes());
            let priority = Priority::new(level).unwrap();
            let how = SendOptions {
                priority,
                deadline: Some(now + LIFETIME),
                context: Some(number),
                ..SendOptions::default()
            };
            match connection.send(now, &payload, how) {
                Ok(()) => {}
                Err(SendError::QueueFull { .. }) => self.refused[usize::from(level)] += 1,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn hear(&mut self, connection: &mut Connection, now: Instant) {
        for payload in received(connection) {
            let (what, number) = (usize::from(payload[0]), u64::from_be_bytes(payload[1..9].try_into().unwrap()));
            assert!(self.came.insert(number), "message {number} came twice");
            self.back[what] += 1;
            self.back_in_time[what] += u32::from(now.since(self.began[number as usize]) <= BACK);
        }
    }
}

fn hold(queue: Method) -> Call {
    let mut ours = Dccp::new(Options { queue, send_queue: Limits::messages(64), ..options(&[Ccid::Three]) });
    let id = connect(&mut ours, PORT);
    let (mut call, began) = (Call::default(), ours.now());
    let mut ticks = 0;
    ours.until(CALL + LIMIT, "the call", |ours| {
        let due = (ours.now().since(began).as_millis() / 20) as u32;
        let alive = ours.with(id, |it, now| {
            call.hear(it, now);
            while ticks < due {
                call.say(it, now, SOUND);
                if ticks % 5 == 0 {
                    call.say(it, now, PICTURES);
                }
                ticks += 1;
            }
        });
        assert!(alive.is_some(), "{:?}", ours.events.last());
        ours.now().since(began) >= CALL
    });
    // What waits still comes, or is discarded.
    let end = ours.now() + Duration::from_secs(2);
    ours.until(LIMIT, "the rest", |ours| {
        ours.with(id, |it, now| call.hear(it, now));
        ours.now() >= end
    });
    judge(&mut ours, id, &call);
    println!(
        "  {queue}: {:?} sent, {:?} refused, {:?} back, {:?} in time",
        call.sent, call.refused, call.back, call.back_in_time
    );
    call
}

/// What was discarded never came, and every message is accounted for.
fn judge(ours: &mut Dccp, id: ConnectionId, call: &Call) {
    let discarded = ours.events.iter().filter_map(|(_, event)| match event {
        Event::Discarded { context, .. } => Some(*context),
        _ => None,
    });
    let discarded: BTreeSet<u64> = discarded.collect();
    assert!(discarded.is_disjoint(&call.came));
    let stats = ours.with(id, |it, now| it.report(now)).unwrap().stats;
    assert_eq!(stats.expired + stats.crowded_out, discarded.len() as u64);
    let refused = call.refused.iter().sum::<u32>();
    assert_eq!(stats.sent_messages + discarded.len() as u64 + u64::from(refused), call.began.len() as u64);
}

pub(crate) fn all(guest: &Guest) {
    link::emulate_towards_guest(guest, LINK);
    guest.start("call", &format!("dccp_peer -l -p {PORT} -m echo -C 3 -S TEST -q 64 -Q"));
    println!("send queues");
    let [fifo, sbpn2, ring] = [Method::Fifo, Method::Sbpn2, Method::RingSbpn2].map(hold);
    for (name, call) in [("sbpn2", &sbpn2), ("ring-sbpn2", &ring)] {
        assert!(call.share_in_time(0) > 0.7, "{name}: {call:?}");
        assert!(call.back[1] > 15, "{name}: the rest is for video");
        assert!(fifo.share_in_time(0) < call.share_in_time(0) - 0.3, "audio stands behind video");
    }
    guest.stop("call");
}
