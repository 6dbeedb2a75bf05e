use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use symbiont_counters::catalogue::{Unit, Value};
use symbiont_counters::{Characterizations, Measured, Measurements};
use symbiont_machine::test_support::thread;
use symbiont_machine::{Assignment, Placement, Program, ProgramId, Sample};
use symbiont_policy::{Policy, Variant, View};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_topology::Topology;

use super::*;
use crate::{Library, Shuffled};
use symbiont_campaign::{FinishedRun, Metric, carry_out};
use symbiont_report::published::navarro::TABLE_1;

fn tiny() -> HyschedSize {
    HyschedSize {
        alone: Duration::from_millis(400),
        quantum: Duration::from_millis(100),
        repeats: 2,
        pair_repeats: 1,
        pinned_repeats: 2,
        mix1_repeats: 2,
        mixes: 1,
        ..HyschedSize::synthetic()
    }
}

fn finished(folder: &Path, size: &HyschedSize) -> Vec<FinishedRun<HyschedRun, HyschedRecord>> {
    let library = Library::open(Path::new("/nonexistent")).unwrap();
    let needed = size.needed();
    let profiles = library.load_all(needed.iter().map(String::as_str)).unwrap();
    let builder = TableBuilder::new(Description::named("xeon-e5-2620v4").unwrap());
    let trial = Trial::new(&builder, &profiles, size, 1, &|_| String::new());
    carry_out(&trial, folder, 2, &mut ()).unwrap()
}

#[test]
fn a_trial_has_every_part() {
    let folder = tempfile::tempdir().unwrap();
    let runs = finished(folder.path(), &tiny());
    assert_eq!(runs.len(), plan(&tiny(), 1).len());
    assert_eq!(finished(&folder.path().join("again"), &tiny()), runs);
    assert!(runs.iter().all(|it| it.record.speedups.is_some()));

    let matched = runs.iter().filter(|it| it.run.contender == Contender::Matched);
    assert!(matched.clone().count() == 2 && matched.clone().all(|it| it.run.pairs.len() == 4));
    let known = alone(&runs);
    assert_eq!(known.len(), tiny().programs.len());
    assert!(known.values().all(|alone| alone.seen.len() == 4 && alone.ipc > 0.0));
    assert!(premises(&runs).iter().any(|premise| premise.difference.is_some()));
    let rows = rows(&runs);
    for contender in Contender::FIGURE_2.into_iter().skip(1) {
        let gains = rows.gains("wk1", &contender.to_string(), "OS", Metric::Stp);
        assert_eq!(gains.len(), 2, "{contender}");
    }
    assert_eq!(rows.gains("mix1-c", "pinned", "OS", Metric::Stp).len(), 2);
    let shares = categories(&runs);
    assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
}

#[test]
fn plans_name_each_run_once_and_compare_alike() {
    let all = plan(&HyschedSize::synthetic(), 1);
    let ids: BTreeSet<String> =
        all.iter().map(|run| format!("{:?} {run}", run.scene.part)).collect();
    assert_eq!(ids.len(), all.len());
    assert_ne!(plan(&HyschedSize::synthetic(), 2), all, "mixes are drawn by the seed");
    let mixes: Vec<&HyschedRun> = all.iter().filter(|run| run.scene.part == Part::Mix).collect();
    assert!(mixes.iter().all(|run| run.scene.programs.len() == 8 && run.scene.cores() == 4));
    let pinned = all.iter().filter(|run| run.scene.part == Part::Pinned);
    assert!(pinned.clone().all(|run| run.scene.cores() == 2) && pinned.count() == 6 * 5 * 3);
    let of_mix = |name: &str| {
        let full = plan(&HyschedSize::full(vec!["synthetic-float".to_owned()]), 1);
        full.iter().filter(|run| run.scene.name == name).count()
    };
    assert_eq!([of_mix("mix1-c"), of_mix("mix1-s"), of_mix("mix2-c")], [340, 340, 100]);
}

#[test]
fn private_resources_leave_no_gain() {
    let folder = tempfile::tempdir().unwrap();
    let runs = finished(folder.path(), &tiny());
    let stps = |part: Part, name: &str| -> Vec<f64> {
        let is = |run: &HyschedRun| run.private && run.scene.part == part && run.scene.name == name;
        runs.iter().filter(|it| is(&it.run)).filter_map(|it| it.record.stp()).collect()
    };
    let mut scenes = vec![(Part::Mix, "wk1")];
    scenes.extend(TABLE_1.iter().map(|mix| (Part::Pinned, mix.name)));
    for (part, name) in scenes {
        let stps = stps(part, name);
        let most = stps.iter().copied().fold(f64::MIN, f64::max);
        let least = stps.iter().copied().fold(f64::MAX, f64::min);
        // Which programs share a core no longer matters; moves and the shared bandwidth remain.
        assert!(stps.len() == 4 && most / least < 1.03, "{name}: {stps:?}");
    }
}

/// Returns what it was shown, as reasons.
struct Teller;

impl Policy for Teller {
    fn name(&self) -> &'static str {
        "teller"
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let reported = |t: &symbiont_policy::ThreadView<'_>| {
            let ipc = t.measured.and_then(|measured| measured.value("ipc"));
            (t.id, Assignment::os(format!("{ipc:?}")))
        };
        view.threads.iter().map(reported).collect()
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
    let (did, applied) = (Characterizations::new(), Placement::new());
    let view = View::new(&machine, &sample, &did, &applied).measured(&known);
    let mut shuffled = Shuffled::new(Box::new(Teller), 1);
    let reported = |placement: Placement| {
        placement.into_values().map(|a| a.reason.into_owned()).collect::<Vec<_>>()
    };
    let (first, again) = (reported(shuffled.place(&view)), reported(shuffled.place(&view)));
    let plain = reported(Teller.place(&view));
    assert_eq!(first, again, "the same as long as it lives");
    assert_ne!(first, plain);
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(first), sorted(plain), "those of all programs are shown");
}

#[test]
fn contenders_have_names_of_their_own() {
    let all = Contender::FIGURE_2.into_iter().chain([Contender::Shuffled(BEST), Contender::Pinned]);
    let names: BTreeSet<String> = all.clone().map(|contender| contender.to_string()).collect();
    assert_eq!(names.len(), all.count());
    assert_eq!(Contender::Hysched(BEST).to_string(), Variant::TopB2M3L.to_string());
    assert_eq!(Contender::Pinned.variant(), None);
}
