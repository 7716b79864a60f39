#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| braidcast_fuzz_targets::rist_endpoint::fuzz(bytes));
