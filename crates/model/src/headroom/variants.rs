//! What each objective and each form captures of what pairing can gain, on
//! synthetic programs that were left out of training. Prints the table:
//! `cargo test -p symbiont-model headroom_that_sums -- --nocapture`.

use super::headroom;
use crate::synthetic::World;
use crate::testing::best_matching;
use crate::{
    Coefficients, Form, Interference, Inversion, Objective, PairTables, Predictor, SmtMode,
    TrainingSet,
};

const PROGRAMS: usize = 20;
const WORKLOADS: u64 = 30;
const SIZE: usize = 8;

/// Gain over random and gain of the oracle, summed over workloads: single ones
/// may have next to no headroom.
#[derive(Default, Clone, Copy)]
struct Sum {
    gained: f64,
    room: f64,
}

impl Sum {
    fn add(&mut self, tables: &PairTables, predicted: &[Vec<f64>], objective: Objective) {
        let truth = Interference::measured(&tables.measured).unwrap();
        let guess = Interference::measured(predicted).unwrap();
        let found = headroom(&truth, &guess, objective, best_matching).unwrap();
        self.gained += found.achieved - found.random;
        self.room += found.oracle - found.random;
    }

    fn captured(self) -> f64 {
        self.gained / self.room
    }
}

#[test]
fn interaction_and_curvature_capture_headroom_that_sums_do_not() {
    let law = Coefficients::new(World::law(5, 0.6)).unwrap();
    let world = World { noise: 0.03, saturation: 0.4, ..World::new(PROGRAMS, 3, law, 2) };
    let observations = world.observe(&world.all_pairs(), 12, 3);
    let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
    let mut models = [[Sum::default(); 3]; Predictor::ALL.len()];
    let mut errors = vec![crate::Errors::default(); Predictor::ALL.len()];
    for seed in 0..WORKLOADS {
        let workload = world.some_groups(SIZE, 1, seed).remove(0);
        let workload = workload.iter().map(|&at| world.programs[at].0.clone()).collect();
        let fold = set.leave_out(&workload).unwrap();
        for (at, predictor) in Predictor::ALL.into_iter().enumerate() {
            let tables = fold.pairs(predictor).unwrap();
            errors[at].merge(&fold.slowdown[&predictor]);
            for (sum, objective) in models[at].iter_mut().zip(Objective::ALL) {
                sum.add(&tables, &tables.predicted, objective);
            }
        }
    }
    println!("{:<22}{:>8}{:>10}{:>8}{:>8}", "predictor", "error", "slowdown", "stp", "antt");
    for ((predictor, sums), errors) in Predictor::ALL.iter().zip(models).zip(&errors) {
        let [slowdown, stp, antt] = sums.map(Sum::captured);
        let (name, error) = (predictor.name(), errors.mean_absolute().unwrap());
        println!("{name:<22}{error:>8.4}{slowdown:>10.3}{stp:>8.3}{antt:>8.3}");
    }
    let of = |form: Form, objective: Objective| {
        let at = Predictor::ALL.iter().position(|p| *p == Predictor::Model(form)).unwrap();
        models[at][objective as usize].captured()
    };
    assert!(of(Form::Delta, Objective::Stp) > 0.5);
    assert!(of(Form::Delta, Objective::Stp) > of(Form::Linear, Objective::Slowdown) + 0.3);
    assert!(of(Form::Delta, Objective::Stp) > of(Form::Linear, Objective::Stp) + 0.3);
}

/// The published chain: pairs run, their stacks are inverted, and the next
/// pairing is chosen by what that gives.
#[test]
fn inverted_stacks_capture_more_than_merely_normalised_ones() {
    let law = Coefficients::new(World::law(5, 0.6)).unwrap();
    let world = World { noise: 0.01, ..World::new(PROGRAMS, 1, law, 2) };
    let set = world.observe(&world.all_pairs(), 6, 3);
    let model = TrainingSet::new(SmtMode::Smt2, &set).unwrap().fit().unwrap().model;
    let slowdowns = world.pair_slowdowns();
    let mut sums = [Sum::default(); Inversion::ALL.len()];
    for seed in 0..WORKLOADS {
        let workload = world.some_groups(SIZE, 1, seed).remove(0);
        let row =
            |&victim: &usize| workload.iter().map(|&other| slowdowns[victim][other]).collect();
        let measured: Vec<Vec<f64>> = workload.iter().map(row).collect();
        let truth = Interference::measured(&measured).unwrap();
        for (sum, inversion) in sums.iter_mut().zip(Inversion::ALL) {
            let mut stacks = Vec::new();
            for pair in workload.chunks(2) {
                let company = world.observe(&[pair.to_vec()], 1, seed)[0].together();
                let company: Vec<_> = company.iter().collect();
                stacks.extend(model.invert(inversion, &company).unwrap().stacks);
            }
            let guess = Interference::predict(model.form(Form::Delta), &stacks).unwrap();
            let found = headroom(&truth, &guess, Objective::Stp, best_matching).unwrap();
            sum.gained += found.achieved - found.random;
            sum.room += found.oracle - found.random;
        }
    }
    let captured: Vec<f64> = sums.iter().map(|sum| sum.captured()).collect();
    for (inversion, captured) in Inversion::ALL.iter().zip(&captured) {
        println!("{:<14}{captured:>8.3}", inversion.name());
    }
    assert!(captured.iter().all(|captured| *captured > 0.5), "{captured:?}");
    assert!(captured[Inversion::Published as usize] >= captured[0] - 0.01, "{captured:?}");
}
