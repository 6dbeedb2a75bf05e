//! `symbiont bench pairs`, from outside.
#![cfg(all(feature = "research", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::path::Path;
use std::process::{Command, Output};

use symbiont_linux::actuate::allowed;

/// Two kernels of ours, which are measured in five cells.
const TWO: &str = "--kernels=stores, divisions";

fn symbiont(args: &[&str], folder: &Path) -> Output {
    let output = format!("--output={}", folder.join("out").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.args(["bench", "pairs"]).args(args).arg(output).output().unwrap()
}

/// Is symbiont-synth next to symbiont? Says so if it is not: the test is skipped.
fn synth() -> bool {
    let built = Path::new(env!("CARGO_BIN_EXE_symbiont")).with_file_name("symbiont-synth").exists();
    if !built {
        eprintln!("skipped: symbiont-synth is not built; test the whole workspace");
    }
    built
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The last line of what it refuses with.
fn refused(args: &[&str], folder: &Path) -> String {
    let output = symbiont(args, folder);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{args:?}: {said}");
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn what_cannot_be_measured_is_refused() {
    if !synth() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| refused(args, folder.path());
    assert!(here(&["--cpus=0"]).contains("--cpus: two CPUs are expected, such as 0,1"));
    assert!(here(&["--cpus=0,16000"]).contains("--cpus: cpu16000 cannot be used"));
    assert!(here(&["--cpus=x", TWO]).contains("--help"));
    assert!(here(&["--kernels=stores,nosuch"]).contains("no program of ours is called 'nosuch'"));
    assert!(here(&["true"]).contains("at least two programs are needed"));
    assert!(here(&["true", "true", "--names=a,a"]).contains("two programs are called 'a'"));
    assert!(!folder.path().join("out").exists(), "nothing was begun");
    let several = allowed().unwrap().len() > 1;
    if several {
        let short = here(&["--limit=6s"]);
        assert!(short.contains("147 measurements in each of 2 rounds, and before them"), "{short}");
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = refused(&[TWO, "--limit=20s"], &file);
        assert_eq!(error, format!("symbiont: {} is not a folder", file.display()));
    }
}

#[test]
fn one_cpu_is_too_few() {
    if !synth() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = allowed().unwrap().first().unwrap().0.to_string();
    let output = format!("--output={}", folder.path().join("out").display());
    let symbiont = env!("CARGO_BIN_EXE_symbiont");
    let mut command = Command::new("taskset");
    let done = command.args(["-c", &first, symbiont, "bench", "pairs", &output]).output().unwrap();
    assert!(!done.status.success());
    let said = text(&done.stderr);
    // Whether others are there is for this machine to say; naming two helps in neither case.
    let begins = [
        "symbiont: This process may use one CPU only, cpu",
        "symbiont: This machine has one CPU only",
    ];
    assert!(
        begins.iter().any(|begin| said.starts_with(begin)) && !said.contains("--cpus"),
        "{said}"
    );
}

#[test]
fn two_do_not_measure_in_one_folder() {
    if allowed().unwrap().len() < 2 || !synth() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let (lock, output) = (out.join(".lock"), format!("--output={}", out.display()));
    let mut command = Command::new("flock");
    let command = command.arg(&lock).arg(env!("CARGO_BIN_EXE_symbiont"));
    let done = command.args(["bench", "pairs", TWO, "--limit=20s", &output]).output().unwrap();
    assert!(!done.status.success());
    let expected = format!(
        "symbiont: another `symbiont bench pairs` measures in {}: wait until it ends; two at a time would disturb each \
         other\n",
        out.display()
    );
    assert_eq!(text(&done.stderr), expected);
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(files, [lock], "nothing was measured");
}

/// Whether this machine has SMT is for it to say.
#[test]
fn a_machine_without_smt_says_so_before_programs_run() {
    if allowed().unwrap().len() < 2 || !synth() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let done = symbiont(&[TWO, "--limit=20s"], folder.path());
    let (said, out) = (text(&done.stderr), folder.path().join("out"));
    let last = said.lines().last().unwrap_or_default();
    if done.status.success() {
        assert!(out.join("pairs.csv").exists());
    } else {
        let begins =
            ["No two hardware threads share a core here", "Whether hardware threads share"];
        let known = begins.iter().any(|begin| last.starts_with(&format!("symbiont: {begin}")));
        assert!(known && last.ends_with('.'), "{said}");
        assert!(out.join("cpus.jsonl").exists() && !out.join("programs.jsonl").exists());
    }
}

#[test]
fn two_cpus_that_were_named_give_a_matrix_that_others_read() {
    let mut cpus = allowed().unwrap().iter().collect::<Vec<_>>().into_iter();
    let (Some(one), Some(other)) = (cpus.next(), cpus.next()) else { return };
    if !synth() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = format!("--cpus={},{}", one.0, other.0);
    let run = || {
        let done = symbiont(&[&named, TWO, "--limit=20s"], folder.path());
        let said = text(&done.stderr);
        assert!(done.status.success(), "{said}");
        (text(&done.stdout), said)
    };
    let (shown, _) = run();
    assert!(shown.contains("Next to itself") && shown.contains("pairs.csv"), "{shown}");
    let out = folder.path().join("out");
    let csv = std::fs::read_to_string(out.join("pairs.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (5, "program,co_runner,slowdown"));
    assert!(lines[1].starts_with("stores,stores,") && lines[3].starts_with("divisions,stores,"));
    let page = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("Which hardware threads share a core") && page.contains("(--cpus)"));
    // The same command measures nothing anew, if all rounds were there.
    let data: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("pairs.json")).unwrap()).unwrap();
    if data["rounds"] == data["rounds_planned"] {
        assert!(run().1.contains("All runs were done before"));
        assert_eq!(std::fs::read_to_string(out.join("pairs.csv")).unwrap(), csv);
    }
    let pairs = out.join("pairs.csv");
    let mut simulate = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    simulate.args([
        "simulate",
        "--policy",
        "random",
        "--threads",
        "6",
        "--repeats",
        "20",
        "--at",
        "1s",
    ]);
    let done = simulate.arg("--pairs").arg(&pairs).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("2 programs: divisions, stores"));
}
