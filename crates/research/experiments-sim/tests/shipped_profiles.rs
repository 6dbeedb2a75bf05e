//! The shipped profiles are whole, small, and of programs that are listed.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use symbiont_profile::Profile;

/// Largest profile that may be shipped, in bytes.
const LARGEST: u64 = 512 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn shipped() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("profiles")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "profile")).collect()
}

/// Names and commands of the programs.
fn listed() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("programs/programs.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let words = |value: &toml::Value| {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let programs = table["program"].as_array().unwrap();
    programs
        .iter()
        .map(|p| (p["name"].as_str().unwrap().to_owned(), words(&p["command"])))
        .collect()
}

#[test]
fn each_is_whole_small_and_of_a_listed_program() {
    let listed = listed();
    let mut seen = BTreeSet::new();
    for path in shipped() {
        assert!(fs::metadata(&path).unwrap().len() <= LARGEST, "{}", path.display());
        let profile = Profile::read(&path).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(profile.program, stem);
        let (_, command) = listed.iter().find(|(name, _)| name == stem).unwrap();
        assert_eq!(&profile.command, command, "{stem} was made by another command");
        assert!(profile.gaps.is_empty(), "{stem}: {:?}", profile.gaps);
        assert!(profile.instructions >= 500_000_000, "{stem} is too short");
        seen.insert(stem.to_owned());
    }
    assert!(seen.len() >= 16, "{seen:?}");
}
