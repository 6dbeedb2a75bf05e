use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use symbiont_counters::catalogue::Catalogue;
use symbiont_model::synthetic::World;
use symbiont_model::{
    Coefficients, Components, Depth, Form, Model, SmtMode, Throttling, Trained, Training, fit,
};
use symbiont_policy::{PairSlowdowns, Settings, Symbiosis};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::Errors;
use symbiont_topology::CoreKind;

use super::campaign::range;
use super::checks::Judged;
use super::plan::BOTH_NODES;
use super::*;
use crate::harness::{Error, Verdict};
use crate::simulated::Library;
use crate::training;
use crate::training::simulated::Simulated;
use crate::training::{LeftOut, Site};

#[test]
fn workloads_are_divided_as_stated() {
    let runs = plan(&Size::full());
    let cases: BTreeSet<&Case> =
        runs.iter().map(|run| &run.case).filter(|case| case.width < 8).collect();
    assert_eq!(cases.len(), 160);
    for (cores, want) in [(4, 12), (6, 12), (7, 11), (10, 11)] {
        for width in [2, 4] {
            let of = |case: &&&Case| case.cores == cores && case.width == width;
            assert_eq!(cases.iter().filter(of).count(), want);
        }
    }
    let plain = || runs.iter().filter(|run| run.terms == Terms::Plain && run.case.width < 8);
    assert_eq!(plain().count(), 80 * 6 + 80 * 5);
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

#[test]
fn controls_are_planned_with_their_baseline() {
    let runs = plan(&Size::full());
    let of = |policy: &str, terms: Terms| -> Vec<&Case> {
        let ran = runs.iter().filter(|run| run.policy == policy && run.terms == terms);
        ran.map(|run| &run.case).collect()
    };
    let exchanged = of("symbiotic", Terms::Exchanged);
    assert_eq!(exchanged.len(), 2 * 7 * 3);
    assert_eq!(exchanged, of("symbiotic", Terms::Shuffled));
    assert_eq!(exchanged, of("symbiotic", Terms::Free));
    assert_eq!(exchanged, of("random", Terms::Free));
    assert_eq!(exchanged, of("symbiotic", Terms::Private));
    assert_eq!(exchanged, of("random", Terms::Private));
    assert_eq!(exchanged, of("symbiotic", Terms::Late));
    assert_eq!(exchanged, of("symbiotic", Terms::Reserved));
    assert!(exchanged.iter().all(|case| of("random", Terms::Plain).contains(case)));
    // Without the policy, or what it is held against, there is nothing to control.
    let without =
        Size { policies: vec!["stay".to_owned(), "symbiotic".to_owned()], ..Size::full() };
    let uncontrolled = [Terms::Plain, Terms::Narrow];
    assert!(plan(&without).iter().all(|run| uncontrolled.contains(&run.terms)));
}

/// Two programs that fare alike, one of which is in all workloads.
fn record(number: usize, policy: &str, terms: Terms, speedup: f64) -> Record {
    let exact = crate::stats::Estimate::exact;
    Record {
        run: Run { case: Case { width: 2, cores: 1, number }, policy: policy.to_owned(), terms },
        programs: vec!["a".to_owned(), format!("b{number}")],
        places: vec![Place { speedup, turnaround: speedup.recip() }; 2],
        stp: exact(2.0 * speedup),
        antt: exact(speedup.recip()),
        moves: 1.0,
        together: Vec::new(),
        unfinished: 0,
        wall_s: 0.0,
    }
}

#[test]
fn gains_and_controls_equal_the_hand_worked_ones() {
    let of = |number: usize| {
        [
            record(number, "random", Terms::Plain, 0.5),
            record(number, "symbiotic", Terms::Plain, 0.6),
            record(number, "oracle", Terms::Plain, 0.7),
            record(number, "symbiotic", Terms::Free, 0.66),
            record(number, "random", Terms::Free, 0.55),
            record(number, "symbiotic", Terms::Exchanged, 0.55),
            record(number, "symbiotic", Terms::Private, 1.0),
            record(number, "random", Terms::Private, 1.0),
        ]
    };
    let records: Vec<Record> = (0..5).flat_map(of).collect();
    let evaluation = evaluate(&records);
    let gain = evaluation.gains.iter().find(|gain| gain.policy == "symbiotic").unwrap();
    assert!((gain.over.stp.value - 0.2).abs() < 1e-12);
    assert!((gain.over.antt.value - (0.5 / 0.6 - 1.0)).abs() < 1e-12);
    let interval = gain.over.stp.interval.unwrap();
    assert!(interval.width() < 1e-12 && gain.over.stp.n == 5);
    assert_eq!(evaluation.captured.len(), 1);
    assert!((evaluation.captured[0].share.unwrap().value - 0.5).abs() < 1e-12);
    let controls: Vec<(Terms, f64)> =
        evaluation.controls.iter().map(|c| (c.terms, c.over.stp.value)).collect();
    assert_eq!(controls.len(), 4);
    assert!(controls[..2].iter().all(|(_, gain)| (gain - 0.2).abs() < 1e-12));
    assert_eq!(controls[2..], [(Terms::Exchanged, 0.0), (Terms::Private, 0.0)]);

    let verdicts = |left_out: bool| -> Vec<Verdict> {
        let judged = Judged { left_out, memory_everywhere: false };
        checks::checks(&evaluation, judged).iter().map(|check| check.verdict).collect()
    };
    // A share of exactly a half is not above it; the gain is, and both controls are 0.
    let others = [Verdict::Pass; 3];
    assert_eq!(verdicts(true), [&[Verdict::Fail][..], &others].concat());
    assert_eq!(verdicts(false), [&[Verdict::Fail][..], &others].concat());
}

#[test]
fn every_width_that_ran_has_its_plots() {
    let of = |number: usize| {
        [("random", 0.5), ("stay", 0.6)].map(|(policy, speedup)| {
            let mut record = record(number, policy, Terms::Plain, speedup);
            record.run.case.width = WIDE;
            record
        })
    };
    let records: Vec<Record> = (0..3).flat_map(of).collect();
    let judged = Judged { left_out: false, memory_everywhere: false };
    let page = page::page(&evaluate(&records), &records, judged).to_json().unwrap();
    assert!(page.contains("stp-smt8") && page.contains("antt-smt8"), "{page}");
    assert!(!page.contains("stp-smt2") && !page.contains("stp-smt4"));
}

#[test]
fn placing_by_memory_must_pay_only_where_memory_is_on_some_nodes() {
    let verdict = |near: f64, memory_everywhere| {
        let of = |number: usize| {
            [("symbiotic", 0.5), ("symbiotic-numa", near)].map(|(policy, speedup)| {
                let mut record = record(number, policy, Terms::Plain, speedup);
                record.run.case.cores = BOTH_NODES;
                record
            })
        };
        let records: Vec<Record> = (0..5).flat_map(of).collect();
        let judged = Judged { left_out: false, memory_everywhere };
        let checks = checks::checks(&evaluate(&records), judged);
        let last = checks.last().unwrap();
        assert!(last.requirement.starts_with("symbiotic-numa gains"), "{last:?}");
        last.verdict
    };
    assert_eq!([0.6, 0.5].map(|near| verdict(near, false)), [Verdict::Pass, Verdict::Fail]);
    assert_eq!([0.6, 0.5].map(|near| verdict(near, true)), [Verdict::Fail, Verdict::Pass]);
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
            controls: 0,
            wide: (0, Vec::new()),
        },
        seed: 1,
        settings: Settings { slowdowns: Some(slowdowns.clone().into()), ..Settings::default() },
        switches: Switches::default(),
        errors: Errors::default(),
        workers: 2,
    };
    let run = |options: &Options| Campaign::run(&workshop, &profiles, None, options, &mut ());
    let lacking = run(&options(&["random", "symbiotic"])).unwrap_err().to_string();
    assert!(lacking.contains("policy 'symbiotic' cannot run: it needs "), "{lacking}");
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
    assert!(!text.contains("company-smt2"), "symbiotic did not run");
    // All is done: the same comes out.
    assert_eq!(run(&other).unwrap().0, evaluation);
}

/// With two programs for each of two cores all four of the training are left out.
#[test]
fn workloads_that_leave_no_model_are_refused_before_anything_runs() {
    let profiles: BTreeMap<String, Profile> =
        Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap();
    let machine = Description::named("power8-s812l").unwrap();
    let core = Workshop::new(machine.clone().restricted(Some(1), Some(2)).unwrap());
    let site = Simulated::new(&core, &profiles, (Errors::default(), 1, 2)).unwrap();
    let trained = tempfile::tempdir().unwrap();
    let training = training::Options {
        output: trained.path().to_owned(),
        programs: PROGRAMS.map(str::to_owned).to_vec(),
        rulers: Vec::new(),
        stack: Depth::Coarse,
        size: training::Size { quantum: Duration::from_millis(100), quanta: 6, fours: 0 },
        seed: 1,
    };
    let model = training::Campaign::run(&site, &training, &mut ()).unwrap().0.model;
    let kept = LeftOut::read(trained.path(), model.clone(), site.catalogue()).unwrap();
    let models = kept.models().unwrap();
    let workshop = Workshop::new(machine.restricted(Some(2), Some(2)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let run = |cores: usize, policies: [&str; 2]| {
        let options = Options {
            output: folder.path().join(format!("{cores}-{}", policies[1])),
            size: Size {
                widths: vec![2],
                cores: vec![cores],
                workloads: 1,
                repeats: 2,
                alone: Duration::from_millis(500),
                policies: policies.map(str::to_owned).into(),
                controls: 0,
                wide: (0, Vec::new()),
            },
            seed: 1,
            settings: Settings {
                symbiosis: Some(Symbiosis::new(model.clone()).into()),
                ..Settings::default()
            },
            switches: Switches::default(),
            errors: Errors::default(),
            workers: 2,
        };
        Campaign::run(&workshop, &profiles, Some(&models), &options, &mut ())
    };
    let refused = run(2, ["random", "symbiotic"]).unwrap_err().to_string();
    let told =
        "for symbiotic:\n  smt2, 2 cores, the only workload: 0 programs remain, and no group of 2";
    assert!(refused.contains(told), "{refused}");
    assert!(!folder.path().join("2-symbiotic").exists());
    // Who predicts nothing runs them.
    let (evaluation, report) = run(2, ["random", "stay"]).unwrap();
    assert!(report.to_json().unwrap().contains("met by no policy that asks for a model"));
    assert!(evaluation.gains.iter().any(|gain| gain.policy == "stay"));
    // Without two of them, two remain.
    let (_, report) = run(1, ["random", "symbiotic"]).unwrap();
    let text = report.to_json().unwrap();
    assert!(text.contains("of its 4 programs 2 remain"), "{text}");
}

#[test]
fn what_remains_of_a_training_is_told() {
    let counts = |counts: &[usize]| range(counts.iter().copied());
    assert_eq!([counts(&[2, 3, 2]), counts(&[4, 4]), counts(&[])], ["2 to 3", "4", "0"]);
}

/// A model of the fine stack, of programs that were made up.
fn fine() -> Symbiosis {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let components = Components::of(&catalogue, Depth::Fine.sum()).unwrap();
    let law = Coefficients::new(World::law(components.len(), 0.5)).unwrap();
    let world = World::new(8, 2, law, 1);
    let fit = fit(SmtMode::Smt2, &world.observe(&world.all_pairs(), 2, 2)).unwrap();
    let throttling = Throttling { weights: vec![1.1; components.len()], error: 0.0 };
    let trained = Trained { fit, throttling: Some(throttling), scores: Vec::new() };
    Symbiosis::new(Model {
        machine: "made up".to_owned(),
        core: CoreKind::Performance,
        catalogue: catalogue.name().to_owned(),
        components,
        training: Training {
            date: String::new(),
            programs: Vec::new(),
            quantum_ms: 100,
            note: String::new(),
        },
        modes: [(SmtMode::Smt2, trained)].into(),
    })
}

#[test]
fn a_model_of_the_fine_stack_schedules_and_its_controls_run() {
    let profiles: BTreeMap<String, Profile> =
        Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap();
    let machine = Description::named("power8-s812l").unwrap();
    let workshop = Workshop::new(machine.restricted(Some(2), Some(2)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let symbiosis = fine();
    assert_eq!(symbiosis.form, Form::Kernel);
    let options = Options {
        output: folder.path().to_owned(),
        size: Size {
            widths: vec![2],
            cores: vec![2],
            workloads: 1,
            repeats: 2,
            alone: Duration::from_millis(500),
            policies: ["random", "symbiotic"].map(str::to_owned).into(),
            controls: 1,
            wide: (0, Vec::new()),
        },
        seed: 1,
        settings: Settings { symbiosis: Some(symbiosis.into()), ..Settings::default() },
        switches: Switches::default(),
        errors: Errors::default(),
        workers: 2,
    };
    let (evaluation, report) =
        Campaign::run(&workshop, &profiles, None, &options, &mut ()).unwrap();
    let terms: Vec<Terms> = evaluation.controls.iter().map(|control| control.terms).collect();
    let [plain, free, wrong @ ..] = &terms[..] else { panic!("{terms:?}") };
    assert_eq!([*plain, *free], [Terms::Plain, Terms::Free]);
    assert_eq!(wrong, [Terms::Exchanged, Terms::Shuffled, Terms::Private]);
    let [late, reserved] = &evaluation.decisions[..] else { panic!("{evaluation:?}") };
    assert_eq!([late.terms, reserved.terms], [Terms::Late, Terms::Reserved]);
    // Half of the machine is lost for a hundredth of the time, and programs move to and fro.
    assert!(late.over.stp.value.abs() < 0.05, "{late:?}");
    assert!(reserved.over.stp.value < 0.0 && reserved.over.stp.value > -0.2, "{reserved:?}");
    assert!(reserved.over.moves > late.over.moves);
    // Where nobody shares units and caches, nobody gains much by who is beside whom.
    let private = evaluation.controls[4].over.stp.value;
    assert!(private.abs() < 0.1, "{private}");
    let text = report.to_json().unwrap();
    assert!(text.contains("\"id\": \"decisions\""));
    assert!(text.contains("company-smt2-2-0") && text.contains("\"id\": \"controls\""));
    assert_eq!(Campaign::run(&workshop, &profiles, None, &options, &mut ()).unwrap().0, evaluation);
}

#[test]
fn eight_programs_a_core_run_in_smt8_and_in_smt4() {
    let runs = plan(&Size::full());
    let of = |terms: Terms| -> Vec<&Case> {
        let wide = runs.iter().filter(|run| run.case.width == 8 && run.terms == terms);
        wide.map(|run| &run.case).collect()
    };
    assert_eq!((of(Terms::Plain).len(), of(Terms::Plain)), (20, of(Terms::Narrow)));
    // Asked for as a width as well, each run is there once.
    let twice = plan(&Size { widths: vec![8], ..Size::full() });
    assert_eq!(twice.iter().collect::<BTreeSet<_>>().len(), twice.len());

    let profiles: BTreeMap<String, Profile> =
        Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap();
    let machine = Description::named("power8-s812l").unwrap();
    let workshop = Workshop::new(machine.restricted(Some(1), Some(8)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        output: folder.path().to_owned(),
        size: Size {
            widths: Vec::new(),
            cores: Vec::new(),
            workloads: 0,
            repeats: 2,
            alone: Duration::from_millis(500),
            policies: Vec::new(),
            controls: 0,
            wide: (1, vec![1]),
        },
        seed: 1,
        settings: Settings::default(),
        switches: Switches::default(),
        errors: Errors::default(),
        workers: 2,
    };
    let (evaluation, report) =
        Campaign::run(&workshop, &profiles, None, &options, &mut ()).unwrap();
    let [Wide { cores: 1, over }] = &evaluation.wide[..] else { panic!("{evaluation:?}") };
    assert!(over.stp.value.abs() < 1.0 && over.stp.value != 0.0, "{over:?}");
    assert!(evaluation.gains.is_empty() && evaluation.controls.is_empty());
    assert!(report.to_json().unwrap().contains("\"id\": \"smt8\""));
}
