//! A daemon for a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::test_folder::{Program, TestFolder, is_alive, send, wait_until};

/// A daemon; ends with its value, and restores everything then.
pub struct Service {
    pub place: TestFolder,
    child: Child,
    options: Vec<String>,
}

impl Service {
    /// One that decides by this policy, 50 times a second.
    pub fn start(policy: &str) -> Self {
        Self::configured(|_| format!("policy = \"{policy}\"\nquantum = \"20ms\"\n"))
    }

    /// One with these rules, in `rules.d/50-test.toml` of its place.
    pub fn ruled(policy: &str, rules: &str) -> Self {
        Self::configured(|place| {
            fs::write(place.path("rules.d/50-test.toml"), rules).unwrap();
            format!("policy = \"{policy}\"\nquantum = \"20ms\"\n")
        })
    }

    /// One with the configuration that is made for its place.
    pub fn configured(text: impl FnOnce(&TestFolder) -> String) -> Self {
        Self::configured_by(text, |command| command)
    }

    /// The same, started by another command that is made of its own.
    pub fn configured_by(
        text: impl FnOnce(&TestFolder) -> String,
        start: impl FnOnce(Command) -> Command,
    ) -> Self {
        let place = TestFolder::new();
        let (config, rules) = (place.path("symbiontd.toml"), place.path("rules.d"));
        fs::create_dir(&rules).unwrap();
        fs::write(&config, text(&place)).unwrap();
        let options = ["--config", "--rules"].into_iter().zip([config, rules]);
        let options = options.flat_map(|(name, path)| [name.into(), path.display().to_string()]);
        let options: Vec<String> = options.collect();
        let child = spawn(&place, &options, start);
        let service = Self { place, child, options };
        service.wait_until_ready();
        service
    }

    pub fn config(&self) -> PathBuf {
        self.place.path("symbiontd.toml")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap_or_default()
    }

    pub fn socket(&self) -> PathBuf {
        self.place.state_dir().join("symbiontd.sock")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, signal: Signal) {
        send(self.id(), signal);
    }

    fn wait_until_ready(&self) {
        wait_until("the daemon answers", || {
            assert!(is_alive(self.id()), "the daemon ended: {}", self.log());
            self.client(&["status"]).status.success()
        });
    }

    /// Kills it and starts another one in its place.
    pub fn crash_and_restart(&mut self) {
        self.send(Signal::KILL);
        self.child.wait().unwrap();
        self.child = spawn(&self.place, &self.options, |command| command);
        self.wait_until_ready();
    }

    /// Asks it to end, and waits for that.
    pub fn end(&mut self) {
        self.send(Signal::TERM);
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
    }

    /// `symbiont COMMAND… --state-dir …`.
    pub fn client(&self, words: &[&str]) -> Output {
        command(env!("CARGO_BIN_EXE_symbiont").as_ref(), words, &self.place.state_dir())
            .output()
            .unwrap()
    }

    /// `symbiont status --json`.
    pub fn status(&self) -> Value {
        let output = self.client(&["status", "--json"]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The programs that it manages.
    pub fn programs(&self) -> Vec<Value> {
        self.status()["programs"].as_array().unwrap().clone()
    }

    /// What a crash would leave.
    pub fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.place.state_dir()).unwrap();
        let is_journal = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("journal"))
        };
        entries.map(|entry| entry.unwrap().path()).filter(is_journal).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.send(Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// A call of `symbiont` that uses this state directory.
pub fn command(symbiont: &Path, words: &[&str], state_dir: &Path) -> Command {
    let (first, rest) = words.split_first().unwrap();
    let mut command = Command::new(symbiont);
    command.arg(first).arg("--state-dir").arg(state_dir).args(rest).stdin(Stdio::null());
    command.env("XDG_STATE_HOME", state_dir.with_file_name("state-home"));
    command
}

fn spawn(place: &TestFolder, options: &[String], start: impl FnOnce(Command) -> Command) -> Child {
    let log = fs::File::options().create(true).append(true).open(place.path("log")).unwrap();
    let mut command = place.symbiont("daemon");
    command.args(options);
    start(command).stderr(log).spawn().unwrap()
}

/// A program's standard input and output, which must be pipes.
pub fn pipes(program: &mut Program) -> (ChildStdin, ChildStdout) {
    program.0.stdin.take().zip(program.0.stdout.take()).unwrap()
}
