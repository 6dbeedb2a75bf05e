//! Distinguishes the code that makes tables from earlier and later code, so that tables which were kept
//! on disk are used by the very code that made them only.
//!
//! What they follow from is in `src/physics`, but for the fixed point, which asks tables and makes
//! none; and in the profile's curves.

use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The fixed point: what is made ready for it does not follow from it.
const FIXED_POINT: [&str; 16] = [
    "asking.rs",
    "columns.rs",
    "coupling.rs",
    "groups.rs",
    "local.rs",
    "memory.rs",
    "mixing.rs",
    "near.rs",
    "occupancy.rs",
    "rates.rs",
    "shares.rs",
    "solve.rs",
    "step.rs",
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
