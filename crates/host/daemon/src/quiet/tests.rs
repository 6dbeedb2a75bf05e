use std::collections::VecDeque;
use std::io;

use symbiont_linux::occupancy::{Bystander, CpuTime};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Assignment, Program, ThreadSample};
use symbiont_topology::PuId;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Two cores of two hardware threads: 0 and 1, 2 and 3.
fn topology() -> Topology {
    Topology::synthetic("core:2 smt:2").unwrap()
}

/// A machine whose accounts a test writes.
#[derive(Default)]
struct Accounts {
    times: CpuTimes,
    bystanders: VecDeque<Vec<Bystander>>,
    fails: bool,
}

impl Occupancy for Accounts {
    fn times(&mut self) -> io::Result<CpuTimes> {
        if self.fails {
            Err(io::ErrorKind::PermissionDenied.into())
        } else {
            Ok(self.times.clone())
        }
    }

    fn last_on(&mut self, cpus: &CpuSet) -> io::Result<Vec<Bystander>> {
        assert_eq!(*cpus, set("0-1"));
        Ok(self.bystanders.pop_front().unwrap_or_default())
    }
}

/// A program that is measured on core 0, and the machine around it.
struct World {
    watch: Watch,
    accounts: Accounts,
    threads: Vec<ThreadSample>,
    placed: bool,
}

impl World {
    fn new() -> Self {
        let idle = (0..4).map(|cpu| (PuId(cpu), CpuTime::default())).collect();
        let accounts =
            Accounts { times: CpuTimes { at: 100_000 * MS, cpus: idle }, ..Accounts::default() };
        let threads = vec![thread(1, 7, &set("0-3"))];
        Self { watch: Watch::default(), accounts, threads, placed: true }
    }

    /// Time passes: the program runs, others run on CPU 1, something is stolen from CPU 0.
    fn pass(&mut self, length: u32, own: u32, others: u32, stolen: u32) -> Vec<Intrusion> {
        let times = &mut self.accounts.times;
        times.at += length * MS;
        for (cpu, time) in &mut times.cpus {
            let (busy, stolen) = match cpu.0 {
                0 => (own, stolen),
                1 => (others, 0),
                _ => (length, 0),
            };
            time.idle += (length - busy - stolen) * MS;
            time.stolen += stolen * MS;
        }
        self.threads[0].run_time += own * MS;
        self.check()
    }

    fn check(&mut self) -> Vec<Intrusion> {
        let program = Program { class: Class::Alone, ..Program::new(ProgramId(1), "bench") };
        let at = Timestamp(u64::try_from(self.accounts.times.at.as_nanos()).unwrap());
        let threads = self.threads.clone();
        let target = || match self.placed {
            true => Assignment::on(set("0"), "is measured"),
            false => Assignment::os("not settled yet"),
        };
        let placement = threads.iter().map(|thread| (thread.id, target())).collect();
        let sample = Sample { at, threads, programs: vec![program], ..Sample::default() };
        self.watch.check(&sample, &placement, &topology(), &mut self.accounts)
    }

    fn report(&self) -> Quiet {
        self.watch.report(ProgramId(1)).unwrap()
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn others_on_its_cores_are_reported() {
    let mut world = World::new();
    assert!(world.check().is_empty());
    let found = world.pass(1000, 900, 300, 0);
    assert_eq!(found.len(), 1);
    let Intrusion { program, cpus, length, others, begins, .. } = &found[0];
    assert_eq!((*program, cpus, *length), (ProgramId(1), &set("0-1"), 1000 * MS));
    assert_eq!((*others, *begins), (300 * MS, true));
    assert!(!world.pass(1000, 900, 100, 0)[0].begins, "it goes on");
    let report = world.report();
    assert!(close(report.watched_s, 2.0) && close(report.others_s, 0.4), "{report:?}");
}

#[test]
fn its_own_time_is_no_intrusion() {
    let mut world = World::new();
    world.check();
    for _ in 0..5 {
        // Steps of the kernel's accounts are no others.
        assert_eq!(world.pass(400, 380, 5, 10), []);
    }
    let report = world.report();
    assert!(close(report.watched_s, 1.2) && close(report.unwatched_s, 0.8), "{report:?}");
    assert!(close(report.others_s, 0.0) && close(report.stolen_s, 0.03), "{report:?}");
}

#[test]
fn what_changes_is_not_judged() {
    let mut world = World::new();
    world.check();
    world.threads.push(thread(1, 8, &set("0-3")));
    assert_eq!(world.pass(1000, 0, 900, 0), [], "a thread came");
    world.placed = false;
    assert_eq!(world.pass(1000, 0, 900, 0), [], "it is not placed any more");
    world.placed = true;
    assert_eq!(world.pass(1000, 0, 900, 0), [], "it was not placed at the begin");
    world.threads[0].id.generation += 1;
    assert_eq!(world.pass(1000, 0, 900, 0), [], "it is another program");
    assert_eq!(world.pass(1000, 0, 900, 0).len(), 1);
    let report = world.report();
    assert!(close(report.watched_s, 1.0) && close(report.unwatched_s, 4.0), "{report:?}");
    world.accounts.fails = true;
    world.pass(1000, 0, 900, 0);
    world.pass(1000, 0, 900, 0);
    let report = world.report();
    assert!(report.trouble.unwrap().contains("/proc/stat"));
    assert!(close(report.watched_s, 1.0) && close(report.unwatched_s, 6.0));
    world.accounts.fails = false;
    world.pass(1000, 0, 0, 0);
    world.pass(1000, 0, 0, 0);
    let report = world.report();
    assert!(report.trouble.is_none() && close(report.watched_s, 2.0), "{report:?}");
    // Nothing is kept of programs that are gone.
    let (sample, placement) = (Sample::default(), Placement::new());
    assert!(world.watch.check(&sample, &placement, &topology(), &mut world.accounts).is_empty());
    assert_eq!(world.watch.total(), None);
}

#[test]
fn intruders_are_named_with_what_they_ran() {
    let one = |thread, name: &str, born: u32, ran: u32| Bystander {
        process: thread,
        thread,
        born: born * MS,
        name: name.to_owned(),
        run_time: ran * MS,
    };
    let mut world = World::new();
    // The run time within the window is unknown for threads that existed before it.
    world.accounts.bystanders = [
        vec![one(7, "bench", 1, 999), one(20, "sh", 100_500, 300), one(21, "cron", 50, 70)],
        vec![one(20, "sh", 100_500, 350), one(21, "cron", 50, 270)],
    ]
    .into();
    world.check();
    let named = |found: &[Intrusion]| -> Vec<(String, f64)> {
        found[0].by.iter().map(|one| (one.name.clone(), one.s)).collect()
    };
    assert_eq!(named(&world.pass(1000, 500, 400, 0)), [("sh".to_owned(), 0.3)]);
    let second = named(&world.pass(1000, 500, 400, 0));
    assert_eq!(second, [("cron".to_owned(), 0.2), ("sh".to_owned(), 0.05)]);
    let all = world.report().by;
    assert!(all[0].name == "sh" && close(all[0].s, 0.35), "{all:?}");
}
