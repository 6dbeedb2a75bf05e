//! Instruction traces: the bytes as a file, and as chunks whose checksums fit.
#![no_main]

use std::fs;

use symbiont_fuzz::{fuzz_target, scratch};
use symbiont_profile::trace::{TraceFile, fuzzing};

/// Operations that are read of a window: a few bytes may stand for millions.
const MOST_OPS: usize = 100_000;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&fuzzing::chunks(bytes));
});

fn read(bytes: &[u8]) {
    let folder = scratch().expect("a scratch directory");
    let path = folder.path().join("input");
    fs::write(&path, bytes).expect("a file");
    let Ok(file) = TraceFile::open(&path) else { return };
    for (index, info) in file.windows().iter().enumerate() {
        let Ok(mut window) = file.window(index) else { continue };
        let (mut whole, mut at) = (true, 0);
        for op in window.ops.by_ref().take(MOST_OPS) {
            let Ok(op) = op else {
                whole = false;
                break;
            };
            assert!(op.sources.iter().all(|source| usize::from(*source) <= at));
            at += 1;
        }
        assert!(!whole || at == MOST_OPS || window.ops.instructions() == info.instructions);
    }
}
