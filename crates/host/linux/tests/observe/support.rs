//! Starting programs and waiting for what shall happen.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use symbiont_linux::observe::{
    Birth, BirthHook, Choice, Exec, Method, Observed, WatchOptions, Watcher,
};
use symbiont_machine::ProgramId;

pub const PROGRAM: ProgramId = ProgramId(7);

/// Runs a scenario with reports from the kernel and with scanning.
macro_rules! by_both_methods {
    ($(#[$note:meta])* fn $name:ident($watcher:ident: Watcher, $hook:ident: RecordingHook) $body:block) => {
        mod $name {
            use super::*;

            fn scenario(mut $watcher: Watcher, $hook: RecordingHook) $body

            $(#[$note])*
            #[test]
            fn by_reports() {
                if let Some((watcher, hook)) = $crate::support::reporting(WatchOptions::default()) {
                    scenario(watcher, hook);
                }
            }

            $(#[$note])*
            #[test]
            fn by_scanning() {
                let (watcher, hook) = $crate::support::scanning();
                scenario(watcher, hook);
            }
        }
    };
}
pub(crate) use by_both_methods;

/// What the hook was hook.
#[derive(Debug, Default)]
pub struct Notes {
    pub births: Vec<Birth>,
    pub execs: Vec<Exec>,
    pub ends: Vec<(u32, u32)>,
}

/// A hook that remembers.
#[derive(Debug, Clone, Default)]
pub struct RecordingHook(Arc<Mutex<Notes>>);

impl RecordingHook {
    pub fn notes<T>(&self, read: impl FnOnce(&Notes) -> T) -> T {
        read(&self.0.lock().unwrap())
    }
}

impl BirthHook for RecordingHook {
    fn born(&mut self, birth: &Birth) {
        self.0.lock().unwrap().births.push(*birth);
    }

    fn execed(&mut self, exec: &Exec) {
        self.0.lock().unwrap().execs.push(exec.clone());
    }

    fn exited(&mut self, process: u32, thread: u32) {
        self.0.lock().unwrap().ends.push((process, thread));
    }
}

/// A watcher that uses reports; none, with the reason printed, where it can't.
pub fn reporting(options: WatchOptions) -> Option<(Watcher, RecordingHook)> {
    let hook = RecordingHook::default();
    let watcher = Watcher::start(options, Box::new(hook.clone())).unwrap();
    match watcher.method() {
        Method::Connector { .. } => Some((watcher, hook)),
        Method::Scan { why } => {
            println!("skipped: {why}");
            None
        }
    }
}

/// A watcher that scans.
pub fn scanning() -> (Watcher, RecordingHook) {
    let hook = RecordingHook::default();
    let options = WatchOptions { choice: Choice::Scan, ..WatchOptions::default() };
    (Watcher::start(options, Box::new(hook.clone())).unwrap(), hook)
}

/// A running program that is killed with all its children when dropped.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
}

/// What a program says comes within this, or the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Running {
    /// A shell script; it runs on when it has read a line.
    pub fn shell(script: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("echo up; read go; {script}")]);
        Self::start(command).unwrap()
    }

    /// One of [`crate::programs`]; it runs on when it has read a line.
    pub fn own(program: &str) -> Self {
        Self::start(own_program(program, &[])).unwrap()
    }

    /// One of [`crate::programs`], started by another command; none if that fails.
    pub fn own_by(command: &[&str], program: &str) -> Option<Self> {
        Self::start(own_program(program, command)).ok()
    }

    fn start(mut command: Command) -> std::io::Result<Self> {
        use std::os::unix::process::CommandExt;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            // Ends with the program's output, or when no process listens any more.
            output.lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        let mut running = Self { child, lines };
        // Before, the exec that started it may not have been reported yet.
        running.line_with("up")?;
        Ok(running)
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Lets it run on.
    pub fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Waits until it prints a line with this; gives the rest of the line.
    /// (The test harness may have begun the line.)
    pub fn says(&mut self, word: &str) -> String {
        self.line_with(word).unwrap()
    }

    fn line_with(&mut self, word: &str) -> std::io::Result<String> {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).map_err(|missing| {
                std::io::Error::other(format!("it did not say {word}: {missing}"))
            })?;
            if let Some((_, rest)) = line.split_once(word) {
                return Ok(rest.trim().to_owned());
            }
        }
    }
}

/// A command that runs one of [`crate::programs`], perhaps by another command.
fn own_program(program: &str, by: &[&str]) -> Command {
    let own = std::env::current_exe().unwrap();
    let mut command = match by {
        [] => Command::new(own),
        [name, arguments @ ..] => {
            let mut command = Command::new(name);
            command.args(arguments).arg(own);
            command
        }
    };
    command.args(["--exact", "programs::run", "--nocapture", "--test-threads=1"]);
    command.env(crate::programs::CHOICE, program);
    command
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Reads until the condition holds.
pub fn until(
    watcher: &mut Watcher,
    what: &str,
    mut holds: impl FnMut(&[Observed]) -> bool,
) -> Vec<Observed> {
    let start = Instant::now();
    loop {
        let observed = watcher.read().unwrap();
        if holds(&observed) {
            return observed;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "never {what}: {observed:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
