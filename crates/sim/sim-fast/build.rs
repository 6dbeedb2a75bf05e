//! A digest of the code that makes tables, so that tables kept on disk are used only by the code that made them.
//!
//! They follow from `src/physics` without the fixed point, which looks up tables and makes none, and from
//! the profile's curves.

use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The fixed point: no table follows from it.
const FIXED_POINT: [&str; 16] = [
    "aitken.rs",
    "anderson.rs",
    "columns.rs",
    "coupling.rs",
    "evaluation.rs",
    "groups.rs",
    "linearization.rs",
    "max_min_fair.rs",
    "memory.rs",
    "occupancy.rs",
    "rates.rs",
    "sensitivity.rs",
    "solve.rs",
    "table/layout.rs",
    "table/slopes.rs",
    "table/sums.rs",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in ["src/physics", "../profile/src"] {
        println!("cargo::rerun-if-changed={folder}");
        sources(Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=SYMBIONT_TABLE_CODE={:016x}", hasher.finish());
    Ok(())
}

/// The files below a folder but those of tests.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let left_out = ["test_support", "tests", "capture"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !left_out {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
            && !FIXED_POINT.iter().any(|name| path.ends_with(Path::new("physics").join(name)))
        {
            files.push(path);
        }
    }
    Ok(())
}
