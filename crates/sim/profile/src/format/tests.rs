//! Profile files: whole, damaged, foreign.
//!
//! Makes its profiles out of the synthetic ones.

use proptest::prelude::*;
use tempfile::TempDir;

use super::{HEADER, LONGEST_FILE, MAGIC, VERSION, checksum, from_bytes, to_bytes};
use crate::test_support::{branchy, cache_resident, kept_in_memory, phased, streaming};
use crate::{FromStore, Profile, ProfileError, Span};

fn profile() -> Profile {
    phased(&streaming(), &branchy())
}

/// A file with right magic, version and checksum around any content.
fn wrap(rest: &[u8]) -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes(), &checksum(rest).to_le_bytes(), rest].concat()
}

#[test]
fn profiles_round_trip() {
    for profile in [profile(), cache_resident(), kept_in_memory()] {
        let bytes = to_bytes(&profile).unwrap();
        assert!(bytes.len() < LONGEST_FILE);
        assert_eq!(from_bytes(&bytes, "x").unwrap(), profile);
        assert_eq!(to_bytes(&profile).unwrap(), bytes, "equal profiles give equal files");
    }
}

#[test]
fn files_are_written_and_read_back() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.profile");
    std::fs::write(&path, "what was there").unwrap();
    let profile = cache_resident();
    profile.write(&path).unwrap();
    assert_eq!(Profile::read(&path).unwrap(), profile);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn a_missing_file_is_reported_by_its_path() {
    let error = Profile::read("/nowhere/a.profile".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/a.profile: cannot read"), "{error}");
}

#[test]
fn empty_foreign_and_newer_files_are_distinguished() {
    let error_of = |bytes: &[u8]| from_bytes(bytes, "f").unwrap_err();
    assert!(matches!(error_of(b""), ProfileError::Empty { .. }));
    assert!(matches!(error_of(b"\x7fELF\x02\x01\x01\x00"), ProfileError::NotAProfile { .. }));
    let mut newer = to_bytes(&cache_resident()).unwrap();
    newer[8] += 1;
    let error = error_of(&newer);
    assert!(matches!(error, ProfileError::Version { version, .. } if version == VERSION + 1));
    assert!(error.to_string().contains("`symbiont profile`"));
}

#[test]
fn damage_anywhere_is_reported() {
    let whole = to_bytes(&cache_resident()).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 200 + 1).chain(0..HEADER) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        assert!(from_bytes(&bytes, "f").is_err(), "byte {at}");
        assert!(from_bytes(&whole[..at], "f").is_err(), "cut at {at}");
    }
}

#[test]
fn a_claim_of_endless_content_is_refused() {
    let error = from_bytes(&wrap(&u64::MAX.to_le_bytes()), "f").unwrap_err();
    assert!(matches!(error, ProfileError::Damaged { .. }), "{error}");
}

#[test]
fn profiles_that_contradict_themselves_are_not_written() {
    let refused = |change: &dyn Fn(&mut Profile)| {
        let mut profile = cache_resident();
        change(&mut profile);
        assert!(matches!(to_bytes(&profile), Err(ProfileError::Unusable { .. })));
    };
    refused(&|profile| profile.phases.clear());
    refused(&|profile| profile.threads.clear());
    refused(&|profile| profile.instructions += 1);
    refused(&|profile| profile.threads[0].sequence.push(Span { phase: 9, instructions: 1 }));
    refused(&|profile| profile.phases[0].super_sets.truncate(1));
    refused(&|profile| profile.phases[0].traces[0].ops[0].mispredicted = u8::MAX);
    refused(&|profile| profile.phases[0].data.page.counts = vec![1]);
    let stored = |at: usize, back: u16| {
        let from = FromStore { back, whole: true, same_form: true };
        move |profile: &mut Profile| {
            let mut kept = kept_in_memory();
            kept.phases[0].traces[0].ops[at].stored = Some(from);
            *profile = kept;
        }
    };
    // Of what is no store; of what is no load. A store before the trace can be any.
    refused(&stored(4, 1));
    refused(&stored(5, 2));
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(from_bytes(&bytes, "f").is_err());
        prop_assert!(from_bytes(&wrap(&bytes), "f").is_err());
    }

    #[test]
    fn content_that_fits_its_checksum_but_makes_no_sense_is_refused(content in proptest::collection::vec(any::<u8>(), 0..400)) {
        use std::io::Write;
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&content).unwrap();
        let rest = [(content.len() as u64).to_le_bytes().to_vec(), packer.finish().unwrap()].concat();
        prop_assert!(from_bytes(&wrap(&rest), "f").is_err());
    }
}
