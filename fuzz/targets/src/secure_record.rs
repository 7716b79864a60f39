//! Records of the DTLS chunk: what comes may be anything, and what was sealed may be changed, reordered and doubled.
//!
//! Nothing may panic; what comes out is what was sealed, once.

use braidcast_secure::{HEADER, Keys, Opener, Sealer, Suite, pure::Pure};
use arbitrary::{Result, Unstructured};
use std::collections::BTreeSet;

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input);
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let suite = *input.choose(&Suite::ALL)?;
    let key = [input.arbitrary::<u8>()?; 32];
    let keys =
        Keys::new(suite, &key[..suite.key_len()], &key[..suite.key_len()], [0; 12]).expect("keys of the right length");
    let epoch = 3 + u64::from(input.arbitrary::<u8>()?);
    let (mut sealer, mut opener) = (
        Sealer::new(&Pure, &keys, epoch).expect("a suite it has"),
        Opener::new(&Pure, &keys, epoch).expect("a suite it has"),
    );
    let (mut records, mut taken, mut text) = (Vec::<Vec<u8>>::new(), BTreeSet::new(), Vec::new());
    for _ in 0..200 {
        match input.int_in_range(0..=3)? {
            0 => {
                let mut record = vec![0; HEADER];
                record.extend_from_slice(&(records.len() as u32).to_be_bytes());
                sealer.seal(&mut record, 0).expect("few records");
                records.push(record);
            }
            1 if !records.is_empty() => {
                let at = input.choose_index(records.len())?;
                let new = taken.insert(at);
                assert_eq!(opener.open(&records[at], &mut text).is_ok(), new);
                assert!(!new || text == (at as u32).to_be_bytes());
            }
            2 if !records.is_empty() => {
                let mut record = input.choose(&records)?.clone();
                let at = input.choose_index(record.len())?;
                record[at] ^= input.int_in_range(1..=255)?;
                assert!(opener.open(&record, &mut text).is_err());
            }
            _ => {
                let len = input.int_in_range(0..=64)?;
                assert!(opener.open(input.bytes(len)?, &mut text).is_err());
            }
        }
    }
    Ok(())
}
