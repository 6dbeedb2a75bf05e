//! A test's folder of its own: a symbiont's state directory, and programs that run there;
//! for the guest lab too.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

/// No wait in these tests is longer; all but the broken end much sooner.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits for a condition; panics when it never comes.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < TIMEOUT, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Is the process there, and not just waiting to be reaped?
pub fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// Sends a signal to a process.
pub fn send(process: u32, signal: Signal) {
    kill_process(pid(process), signal).expect("a process to signal");
}

fn pid(process: u32) -> Pid {
    process.try_into().ok().and_then(Pid::from_raw).expect("a process number")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What was restored, by `symbiont restore`.
#[derive(Debug)]
pub struct Restored {
    pub code: Option<i32>,
    pub report: Value,
    pub stderr: String,
}

/// A folder of its own for a test, with the state directory of its symbiont.
pub struct TestFolder(TempDir);

impl TestFolder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// A path next to the state directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn state_dir(&self) -> PathBuf {
        self.path("state")
    }

    /// Where is kept what is learned: none of it is this machine's user's.
    pub fn state_home(&self) -> PathBuf {
        self.path("state-home")
    }

    /// `symbiont COMMAND --state-dir …`.
    pub fn symbiont(&self, command: &str) -> Command {
        // Most of these tests look at masks that are applied; those of nudging leave it out.
        let has_daemon = self.state_dir().join("symbiontd.sock").exists();
        let is_held = command == "daemon" || (command == "run" && !has_daemon);
        let mut symbiont = self.unheld(command);
        if is_held {
            symbiont.args(["--narrow", "always"]);
        }
        symbiont
    }

    /// The same, by which no mask stays narrow.
    pub fn unheld(&self, command: &str) -> Command {
        let mut symbiont = Command::new(env!("CARGO_BIN_EXE_symbiont"));
        symbiont.arg(command).arg("--state-dir").arg(self.state_dir()).stdin(Stdio::null());
        symbiont.env("XDG_STATE_HOME", self.state_home());
        if command == "run" {
            // A machine that is starved of CPU time is waited for as long as by these tests.
            symbiont.arg("--patience").arg(format!("{}s", TIMEOUT.as_secs()));
        }
        symbiont
    }

    /// `symbiont run OPTIONS… -- PROGRAM…`.
    pub fn run(&self, options: &[&str], program: &[impl AsRef<OsStr>]) -> Command {
        // What a scheduler in the kernel keeps, no mask holds.
        let is_kept = options.contains(&"--actuator");
        let mut run = if is_kept { self.unheld("run") } else { self.symbiont("run") };
        run.args(options).arg("--").args(program);
        run
    }

    /// Starts a command in a process group of its own.
    pub fn start(&self, command: &mut Command) -> Program {
        command.env("XDG_STATE_HOME", self.state_home());
        Program(command.process_group(0).spawn().expect("symbiont starts"))
    }

    /// The manager that lives and uses this folder.
    pub fn manager(&self) -> Option<u32> {
        let lock = std::fs::read_to_string(self.state_dir().join("lock")).ok()?;
        let lock: Value = serde_json::from_str(&lock).ok()?;
        let manager = u32::try_from(lock["manager"]["process"].as_u64()?).ok()?;
        is_alive(manager).then_some(manager)
    }

    /// Kills the manager, and waits until it is gone.
    pub fn kill_manager(&self) {
        self.signal_manager(Signal::KILL);
    }

    /// Sends the manager a signal, and waits until it is gone.
    pub fn signal_manager(&self, signal: Signal) {
        let manager = self.manager().expect("a manager that lives");
        send(manager, signal);
        self.wait_for_end_of(manager);
    }

    /// Waits until the manager is gone.
    pub fn wait_for_end_of(&self, manager: u32) {
        wait_until("the manager is gone", || !is_alive(manager));
    }

    /// `symbiont restore --json`.
    pub fn restore(&self) -> Restored {
        self.restore_from(&self.state_dir())
    }

    /// The same from another state directory.
    pub fn restore_from(&self, state_dir: &std::path::Path) -> Restored {
        let mut symbiont = Command::new(env!("CARGO_BIN_EXE_symbiont"));
        symbiont.args(["restore", "--json", "--state-dir"]).arg(state_dir).stdin(Stdio::null());
        let output = symbiont.output().expect("symbiont starts");
        Restored {
            code: output.status.code(),
            stderr: stderr(&output),
            report: serde_json::from_slice(&output.stdout).expect("JSON"),
        }
    }

    /// Journals that lie there.
    pub fn journals(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.state_dir()).into_iter().flatten();
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        paths.filter(|path| !path.ends_with("lock") && !path.ends_with("managers")).collect()
    }
}

/// A started program; ends with all its processes when it is dropped.
pub struct Program(pub Child);

impl Program {
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_until("the program ends", || self.0.try_wait().expect("a child").is_some());
        self.0.wait().expect("a child")
    }

    /// Waits for its end; gives what it printed to pipes.
    pub fn output(mut self) -> Output {
        let status = self.wait();
        let mut output = Output { status, stdout: Vec::new(), stderr: Vec::new() };
        if let Some(mut pipe) = self.0.stdout.take() {
            std::io::Read::read_to_end(&mut pipe, &mut output.stdout).expect("a pipe");
        }
        if let Some(mut pipe) = self.0.stderr.take() {
            std::io::Read::read_to_end(&mut pipe, &mut output.stderr).expect("a pipe");
        }
        output
    }

    /// Kills it with its process group.
    pub fn kill_all(&self) {
        // No process may be left.
        let _ = kill_process_group(pid(self.id()), Signal::KILL);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill_all();
        let _ = self.0.wait();
    }
}
