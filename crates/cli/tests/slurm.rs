//! `symbiont slurm` with a Slurm that is slow, fails, keeps pipes open and prints hostile names: commands of the same
//! names, which note what they are asked to change.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// Longer than any test may take, and shorter than what the fake commands wait.
const LONG: Duration = Duration::from_secs(100);

/// `squeue -O` is answered from the file of the job; both commands do as the files `slow-*`, `fails` and `holds` say.
const SQUEUE: &str = r#"#!/bin/sh
env >>environment
[ ! -e slow-squeue ] || { touch reached; sleep 200; }
[ ! -e fails ] || { rm fails; echo "squeue: error: Unable to do it" >&2; exit 1; }
[ ! -e holds ] || sleep 200 &
while [ $# -gt 1 ]; do
    case $1 in
    --jobs) job=$2 ;;
    --json) json=1 ;;
    esac
    shift
done
[ "$1" != --json ] || json=1
if [ -n "$json" ]; then cat queue.json; else cat "job.$job"; fi
"#;
const SCONTROL: &str = r#"#!/bin/sh
case "$*" in
update*)
    echo "$*" >>calls
    ;;
"write batch_script"*)
    [ ! -e slow-script ] || { touch reached; sleep 200; }
    printf '#!/bin/sh\ntrue\nfalse\n'
    ;;
*node) echo "NodeName=a CPUAlloc=0 CPUTot=4 NodeAddr=a Sockets=4 CoresPerSocket=1 RealMemory=100 State=IDLE Partitions=p" ;;
*partition) echo "PartitionName=p OverSubscribe=NO" ;;
*config)
    [ ! -e slow-config ] || exec sleep 200
    [ ! -e fails ] || { echo "Unable to contact slurm controller (connect failure)" >&2; exit 1; }
    printf 'SelectType = select/cons_tres\nSelectTypeParameters = CR_CPU\n'
    printf 'TaskPlugin = task/affinity\nTaskPluginParam = (null type)\nPlugStackConfig = /nowhere/plugstack.conf\n'
    ;;
esac
"#;

/// A folder with the fake commands.
struct Fake(tempfile::TempDir);

impl Fake {
    /// With these jobs: number, AdminComment in the queue and by its own number, name.
    fn new(jobs: &[(u64, &str, &str, &str)]) -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("squeue", SQUEUE), ("scontrol", SCONTROL)] {
            fs::write(fake.path(name), text).unwrap();
            fs::set_permissions(fake.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let shown =
            jobs.iter().map(|&(id, in_queue, _, name)| job(id, in_queue, name)).collect::<Vec<_>>();
        fake.show(&shown);
        for (id, _, by_number, _) in jobs {
            let line = format!("{id}   |7 |9  |N/A |PD |{by_number} |\n");
            fs::write(fake.path(&format!("job.{id}")), line).unwrap();
        }
        fake
    }

    fn show(&self, jobs: &[serde_json::Value]) {
        // As a whole, since it may be read meanwhile.
        fs::write(self.path("queue.draft"), json!({ "jobs": jobs }).to_string()).unwrap();
        fs::rename(self.path("queue.draft"), self.path("queue.json")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn set(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.0.path().display()));
        command
            .env("SQUEUE_STATES", "RUNNING")
            .env("SINFO_FORMAT", "%x")
            .env("SLURM_CLUSTERS", "x");
        command.current_dir(self.0.path());
        command.args(["slurm", "--store", "jobs.json"]).args(options);
        if !options.contains(&"--interval") {
            command.args(["--interval", "100ms"]);
        }
        command
    }

    fn once(&self) -> Output {
        self.command(&["--once"]).output().unwrap()
    }

    fn start(&self, options: &[&str]) -> Child {
        let mut command = self.command(options);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What was asked to be changed.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn await_(&self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is_there(self) {
            assert!(begin.elapsed() < LONG, "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

const MARK: &str = "symbiont:waits";

fn job(id: u64, admin_comment: &str, name: &str) -> serde_json::Value {
    json!({
        "job_id": id, "job_state": "PENDING", "state_reason": "BeginTime", "priority": 1000 - id,
        "partition": "p", "user_id": 7, "cpus": 1, "node_count": 1, "submit_time": 9, "batch_flag": true,
        "admin_comment": admin_comment, "name": name, "comment": name,
    })
}

fn ends(mut child: Child) -> String {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < LONG, "SIGTERM is not heeded");
        std::thread::sleep(Duration::from_millis(10));
    }
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stderr).into_owned()
}

#[test]
fn names_of_jobs_start_no_other_job() {
    let name = "x\n2|PD|BeginTime|1|p||0|1|1|1||||||symbiont:waits|\n2   |7 |9  |N/A |PD |symbiont:waits |";
    let fake = Fake::new(&[(1, MARK, MARK, name), (2, "", "", name)]);
    let output = fake.once();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fake.calls(), ["update JobId=1 StartTime=now ReqNodeList=a"]);
}

#[test]
fn a_job_that_is_not_confirmed_by_its_number_is_left_alone() {
    let fake = Fake::new(&[(1, MARK, MARK, "x"), (2, MARK, "", "y")]);
    let output = fake.once();
    assert_eq!(fake.calls(), ["update JobId=1 StartTime=now ReqNodeList=a"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("job 2 is not released: squeue: its start is not left to Symbiont"),
        "{said}"
    );
}

#[test]
fn users_defaults_do_not_reach_slurms_commands() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    fake.once();
    let environment = fs::read_to_string(fake.path("environment")).unwrap();
    assert!(environment.contains("SLURM_TIME_FORMAT=%s"));
    for name in ["SQUEUE_STATES", "SINFO_FORMAT", "SLURM_CLUSTERS"] {
        assert!(!environment.contains(name), "{name}");
    }
}

#[test]
fn sigterm_ends_it_while_slurm_does_not_answer() {
    for slow in ["slow-script", "slow-squeue"] {
        let fake = Fake::new(&[(1, MARK, MARK, "x")]);
        fake.set(slow);
        let child = fake.start(&[]);
        fake.await_("it is asked", |fake| fake.path("reached").exists());
        ends(child);
        assert_eq!(fake.calls(), Vec::<String>::new(), "{slow}");
    }
}

#[test]
fn a_command_that_is_waited_for_is_named() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    fake.set("slow-squeue");
    for options in [&["--dry-run"][..], &["--once"], &["why", "1"]] {
        let mut command = fake.command(options);
        if options[0] == "why" {
            command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
            let path = format!("{}:{}", fake.0.path().display(), std::env::var("PATH").unwrap());
            command.env("PATH", path).current_dir(fake.0.path()).env("XDG_STATE_HOME", ".");
            command.args(["slurm"]).args(options);
        }
        let said = fs::File::create(fake.path("said")).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        fake.await_("it is named", |fake| {
            let said = fs::read_to_string(fake.path("said")).unwrap();
            said.contains("symbiont: waits for squeue, which has not answered yet; 20 s at most")
        });
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_process_that_holds_the_output_of_squeue_is_not_waited_for() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    fake.set("holds");
    let begin = Instant::now();
    // What holds the output of squeue holds nothing of ours.
    assert!(fake.once().status.success());
    assert!(begin.elapsed() < LONG);
    assert_eq!(fake.calls(), ["update JobId=1 StartTime=now ReqNodeList=a"]);
}

#[test]
fn it_goes_on_after_a_failure_of_slurm_and_where_nothing_can_be_noted() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    fake.set("fails");
    let child = fake.start(&["--decisions", "/dev/full", "--metrics", "/proc/no/such.prom"]);
    // The queue shows it as waiting each time.
    fake.await_("jobs are released", |fake| fake.calls().len() > 5);
    let said = ends(child);
    assert!(said.contains("Unable to do it; asks again every 0.1 s"), "{said}");
    assert!(said.contains("Slurm answers again"), "{said}");
    assert_eq!(said.matches("No space left on device").count(), 1, "{said}");
    assert_eq!(said.matches("cannot write metrics").count(), 1, "{said}");
}

#[test]
fn without_a_note_of_it_no_job_is_assigned_a_node() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    // A link to nothing is not replaced.
    std::os::unix::fs::symlink("gone", fake.path("jobs.released")).unwrap();
    let output = fake.once();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fake.calls(), ["update JobId=1 StartTime=now"]);
}

#[test]
fn what_a_killed_releaser_has_assigned_is_undone() {
    let fake = Fake::new(&[(1, MARK, MARK, "x")]);
    let sent = |reason: &str, priority: u64| {
        let mut job = job(1, MARK, "x");
        job["required_nodes"] = json!("a");
        job["state_reason"] = json!(reason);
        job["priority"] = json!(priority);
        fake.show(&[job]);
    };
    let mut child = fake.start(&["--interval", "10s"]);
    fake.await_("a job is released", |fake| !fake.calls().is_empty());
    sent("Resources", 999);
    child.kill().unwrap();
    child.wait().unwrap();
    // Its node has changed: Slurm gives the job up.
    sent("BadConstraints", 0);
    fake.await_("it is given back", |fake| fake.calls().len() > 1);
    assert_eq!(fake.calls()[1], "update JobId=1 ReqNodeList=");
    // The guard has nothing more to do.
    fake.show(&[]);
}

/// What `symbiont doctor` says of Slurm with these commands alone, where slurm.conf is there.
fn doctor(fake: &Fake) -> serde_json::Value {
    fake.set("slurm.conf");
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    let others = if fake.path("scontrol").exists() { ":/usr/bin:/bin" } else { "" };
    command.env("PATH", format!("{}{others}", fake.0.path().display()));
    command.env("SLURM_CONF", fake.path("slurm.conf")).current_dir(fake.0.path());
    let output = command.args(["doctor", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    findings["slurm"].clone()
}

#[test]
fn doctor_asks_slurm_for_its_configuration() {
    let fake = Fake::new(&[]);
    let found = doctor(&fake);
    assert_eq!(found["leaves_a_choice"], json!(false), "{found}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("TaskPlugin=task/affinity binds each task"), "{notes}");
    assert!(notes.contains("JobSubmitPlugins has no lua"), "{notes}");
    assert!(notes.contains("plugstack.conf loads no symbiont_spank.so"), "{notes}");
}

/// The line is the first note; the other one is on the plugin.
fn doctor_says(why: &str, prepare: impl Fn(&Fake)) {
    let fake = Fake::new(&[]);
    prepare(&fake);
    let found = doctor(&fake);
    assert_eq!(found["leaves_a_choice"], json!(null), "{found}");
    let line = found["notes"][0].as_str().unwrap();
    assert!(line.starts_with("what Slurm leaves to be chosen is not known: "), "{line}");
    assert!(line.ends_with(why), "{line}");
    assert_eq!(found["notes"].as_array().unwrap().len(), 2, "{found}");
}

#[test]
fn doctor_says_in_a_line_why_slurm_does_not_answer() {
    doctor_says("scontrol: it is not there; Slurm's commands have to be in PATH", |fake| {
        fs::remove_file(fake.path("scontrol")).unwrap();
    });
    doctor_says("Unable to contact slurm controller (connect failure)", |fake| fake.set("fails"));
    doctor_says("scontrol did not answer within 3 s", |fake| fake.set("slow-config"));
}
