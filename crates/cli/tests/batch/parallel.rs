//! What users of GNU parallel expect.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{batch, stderr};

/// A batch without a job file.
fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.current_dir(folder).args(["batch", "--store", "known.json", "--state-dir", "state"]);
    command.args(["--order", "first-come"]).args(words);
    command
}

fn given(folder: &Path, words: &[&str], input: &str) -> Output {
    let mut command = command(folder, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn written(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn commands_and_arguments_are_taken_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let commands = given(folder, &["-j", "1"], "# two\necho a\n\necho b; cat\n");
    assert_eq!(written(&commands), ["a", "b"]);
    let arguments = given(folder, &["-j1", "--", "echo", "{/.}", "{#}"], "x/it's.gz\n$HOME\n");
    assert_eq!(written(&arguments), ["it's 1", "$HOME 2"]);
    let none = given(folder, &["-j1", "--", "echo"], "\n");
    assert_eq!(written(&none), Vec::<String>::new());
    // Nothing of it is left.
    let mut left: Vec<_> =
        fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["known.json", "known.lock"]);
}

#[test]
fn arguments_follow_three_colons() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), &["-j", "1", "--", "echo <", ":::", "a b", "c"]).output();
    assert!(!output.unwrap().status.success(), "there are no such files");
    fs::write(folder.path().join("a b"), "1").unwrap();
    let output = command(folder.path(), &["-j1", "--", "cat {}; echo", ":::", "a b"]).output();
    assert_eq!(written(&output.unwrap()), ["1"]);
    fs::write(folder.path().join("names"), "a b\n").unwrap();
    let output = command(folder.path(), &["names", "--", "cat"]).output().unwrap();
    assert_eq!(written(&output), ["1"]);
    assert!(folder.path().join("names.progress").exists());
}

#[test]
fn jobs_without_a_file_are_resumed_by_a_progress_file() {
    let folder = tempfile::tempdir().unwrap();
    let refused = command(folder.path(), &["--resume", "--", "echo", ":::", "a"]).output().unwrap();
    assert!(stderr(&refused).contains("--resume takes --progress FILE"), "{}", stderr(&refused));
    for (arguments, want) in [(&["a"][..], &["a"][..]), (&["b", "a"], &["b"])] {
        let options = ["--resume", "--progress", "progress", "--", "echo", ":::"];
        let output = command(folder.path(), &[&options[..], arguments].concat()).output().unwrap();
        assert_eq!(written(&output), want);
    }
}

#[test]
fn the_job_log_has_the_columns_of_gnu_parallel() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "true\nexit 3\nkill -15 $$\n";
    let options = ["-j", "1", "--joblog", "log", "--order", "first-come"];
    batch(folder.path(), jobs, &options);
    let read = || fs::read_to_string(folder.path().join("log")).unwrap();
    let columns = |text: &str| {
        let line = |line: &str| {
            let columns: Vec<_> = line.split('\t').map(str::to_owned).collect();
            [0, 1, 4, 5, 6, 7, 8].map(|at| columns[at].clone()).join(" ")
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    let all = [
        "Seq Host Send Receive Exitval Signal Command",
        "1 : 0 0 0 0 true",
        "2 : 0 0 3 0 exit 3",
        "3 : 0 0 0 15 kill -15 $$",
    ];
    assert_eq!(columns(&read()), all);
    batch(folder.path(), jobs, &[&options[..], &["--resume"]].concat());
    assert_eq!(columns(&read()), [&all[..], &all[2..]].concat());
}

#[test]
fn a_full_job_log_ends_nothing_and_is_an_error_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let output = batch(folder.path(), "true\ntrue\n", &["--joblog", "/dev/full"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("/dev/full, which is tried again").count(), 1, "{said}");
    assert!(said.contains("2 of 2 jobs ended well"), "{said}");
    assert!(said.contains("the job log is not complete"), "{said}");
}

#[test]
fn a_job_that_fails_is_tried_again_so_often() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "echo a >>log; test $(grep -c a log) -eq 3\necho b >>log; exit 1\n";
    let output = batch(folder.path(), jobs, &["-j", "2", "--retries", "3", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("it is tried again (3 of 3)"), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let jobs = summary["jobs"].as_array().unwrap();
    let seen: Vec<_> =
        jobs.iter().map(|job| (job["exit_code"].as_i64(), job["tries"].as_u64())).collect();
    assert_eq!(seen, [(Some(0), Some(3)), (Some(1), Some(3))]);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
}

#[test]
fn a_job_that_takes_too_long_is_ended_and_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    // One that ends well once it is asked to has not done its work.
    let jobs = "sleep 1000; true\ntrap 'exit 0' TERM; while :; do sleep 0.02; done\necho a >>log\n";
    let output = batch(folder.path(), jobs, &["-j", "3", "--timeout", "0.5", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("line 1: took too long and was ended"), "{said}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let timed_out: Vec<_> =
        summary["jobs"].as_array().unwrap().iter().map(|job| job["timed_out"] == true).collect();
    assert_eq!(timed_out, [true, true, false]);
    let again = batch(folder.path(), jobs, &["--resume", "--timeout", "100ms"]);
    assert!(stderr(&again).contains("1 done earlier"), "{}", stderr(&again));
}

#[test]
fn a_batch_is_halted_by_failures_or_successes() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "until test -e started; do sleep 0.02; done; exit 1\n>started; sleep 1000; true\necho c >>log\n";
    let options = ["-j", "2", "--order", "first-come", "--halt"];
    let output = batch(folder.path(), jobs, &[&options[..], &["now,fail=1"]].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 not started") && said.contains("ended early by --halt"), "{said}");
    assert!(said.contains("line 2: killed by signal 15"), "{said}");
    let jobs = "until test -e go; do sleep 0.02; done; echo a >>log\n>go\necho c >>log\n";
    let output = batch(folder.path(), jobs, &[&options[..], &["soon,success=1"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(folder.path().join("log")).unwrap(), "a\n");
}

/// What a command writes to standard error where that is a terminal, and its exit code.
fn on_a_terminal(mut batch: Command) -> (Option<i32>, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let open = || File::options().read(true).write(true).open(&name).unwrap();
    batch.env("TERM", "xterm").env_remove("NO_COLOR");
    let mut child = batch.stdin(Stdio::null()).stderr(open()).spawn().unwrap();
    // It holds the terminal open.
    drop(batch);
    let mut terminal = File::from(terminal);
    let reader = std::thread::spawn(move || {
        let (mut all, mut some) = (Vec::new(), [0; 4096]);
        // An error: no process has it open any more.
        while let Ok(got @ 1..) = terminal.read(&mut some) {
            all.extend_from_slice(&some[..got]);
        }
        String::from_utf8_lossy(&all).into_owned()
    });
    let status = child.wait().unwrap();
    (status.code(), reader.join().unwrap())
}

#[test]
fn the_bar_shows_on_a_terminal_what_is_done_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--bar", "-j", "1", "--", "sleep", ":::", "0.1", "0.2", "x"];
    let (code, shown) = on_a_terminal(command(folder.path(), &options));
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("0% 0/3 done, 1 running, time left is not known yet"), "{shown}");
    assert!(shown.contains("66% 2/3 done, 1 running, 0:0"), "{shown}");
    assert!(shown.contains("\r\x1b[K\x1b[31msymbiont: line 3 ended with exit code 1"), "{shown}");
    assert!(!shown.contains("starts line"), "{shown}");
    // Elsewhere there is none.
    let output = command(folder.path(), &["--bar", "--", "true", ":::", "a"]).output().unwrap();
    assert!(!stderr(&output).contains("% "), "{}", stderr(&output));
}

#[test]
fn a_terminal_shows_what_is_left_by_default_and_a_bar_where_jobs_write_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |options: &[&str]| {
        let words = [options, &["-j1", "--", "sleep", ":::", "0.1", "0.1", "0.1"]].concat();
        let (code, shown) = on_a_terminal(command(folder.path(), &words));
        assert_eq!(code, Some(0), "{shown}");
        shown
    };
    let first = shown(&[]);
    assert!(first.contains("[1/3] starts line 1") && !first.contains("% "), "{first}");
    assert!(first.contains("[2/3, 0:01 left] starts line 2"), "{first}");
    let kept = shown(&["--output", "out"]);
    assert!(kept.contains("66% 2/3 done") && !kept.contains("starts line"), "{kept}");
    let all = shown(&["--output", "out", "-v"]);
    assert!(all.contains("66% 2/3 done") && all.contains("starts line 3"), "{all}");
    assert!(all.contains("no daemon runs here: nothing places the jobs; 1 at a time"), "{all}");
    // Elsewhere there is neither bar nor colour, unless that is asked for.
    let words = ["--output", "out", "--", "false", ":::", "a"];
    let said = stderr(&command(folder.path(), &words).output().unwrap());
    assert!(!said.contains("% ") && !said.contains(" left]") && !said.contains('\x1b'), "{said}");
    let coloured = [&["--color", "always"], &words[..]].concat();
    let said = stderr(&command(folder.path(), &coloured).output().unwrap());
    assert!(said.contains("\x1b[31msymbiont: line 1 ended with exit code 1"), "{said}");
}

#[test]
fn names_of_any_bytes_are_arguments_and_in_job_files() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9 a");
    fs::write(folder.path().join(name), "1\n").unwrap();
    let mut batch = command(folder.path(), &["-j1", "--", "cat", ":::"]);
    assert_eq!(written(&batch.arg(name).output().unwrap()), ["1"]);
    fs::write(folder.path().join("names"), b"caf\xe9 a\n").unwrap();
    let output = command(folder.path(), &["names", "-j1", "--", "cat"]).output().unwrap();
    assert_eq!(written(&output), ["1"]);
    fs::write(folder.path().join("jobs"), b"cat 'caf\xe9 a'\ncat 'caf\xe8 a'\n").unwrap();
    let jobs = |options: &[&str]| {
        command(folder.path(), &[&["jobs", "-j1", "--joblog", "log"], options].concat()).output()
    };
    let output = jobs(&[]).unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"1\n"[..]));
    assert!(stderr(&output).contains("line 2: ended with exit code 1: cat 'caf\u{fffd} a'"));
    // Of two commands that differ in such a byte one has not ended well.
    assert_eq!(jobs(&["--resume"]).unwrap().status.code(), Some(1));
    fs::write(folder.path().join("bad"), b"true\ntrue \0\n").unwrap();
    let output = command(folder.path(), &["bad"]).output().unwrap();
    assert!(stderr(&output).contains("in the job file bad: line 2 holds a zero byte"));
}
