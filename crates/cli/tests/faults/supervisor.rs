//! The supervising parent is killed: its programs go on, managed.

use libtest_mimic::Trial;
use rustix::process::Signal;

use crate::settings::{changed, own, tree, wait_for_change};
use crate::test_folder::{TestFolder, is_alive, send, wait_until};
use crate::trials::{BUSY, own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![trial("supervisor_that_is_killed_leaves_programs_managed_to_their_end", killed)]
}

fn killed() {
    let (place, own) = (TestFolder::new(), own());
    let jobs = place.path("jobs.toml");
    let job = format!("[[job]]\ncommand = ['sh', '-c', \"{BUSY}\"]\n");
    std::fs::write(&jobs, job.repeat(2)).expect("a file");
    let mut run = place.symbiont("run");
    run.args(["--policy", "random", "--quantum", "20ms", "--job"]).arg(&jobs);
    let mut program = place.start(&mut run);
    let is_shell = |process: &u32| {
        std::fs::read_to_string(format!("/proc/{process}/cmdline"))
            .is_ok_and(|words| words.starts_with("sh\0"))
    };
    // Until then they wait at their gate, and end with the supervisor.
    wait_until("both jobs run", || tree(program.id()).iter().filter(|p| is_shell(p)).count() == 2);
    let manager = place.manager().expect("a manager");
    let mut jobs = tree(program.id());
    jobs.retain(is_shell);

    send(program.id(), Signal::KILL);
    program.wait();
    assert!(jobs.iter().all(|&job| is_alive(job)), "the programs go on");
    if own_cpus().len() < 2 {
        skip("there is one CPU only, so nothing is placed");
    } else {
        for &job in &jobs {
            wait_until("the manager goes on", || !changed(job, &own).is_empty());
            wait_for_change(job, &own);
        }
    }
    assert!(is_alive(manager));
    for &job in &jobs {
        send(job, Signal::KILL);
    }
    place.wait_for_end_of(manager);
    assert!(place.journals().is_empty(), "it ended in good order: {:?}", place.journals());
}
