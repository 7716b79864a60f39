//! What an association reports of its inside agrees with what it counts, and reporting changes no byte.

use crate::common::{Pair, link, ms, pattern};
use braidcast_core::Instant;
use braidcast_core::events::{EventSink, Loss, SctpEvent, Sending, TraceEvent, Tracer};
use braidcast_sctp::{Options, Reliability, SendOptions, Stats};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss as LinkLoss, Outage};
use std::sync::{Arc, Mutex};

/// Remembers all that it is told.
#[derive(Default)]
struct Ears(Mutex<Vec<(Instant, u32, SctpEvent)>>);

impl EventSink for Ears {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        let TraceEvent::Sctp(event) = *event else { panic!("{event:?} is not of SCTP") };
        self.0.lock().unwrap().push((now, connection, event));
    }
}

impl Ears {
    fn count(&self, is: impl Fn(&SctpEvent) -> bool) -> u64 {
        self.0.lock().unwrap().iter().filter(|(_, _, event)| is(event)).count() as u64
    }
}

struct Run {
    bytes: Vec<Vec<u8>>,
    client: Stats,
    server: Stats,
    lost_chunks: u64,
}

/// Ten seconds of messages that may come too late, copies and redundancy among them, over two paths
/// that lose and stall.
fn run(client: Option<&Arc<Ears>>, server: Option<&Arc<Ears>>) -> Run {
    let options = |ears: Option<&Arc<Ears>>| {
        Options::prompt().with(|it| {
            it.redundancy.fec = Some("tetrys:10,9,43".parse().unwrap());
            it.events = ears.map_or_else(Tracer::default, |ears| Tracer::new(ears.clone()));
        })
    };
    let lossy = |loss| LinkModel { loss: LinkLoss::Uniform(loss), ..link(2, 20) };
    let outages = vec!["every:3s,700ms,hold".parse::<Outage>().unwrap()];
    let stalls = LinkModel { outages, ..lossy(0.02) };
    let links = vec![Duplex::new(lossy(0.05), link(2, 20)), Duplex::new(stalls, link(2, 30))];
    let mut pair = Pair::with(options(client), options(server), links);
    let recording = pair.record();
    pair.connect();
    pair.on_client(|association, _| association.set_copied(1, true));
    for n in 0..500u64 {
        let how = SendOptions {
            stream: u16::from(n % 20 == 0),
            unordered: true,
            reliability: Reliability::Lifetime(ms(250)),
            context: n,
            ..SendOptions::default()
        };
        let _full = pair.on_client(|it, now| it.send(now, &pattern(9000, n), how));
        pair.run(ms(20));
        pair.server_recv();
    }
    pair.run(ms(2000));
    let lost_chunks = pair.on_client(|it, _| it.paths().map(|path| path.lost_chunks).sum());
    let client = pair.on_client(|it, _| it.stats());
    let server = pair.on_server(|it, _| it.stats());
    Run { bytes: recording.all().into_iter().map(|seen| seen.bytes).collect(), client, server, lost_chunks }
}

#[test]
fn what_is_told_is_what_is_counted() {
    let (client, server) = (Arc::new(Ears::default()), Arc::new(Ears::default()));
    let run = run(Some(&client), Some(&server));
    let sent = |wanted: Sending| {
        client.count(|event| matches!(event, SctpEvent::ChunkSent { sending, .. } if *sending == wanted))
    };
    assert_eq!(sent(Sending::New), run.client.new_chunks);
    assert_eq!(sent(Sending::Again(Loss::Reported)), run.client.fast_retransmissions);
    assert_eq!(sent(Sending::Again(Loss::Timeout)), run.client.timeout_retransmissions);
    assert!(sent(Sending::Copy) > 0 && sent(Sending::Again(Loss::Reported)) > 0);
    // What a path that fell silent may still deliver is told, and does not count for its losses.
    let lost = |event: &SctpEvent| matches!(event, SctpEvent::ChunkLost { cause, .. } if *cause != Loss::Silence);
    assert_eq!(client.count(lost), run.lost_chunks);
    let given_up = run.client.abandoned_unsent + run.client.abandoned_sent;
    assert_eq!(client.count(|event| matches!(event, SctpEvent::MessageAbandoned { .. })), given_up);
    assert!(given_up > 0, "the network was to be too slow");
    assert_eq!(client.count(|event| matches!(event, SctpEvent::RedundancySent { .. })), run.client.redundancy_sent);
    assert_eq!(
        server.count(|event| matches!(event, SctpEvent::RedundancyReceived { .. })),
        run.server.redundancy_received
    );
    assert_eq!(server.count(|event| matches!(event, SctpEvent::ChunkRecovered { .. })), run.server.recovered_chunks);
    assert_eq!(
        server.count(|event| matches!(event, SctpEvent::ChunkReceived { new: false, .. })),
        run.server.duplicate_chunks
    );
    assert!(run.server.recovered_chunks > 0 && run.server.duplicate_chunks > 0);
    // Both ends name the association by the tags that cross.
    let tags = |ears: &Ears| {
        ears.0.lock().unwrap().iter().find_map(|(_, connection, event)| match *event {
            SctpEvent::Opened { local_tag, peer_tag } => Some((*connection, local_tag, peer_tag)),
            _ => None,
        })
    };
    let ((name, local, peer), (other, remote_local, remote_peer)) = (tags(&client).unwrap(), tags(&server).unwrap());
    assert_eq!((name, local, peer), (local, remote_peer, remote_local));
    assert_eq!(other, remote_local);
    // Time never goes back, and paths are known before anything is said of them.
    let told = client.0.lock().unwrap();
    assert!(told.is_sorted_by_key(|(now, ..)| *now));
    let added = told.iter().position(|(.., event)| matches!(event, SctpEvent::PathAdded { .. }));
    let sent = told.iter().position(|(.., event)| matches!(event, SctpEvent::PacketSent { .. }));
    assert!(added < sent, "{added:?} {sent:?}");
}

#[test]
fn to_be_listened_to_changes_no_byte() {
    let ears = Arc::new(Ears::default());
    let (told, silent) = (run(Some(&ears), None), run(None, None));
    assert!(told.bytes.len() > 1000 && !ears.0.lock().unwrap().is_empty());
    assert!(told.bytes == silent.bytes);
}
