//! Key messages: two guards whose messages may be changed, doubled, left out and made up, and records among them.
//!
//! Nothing may panic, and no record comes out that was not sealed.

use braidcast_core::Instant;
use braidcast_secure::known::{Known, METHOD};
use braidcast_secure::{Carrier, Guard, HEADER, Limits, Offer, Role, Roles, Suite, Transcript};
use core::time::Duration;
use arbitrary::{Result, Unstructured};
use std::sync::Arc;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input);
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let transcript = Transcript {
        carrier: Carrier::Sctp,
        client: Offer::new(1, Roles::Both, METHOD),
        server: Offer::new(2, Roles::Both, METHOD),
        bound: [0; 16],
    };
    let records = u64::from(input.arbitrary::<u8>()?) + 1;
    let limits = Limits::default().with(|it| it.records = records);
    let mut now = Instant::ZERO;
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    let guard = |role| Guard::new(now, method.clone(), limits, role, transcript);
    let mut guards = [guard(Role::Client), guard(Role::Server)];
    let mut text = Vec::new();
    for _ in 0..100 {
        let from = usize::from(input.arbitrary::<bool>()?);
        let to = 1 - from;
        match input.int_in_range(0..=5)? {
            0..=2 => {
                let Some(mut message) = guards[from].poll_message() else { continue };
                if input.ratio(1, 16)? {
                    let at = input.choose_index(message.len())?;
                    message[at] = input.arbitrary()?;
                }
                if guards[to].handle_message(now, &message).is_err() {
                    return Ok(());
                }
            }
            3 => {
                let len = input.int_in_range(0..=40)?;
                if guards[to].handle_message(now, input.bytes(len)?).is_err() {
                    return Ok(());
                }
            }
            4 => {
                let mut record = vec![0; HEADER];
                record.extend_from_slice(b"sealed");
                if guards[from].seal(now, &mut record, 0).is_ok() && guards[to].open(now, &record, &mut text).is_ok() {
                    assert_eq!(text, b"sealed");
                }
            }
            _ => {
                now += Duration::from_secs(u64::from(input.arbitrary::<u16>()?));
                if guards.iter_mut().any(|guard| guard.handle_timeout(now).is_err()) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}
