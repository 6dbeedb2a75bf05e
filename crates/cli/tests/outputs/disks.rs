//! Disks that are full, and folders that are only read: in a mount namespace of the command's own.

use std::fs;
use std::process::Command;

use crate::commands::{TestFolder, all};

/// Fills a small disk at `full`, with `full/old` on it; mounts `only-read` so, with a file in it that may be written by
/// itself; runs the command, then copies what is left on the disk.
const SCRIPT: &str = r#"
set -e
mount -t tmpfs -o size=64k,mode=755 full full
mount --bind only-read only-read
mount -o remount,bind,ro only-read
printf 'what was there\n' >full/old
dd if=/dev/zero of=full/fill bs=4k 2>/dev/null || :
code=0
"$@" || code=$?
mkdir left
for name in full/*; do [ "$name" = full/fill ] || cp "$name" left; done
ls -A full >left.names
exit $code
"#;

/// The command within the mounts; none where they cannot be made.
fn wrapped(place: &TestFolder, command: Vec<String>) -> Vec<String> {
    fs::write(place.at("mounts.sh"), SCRIPT).unwrap();
    let words = ["unshare", "--mount", "sh", "mounts.sh"].map(str::to_owned);
    words.into_iter().chain(command).collect()
}

fn can_mount() -> bool {
    let mut tried = Command::new("unshare");
    tried.args(["--mount", "mount", "-t", "tmpfs", "x", "/mnt"]);
    let can = tried.output().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: no mount namespace can be made here");
    }
    can
}

fn place() -> TestFolder {
    let place = TestFolder::new();
    fs::create_dir(place.at("full")).unwrap();
    fs::create_dir(place.at("only-read")).unwrap();
    place
}

#[test]
fn a_full_disk_is_named_and_leaves_no_half_file() {
    if !can_mount() {
        return;
    }
    for output in all() {
        let words = output.words;
        for name in ["new", "old"] {
            // What is read, or is a log, begins as such.
            let keeps_old = output.is_whole && !output.is_read;
            if name == "old" && !keeps_old {
                continue;
            }
            let (place, path) = (place(), format!("full/{name}"));
            let (code, said) = place.run_words(&wrapped(&place, place.command(words, &path)));
            assert!(said.contains(&path) && said.contains("No space left"), "{words:?}: {said}");
            let goes_on = output.goes_on_without_room;
            assert_eq!(code == Some(0), goes_on, "{words:?} {name}: {code:?} {said}");
            let left = place.at("left");
            let old = fs::read_to_string(left.join("old")).unwrap();
            assert_eq!(old, "what was there\n", "{words:?} {name}");
            let new = fs::read(left.join("new")).unwrap_or_default();
            assert!(new.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&new));
            let names = fs::read_to_string(place.at("left.names")).unwrap();
            assert!(!names.contains("draft"), "{words:?}: {names}");
            if output.is_whole {
                assert!(!left.join("new").exists(), "{words:?}: {names}");
            }
        }
    }
}

#[test]
fn a_folder_that_is_only_read_is_named() {
    if !can_mount() {
        return;
    }
    for output in all() {
        let (place, words) = (place(), output.words);
        let (code, said) = place.run_words(&wrapped(&place, place.command(words, "only-read/new")));
        let why = "ead-only file";
        assert!(said.contains("only-read/new") && said.contains(why), "{words:?}: {said}");
        let goes_on = output.goes_on_without_room && words[0] != "run";
        assert_eq!(code == Some(0), goes_on, "{words:?}: {code:?} {said}");
    }
}
