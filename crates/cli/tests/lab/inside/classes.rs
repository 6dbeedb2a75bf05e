//! What programs are run for: cores that are kept for one program hold no other.
//!
//! Its co-runners have a thread for each CPU, which rests most of the time: a host of few
//! CPUs bears many of these, and where they may run does not depend on how busy they are.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use crate::given::Given;
use crate::settings::of_tree;
use crate::test_folder::{Program, TestFolder, is_alive, stderr, wait_until};

use super::daemon::{Daemon, SLEEPERS, has_own_masks};
use super::siblings::{LASTS, cpus, cpus_of, wait_until_seen, workers};
use super::workers::{command, confine};

const CONFIG: &str = "policy = \"auto\"\nquantum = \"200ms\"\n";
/// How often it is looked once a core is kept, and how long after each look.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// A program that ends at once.
const NOTHING: [&str; 3] = ["group", "all", "0"];
/// How `env` and `timeout` say that they did not run the program.
const NOT_RUN: i32 = 125;

/// The masks of all threads of a program.
pub fn masks(program: &Program) -> Vec<BTreeSet<u32>> {
    of_tree(program.id()).values().map(|thread| cpus(&thread.mask)).collect()
}

/// The mask of the program's busy thread; none before there is one.
pub fn mask(program: &Program) -> BTreeSet<u32> {
    workers(program, "modest").first().copied().map(cpus_of).unwrap_or_default()
}

/// Programs that fill the machine, under a daemon.
struct Filled {
    daemon: Daemon,
    others: Vec<Program>,
}

impl Filled {
    fn start(given: &Given) -> Self {
        let daemon = Daemon::start(CONFIG);
        let all = given.cpus().len();
        let batch = ["group", "all", &all.to_string(), "dozer"];
        let others = vec![daemon.run_as(&["--class", "batch"], &batch), daemon.run(&SLEEPERS)];
        wait_until("the machine is full", || workers(&others[0], "dozer").len() == all);
        wait_until("all have begun", || workers(&others[1], "sleeper").len() == 4);
        Self { daemon, others }
    }

    /// The masks of all threads but those of the program whose core it is.
    fn masks(&self) -> Vec<BTreeSet<u32>> {
        self.others.iter().flat_map(masks).collect()
    }

    /// May one of them run on one of these CPUs?
    fn reach(&self, core: &[u32]) -> bool {
        self.masks().iter().any(|mask| core.iter().any(|cpu| mask.contains(cpu)))
    }

    /// A program with one busy thread has a core, of the fastest, and no other thread may run there,
    /// a newcomer's neither; once it has ended, others may. `mine`: the CPUs of its core that it uses.
    fn keeps_a_core(&mut self, given: &Given, options: &[&str], mine: fn(&[u32]) -> &[u32]) {
        let program = self.daemon.run_as(options, &["modest"]);
        let fastest = given.capacities.iter().max();
        let core = || {
            let mask = mask(&program);
            let cores = given.cores.iter().zip(&given.capacities);
            let mut fast = cores.filter(|(_, speed)| Some(*speed) == fastest).map(|(core, _)| core);
            fast.find(|core| mine(core).iter().copied().eq(mask.iter().copied())).cloned()
        };
        let mut right = 0;
        wait_until_seen("it has a core for itself", |seen| {
            *seen = format!("it {:?}, others {:?}", mask(&program), self.masks());
            let alone = core().is_some_and(|core| !self.reach(&core));
            right = if alone { right + 1 } else { 0 };
            right >= LASTS
        });
        let kept = core().expect("a core");
        let look = |filled: &Self| {
            assert_eq!(core().as_ref(), Some(&kept), "it keeps its core");
            assert!(!filled.reach(&kept), "others on {kept:?}: {:?}", filled.masks());
            std::thread::sleep(PAUSE);
        };
        (0..LOOKS).for_each(|_| look(self));
        let young = self.daemon.run(&SLEEPERS);
        wait_until_seen("a newcomer is kept off", |seen| {
            let masks = masks(&young);
            *seen = format!("{masks:?} for {kept:?}");
            let off = |mask: &BTreeSet<u32>| kept.iter().all(|cpu| !mask.contains(cpu));
            workers(&young, "sleeper").len() == 4 && masks.iter().all(off)
        });
        self.others.push(young);
        (0..LOOKS).for_each(|_| look(self));
        assert!(is_alive(program.id()), "it runs on");
        program.kill_all();
        wait_until_seen("its core is used by the others again", |seen| {
            *seen = format!("{:?}", self.masks());
            kept.iter().all(|cpu| self.reach(&[*cpu]))
        });
    }

    fn end(mut self) {
        self.daemon.end();
        self.others.iter().for_each(has_own_masks);
    }
}

/// A program that answers requests has all siblings of a core.
pub fn latency(given: &Given) {
    let mut filled = Filled::start(given);
    filled.keeps_a_core(given, &["--class", "latency"], |core| core);
    filled.end();
}

/// A program that is measured has a core whose siblings are empty. It is not run where there is but
/// one core, with a daemon or without.
pub fn alone(given: &Given) {
    let mut filled = Filled::start(given);
    filled.keeps_a_core(given, &["--alone"], |core| &core[..1]);
    refused(given, &filled.daemon.place);
    filled.end();
    let place = TestFolder::new();
    refused(given, &place);
    let program = place.start(&mut place.run(&["--alone"], &command(&["modest"])));
    wait_until_seen("it has a CPU for itself", |seen| {
        let mask = mask(&program);
        *seen = format!("{mask:?}");
        given.cores.iter().any(|core| core[..1].iter().copied().eq(mask.iter().copied()))
    });
}

fn refused(given: &Given, place: &TestFolder) {
    confine(None, &given.cores[0]);
    let mut run = place.run(&["--alone"], &command(&NOTHING));
    let program = place.start(run.stderr(Stdio::piped()));
    confine(None, &given.cpus());
    let output = program.output();
    let said = stderr(&output);
    println!("{said}");
    assert_eq!(output.status.code(), Some(NOT_RUN), "{said}");
    assert!(said.contains("not run: ") && said.contains("not alone: "), "{said}");
    assert!(said.contains("a core for itself takes two"), "{said}");
}
