//! What becomes of jobs when a batch is killed, run twice, stopped, or out of disk space.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group, prlimit};

use super::{batch, stderr, symbiont, until};

const IN_ORDER: [&str; 2] = ["--order", "first-come"];

fn started(folder: &Path, jobs: &str, options: &[&str]) -> Child {
    fs::write(folder.join("jobs.txt"), jobs).unwrap();
    symbiont(folder, options).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Logs its begin, waits for a file and logs its end.
fn waits_for(file: &str, name: &str) -> String {
    format!(
        "echo begin {name} >>log; until test -e {file}; do sleep 0.02; done; echo end {name} >>log\n"
    )
}

#[test]
fn a_second_batch_on_the_same_progress_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = waits_for("go", "a");
    let mut first = started(folder.path(), &jobs, &["-n", "1"]);
    until("the job runs", || log(folder.path()) == "begin a\n");
    for options in [&["--resume"][..], &[]] {
        let output = batch(folder.path(), &jobs, options);
        let said = stderr(&output);
        let part = format!("another symbiont batch (process {}) uses it", first.id());
        assert!(said.contains(&part) && said.lines().count() == 1, "{said}");
        assert_eq!(output.status.code(), Some(1));
    }
    fs::write(folder.path().join("go"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(log(folder.path()), "begin a\nend a\n");
}

#[test]
fn jobs_of_a_killed_batch_are_waited_for_and_not_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = waits_for("go", "a") + &waits_for("go", "b") + "echo c >>log\n";
    let mut first = started(folder.path(), &jobs, &[&IN_ORDER[..], &["-n", "2"]].concat());
    until("two jobs run", || log(folder.path()).lines().count() == 2);
    kill(&mut first);
    // Neither next to these nor with what it ran forgotten.
    let output = batch(folder.path(), &jobs, &["-n", "2"]);
    assert!(stderr(&output).contains("left 2 jobs running"), "{}", stderr(&output));
    let mut second = symbiont(folder.path(), &["--resume", "-n", "2", "--json"]);
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(log(folder.path()).lines().count(), 2, "both slots are taken");
    fs::write(folder.path().join("go"), "").unwrap();
    let output = second.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("line 1 still runs"), "{said}");
    let log = log(folder.path());
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["begin a", "begin b", "c", "end a", "end b"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let jobs = summary["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), jobs[0]["exit_code"].as_i64()), (3, Some(0)));
}

#[test]
fn a_job_that_ended_after_its_batch_was_killed_is_done_as_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let failing =
        "echo begin b >>log; until test -e go; do sleep 0.02; done; echo end b >>log; exit 3\n";
    let jobs = waits_for("go", "a") + failing;
    let mut first = started(folder.path(), &jobs, &["-n", "2"]);
    until("both run", || log(folder.path()).lines().count() == 2);
    kill(&mut first);
    fs::write(folder.path().join("go"), "").unwrap();
    until("both have ended", || log(folder.path()).lines().count() == 4);
    let output = batch(folder.path(), &jobs, &["--resume"]);
    assert_eq!(output.status.code(), Some(1));
    let log = log(folder.path());
    assert_eq!(log.matches("begin a").count(), 1, "{log}");
    assert_eq!(log.matches("begin b").count(), 2, "{log}");
}

#[test]
fn a_job_whose_keeper_was_killed_too_is_not_run_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let job = "echo begin $PPID >>log; until test -e go; do sleep 0.02; done; echo end >>log\n";
    let mut first = started(folder.path(), job, &["-n", "1"]);
    until("the job runs", || log(folder.path()).contains('\n'));
    kill(&mut first);
    let keeper = log(folder.path()).trim_start_matches("begin ").trim().parse().unwrap();
    kill_process(Pid::from_raw(keeper).unwrap(), Signal::KILL).unwrap();
    let second = symbiont(folder.path(), &["--resume"]).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(log(folder.path()).lines().count(), 1);
    fs::write(folder.path().join("go"), "").unwrap();
    let output = second.wait_with_output().unwrap();
    assert!(stderr(&output).contains("how is not known"), "{}", stderr(&output));
    assert_eq!((output.status.code(), log(folder.path()).lines().count()), (Some(1), 2));
    // What did not end well as far as is known runs again.
    assert!(batch(folder.path(), job, &["--resume"]).status.success());
    assert_eq!(log(folder.path()).lines().count(), 4);
}

#[test]
fn comments_new_lines_and_another_order_rerun_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = "echo a >>log\necho b >>log\necho b >>log\n";
    assert!(batch(folder.path(), first, &["-n", "1", "--output", "out"]).status.success());
    let edited = "# now with a comment\necho b >>log\necho new >>log; echo from new\n\necho a >>log\necho b >>log\n\
                  echo b >>log\n";
    let output = batch(folder.path(), edited, &["--resume", "--output", "out"]);
    assert!(stderr(&output).contains("3 done earlier"), "{}", stderr(&output));
    let log = log(folder.path());
    let count = |line: &str| log.lines().filter(|one| *one == line).count();
    assert_eq!((count("a"), count("b"), count("new")), (1, 3, 1), "{log}");
    // Line 3 is another job now: what the earlier one wrote is kept.
    let written = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert_eq!((written("3.out").as_str(), written("3.2.out").as_str()), ("", "from new\n"));
}

#[test]
fn equal_commands_in_other_folders_are_other_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    for place in [folder.path(), &other] {
        fs::write(place.join("jobs.txt"), "echo a >>log\n").unwrap();
        let progress = folder.path().join("progress");
        let options = ["--resume", "--progress", progress.to_str().unwrap()];
        assert!(symbiont(place, &options).output().unwrap().status.success());
        assert_eq!(log(place), "a\n");
    }
}

#[test]
fn a_signal_ends_a_batch_whose_job_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let _ = fs::remove_file(folder.path().join("log"));
        let job = "echo $PPID >>log; echo $$ >>log; sleep 1000; true\n";
        let mut running = started(folder.path(), job, &["-n", "1"]);
        until("the job runs", || log(folder.path()).lines().count() == 2);
        let log = log(folder.path());
        let mut processes = log.lines().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap());
        let (keeper, job) = (processes.next().unwrap(), processes.next().unwrap());
        // A dash that starts a program just then loses a SIGINT to its group: the handler that it has acts in the
        // child, before that becomes the program.
        let children = format!("/proc/{0}/task/{0}/children", job.as_raw_pid());
        let is_asleep = |child: &str| {
            fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "sleep\n")
        };
        until("the job's program runs", || {
            fs::read_to_string(&children).unwrap_or_default().split_whitespace().any(is_asleep)
        });
        kill_process_group(job, Signal::STOP).unwrap();
        // Its keeper, too.
        kill_process(keeper, Signal::STOP).unwrap();
        kill_process(Pid::from_child(&running), signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), Some(128 + signal.as_raw()));
        assert!(!Path::new(&format!("/proc/{}", job.as_raw_pid())).exists(), "the job has ended");
    }
}

#[test]
fn a_signal_that_is_ignored_as_behind_nohup_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let job = "echo $PPID >>log; until test -e go; do sleep 0.02; done; echo end >>log\n";
    fs::write(folder.path().join("jobs.txt"), job).unwrap();
    let batch = symbiont(folder.path(), &["-n", "1"]);
    let mut ignoring = Command::new("sh");
    ignoring.current_dir(folder.path()).args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    ignoring.arg(batch.get_program()).args(batch.get_args()).stderr(Stdio::null());
    let mut running = ignoring.spawn().unwrap();
    until("the job runs", || log(folder.path()).lines().count() == 1);
    let keeper = Pid::from_raw(log(folder.path()).trim().parse().unwrap()).unwrap();
    for process in [Pid::from_child(&running), keeper] {
        kill_process(process, Signal::HUP).unwrap();
    }
    fs::write(folder.path().join("go"), "").unwrap();
    assert!(running.wait().unwrap().success());
    assert!(log(folder.path()).ends_with("end\n"));
}

#[test]
fn a_second_signal_kills_a_job_that_ignores_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let job = "trap 'echo asked >>log' TERM; echo begin >>log; while :; do sleep 0.05; done\n";
    let mut running = started(folder.path(), job, &["-n", "1"]);
    until("the job runs", || log(folder.path()).contains("begin"));
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    until("the job was asked", || log(folder.path()).contains("asked"));
    kill_process(Pid::from_child(&running), Signal::TERM).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(143));
}

#[test]
fn a_batch_that_cannot_record_starts_no_more_and_ends_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "echo begin a >>log; sleep 0.5; echo end a >>log\necho b >>log\n";
    fs::write(folder.path().join("jobs.txt"), jobs).unwrap();
    // Room for the header and one job.
    let command = symbiont(folder.path(), &[&IN_ORDER[..], &["-n", "2"]].concat());
    let mut limited = Command::new("sh");
    limited.current_dir(folder.path()).args(["-c", "ulimit -f 2; exec \"$@\"", "sh"]);
    let output = limited.arg(command.get_program()).args(command.get_args()).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("no job starts until").count(), 1, "{said}");
    assert!(said.contains("1 of 2 jobs ended well") && said.contains("1 not started"), "{said}");
    assert_eq!(log(folder.path()), "begin a\nend a\n");
    let output = batch(folder.path(), jobs, &["--resume"]);
    assert!(stderr(&output).contains("1 done earlier"), "{}", stderr(&output));
    assert_eq!(log(folder.path()), "begin a\nend a\nb\n");
}

#[test]
fn an_end_that_cannot_be_recorded_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let job = "echo $PPID >>log; until test -e go; do sleep 0.02; done; echo end >>log\n";
    fs::write(folder.path().join("jobs.txt"), job).unwrap();
    let mut batch = symbiont(folder.path(), &[]);
    let batch = batch.stderr(Stdio::piped()).spawn().unwrap();
    until("the job runs", || log(folder.path()).contains('\n'));
    let keeper = Pid::from_raw(log(folder.path()).trim().parse().unwrap()).unwrap();
    let allow = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(keeper), Resource::Fsize, limit).unwrap();
    };
    // From here on its writes fail.
    allow(Some(0));
    fs::write(folder.path().join("go"), "").unwrap();
    until("the job has ended", || log(folder.path()).contains("end"));
    std::thread::sleep(std::time::Duration::from_millis(300));
    allow(None);
    let output = batch.wait_with_output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("cannot be noted, which is tried again").count(), 1, "{said}");
}

#[test]
fn jobs_get_signals_as_without_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let output = batch(folder.path(), "kill -s XFSZ $$\nkill -s PIPE $$\n", &["--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let codes = summary["jobs"].as_array().unwrap().iter().map(|job| job["exit_code"].as_i64());
    assert_eq!(codes.collect::<Vec<_>>(), [Some(153), Some(141)]);
}

/// A batch whose folder `disk` is a file system of its own; none: this user cannot mount one.
fn on_small_disk(folder: &Path, size: &str, options: &[&str]) -> Option<Output> {
    fs::create_dir(folder.join("disk")).unwrap();
    let inside = |then: &str| {
        let script = format!("mount -t tmpfs -o {size} tmpfs disk && {then}");
        let mut inside = Command::new("unshare");
        inside.current_dir(folder).args(["-m", "sh", "-c", &script, "sh"]);
        inside
    };
    let can_mount = inside("true").stderr(Stdio::null()).status();
    if !can_mount.is_ok_and(|status| status.success()) {
        println!("skipped: a small file system cannot be mounted");
        return None;
    }
    let command = symbiont(folder, options);
    let mut inside = inside("exec \"$@\"");
    Some(inside.arg(command.get_program()).args(command.get_args()).output().unwrap())
}

#[test]
fn a_batch_waits_for_room_for_what_its_jobs_write() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = "echo a\nsleep 1.2; rm disk/1.out disk/1.err\necho c\n";
    fs::write(folder.path().join("jobs.txt"), jobs).unwrap();
    // The folder and five files.
    let options = [&IN_ORDER[..], &["-n", "2", "--output", "disk"]].concat();
    let Some(output) = on_small_disk(folder.path(), "nr_inodes=6", &options) else { return };
    let said = stderr(&output);
    assert!(output.status.success() && said.contains("3 of 3 jobs ended well"), "{said}");
    assert_eq!(said.matches("no job starts until").count(), 1, "{said}");
}

#[test]
fn a_batch_on_a_full_disk_goes_on_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    // A page of the file system has room for the header and seven jobs. The first fills the disk, the second
    // makes room again, long after the others have been kept waiting.
    let mut jobs = "head -c 1M /dev/zero >disk/fill 2>/dev/null; echo 1 >>log\n".to_owned();
    jobs += "until test $(grep -c . log) -ge 6; do sleep 0.05; done; sleep 1.5; rm disk/fill; echo 2 >>log\n";
    (3..=20).for_each(|job| jobs += &format!("echo {job} >>log\n"));
    fs::write(folder.path().join("jobs.txt"), &jobs).unwrap();
    let options = [&IN_ORDER[..], &["-n", "2", "--progress", "disk/progress"]].concat();
    let Some(output) = on_small_disk(folder.path(), "size=32k", &options) else { return };
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("20 of 20 jobs ended well"), "{said}");
    assert_eq!(said.matches("no job starts until").count(), 1, "{said}");
    assert_eq!(log(folder.path()).lines().count(), 20);
}
