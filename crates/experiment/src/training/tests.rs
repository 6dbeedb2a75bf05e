use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use symbiont_model::{Form, Here, Model, Observation, Observed, SmtMode};
use symbiont_profile::Profile;
use symbiont_sim::description::Description;
use symbiont_sim::fast::Workshop;
use symbiont_sim::machine::Errors;

use super::simulated::{Simulated, machine_name};
use super::*;
use crate::harness::{Error, Progress};
use crate::simulated::Library;

const PROGRAMS: [&str; 4] =
    ["synthetic-branchy", "synthetic-float", "synthetic-integer", "synthetic-streaming"];

fn profiles() -> BTreeMap<String, Profile> {
    Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap()
}

fn workshop<'p>() -> Workshop<'p> {
    let machine = Description::named("power8-s812l").unwrap();
    Workshop::new(machine.restricted(Some(1), Some(2)).unwrap())
}

fn options(folder: &Path) -> Options {
    let size = Size { quantum: Duration::from_millis(100), quanta: 6, fours: 0 };
    let programs = PROGRAMS.map(str::to_owned).to_vec();
    Options { output: folder.to_owned(), programs, size, seed: 1 }
}

#[test]
fn each_pair_is_planned_once() {
    let programs = ["a", "b", "c", "d", "e"].map(str::to_owned);
    let size = Size { fours: 12, ..Size::default() };
    let runs = plan(&programs, &size, 3);
    assert_eq!(runs, plan(&programs, &size, 3));
    assert_ne!(runs, plan(&programs, &size, 4));
    let of = |threads: usize| runs.iter().filter(move |run| run.threads() == threads);
    assert_eq!((of(1).count(), of(2).count(), of(4).count()), (3 * 5, 15, 12));
    let mut pairs: Vec<&Run> = of(2).collect();
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 15);
    let part = |program: &String| {
        let among = |run: &Run| match run {
            Run::Together(all) if all.len() == 4 => {
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

/// Stops after some runs.
struct Impatient(usize);

impl Progress for Impatient {
    fn begin(&mut self, _: usize, _: usize, _: Duration) {}
    fn running(&mut self, _: &str) {}
    fn done(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
    fn note(&mut self, _: &str) {}
    fn cancelled(&self) -> bool {
        self.0 == 0
    }
}

#[test]
fn training_gives_a_model_that_fits_and_goes_on_where_it_stopped() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (profiles, workshop) = (profiles(), workshop());
    let site = Simulated::new(&workshop, &profiles, (Errors::default(), 1, 2)).unwrap();
    let (evaluated, report) = Campaign::run(&site, &options(folder.path()), &mut ()).unwrap();

    // The model fits this machine, simulated, and no other.
    let here = |machine| Here { machine, core: site.core(), catalogue: site.catalogue() };
    let file = folder.path().join("model.toml");
    let name = machine_name(workshop.description());
    assert_eq!(Model::load(&file, &here(&name)).unwrap(), evaluated.model);
    let refused = Model::load(&file, &here("power8-s812l")).unwrap_err().to_string();
    assert!(refused.contains("trained on 'power8-s812l (simulated)'"), "{refused}");
    assert!(report.facts.iter().any(|(_, value)| value.starts_with("simulated:")));

    // Of what it was trained on, it knows more than the mean slowdown tells. (Of programs
    // that were left out it need not: there are four.)
    let observations = &evaluated.modes[&SmtMode::Smt2].observations;
    let fitted = &evaluated.model.modes[&SmtMode::Smt2].fit.model;
    let threads = observations.iter().flat_map(Observation::threads);
    let measured: Vec<f64> = threads.map(Observed::slowdown).collect();
    let mean = measured.iter().sum::<f64>() / measured.len() as f64;
    let predict = |group: &Observation| fitted.slowdowns(Form::Delta, &group.alone()).unwrap();
    let predicted = observations.iter().flat_map(predict);
    let squares: f64 = predicted.zip(&measured).map(|(p, m)| (p - m).powi(2)).sum();
    let spread: f64 = measured.iter().map(|m| (mean - m).powi(2)).sum();
    assert!(squares < spread, "{squares} of {spread}");
    let slowdowns = &evaluated.slowdowns;
    assert!(slowdowns.slowdowns().iter().flatten().all(|s| *s > 0.9), "{slowdowns:?}");

    // Interrupted, it goes on, and comes to the same.
    let interrupted = Campaign::run(&site, &options(other.path()), &mut Impatient(3));
    assert!(matches!(interrupted, Err(Error::Cancelled)));
    let lines =
        || std::fs::read_to_string(other.path().join("runs.jsonl")).unwrap().lines().count();
    let before = lines();
    assert!((1..18).contains(&before), "{before}");
    let (again, _) = Campaign::run(&site, &options(other.path()), &mut ()).unwrap();
    assert_eq!(lines(), 8 + 10);
    assert_eq!(again.model.modes, evaluated.model.modes);
    assert_eq!(&again.slowdowns, slowdowns);
    let changed = Options { seed: 2, ..options(other.path()) };
    assert!(matches!(Campaign::run(&site, &changed, &mut ()), Err(Error::OtherCampaign { .. })));
}
