//! What a refused command leaves.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn symbiont(folder: &Path, words: &[&str], stdin: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.args(words).current_dir(folder).stdin(stdin).output().unwrap()
}

#[test]
fn a_refused_run_leaves_the_recording_that_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    fs::write(&kept, "precious").unwrap();
    for wrong in [
        &["--policy", "nosuch"][..],
        &["--policy", "symbiotic"],
        &["--set", "foo=1"],
        &["--model", "absent"],
        &["--report-file", "absent/report"],
        &["--report-file", "kept"],
        &["--report-file", "./kept"],
        &["--report-file", "./new"],
    ] {
        for name in ["kept", "new"] {
            // Of two files that are two, both may be written.
            if wrong.last().is_some_and(|word| {
                ["kept", "new"].iter().any(|end| word.ends_with(end) && *end != name)
            }) {
                continue;
            }
            let run = ["run", "--own-manager", "--state-dir", "state", "--record", name];
            let words = [&run, wrong, &["--", "true"]].concat();
            let output = symbiont(folder.path(), &words, Stdio::null());
            assert!(!output.status.success(), "{words:?} {output:?}");
            assert_eq!(fs::read_to_string(&kept).unwrap(), "precious", "{words:?}");
            assert!(!folder.path().join("new").exists(), "{words:?}");
        }
    }
}

#[test]
fn jobs_from_a_device_leave_no_file_next_to_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs"), "echo ran\n").unwrap();
    let jobs = File::open(folder.path().join("jobs")).unwrap();
    let words = ["batch", "--state-dir", "state", "/dev/stdin"];
    let output = symbiont(folder.path(), &words, jobs.into());
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ran"), "{output:?}");
    assert!(!Path::new("/dev/stdin.progress").exists());
}
