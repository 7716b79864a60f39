//! A packet sealed and opened, as `--security` does by default: AES-128-GCM by AWS-LC.

use super::{PAYLOAD, noise};
use crate::counted;
use braidcast_secure::aws::AwsLc;
use braidcast_secure::{HEADER, Keys, OVERHEAD, Opener, Sealer, Suite};

const PACKETS: u64 = 500;

fn keys() -> Keys {
    Keys::new(Suite::Aes128Gcm, &[1; 16], &[2; 16], [3; 12]).expect("the suite's length of keys")
}

/// Calls `each` with every sealed packet; seals within [`counted`] if asked to.
fn sealed(is_counted: bool, mut each: impl FnMut(&[u8])) {
    let mut sealer = Sealer::new(&AwsLc, &keys(), 3).expect("keys of a suite that AWS-LC has");
    let payload = noise(PAYLOAD, 1);
    let mut packet = Vec::with_capacity(PAYLOAD + OVERHEAD);
    for _ in 0..PACKETS {
        packet.clear();
        packet.resize(HEADER, 0);
        packet.extend_from_slice(&payload);
        let mut seal = || sealer.seal(&mut packet, 0).expect("few packets");
        if is_counted {
            counted(&mut seal)
        } else {
            seal()
        }
        each(&packet);
    }
}

pub(super) fn seal() -> u64 {
    sealed(true, |_| ());
    PACKETS
}

pub(super) fn open() -> u64 {
    let mut opener = Opener::new(&AwsLc, &keys(), 3).expect("keys of a suite that AWS-LC has");
    let mut text = Vec::with_capacity(PAYLOAD + OVERHEAD);
    sealed(false, |packet| {
        counted(&mut || opener.open(packet, &mut text).expect("what was just sealed"));
        assert_eq!(text.len(), PAYLOAD);
    });
    PACKETS
}
