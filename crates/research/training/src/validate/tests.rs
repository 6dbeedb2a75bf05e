use symbiont_model::{Coefficients, CpiStack, Form};

use super::*;
use crate::synthetic::World;
use crate::testing::close;
use crate::{Observed, Weighting};

fn world(noise: f64) -> World {
    let law = Coefficients::new(World::law(5, 0.5)).unwrap();
    World { noise, ..World::new(8, 3, law, 11) }
}

fn validate(world: &World, holdout: Holdout) -> Validation {
    let observations = world.observe(&world.all_pairs(), 6, 12);
    TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain)
        .unwrap()
        .cross_validate(holdout)
        .unwrap()
}

fn error(validation: &Validation, predictor: Predictor) -> f64 {
    validation.slowdown(predictor).mean_absolute().unwrap()
}

#[test]
fn without_noise_there_is_no_error() {
    for holdout in [Holdout::Programs, Holdout::Combinations] {
        let validation = validate(&world(0.0), holdout);
        assert!(error(&validation, Predictor::Model(Form::Delta)) < 1e-6);
        assert!(error(&validation, Predictor::Model(Form::Linear)) > 1e-3);
        assert_eq!(validation.slowdown(Predictor::Constant).count(), 28 * 6 * 2);
    }
}

#[test]
fn leave_two_out_has_a_fold_for_each_pair_and_leave_four_out_for_each_four() {
    let world = world(0.02);
    assert_eq!(validate(&world, Holdout::Programs).folds.len(), 28);
    let fours = vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![0, 2, 4, 6]];
    let observations = world.observe(&fours, 5, 1);
    let set = TrainingSet::new(SmtMode::Smt4, &observations, Weighting::Plain).unwrap();
    let validation = set.cross_validate(Holdout::Programs).unwrap();
    // Without 0, 2, 4 and 6 no group is left to fit on.
    assert_eq!((validation.folds.len(), validation.without_training), (2, 1));
}

/// A program that behaves like no other is only wrong where it takes part.
#[test]
fn a_fold_knows_nothing_of_its_programs() {
    let world = world(0.0);
    let odd = |observation: &Observation| {
        let threads = observation.threads().iter().map(|thread| {
            let factor = if &*thread.program == "program-03" { 3.0 } else { 1.0 };
            let parts = thread.together.parts().iter().map(|part| part * factor).collect();
            Observed { together: CpiStack::new(parts).unwrap(), ..thread.clone() }
        });
        Observation::new(threads.collect()).unwrap()
    };
    let observations: Vec<Observation> =
        world.observe(&world.all_pairs(), 4, 5).iter().map(odd).collect();
    let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
    let validation = set.cross_validate(Holdout::Programs).unwrap();
    for fold in validation.folds.iter().filter(|fold| fold.programs.contains("program-03")) {
        let errors = &fold.slowdown[&Predictor::Model(Form::Delta)];
        // Trained on the others alone, it is right about them and about a
        // third of what the odd one does.
        let expected = (0.0 + 2.0 / 3.0) / 2.0;
        assert!((errors.mean_absolute().unwrap() - expected).abs() < 1e-4);
    }
}

#[test]
fn the_model_beats_both_baselines_on_programs_left_out() {
    let validation = validate(&world(0.02), Holdout::Programs);
    let model = error(&validation, Predictor::Model(Form::Delta));
    for baseline in [Predictor::Constant, Predictor::VictimPlusAggressor] {
        assert!(model < error(&validation, baseline), "{baseline:?}");
    }
}

#[test]
fn the_victim_plus_aggressor_baseline_is_exact_where_programs_are_known_and_additive() {
    let law = Coefficients::new(World::law(5, 0.0)).unwrap();
    let world = World::new(8, 1, law, 11);
    let error = |holdout| error(&validate(&world, holdout), Predictor::VictimPlusAggressor);
    let (unknown, known) = (error(Holdout::Programs), error(Holdout::Combinations));
    assert!(known < 1e-4 && unknown > 1e-2, "{known} {unknown}");
}

#[test]
fn inverted_stacks_are_nearer_than_merely_normalised_ones() {
    let validation = validate(&world(0.01), Holdout::Programs);
    let largest = validation.largest_component();
    let error = |inversion| validation.component(inversion, largest).mean_absolute().unwrap();
    assert!(error(Inversion::Published) < error(Inversion::Normalised));
}

#[test]
fn a_fold_of_a_workload_has_the_mean_slowdowns_of_its_pairs() {
    let world = World::new(7, 1, world(0.0).coefficients, 3);
    let observations = world.observe(&world.all_pairs(), 2, 4);
    let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
    let workload = set.programs().into_iter().take(4).collect();
    let fold = set.leave_out(&workload).unwrap();
    let tables = fold.pairs(Predictor::Model(Form::Delta)).unwrap();
    assert_eq!(tables.programs.len(), 4);
    let truth = world.pair_slowdowns();
    for (victim, other) in [(0, 1), (3, 0), (2, 3)] {
        assert!(close(tables.measured[victim][other], truth[victim][other]));
    }
    assert_eq!(tables.measured[2][2], 1.0);
    let known = set.keep_in(&workload).unwrap();
    // What ran side by side is inverted, and nothing else.
    let stacks = known.inverted(Inversion::Published, &[1, 0, 3, 2]).unwrap();
    for pair in [[0, 1], [2, 3]] {
        let together = world.observe(&[pair.to_vec()], 1, 4)[0].together();
        let inverted = known.model.invert(Inversion::Published, &[&together[0], &together[1]]);
        for (at, want) in pair.into_iter().zip(inverted.unwrap().stacks) {
            let far = stacks[at].parts().iter().zip(want.parts()).map(|(a, b)| (a - b).abs());
            assert!(far.fold(0.0, f64::max) < 1e-9);
        }
    }
    assert_eq!(known.inverted(Inversion::Published, &[0, 0, 3, 2]), None);
    let knowing = known.pairs(Predictor::Model(Form::Delta)).unwrap();
    assert_eq!(knowing.measured, tables.measured);
}

#[test]
fn too_few_programs_are_refused() {
    let observations = world(0.0).observe(&[vec![0, 1], vec![1, 2]], 3, 1);
    let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
    let refused = set.cross_validate(Holdout::Programs);
    assert_eq!(refused, Err(ValidationError::TooFew { programs: 3 }));
    assert_eq!(set.leave_out(&set.programs()), Err(ValidationError::TooFew { programs: 3 }));
    assert_eq!(set.fit_without(&set.programs()), Err(FitError::Empty));
    let last: BTreeSet<Arc<str>> = ["program-02".into()].into();
    assert_eq!(
        [&set.programs(), &last, &BTreeSet::new()].map(|p| set.groups_without(p)),
        [0, 1, 2]
    );
    assert_eq!(
        TrainingSet::new(SmtMode::Smt2, &[], Weighting::Plain).unwrap_err(),
        FitError::Empty
    );
}

#[test]
fn a_program_with_itself_is_left_out_alone() {
    let world = world(0.0);
    let mut groups = world.all_pairs();
    groups.push(vec![2, 2]);
    let observations = world.observe(&groups, 4, 5);
    let set = TrainingSet::new(SmtMode::Smt2, &observations, Weighting::Plain).unwrap();
    let validation = set.cross_validate(Holdout::Programs).unwrap();
    assert_eq!(validation.folds.len(), 29);
    let fold = set.leave_out(&["program-02".into(), "program-03".into()].into()).unwrap();
    assert!(fold.pairs(Predictor::Constant).unwrap().measured[0][0] > 1.0);
}
