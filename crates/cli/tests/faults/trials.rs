//! What the tests on this very machine share.

use libtest_mimic::Trial;

use crate::test_folder::{Program, TestFolder};

/// A shell program that is always ready to run, and starts a sleeper when asked to.
pub const BUSY: &str = "trap 'sleep 1000 &' USR1; while :; do :; done";

/// A test.
pub fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Prints why a test cannot run here; use as `return skip("...")`.
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// CPUs that this test may use.
pub fn own_cpus() -> Vec<usize> {
    let mask = rustix::thread::sched_getaffinity(None).expect("a mask");
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect()
}

/// `symbiont run OPTIONS… -- sh -c SCRIPT`, started.
pub fn start_script(place: &TestFolder, options: &[&str], script: &str) -> Program {
    place.start(&mut place.run(options, &["sh", "-c", script]))
}

/// Are births found by scanning /proc here, since the kernel does not report them? What is orphaned
/// before a scan is not managed then, and nothing is placed in its first two seconds.
pub fn births_are_scanned_for(place: &TestFolder) -> bool {
    let run = place.run(&["--policy", "stay", "--report", "json"], &["true"]).output();
    String::from_utf8_lossy(&run.expect("symbiont starts").stderr).contains("scanning /proc")
}
