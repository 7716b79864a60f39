#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| braidcast_fuzz_targets::dccp_endpoint_of_many::fuzz(bytes));
