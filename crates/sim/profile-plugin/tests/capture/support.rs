//! Compiles and profiles small programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use symbiont_profile::Profile;
use symbiont_profile::capture::{Capture, CaptureError, plugin_next_to};
use tempfile::TempDir;

/// Why profiling cannot be tested here.
pub fn cannot() -> Option<&'static str> {
    if !cfg!(target_arch = "x86_64") {
        return Some("the test programs are for x86-64");
    }
    let runs = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let Ok(help) = Command::new("qemu-x86_64").arg("--help").output() else {
        return Some("qemu-x86_64 (package qemu-user) is not installed");
    };
    if !String::from_utf8_lossy(&help.stdout).contains("-plugin") {
        return Some(
            "this qemu-x86_64 has no plugins: scripts/build-emulator.sh builds one that has",
        );
    }
    (!runs("cc")).then_some("there is no C compiler")
}

/// Leaves the test where it cannot run.
#[macro_export]
macro_rules! or_skip {
    () => {
        if let Some(why) = $crate::support::cannot() {
            eprintln!("skipped: {why}");
            return;
        }
    };
}

/// A folder with a compiled program.
pub struct Built {
    /// Removed with it.
    _dir: TempDir,
    pub program: PathBuf,
}

/// Compiles a C program.
pub fn build(source: &str) -> Built {
    let dir = TempDir::new().unwrap();
    let (code, program) = (dir.path().join("program.c"), dir.path().join("program"));
    std::fs::write(&code, source).unwrap();
    let status =
        Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(&code).status();
    assert!(status.unwrap().success(), "the test program does not compile");
    Built { _dir: dir, program }
}

pub fn capture(command: &[OsString]) -> Capture {
    Capture {
        command: command.to_vec(),
        name: None,
        variables: Vec::new(),
        plugin: plugin_next_to(&std::env::current_exe().unwrap()).unwrap(),
        interval: Some(1_000_000),
        stdout: Some("/dev/null".into()),
    }
}

pub fn try_profile(words: &[&str]) -> Result<Profile, CaptureError> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    capture(&words).run(|_| {})
}

pub fn profile(words: &[&str]) -> Profile {
    try_profile(words).unwrap()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
