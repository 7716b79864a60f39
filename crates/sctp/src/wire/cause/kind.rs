//! Error cause codes (IANA registry "SCTP Error Cause Codes").

/// Invalid Stream Identifier (RFC 9260 §3.3.10.1).
pub const INVALID_STREAM: u16 = 1;
/// Missing Mandatory Parameter (RFC 9260 §3.3.10.2).
pub const MISSING_PARAMETERS: u16 = 2;
/// Stale Cookie (RFC 9260 §3.3.10.3).
pub const STALE_COOKIE: u16 = 3;
/// Out of Resource (RFC 9260 §3.3.10.4).
pub const OUT_OF_RESOURCE: u16 = 4;
/// Unresolvable Address (RFC 9260 §3.3.10.5).
pub const UNRESOLVABLE_ADDRESS: u16 = 5;
/// Unrecognized Chunk Type (RFC 9260 §3.3.10.6).
pub const UNRECOGNIZED_CHUNK: u16 = 6;
/// Invalid Mandatory Parameter (RFC 9260 §3.3.10.7).
pub const INVALID_MANDATORY_PARAMETER: u16 = 7;
/// Unrecognized Parameters (RFC 9260 §3.3.10.8).
pub const UNRECOGNIZED_PARAMETERS: u16 = 8;
/// No User Data (RFC 9260 §3.3.10.9).
pub const NO_USER_DATA: u16 = 9;
/// Cookie Received While Shutting Down (RFC 9260 §3.3.10.10).
pub const COOKIE_WHILE_SHUTTING_DOWN: u16 = 10;
/// Restart of an Association with New Addresses (RFC 9260 §3.3.10.11).
pub const RESTART_WITH_NEW_ADDRESSES: u16 = 11;
/// User-Initiated Abort (RFC 9260 §3.3.10.12).
pub const USER_INITIATED_ABORT: u16 = 12;
/// Protocol Violation (RFC 9260 §3.3.10.13).
pub const PROTOCOL_VIOLATION: u16 = 13;
/// Request to Delete Last Remaining IP Address (RFC 5061 §4.3.1).
pub const DELETE_LAST_ADDRESS: u16 = 0x00a0;
/// Operation Refused Due to Resource Shortage (RFC 5061 §4.3.2).
pub const RESOURCE_SHORTAGE: u16 = 0x00a1;
/// Request to Delete Source IP Address (RFC 5061 §4.3.3).
pub const DELETE_SOURCE_ADDRESS: u16 = 0x00a2;
/// Association Aborted Due to Illegal ASCONF-ACK (RFC 5061 §4.3.4).
pub const ILLEGAL_ASCONF_ACK: u16 = 0x00a3;
/// Request Refused - No Authorization (RFC 5061 §4.3.5).
pub const NO_AUTHORIZATION: u16 = 0x00a4;
/// Missing DTLS Chunk Support, and up to 103 what else keeps keys from being agreed on
/// (draft-ietf-tsvwg-sctp-dtls-chunk).
pub const NO_PROTECTION: u16 = 100;
/// The last of them.
pub const LAST_NO_PROTECTION: u16 = 103;
/// Unsupported HMAC Identifier (RFC 4895 §4.1).
pub const UNSUPPORTED_HMAC: u16 = 0x0105;
