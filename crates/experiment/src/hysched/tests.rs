use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Assignment, Placement, Program, ProgramId, Sample};
use symbiont_policy::{Policy, Variant, View};
use symbiont_sim::description::Description;
use symbiont_sim::fast::Workshop;
use symbiont_topology::Topology;

use super::plan::{BEST, Part, Start};
use super::*;
use crate::simulated::{Exchanged, Library};

fn tiny() -> Size {
    Size {
        alone: Duration::from_millis(400),
        quantum: Duration::from_millis(100),
        repeats: 2,
        pair_repeats: 1,
        mixes: 1,
        ..Size::short()
    }
}

fn campaign(folder: &Path, size: &Size) -> crate::report::Report {
    let library = Library::open(Path::new("/nonexistent")).unwrap();
    let needed = size.needed();
    let profiles = library.load_all(needed.iter().map(String::as_str)).unwrap();
    let workshop = Workshop::new(Description::named("xeon-e5-2620v4").unwrap());
    let options = Options { output: folder.to_owned(), size: size.clone(), seed: 1 };
    let lab = Lab { workshop: &workshop, profiles: &profiles };
    Campaign::run(&options, lab, &mut ()).unwrap()
}

#[test]
fn a_campaign_has_every_part_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let first = campaign(folder.path(), &tiny());
    let journal = folder.path().join("runs.jsonl");
    let runs = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(runs.lines().count(), plan(&tiny(), 1).len());
    // Resumed after an interruption: the same figures.
    let half = runs.lines().take(runs.lines().count() / 2).map(|line| format!("{line}\n"));
    std::fs::write(&journal, half.collect::<String>()).unwrap();
    assert_eq!(campaign(folder.path(), &tiny()), first);
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), runs);

    let text = serde_json::to_string(&first).unwrap();
    assert!(text.contains("Simulated: nothing here was measured on hardware"), "{text}");
    for file in ["premise", "alone", "table-1", "table-2", "figure-2", "changes", "checks"] {
        assert!(folder.path().join(format!("{file}.csv")).is_file(), "{file}");
    }
    for file in ["figure-2-means.svg", "figure-2-means.png", "pairs.svg"] {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    let records: Vec<Record> =
        runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found = evaluate(&records).unwrap();
    assert_eq!((found.unfinished, found.mixes.len(), found.pinned.len()), (0, 1, 6));
    assert_eq!(found.alone.len(), tiny().programs.len());
    assert!(found.alone.values().all(|alone| alone.seen.len() == 4 && alone.ipc > 0.0));
    assert_eq!(found.pairs.len(), 15);
    assert!(found.pairs.values().all(|stp| (0.9..2.05).contains(stp)), "{:?}", found.pairs);
    assert!(found.gains.iter().all(|gain| gain.mean.is_some()), "{:?}", found.gains);
    assert_eq!(found.gains.len(), Contender::FIGURE_2.len() + 1);
    // Hy-Sched's six entries tell what they found out.
    assert_eq!(found.findings.len(), 6);
    for shares in &found.categories {
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }
}

#[test]
fn plans_name_each_run_once_and_compare_alike() {
    let all = plan(&Size::short(), 1);
    let ids: BTreeSet<String> = all.iter().map(Run::id).collect();
    assert_eq!(ids.len(), all.len());
    assert_ne!(plan(&Size::short(), 2), all, "mixes are drawn by the seed");
    let mixes: Vec<&Run> = all.iter().filter(|run| run.scene.part == Part::Mix).collect();
    assert!(mixes.iter().all(|run| run.scene.programs.len() == 8 && run.scene.cores() == 4));
    let pinned = all.iter().filter(|run| run.scene.part == Part::Pinned);
    assert!(pinned.clone().all(|run| run.scene.cores() == 2) && pinned.count() == 6 * 2 * 3);
    let last_pair = all.iter().rposition(|run| run.scene.part == Part::Pair).unwrap();
    let first_match = all.iter().position(|run| run.contender == Contender::Matched).unwrap();
    assert!(last_pair < first_match);
}

fn record(contender: Contender, repeat: u32, speedup: f64) -> Record {
    let scene = Scene { part: Part::Mix, name: "wk1".into(), programs: vec!["a".into(); 2] };
    let run = Run { scene, contender, start: Start::Apart, private: false, repeat };
    Record {
        run,
        speedups: Some(vec![speedup; 2]),
        length_s: 1.0,
        quanta: 1,
        moves: 0,
        unsettled: 0.0,
        findings: [("x".to_owned(), speedup)].into(),
        pairs: vec![("a".into(), "b".into(), 3), ("b".into(), "b".into(), 1)],
        alone: None,
    }
}

#[test]
fn gains_are_taken_start_by_start() {
    let of = |who, speedups: [f64; 2]| {
        (0..).zip(speedups).map(move |(repeat, speedup)| record(who, repeat, speedup))
    };
    // The starts differ by a factor; on each the policy gains a tenth.
    let records: Vec<Record> = of(Contender::Os, [0.4, 0.8])
        .chain(of(Contender::Hysched(BEST), [0.44, 0.88]))
        .chain(of(Contender::Random, [0.4, 0.8]))
        .chain(of(Contender::Matched, [0.48, 0.96]))
        .collect();
    let found = evaluate(&records).unwrap();
    let gain = found.gains.iter().find(|g| g.contender == Contender::Hysched(BEST)).unwrap();
    let mix = gain.mixes[0].unwrap();
    assert!((mix.value - 0.1).abs() < 1e-9 && mix.interval.unwrap().width() < 1e-9, "{mix:?}");
    assert!((gain.captured.unwrap().value - 0.5).abs() < 1e-9, "{gain:?}");
    let alone = |who| found.gains.iter().find(|g| g.contender == who).unwrap().mean.unwrap().value;
    assert!(alone(Contender::Random).abs() < 1e-9);
    assert!(found.gains.iter().find(|g| g.private).unwrap().mean.is_none());
    assert_eq!(found.categories[1][&("a".to_owned(), "b".to_owned())], 0.75);
    assert!(evaluate(&[]).is_err());
}

#[test]
fn private_resources_leave_no_gain() {
    let folder = tempfile::tempdir().unwrap();
    campaign(folder.path(), &tiny());
    let text = std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap());
    let private = records.filter(|record| record.run.private).filter_map(|record| record.stp());
    let stps: Vec<f64> = private.collect();
    let most = stps.iter().copied().fold(f64::MIN, f64::max);
    let least = stps.iter().copied().fold(f64::MAX, f64::min);
    // Who shares a core no longer matters; moves and the shared bandwidth remain.
    assert!(stps.len() == 4 && most / least < 1.03, "{stps:?}");
}

/// Tells what it was shown, as reasons.
struct Teller;

impl Policy for Teller {
    fn name(&self) -> &'static str {
        "teller"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let told = |t: &symbiont_policy::ThreadView<'_>| {
            let ipc = t.measured.and_then(|measured| measured.value("ipc"));
            (t.id, Assignment::os(format!("{ipc:?}")))
        };
        view.threads.iter().map(told).collect()
    }
}

#[test]
fn measurements_are_exchanged_between_programs() {
    let machine = Topology::synthetic("core:4 smt:2").unwrap();
    let threads: Vec<_> = (0..8).map(|n| thread(n, n, &machine.cpus())).collect();
    let programs = (0..8).map(|n| Program::new(ProgramId(n), "p")).collect();
    let known: Measurements = (0u32..)
        .zip(&threads)
        .map(|(n, t)| {
            let ipc = Value { value: f64::from(n), unit: Unit::Fraction };
            (t.id, Measured::of([("ipc", ipc)]))
        })
        .collect();
    let sample = Sample { threads, programs, ..Sample::default() };
    let (did, in_force) = (Characterizations::new(), Placement::new());
    let view = View::new(&machine, &sample, &did, &in_force).measured(&known);
    let mut shuffled = Exchanged::new(Box::new(Teller), 1);
    let told = |placement: Placement| {
        placement.into_values().map(|a| a.reason.into_owned()).collect::<Vec<_>>()
    };
    let (first, again) = (told(shuffled.place(&view)), told(shuffled.place(&view)));
    let plain = told(Teller.place(&view));
    assert_eq!(first, again, "the same as long as it lives");
    assert_ne!(first, plain);
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(first), sorted(plain), "everybody's are shown");
}

#[test]
fn contenders_have_names_of_their_own() {
    let all = Contender::FIGURE_2.into_iter().chain([Contender::Shuffled(BEST), Contender::Pinned]);
    let names: BTreeSet<String> = all.clone().map(|contender| contender.to_string()).collect();
    assert_eq!(names.len(), all.count());
    assert_eq!(Contender::Hysched(BEST).to_string(), Variant::TopB2M3L.to_string());
    assert_eq!(Contender::Pinned.variant(), None);
}
