//! A machine with two core types that run two threads each: a model of either, and both at work.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use symbiont_model::{Depth, Model, Problem};
use symbiont_policy::{Models, Settings};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::Errors;
use symbiont_topology::CoreKind;
use symbiont_training::Weighting;

use super::simulated::{Simulated, catalogue, machine_name};
use super::{TrainingOptions, TrainingSize, train};
use crate::{Library, Setup, Workload, simulate};

const PROGRAMS: [&str; 4] =
    ["synthetic-branchy", "synthetic-float", "synthetic-integer", "synthetic-streaming"];
const SORTS: [CoreKind; 2] = [CoreKind::Performance, CoreKind::Efficiency];

fn profiles() -> BTreeMap<String, Profile> {
    Library::open(Path::new("/nonexistent")).unwrap().load_all(PROGRAMS).unwrap()
}

/// Two cores of the POWER8, and two with a quarter of its reorder buffer at half of its clock.
fn hybrid() -> Description {
    let (_, text) =
        Description::builtin().iter().find(|(name, _)| *name == "power8-s812l").unwrap();
    let (before, rest) = text.split_once("[core.performance]").unwrap();
    let (core, after) = rest.split_once("[memory]").unwrap();
    let (introduction, _) = before.split_once("topology =").unwrap();
    let small =
        format!("[core.efficiency]{}", core.replace("[core.performance", "[core.efficiency"))
            .replacen("ghz = { value = 3.0", "ghz = { value = 1.5", 1)
            .replacen("entries = 224", "entries = 56", 1);
    let topology = "node:1 core:2 smt:2 cache:8M memory:16G | \
                    node:1 core:2 smt:2 kind:efficiency capacity:500 cache:8M memory:16G";
    let text = format!(
        "{introduction}topology = \"{topology}\"\n\n[core.performance]{core}{small}[memory]{after}"
    );
    Description::parse("hybrid.toml", &text).unwrap()
}

fn trained(sort: CoreKind, profiles: &BTreeMap<String, Profile>) -> Model {
    let machine = hybrid().of_type(sort).unwrap().restricted(Some(1), None).unwrap();
    let builder = TableBuilder::new(machine);
    let site = Simulated::new(&builder, profiles, (Errors::default(), 1, 2)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = TrainingOptions {
        output: folder.path().to_owned(),
        programs: PROGRAMS.map(str::to_owned).to_vec(),
        stack: Depth::Coarse,
        weighting: Weighting::Plain,
        size: TrainingSize { quantum: Duration::from_millis(100), quanta: 6, fours: 0 },
        seed: 1,
    };
    train(&site, &options, &mut ()).unwrap().0.model
}

#[test]
fn each_core_type_is_trained_and_scheduled_by_its_own_model() {
    let profiles = profiles();
    let models = SORTS.map(|sort| trained(sort, &profiles));
    assert_eq!(models.each_ref().map(|model| model.core), SORTS);
    assert_ne!(models[0].modes, models[1].modes);
    let machine = hybrid();
    let (name, catalogue) = (machine_name(&machine), catalogue(&machine).unwrap());
    let here = |sorts| symbiont_model::Here { machine: &name, sorts, catalogue: &catalogue };
    assert!(models.iter().all(|model| model.fits(&here(&SORTS)).is_ok()));
    let refused = models[1].fits(&here(&SORTS[..1]));
    assert!(matches!(refused, Err(Problem::Core { found: CoreKind::Efficiency, .. })));

    // Four programs that stream and four that compute, which random placement mixes badly.
    let list = ["synthetic-streaming"; 4].into_iter().chain(["synthetic-integer"; 4]);
    let workload = Workload::from_list(&list.collect::<Vec<_>>().join(",")).unwrap();
    let tables = TableBuilder::new(machine);
    let run = |policy: &str, models: Option<Models>| {
        let setup = Setup {
            policy: policy.to_owned(),
            settings: Settings { models: models.map(Arc::new), ..Settings::default() },
            alone: Duration::from_secs(2),
            repeats: 2,
            ..Setup::default()
        };
        let mut timeline = Vec::new();
        let (source, mut go_on) = (|_: &str| String::new(), |_| ControlFlow::Continue(()));
        let (to, setup): (Option<&mut dyn Write>, _) = (Some(&mut timeline), &setup);
        let outcome =
            simulate(&tables, &workload, &profiles, setup, &source, &mut go_on, to).unwrap();
        assert_eq!(outcome.unfinished, 0);
        let text = String::from_utf8(timeline).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Quantum>>()
    };
    let [first, small] = models;
    let both = Models { first, others: vec![small] };
    let (random, chosen) = (run("random", None), run("symbiotic-online", Some(both)));
    // No thread changes over to the other core type.
    let on_fast = |quantum: &Quantum| -> BTreeSet<usize> {
        let fast = quantum.threads.iter().filter(|thread| thread.cpu.is_some_and(|cpu| cpu < 4));
        fast.map(|thread| thread.slot).collect()
    };
    assert!(chosen.windows(2).all(|two| on_fast(&two[0]) == on_fast(&two[1])));
    let (random, chosen) = (unlike(&random), unlike(&chosen));
    assert!(
        chosen > 0.9 && random < 0.8,
        "unlike pairs: {chosen}; {random} at random, 2/3 expected"
    );
}

/// A line of a timeline.
#[derive(Deserialize)]
struct Quantum {
    threads: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    slot: usize,
    cpu: Option<u32>,
}

/// Share of unlike pairs where either program is on two of a sort's four hardware threads.
fn unlike(timeline: &[Quantum]) -> f64 {
    let (mut unlike, mut all) = (0, 0);
    for Quantum { threads } in timeline {
        let kind = |cpu: u32| Some(threads.iter().find(|thread| thread.cpu == Some(cpu))?.slot / 4);
        for [a, b, c, d] in [[0, 1, 2, 3], [4, 5, 6, 7]].map(|cpus| cpus.map(kind)) {
            if [a, b, c, d].into_iter().flatten().sum::<usize>() == 2 {
                unlike += usize::from(a != b) + usize::from(c != d);
                all += 2;
            }
        }
    }
    assert!(all > 0);
    unlike as f64 / f64::from(all)
}
