//! The reference shares no formula with what it judges.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

#[test]
fn nothing_here_names_the_physics() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 10);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let named = ["symbiont_sim_fast::physics", "symbiont_sim_fast::fast", "sim::{physics"];
        assert!(!named.iter().any(|name| text.contains(name)), "{}", file.display());
    }
}
