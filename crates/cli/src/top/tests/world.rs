//! Synthetic snapshots.

use symbiont_wire::{
    CoreStatus, ManagerStatus, MoveStatus, ProgramStatus, Snapshot, ThreadStatus, Usage,
};

/// Cores of two hardware threads each.
fn cores(count: u32) -> Vec<CoreStatus> {
    let core = |core| CoreStatus {
        core,
        cpus: format!("{},{}", 2 * core, 2 * core + 1),
        capacity: 1024,
        ..CoreStatus::default()
    };
    (0..count).map(core).collect()
}

/// A busy thread of `make` (even numbers) or `xz`, on a CPU.
pub fn thread(number: u32, cpu: u32, run_time_s: f64) -> ThreadStatus {
    ThreadStatus {
        thread: 4700 + number,
        process: 4700 + number % 2,
        program: number % 2,
        name: Some(
            if number % 4 == 2 {
                "cc1plus"
            } else if number % 2 == 0 {
                "make"
            } else {
                "xz"
            }
            .into(),
        ),
        state: "runnable".into(),
        cpu: Some(cpu),
        allowed: "0-7".into(),
        placed: Some(cpu.to_string()),
        held: None,
        reason: "parallel phase: 2.0 ready threads of 8 hardware threads".into(),
        run_time_s,
        wait_time_s: 1.0,
        ran_share: Some(0.98 - 0.01 * f64::from(number)),
        waited_share: Some(0.0),
        ..ThreadStatus::default()
    }
}

/// What a daemon says of a machine with so many busy threads, on four cores (or sixteen).
pub fn daemon(threads: u32) -> Snapshot {
    let cores = cores(if threads > 8 { 16 } else { 4 });
    let cpus = 2 * u32::try_from(cores.len()).unwrap();
    let program = |(number, name): (u32, &str)| ProgramStatus {
        program: number,
        name: name.into(),
        uid: 1000,
        threads: threads / 2,
        ..ProgramStatus::default()
    };
    let moved = |number: u32| MoveStatus {
        ago_s: 0.4 + 30.0 * f64::from(number),
        thread: 4700 + number,
        process: 4700 + number % 2,
        program: if number % 2 == 0 { "make" } else { "xz" }.into(),
        to: (number % cpus).to_string(),
        outcome: if number % 5 == 3 { "thread gone" } else { "done" }.into(),
        reason: "parallel phase: 2.0 ready threads of 8 hardware threads".into(),
    };
    Snapshot {
        at_s: 1000.0,
        manager: Some(ManagerStatus {
            version: "0.1.0".into(),
            pid: 700,
            uptime_s: 1830.0,
            policy: "phases".into(),
            quantum_ms: 100.0,
            moves: [
                ("done".to_owned(), 128),
                ("thread_gone".to_owned(), 3),
                ("refused".to_owned(), 0),
            ]
            .into(),
            reasons: [("withheld".to_owned(), [("it was moved lately".to_owned(), 7)].into())]
                .into(),
            scheduler: None,
            usage: Usage {
                cpu_s: 3.2,
                quanta: 18_250,
                quanta_missed: 2,
                memory_bytes: Some(12_345_678),
                rescans: 0,
            },
        }),
        cores,
        programs: if threads == 0 {
            Vec::new()
        } else {
            [(0, "make"), (1, "xz")].map(program).into()
        },
        threads: (0..threads).map(|number| thread(number, number % cpus, 100.0)).collect(),
        moves: (0..threads.min(32)).map(moved).collect(),
        ..Snapshot::default()
    }
}

/// The same with nothing running: threads sleep and are left to the OS.
pub fn idle(threads: u32) -> Snapshot {
    let mut idle = daemon(threads);
    for thread in &mut idle.threads {
        thread.state = "sleeping".into();
        thread.placed = None;
        thread.reason = "asleep".into();
        (thread.ran_share, thread.waited_share) = (Some(0.0), Some(0.0));
    }
    idle.moves.clear();
    idle
}

/// The same under a policy that measures and predicts, with more threads than CPUs.
pub fn measured(threads: u32) -> Snapshot {
    let mut measured = daemon(threads);
    measured.manager.as_mut().unwrap().policy = "symbiotic".into();
    for (number, thread) in (0..).zip(&mut measured.threads) {
        let slow = 1.0 + 0.09 * f64::from(number % 8);
        thread.predicted_slowdown = Some(slow);
        thread.achieved_slowdown = (number % 3 > 0).then_some(slow + 0.04);
        thread.ipc = Some(1.5);
        thread.cpi_stack =
            [("base".to_owned(), 0.3), ("memory".to_owned(), 0.1 * f64::from(number % 8))].into();
        thread.waited_share = Some(0.02);
        thread.reason =
            "predicted slowdowns 1.10, 1.32: throughput 1.67; least stp by form delta".into();
        if number % 2 == 1 {
            thread.categories =
                [("backend_bound".to_owned(), 0.61), ("retiring".to_owned(), 0.3)].into();
        }
    }
    measured
}

/// The same, and other programs keep every third core busy.
pub fn busy(mut snapshot: Snapshot) -> Snapshot {
    for thread in snapshot.threads.iter_mut().filter(|thread| thread.thread % 3 > 0) {
        (thread.ran_share, thread.waited_share) = (Some(0.4), Some(0.5));
    }
    for core in &mut snapshot.cores {
        core.busy_share = Some(if core.core % 3 == 0 { 0.0 } else { 1.0 });
    }
    snapshot
}

/// No daemon: threads are only watched.
pub fn watched(threads: u32) -> Snapshot {
    let mut watched = daemon(threads);
    watched.manager = None;
    watched.moves.clear();
    for thread in &mut watched.threads {
        thread.placed = None;
        thread.reason.clear();
    }
    watched
}

/// Names that try to be more than names.
pub fn names() -> Snapshot {
    let mut names = daemon(6);
    let odd = [
        "\u{1b}[2J\u{1b}[31mred",
        "編譯器測試程式很長",
        "new\nline\ttab",
        "\u{202e}gpj.exe",
        "größe",
        "e\u{301}e\u{301}",
    ];
    let program = |(number, name): (u32, &&str)| ProgramStatus {
        program: number,
        name: (*name).to_owned(),
        ..ProgramStatus::default()
    };
    names.programs = (0..).zip(&odd).map(program).collect();
    for (number, thread) in (0..).zip(&mut names.threads) {
        thread.program = number;
        thread.name = None;
        thread.reason = "\u{1b}]0;title\u{7}reason".into();
    }
    for (one, name) in names.moves.iter_mut().zip(&odd) {
        one.program = (*name).to_owned();
        one.outcome = "refused \u{1b}c".into();
    }
    names.notes = vec!["note \u{9b}31m".into()];
    names
}
