//! Files of activity vectors: what is read can be written, read again, and asked for any place.
#![no_main]

use symbiont_fuzz::fuzz_target;
use symbiont_profile::vectors::Vectors;

fuzz_target!(|bytes: &[u8]| {
    let Ok(vectors) = Vectors::from_bytes(bytes) else { return };
    let path = tempfile::NamedTempFile::new().expect("a temporary file");
    vectors.write(path.path()).expect("what was read can be written");
    assert_eq!(Vectors::read(path.path()).expect("and read again"), vectors);
    for place in [0, 1, u64::MAX / 2, u64::MAX] {
        assert!(vectors.at(place).is_some());
    }
});
