//! A snapshot file, whatever its bytes are.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| quorate_wal::fuzzing::snapshot(input));
