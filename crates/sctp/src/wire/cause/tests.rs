use super::*;
use crate::wire::Place;

/// Asserts that `bytes`, written out by hand, are what `cause` looks like on the wire, in both
/// directions, and how it prints.
#[track_caller]
fn check(bytes: &[u8], cause: Cause<'_>, text: &str) {
    let raw = Causes::new(bytes).iter().next().expect("a cause").expect("framed");
    assert_eq!(Cause::parse(raw), Ok(cause));
    let mut buf = vec![0xee];
    cause.emit(&mut Writer::new(&mut buf));
    assert_eq!(&buf[1..], bytes);
    assert_eq!(cause.to_string(), text);
}

#[test]
fn causes_of_rfc_9260_are_laid_out_as_drawn() {
    check(&[0, 1, 0, 8, 1, 2, 0, 0], Cause::InvalidStream { stream: 258 }, "Invalid Stream Identifier 258");
    check(
        &[0, 2, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0],
        Cause::MissingParameters(Entries::new(&[0, 7])),
        "Missing Mandatory Parameter 7",
    );
    check(&[0, 3, 0, 8, 0, 0, 0, 9], Cause::StaleCookie { staleness: 9 }, "Stale Cookie, 9 µs too old");
    check(&[0, 4, 0, 4], Cause::OutOfResource, "Out of Resource");
    check(&[0, 5, 0, 8, 0, 11, 0, 4], Cause::UnresolvableAddress(&[0, 11, 0, 4]), "Unresolvable Address");
    check(&[0, 6, 0, 8, 0x42, 0, 0, 4], Cause::UnrecognizedChunk(&[0x42, 0, 0, 4]), "Unrecognized Chunk Type 0x42");
    check(&[0, 7, 0, 4], Cause::InvalidMandatoryParameter, "Invalid Mandatory Parameter");
    check(
        &[0, 8, 0, 9, 0xc0, 0xff, 0, 5, 1, 0, 0, 0],
        Cause::UnrecognizedParameters(Parameters::new(&[0xc0, 0xff, 0, 5, 1, 0, 0, 0])),
        "Unrecognized Parameters [0xc0ff]",
    );
    check(&[0, 9, 0, 8, 0, 0, 0, 1], Cause::NoUserData { tsn: 1 }, "No User Data in TSN 1");
    check(&[0, 10, 0, 4], Cause::CookieWhileShuttingDown, "Cookie Received While Shutting Down");
    check(
        &[0, 11, 0, 12, 0, 5, 0, 8, 10, 0, 0, 1],
        Cause::RestartWithNewAddresses(Parameters::new(&[0, 5, 0, 8, 10, 0, 0, 1])),
        "Restart of an Association with New Addresses [0x0005]",
    );
    check(&[0, 12, 0, 4], Cause::UserInitiatedAbort(b""), "User-Initiated Abort");
    check(
        &[0, 13, 0, 9, b'b', b'a', b'd', 0x1b, 0xff, 0, 0, 0],
        Cause::ProtocolViolation(b"bad\x1b\xff"),
        "Protocol Violation: \"bad\\x1b\\xff\"",
    );
    check(
        &[0x77, 0, 0, 5, 1, 0, 0, 0],
        Cause::Unknown { kind: 0x7700, value: &[1] },
        "Unknown error cause 0x7700 with 1 bytes",
    );
}

#[test]
fn causes_of_rfc_5061_and_4895_are_laid_out_as_drawn() {
    let request = &[0xc0, 6, 0, 4];
    let with = |code| [0, code, 0, 8, 0xc0, 6, 0, 4];
    check(&with(0xa0), Cause::DeleteLastAddress(request), "Request to Delete Last Remaining IP Address");
    check(&with(0xa1), Cause::ResourceShortage(request), "Operation Refused Due to Resource Shortage");
    check(&with(0xa2), Cause::DeleteSourceAddress(request), "Request to Delete Source IP Address");
    check(&[0, 0xa3, 0, 4], Cause::IllegalAsconfAck, "Association Aborted Due to Illegal ASCONF-ACK");
    check(&with(0xa4), Cause::NoAuthorization(request), "Request Refused - No Authorization");
    check(&[1, 5, 0, 6, 0, 2, 0, 0], Cause::UnsupportedHmac { hmac_id: 2 }, "Unsupported HMAC Identifier 2");
}

#[test]
fn information_of_the_wrong_length_is_refused() {
    for (bytes, given, needed) in [
        (&[0, 1, 0, 6, 0, 0][..], 6, 8),
        (&[0, 4, 0, 5, 0], 5, 4),
        (&[0, 2, 0, 10, 0, 0, 0, 2, 0, 7], 10, 12),
        (&[0, 2, 0, 12, 0, 0, 0, 1, 0, 7, 0, 8], 12, 10),
        (&[1, 5, 0, 8, 0, 1, 0, 0], 8, 6),
    ] {
        let raw = Causes::new(bytes).iter().next().expect("a cause").expect("framed");
        let place = Place::Cause(raw.kind);
        assert_eq!(Cause::parse(raw), Err(ParseError::Length { place, given, needed }));
    }
}

#[test]
fn a_count_of_missing_parameters_beyond_all_memory_is_refused() {
    let raw = Causes::new(&[0, 2, 0, 8, 0xff, 0xff, 0xff, 0xff]).iter().next().expect("a cause").expect("framed");
    assert!(matches!(Cause::parse(raw), Err(ParseError::Length { given: 8, .. })));
}
