use super::ServiceCode;
use super::option::{FeatureOption, Opt, Options, emit_mandatory};
use braidcast_core::Writer;
use sha2::{Digest, Sha256};

/// Returns the first 16 bytes of the SHA-256 of what a Request with `options` asks for: service
/// code and Change options. Keys depend on it, so that nobody in between changes what is asked for.
///
/// What the server answers follows from that. What of it does not arrive is agreed on by later
/// packets, whose options are authenticated.
pub fn binding(service: ServiceCode, options: &Options<'_>) -> [u8; 16] {
    let hash = Sha256::new().chain_update(service.0.to_be_bytes()).chain_update(changes(options)).finalize();
    let mut bound = [0; 16];
    bound.copy_from_slice(&hash[..16]);
    bound
}

/// Bytes of the Change options in `options`, for an Init Cookie.
pub(crate) fn changes(options: &Options<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for listed in options.iter().flatten() {
        if let Some(Opt::Feature(option @ FeatureOption { confirm: false, .. })) = listed.parse() {
            if listed.mandatory {
                emit_mandatory(&mut Writer::new(&mut bytes));
            }
            option.emit(&mut Writer::new(&mut bytes));
        }
    }
    bytes
}
