//! What is given as an output: files and devices are written, all else is refused at once, and nothing but a regular file
//! is replaced.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Options that name an output, each with what else the command takes; `OUT` stands for the path.
const OUTPUTS: [&[&str]; 5] = [
    &["run", "--own-manager", "--report", "json", "--report-file", "OUT", "--", "true"],
    &["run", "--own-manager", "--record", "OUT", "--", "true"],
    &["batch", "jobs.txt", "--store", "known.json", "--progress", "progress", "--joblog", "OUT"],
    &["batch", "jobs.txt", "--store", "OUT", "--progress", "progress"],
    &["stat", "--output", "OUT", "--", "true"],
];
/// No command may take longer.
const LONG: Duration = Duration::from_secs(60);

/// Runs a command in a folder; gives its exit code and what it said.
fn run(folder: &Path, words: &[&str], output: &str) -> (Option<i32>, String) {
    let words: Vec<&str> = words.iter().map(|w| if *w == "OUT" { output } else { *w }).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_symbiont"));
    command.current_dir(folder).args(&words[..1]);
    if words[0] != "stat" {
        command.args(["--state-dir", "state"]);
    }
    let said = folder.join("said");
    let file = fs::File::create(&said).unwrap();
    command.args(&words[1..]).env("XDG_STATE_HOME", folder).stdin(Stdio::null());
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

#[test]
fn nothing_but_a_regular_file_is_replaced_and_nothing_blocks() {
    for words in OUTPUTS {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("jobs.txt"), "true\n").unwrap();
        symlink("/dev/null", at("device")).unwrap();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink("gone", at("dangling")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let kinds = || {
            let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
            let null = fs::metadata("/dev/null").unwrap().file_type();
            assert!(null.is_char_device() && kind("device").is_symlink(), "{words:?}");
            assert!(kind("fifo").is_fifo() && kind("dangling").is_symlink(), "{words:?}");
            assert!(kind("folder").is_dir() && !at("gone").exists(), "{words:?}");
        };
        let (code, said) = run(folder.path(), words, "device");
        kinds();
        // A store is read, too.
        let is_store = words[2..4] == ["--store", "OUT"];
        assert_eq!(code, Some(i32::from(is_store)), "{words:?}: {said}");
        for (name, why) in
            [("fifo", "pipe"), ("dangling", "link to nothing"), ("folder", "irectory")]
        {
            let (code, said) = run(folder.path(), words, name);
            kinds();
            assert!(said.contains(why) && said.contains(name), "{words:?} {name}: {said}");
            // A batch goes on without a store that is not there.
            let goes_on = is_store && name == "dangling";
            assert_eq!(code == Some(0), goes_on, "{words:?} {name}: {said}");
        }
        for name in ["device", "fifo", "folder"] {
            assert!(!at(name).with_extension("lock").exists(), "{words:?} {name}");
        }
        let (code, said) = run(folder.path(), words, "file");
        assert_eq!(code, Some(0), "{words:?}: {said}");
        assert!(fs::metadata(at("file")).unwrap().len() > 0, "{words:?}: {said}");
    }
}
