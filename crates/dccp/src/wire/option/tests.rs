use super::*;
use core::time::Duration;

const ACK: Kind = Kind::Ack { ack: 100 };

fn list<'a>(bytes: &'a [u8], on: Kind) -> Vec<Option<Opt<'a>>> {
    Options::new(bytes, on).iter().map(|it| it.expect("no dangling Mandatory").parse()).collect()
}

fn emitted(f: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buf = Vec::new();
    f(&mut Writer::new(&mut buf));
    buf
}

/// The encodings of RFC 4340 §6.5, written and read.
#[test]
fn feature_options_are_the_bytes_of_rfc_4340_6_5() {
    let l = Side::Location;
    type Case<'a> = (&'a [u8], bool, Side, u8, &'a [u8]);
    let cases: [Case<'_>; 7] = [
        (&[32, 5, 1, 2, 3], false, l, 1, &[2, 3]),
        (&[32, 9, 3, 0, 0, 0, 0, 4, 0], false, l, 3, &[0, 0, 0, 0, 4, 0]),
        (&[33, 6, 1, 2, 2, 3], true, l, 1, &[2, 2, 3]),
        (&[33, 3, 126], true, l, 126, &[]),
        (&[34, 5, 1, 3, 2], false, Side::Remote, 1, &[3, 2]),
        (&[35, 6, 1, 2, 3, 2], true, Side::Remote, 1, &[2, 3, 2]),
        (&[35, 3, 126], true, Side::Remote, 126, &[]),
    ];
    for (bytes, confirm, side, feature, values) in cases {
        let option = FeatureOption { confirm, side, feature, values };
        assert_eq!(list(bytes, ACK), [Some(Opt::Feature(option))]);
        assert_eq!(emitted(|w| option.emit(w)), bytes);
        assert_eq!(option.size(), bytes.len());
    }
}

/// The example of RFC 4340 §11.4: 0,192,3,64,5.
#[test]
fn ack_vector_is_the_example_of_rfc_4340_11_4() {
    use PacketState::{Marked, Missing, Received};
    let bytes = [38, 7, 0, 192, 3, 64, 5];
    let Some(Opt::AckVector(vector)) = list(&bytes, ACK)[0] else { panic!("no ack vector") };
    let runs: Vec<_> = vector.runs().map(|run| (run.state, run.len)).collect();
    assert_eq!(runs, [(Received, 1), (Missing, 1), (Received, 4), (Marked, 1), (Received, 6)]);
    assert!(vector.runs().map(Run::byte).eq([0, 192, 3, 64, 5]));
    assert_eq!(emitted(|w| vector.emit(w)), bytes);
    assert_eq!(emitted(|w| AckVector::new(true, &[0]).emit(w)), [39, 3, 0]);
}

/// The example of RFC 4340 §11.7: 0,160,3,162.
#[test]
fn data_dropped_is_the_example_of_rfc_4340_11_7() {
    let bytes = [40, 6, 0, 160, 3, 162];
    let options = Options::new(&bytes, ACK);
    let buffer = Some(DropCode::ReceiveBuffer);
    let runs: Vec<_> = options.dropped_runs().map(|run| (run.code, run.len)).collect();
    assert_eq!(runs, [(None, 1), (buffer, 1), (None, 4), (buffer, 3)]);
    assert!(options.dropped_runs().map(DropRun::byte).eq([0, 160, 3, 162]));
}

#[test]
fn times_and_counts_take_the_smallest_form_and_come_back() {
    assert_eq!(emitted(|w| emit_elapsed(0x1234, w)), [43, 4, 0x12, 0x34]);
    assert_eq!(emitted(|w| emit_elapsed(0x1_0000, w)), [43, 6, 0, 1, 0, 0]);
    assert_eq!(emitted(|w| emit_timestamp(Instant::from_micros(0x10), w)), [41, 6, 0, 0, 0, 1]);
    for (elapsed, len) in [(0, 6), (1, 8), (0xffff, 8), (0x1_0000, 10)] {
        let bytes = emitted(|w| emit_timestamp_echo(7, elapsed, w));
        assert_eq!(bytes.len(), len);
        assert_eq!(list(&bytes, ACK), [Some(Opt::TimestampEcho { echo: 7, elapsed })]);
    }
    for (count, len) in [(0, 3), (255, 3), (256, 4), ((1 << 48) - 1, 8)] {
        let bytes = emitted(|w| emit_ndp_count(count, w));
        assert_eq!(bytes.len(), len);
        assert_eq!(list(&bytes, ACK), [Some(Opt::NdpCount(count))]);
    }
    assert_eq!(to_units(Duration::from_millis(655)), 65_500);
    assert_eq!(to_units(Duration::from_secs(100_000)), u32::MAX);
    assert_eq!(from_units(65_500), Duration::from_millis(655));
}
use braidcast_core::Instant;

#[test]
fn loss_intervals_are_the_example_of_rfc_4342_8_6_2() {
    // 193,39,2, 0,0,10, 128,0,1, 0,0,10, 0,0,8, 0,0,5, 0,0,10, … : its first two intervals.
    let bytes = [193, 21, 2, 0, 0, 10, 128, 0, 1, 0, 0, 10, 0, 0, 8, 0, 0, 5, 0, 0, 10];
    let Some(Opt::Ccid(raw)) = list(&bytes, ACK)[0] else { panic!("not a CCID option") };
    let Some(Ccid3Option::LossIntervals(intervals)) = Ccid3Option::parse(raw) else { panic!("no intervals") };
    let all: Vec<_> = intervals.iter().collect();
    assert_eq!(intervals.skip, 2);
    assert_eq!(all[0], LossInterval { lossless: 10, nonce: true, loss: 1, data: 10 });
    assert_eq!(all[1], LossInterval { lossless: 8, nonce: false, loss: 5, data: 10 });
    let again: Vec<u8> = all.iter().flat_map(|it| it.to_bytes()).collect();
    let option = Ccid3Option::LossIntervals(LossIntervals::new(2, &again).unwrap());
    assert_eq!(emitted(|w| option.emit(w)), bytes);
    for option in [Ccid3Option::LossEventRate(u32::MAX), Ccid3Option::ReceiveRate(12_500)] {
        let bytes = emitted(|w| option.emit(w));
        let Some(Opt::Ccid(raw)) = list(&bytes, ACK)[0] else { panic!("not a CCID option") };
        assert_eq!(Ccid3Option::parse(raw), Some(option));
    }
}

#[test]
fn a_nonsensical_length_ends_the_options_and_an_unknown_type_does_not() {
    assert_eq!(list(&[2, 45, 3, 9, 2, 41, 1, 2], ACK), [Some(Opt::SlowReceiver), None, Some(Opt::SlowReceiver)]);
    assert_eq!(list(&[2, 41, 7, 0, 0, 0, 1], ACK), [Some(Opt::SlowReceiver)]);
    // A wrong length for the type makes that option invalid and no other.
    assert_eq!(list(&[44, 4, 0, 0, 2], ACK), [None, Some(Opt::SlowReceiver)]);
}

#[test]
fn mandatory_binds_to_the_next_option_and_may_not_dangle() {
    let mandatory = |bytes: &'static [u8], on| -> Vec<_> {
        Options::new(bytes, on).iter().map(|it| it.map(|listed| listed.mandatory)).collect()
    };
    assert_eq!(mandatory(&[1, 2, 2], ACK), [Ok(true), Ok(false)]);
    assert_eq!(mandatory(&[1, 0, 2], ACK), [Ok(false)], "Mandatory Padding is two bytes of padding");
    assert_eq!(mandatory(&[2, 1], ACK), [Ok(false), Err(DanglingMandatory)]);
    assert_eq!(mandatory(&[1, 1, 2], ACK), [Err(DanglingMandatory)]);
    assert_eq!(mandatory(&[1, 2, 1], Kind::Data), [Ok(false)], "on Data it is ignored");
}

#[test]
fn options_are_ignored_where_they_have_no_meaning() {
    let bytes = [34, 4, 1, 2, 38, 3, 0, 40, 3, 0, 43, 4, 0, 1, 36, 3, 9, 35, 3, 9, 37, 3, 1];
    assert_eq!(list(&bytes, Kind::Data), [Some(Opt::NdpCount(1))]);
    let on_request = list(&bytes, Kind::Request { service: crate::wire::ServiceCode(1) });
    let understood: Vec<bool> = on_request.iter().map(Option::is_some).collect();
    assert_eq!(understood, [true, false, false, false, false, false, true]);
    assert!(list(&bytes, ACK).iter().all(Option::is_some));
}

/// The example of RFC 5622 §8.7.1.
#[test]
fn dropped_packets_is_the_example_of_rfc_5622_8_7_1() {
    let bytes = [195, 14, 0, 0, 1, 0, 0, 4, 0, 0, 1, 0, 0, 0];
    let Some(Opt::Ccid(raw)) = list(&bytes, ACK)[0] else { panic!("no option of a CCID") };
    let option = DroppedPackets::parse(raw).expect("Dropped Packets");
    assert_eq!(option.iter().collect::<Vec<_>>(), [1, 4, 1, 0]);
    assert_eq!(emitted(|w| option.emit(w)), bytes);
    assert_eq!(DroppedPackets::to_bytes(u64::MAX), [255, 255, 255]);
    assert_eq!(DroppedPackets::new(&[0, 0]), None);
}
