use std::time::Duration;

use proptest::prelude::*;
use symbiont_policy::Phase;
use symbiont_synth::Span;

use super::campaign::DetectionRecord;
use super::plan::{Cell, CoRunner, Manager};
use super::*;
use symbiont_campaign::{Finished, InRound};

/// Alternating phases of these lengths, a parallel one first.
fn phases(lengths: &[u64]) -> Vec<Span> {
    let mut at = 1000;
    (lengths.iter().enumerate())
        .map(|(number, length)| {
            let begin_ns = at;
            at += length;
            Span { parallel: number % 2 == 0, begin_ns, end_ns: at }
        })
        .collect()
}

fn truth(span: &Span) -> Phase {
    if span.parallel { Phase::Parallel } else { Phase::Serial }
}

#[test]
fn a_late_reader_is_right_for_the_rest_of_a_phase() {
    let phases = phases(&[10_000_000; 9]);
    let late = |by: u64| -> Vec<Belief> {
        phases.iter().map(|s| Belief { at_ns: s.begin_ns + by, phase: truth(s) }).collect()
    };
    let judged = judge(&phases, &late(2_000_000)).unwrap();
    assert!((judged.right - 0.8).abs() < 1e-9);
    assert_eq!((judged.changes, judged.noticed), (8, 1.0));
    assert_eq!((judged.reaction_median_ms, judged.reaction_p95_ms), (Some(2.0), Some(2.0)));
    // Later than a phase lasts: always wrong, but for the first phase's end.
    let judged = judge(&phases, &late(10_000_000)).unwrap();
    assert_eq!((judged.right, judged.noticed), (0.0, 0.0));
}

#[test]
fn who_always_says_the_same_notices_nothing() {
    let phases = phases(&[10; 10]);
    let judged = judge(&phases, &[Belief { at_ns: 0, phase: Phase::Parallel }]).unwrap();
    assert_eq!((judged.right, judged.changes, judged.noticed), (0.5, 9, 0.0));
    assert_eq!(judged.reaction_median_ms, None);
}

#[test]
fn who_is_a_little_early_has_noticed_at_once() {
    let phases = phases(&[10_000_000; 9]);
    let early: Vec<Belief> =
        phases.iter().map(|s| Belief { at_ns: s.begin_ns - 500, phase: truth(s) }).collect();
    let judged = judge(&phases, &early).unwrap();
    assert_eq!((judged.noticed, judged.reaction_median_ms), (1.0, Some(0.0)));
    assert!(judged.right > 0.999 && judged.right < 1.0);
}

#[test]
fn the_95th_percentile_is_not_below_the_median() {
    let phases = phases(&[10_000_000; 3]);
    let late = [1_000_000, 2_000_000, 4_000_000];
    let beliefs: Vec<Belief> = (phases.iter().zip(late))
        .map(|(s, late)| Belief { at_ns: s.begin_ns + late, phase: truth(s) })
        .collect();
    let judged = judge(&phases, &beliefs).unwrap();
    assert_eq!((judged.reaction_median_ms, judged.reaction_p95_ms), (Some(3.0), Some(4.0)));
}

#[test]
fn who_says_nothing_is_never_right() {
    assert_eq!(judge(&phases(&[10; 4]), &[]).unwrap().right, 0.0);
    assert_eq!(judge(&[], &[Belief { at_ns: 0, phase: Phase::Serial }]), None);
}

proptest! {
    #[test]
    fn a_perfect_reader_is_always_right(lengths in prop::collection::vec(1u64..1000, 1..30)) {
        let phases = phases(&lengths);
        let beliefs: Vec<Belief> =
            phases.iter().map(|s| Belief { at_ns: s.begin_ns, phase: truth(s) }).collect();
        prop_assert!((judge(&phases, &beliefs).unwrap().right - 1.0).abs() < 1e-12);
    }

    #[test]
    fn shares_are_shares(
        lengths in prop::collection::vec(1u64..1000, 1..30),
        beliefs in prop::collection::vec((0u64..20_000, any::<bool>()), 0..30),
    ) {
        let mut beliefs: Vec<Belief> = (beliefs.into_iter())
            .map(|(at_ns, parallel)| {
                let phase = if parallel { Phase::Parallel } else { Phase::Serial };
                Belief { at_ns, phase }
            })
            .collect();
        beliefs.sort_by_key(|belief| belief.at_ns);
        let judged = judge(&phases(&lengths), &beliefs).unwrap();
        prop_assert!((0.0..=1.0).contains(&judged.right));
        prop_assert!((0.0..=1.0).contains(&judged.noticed));
    }
}

#[test]
fn the_sizes_take_what_they_say() {
    let round = |size: &Size| size.cells().iter().map(|cell| cell.time + plan::AROUND).sum();
    let minutes = |size: &Size| {
        let round: Duration = round(size);
        f64::from(size.rounds) * round.as_secs_f64() / 60.0
    };
    assert!(minutes(&Size::full()) < 10.0, "{}", minutes(&Size::full()));
    assert!(minutes(&Size::short()) < 2.5, "{}", minutes(&Size::short()));
}

#[test]
fn a_report_is_made_of_runs_without_tracepoints_too() {
    let judged = Judged {
        right: 0.8,
        changes: 10,
        noticed: 0.9,
        reaction_median_ms: Some(12.0),
        reaction_p95_ms: Some(20.0),
    };
    let record = |round, tracepoints| {
        let co_runner = CoRunner::Parallel;
        let (length, time) = (Duration::from_millis(50), Duration::from_secs(1));
        let cell = Cell { length, co_runner, manager: Manager::Accounts, time };
        let record = DetectionRecord { manager: judged, tracepoints: Some(tracepoints), lost: 0 };
        Finished { run: InRound { round, cell }, record }
    };
    let without = [record(0, Err("no permission".to_owned()))];
    let html = page::page(&without).unwrap().html().unwrap();
    assert!(html.contains("no permission"));
    let early = Judged { reaction_median_ms: Some(0.0), reaction_p95_ms: Some(0.0), ..judged };
    for judged in [judged, early] {
        page::page(&[record(0, Ok(judged)), record(1, Ok(judged))]).unwrap().html().unwrap();
    }
    assert!(page::page(&[]).is_err());
}
