//! Streams that begin anew, and more of them (RFC 6525): each test reads like a story, or is a rule
//! that a well-behaved peer never tries.

use crate::common::hand::Hand;
use crate::common::{CLIENT, Pair, Recording, kinds, link, ms, on, packet, tag};
use braidcast_core::Writer;
use braidcast_sctp::wire::chunk::{ReConfig, kind};
use braidcast_sctp::wire::param::Reconfiguration;
use braidcast_sctp::wire::{Chunk, Entries, Packet, Parameter, Parameters};
use braidcast_sctp::{
    AssociationId, Event, Method, Options, ReconfigurationResult, ReconfigureError, Reliability, SendOptions,
    StreamChange, StreamRequest,
};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;

fn options(interleaving: bool) -> Options {
    Options::live().with(|it| {
        it.interleaving = interleaving;
        it.reconfiguration = true;
    })
}

fn lossy(loss: &str) -> Vec<Duplex> {
    (0..2).map(|_| Duplex::both(LinkModel { loss: loss.parse().unwrap(), ..link(10, 15) })).collect()
}

fn ask(pair: &mut Pair, request: StreamRequest) {
    pair.on_client(|association, now| association.reconfigure(now, request)).unwrap();
}

fn changes(events: &[Event]) -> Vec<StreamChange> {
    let change = |event: &Event| if let Event::StreamsChanged(it) = event { Some(it.clone()) } else { None };
    events.iter().filter_map(change).collect()
}

/// The numbers of the ordered messages that the client began on `stream`, each once, in the order of TSNs.
fn numbers(recording: &Recording, stream: u16) -> Vec<u32> {
    let mut begun = std::collections::BTreeMap::new();
    for seen in recording.sent(&CLIENT) {
        for raw in Packet::parse(&seen.bytes).unwrap().chunks().flatten() {
            match Chunk::parse(raw) {
                Ok(Chunk::Data(it)) if it.stream == stream && it.first => begun.insert(it.tsn, u32::from(it.ssn)),
                Ok(Chunk::IData(it)) if it.stream == stream && it.first => begun.insert(it.tsn, it.mid),
                _ => None,
            };
        }
    }
    begun.into_values().collect()
}

#[test]
fn a_stream_begins_anew_and_what_is_sent_meanwhile_waits() {
    for interleaving in [true, false] {
        for loss in ["0%", "15%"] {
            let mut pair = Pair::connected(&options(interleaving), lossy(loss));
            let recording = pair.record();
            let (mut next, mut came) = ([0_u8; 2], [0_u8; 2]);
            for round in 0..4 {
                for meanwhile in [false, true] {
                    for _ in 0..15 {
                        for stream in [1, 2] {
                            pair.client_send(&[next[stream - 1]; 700], on(stream as u16, Reliability::Reliable));
                            next[stream - 1] += 1;
                        }
                    }
                    if !meanwhile && round < 3 {
                        // The second request of the same is none.
                        ask(&mut pair, StreamRequest::ResetOutgoing(vec![1]));
                        ask(&mut pair, StreamRequest::ResetOutgoing(vec![1]));
                    }
                }
                pair.until(ms(60_000), "all", |pair| {
                    for (info, message) in pair.server_recv() {
                        let came = &mut came[usize::from(info.stream) - 1];
                        assert_eq!(message, [*came; 700], "{interleaving} {loss} stream {}", info.stream);
                        *came += 1;
                    }
                    came == next
                });
            }
            let resets = vec![StreamChange::OutgoingReset(vec![1]); 3];
            assert_eq!(changes(&pair.client_events), resets);
            assert_eq!(changes(&pair.server_events), vec![StreamChange::IncomingReset(vec![1]); 3]);
            let (one, two) = (numbers(&recording, 1), numbers(&recording, 2));
            assert_eq!(one.iter().filter(|&&number| number == 0).count(), resets.len() + 1, "{one:?}");
            assert!(two.is_sorted() && two.last() == Some(&119), "{two:?}");
        }
    }
}

#[test]
fn what_is_given_up_before_a_reset_takes_nothing_away_after_it() {
    for interleaving in [true, false] {
        let mut pair = Pair::connected(&options(interleaving), lossy("20%"));
        let mut reliable = 0;
        for round in 0..10 {
            for _ in 0..20 {
                pair.client_send(&[0; 900], on(1, Reliability::Retransmissions(0)));
            }
            ask(&mut pair, StreamRequest::ResetOutgoing(vec![1]));
            // FORWARD-TSN goes on for these, and may come to the peer when the other stream has begun anew.
            for _ in 0..20 {
                pair.client_send(&[0; 900], on(2, Reliability::Retransmissions(0)));
            }
            pair.client_send(&[1 + round; 900], on(1, Reliability::Reliable));
            pair.until(ms(30_000), "the message that must come", |pair| {
                let came = pair.server_recv();
                reliable += came.iter().filter(|(_, message)| message[0] > 0).count();
                reliable == usize::from(round) + 1
            });
        }
        pair.until(ms(30_000), "the last reset", |pair| changes(&pair.client_events).len() == 10);
        assert_eq!(changes(&pair.server_events).len(), 10);
    }
}

#[test]
fn the_peer_resets_its_streams_when_it_is_asked_to() {
    let mut pair = Pair::connected(&options(true), lossy("15%"));
    for round in 0..3_usize {
        let before = changes(&pair.client_events).len();
        for i in 0..5 {
            pair.on_server(|it, now| it.send(now, &[i; 3000], on(4, Reliability::Reliable))).unwrap();
        }
        let streams = if round == 1 { vec![] } else { vec![4] };
        ask(&mut pair, StreamRequest::ResetIncoming(streams.clone()));
        let mut came = 0;
        pair.until(ms(30_000), "the reset", |pair| {
            came += pair.client_recv().len();
            came == 5 && changes(&pair.client_events).len() > before
        });
        pair.run(ms(2000));
        assert_eq!(changes(&pair.client_events)[before..], [StreamChange::IncomingReset(streams)]);
        assert_eq!(changes(&pair.server_events).len(), before + 1);
    }
    // Nothing came since: there is nothing to do, and nothing is told.
    ask(&mut pair, StreamRequest::ResetIncoming(vec![4]));
    pair.run(ms(3000));
    assert_eq!(changes(&pair.client_events).len(), 3);
    // Later requests go all the same: this one is denied, as the peer has as many streams as it wants.
    ask(&mut pair, StreamRequest::AddIncoming(1));
    let denied = Event::StreamsRefused(StreamRequest::AddIncoming(1), ReconfigurationResult::Denied);
    pair.until(ms(30_000), "a refusal", |pair| pair.client_events.contains(&denied));
}

#[test]
fn each_end_asks_the_other_for_a_reset_at_the_same_time() {
    let mut pair = Pair::connected(&options(true), lossy("10%"));
    for round in 1..=10_usize {
        pair.client_send(&[1; 5000], on(3, Reliability::Reliable));
        pair.on_server(|it, now| it.send(now, &[1; 5000], on(3, Reliability::Reliable))).unwrap();
        ask(&mut pair, StreamRequest::ResetIncoming(vec![3]));
        pair.on_server(|it, now| it.reconfigure(now, StreamRequest::ResetIncoming(vec![3]))).unwrap();
        // It waits for the reset.
        pair.run(ms(20));
        pair.client_send(&[2; 10], on(3, Reliability::Reliable));
        pair.on_server(|it, now| it.send(now, &[2; 10], on(3, Reliability::Reliable))).unwrap();
        let (mut at_server, mut at_client) = (0, 0);
        pair.until(ms(60_000), "both", |pair| {
            at_server += pair.server_recv().len();
            at_client += pair.client_recv().len();
            (at_server, at_client) == (2, 2)
                && [&pair.client_events, &pair.server_events].iter().all(|events| changes(events).len() >= 2 * round)
        });
    }
}

#[test]
fn both_ends_reset_the_same_stream_in_each_direction_at_once() {
    for interleaving in [true, false] {
        let mut pair = Pair::connected(&options(interleaving), lossy("10%"));
        let (mut at_server, mut at_client) = (0_u8, 0_u8);
        for round in 0..20 {
            pair.client_send(&[2 * round; 10], on(3, Reliability::Reliable));
            pair.on_server(|it, now| it.send(now, &[2 * round; 10], on(3, Reliability::Reliable))).unwrap();
            ask(&mut pair, StreamRequest::ResetOutgoing(vec![3]));
            ask(&mut pair, StreamRequest::ResetIncoming(vec![3]));
            pair.on_server(|it, now| it.reconfigure(now, StreamRequest::ResetOutgoing(vec![3]))).unwrap();
            pair.client_send(&[2 * round + 1; 10], on(3, Reliability::Reliable));
            pair.on_server(|it, now| it.send(now, &[2 * round + 1; 10], on(3, Reliability::Reliable))).unwrap();
            pair.until(ms(60_000), "both", |pair| {
                for (_, message) in pair.server_recv() {
                    assert_eq!(message, [at_server; 10]);
                    at_server += 1;
                }
                for (_, message) in pair.client_recv() {
                    assert_eq!(message, [at_client; 10]);
                    at_client += 1;
                }
                (at_server, at_client) == (2 * round + 2, 2 * round + 2)
            });
        }
    }
}

#[test]
fn streams_are_added_within_the_limits_of_who_would_receive_on_them() {
    let few = |streams| options(true).with(|it| it.limits.streams = streams);
    let mut pair = Pair::with(few(4), few(10), lossy("10%"));
    pair.connect();
    let refused = pair.on_client(|it, now| it.send(now, b"five", on(4, Reliability::Reliable)));
    assert!(refused.is_err());
    ask(&mut pair, StreamRequest::AddOutgoing(2));
    ask(&mut pair, StreamRequest::AddOutgoing(4));
    pair.until(ms(30_000), "streams", |pair| changes(&pair.client_events).contains(&StreamChange::Outgoing(10)));
    assert!(changes(&pair.server_events).contains(&StreamChange::Incoming(10)));
    pair.client_send(b"ten", on(9, Reliability::Reliable));
    pair.until(ms(30_000), "on the new stream", |pair| pair.server_recv().iter().any(|(info, _)| info.stream == 9));
    ask(&mut pair, StreamRequest::AddOutgoing(1));
    let denied = Event::StreamsRefused(StreamRequest::AddOutgoing(1), ReconfigurationResult::Denied);
    pair.until(ms(30_000), "a refusal", |pair| pair.client_events.contains(&denied));
    // We may have as many as we ask for ourselves; the peer sends on six at most of its own accord.
    ask(&mut pair, StreamRequest::AddIncoming(3));
    pair.until(ms(30_000), "streams of the peer", |pair| {
        changes(&pair.server_events).contains(&StreamChange::Outgoing(7))
    });
    assert!(changes(&pair.client_events).contains(&StreamChange::Incoming(7)));
    ask(&mut pair, StreamRequest::AddIncoming(4));
    let denied = Event::StreamsRefused(StreamRequest::AddIncoming(4), ReconfigurationResult::Denied);
    pair.until(ms(30_000), "a refusal", |pair| pair.client_events.contains(&denied));
}

#[test]
fn what_cannot_be_is_refused_at_once() {
    let mut pair = Pair::connected(&options(true), lossy("0%"));
    let mut refusal = |request| pair.on_client(|it, now| it.reconfigure(now, request)).unwrap_err();
    assert_eq!(
        refusal(StreamRequest::ResetOutgoing(vec![0, 64])),
        ReconfigureError::NoSuchStream { stream: 64, count: 64 }
    );
    assert_eq!(
        refusal(StreamRequest::ResetIncoming(vec![99])),
        ReconfigureError::NoSuchStream { stream: 99, count: 64 }
    );
    let too_many = ReconfigureError::TooManyStreams { more: u16::MAX, count: 64 };
    assert_eq!(refusal(StreamRequest::AddOutgoing(u16::MAX)), too_many);
    let mut plain = Pair::with(options(true), Options::live(), lossy("0%"));
    plain.connect();
    let request = StreamRequest::ResetOutgoing(vec![]);
    let refused = plain.on_client(|it, now| it.reconfigure(now, request.clone()));
    assert_eq!(refused, Err(ReconfigureError::NotSupported));
    let queued = options(true).with(|it| it.queue.method = Some(Method::Fifo));
    let mut queued = Pair::connected(&queued, lossy("0%"));
    let refused = queued.on_client(|it, now| it.reconfigure(now, request.clone()));
    assert_eq!(refused, Err(ReconfigureError::Queued));
    queued.on_client(|it, now| it.shutdown(now));
    assert_eq!(queued.on_client(|it, now| it.reconfigure(now, request)), Err(ReconfigureError::NotOpen));
}

#[test]
fn a_shutdown_delivers_what_waits_for_a_reset() {
    let mut pair = Pair::connected(&options(true), lossy("10%"));
    let mut expected = 0;
    for _ in 0..3 {
        pair.client_send(&[0; 20_000], on(1, Reliability::Reliable));
        ask(&mut pair, StreamRequest::ResetOutgoing(vec![1]));
        pair.client_send(&[0; 20_000], on(1, Reliability::Reliable));
        expected += 2;
    }
    pair.on_client(|it, now| it.shutdown(now));
    let mut came = 0;
    pair.until(ms(60_000), "all", |pair| {
        came += pair.server_recv().len();
        came == expected && pair.client_events.iter().any(|event| matches!(event, Event::Closed(_)))
    });
}

/// A client and a server between which packets are carried by hand.
struct Up {
    hand: Hand,
    id: AssociationId,
    to_server: u32,
    /// The initial TSNs of client and server.
    tsns: [u32; 2],
}

fn up() -> Up {
    let mut hand = Hand::new(&options(false));
    let id = hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    hand.client_gets(0, &init_ack);
    let to_server = hand.client_sends();
    let to_server_tag = tag(&to_server[0]);
    to_server.iter().for_each(|it| hand.server_gets(0, it));
    hand.settle();
    let initial = |bytes: &[u8]| {
        let packet = Packet::parse(bytes).unwrap();
        match Chunk::parse(packet.chunks().next().unwrap().unwrap()) {
            Ok(Chunk::Init(it) | Chunk::InitAck(it)) => it.initial_tsn,
            other => panic!("{other:?}"),
        }
    };
    Up { hand, id, to_server: to_server_tag, tsns: [initial(&init), initial(&init_ack)] }
}

fn parameters(list: &[Reconfiguration<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    list.iter().for_each(|&it| Parameter::Reconfiguration(it).emit(&mut Writer::new(&mut bytes)));
    bytes
}

impl Up {
    /// Hands the server these parameters in a RE-CONFIG. Returns the RE-CONFIG chunks that it answers
    /// with, printed, and `true` if it acknowledges.
    fn ask_server(&mut self, list: &[Reconfiguration<'_>]) -> (Vec<String>, bool) {
        let bytes = parameters(list);
        let chunk = Chunk::ReConfig(ReConfig { parameters: Parameters::new(&bytes) });
        self.hand.server_gets(0, &packet(self.to_server, &[chunk]));
        self.server_says()
    }

    fn server_says(&mut self) -> (Vec<String>, bool) {
        let sent = self.hand.server_sends();
        let acknowledges = sent.iter().any(|it| kinds(it).contains(&kind::SACK));
        let said = sent.iter().flat_map(|it| {
            let packet = Packet::parse(it).unwrap();
            let chunks: Vec<_> = packet.chunks().flatten().filter(|raw| raw.kind != kind::SACK).collect();
            chunks.into_iter().map(|raw| Chunk::parse(raw).unwrap().to_string()).collect::<Vec<_>>()
        });
        (said.collect(), acknowledges)
    }
}

#[test]
fn a_reset_waits_until_all_of_before_has_come_and_is_said_again_when_it_is_asked_again() {
    let mut it = up();
    let client = it.hand.client.association_mut(it.id).unwrap();
    client.send(it.hand.now, b"old", on(1, Reliability::Reliable)).unwrap();
    let data = it.hand.client_sends().remove(0);
    let [first, peers] = it.tsns;
    let streams = 1_u16.to_be_bytes();
    let reset = Reconfiguration::OutgoingReset {
        request: first,
        response: peers.wrapping_sub(1),
        last_tsn: first,
        streams: Entries::new(&streams),
    };
    let in_progress = vec![format!("RE-CONFIG response={first} result=6")];
    assert_eq!(it.ask_server(&[reset]), (in_progress.clone(), true));
    assert_eq!(it.ask_server(&[reset]), (in_progress, true));
    assert_eq!(changes(&it.hand.server_events()), []);
    it.hand.server_gets(0, &data);
    let performed = vec![format!("RE-CONFIG response={first} result=1")];
    let (said, acknowledges) = it.server_says();
    assert!(acknowledges);
    assert_eq!(said, performed);
    assert_eq!(changes(&it.hand.server_events()), [StreamChange::IncomingReset(vec![1])]);
    // The same request once more: the same answer, and nothing happens.
    assert_eq!(it.ask_server(&[reset]), (performed, true));
    assert_eq!(changes(&it.hand.server_events()), []);
}

#[test]
fn requests_out_of_turn_and_wrong_ones_are_told_what_is_wrong() {
    let mut it = up();
    let [first, peers] = it.tsns;
    let response = peers.wrapping_sub(1);
    let none = Entries::EMPTY;
    let far = 64_u16.to_be_bytes();
    let out = |request, streams| Reconfiguration::OutgoingReset {
        request,
        response,
        last_tsn: first.wrapping_sub(1),
        streams,
    };
    let said = |request: u32, result: u32| (vec![format!("RE-CONFIG response={request} result={result}")], true);
    let next = |n: u32| first.wrapping_add(n);
    assert_eq!(it.ask_server(&[out(next(7), none)]), said(next(7), 5));
    assert_eq!(it.ask_server(&[out(next(0), Entries::new(&far))]), said(next(0), 3));
    assert_eq!(
        it.ask_server(&[Reconfiguration::IncomingReset { request: next(1), streams: Entries::new(&far) }]),
        said(next(1), 3)
    );
    // Nothing was sent on any stream.
    assert_eq!(it.ask_server(&[Reconfiguration::IncomingReset { request: next(2), streams: none }]), said(next(2), 0));
    // All numbers of both directions: we do not do that, and name the numbers that stay.
    assert_eq!(it.ask_server(&[Reconfiguration::TsnReset { request: next(3) }]), said(next(3), 2));
    assert_eq!(it.ask_server(&[Reconfiguration::AddOutgoing { request: next(4), count: 1 }]), said(next(4), 2));
    assert_eq!(it.ask_server(&[Reconfiguration::AddIncoming { request: next(5), count: 1 }]), said(next(5), 2));
    // Two in one chunk are answered in one chunk.
    let both = [out(next(6), none), Reconfiguration::IncomingReset { request: next(7), streams: none }];
    let answers = format!("RE-CONFIG response={} result=1 response={} result=0", next(6), next(7));
    assert_eq!(it.ask_server(&both), (vec![answers], true));
    // These must not stand together, and these have no such length.
    let (said, _) = it.ask_server(&[Reconfiguration::TsnReset { request: next(8) }, out(next(9), none)]);
    assert!(said.len() == 1 && said[0].starts_with("ERROR"), "{said:?}");
    let server = it.hand.server.associations().next().unwrap();
    assert!(it.hand.server.association(server).unwrap().is_established());
    // Nobody asked for anything: a response settles nothing.
    let stray = Reconfiguration::Response { response: peers, result: 1, next_tsns: None };
    assert_eq!(it.ask_server(&[stray]), (vec![], false));
}

#[test]
fn who_does_not_offer_it_passes_over_it() {
    let mut hand = Hand::new(&Options::default());
    let id = hand.connect();
    hand.settle();
    let server = hand.server.associations().next().unwrap();
    assert!(hand.server.association(server).unwrap().is_established());
    hand.client.association_mut(id).unwrap().send(hand.now, b"x", SendOptions::default()).unwrap();
    let to_server = tag(&hand.client_sends()[0]);
    let bytes = parameters(&[Reconfiguration::TsnReset { request: 1 }]);
    let chunk = Chunk::ReConfig(ReConfig { parameters: Parameters::new(&bytes) });
    hand.server_gets(0, &packet(to_server, &[chunk]));
    assert_eq!(hand.server_sends(), Vec::<Vec<u8>>::new());
}

#[test]
fn a_request_that_nobody_answers_is_repeated_and_counts_as_an_error() {
    let mut pair = Pair::connected(
        &options(true).with(|it| it.timers.association_max_retrans = Some(4)),
        vec![Duplex::both(link(10, 15))],
    );
    pair.cut(0, true);
    let recording = pair.record();
    ask(&mut pair, StreamRequest::AddOutgoing(1));
    pair.until(ms(60_000), "the end", |pair| pair.client_events.iter().any(|event| matches!(event, Event::Closed(_))));
    let asked = recording.count(&CLIENT, kind::RE_CONFIG);
    assert!((2..=6).contains(&asked), "{asked}");
}
