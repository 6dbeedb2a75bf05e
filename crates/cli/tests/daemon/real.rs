//! Programs of several languages are attached while they run, and detached.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::service::{Service, pipes};
use crate::settings::{Settings, of_tree, tree};
use crate::test_folder::{Program, TIMEOUT, TestFolder, stderr, wait_until};
use crate::trials::{own_cpus, skip, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("an_openmp_program_is_managed_from_attach_to_detach", openmp),
        trial("a_java_program_is_managed_from_attach_to_detach", java),
        trial("a_go_program_is_managed_from_attach_to_detach", go),
        trial("a_node_program_is_managed_from_attach_to_detach", node),
    ]
}

fn openmp() {
    attached_and_detached("rounds.c", |source, binary| {
        let built =
            build(Command::new("cc").args(["-O1", "-fopenmp", "-o"]).args([binary, source]));
        built.then(|| vec![binary.into()])
    });
}

fn java() {
    attached_and_detached("Rounds.java", |source, binary| {
        let folder = binary.parent().unwrap();
        let built = build(Command::new("javac").arg("-d").args([folder, source]));
        built.then(|| vec!["java".into(), "-cp".into(), folder.into(), "Rounds".into()])
    });
}

fn go() {
    attached_and_detached("rounds.go", |source, binary| {
        // Go's own compiler first builds its library, for half a minute.
        let built = match is_there("gccgo") {
            true => build(Command::new("gccgo").arg("-o").args([binary, source])),
            false => {
                let mut go = Command::new("go");
                go.env("GOCACHE", binary.with_extension("cache")).env("GOTOOLCHAIN", "local");
                build(go.args(["build", "-o"]).args([binary, source]))
            }
        };
        built.then(|| vec![binary.into()])
    });
}

fn node() {
    attached_and_detached("rounds.js", |source, _| {
        is_there("node").then(|| vec!["node".into(), source.into()])
    });
}

fn is_there(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(command).is_file());
    if !there {
        skip(&format!("no {command} here (scripts/setup.sh test installs it)"));
    }
    there
}

/// Runs a compiler; false, with the reason printed, where there is none.
fn build(compiler: &mut Command) -> bool {
    if !is_there(compiler.get_program().to_str().unwrap()) {
        return false;
    }
    let built = compiler.output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    true
}

/// A program that works with as many threads as it is asked to.
struct Rounds {
    program: Program,
    asks: ChildStdin,
    lines: Receiver<String>,
}

impl Rounds {
    fn start(place: &TestFolder, words: &[OsString]) -> Self {
        let (first, rest) = words.split_first().unwrap();
        let mut command = Command::new(first);
        command.args(rest).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = place.start(&mut command);
        let (asks, output) = pipes(&mut program);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        Self { program, asks, lines }
    }

    /// Has it work with so many threads; returns when they do.
    fn work_with(&mut self, threads: u32) {
        writeln!(self.asks, "{threads}").unwrap();
        assert_eq!(self.next_line(), threads.to_string());
    }

    fn next_line(&self) -> String {
        self.lines.recv_timeout(TIMEOUT).expect("a line of the program")
    }

    /// Has it end; gives what it computed.
    fn end(self) -> String {
        let Self { mut program, mut asks, lines } = self;
        writeln!(asks, "0").unwrap();
        drop(asks);
        let line = lines.recv_timeout(TIMEOUT).expect("a line of the program");
        assert_eq!(program.wait().code(), Some(0));
        line
    }

    /// Its threads, when they have been the same for a while.
    fn threads(&self) -> BTreeMap<u32, Settings> {
        let numbers =
            |threads: &BTreeMap<u32, Settings>| threads.keys().copied().collect::<Vec<_>>();
        let (begin, mut since) = (Instant::now(), Instant::now());
        let mut threads = of_tree(self.program.id());
        while since.elapsed() < Duration::from_millis(200) {
            assert!(begin.elapsed() < TIMEOUT, "its threads never stay the same");
            std::thread::sleep(Duration::from_millis(5));
            let now = of_tree(self.program.id());
            if numbers(&now) != numbers(&threads) {
                since = Instant::now();
            }
            threads = now;
        }
        threads
    }
}

/// What `computed` of the programs gives.
fn computed() -> u32 {
    (0..1_000_000).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}

/// Starts a program, has it managed while it runs threads, and lets it go on alone.
fn attached_and_detached(source: &str, made: impl Fn(&Path, &Path) -> Option<Vec<OsString>>) {
    let service = Service::start("random");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/daemon/programs").join(source);
    let Some(words) = made(&source, &service.place.path("rounds")) else { return };
    let mut rounds = Rounds::start(&service.place, &words);
    rounds.work_with(3);
    let pid = rounds.program.id().to_string();
    // One thread has a mask of its own.
    let (narrowed, cpu) = (*rounds.threads().keys().last().unwrap(), own_cpus()[0]);
    pin(narrowed, cpu);

    let before = attach(&service, &rounds);
    assert_eq!(before[&narrowed].mask, cpu.to_string());
    let is_placed = |threads: &BTreeMap<u32, Settings>| {
        threads.iter().any(|(id, now)| before.get(id).is_some_and(|b| b.mask != now.mask))
    };
    if own_cpus().len() > 1 {
        wait_until("a thread is placed", || is_placed(&of_tree(rounds.program.id())));
    } else {
        skip("there is one CPU only, so nothing is placed");
    }

    rounds.work_with(6);
    let all_are_managed = || service.programs()[0]["threads"] == rounds.threads().len();
    wait_until("the new threads are managed too", all_are_managed);
    let newborn: Vec<u32> =
        rounds.threads().into_keys().filter(|id| !before.contains_key(id)).collect();
    // How many a runtime makes is for it to say.
    assert!(!newborn.is_empty());
    for thread in &newborn {
        let why = service.client(&["why", &thread.to_string()]);
        assert!(why.status.success(), "{}", stderr(&why));
    }

    let done = service.client(&["detach", "--pid", &pid]);
    assert!(done.status.success(), "{}", stderr(&done));
    let after = of_tree(rounds.program.id());
    for (thread, now) in &after {
        match before.get(thread) {
            Some(before) => assert_eq!(&now.chosen(), &before.chosen(), "thread {thread}"),
            // It has its parent's.
            None => {
                assert!(before.values().any(|b| b.chosen() == now.chosen()), "{thread} {now:?}");
            }
        }
    }
    assert!(newborn.iter().all(|thread| after.contains_key(thread)), "{newborn:?} {after:?}");
    assert_eq!(rounds.end(), format!("6 {}", computed()));
}

/// Attaches a program; gives its threads as they were before, and are all managed. Runtimes start
/// and end threads of their own, so that it may take several times.
fn attach(service: &Service, rounds: &Rounds) -> BTreeMap<u32, Settings> {
    let pid = rounds.program.id().to_string();
    for _ in 0..50 {
        let before = rounds.threads();
        let done = service.client(&["attach", "--name", "rounds", "--pid", &pid]);
        assert!(done.status.success(), "{}", stderr(&done));
        let after = rounds.threads();
        if before.keys().eq(after.keys()) {
            let said = String::from_utf8(done.stdout).unwrap();
            let (processes, threads) = (tree(rounds.program.id()).len(), before.len());
            assert_eq!(
                said,
                format!("rounds: {processes} process with {threads} threads managed\n")
            );
            return before;
        }
        assert!(service.client(&["detach", "--pid", &pid]).status.success());
    }
    panic!("its threads never stay the same");
}

fn pin(thread: u32, cpu: usize) {
    let mut mask = CpuSet::new();
    mask.set(cpu);
    let thread = Pid::from_raw(i32::try_from(thread).unwrap());
    sched_setaffinity(thread, &mask).unwrap();
}
