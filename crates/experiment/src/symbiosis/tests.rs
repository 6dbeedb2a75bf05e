use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use symbiont_policy::{PairSlowdowns, Settings};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::Errors;

use super::*;
use crate::harness::Error;
use crate::simulated::Library;

#[test]
fn workloads_are_divided_as_stated() {
    let runs = plan(&Size::full());
    let cases: BTreeSet<&Case> = runs.iter().map(|run| &run.case).collect();
    assert_eq!(cases.len(), 160);
    for (cores, want) in [(4, 12), (6, 12), (7, 11), (10, 11)] {
        for width in [2, 4] {
            let of = |case: &&&Case| case.cores == cores && case.width == width;
            assert_eq!(cases.iter().filter(of).count(), want);
        }
    }
    let oracles = runs.iter().filter(|run| run.policy == "oracle");
    assert!(oracles.clone().count() == 80 && oracles.clone().all(|run| run.case.width == 2));
    let programs: Vec<String> = (0..23).map(|at| format!("p{at}")).collect();
    let case = Case { width: 4, cores: 7, number: 3 };
    let drawn = case.programs(&programs, 1);
    assert_eq!((drawn.len(), &drawn), (28, &case.programs(&programs, 1)));
    assert_ne!(drawn, case.programs(&programs, 2));
    assert_ne!(drawn, Case { number: 4, ..case }.programs(&programs, 1));
    let distinct: BTreeSet<&String> = drawn.iter().collect();
    assert_eq!(distinct.len(), 23);
}

const PROGRAMS: [&str; 4] =
    ["synthetic-branchy", "synthetic-float", "synthetic-integer", "synthetic-streaming"];

#[test]
fn a_short_evaluation_runs_and_goes_on() {
    let profiles: BTreeMap<String, Profile> =
        Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap();
    let machine = Description::named("power8-s812l").unwrap();
    let workshop = Workshop::new(machine.restricted(Some(2), Some(2)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let names = PROGRAMS.map(str::to_owned).to_vec();
    let slowdowns = PairSlowdowns::new("made-up".into(), names, vec![vec![1.5; 4]; 4]).unwrap();
    let options = |policies: &[&str]| Options {
        output: folder.path().to_owned(),
        size: Size {
            widths: vec![2],
            cores: vec![2],
            workloads: 1,
            repeats: 2,
            alone: Duration::from_millis(500),
            policies: policies.iter().map(|&policy| policy.to_owned()).collect(),
        },
        seed: 1,
        settings: Settings { slowdowns: Some(slowdowns.clone().into()), ..Settings::default() },
        switches: Switches::default(),
        errors: Errors::default(),
        workers: 2,
    };
    let run = |options: &Options| Campaign::run(&workshop, &profiles, options, &mut ());
    let lacking = run(&options(&["random", "symbiotic"])).unwrap_err().to_string();
    assert!(lacking.contains("policy 'symbiotic' cannot run: it has no interference model"));
    let journal = folder.path().join("runs.jsonl");
    let lines = || std::fs::read_to_string(&journal).unwrap().lines().count();
    assert_eq!(lines(), 1, "what was done before is kept");

    let other = options(&["random", "l1-bandwidth", "oracle"]);
    assert!(matches!(run(&other), Err(Error::OtherCampaign { .. })));
    std::fs::remove_file(folder.path().join("campaign.json")).unwrap();
    let (evaluation, report) = run(&other).unwrap();
    assert_eq!(lines(), 3);
    let of = |policy: &str| evaluation.gains.iter().filter(|gain| gain.policy == policy).count();
    assert_eq!((of("oracle"), of("l1-bandwidth")), (2, 2));
    assert!(evaluation.gains.iter().all(|gain| gain.over.stp.value.abs() < 1.0));
    let text = report.to_json().unwrap();
    assert!(text.contains("simulated: power8-s812l") && text.contains("Published, SMT2"));
    // All is done: the same comes out.
    assert_eq!(run(&other).unwrap().0, evaluation);
}
