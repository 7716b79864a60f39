use braidcast_core::Rng;
use proptest::{collection::vec, prelude::*};

use super::*;

/// The parameters `list`, one after the other.
fn parameters(list: &[Parameter<'_>]) -> Vec<u8> {
    let mut buf = Vec::new();
    list.iter().for_each(|parameter| parameter.emit(&mut Writer::new(&mut buf)));
    buf
}

fn parse(bytes: &[u8]) -> Result<Offer, Refusal<'_>> {
    Offer::parse(Parameters::new(bytes))
}

fn emitted(offer: &Offer) -> Vec<u8> {
    let mut buf = Vec::new();
    offer.emit(&mut Writer::new(&mut buf));
    buf
}

const RANDOM: Parameter<'_> = Parameter::Random(&[7; 32]);
const SHA1_ONLY: Parameter<'_> = Parameter::HmacAlgorithms(Entries::new(&[0, 1]));

#[test]
fn our_offer_is_laid_out_as_the_rfcs_draw_it() {
    let offer = Offer::new(&mut Rng::from_seed(1), true, false);
    let with_ecn = emitted(&Offer { ecn: true, ..offer });
    assert_eq!(with_ecn[4..8], [0x80, 0, 0, 4], "ECN Capable");
    assert_eq!(parse(&with_ecn), Ok(Offer { ecn: true, ..offer }));
    let with_times = emitted(&Offer { timed: true, ..offer });
    assert_eq!(with_times[4..8], [0x8f, 1, 0, 4], "Timed Messages");
    assert_eq!(parse(&with_times), Ok(Offer { timed: true, ..offer }));
    let bytes = emitted(&offer);
    assert_eq!(bytes[..4], [0xc0, 0, 0, 4], "Forward-TSN-Supported");
    assert_eq!(bytes[4..16], [0x80, 8, 0, 10, 64, 0xc2, 0xc0, 0xc1, 0x80, 15, 0, 0], "Supported Extensions");
    assert_eq!(bytes[16..20], [0x80, 2, 0, 36], "RANDOM");
    assert_ne!(bytes[20..52], [0; 32]);
    assert_eq!(bytes[52..60], [0x80, 3, 0, 6, 0xc1, 0x80, 0, 0], "CHUNKS");
    assert_eq!(bytes[60..], [0x80, 4, 0, 8, 0, 3, 0, 1], "HMAC-ALGO, SHA-256 first");
    assert_eq!(parse(&bytes), Ok(offer));
}

#[test]
fn two_of_us_agree_on_everything_and_a_plain_peer_on_nothing() {
    let all = |seed| Offer {
        ecn: true,
        redundancy: true,
        slices: true,
        timestamps: true,
        timed: true,
        reconfiguration: true,
        ..Offer::new(&mut Rng::from_seed(seed), true, true)
    };
    let [a, b] = [1, 2].map(all);
    assert_ne!(a, b, "random numbers differ");
    assert_eq!(
        Agreed::new(&a, &b),
        Agreed {
            interleaving: true,
            forward_tsn: true,
            nr_sack: true,
            ecn: true,
            redundancy: true,
            slices: true,
            timestamps: true,
            timed: true,
            reconfiguration: true,
            asconf: true,
            auth: true
        }
    );
    let plain = parse(&[]).expect("nothing to refuse");
    assert_eq!(plain, Offer::default());
    assert_eq!(Agreed::new(&a, &plain), Agreed::default());
}

#[test]
fn giving_up_data_needs_the_chunk_that_fits_the_data_chunk() {
    let ours = Offer::new(&mut Rng::from_seed(1), true, false);
    let old = parse(&[0xc0, 0, 0, 4]).expect("forward tsn only");
    assert_eq!(Agreed::new(&ours, &old), Agreed { forward_tsn: true, ..Agreed::default() });
    let by_extension = parse(&[0x80, 8, 0, 5, 0xc0]).expect("forward tsn as an extension");
    assert_eq!(by_extension, old);
    // I-DATA and FORWARD-TSN, but not I-FORWARD-TSN: RFC 8260 §2.3.1 rules partial reliability out.
    let mixed = parse(&[0x80, 8, 0, 6, 64, 0xc0]).expect("mixed");
    assert_eq!(Agreed::new(&ours, &mixed), Agreed { interleaving: true, ..Agreed::default() });
    let without = Offer::new(&mut Rng::from_seed(1), false, false);
    assert_eq!(Agreed::new(&without, &mixed), Agreed { forward_tsn: true, ..Agreed::default() });
}

#[test]
fn asconf_without_authentication_is_refused() {
    let asconf = Parameter::SupportedExtensions(&[ASCONF, ASCONF_ACK, AUTH]);
    for list in [&[asconf][..], &[asconf, RANDOM], &[asconf, SHA1_ONLY]] {
        assert_eq!(parse(&parameters(list)), Err(Refusal::AsconfWithoutAuth));
    }
    let unknown_hash = Parameter::HmacAlgorithms(Entries::new(&[0, 2]));
    assert_eq!(parse(&parameters(&[asconf, RANDOM, unknown_hash])), Err(Refusal::AsconfWithoutAuth));
    let offer = parameters(&[asconf, RANDOM, SHA1_ONLY]);
    assert!(parse(&offer).is_ok_and(|offer| offer.asconf));
    let half = parameters(&[Parameter::SupportedExtensions(&[ASCONF]), RANDOM, SHA1_ONLY]);
    assert!(parse(&half).is_ok_and(|offer| !offer.asconf), "both chunks are needed");
}

#[test]
fn what_must_be_authenticated_is_what_is_listed_but_for_the_exceptions() {
    let list = parameters(&[Parameter::ChunkList(&[0, INIT, INIT_ACK, AUTH, SHUTDOWN_COMPLETE, 0x55])]);
    let offer = parse(&list).expect("fine");
    let demanded: Vec<u8> = (0..=u8::MAX).filter(|&kind| offer.demands_auth(kind)).collect();
    assert_eq!(demanded, [0, 0x55, ASCONF_ACK, ASCONF]);
}

#[test]
fn parameters_too_long_or_twice_are_refused() {
    for given in [0, 31, 33, 300] {
        let number = vec![1; given];
        assert_eq!(parse(&parameters(&[Parameter::Random(&number)])), Err(Refusal::RandomLength { given }));
    }
    let kinds: Vec<u8> = (0..33).collect();
    assert!(parse(&parameters(&[Parameter::ChunkList(&kinds[..32])])).is_ok());
    let long = parameters(&[Parameter::ChunkList(&kinds)]);
    assert_eq!(parse(&long), Err(Refusal::TooLong { kind: kind::CHUNK_LIST }));
    let longest = parameters(&[Parameter::ChunkList(&[0; 300])]);
    assert_eq!(parse(&longest), Err(Refusal::TooLong { kind: kind::CHUNK_LIST }));
    assert!(parse(&parameters(&[Parameter::HmacAlgorithms(Entries::new(&[0; 16]))])).is_ok());
    let long = parameters(&[Parameter::HmacAlgorithms(Entries::new(&[0; 18]))]);
    assert_eq!(parse(&long), Err(Refusal::TooLong { kind: kind::HMAC_ALGORITHMS }));
    let twice = parameters(&[RANDOM, SHA1_ONLY, SHA1_ONLY]);
    assert_eq!(parse(&twice), Err(Refusal::Twice { kind: kind::HMAC_ALGORITHMS }));
}

#[test]
fn a_host_name_is_refused_with_the_name_in_the_cause() {
    let bytes = parameters(&[Parameter::ForwardTsnSupported, Parameter::HostName(b"here\0")]);
    let refusal = parse(&bytes).expect_err("host name");
    let mut cause = Vec::new();
    refusal.emit(&mut Writer::new(&mut cause));
    assert_eq!(cause, [0, 5, 0, 13, 0, 11, 0, 9, b'h', b'e', b'r', b'e', 0, 0, 0, 0]);
    cause.clear();
    Refusal::AsconfWithoutAuth.emit(&mut Writer::new(&mut cause));
    assert_eq!(cause[..2], [0, 13], "Protocol Violation");
}

#[test]
fn unknown_parameters_are_reported_or_stop_the_rest_by_their_two_highest_bits() {
    let unknown = |kind| Parameter::Unknown { kind, value: &[9] };
    let bytes =
        parameters(&[unknown(0x8abc), unknown(0xcabc), Parameter::ForwardTsnSupported, unknown(0x4abc), RANDOM]);
    let offer = parse(&bytes).expect("fine");
    assert_eq!(offer, Offer { forward_tsn: true, ..Offer::default() }, "RANDOM stands after a stop");
    assert_eq!(recognized(Parameters::new(&bytes)).count(), 1);
    let report = Unrecognized::new(Parameters::new(&bytes));
    let mut out = Vec::new();
    report.emit_parameters(&mut Writer::new(&mut out));
    let both = [[0, 8, 0, 9, 0xca, 0xbc, 0, 5, 9, 0, 0, 0], [0, 8, 0, 9, 0x4a, 0xbc, 0, 5, 9, 0, 0, 0]];
    assert_eq!(out, both.as_flattened());
    out.clear();
    report.emit_cause(&mut Writer::new(&mut out));
    assert_eq!(out, [0, 8, 0, 17, 0xca, 0xbc, 0, 5, 9, 0, 0, 0, 0x4a, 0xbc, 0, 5, 9, 0, 0, 0]);

    let silent = parameters(&[unknown(0x8abc), unknown(0x3abc), unknown(0xcabc)]);
    let report = Unrecognized::new(Parameters::new(&silent));
    assert!(report.is_empty());
    out.clear();
    report.emit_cause(&mut Writer::new(&mut out));
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn no_bytes_do_harm_and_what_is_read_is_written_again(
        list in vec((prop::sample::select(vec![11u16, 0x8002, 0x8003, 0x8004, 0x8008, 0xc000, 0xc0ff, 0x40ff]),
                     vec(prop_oneof![any::<u8>(), prop::sample::select(vec![64, 0x80, 0xb0, 0xc0, 0xc1, 0xc2])], 0..36)), 0..8),
        cut in 0usize..4,
    ) {
        let mut bytes = Vec::new();
        for (kind, value) in &list {
            Parameter::Unknown { kind: *kind, value }.emit(&mut Writer::new(&mut bytes));
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        match parse(&bytes) {
            Ok(offer) => {
                let again = emitted(&offer);
                prop_assert!(again.len() <= Offer::MAX_EMITTED);
                prop_assert_eq!(parse(&again), Ok(offer));
            }
            Err(refusal) => refusal.emit(&mut Writer::new(&mut Vec::new())),
        }
        let mut out = Vec::new();
        Unrecognized::new(Parameters::new(&bytes)).emit_parameters(&mut Writer::new(&mut out));
        prop_assert!(out.len() <= Unrecognized::MAX);
        out.clear();
        Unrecognized::new(Parameters::new(&bytes)).emit_cause(&mut Writer::new(&mut out));
        prop_assert!(out.len() <= Unrecognized::MAX);
    }
}
