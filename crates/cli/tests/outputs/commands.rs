//! Options that name an output, and a place where their commands run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(feature = "research")]
use symbiont_profile::capture::plugin_next_to;

/// No command may take longer.
const LONG: Duration = Duration::from_secs(120);

/// An option that names an output.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// With what else its command takes; `OUT` stands for the path.
    pub words: &'static [&'static str],
    /// Is it read, too?
    pub is_read: bool,
    /// Is it written as a whole, so that a failure leaves what was there?
    pub is_whole: bool,
    /// Kinds of things, by their names in the test, with which the command ends well all the same.
    pub goes_on_with: &'static [&'static str],
    /// Does the command end well although there is no room?
    pub goes_on_without_room: bool,
}

const WHOLE: Output = Output {
    words: &[],
    is_read: false,
    is_whole: true,
    goes_on_with: &[],
    goes_on_without_room: false,
};

/// Slurm's commands, as far as a releaser of one job asks.
const SQUEUE: &str = r#"#!/bin/sh
case "$*" in *--json*) cat queue.json ;; *) printf '1   |7 |9  |N/A |PD |symbiont:waits |\n' ;; esac
"#;
const SCONTROL: &str = r#"#!/bin/sh
case "$*" in
*node) echo "NodeName=a CPUAlloc=0 CPUTot=4 NodeAddr=a Sockets=4 CoresPerSocket=1 RealMemory=100 State=IDLE Partitions=p" ;;
*partition) echo "PartitionName=p OverSubscribe=NO" ;;
*config) printf 'SelectType = select/cons_tres\nSelectTypeParameters = CR_CPU\n' ;;
"write batch_script"*) printf '#!/bin/sh\ntrue\n' ;;
esac
"#;
const QUEUE: &str = r#"{"jobs": [{
    "job_id": 1, "job_state": "PENDING", "state_reason": "BeginTime", "priority": 9, "partition": "p", "user_id": 7,
    "cpus": 1, "node_count": 1, "submit_time": 9, "batch_flag": true, "admin_comment": "symbiont:waits", "name": "x"
}]}"#;

/// All that can be run here.
pub fn all() -> Vec<Output> {
    #[cfg_attr(not(feature = "research"), expect(unused_mut, reason = "nothing is added"))]
    let mut all = vec![
        Output {
            words: &[
                "run",
                "--own-manager",
                "--report",
                "json",
                "--report-file",
                "OUT",
                "--",
                "true",
            ],
            // The program has ended as it has.
            goes_on_without_room: true,
            ..WHOLE
        },
        Output {
            words: &["run", "--own-manager", "--record", "OUT", "--", "true"],
            is_whole: false,
            ..WHOLE
        },
        Output { words: &["stat", "--output", "OUT", "--", "true"], ..WHOLE },
        Output {
            words: &["stat", "--interval", "1s", "--output", "OUT", "--", "true"],
            is_whole: false,
            ..WHOLE
        },
        Output {
            words: &["batch", "jobs.txt", "--progress", "progress", "--joblog", "OUT"],
            is_whole: false,
            ..WHOLE
        },
        Output {
            words: &["batch", "jobs.txt", "--progress", "progress", "--store", "OUT"],
            is_read: true,
            // What is known of programs is missed, no more.
            goes_on_with: &["dangling"],
            goes_on_without_room: true,
            ..WHOLE
        },
        Output {
            words: &["batch", "jobs.txt", "--progress", "OUT"],
            is_read: true,
            is_whole: false,
            ..WHOLE
        },
        // A releaser goes on whatever becomes of its files, as long as they could be written.
        Output {
            words: &["slurm", "--once", "--store", "known.json", "--metrics", "OUT"],
            goes_on_with: &["fifo"],
            goes_on_without_room: true,
            ..WHOLE
        },
        Output {
            words: &["slurm", "--once", "--store", "known.json", "--decisions", "OUT"],
            is_whole: false,
            goes_on_with: &["fifo"],
            goes_on_without_room: true,
            ..WHOLE
        },
    ];
    #[cfg(feature = "research")]
    all.push(Output {
        words: &[
            "simulate",
            "--machine",
            "power8-s812l",
            "--cores",
            "1",
            "--smt",
            "2",
            "--alone",
            "100ms",
            "--apps",
            "synthetic-integer*2",
            "--timeline",
            "OUT",
        ],
        ..WHOLE
    });
    #[cfg(feature = "research")]
    if can_profile() {
        all.push(Output { words: &["profile", "-o", "OUT", "--", "/bin/true"], ..WHOLE });
    }
    all
}

#[cfg(feature = "research")]
fn can_profile() -> bool {
    let help = Command::new("qemu-x86_64").arg("--help").output();
    let emulator = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("-plugin"));
    let plugin = plugin_next_to(&std::env::current_exe().unwrap()).is_ok();
    if !(emulator && plugin) {
        eprintln!("skipped for profile: no emulator or plugin");
    }
    emulator && plugin
}

/// A folder of its own for a test, with what the commands take.
pub struct TestFolder(tempfile::TempDir);

impl TestFolder {
    pub fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.at("jobs.txt"), "true\n").unwrap();
        fs::write(place.at("queue.json"), QUEUE).unwrap();
        fs::create_dir(place.at("bin")).unwrap();
        for (name, text) in [("squeue", SQUEUE), ("scontrol", SCONTROL)] {
            let path = place.at("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command with this output.
    pub fn command(&self, words: &[&str], output: &str) -> Vec<String> {
        let state: &[&str] = match words[0] {
            "run" | "batch" => &["--state-dir", "state"],
            _ => &[],
        };
        let words = words.iter().map(|word| if *word == "OUT" { output } else { *word });
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        words.splice(1..1, state.iter().map(|word| (*word).to_owned()));
        words.insert(0, env!("CARGO_BIN_EXE_symbiont").to_owned());
        words
    }

    /// Runs it; gives its exit code and what it said.
    pub fn run(&self, words: &[&str], output: &str) -> (Option<i32>, String) {
        self.run_words(&self.command(words, output))
    }

    pub fn run_words(&self, words: &[String]) -> (Option<i32>, String) {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(&words[0]);
        command.current_dir(self.0.path()).args(&words[1..]).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", self.at("bin").display()));
        command.env("XDG_STATE_HOME", self.0.path()).env("XDG_CACHE_HOME", self.0.path());
        let said = self.at("said");
        let file = fs::File::create(&said).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < LONG, "{words:?} hangs");
            std::thread::sleep(Duration::from_millis(10));
        };
        (status.code(), fs::read_to_string(&said).unwrap())
    }
}
