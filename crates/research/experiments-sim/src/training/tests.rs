use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use symbiont_model::{Depth, Here, Model, SmtMode};
use symbiont_profile::{Profile, Span};
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::Errors;
use symbiont_training::{Observation, Observed, Weighting};

use super::plan::unjudged;
use super::simulated::{Simulated, machine_name};
use super::*;
use crate::Library;
use symbiont_campaign::{Error, Progress};

const PROGRAMS: [&str; 4] =
    ["synthetic-branchy", "synthetic-float", "synthetic-integer", "synthetic-streaming"];

fn profiles() -> BTreeMap<String, Profile> {
    Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap()
}

/// Programs that change between the phases of two others, and run on long after what was
/// recorded of them.
fn changing() -> BTreeMap<String, Profile> {
    const PAIRS: [(&str, &str); 4] = [
        ("synthetic-streaming", "synthetic-integer"),
        ("synthetic-chasing", "synthetic-float"),
        ("synthetic-branchy", "synthetic-streaming"),
        ("synthetic-float", "synthetic-branchy"),
    ];
    let library = Library::open(Path::new("/nonexistent")).unwrap();
    let of = |(one, other): (&str, &str)| {
        let mut both = library.load_all([one, other]).unwrap();
        let (mut profile, other) = (both.remove(one).unwrap(), both.remove(other).unwrap());
        profile.program = format!("{}-and-{}", profile.program, other.program);
        profile.phases.extend(other.phases);
        // Short against a quantum, within which all instructions have the same speed.
        let cycle = [0, 1, 0, 0, 1, 1].map(|phase| Span { phase, instructions: 5_000_000 });
        profile.threads[0].sequence = cycle.to_vec();
        (profile.program.clone(), profile)
    };
    PAIRS.map(of).into()
}

fn builder<'p>() -> TableBuilder<'p> {
    let machine = Description::named("power8-s812l").unwrap();
    TableBuilder::new(machine.restricted(Some(1), Some(2)).unwrap())
}

fn options(folder: &Path) -> TrainingOptions {
    let size = TrainingSize { quantum: Duration::from_millis(100), quanta: 6, fours: 0 };
    let programs = PROGRAMS.map(str::to_owned).to_vec();
    let output = folder.to_owned();
    TrainingOptions {
        output,
        programs,
        stack: Depth::Coarse,
        weighting: Weighting::Plain,
        size,
        seed: 1,
    }
}

#[test]
fn each_pair_is_planned_once() {
    let programs = ["a", "b", "c", "d", "e"].map(str::to_owned);
    let size = TrainingSize { fours: 12, ..TrainingSize::default() };
    let runs = plan(&programs, &size, 3);
    assert_eq!(runs, plan(&programs, &size, 3));
    assert_ne!(runs, plan(&programs, &size, 4));
    let of = |threads: usize| runs.iter().filter(move |run| run.threads() == threads);
    assert_eq!((of(1).count(), of(2).count(), of(4).count()), (3 * 5, 15, 12));
    let mut pairs: Vec<&TrainingRun> = of(2).collect();
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 15);
    let part = |program: &String| {
        let among = |run: &TrainingRun| match run {
            TrainingRun::Together(all) if all.len() == 4 => {
                all.iter().filter(|one| *one == program).count()
            }
            _ => 0,
        };
        runs.iter().map(among).sum::<usize>()
    };
    // 9.6 each on average; groups that were drawn before are left out unevenly.
    let parts = programs.each_ref().map(part);
    assert!(parts.iter().all(|part| (7..=12).contains(part)), "{parts:?}");
}

#[test]
fn groups_that_cannot_be_judged_are_known_beforehand() {
    let programs: Vec<String> = "abcdefgh".chars().map(String::from).collect();
    let unjudged = |programs: &[String], fours| {
        let size = TrainingSize { fours, ..TrainingSize::default() };
        unjudged(&plan(programs, &size, 3), &size)
    };
    // The first two groups of four are of eight programs.
    assert_eq!(unjudged(&programs, 2), None);
    assert_eq!(unjudged(&programs, 1), Some(4), "there is no other group");
    assert_eq!(unjudged(&programs[..4], 9), Some(4), "each group is of all programs");
    assert_eq!(unjudged(&programs[..4], 0), None);
}

#[test]
fn too_few_programs_are_refused_before_anything_runs() {
    let (profiles, builder) = (profiles(), builder());
    let site = Simulated::new(&builder, &profiles, (Errors::NONE, 1, 2)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("training");
    let size = TrainingSize { fours: 3, ..options(&output).size };
    let refused = train(&site, &TrainingOptions { size, ..options(&output) }, &mut ());
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("groups of 4: 4 programs are too few"), "{refused}");
    assert!(!output.exists());
}

/// Stops after some runs.
struct Impatient(usize);

impl Progress for Impatient {
    fn begin(&mut self, _: usize, _: Option<usize>, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
    fn note(&mut self, _: &str) {}
    fn cancelled(&self) -> bool {
        self.0 == 0
    }
}

/// Stops once nothing is left to run.
#[derive(Default)]
struct WhenFitting(bool);

impl Progress for WhenFitting {
    fn begin(&mut self, _: usize, _: Option<usize>, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {}
    fn note(&mut self, text: &str) {
        self.0 |= text.contains("fitting");
    }
    fn cancelled(&self) -> bool {
        self.0
    }
}

/// A run alone and a co-run are runs of the same program: the same instructions are in the same phases, past
/// the end of what was recorded too. So no program gains from a co-run, with and without errors of counters.
#[test]
fn programs_that_change_their_phases_are_set_against_themselves() {
    let (profiles, builder) = (changing(), builder());
    for errors in [Errors::NONE, Errors::default()] {
        let folder = tempfile::tempdir().unwrap();
        let site = Simulated::new(&builder, &profiles, (errors, 1, 2)).unwrap();
        let programs = profiles.keys().cloned().collect();
        let size = TrainingSize { quanta: 12, ..options(folder.path()).size };
        let options = TrainingOptions { programs, size, ..options(folder.path()) };
        let (evaluated, _) = train(&site, &options, &mut ()).unwrap();
        let observations = &evaluated.modes[&SmtMode::Smt2].observations;
        let slowdowns = observations.iter().flat_map(Observation::threads).map(Observed::slowdown);
        let least = slowdowns.fold(f64::MAX, f64::min);
        assert!(least > 0.9, "{errors:?}: {least}");
    }
}

/// Co-running with no-operations a program is hardly slower than with the core set up for as many threads.
#[test]
fn what_no_operations_cost_is_measured_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut profiles = profiles();
    profiles.insert(simulated::NOPS.to_owned(), simulated::nops());
    let builder = builder();
    let site = Simulated::new(&builder, &profiles, (Errors::NONE, 1, 2)).unwrap();
    let size = TrainingSize { quanta: 3, ..options(folder.path()).size };
    let options = TrainingOptions { size, ..options(folder.path()) };
    let (evaluated, report) = train(&site, &options, &mut ()).unwrap();
    let nops = &evaluated.modes[&SmtMode::Smt2].nops;
    assert_eq!(nops.len(), PROGRAMS.len());
    let slowdowns = evaluated.slowdowns.slowdowns().iter().flatten();
    let worst = slowdowns.copied().fold(f64::MIN, f64::max) - 1.0;
    for cost in nops {
        assert!(*cost > -0.02 && *cost < worst, "{nops:?} {worst}");
    }
    assert!(report.to_json().unwrap().contains("no-operations in the other places cost it"));
}

#[test]
fn a_search_is_given_what_it_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (profiles, builder) = (profiles(), builder());
    let site = Simulated::new(&builder, &profiles, (Errors::NONE, 1, 2)).unwrap();
    let options = options(folder.path());
    let group = |names: [&str; 2]| names.map(|name| format!("synthetic-{name}")).to_vec();
    let (first, second) = (group(["float", "integer"]), group(["float", "streaming"]));
    // The second after the first, and both for ever.
    let next = |known: &Throughputs| match known.contains_key(&first) {
        false => BTreeSet::from([first.clone()]),
        true => BTreeSet::from([first.clone(), second.clone()]),
    };
    let found = explore(&site, &options, &next, &mut ()).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), [&first, &second]);
    assert!(found.values().all(|stp| *stp > 0.5 && *stp < 2.0), "{found:?}");
}

#[test]
fn workloads_of_pairs_ask_for_no_groups_of_four() {
    let (names, training) = (synthetic::names(6), |fours| synthetic::training(6, fours, 1));
    let of_pairs = training(0);
    let models = of_pairs.models().unwrap();
    assert_eq!(
        [1, 2, 4, 8].map(|width| models.can_do_without(&names[..2], width)),
        [true, true, false, false]
    );
    let of_fours = training(9);
    let models = of_fours.models().unwrap();
    assert_eq!(models.groups_without(&[], 4), 9);
    // Of two others there is a pair, and no group of four.
    assert!(models.can_do_without(&names[..4], 2) && !models.can_do_without(&names[..4], 4));
    let widths =
        |width| models.without(&names[..1], width).unwrap().modes.keys().copied().collect();
    let [two, four]: [Vec<SmtMode>; 2] = [2, 4].map(widths);
    assert_eq!((&two[..], &four[..]), (&SmtMode::ALL[..1], &SmtMode::ALL[..2]));
}

fn models_without_some_programs_are_fitted_on_the_others(
    options: &TrainingOptions,
    trained: &TrainingResult,
    site: &dyn Site,
) {
    let model = &trained.model;
    let runs = observe(site, options, &mut ()).unwrap();
    let left_out = LeftOut::new(site, options, &runs).unwrap();
    assert_eq!(left_out.slowdowns, trained.slowdowns);
    let models = left_out.models().unwrap();
    let all = models.without(&[], 2).unwrap();
    for (mode, trained) in &model.modes {
        assert_eq!(all.modes[mode].fit, trained.fit);
        assert_eq!(all.modes[mode].throttling, trained.throttling);
    }
    let some = models.without(&["synthetic-float".to_owned()], 2).unwrap();
    assert_eq!(some.training.programs.len(), PROGRAMS.len() - 1);
    let mode = &SmtMode::Smt2;
    assert!(some.modes[mode].fit.observed < all.modes[mode].fit.observed);
    assert_ne!(some.modes[mode].throttling, all.modes[mode].throttling);
    assert_eq!(models.without(&["synthetic-float".to_owned()], 2).unwrap(), some);
    let none = models.without(&PROGRAMS.map(str::to_owned), 2);
    assert!(matches!(none, Err(Error::Evaluation(_))));
    assert!(!models.can_do_without(&PROGRAMS.map(str::to_owned), 2));
    assert!(models.can_do_without(&["synthetic-float".to_owned()], 2));
}

#[test]
fn training_gives_a_model_that_fits_and_goes_on_where_it_stopped() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (profiles, builder) = (profiles(), builder());
    let site = Simulated::new(&builder, &profiles, (Errors::default(), 1, 2)).unwrap();
    let (evaluated, report) = train(&site, &options(folder.path()), &mut ()).unwrap();

    // The model fits this machine, simulated, and no other.
    let sorts = [site.core()];
    let here = |machine| Here { machine, sorts: &sorts, catalogue: site.catalogue() };
    let file = folder.path().join("model.toml");
    let name = machine_name(builder.description());
    assert_eq!(Model::load(&file, &here(&name)).unwrap(), evaluated.model);
    let refused = Model::load(&file, &here("power8-s812l")).unwrap_err().to_string();
    assert!(refused.contains("trained on 'power8-s812l (simulated)'"), "{refused}");
    assert!(report.facts.iter().any(|(_, value)| value.starts_with("simulated:")));

    let slowdowns = &evaluated.slowdowns;
    assert!(slowdowns.slowdowns().iter().flatten().all(|s| *s > 0.9), "{slowdowns:?}");

    // Interrupted, it goes on, and comes to the same.
    let interrupted = train(&site, &options(other.path()), &mut Impatient(3));
    assert!(matches!(interrupted, Err(Error::Cancelled)));
    let lines =
        || std::fs::read_to_string(other.path().join("training.jsonl")).unwrap().lines().count();
    let before = lines();
    assert!((1..18).contains(&before), "{before}");
    let stopped = train(&site, &options(other.path()), &mut WhenFitting::default());
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(lines() == 8 + 10 && !other.path().join("model.toml").exists());
    let (again, _) = train(&site, &options(other.path()), &mut ()).unwrap();
    assert_eq!(lines(), 8 + 10);
    assert_eq!(again.model.modes, evaluated.model.modes);
    assert_eq!(&again.slowdowns, slowdowns);

    models_without_some_programs_are_fitted_on_the_others(
        &options(folder.path()),
        &evaluated,
        &site,
    );
    // Other conditions: all of it runs again, and what was kept is used again when it fits.
    let site = Simulated::new(&builder, &profiles, (Errors::default(), 2, 2)).unwrap();
    let (changed, _) = train(&site, &options(other.path()), &mut ()).unwrap();
    assert_eq!(lines(), 2 * (8 + 10));
    assert_ne!(changed.model.modes, evaluated.model.modes);
}
