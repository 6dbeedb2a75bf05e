//! `symbiont profile` as a user sees it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use assert_cmd::Command;
use symbiont_profile::capture::plugin_next_to;
use tempfile::TempDir;

fn symbiont() -> Command {
    Command::cargo_bin("symbiont").unwrap()
}

fn stderr(command: &mut Command) -> String {
    String::from_utf8(command.assert().failure().get_output().stderr.clone()).unwrap()
}

/// Is the plugin built? Says so if it is not: the test is skipped.
fn plugin() -> bool {
    let built = plugin_next_to(&std::env::current_exe().unwrap()).is_ok();
    if !built {
        eprintln!("skipped: the plugin is not built; test the whole workspace");
    }
    built
}

/// Can programs be profiled here? Says why if not: the test is skipped.
fn able() -> bool {
    let help = std::process::Command::new("qemu-x86_64").arg("--help").output();
    let emulator = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("-plugin"));
    if !emulator {
        eprintln!(
            "skipped: no qemu-x86_64 with plugins (package qemu-user, or scripts/build-emulator.sh)"
        );
    }
    plugin() && emulator
}

#[test]
fn a_missing_emulator_is_reported_with_its_package() {
    if !plugin() {
        return;
    }
    let empty = TempDir::new().unwrap();
    let reported =
        stderr(symbiont().args(["profile", "--", "/bin/true"]).env("PATH", empty.path()));
    assert!(reported.contains("apt install qemu-user"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
}

#[test]
fn a_profile_is_made_and_shown() {
    if !able() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let made = symbiont()
        .current_dir(dir.path())
        .args(["profile", "--json", "--name", "lister", "--stdout", "/dev/null", "--", "ls", "/"])
        .assert()
        .success();
    let made: serde_json::Value = serde_json::from_slice(&made.get_output().stdout).unwrap();
    assert_eq!(made["program"], "lister");
    assert!(made["instructions"].as_u64().unwrap() > 100_000);
    let path = dir.path().join("lister.profile");
    assert_eq!(made["bytes"].as_u64().unwrap(), std::fs::metadata(&path).unwrap().len());
    let shown = symbiont().args(["profile", "--show"]).arg(&path).assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("ls /") && shown.contains("misses 32 KiB"), "{shown}");
}

#[test]
fn what_takes_long_says_how_far_it_is() {
    if !able() {
        return;
    }
    let dir = TempDir::new().unwrap();
    // Without a terminal, and for longer than the first line takes.
    let command = ["profile", "--json", "--", "sleep", "5"];
    let made = symbiont().current_dir(dir.path()).args(command).assert().success();
    let reported = String::from_utf8(made.get_output().stderr.clone()).unwrap();
    assert!(reported.contains(" instructions observed in "), "{reported}");
}

#[test]
fn a_missing_folder_is_reported_before_the_program_runs() {
    let dir = TempDir::new().unwrap();
    let trace = dir.path().join("run");
    let command = ["profile", "-o", "/nowhere/x.profile", "--", "touch"];
    let reported = stderr(symbiont().args(command).arg(&trace));
    assert!(reported.contains("there is no folder /nowhere to write to"), "{reported}");
    assert!(!trace.exists(), "the program ran");
}

#[test]
fn bad_files_and_programs_are_reported_in_one_line() {
    let dir = TempDir::new().unwrap();
    let foreign = dir.path().join("foreign.profile");
    std::fs::write(&foreign, "[workspace]").unwrap();
    let reported = stderr(symbiont().args(["profile", "--show"]).arg(&foreign));
    assert!(reported.contains("foreign.profile: this is not a program profile"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
    let reported = stderr(symbiont().args(["profile", "--show", "/nowhere/x.profile"]));
    assert!(reported.contains("/nowhere/x.profile"), "{reported}");
    if able() {
        let reported = stderr(symbiont().args(["profile", "--", "no-such-program"]));
        assert!(reported.contains("no-such-program: no such program"), "{reported}");
    }
}

#[test]
fn a_trace_is_made_where_the_profile_says_and_shown() {
    if !able() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let run = |options: &[&str]| {
        let command = ["--json", "--stdout", "/dev/null", "--", "ls", "/"];
        let made = symbiont()
            .current_dir(dir.path())
            .arg("profile")
            .args(options)
            .args(command)
            .assert()
            .success();
        serde_json::from_slice::<serde_json::Value>(&made.get_output().stdout).unwrap()
    };
    let profile = run(&[]);
    let traced = run(&[
        "--trace",
        "ls.profile",
        "--warm-up",
        "10000",
        "--length",
        "20000",
        "--windows",
        "2",
    ]);
    assert_eq!(traced["digest"], profile["digest"]);
    let windows = traced["windows"].as_array().unwrap();
    assert!((1..=2).contains(&windows.len()), "{traced}");
    assert_eq!(windows[0]["warm_up"], 10_000);
    assert!((30_000..31_000).contains(&windows[0]["instructions"].as_u64().unwrap()), "{traced}");
    let path = dir.path().join("ls.trace");
    symbiont().args(["profile", "--show"]).arg(&path).assert().success();
    // Damage is found by looking at it.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let reported = stderr(symbiont().args(["profile", "--show"]).arg(&path));
    assert!(reported.contains("damaged") && reported.contains("profile --trace"), "{reported}");
}

#[test]
fn a_program_is_scheduled_by_its_vectors() {
    if !able() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let run = |words: &[&str]| {
        let mut command = symbiont();
        command.current_dir(dir.path()).args(words);
        command
    };
    let vectors = |machine: &str, file: &str| {
        let capture = ["profile", "--stdout", "/dev/null", "--vectors", machine, "-o", file];
        run(&[&capture[..], &["--", "ls", "/"]].concat()).assert().success();
    };
    vectors("host", "ls.vectors");
    let by = ["run", "--policy", "activity", "--vectors", "ls.vectors", "--dry-run"];
    run(&[&by[..], &["--", "ls", "/"]].concat()).assert().success();
    // Of another program, or other caches, they are refused.
    let reported = stderr(&mut run(&[&by[..], &["--", "cat", "/dev/null"]].concat()));
    assert!(
        reported.contains("no activity vectors are of an executable that runs here (cat)"),
        "{reported}"
    );
    vectors("power7-755", "ls.vectors");
    let reported = stderr(&mut run(&[&by[..], &["--", "ls", "/"]].concat()));
    assert!(reported.contains("ls.vectors: vectors of ls are of other caches"), "{reported}");
    assert_eq!(reported.lines().count(), 1, "{reported}");
}

/// Is symbiont-synth next to symbiont? Says so if it is not: the test is skipped.
fn synth() -> bool {
    let built = assert_cmd::cargo::cargo_bin("symbiont").with_file_name("symbiont-synth").exists();
    if !built {
        eprintln!("skipped: symbiont-synth is not built; test the whole workspace");
    }
    built
}

/// From machine code to cycles: what a core is known to take, by both levels.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_take_the_cycles_that_the_description_gives() {
    if !able() || !synth() {
        return;
    }
    let kernels =
        ["dependent adds", "dependent multiplies", "chain through memory by other registers"];
    let kernels = kernels.join(",");
    let run =
        ["check-sim", "--host", "--machine", "sapphire-rapids", "--json", "--kernels", &kernels];
    let made = symbiont().args(run).assert().success();
    let report: serde_json::Value = serde_json::from_slice(&made.get_output().stdout).unwrap();
    // A load and an add from the store queue: its latency and one.
    for (kernel, known) in report["kernels"].as_array().unwrap().iter().zip([1.0, 3.0, 7.0]) {
        for level in ["fast", "cycle"] {
            let cycles = kernel[level].as_f64().unwrap();
            assert!((cycles / known - 1.0).abs() < 0.05, "{kernel}");
        }
        assert!(kernel["measured"]["median"].as_f64().unwrap() > 0.0, "{kernel}");
    }
}

#[test]
fn unknown_kernels_and_folders_without_programs_are_refused() {
    let run = ["check-sim", "--host", "--kernels", "adds"];
    let error = stderr(symbiont().args(run));
    assert!(error.contains("`symbiont-synth kernel` lists them"), "{error}");
    let error = stderr(symbiont().args(["check-sim", "--programs", "inputs"]));
    assert!(error.contains("--host"), "{error}");
}
