//! `[metrics] file` of the daemon: the same rules, with its notes and its log in place of an exit code.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

/// No wait is longer.
const LONG: Duration = Duration::from_secs(60);

struct Daemon(Child);

impl Daemon {
    fn start(folder: &Path, output: &str) -> Self {
        let file = folder.join(output);
        let config = format!("policy = \"stay\"\nquantum = \"20ms\"\n[metrics]\nfile = {file:?}\n");
        fs::write(folder.join("config.toml"), config).unwrap();
        fs::create_dir_all(folder.join("rules")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
        command.current_dir(folder).args(["daemon", "--config", "config.toml", "--rules", "rules"]);
        command.args(["--state-dir", "state"]).env("XDG_STATE_HOME", folder);
        let log = fs::File::create(folder.join("log")).unwrap();
        Self(command.stdin(Stdio::null()).stderr(log).spawn().unwrap())
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_daemon_replaces_nothing_but_regular_files_by_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let log = || fs::read_to_string(at("log")).unwrap();
    let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
    symlink("/dev/null", at("device")).unwrap();
    symlink("/dev/full", at("full")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("gone", at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    for (name, why) in [
        ("full", "No space left"),
        ("fifo", "a pipe (FIFO) that no process reads"),
        ("dangling", "a link to nothing"),
        ("folder", "a directory"),
        ("missing/file", "there is no folder"),
    ] {
        let daemon = Daemon::start(folder.path(), name);
        let line = format!("metrics are not written to {}: ", at(name).display());
        wait_until(name, || log().contains(&line) && log().contains(why));
        daemon.end();
        assert_eq!(log().matches(&line).count(), 1, "{}", log());
    }
    let daemon = Daemon::start(folder.path(), "device");
    // Written each second.
    wait_until("it listens", || log().contains("listening at"));
    std::thread::sleep(Duration::from_millis(1500));
    daemon.end();
    assert!(!log().contains("metrics"), "{}", log());
    assert!(kind("device").is_symlink() && kind("full").is_symlink() && kind("fifo").is_fifo());
    assert!(kind("dangling").is_symlink() && kind("folder").is_dir() && !at("gone").exists());
    for device in ["/dev/null", "/dev/full"] {
        assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
    }
    let daemon = Daemon::start(folder.path(), "file");
    wait_until("it is written", || fs::metadata(at("file")).is_ok_and(|data| data.len() > 0));
    daemon.end();
    assert!(!at("file").exists(), "what it says holds no longer");
}
