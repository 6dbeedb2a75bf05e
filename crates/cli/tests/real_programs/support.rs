//! Starts programs, managed and not, and says why a test is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use symbiont_trace::{Header, Quantum, Reader};
use tempfile::TempDir;

/// How a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Unmanaged,
    /// In the process of `symbiont` itself, under this policy.
    InPlace(&'static str),
    /// With a supervisor that reports, under this policy.
    Reported(&'static str),
}

/// Every way to run a program managed.
pub const MANAGED: [How; 4] = [
    How::InPlace("phases"),
    How::InPlace("random"),
    How::Reported("phases"),
    How::Reported("random"),
];

/// A folder of its own for a test, and `symbiont` with a state directory of
/// its own: other managers of this machine must not be in the way.
pub struct TestFolder {
    folder: TempDir,
}

impl TestFolder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `symbiont` with arguments to come. Its process is the one that is started.
    pub fn symbiont(&self) -> Command {
        let symbiont = env!("CARGO_BIN_EXE_symbiont");
        let mut command = if rustix::process::geteuid().is_root() && can_hide_run() {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", HIDE_RUN, symbiont]);
            command
        } else {
            Command::new(symbiont)
        };
        command.env("XDG_RUNTIME_DIR", self.folder.path()).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.folder.path());
        command
    }

    /// Runs a program to its end.
    pub fn run(&self, words: &[&str], how: How, directory: &Path) -> Output {
        let report = self.path("report.json");
        let mut command = match how {
            How::Unmanaged => Command::new(words[0]),
            How::InPlace(policy) | How::Reported(policy) => {
                let mut command = self.symbiont();
                command.args(["run", "--policy", policy]);
                if let How::Reported(_) = how {
                    command.args(["--report", "json", "--report-file"]).arg(&report);
                }
                command.args(["--", words[0]]);
                command
            }
        };
        command.args(&words[1..]).current_dir(directory).stdin(Stdio::null());
        let mut output = command.output().unwrap();
        if how != How::Unmanaged {
            output.stderr = without_notices(&output.stderr);
        }
        if let How::Reported(policy) = how {
            let managed: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
            assert_eq!(managed["policy"], policy, "{managed}");
            assert_eq!(managed["trouble"], Value::Array(Vec::new()), "{managed}");
            assert_eq!(managed["put_back"]["failed"], Value::Array(Vec::new()), "{managed}");
        }
        output
    }
}

/// Gives root's `symbiont` a `/run` of its own.
const HIDE_RUN: &str = r#"mount -t tmpfs tmpfs /run && exec "$0" "$@""#;

fn can_hide_run() -> bool {
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", HIDE_RUN, "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// What the program itself wrote. It must have run managed.
fn without_notices(stderr: &[u8]) -> Vec<u8> {
    let (notices, own): (Vec<&[u8]>, Vec<&[u8]>) = stderr
        .split_inclusive(|&byte| byte == b'\n')
        .partition(|line| line.starts_with(b"symbiont: "));
    let notices = String::from_utf8_lossy(&notices.concat()).into_owned();
    assert!(!notices.contains("unmanaged"), "{notices}");
    own.concat()
}

/// Is the command there? Else says that a test is skipped.
pub fn has(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(command).is_file());
    if !there {
        println!("skipped: no {command} here (scripts/setup.sh test installs it)");
    }
    there
}

/// One of the programs in the folder `programs`.
pub fn own_program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_programs/programs");
    folder.join(name).display().to_string()
}

/// All quanta of a recording.
pub fn recorded(path: &Path) -> Vec<Quantum> {
    let mut reader = Reader::open(path).unwrap();
    let quanta = std::iter::from_fn(|| reader.next_quantum().unwrap()).collect();
    assert_eq!(reader.truncated(), None);
    quanta
}

/// What a recording says of its machine.
pub fn header(path: &Path) -> Header {
    Reader::open(path).unwrap().header().clone()
}

/// The source of Lua, fetched once; none, with the reason printed, where that
/// cannot be done.
pub fn lua_source() -> Option<PathBuf> {
    static FETCHED: std::sync::Mutex<()> = std::sync::Mutex::new(());
    if !["make", "gcc"].into_iter().all(has) {
        return None;
    }
    let _one_at_a_time = FETCHED.lock();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/fetch-source.sh");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lua5.4");
    let fetched = Command::new("sh").arg(script).arg("lua5.4").arg(&folder).output().unwrap();
    if fetched.status.success() && folder.join("src/lua.c").is_file() {
        return Some(folder);
    }
    let why = String::from_utf8_lossy(&fetched.stderr);
    println!("skipped: the source of Lua cannot be fetched: {}", why.trim());
    None
}

/// A copy of Lua's source to build in.
pub fn copy_of(source: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(source).arg(to).status().unwrap();
    assert!(copied.success());
}
