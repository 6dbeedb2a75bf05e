//! Commands that cannot run, and command lines and job files that make no
//! sense: what is wrong, where, and what to do; nothing is run.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use libtest_mimic::Trial;

use crate::test_folder::{TestFolder, stderr};
use crate::trials::trial;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("misuse_command_that_cannot_run_exits_127_or_126", cannot_run),
        trial("misuse_of_options_exits_125_and_says_what_is_meant", bad_options),
        trial(
            "misuse_of_a_policy_without_its_file_is_the_same_everywhere",
            policies_that_need_a_file,
        ),
        trial("misuse_of_other_commands_exits_2", other_commands),
        trial("misuse_of_a_job_file_names_file_line_and_key", bad_job_files),
        trial("misuse_of_files_to_write_is_reported_before_anything_runs", unwritable),
    ]
}

fn output(command: &mut Command) -> Output {
    command.output().expect("symbiont starts")
}

fn cannot_run() {
    let place = TestFolder::new();
    let file = place.path("data");
    std::fs::write(&file, "no program").expect("a file");
    let file = file.to_str().expect("UTF-8");
    for (program, code, why) in [
        ("symbiont-no-such-program", 127, "not found"),
        ("/no/such/program", 127, "not found"),
        ("/", 126, "is a directory"),
        (file, 126, "not executable"),
    ] {
        let said = format!("symbiont: cannot run '{program}': {why}");
        let jobs = place.path("jobs.toml");
        std::fs::write(&jobs, format!("[[job]]\ncommand = ['{program}']\n")).expect("a file");
        let mut job = place.symbiont("run");
        for run in [
            &mut place.run(&["--policy", "stay"], &[program]),
            &mut place.run(&["--policy", "stay", "--record", "/dev/null"], &[program]),
            job.args(["--policy", "stay", "--job"]).arg(&jobs),
        ] {
            let output = output(run);
            assert_eq!(output.status.code(), Some(code), "{program}: {output:?}");
            let shown = stderr(&output);
            assert!(shown.starts_with(&said), "{program}: {shown}");
            assert_eq!(shown.lines().count(), 1, "one line: {shown}");
        }
    }
}

fn bad_options() {
    let place = TestFolder::new();
    for (options, wanted) in [
        (&["--polcy", "stay"][..], &["--polcy", "--policy"][..]),
        (&["--policy", "phase"], &["'phase'", "did you mean 'phases'", "random"]),
        (&["--quantum", "20"], &["'20'", "--quantum", "20"]),
        (&["--quantum", "0ms"], &["'0ms'", "between 1ms and 1h"]),
        (&["--set", "threshold"], &["'threshold'", "--set <KEY=VALUE>", "KEY=VALUE"]),
        (&["--set", "threshold=-1"], &["threshold=-1", "a number above 0", "threshold=2"]),
        (
            &["--policy", "phases", "--set", "treshold=2"],
            &["'treshold'", "did you mean 'threshold'"],
        ),
        (
            &["--policy", "stay", "--set", "threshold=2"],
            &["'stay'", "belongs to 'auto', 'phases' and 'phases-online'"],
        ),
        (&["--slower", "4000000:2"], &["--slower 4000000:2", "no CPU 4000000"]),
        (&["--report", "xml"], &["'xml'", "text", "json"]),
        (&["--report-file", "x"], &["--report"]),
        (&["--job", "jobs.toml"], &["--job", "COMMAND"]),
    ] {
        let output = output(&mut place.run(options, &["echo", "ran"]));
        assert_eq!(output.status.code(), Some(125), "{options:?}: {output:?}");
        assert_eq!(output.stdout, b"", "{options:?}: nothing is run");
        let shown = stderr(&output);
        for word in wanted {
            assert!(shown.contains(word), "{options:?}: {word} is missing in {shown}");
        }
    }
    let nothing = output(&mut place.symbiont("run"));
    assert_eq!(nothing.status.code(), Some(125), "{nothing:?}");
    assert!(stderr(&nothing).contains("COMMAND"), "{nothing:?}");
}

/// `doctor`, `policies` and `run` agree on what a policy needs.
fn policies_that_need_a_file() {
    let place = TestFolder::new();
    let json = |command: &mut Command| {
        let output = output(command.arg("--json"));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON")
    };
    let doctor = json(&mut place.symbiont("doctor"));
    let list = json(Command::new(env!("CARGO_BIN_EXE_symbiont")).arg("policies"));
    let phases = json(Command::new(env!("CARGO_BIN_EXE_symbiont")).args(["policies", "phases"]));
    assert_eq!(phases[0]["parameters"][0]["name"], "threshold");
    assert_eq!(phases[0]["parameters"][1]["default"], "1s");
    let reported = |all: &serde_json::Value, policy: &str, key: &str| {
        let mut all = all.as_array().expect("policies").iter();
        let found = all.find(|entry| entry["name"] == policy).expect("the policy");
        found[key].as_str().map(str::to_owned)
    };
    for (policy, option) in [
        ("oracle", Some("--slowdowns")),
        ("symbiotic", Some("--model")),
        ("symbiotic-numa", Some("--model")),
        ("activity", Some("--vectors")),
        ("stay", None),
    ] {
        assert_eq!(reported(&list, policy, "needs_file").as_deref(), option, "{policy}");
        let cannot = reported(&doctor["policies"], policy, "cannot_run");
        assert_eq!(cannot.is_some(), option.is_some(), "{policy}: {cannot:?}");
        let Some(option) = option else { continue };
        let refused = output(&mut place.run(&["--policy", policy], &["echo", "ran"]));
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(125), 0), "{refused:?}");
        let shown = stderr(&refused);
        assert!(shown.contains(option) && shown.contains("full build"), "{shown}");
        // Its signals need no counters, so that only its file is missing anywhere.
        let same = cannot.is_some_and(|cannot| shown.contains(&cannot));
        assert!(same || policy != "oracle", "{shown}");
    }
}

fn other_commands() {
    for words in [
        &["restor"][..],
        &["doctor", "--jsn"],
        &["bench", "phases", "--seed", "x"],
        &["why", "abc"],
        &["detach", "--pid", "x2"],
    ] {
        let output = output(Command::new(env!("CARGO_BIN_EXE_symbiont")).args(words));
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        let wrong = words.last().expect("a word");
        assert!(stderr(&output).contains(wrong), "{output:?}");
        if ["why", "detach"].contains(&words[0]) {
            assert!(
                stderr(&output).contains("not the number of a process or a thread"),
                "{output:?}"
            );
        }
    }
}

fn bad_job_files() {
    let place = TestFolder::new();
    let good = "[[job]]\ncommand = ['echo', 'ran']\n";
    for (text, wanted) in [
        (format!("{good}{good}colour = 3\n"), &["line 5", "colour", "directory"][..]),
        (format!("{good}[jobs]\n"), &["line 3", "jobs"]),
        (format!("{good}[[job]]\ncommand = 'echo'\n"), &["line 4", "command", "sequence"]),
        (format!("{good}[[job]]\ncommand = []\n"), &["line 4", "command", "empty"]),
        (format!("{good}[[job]]\nname = 'x'\n"), &["line 3", "command", "missing"]),
        (format!("{good}session = 'mine'\n"), &["line 3", "session", "mine", "shared"]),
        (format!("{good}[[job]\n"), &["line 3"]),
        (String::new(), &["no [[job]]"]),
    ] {
        let jobs = place.path("jobs.toml");
        std::fs::write(&jobs, &text).expect("a file");
        let output = output(place.symbiont("run").arg("--job").arg(&jobs));
        assert_eq!(output.status.code(), Some(125), "{text}: {output:?}");
        assert_eq!(output.stdout, b"", "{text}: nothing is run");
        let shown = stderr(&output);
        assert!(shown.contains(jobs.to_str().expect("UTF-8")), "names the file: {shown}");
        for word in wanted {
            assert!(shown.contains(word), "{text}: {word} is missing in {shown}");
        }
    }
    // Opening a pipe without a writer would wait for ever.
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let pipe = output(place.symbiont("run").arg("--job").arg(&fifo));
    assert_eq!(pipe.status.code(), Some(125), "{pipe:?}");
    assert!(stderr(&pipe).contains("fifo: it is a pipe (FIFO), not a regular file"), "{pipe:?}");

    let missing = place.path("missing.toml");
    let missing = output(place.symbiont("run").arg("--job").arg(missing));
    assert_eq!(missing.status.code(), Some(125), "{missing:?}");
    assert!(stderr(&missing).contains("missing.toml: No such file"), "{missing:?}");

    // A redirection that cannot be opened counts too.
    let jobs = place.path("jobs.toml");
    std::fs::write(&jobs, format!("{good}[[job]]\ncommand = ['echo']\nstdout = '/no/such/file'"))
        .expect("a file");
    let output = output(place.symbiont("run").arg("--job").arg(&jobs));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]));
    assert!(stderr(&output).contains("/no/such/file"), "{output:?}");
}

fn unwritable() {
    let place = TestFolder::new();
    let closed = place.path("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o555)).expect("own folder");
    let inside = closed.join("x");
    let mut targets = vec!["/no/such/folder/x", "/dev/full", "/"];
    if !rustix::process::geteuid().is_root() {
        targets.push(inside.to_str().expect("UTF-8"));
    }
    for target in targets {
        let output = output(&mut place.run(&["--record", target], &["echo", "ran"]));
        assert_eq!(output.status.code(), Some(125), "{target}: {output:?}");
        assert_eq!(output.stdout, b"", "{target}: nothing is run");
        let shown = stderr(&output);
        assert!(shown.starts_with("symbiont: cannot ") && shown.contains(target), "{shown}");
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }
    let mut run =
        place.run(&["--report", "json", "--report-file", "/no/such/folder/x"], &["echo", "ran"]);
    let output = output(&mut run);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(125), &b""[..]));
}
