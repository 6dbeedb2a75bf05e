//! The numerical kernels of `programs/src/kernels.c` compute what is known, however many threads there are.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn built(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../programs/src/kernels.c");
    let program = folder.join("kernels");
    let mut command = Command::new("cc");
    command.args(["-O2", "-o"]).arg(&program).arg(source).args(["-lm", "-pthread"]);
    assert!(command.status().unwrap().success());
    program
}

fn run(program: &Path, words: &[&str]) -> Output {
    Command::new(program).args(words).output().unwrap()
}

/// Names and results.
fn results(output: &Output) -> Vec<(Value, Value)> {
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = report["kernels"].as_array().unwrap();
    kernels.iter().map(|kernel| (kernel["name"].clone(), kernel["result"].clone())).collect()
}

#[test]
fn kernels_compute_what_is_known_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path());
    let checked = run(&program, &["check"]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && text.lines().count() == 8, "{text}");
    assert!(!text.contains("WRONG"), "{text}");
    let one = results(&run(&program, &["threads", "1", "3", "1"]));
    let four = results(&run(&program, &["threads", "4", "3", "2"]));
    assert_eq!((one.len(), &one), (5, &four));
    let two = results(&run(&program, &["threads", "2", "3", "5", "lu", "montecarlo"]));
    assert!(two.len() == 2 && two.iter().all(|row| one.contains(row)));
    for wrong in [&["nothing", "1"][..], &["fft", "0"], &["fft", "x"], &["threads", "1", "1"]] {
        assert_eq!(run(&program, wrong).status.code(), Some(2), "{wrong:?}");
    }
}
