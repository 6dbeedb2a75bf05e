//! Scripts that stand in for programs in tests.
#![allow(clippy::unwrap_used, reason = "for tests only")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes or replaces an executable script.
///
/// Another process writes it: if this one did, a child that some other test
/// forks at that moment would hold the file open for writing, and the kernel
/// refuses to execute such a file (ETXTBSY).
pub fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, path) = (folder.join(format!("{name}.text")), folder.join(name));
    std::fs::write(&source, text).unwrap();
    let done = Command::new("install").args(["-m", "755"]).args([&source, &path]).status().unwrap();
    assert!(done.success());
    path
}
