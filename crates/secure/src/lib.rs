//! Encryption without I/O, for SCTP's DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk) and whatever
//! else carries datagrams.
//!
//! [`Guard`] stands beside an association: it takes and gives key messages
//! (draft-porfiri-tsvwg-sctp-dtls-handshake), seals and opens records (RFC 9147 §4), and changes
//! keys in time. It knows neither which [`Cipher`] seals nor how keys are agreed on ([`Method`]),
//! so that the protocols, their simulator and their fuzzers need no C. Feature `tls` has what
//! binaries use: TLS 1.3 with raw public keys by `rustls` and `aws-lc-rs`. Feature `pure` has slow
//! ciphers, and keys that everybody knows, for tests. Feature `known-peers` keeps the file of
//! servers whose keys a user has seen; nothing else here does I/O.
//!
//! [`Secret`] is a shared secret as people keep it: words, a short string or a passphrase.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tls")]
pub mod aws;
mod cipher;
mod courier;
mod doubt;
mod exchange;
mod guard;
#[cfg(feature = "tls")]
pub mod identity;
mod inquiry;
mod insecure;
#[cfg(feature = "pure")]
pub mod known;
#[cfg(feature = "known-peers")]
pub mod known_peers;
mod limits;
mod offer;
mod options;
#[cfg(feature = "pure")]
pub mod pure;
mod record;
mod replay;
mod secret;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "tls")]
pub mod x509;

pub use cipher::{Cipher, Ciphers, Failed, Keys, NONCE, Suite, TAG};
pub use courier::{Courier, NoFragment, Unacknowledged};
pub use doubt::{Doubt, Verdict};
pub use exchange::{
    Agreement, Alias, Carrier, Exchange, Fingerprint, KeyKind, Method, Peer, Refused, Role, Transcript,
};
pub use guard::{Guard, GuardError, Standing, State};
pub use inquiry::Inquiry;
pub use insecure::{Insecure, Insecurity};
pub use limits::Limits;
pub use offer::{Disagreement, Offer, OfferError, Roles};
pub use options::SecurityOptions;
pub use record::{Content, Counts, HEADER, MAX_PLAINTEXT, OVERHEAD, Opener, Rejected, Sealer, Spent};
pub use replay::Window;
pub use secret::{Passphrase, PrivateKey, Secret, SecretError, SharedKey, Stretched};
