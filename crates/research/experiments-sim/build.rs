//! Digests of the code that simulated records follow from, so that kept records are used only by the code
//! that made them.

use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Rooms that decide what comes out of a simulated run.
const ROOMS: [&str; 14] = [
    "core/control",
    "core/counters",
    "core/machine",
    "core/matching",
    "core/model",
    "core/planner",
    "core/policy",
    "sim/profile",
    "sim/sim-fast",
    "host/synth",
    "core/topology",
    "core/trace",
    "research/training",
    "research/experiments-sim",
];

/// What decides besides where it runs cycle by cycle.
const CYCLE: [&str; 5] = [
    "sim/sim-cycle",
    "research/reproduce/src/settle/play.rs",
    "research/reproduce/src/settle/queues.rs",
    "research/reproduce/src/settle/scheduler.rs",
    "research/reproduce/src/settle/scoring.rs",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-env=SYMBIONT_RECORD_CODE={:016x}", digest(&ROOMS)?);
    println!("cargo::rustc-env=SYMBIONT_CYCLE_CODE={:016x}", digest(&CYCLE)?);
    Ok(())
}

/// A digest of the sources of rooms, or parts of them.
fn digest(rooms: &[&str]) -> Result<u64, Box<dyn Error>> {
    let mut files = Vec::new();
    for room in rooms {
        let source = Path::new("../..").join(room);
        let source = if room.ends_with(".rs") { source } else { source.join("src") };
        println!("cargo::rerun-if-changed={}", source.display());
        sources(&source, &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// A file, or the files below a folder but those of tests and of pages.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if folder.is_file() {
        files.push(folder.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.contains("test") || name == "page") {
            continue;
        }
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
