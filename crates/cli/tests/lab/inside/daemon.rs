//! A daemon, its clients, its death, and CPUs that go offline under it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::given::Given;
use crate::settings::{changed, own, wait_for_change};
use crate::test_folder::{Program, TestFolder, is_alive, send, stderr, wait_until};

use super::cpus::switch;
use super::siblings::{cpus_of, list, wait_until_seen, workers};
use super::workers::command;

/// Four processes that sleep most of the time.
pub const SLEEPERS: [&str; 4] = ["group", "all", "4", "sleeper"];
/// Threads are dealt anew ten times a second.
pub const RANDOM: &str = "policy = \"random\"\nquantum = \"100ms\"\n";

const RULES: &str = "rules.d";

/// A daemon.
pub struct Daemon {
    pub place: TestFolder,
    child: Child,
}

impl Daemon {
    /// With this configuration.
    pub fn start(config: &str) -> Self {
        Self::ruled("", |_| config.to_owned())
    }

    /// With these rules, and the configuration that is made for its place.
    pub fn ruled(rules: &str, config: impl FnOnce(&TestFolder) -> String) -> Self {
        let place = TestFolder::new();
        fs::create_dir(place.path(RULES)).unwrap();
        fs::write(place.path(RULES).join("50-lab.toml"), rules).unwrap();
        fs::write(place.path("symbiontd.toml"), config(&place)).unwrap();
        let child = spawn(&place);
        let daemon = Self { place, child };
        daemon.wait_until_ready();
        daemon
    }

    fn wait_until_ready(&self) {
        wait_until("the daemon answers", || {
            assert!(is_alive(self.child.id()), "the daemon ended: {}", self.log());
            self.client(&["status"]).status.success()
        });
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.place.path("log")).unwrap()
    }

    /// `symbiont COMMAND… --state-dir …`, which must succeed.
    pub fn client(&self, words: &[&str]) -> Output {
        let (first, rest) = words.split_first().unwrap();
        self.place.symbiont(first).args(rest).output().unwrap()
    }

    pub fn asked(&self, words: &[&str]) {
        let done = self.client(words);
        assert!(done.status.success(), "{words:?}: {} {}", stderr(&done), self.log());
    }

    pub fn status(&self) -> Value {
        let output = self.client(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// For each program that it manages the processes that it was enrolled by: the first one, or, at
    /// a start after a crash, all that lived.
    fn roots(&self) -> Vec<Vec<u64>> {
        let status = self.status();
        let roots = |program: &Value| -> Vec<u64> {
            program["roots"].as_array().unwrap().iter().filter_map(Value::as_u64).collect()
        };
        status["programs"].as_array().unwrap().iter().map(roots).collect()
    }

    /// A program of a client.
    pub fn run(&self, words: &[&str]) -> Program {
        self.run_as(&[], words)
    }

    /// The same, with options.
    pub fn run_as(&self, options: &[&str], words: &[&str]) -> Program {
        self.place.start(&mut self.place.run(options, &command(words)))
    }

    /// A program that nothing was said about to the daemon.
    pub fn unmanaged(&self, words: &[&str]) -> Program {
        let words = command(words);
        let mut program = Command::new(words[0]);
        self.place.start(program.args(&words[1..]).stdin(Stdio::null()))
    }

    fn kill_and_start_again(&mut self) {
        send(self.child.id(), Signal::KILL);
        self.child.wait().unwrap();
        self.child = spawn(&self.place);
        self.wait_until_ready();
    }

    pub fn end(&mut self) {
        send(self.child.id(), Signal::TERM);
        assert!(self.child.wait().unwrap().success(), "{}", self.log());
        assert!(self.place.journals().is_empty(), "{:?}", self.place.journals());
    }
}

fn spawn(place: &TestFolder) -> Child {
    let log = File::options().create(true).append(true).open(place.path("log")).unwrap();
    let mut daemon = place.symbiont("daemon");
    for (option, path) in [("--config", "symbiontd.toml"), ("--rules", RULES)] {
        daemon.arg(option).arg(place.path(path));
    }
    daemon.stderr(log).spawn().unwrap()
}

pub fn has_own_masks(program: &Program) {
    assert_eq!(changed(program.id(), &own()), [].into());
}

/// A client's program is placed, and one that was started without the daemon once it is attached;
/// detached, it is as its user left it.
pub fn clients(_: &Given) {
    let mut daemon = Daemon::start(RANDOM);
    let ours = daemon.run(&SLEEPERS);
    let other = daemon.unmanaged(&SLEEPERS);
    wait_for_change(ours.id(), &own());
    has_own_masks(&other);
    assert_eq!(daemon.roots(), [[u64::from(ours.id())]]);
    let pid = other.id().to_string();
    wait_until("all have begun", || workers(&other, "sleeper").len() == 4);
    for _ in 0..2 {
        daemon.asked(&["attach", "--pid", &pid]);
        wait_for_change(other.id(), &own());
        assert_eq!(daemon.roots().len(), 2);
        daemon.asked(&["why", &workers(&other, "sleeper")[0].to_string()]);
        daemon.asked(&["detach", "--pid", &pid]);
        has_own_masks(&other);
    }
    assert_eq!(daemon.roots(), [[u64::from(ours.id())]]);
    daemon.end();
    assert!(is_alive(ours.id()) && is_alive(other.id()), "the programs run on");
    has_own_masks(&ours);
}

/// The daemon is killed and started again, some times: what lives is managed again, and at the
/// end it is as its user left it. What ended meanwhile is forgotten.
pub fn killed(_: &Given) {
    let mut daemon = Daemon::start(RANDOM);
    let ours = daemon.run(&SLEEPERS);
    let attached = daemon.unmanaged(&SLEEPERS);
    daemon.asked(&["attach", "--pid", &attached.id().to_string()]);
    let ending = daemon.run(&SLEEPERS);
    let all = || [&ours, &attached].map(|program| u64::from(program.id()));
    for _ in 0..3 {
        for program in [&ours, &attached] {
            wait_for_change(program.id(), &own());
        }
        let noted = || fs::read_to_string(daemon.place.state_dir().join("enrolments.json"));
        let is_noted = |text: &str| all().iter().all(|root| text.contains(&root.to_string()));
        wait_until("they are noted for the next start", || noted().is_ok_and(|t| is_noted(&t)));
        ending.kill_all();
        daemon.kill_and_start_again();
        wait_until_seen("what lives is managed again", |seen| {
            let roots = daemon.roots();
            *seen = format!("{roots:?} for {:?}: {}", all(), daemon.log());
            let is_there = |root: &u64| roots.iter().any(|program| program.contains(root));
            roots.len() == 2 && all().iter().all(is_there)
        });
    }
    println!("{}", daemon.log());
    for program in [&ours, &attached] {
        wait_for_change(program.id(), &own());
    }
    daemon.end();
    has_own_masks(&ours);
    has_own_masks(&attached);
}

/// A CPU goes offline and comes back, some times, under programs that may use all CPUs and one
/// whose user held it to two, of which the CPU is one. All are placed on online CPUs only, a program
/// that comes meanwhile too, and at the end each thread has the mask that its user gave it.
pub fn hotplug(given: &Given) {
    let mut daemon = Daemon::start(RANDOM);
    let (gone, pair) = (given.cores[1][0], [given.cores[0][0], given.cores[1][0]]);
    let count = given.cpus().len();
    let wide = daemon.run(&["group", "all", &count.to_string(), "sleeper"]);
    let held = daemon.run(&["group", &list(&pair), "2", "sleeper"]);
    let sleepers = |program: &Program| workers(program, "sleeper");
    wait_until("all have begun", || sleepers(&wide).len() == count && sleepers(&held).len() == 2);
    let on_gone = || sleepers(&wide).iter().any(|process| cpus_of(*process) == [gone].into());
    let placed = |program: &Program, among: &[u32], seen: &mut String| {
        let masks: Vec<_> = sleepers(program).into_iter().map(cpus_of).collect();
        *seen = format!("{masks:?}");
        masks.iter().all(|mask| mask.len() == 1 && among.contains(mask.first().unwrap()))
    };
    let left: Vec<u32> = given.cpus().into_iter().filter(|cpu| *cpu != gone).collect();
    let hardware_threads = |daemon: &Daemon| daemon.status()["hardware_threads"].as_u64();
    for round in 1..=3 {
        wait_until("a thread is placed on the CPU", on_gone);
        switch(gone, false);
        wait_until("the daemon sees it", || hardware_threads(&daemon) == Some(count as u64 - 1));
        wait_until_seen("all are placed on the others", |seen| placed(&wide, &left, seen));
        // The kernel still lists the CPU in masks that a user chose, and lets nothing run there.
        wait_until_seen("its user's mask is kept", |seen| {
            let masks: Vec<_> = sleepers(&held).into_iter().map(cpus_of).collect();
            *seen = format!("{masks:?}");
            let is_kept = |mask: &BTreeSet<u32>| *mask == pair.into() || *mask == [pair[0]].into();
            masks.iter().all(is_kept)
        });
        let young = daemon.run(&SLEEPERS);
        wait_until("it has begun", || sleepers(&young).len() == 4);
        wait_until_seen("a newcomer is placed, too", |seen| placed(&young, &left, seen));
        young.kill_all();
        assert_eq!(sleepers(&wide).len(), count, "all run on");
        switch(gone, true);
        wait_until("the daemon sees it", || hardware_threads(&daemon) == Some(count as u64));
        wait_until("the CPU that is back is used", on_gone);
        let shown = |what: &str| daemon.log().lines().filter(|line| line.contains(what)).count();
        let word = |word: &str| shown(&format!("CPU {gone} went {word}"));
        wait_until("it is logged", || (word("offline"), word("online")) == (round, round));
    }
    println!("{}", daemon.log());
    println!("moves: {}", daemon.status()["moves"]);
    daemon.end();
    has_own_masks(&wide);
    for process in sleepers(&held) {
        assert_eq!(cpus_of(process), pair.into(), "as its user wanted it");
    }
}
