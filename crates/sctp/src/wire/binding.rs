use super::{Parameters, param::kind};
use sha2::{Digest, Sha256};

/// Bytes of INIT and INIT ACK before their parameters.
const FIXED: usize = 20;

/// Returns the first 16 bytes of the SHA-256 of all that INIT and INIT ACK say, each the whole
/// chunk as it left or came, but for the cookie: that is its maker's alone. Keys depend on it, so
/// that nobody in between changes what is offered.
pub fn binding(init: &[u8], init_ack: &[u8]) -> [u8; 16] {
    let init = init.get(..framed_len(init)).unwrap_or(init);
    let mut hash = Sha256::new().chain_update((init.len() as u64).to_be_bytes()).chain_update(init);
    let init_ack = init_ack.get(..framed_len(init_ack)).unwrap_or(init_ack);
    // Its length counts the cookie.
    hash.update(init_ack.get(..2).unwrap_or_default());
    hash.update(init_ack.get(4..FIXED).unwrap_or_default());
    let parameters = Parameters::new(init_ack.get(FIXED..).unwrap_or_default());
    for raw in parameters.iter().map_while(Result::ok).filter(|raw| raw.kind != kind::STATE_COOKIE) {
        hash.update(raw.bytes);
    }
    let mut bound = [0; 16];
    bound.copy_from_slice(&hash.finalize()[..16]);
    bound
}

/// Returns the bytes of a chunk without padding, as its header has it.
fn framed_len(chunk: &[u8]) -> usize {
    chunk.get(2..4).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])))
}
