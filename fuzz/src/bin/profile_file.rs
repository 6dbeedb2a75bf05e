//! Profiles of programs: the bytes as a file, and as the content of a file whose header fits.
#![no_main]

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use symbiont_fuzz::fuzz_target;
use symbiont_profile::{VERSION, from_bytes, to_bytes};

fuzz_target!(|bytes: &[u8]| {
    let _ = from_bytes(bytes, "input");
    let Ok(profile) = from_bytes(&packed(bytes), "input") else { return };
    let written = to_bytes(&profile).expect("what was read can be written");
    assert_eq!(from_bytes(&written, "written").expect("and read again"), profile);
});

/// A file with this content.
fn packed(content: &[u8]) -> Vec<u8> {
    let mut rest = (content.len() as u64).to_le_bytes().to_vec();
    let mut packer = DeflateEncoder::new(&mut rest, Compression::none());
    packer.write_all(content).and_then(|()| packer.try_finish()).expect("memory takes it");
    drop(packer);
    let mut sum = Crc::new();
    sum.update(&rest);
    [b"SYMBPROF".as_slice(), &VERSION.to_le_bytes(), &sum.sum().to_le_bytes(), &rest].concat()
}
