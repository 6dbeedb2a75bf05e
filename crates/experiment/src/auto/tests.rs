use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use symbiont_policy::Settings;
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::Workshop;

use super::play::Run;
use super::*;
use crate::simulated::Library;

const SYNTHETIC: [&str; 3] = ["synthetic-float", "synthetic-integer", "synthetic-streaming"];

fn profiles() -> BTreeMap<String, Profile> {
    Library::open(Path::new("/nonexistent")).unwrap().load_all(SYNTHETIC).unwrap()
}

fn machine() -> Description {
    Description::named("power8-s812l").unwrap().restricted(Some(2), Some(2)).unwrap()
}

fn options(folder: &Path, workers: usize) -> Options {
    let size = Size { workloads: 2, alone: Duration::from_millis(200), repeats: (2, 2) };
    Options { output: folder.to_owned(), size, seed: 1, workers }
}

#[test]
fn workloads_fill_the_machine_as_stated() {
    let threads = |members: &[Member]| -> usize {
        members.iter().map(|m| m.phased.as_ref().map_or(1, |(_, threads)| *threads)).sum()
    };
    let drawn: Vec<Vec<Member>> = (0..10).map(|at| draw(&SYNTHETIC, 16, at, 1)).collect();
    let filled: Vec<usize> = drawn.iter().map(|members| threads(members)).collect();
    assert_eq!(filled, [8, 10, 12, 14, 16, 8, 10, 12, 14, 16]);
    let phased = |members: &Vec<Member>| members.iter().filter(|m| m.phased.is_some()).count();
    assert_eq!(drawn.iter().map(phased).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 2, 2, 2, 2, 2]);
    assert_eq!(drawn[9], draw(&SYNTHETIC, 16, 9, 1));
    assert_ne!(drawn[9], draw(&SYNTHETIC, 16, 9, 2));
    let kinds: BTreeSet<&str> = drawn[0].iter().map(|m| m.program.as_str()).collect();
    assert_eq!(kinds.len(), SYNTHETIC.len());
}

#[test]
fn the_experiment_is_repeatable_and_goes_on_where_it_stopped() {
    let (profiles, workshop) = (profiles(), Workshop::new(machine()));
    let lab = Lab { workshop: &workshop, profiles: &profiles, settings: Settings::default() };
    let labs = std::slice::from_ref(&lab);
    let folder = tempfile::tempdir().unwrap();
    let report = |workers| run(&options(folder.path(), workers), labs, &mut ()).unwrap();
    let first = report(2);
    let path = folder.path().join("runs.jsonl");
    let kept = fs::read_to_string(&path).unwrap();
    fs::write(&path, kept.lines().next().unwrap().to_owned() + "\n").unwrap();
    assert_eq!(report(1), first);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
    for said in ["Simulated: nothing of this was measured", "symbiotic: it needs", "never-twice"] {
        assert!(page.contains(said), "{said}");
    }
    let other = Options { seed: 2, ..options(folder.path(), 1) };
    assert!(matches!(run(&other, labs, &mut ()), Err(Error::OtherCampaign { .. })));
}

#[test]
fn policies_that_cannot_run_are_named() {
    let (profiles, workshop) = (profiles(), Workshop::new(machine()));
    let lab = Lab { workshop: &workshop, profiles: &profiles, settings: Settings::default() };
    let (able, left_out) = contenders(&machine(), &lab.support().unwrap(), &lab.settings);
    let able: Vec<&str> = able.iter().map(|entry| entry.name).collect();
    assert!(able.contains(&JUDGED) && able.contains(&OS) && able.contains(&"phases"), "{able:?}");
    let why = |name: &str| left_out.iter().find(|(out, _)| *out == name).map(|(_, why)| &**why);
    assert!(why("symbiotic").unwrap().contains("an interference model"), "{left_out:?}");
    assert!(why("static").is_some() && why("oracle").is_some(), "{left_out:?}");
    assert_eq!(able.len() + left_out.len(), symbiont_policy::policies().len());
}

#[test]
fn losers_are_named() {
    let (profiles, workshop) = (profiles(), Workshop::new(machine()));
    let lab = Lab { workshop: &workshop, profiles: &profiles, settings: Settings::default() };
    let judged = |factor: f64| {
        let run = |policy: &str, repeat: u32, speedup: f64| Run {
            policy: policy.to_owned(),
            terms: Terms::Plain,
            repeat,
            speedups: vec![speedup, speedup],
            moves: 0.0,
            findings: BTreeMap::new(),
        };
        let runs = (0..3).flat_map(|repeat| {
            let os = 0.5 + 0.1 * f64::from(repeat);
            [run(OS, repeat, os), run(JUDGED, repeat, os * (factor + 0.001 * f64::from(repeat)))]
        });
        let programs = draw(&SYNTHETIC, 4, 0, 1);
        let record = Record { machine: lab.name(), workload: 3, programs, runs: runs.collect() };
        let options = options(Path::new("unused"), 1);
        let report = page::page(&options, std::slice::from_ref(&lab), &[record]).unwrap();
        report.to_json().unwrap()
    };
    let lost = judged(0.98);
    assert!(
        lost.contains("auto on power8-s812l workload 3 loses STP and ANTT (synthetic-"),
        "{lost}"
    );
    assert!(lost.contains("\"fail\""));
    for factor in [1.02, 0.999, 0.9955] {
        let kept = judged(factor);
        assert!(kept.contains("auto loses to the OS on no workload."), "{kept}");
        assert!(!kept.contains("\"fail\""));
    }
}
