//! What each fuzz target does with one input.
//!
//! Programs for libFuzzer are made of them in `fuzz/` (`tools/fuzz.sh`). `make test` runs all inputs that earlier
//! fuzzing kept, and new ones that differ from those in a few places (`tests/it`).

mod association;
mod connection;
mod many;
mod tap;

/// Calls a macro with the names of all targets, which are those of their modules.
#[macro_export]
macro_rules! each_target {
    ($then:ident) => {
        $then! {
            dccp_connection, dccp_endpoint_of_many, dccp_packet, endpoint_of_many, fec_decoder, link_parse, media_input, relay, rist_endpoint, rtmp_connection, rtmp_publisher, rtp_receiver, scenario, sctp_association, sctp_packet, secure_association, secure_connection, secure_guard, secure_record, session_message, srt_endpoint, srt_packet, ticket, trace_reader, ts_demux, tunnel, video
        }
    };
}

macro_rules! modules {
    ($($name:ident),*) => {
        $(pub mod $name;)*
    };
}
each_target!(modules);
