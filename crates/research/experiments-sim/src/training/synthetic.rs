//! A training of synthetic programs, for tests of models without some of them.

use symbiont_counters::catalogue::Catalogue;
use symbiont_model::{Coefficients, Components, Depth, Model, Shares, SmtMode, Training};
use symbiont_policy::PairSlowdowns;
use symbiont_topology::CoreKind;
use symbiont_training::synthetic::World;

use super::left_out::{LeftOut, Observed};
use super::plan::{TrainingRun, TrainingSize, plan};

/// A training of so many programs, planned as any other; a quantum of each group.
pub fn training(programs: usize, fours: usize, seed: u64) -> LeftOut {
    let catalogue = Catalogue::named("power8").unwrap().unwrap();
    let components = Components::of(&catalogue, Depth::Coarse.sum()).unwrap();
    let names = names(programs);
    let size = TrainingSize { fours, ..TrainingSize::default() };
    let law = Coefficients::new(World::law(components.len(), 0.5)).unwrap();
    let world = World::new(programs, 1, law, seed);
    let place = |name: &String| names.binary_search(name).unwrap();
    let runs = plan(&names, &size, seed);
    let observed = |width: usize| {
        let groups: Vec<Vec<usize>> = (runs.iter())
            .filter_map(|run| match run {
                TrainingRun::Together(all) if all.len() == width => {
                    Some(all.iter().map(place).collect())
                }
                _ => None,
            })
            .collect();
        let alone = |at: usize| Shares::new(vec![0.1 + at as f64; components.len()]).unwrap();
        let ratios = names.iter().enumerate().map(|(at, name)| (name.clone(), alone(at), 1.1));
        Observed {
            mode: SmtMode::of(width).unwrap(),
            observations: world.observe(&groups, 1, seed),
            ratios: ratios.collect(),
        }
    };
    let slowdowns = vec![vec![1.0; programs]; programs];
    LeftOut {
        weighting: symbiont_training::Weighting::Plain,
        slowdowns: PairSlowdowns::new("made up".to_owned(), names.clone(), slowdowns).unwrap(),
        modes: size.widths().into_iter().map(observed).collect(),
        model: Model {
            machine: "made up".to_owned(),
            core: CoreKind::Performance,
            catalogue: catalogue.name().to_owned(),
            components,
            training: Training {
                date: String::new(),
                programs: names,
                quantum_ms: 100,
                note: String::new(),
            },
            modes: [].into(),
        },
    }
}

/// Their names, in order.
pub fn names(programs: usize) -> Vec<String> {
    (0..programs).map(|at| format!("program-{at:02}")).collect()
}
