//! Answers to requests, without packets.

use super::*;
use crate::Options;
use crate::assoc::testing::{Pair, route};
use braidcast_core::{Datagram, Ecn, Machine};
use core::time::Duration;

/// The answer to what the peer asks for over the first path, a name and what came of it for each that is named.
fn answer(pair: &mut Pair, wanted: &[Parameter<'_>]) -> Vec<(u32, bool)> {
    answer_from(pair, route(0, 0), wanted)
}

/// The same for a packet that came over `source`.
fn answer_from(pair: &mut Pair, source: Route, wanted: &[Parameter<'_>]) -> Vec<(u32, bool)> {
    let mut bytes = Vec::new();
    wanted.iter().for_each(|parameter| parameter.emit(&mut Writer::new(&mut bytes)));
    let now = pair.now;
    let answer = pair.open().reconfigure_all(now, source, Parameters::new(&bytes));
    let parameters = Parameters::new(&answer);
    let named = parameters.iter().map(|raw| match Parameter::parse(raw.unwrap()).unwrap() {
        Parameter::ErrorCauseIndication { correlation, .. } => (correlation, false),
        Parameter::SuccessIndication { correlation } => (correlation, true),
        other => panic!("{other:?}"),
    });
    named.collect()
}

fn delete(correlation: u32, address: IpAddr) -> Parameter<'static> {
    Parameter::DeleteIp { correlation, address }
}

#[test]
fn only_what_follows_a_refusal_is_said_to_have_succeeded() {
    let mut pair = Pair::over(2);
    let (source, other) = (route(0, 0).remote.ip(), route(0, 1).remote.ip());
    assert_eq!(answer(&mut pair, &[delete(1, other)]), [], "no answer is a yes (RFC 5061 §5.1 A8)");
    assert_eq!(pair.open().paths.len(), 1);
    let primary = Parameter::SetPrimary { correlation: 3, address: source };
    assert_eq!(answer(&mut pair, &[delete(1, other), delete(2, source), primary]), [(2, false), (3, true)]);
}

#[test]
fn once_adding_or_deleting_was_refused_so_is_the_rest_of_it() {
    // RFC 5061 §5.3 F11.
    let mut pair = Pair::over(2);
    let (source, other) = (route(0, 0).remote.ip(), route(0, 1).remote.ip());
    assert_eq!(answer(&mut pair, &[delete(1, source), delete(2, other)]), [(1, false), (2, false)]);
    assert_eq!(pair.open().paths.len(), 2);
}

/// The causes of all refusals in the answer to `wanted`, which came over the first path.
fn causes(pair: &mut Pair, wanted: &[Parameter<'_>]) -> Vec<String> {
    let mut bytes = Vec::new();
    wanted.iter().for_each(|parameter| parameter.emit(&mut Writer::new(&mut bytes)));
    let now = pair.now;
    let answer = pair.open().reconfigure_all(now, route(0, 0), Parameters::new(&bytes));
    let parameters = Parameters::new(&answer).iter().map(|raw| Parameter::parse(raw.unwrap()).unwrap());
    let mut all = Vec::new();
    for parameter in parameters {
        if let Parameter::ErrorCauseIndication { correlation, causes } = parameter {
            all.extend(causes.iter().map(|raw| format!("{correlation}: {:?}", Cause::parse(raw.unwrap()).unwrap())));
        }
    }
    all
}

#[test]
fn what_is_not_understood_is_answered_by_its_type() {
    let mut pair = Pair::over(2);
    let other = route(0, 1).remote.ip();
    let unknown = |kind| Parameter::Unknown { kind, value: &[0, 0, 0, 7, 9] };
    let said = |kind: u16| {
        let [high, low] = kind.to_be_bytes();
        let bytes = [high, low, 0, 9, 0, 0, 0, 7, 9];
        format!("7: {:?}", Cause::UnrecognizedParameters(Parameters::new(&bytes)))
    };
    // Skipped and reported; skipped; reported and the end; the end.
    for (kind, reported, goes_on) in
        [(0xc0fe, true, true), (0x80fe, false, true), (0x40fe, true, false), (0x00fe, false, false)]
    {
        let mut pair = Pair::over(2);
        let expected = if reported { vec![said(kind)] } else { vec![] };
        assert_eq!(causes(&mut pair, &[unknown(kind), delete(1, other)]), expected, "{kind:#x}");
        assert_eq!(pair.open().paths.len(), if goes_on { 1 } else { 2 }, "{kind:#x}");
    }
    // What stands in an INIT only, and what is too short to be named.
    let adaptation = Parameter::AdaptationLayer(7);
    assert_eq!(causes(&mut pair, &[adaptation]).len(), 1);
    assert_eq!(causes(&mut pair, &[Parameter::Unknown { kind: 0xc0fe, value: &[1] }]), [""; 0]);
    // A long one is not repeated: the answer fits any packet.
    let long = Parameter::Unknown { kind: 0xc0fe, value: &[0; 1000] };
    assert_eq!(causes(&mut pair, &[long]), [format!("0: {:?}", Cause::UnrecognizedParameters(Parameters::EMPTY))]);
}

#[test]
fn an_address_that_is_not_there_is_no_primary_and_none_to_delete() {
    let mut pair = Pair::over(2);
    let nowhere: IpAddr = [192, 0, 2, 1].into();
    let primary = |address| Parameter::SetPrimary { correlation: 1, address };
    let cause = Cause::UnresolvableAddress(&[0, 5, 0, 8, 192, 0, 2, 1]);
    assert_eq!(causes(&mut pair, &[primary(nowhere)]), [format!("1: {cause:?}")]);
    assert_eq!(causes(&mut pair, &[delete(1, nowhere)]), [""; 0], "it is as was wished");
    assert_eq!(pair.open().paths.len(), 2);
    let host_name = Parameter::Unknown { kind: 0xc004, value: &[0, 0, 0, 1, 0, 11, 0, 6, b'h', 0] };
    assert!(causes(&mut pair, &[host_name])[0].starts_with("1: UnresolvableAddress"));
    // The last one stays (F7), and the source as long as there are others (F8).
    let source = route(0, 0).remote.ip();
    assert!(causes(&mut pair, &[delete(1, source)])[0].starts_with("1: DeleteSourceAddress"));
    let mut alone = Pair::over(1);
    assert!(causes(&mut alone, &[delete(1, source)])[0].starts_with("1: DeleteLastAddress"));
    assert_eq!(alone.open().paths.len(), 1);
}

/// Sends the association an ASCONF with `wanted` over the first path, and returns the answers that leave.
fn asconf(pair: &mut Pair, serial: u32, wanted: &Parameter<'_>) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    wanted.emit(&mut Writer::new(&mut bytes));
    let now = pair.now;
    let open = pair.open();
    open.handle_asconf(now, route(0, 0), &Asconf { serial, address: WILDCARD, parameters: Parameters::new(&bytes) });
    let mut answers = Vec::new();
    while let Some((path, _)) = open.control.next() {
        let mut bytes = Vec::new();
        open.control.put(path, 500, None, &mut bytes);
        answers.push(bytes);
    }
    answers
}

#[test]
fn a_request_that_is_replayed_is_answered_as_before_and_done_once() {
    let mut pair = Pair::over(2);
    let other = route(0, 1).remote.ip();
    let first = pair.open().reconfiguration.peer_serial.wrapping_add(1);
    let done = asconf(&mut pair, first, &delete(1, other));
    assert_eq!((done.len(), pair.open().paths.len()), (1, 1));
    let add = Parameter::AddIp { correlation: 2, address: other };
    let added = asconf(&mut pair, first.wrapping_add(1), &add);
    assert_eq!((added.len(), pair.open().paths.len()), (1, 2));
    // The first one again, by whoever recorded it: its answer is no longer kept (RFC 5061 §5.2 E2).
    assert_eq!(asconf(&mut pair, first, &delete(1, other)), [[0; 0]; 0]);
    assert_eq!(pair.open().paths.len(), 2);
    // The second one again is answered as before; one out of turn is not (E5).
    assert_eq!(asconf(&mut pair, first.wrapping_add(1), &delete(1, other)), added);
    assert_eq!(asconf(&mut pair, first.wrapping_add(3), &delete(1, other)), [[0; 0]; 0]);
    assert_eq!(pair.open().paths.len(), 2);
}

/// An answer to the request that is out, if one is, with `parameters`.
fn acknowledge(pair: &mut Pair, serial: u32, parameters: &[Parameter<'_>]) {
    let mut bytes = Vec::new();
    parameters.iter().for_each(|parameter| parameter.emit(&mut Writer::new(&mut bytes)));
    let now = pair.now;
    let open = pair.open();
    let arrived = open.paths.indices().last().unwrap();
    open.handle_asconf_ack(now, arrived, &AsconfAck { serial, parameters: Parameters::new(&bytes) });
}

#[test]
fn an_answer_to_nothing_ends_the_association() {
    // RFC 5061 §5.3 F0.
    let mut pair = Pair::over(2);
    let next = pair.open().reconfiguration.next_serial;
    acknowledge(&mut pair, next.wrapping_sub(1), &[]);
    assert!(!pair.open().is_closed(), "an old one is nothing new");
    acknowledge(&mut pair, next, &[]);
    assert!(pair.open().is_closed());
}

#[test]
fn who_does_not_know_set_primary_is_not_asked_again() {
    // RFC 5061 §5.3 F3b.
    let mut pair = Pair::over(2);
    let now = pair.now;
    assert!(pair.association().ask_primary(now, route(0, 1)));
    assert!(!pair.association().ask_primary(now, route(0, 5)), "there is no such path");
    let serial = pair.open().reconfiguration.requests[0].serial;
    let mut causes = Vec::new();
    Cause::UnrecognizedParameters(Parameters::EMPTY).emit(&mut Writer::new(&mut causes));
    let refusal = Parameter::ErrorCauseIndication { correlation: serial, causes: Causes::new(&causes) };
    acknowledge(&mut pair, serial, &[refusal]);
    assert!(!pair.association().ask_primary(now, route(0, 1)));
    assert!(pair.open().may_reconfigure(), "addresses are another matter");
}

#[test]
fn a_request_for_thousands_of_changes_costs_no_more_than_a_few() {
    let mut pair = Pair::over(2);
    let source = route(0, 0).remote.ip();
    let most = answer::MAX_CHANGES as u32;
    let refused = answer(&mut pair, &(0..4000).map(|n| delete(n, source)).collect::<Vec<_>>());
    assert_eq!(refused, (0..=most).map(|n| (n, false)).collect::<Vec<_>>());
    let add = |correlation: u32| {
        let [.., c, d] = correlation.to_be_bytes();
        Parameter::AddIp { correlation, address: IpAddr::from([10, 9, c, d]) }
    };
    let refused = answer(&mut pair, &(0..4000).map(add).collect::<Vec<_>>());
    assert_eq!(refused, [(most, false)]);
    assert!(pair.open().paths.len() <= pair.open().options.paths.max_paths);
}

/// Two ends that list the client's addresses, over `paths` paths.
fn listing(paths: u8) -> Pair {
    let ours = (0..2).map(|path| route(1, path).remote.ip()).collect();
    Pair::with(Options::default().with(|it| it.local_addresses = ours), paths)
}

#[test]
fn an_address_that_the_peer_adds_counts_as_listed_until_it_is_deleted() {
    let mut pair = listing(1);
    let other = route(0, 1).remote.ip();
    assert_eq!(answer(&mut pair, &[Parameter::AddIp { correlation: 1, address: other }]), []);
    assert!(pair.open().peer_addresses.contains(other));
    assert_eq!(answer(&mut pair, &[delete(2, other)]), []);
    assert!(!pair.open().peer_addresses.contains(other));
    // If we list none, what the peer has does not count.
    let mut pair = Pair::over(1);
    assert_eq!(answer(&mut pair, &[Parameter::AddIp { correlation: 1, address: other }]), []);
    assert!(!pair.open().peer_addresses.contains(other));
}

/// Anybody can send a recorded request on from an address of his own (RFC 5061 §4.2.1).
#[test]
fn the_source_of_a_request_counts_as_listed_once_it_has_answered() {
    let mut pair = listing(1);
    let (now, there) = (pair.now, route(0, 1));
    for correlation in 1..3 {
        let join = Parameter::AddIp { correlation, address: WILDCARD };
        assert_eq!(answer_from(&mut pair, there, &[join]), []);
        assert!(!pair.open().peer_addresses.contains(there.remote.ip()));
    }
    let index = pair.open().paths.by_route(there).unwrap();
    pair.open().path_answers(now, index);
    assert!(pair.open().peer_addresses.contains(there.remote.ip()));
}

#[test]
fn a_primary_address_is_reached_over_a_path_that_works() {
    let mut pair = Pair::over(2);
    let (now, works) = (pair.now, route(0, 1));
    // From the socket that the request comes in by, nothing has answered yet.
    pair.open().take_in(now, Route::new(route(0, 0).socket, works.remote));
    assert_eq!(answer(&mut pair, &[Parameter::SetPrimary { correlation: 1, address: works.remote.ip() }]), []);
    let open = pair.open();
    assert_eq!(open.paths.primary(), open.paths.by_route(works));
}

#[test]
fn requests_name_an_address_that_the_peer_still_has() {
    for left in 0..2 {
        let mut pair = listing(2);
        let now = pair.now;
        pair.association().leave(now, route(0, left));
        pair.settle();
        let kept = route(1, 1 - left).remote.ip();
        assert_eq!(pair.open().reconfiguration.known, kept);
    }
    let mut pair = Pair::over(2);
    let now = pair.now;
    pair.association().leave(now, route(0, 0));
    pair.settle();
    assert_eq!(pair.open().reconfiguration.known, WILDCARD);
}

/// Lets `duration` pass, and returns how many bytes of IP packets left for hosts of 203.0.113.0/24.
fn sent_to_others(pair: &mut Pair, duration: Duration) -> usize {
    let (end, mut buf, mut bytes) = (pair.now + duration, Vec::new(), 0);
    while pair.now < end {
        for from in 0..2 {
            let mut carried = Vec::new();
            if pair.ends[from].poll_timeout().is_some_and(|at| at <= pair.now) {
                pair.ends[from].handle_timeout(pair.now);
            }
            while let Some(transmit) = pair.ends[from].poll_transmit(pair.now, &mut buf) {
                let named = transmit.route.remote.ip().to_string().starts_with("203.0.113.");
                bytes += transmit.datagrams(&buf).filter(|_| named).map(|it| it.len() + 28).sum::<usize>();
                let others = transmit.datagrams(&buf).filter(|_| !named).map(<[u8]>::to_vec);
                carried.extend(others.map(|packet| (transmit.route.socket.0 as u8, packet)));
            }
            for (path, packet) in carried {
                let datagram = Datagram { route: route(1 - from, path), ecn: Ecn::NotEct, payload: &packet };
                pair.ends[1 - from].handle_datagram(pair.now, datagram);
            }
        }
        pair.now += Duration::from_millis(5);
    }
    bytes
}

/// A peer that names other hosts' addresses has them asked a few times, ever more seldom, and then never again.
#[test]
fn hosts_that_a_peer_names_are_asked_a_few_times() {
    let mut pair = Pair::with(Options::live(), 1);
    let hosts = 4;
    let add = |n: u8| Parameter::AddIp { correlation: n.into(), address: IpAddr::from([203, 0, 113, n]) };
    assert_eq!(answer(&mut pair, &(0..hosts).map(add).collect::<Vec<_>>()), []);
    let most = usize::from(hosts) * (pair.open().options.paths.path_max_retrans as usize + 1);
    let soon = sent_to_others(&mut pair, Duration::from_secs(5));
    let bytes = soon + sent_to_others(&mut pair, Duration::from_secs(300));
    assert!((1..=most * 110).contains(&bytes), "{bytes} bytes, and {most} heartbeats at most");
    assert!(soon < bytes, "each is asked less and less often");
    assert_eq!(sent_to_others(&mut pair, Duration::from_secs(300)), 0);
    assert_eq!(pair.open().paths.len(), 1);
}

/// The answer that is kept is longer than what asks for it again, from an address that is not proved.
#[test]
fn who_asks_for_a_long_answer_gets_three_times_its_bytes_at_most() {
    let mut pair = Pair::with(Options::live(), 1);
    let (now, there) = (pair.now, Route::new(route(0, 0).socket, ([203, 0, 113, 1], 9).into()));
    let serial = pair.open().reconfiguration.peer_serial.wrapping_add(1);
    let ask = |pair: &mut Pair, source: Route, unknown: u32| {
        let mut wanted = Vec::new();
        Parameter::AddIp { correlation: 1, address: WILDCARD }.emit(&mut Writer::new(&mut wanted));
        for n in 0..unknown {
            // Of a kind that nobody knows, which is skipped and reported, with a correlation alone.
            wanted.extend_from_slice(&[0xFF, 0x00, 0, 8]);
            wanted.extend_from_slice(&n.to_be_bytes());
        }
        let asconf = Asconf { serial, address: WILDCARD, parameters: Parameters::new(&wanted) };
        let mut bytes = Vec::new();
        asconf.emit(&mut Writer::new(&mut bytes));
        pair.open().handle_asconf(now, source, &asconf);
        crate::wire::Header::LEN + bytes.len()
    };
    ask(&mut pair, route(0, 0), answer::MAX_CHANGES as u32 - 1);
    pair.open().control.clear();
    let came = ask(&mut pair, there, 0);
    let open = pair.open();
    let index = open.paths.by_route(there).expect("it is taken in, to be asked");
    open.paths[index].on_packet_received(came, Ecn::NotEct);
    let went = sent_to_others(&mut pair, Duration::from_secs(60));
    assert!((1..=3 * (came + 28)).contains(&went), "{went} bytes for {came}");
}
