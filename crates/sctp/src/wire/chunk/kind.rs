//! Chunk types (IANA registry "SCTP Chunk Types").

/// DATA (RFC 9260 §3.3.1).
pub const DATA: u8 = 0;
/// INIT (RFC 9260 §3.3.2).
pub const INIT: u8 = 1;
/// INIT-ACK (RFC 9260 §3.3.3).
pub const INIT_ACK: u8 = 2;
/// SACK (RFC 9260 §3.3.4).
pub const SACK: u8 = 3;
/// HEARTBEAT (RFC 9260 §3.3.5).
pub const HEARTBEAT: u8 = 4;
/// HEARTBEAT-ACK (RFC 9260 §3.3.6).
pub const HEARTBEAT_ACK: u8 = 5;
/// ABORT (RFC 9260 §3.3.7).
pub const ABORT: u8 = 6;
/// SHUTDOWN (RFC 9260 §3.3.8).
pub const SHUTDOWN: u8 = 7;
/// SHUTDOWN-ACK (RFC 9260 §3.3.9).
pub const SHUTDOWN_ACK: u8 = 8;
/// ERROR (RFC 9260 §3.3.10).
pub const ERROR: u8 = 9;
/// COOKIE-ECHO (RFC 9260 §3.3.11).
pub const COOKIE_ECHO: u8 = 10;
/// COOKIE-ACK (RFC 9260 §3.3.12).
pub const COOKIE_ACK: u8 = 11;
/// ECNE (RFC 4960 appendix A; RFC 9260 §3.2 only reserves the number).
pub const ECNE: u8 = 12;
/// CWR (RFC 4960 appendix A), as [`ECNE`].
pub const CWR: u8 = 13;
/// SHUTDOWN-COMPLETE (RFC 9260 §3.3.13).
pub const SHUTDOWN_COMPLETE: u8 = 14;
/// AUTH (RFC 4895 §5.1).
pub const AUTH: u8 = 15;
/// NR-SACK (draft-natarajan-tsvwg-sctp-nrsack-08), the number that usrsctp, FreeBSD and Wireshark
/// use; IANA has assigned none.
pub const NR_SACK: u8 = 16;
/// DTLS (draft-ietf-tsvwg-sctp-dtls-chunk): a record that protects other chunks.
pub const DTLS: u8 = 0x41;
/// I-DATA (RFC 8260 §2.1).
pub const I_DATA: u8 = 64;
/// ASCONF-ACK (RFC 5061 §4.1.2).
pub const ASCONF_ACK: u8 = 0x80;
/// RE-CONFIG (RFC 6525 §3.1).
pub const RE_CONFIG: u8 = 0x82;
/// PAD (RFC 4820 §3).
pub const PAD: u8 = 0x84;
/// REDUNDANCY, our own number (decision 14): its highest bits tell who does not know it to skip it.
pub const REDUNDANCY: u8 = 0xb0;
/// SLICE, our own number (decision 17), skipped like [`REDUNDANCY`].
pub const SLICE: u8 = 0xb1;
/// TIMESTAMP, our own number (decision 21), skipped like [`REDUNDANCY`].
pub const TIMESTAMP: u8 = 0xb2;
/// TIMESTAMP-ECHO, our own number (decision 21), skipped like [`REDUNDANCY`].
pub const TIMESTAMP_ECHO: u8 = 0xb3;
/// FORWARD-TSN (RFC 3758 §3.2).
pub const FORWARD_TSN: u8 = 0xc0;
/// ASCONF (RFC 5061 §4.1.1).
pub const ASCONF: u8 = 0xc1;
/// I-FORWARD-TSN (RFC 8260 §2.3.1).
pub const I_FORWARD_TSN: u8 = 0xc2;

/// The RFC's name of a chunk type.
pub const fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        DATA => "DATA",
        INIT => "INIT",
        INIT_ACK => "INIT-ACK",
        SACK => "SACK",
        HEARTBEAT => "HEARTBEAT",
        HEARTBEAT_ACK => "HEARTBEAT-ACK",
        ABORT => "ABORT",
        SHUTDOWN => "SHUTDOWN",
        SHUTDOWN_ACK => "SHUTDOWN-ACK",
        ERROR => "ERROR",
        COOKIE_ECHO => "COOKIE-ECHO",
        COOKIE_ACK => "COOKIE-ACK",
        ECNE => "ECNE",
        CWR => "CWR",
        SHUTDOWN_COMPLETE => "SHUTDOWN-COMPLETE",
        AUTH => "AUTH",
        NR_SACK => "NR-SACK",
        I_DATA => "I-DATA",
        DTLS => "DTLS",
        ASCONF_ACK => "ASCONF-ACK",
        RE_CONFIG => "RE-CONFIG",
        PAD => "PAD",
        REDUNDANCY => "REDUNDANCY",
        SLICE => "SLICE",
        TIMESTAMP => "TIMESTAMP",
        TIMESTAMP_ECHO => "TIMESTAMP-ECHO",
        FORWARD_TSN => "FORWARD-TSN",
        ASCONF => "ASCONF",
        I_FORWARD_TSN => "I-FORWARD-TSN",
        _ => return None,
    })
}
