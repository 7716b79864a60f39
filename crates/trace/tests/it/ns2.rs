//! Traces of ns-2. `data/wifi-3g.ns2` is the beginning of one that ns-2.35 wrote: SCTP with CMT
//! over 1600 kbit/s at 20 ms and 400 kbit/s at 200 ms, packets of 1000 bytes.

use braidcast_trace::{Cargo, Ns2Reader, Passage, ReadError};

const WIFI_3G: &[u8] = include_bytes!("../data/wifi-3g.ns2");

fn read(text: &[u8]) -> Result<(Vec<Passage>, bool), ReadError> {
    let mut reader = Ns2Reader::new(text);
    let mut all = Vec::new();
    while let Some(it) = reader.next_passage()? {
        all.push(it);
    }
    Ok((all, reader.is_cut_off()))
}

#[test]
fn packets_have_their_path_number_and_times() {
    assert!(Ns2Reader::<&[u8]>::recognises(WIFI_3G));
    let (all, cut_off) = read(WIFI_3G).unwrap();
    assert!(!cut_off);
    assert!(all.iter().all(|it| it.flow.to_string() == "sctp/0" && !it.lost));
    let data: Vec<_> = all.iter().filter(|it| it.cargo == Cargo::Data).collect();
    let first = data[0];
    assert_eq!((first.sent.as_nanos(), first.path, first.number, first.bytes), (396_117_000, 0, Some(1), 1000));
    assert_eq!(first.arrived.unwrap().as_nanos(), 411_085_000);
    // The second one of Wi-Fi waits until the first has left, for 5 ms.
    assert_eq!((data[1].number, data[1].queued.as_micros()), (Some(2), 5000));
    let slow = data.iter().find(|it| it.path == 1).unwrap();
    assert_eq!((slow.number, slow.stream, slow.back), (Some(5), Some(0), false));
    assert!(slow.arrived.unwrap().since(slow.sent).as_millis() >= 115);
    let sack = all.iter().find(|it| it.cargo == Cargo::Acknowledgement).unwrap();
    assert!(sack.back && sack.number.is_none());
    // What is under way at the end has not arrived, and is not lost.
    assert!(all.iter().any(|it| it.arrived.is_none()));
}

#[test]
fn losses_repeats_and_other_protocols_are_told_apart() {
    let text = b"# a comment\n\
        + 0.1 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n\
        - 0.1 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n\
        d 0.2 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n\
        + 0.3 0 1 tcp 1040 ------- 2 0.0 1.0 7 2\n\
        r 0.4 0 1 tcp 1040 ------- 2 0.0 1.0 7 2\n\
        + 0.4 1 0 ack 40 ------- 2 1.0 0.0 7 3\n\
        v 0.45 eval {set sim_annotation {x}}\n\
        r 0.5 1 0 ack 40 ------- 2 1.0 0.0 7 3\n\
        + 0.5 0 1 cbr 210 ------- 1 0.1 1.1 1 4\n\
        r 0.6 0 2 cbr 210 ------- 1 0.1 1.1 1 4\n";
    let (all, _) = read(text).unwrap();
    let told: Vec<_> = all.iter().map(|it| (it.flow.to_string(), it.cargo, it.lost, it.arrived.is_some())).collect();
    let flow = |name: &str| name.to_owned();
    assert_eq!(
        told,
        [
            (flow("tcp/2"), Cargo::Data, true, false),
            (flow("tcp/2"), Cargo::DataAgain, false, true),
            (flow("tcp/2"), Cargo::Acknowledgement, false, true),
            // It came to a node on the path.
            (flow("cbr/1"), Cargo::Data, false, false),
        ]
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let wrong = |text: &str, words: &str| {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let good = "+ 0.5 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n";
    wrong(&format!("{good}+ 0.1 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n"), "line 2: time goes back, from 0.5 s to 0.1 s");
    wrong(&format!("{good}+ x 0 1 tcp 1040 ------- 2 0.0 1.0 7 1\n"), "line 2: 'x' is not a time");
    wrong(&format!("{good}+ 0.6 0 1 tcp 99999999999 ------- 2 0.0 1.0 7 1\n"), "too many for a packet");
    wrong(
        &format!("{good}s -t 0.26 -Hs 0 -Hd -2 -Ni 0 -Nx 5.00 -Ny 2.00 -Nz 0\n"),
        "line 2: it is of nam or of ns-2's wireless trace",
    );
    wrong(&format!("{good}+ 0.6 0 1 tcp\n"), "it has 5 fields");
    wrong(&format!("{good}+ 0.6 0 1 tcp 1 - 2 a.b.c.d.e.0 1.0 7 2\n"), "'a.b.c.d.e.0' is not an address");
    wrong(&format!("{good}{}\n", "x".repeat(5000)), "it has more than 4096 bytes");
    wrong(&format!("{good}+ 0.6 0 1 tcp 1 - 2 0.0 1.0 7 \u{1b}]0;x\n"), "is not a packet number");
    // The last line may be cut off.
    let (all, cut_off) = read(format!("{good}r 0.6 0 1 tc").as_bytes()).unwrap();
    assert!(cut_off && all.len() == 1);
    for foreign in ["", "hello\n", "{\"a\":1}\n", "\u{1e}{}"] {
        assert!(!Ns2Reader::<&[u8]>::recognises(foreign.as_bytes()), "{foreign}");
    }
}
