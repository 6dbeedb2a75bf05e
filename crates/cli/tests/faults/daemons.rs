//! Programs that leave daemons behind do not keep the manager.

use std::fs;

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::settings::{of_tree, own};
use crate::test_folder::{TestFolder, is_alive, send, stderr, wait_until};
use crate::trials::{births_are_scanned_for, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("daemon_is_released_when_its_program_has_ended", released),
        trial("daemon_is_managed_to_its_end_with_linger", lingers),
        trial("descendants_in_the_session_are_managed_to_their_end", in_session),
    ]
}

/// A process that a program left; killed when this is dropped.
struct Left(u32);

impl Left {
    /// Runs a program that starts a process by these words and ends.
    fn by(place: &TestFolder, options: &[&str], words: &str) -> Self {
        let number = place.path("number");
        let script =
            format!("({words} sh -c 'echo $$ >\"$0\"; exec sleep 1000' \"$0\" >/dev/null 2>&1 &)");
        let program = ["sh", "-c", &script, number.to_str().expect("UTF-8")];
        let output = place.run(options, &program).output().expect("symbiont starts");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stderr(&output), "");
        let read = || fs::read_to_string(&number).ok()?.trim().parse().ok();
        wait_until("it has begun", || read().is_some());
        Self(read().expect("a number"))
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        send(self.0, Signal::KILL);
    }
}

/// The end of the quantum is never waited for.
const SLOW: [&str; 4] = ["--policy", "random", "--quantum", "1h"];

fn released() {
    let (place, own) = (TestFolder::new(), own());
    let daemon = Left::by(&place, &SLOW, "setsid");
    wait_until("the manager ends", || place.manager().is_none());
    assert!(is_alive(daemon.0), "the daemon goes on");
    assert!(of_tree(daemon.0).values().all(|now| now.mask == own.mask));
    assert!(place.journals().is_empty(), "{:?}", place.journals());
    let next = place.run(&SLOW, &["true"]).output().expect("symbiont starts");
    assert_eq!(stderr(&next), "", "the next one is managed");
}

fn stays(place: &TestFolder, left: Left) {
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let manager = place.manager().expect("it goes on to manage");
    let next = place.run(&SLOW, &["true"]).output().expect("symbiont starts");
    assert!(stderr(&next).contains("another symbiont"), "{next:?}");
    drop(left);
    place.wait_for_end_of(manager);
    assert!(place.journals().is_empty(), "{:?}", place.journals());
}

fn lingers() {
    let place = TestFolder::new();
    if births_are_scanned_for(&place) {
        return skip("the kernel does not report births here");
    }
    let daemon = Left::by(&place, &[&SLOW[..], &["--linger"]].concat(), "setsid");
    stays(&place, daemon);
}

fn in_session() {
    let place = TestFolder::new();
    if births_are_scanned_for(&place) {
        return skip("the kernel does not report births here");
    }
    let process = Left::by(&place, &SLOW, "");
    stays(&place, process);
}
