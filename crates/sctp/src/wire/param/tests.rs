use super::*;
use crate::wire::Place;

/// Asserts that `bytes`, written out by hand, are what `parameter` looks like on the wire, in both directions.
#[track_caller]
fn check(bytes: &[u8], parameter: Parameter<'_>) {
    let raw = Parameters::new(bytes).iter().next().expect("a parameter").expect("framed");
    assert_eq!(Parameter::parse(raw), Ok(parameter));
    let mut buf = vec![0xee];
    parameter.emit(&mut Writer::new(&mut buf));
    assert_eq!(&buf[1..], bytes);
}

#[track_caller]
fn refuse(bytes: &[u8], given: usize, needed: usize) {
    let raw = Parameters::new(bytes).iter().next().expect("a parameter").expect("framed");
    let place = Place::Parameter(raw.kind);
    assert_eq!(Parameter::parse(raw), Err(ParseError::Length { place, given, needed }));
}

#[test]
fn parameters_of_rfc_9260_are_laid_out_as_drawn() {
    check(&[0, 5, 0, 8, 192, 0, 2, 1], Parameter::Ipv4(Ipv4Addr::new(192, 0, 2, 1)));
    check(
        &[0, 6, 0, 20, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        Parameter::Ipv6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    );
    check(&[0, 7, 0, 7, 1, 2, 3, 0], Parameter::StateCookie(&[1, 2, 3]));
    check(&[0, 8, 0, 8, 0xc0, 0xff, 0, 4], Parameter::UnrecognizedParameter(&[0xc0, 0xff, 0, 4]));
    check(&[0, 9, 0, 8, 0, 0, 3, 0xe8], Parameter::CookiePreservative(1000));
    check(&[0, 11, 0, 6, b'a', 0, 0, 0], Parameter::HostName(b"a\0"));
    check(&[0, 12, 0, 8, 0, 5, 0, 6], Parameter::SupportedAddressTypes(Entries::new(&[0, 5, 0, 6])));
    check(&[0x80, 0x77, 0, 5, 9, 0, 0, 0], Parameter::Unknown { kind: 0x8077, value: &[9] });
}

#[test]
fn parameters_of_rfc_3758_4895_4960_9653_are_laid_out_as_drawn() {
    check(&[0x80, 0, 0, 4], Parameter::EcnCapable);
    refuse(&[0x80, 0, 0, 8, 0, 0, 0, 0], 8, 4);
    check(&[0xc0, 0, 0, 4], Parameter::ForwardTsnSupported);
    check(&[0x80, 2, 0, 8, 1, 2, 3, 4], Parameter::Random(&[1, 2, 3, 4]));
    check(&[0x80, 3, 0, 6, 0xc1, 0x80, 0, 0], Parameter::ChunkList(&[0xc1, 0x80]));
    check(&[0x80, 4, 0, 8, 0, 3, 0, 1], Parameter::HmacAlgorithms(Entries::new(&[0, 3, 0, 1])));
    check(&[0x80, 1, 0, 8, 0, 0, 0, 1], Parameter::ZeroChecksumAcceptable(1));
}

#[test]
fn parameters_of_rfc_5061_are_laid_out_as_its_examples() {
    let address = Address::V4(Ipv4Addr::new(192, 0, 2, 1));
    check(
        &[0xc0, 1, 0, 16, 1, 2, 0x34, 0x74, 0, 5, 0, 8, 192, 0, 2, 1],
        Parameter::AddIp { correlation: 0x0102_3474, address },
    );
    check(
        &[0xc0, 2, 0, 16, 1, 2, 0x34, 0x76, 0, 5, 0, 8, 192, 0, 2, 1],
        Parameter::DeleteIp { correlation: 0x0102_3476, address },
    );
    check(
        &[0xc0, 4, 0, 16, 1, 2, 0x34, 0x79, 0, 5, 0, 8, 192, 0, 2, 1],
        Parameter::SetPrimary { correlation: 0x0102_3479, address },
    );
    let mut wildcard = vec![0xc0, 1, 0, 28, 0, 0, 0, 1, 0, 6, 0, 20];
    wildcard.resize(28, 0);
    check(&wildcard, Parameter::AddIp { correlation: 1, address: Address::V6(Ipv6Addr::UNSPECIFIED) });
    check(&[0xc0, 5, 0, 8, 1, 2, 0x34, 0x74], Parameter::SuccessIndication { correlation: 0x0102_3474 });
    check(&[0xc0, 6, 0, 8, 0, 0, 0, 7], Parameter::AdaptationLayer(7));
    check(&[0x80, 8, 0, 7, 0xc0, 0x40, 0xc1, 0], Parameter::SupportedExtensions(&[0xc0, 0x40, 0xc1]));
    // §4.3.1: the answer to the deletion of the last address.
    let answer =
        [0xc0, 3, 0, 28, 1, 2, 0x34, 0x76, 0, 0xa0, 0, 20, 0xc0, 2, 0, 16, 1, 2, 0x34, 0x76, 0, 5, 0, 8, 192, 0, 2, 1];
    let causes = Causes::new(&answer[8..]);
    check(&answer, Parameter::ErrorCauseIndication { correlation: 0x0102_3476, causes });
}

#[test]
fn values_of_the_wrong_length_are_refused() {
    refuse(&[0, 5, 0, 7, 1, 2, 3], 7, 8);
    refuse(&[0, 5, 0, 9, 1, 2, 3, 4, 5], 9, 8);
    refuse(&[0x80, 4, 0, 7, 0, 3, 0], 7, 8);
    refuse(&[0xc0, 0, 0, 8, 0, 0, 0, 0], 8, 4);
    refuse(&[0xc0, 5, 0, 4], 4, 8);
    refuse(&[0xc0, 1, 0, 8, 0, 0, 0, 1], 8, 16);
    refuse(&[0xc0, 1, 0, 20, 0, 0, 0, 1, 0, 5, 0, 8, 1, 2, 3, 4, 0, 0, 0, 0], 20, 16);
}

#[test]
fn a_request_whose_address_is_none_is_refused() {
    let bytes = [0xc0, 4, 0, 12, 0, 0, 0, 1, 0, 11, 0, 4];
    let raw = Parameters::new(&bytes).iter().next().expect("a parameter").expect("framed");
    let error = ParseError::Unexpected { place: Place::Parameter(0xc004), kind: 11 };
    assert_eq!(Parameter::parse(raw), Err(error));
}
