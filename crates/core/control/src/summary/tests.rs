use std::time::Duration;

use symbiont_counters::{Characterization, Characterizations};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Assignment, Placement, Program, ProgramId, Sample, ThreadSample};
use symbiont_topology::{PuId, Topology};

use super::*;

const QUANTUM: Duration = Duration::from_millis(100);

fn topology() -> Topology {
    Topology::synthetic("core:2 smt:2").unwrap()
}

/// A thread of a program that is last seen on a CPU.
fn seen(program: u32, number: u32, cpu: u32) -> ThreadSample {
    ThreadSample { cpu: Some(PuId(cpu)), ..thread(program, number, &topology().cpus()) }
}

/// Adds a quantum in which threads ran for some share of it, with a reason for each.
fn add(summary: &mut Summary, threads: &[(ThreadSample, f64)], why: impl Fn(usize) -> Assignment) {
    let named = ["one", "two"].iter().zip(0..);
    let program = |(name, id): (&&str, u32)| Program::new(ProgramId(id), *name);
    let sample = Sample {
        threads: threads.iter().map(|(thread, _)| thread.clone()).collect(),
        programs: named.map(program).collect(),
        ..Sample::default()
    };
    let did = |running: f64| Characterization {
        over: QUANTUM,
        ready: running,
        running,
        switches: 1,
        migrated: None,
    };
    let known: Characterizations =
        threads.iter().map(|(thread, running)| (thread.id, did(*running))).collect();
    let placement: Placement =
        threads.iter().enumerate().map(|(at, (thread, _))| (thread.id, why(at))).collect();
    summary.add(&sample, &known, &placement);
}

fn left(_: usize) -> Assignment {
    Assignment::os("left to the OS")
}

#[test]
fn run_time_goes_to_the_cpu_where_a_thread_was_seen() {
    let mut summary = Summary::new(&topology());
    add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(1, 1, 3), 0.5)], left);
    add(&mut summary, &[(seen(0, 0, 2), 0.5), (seen(1, 1, 3), 0.0)], left);
    let report = summary.report();
    let one = &report.programs[0];
    assert_eq!((one.name.as_str(), one.threads), ("one", 1));
    assert!((one.run_time_s - 0.15).abs() < 1e-9);
    let cpus: Vec<_> = one.cpus.iter().map(|c| (c.cpu, (c.share * 3.0).round())).collect();
    assert_eq!(cpus, [(0, 2.0), (2, 1.0)]);
    assert_eq!(one.cpus[1].core, topology().core_of(PuId(2)).map(|core| core.id.0));
    assert_eq!(report.programs[1].cpus.len(), 1);
    assert_eq!(report.threads[0].cpus, one.cpus);
}

#[test]
fn threads_at_once_and_waiting_are_summed() {
    let mut summary = Summary::new(&topology());
    let threads = |numbers: &[u32]| -> Vec<(ThreadSample, f64)> {
        numbers.iter().map(|number| (seen(0, *number, 0), 0.25)).collect()
    };
    for numbers in [&[1, 2][..], &[3, 4, 5], &[6]] {
        let threads = threads(numbers);
        let sample = Sample {
            threads: threads.iter().map(|(thread, _)| thread.clone()).collect(),
            ..Sample::default()
        };
        let did = |(thread, running): &(ThreadSample, f64)| {
            let (running, ready) = (*running, 0.75);
            let (switches, migrated) = (1, None);
            (thread.id, Characterization { over: QUANTUM, ready, running, switches, migrated })
        };
        summary.add(&sample, &threads.iter().map(did).collect(), &Placement::new());
    }
    // Its program ended.
    summary.add(&Sample::default(), &Characterizations::new(), &Placement::new());
    let one = &summary.report().programs[0];
    assert_eq!((one.number, one.threads, one.most_threads), (0, 6, 3));
    assert!((one.run_time_s - 0.15).abs() < 1e-9 && (one.wait_time_s - 0.3).abs() < 1e-9);
}

#[test]
fn co_runners_share_a_core_and_a_quantum() {
    let mut summary = Summary::new(&topology());
    let core = |cpu| topology().core_of(PuId(cpu)).unwrap().id;
    let sibling = (1..4).find(|&cpu| core(cpu) == core(0)).unwrap();
    let apart = (1..4).find(|&cpu| core(cpu) != core(0)).unwrap();
    add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(1, 1, sibling), 0.1)], left);
    add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(1, 1, sibling), 0.0)], left);
    add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(1, 1, apart), 1.0)], left);
    add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(0, 2, 0), 1.0)], left);
    let report = summary.report();
    let one = &report.programs[0].co_runners;
    assert_eq!((one.thread_quanta, one.alone), (5, 0.4));
    let with: Vec<_> = one.with.iter().map(|c| (c.program.as_str(), c.share)).collect();
    assert_eq!(with, [("one", 0.4), ("two", 0.2)]);
    let first = &report.threads[0];
    assert_eq!((first.program.as_str(), first.co_runners.thread_quanta), ("one", 4));
    assert_eq!(first.co_runners.alone, 0.5);
}

#[test]
fn reasons_are_counted_without_their_figures() {
    let mut summary = Summary::new(&topology());
    for quantum in 0..4 {
        add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(0, 1, 1), 1.0)], |at| match at {
            0 => Assignment::os(format!("{quantum}.5 ready threads")),
            _ if quantum == 2 => Assignment::os("asleep"),
            _ => Assignment::os("alone"),
        });
    }
    let report = summary.report();
    let reported = |r: &ReasonCount| (r.pattern.clone(), r.decisions, r.share, r.last.clone());
    let reported: Vec<_> = report.programs[0].reasons.iter().map(reported).collect();
    let entry = |pattern: &str, decisions, share, last: &str| {
        (pattern.to_owned(), decisions, share, last.to_owned())
    };
    assert_eq!(
        reported,
        [
            entry("# ready threads", 4, 0.5, "3.5 ready threads"),
            entry("alone", 3, 0.375, "alone"),
            entry("asleep", 1, 0.125, "asleep"),
        ]
    );
    assert_eq!(report.programs[0].last_reason.as_deref(), Some("alone"));
    assert_eq!(report.threads[0].last_reason.as_deref(), Some("3.5 ready threads"));
}

#[test]
fn no_prediction_is_no_slowdown() {
    let mut summary = Summary::new(&topology());
    for slowdown in [1.0, 1.5, f64::NAN] {
        add(&mut summary, &[(seen(0, 0, 0), 1.0), (seen(1, 1, 1), 1.0)], |at| Assignment {
            predicted_slowdown: (at == 0).then_some(slowdown),
            ..left(at)
        });
    }
    let report = summary.report();
    let wanted = PredictedSlowdown { predictions: 2, mean: 1.25, min: 1.0, max: 1.5 };
    assert_eq!(report.programs[0].predicted_slowdown, Some(wanted));
    assert_eq!(report.threads[0].predicted_slowdown, Some(wanted));
    assert_eq!(report.programs[1].predicted_slowdown, None);
}

#[test]
fn memory_is_bounded_whatever_comes_and_goes() {
    let mut summary = Summary::new(&topology());
    let long_lived = (seen(0, 1, 0), 1.0);
    let busy = (seen(0, 2, 1), 1.0);
    add(&mut summary, &[long_lived.clone(), busy], left);
    for quantum in 0..100u32 {
        let brief = (0..10).map(|n| (seen(0, 100 + quantum * 10 + n, 2), 0.1));
        let threads: Vec<_> = std::iter::once(long_lived.clone()).chain(brief).collect();
        // Letters are no figures: each is a reason of its own.
        let why = |at: usize| Assignment::os(format!("r{}", "x".repeat(at + quantum as usize)));
        add(&mut summary, &threads, why);
    }
    let report = summary.report();
    assert_eq!(report.threads.len(), MOST_THREADS);
    assert_eq!(report.programs[0].threads, 1002);
    assert_eq!(report.threads_not_listed, 1002 - MOST_THREADS as u64);
    assert!(report.threads.iter().any(|t| t.thread == 2), "the busiest of the ended ones is kept");
    assert_eq!(report.programs[0].reasons.len(), MOST_REASONS);
    let counted: u64 = report.programs[0].reasons.iter().map(|r| r.decisions).sum();
    assert_eq!(counted + report.programs[0].other_reasons, 2 + 100 * 11);
    // More threads at once than are listed.
    let many: Vec<_> = (0..300).map(|n| (seen(1, 10_000 + n, 3), 0.1)).collect();
    add(&mut summary, &many, left);
    add(&mut summary, &many, left);
    let report = summary.report();
    assert_eq!((report.threads.len(), report.programs[1].threads), (MOST_THREADS, 300));
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<SummaryReport>(&text).unwrap(), report);
}
