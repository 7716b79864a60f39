//! Any bytes as an SCTP packet: everything in it is looked at, and what was read is written back the same.

use braidcast_core::Writer;
use braidcast_sctp::wire::chunk::Chunk;
use braidcast_sctp::wire::{Cause, Causes, Header, Packet, Parameter, Parameters, Times, begin, seal};

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = Packet::parse(bytes);
    // A fuzzer does not guess checksums: give it the right one.
    let mut sealed = bytes.to_vec();
    if sealed.len() < Header::LEN || sealed.len() > Packet::MAX {
        return;
    }
    seal(&mut sealed);
    let packet = Packet::parse(&sealed).expect("length and checksum are right");
    for chunk in packet.chunks().map_while(Result::ok).filter_map(|raw| Chunk::parse(raw).ok()) {
        look_at(&chunk);
        assert_same_when_written(packet.header, &chunk);
    }
}

fn look_at(chunk: &Chunk<'_>) {
    let _ = chunk.to_string();
    match chunk {
        Chunk::Data(c) if c.timed => times(c.payload),
        Chunk::IData(c) if c.timed => times(c.payload),
        Chunk::Init(c) | Chunk::InitAck(c) => parameters(c.parameters),
        Chunk::Asconf(c) => parameters(c.parameters),
        Chunk::AsconfAck(c) => parameters(c.parameters),
        Chunk::ReConfig(c) => parameters(c.parameters),
        Chunk::Abort(c) => causes(c.causes),
        Chunk::Error(c) => causes(c.causes),
        _ => {}
    }
}

/// What is read of a message with times is written back the same.
fn times(message: &[u8]) {
    let Ok((payload, times)) = Times::split(message) else { return };
    let mut written = payload.to_vec();
    times.emit(&mut Writer::new(&mut written));
    assert_eq!(written, message);
}

fn parameters(list: Parameters<'_>) {
    for parameter in list.iter().map_while(Result::ok).filter_map(|raw| Parameter::parse(raw).ok()) {
        if let Parameter::ErrorCauseIndication { causes: list, .. } = parameter {
            causes(list);
        }
    }
}

fn causes(list: Causes<'_>) {
    for cause in list.iter().map_while(Result::ok).filter_map(|raw| Cause::parse(raw).ok()) {
        let _ = cause.to_string();
        if let Cause::UnrecognizedParameters(list) | Cause::RestartWithNewAddresses(list) = cause {
            parameters(list);
        }
    }
}

fn assert_same_when_written(header: Header, chunk: &Chunk<'_>) {
    let mut written = Vec::new();
    begin(&mut written, header);
    chunk.emit(&mut Writer::new(&mut written));
    seal(&mut written);
    let again = Packet::parse(&written).expect("written whole");
    let raw = again.chunks().next().expect("one chunk").expect("framed");
    match (Chunk::parse(raw), chunk) {
        // Where it stood in its packet is part of an unknown chunk.
        (Ok(Chunk::Unknown(again)), Chunk::Unknown(raw)) => assert_eq!(again.bytes, raw.bytes),
        (again, chunk) => assert_eq!(again.as_ref(), Ok(chunk)),
    }
}
