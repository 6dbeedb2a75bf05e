//! How a program ends is how the launcher ends.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;

/// A way of launching: its name, and the arguments of this binary. Without
/// arguments it is the program alone.
pub type Way = (&'static str, &'static [&'static str]);

/// All ways of launching.
pub const WAYS: [Way; 4] = [
    ("alone", &[]),
    ("in place", &["@run", "--"]),
    ("supervised", &["@job", "--"]),
    ("supervised in a session of its own", &["@job", "--own", "--"]),
];

/// The program, launched this way.
pub fn launched(way: &[&str], program: &[&str]) -> Command {
    let mut words: Vec<String> = Vec::new();
    if !way.is_empty() {
        let launcher = std::env::current_exe().expect("the path of this test");
        words.push(launcher.into_os_string().into_string().expect("a path in UTF-8"));
    }
    words.extend(way.iter().chain(program).map(|&word| word.to_owned()));
    let (program, arguments) = words.split_first().expect("a program");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(way: &[&str], program: &[&str]) -> Output {
    launched(way, program).output().expect("the launcher starts")
}

/// This module's tests.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("exit_codes_are_passed_on", || {
            for (name, way) in WAYS {
                for code in [0, 1, 125, 255] {
                    let output = run(way, &["sh", "-c", &format!("exit {code}")]);
                    assert_eq!(output.status.code(), Some(code), "{name}");
                }
            }
            Ok(())
        }),
        Trial::test("exit_by_a_signal_is_an_exit_by_that_signal", || {
            for (name, way) in WAYS {
                for signal in [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM, libc::SIGINT] {
                    // Tests started in the background have SIGINT ignored.
                    let env = ["env", "--default-signal=INT"];
                    let words = ["sh", "-c", &format!("kill -{signal} $$")];
                    let output = run(way, &[&env[..], &words[..]].concat());
                    assert_eq!(output.status.signal(), Some(signal), "{name}");
                }
            }
            Ok(())
        }),
        Trial::test("exit_127_and_126_say_why_a_program_did_not_run", || {
            let file = tempfile::NamedTempFile::new()?;
            let file = file.path().to_str().expect("a path in UTF-8");
            for (name, way) in &WAYS[1..] {
                for (program, code, why) in [
                    ("symbiont-no-such-program", 127, "not found"),
                    ("/no/such/program", 127, "not found"),
                    ("/", 126, "is a directory"),
                    (file, 126, "not executable"),
                ] {
                    let output = run(way, &[program]);
                    assert_eq!(output.status.code(), Some(code), "{name}: {program}");
                    let said = String::from_utf8_lossy(&output.stderr);
                    let wanted = format!("launch: cannot run '{program}': {why}");
                    assert!(said.contains(&wanted), "{name}: {said}");
                }
            }
            Ok(())
        }),
        Trial::test("manager_that_fails_or_dies_costs_the_management_only", || {
            for role in ["@run", "@job"] {
                for (manner, why) in [
                    ("--fail", "does not want to"),
                    ("--panic", "ended unexpectedly"),
                    ("--die", "ended unexpectedly"),
                ] {
                    let output = run(&[role, manner, "--"], &["sh", "-c", "echo ran; exit 7"]);
                    assert_eq!(output.status.code(), Some(7), "{role} {manner}");
                    assert_eq!(output.stdout, b"ran\n");
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(said.contains("launch: runs unmanaged"), "{role} {manner}: {said}");
                    assert!(said.contains(why), "{role} {manner}: {said}");
                }
            }
            Ok(())
        }),
        Trial::test("manager_is_not_forked_with_other_threads", || {
            let program = ["sh", "-c", "echo ran; exit 7"];
            let in_place = run(&["@run", "--thread", "--"], &program);
            assert_eq!(in_place.status.code(), Some(7));
            let said = String::from_utf8_lossy(&in_place.stderr);
            assert!(said.contains("runs unmanaged") && said.contains("2 threads"), "{said}");
            let supervised = run(&["@job", "--thread", "--"], &program);
            assert_eq!((supervised.status.code(), &supervised.stdout[..]), (Some(125), &b""[..]));
            let said = String::from_utf8_lossy(&supervised.stderr);
            assert!(said.contains("single thread"), "{said}");
            Ok(())
        }),
        Trial::test("manager_has_the_descriptors_that_it_was_to_keep", || {
            for role in ["@run", "@job"] {
                let file = tempfile::NamedTempFile::new()?;
                let path = file.path().display().to_string();
                let output = run(&[role, "--keep", &path, "--"], &["true"]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                assert_eq!(std::fs::read_to_string(&path)?, "kept");
            }
            Ok(())
        }),
        Trial::test("manager_that_dies_later_is_reported_at_the_end", || {
            let output = run(&["@job", "--die-later", "--"], &["sh", "-c", "exit 7"]);
            assert_eq!(output.status.code(), Some(7));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("no report: the manager ended unexpectedly"), "{said}");
            Ok(())
        }),
    ]
}
