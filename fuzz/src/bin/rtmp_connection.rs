#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| braidcast_fuzz_targets::rtmp_connection::fuzz(bytes));
