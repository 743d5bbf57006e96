#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use quorate_certify::{Certifier, Key, Kind, WriteSet};

/// Length of the header that stands before the payload.
const HEADER: usize = 80;

fuzz_target!(|data: &[u8]| {
    let _ = Certifier::restore(data);
    if let Ok(ws) = WriteSet::parse(Bytes::copy_from_slice(data)) {
        let term = if ws.header().term == 0 { 0 } else { 8 };
        let parts = HEADER + ws.payload().len() + Key::ENCODED_LEN * ws.keys().len() + term;
        assert_eq!(parts, data.len());
        if ws.header().kind == Kind::WRITE_SET {
            Certifier::new(4).sequence(&ws);
        }
    }
});
