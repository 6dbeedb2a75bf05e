//! Any bytes as a profile: refused or read, never a panic; what is read is
//! written and read back equal. The checksum is mended, so that the fuzzer gets
//! past it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbiont_profile::{from_bytes, to_bytes};

/// Magic, version and checksum.
const BEFORE: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let _ = from_bytes(bytes, "input");
    let mended = mend(bytes);
    if let Ok(profile) = from_bytes(&mended, "input") {
        let written = to_bytes(&profile).expect("what was read can be written");
        assert_eq!(from_bytes(&written, "written").expect("and read again"), profile);
    }
});

fn mend(rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"SYMBPROF".to_vec();
    bytes.extend(symbiont_profile::VERSION.to_le_bytes());
    bytes.extend(crc32(rest).to_le_bytes());
    debug_assert_eq!(bytes.len(), BEFORE);
    bytes.extend(rest);
    bytes
}

/// CRC-32 as in gzip (RFC 1952, section 8).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
        })
    })
}
