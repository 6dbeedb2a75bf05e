//! What is given as an output: files and devices are written, all else is refused at once, nothing but a regular file is
//! replaced, and no half of one is left.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod commands;
mod daemon;
mod disks;
mod refused;

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::commands::{TestFolder, all};

#[test]
fn nothing_but_a_regular_file_is_replaced_and_nothing_blocks() {
    for output in all() {
        let words = output.words;
        let place = TestFolder::new();
        let at = |name: &str| place.at(name);
        symlink("/dev/null", at("device")).unwrap();
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink("gone", at("dangling")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let _listening = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        // A device of its own, as in a private /dev, which only root can make.
        let mode = Mode::RUSR | Mode::WUSR;
        let null = mknodat(CWD, at("null"), FileType::CharacterDevice, mode, makedev(1, 3));
        let kinds = || {
            let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
            let real = fs::metadata("/dev/null").unwrap().file_type();
            assert!(real.is_char_device() && kind("device").is_symlink(), "{words:?}");
            assert!(kind("fifo").is_fifo() && kind("dangling").is_symlink(), "{words:?}");
            assert!(kind("folder").is_dir() && kind("socket").is_socket(), "{words:?}");
            assert!(!at("gone").exists(), "{words:?}");
            assert!(null.is_err() || kind("null").is_char_device(), "{words:?}");
        };
        for name in ["device", "null"].into_iter().take(if null.is_ok() { 2 } else { 1 }) {
            let (code, said) = place.run(words, name);
            kinds();
            // What is read, too, is a file.
            assert_eq!(code == Some(0), !output.is_read, "{words:?} {name}: {said}");
        }
        let troubles = [
            ("fifo", "pipe"),
            ("dangling", "link to nothing"),
            ("folder", "irectory"),
            ("socket", "socket"),
        ];
        for (name, why) in troubles {
            let (code, said) = place.run(words, name);
            kinds();
            assert!(said.contains(why) && said.contains(name), "{words:?} {name}: {said}");
            let goes_on = output.goes_on_with.contains(&name);
            assert_eq!(code == Some(0), goes_on, "{words:?} {name}: {code:?} {said}");
        }
        for name in ["device", "fifo", "folder", "socket"] {
            assert!(!at(name).with_extension("lock").exists(), "{words:?} {name}");
        }
        let (code, said) = place.run(words, "file");
        assert_eq!(code, Some(0), "{words:?}: {said}");
        assert!(fs::metadata(at("file")).unwrap().len() > 0, "{words:?}: {said}");
        let left = fs::read_dir(at("")).unwrap().map(|entry| entry.unwrap().file_name());
        let drafts = left.filter(|name| name.to_string_lossy().contains("draft"));
        assert_eq!(drafts.count(), 0, "{words:?}");
    }
}
