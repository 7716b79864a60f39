//! Any bytes as a DCCP packet: everything in it is looked at, and what was read is written back the same.

use braidcast_core::Writer;
use braidcast_dccp::wire::option::{AckVector, Ccid3Option, DataDropped};
use braidcast_dccp::wire::{Builder, Checksum, Opt, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let ip = Checksum::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
    let _ = Packet::parse(bytes, ip);
    let Ok(packet) = Packet::parse(bytes, Checksum::Udp) else { return };
    for listed in packet.options.iter().flatten() {
        if let Some(option) = listed.parse() {
            look_at(&option);
        }
    }
    let _ = (packet.options.ack_vector_runs().count(), packet.options.dropped_runs().count());
    // Reserved bits are lost, and so are they in the second reading; all else is kept.
    for checksum in [Checksum::Udp, ip] {
        let mut written = Vec::new();
        let mut builder = Builder::begin(&mut written, &packet.header);
        builder.options().bytes(packet.options.as_bytes());
        builder.finish(packet.payload, checksum);
        let again = Packet::parse(&written, checksum).expect("written whole");
        assert_eq!((again.header, again.options, again.payload), (packet.header, packet.options, packet.payload));
    }
}

fn look_at(option: &Opt<'_>) {
    let mut buf = Vec::new();
    let w = &mut Writer::new(&mut buf);
    match option {
        Opt::Feature(it) => it.emit(w),
        Opt::AckVector(it) => {
            let bytes: Vec<u8> = it.runs().map(|run| run.byte()).collect();
            AckVector::new(it.nonce, &bytes).emit(w);
        }
        Opt::DataDropped(it) => {
            let bytes: Vec<u8> = it.runs().map(|run| run.byte()).collect();
            assert_eq!(&DataDropped::new(&bytes), it);
        }
        Opt::Ccid(raw) => {
            if let Some(it) = Ccid3Option::parse(*raw) {
                it.emit(w);
            }
        }
        _ => {}
    }
}
