use proptest::prelude::*;

use symbiont_model::{CpiStack, Form, Shares};

use super::*;
use crate::Observed;
use crate::synthetic::World;
use crate::testing::close;

fn terms(delta: f64) -> impl Strategy<Value = Terms> {
    (0.0..0.05_f64, 0.8..1.2_f64, 0.02..0.3_f64, 0.0..1.0_f64).prop_map(
        move |(alpha, beta, gamma, part)| Terms { alpha, beta, gamma, delta: delta * part },
    )
}

fn world(delta: f64) -> impl Strategy<Value = (World, u64)> {
    (prop::collection::vec(terms(delta), 3..7), any::<u64>())
        .prop_map(|(law, seed)| (World::new(8, 3, Coefficients::new(law).unwrap(), seed), seed))
}

fn distance(a: &Coefficients, b: &Coefficients) -> f64 {
    let far = |(a, b): (&Terms, &Terms)| {
        let [a, b] = [a, b].map(|t| [t.alpha, t.beta, t.gamma, t.delta]);
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    a.terms().iter().zip(b.terms()).map(far).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn known_coefficients_are_recovered((world, seed) in world(0.6)) {
        for mode in SmtMode::ALL {
            let groups = world.some_groups(mode.threads(), 30, seed);
            // All eight programs at once differ by phase only: few directions.
            let quanta = if mode == SmtMode::Smt8 { 10 } else { 6 };
            let fitted = fit(mode, &world.observe(&groups, quanta, seed)).unwrap();
            let far = distance(fitted.model.delta(), &world.coefficients);
            prop_assert!(far < 1e-4, "{mode}: {far}");
        }
    }

    #[test]
    fn known_coefficients_without_delta_are_recovered((world, seed) in world(0.0)) {
        let fitted = fit(SmtMode::Smt2, &world.observe(&world.all_pairs(), 6, seed)).unwrap();
        prop_assert!(distance(fitted.model.linear(), &world.coefficients) < 1e-4);
        // Nothing is left for an interaction to explain.
        for form in [Form::Linear, Form::Delta] {
            let pair: Vec<Shares> =
                world.programs.iter().take(2).map(|(_, phases)| phases[0].clone()).collect();
            let truth: f64 = world.truth(&[&pair[0], &pair[1]])[0].iter().sum();
            let got = fitted.model.slowdowns(form, &pair).unwrap()[0];
            prop_assert!((got - truth).abs() < 1e-3, "{form:?}: {got} {truth}");
        }
    }
}

#[test]
fn with_noise_most_coefficients_lie_within_their_intervals() {
    let law = Coefficients::new(World::law(5, 0.4)).unwrap();
    let (mut inside, mut all) = (0, 0);
    for seed in 0..20 {
        let world = World::new(10, 3, law.clone(), seed);
        // Noise on the target only: noisy features bias least squares.
        let mut observations = world.observe(&world.all_pairs(), 8, seed);
        let noisy = World { noise: 0.02, ..world.clone() }.observe(&world.all_pairs(), 8, seed);
        for (exact, noisy) in observations.iter_mut().zip(&noisy) {
            let threads = exact.threads().iter().zip(noisy.threads()).map(|(exact, noisy)| {
                let ratio = exact.alone.cpi() / noisy.alone.cpi();
                let parts = noisy.together.parts().iter().map(|part| part * ratio);
                Observed { together: CpiStack::new(parts.collect()).unwrap(), ..exact.clone() }
            });
            *exact = Observation::new(threads.collect()).unwrap();
        }
        let fitted = fit(SmtMode::Smt2, &observations).unwrap();
        let found = fitted.model.delta().terms().iter().zip(&fitted.delta_errors);
        for ((got, error), want) in found.zip(law.terms()) {
            for (got, error, want) in [
                (got.beta, error.beta, want.beta),
                (got.gamma, error.gamma, want.gamma),
                (got.delta, error.delta, want.delta),
            ] {
                all += 1;
                inside += u32::from((got - want).abs() <= 1.96 * error);
            }
        }
    }
    // 95 % by theory; noise in proportion to the component widens it.
    assert!(f64::from(inside) >= 0.8 * f64::from(all), "{inside} of {all}");
}

#[test]
fn a_training_set_may_be_put_together_from_parts() {
    let law = Coefficients::new(World::law(4, 0.5)).unwrap();
    let world = World { noise: 0.05, ..World::new(6, 2, law, 3) };
    let observations = world.observe(&world.all_pairs(), 5, 4);
    let whole = fit(SmtMode::Smt2, &observations).unwrap();
    let (left, right) = observations.split_at(20);
    let mut moments = Moments::new(4, Weighting::Plain);
    for part in [right, left] {
        let mut sums = Moments::new(4, Weighting::Plain);
        part.iter().for_each(|observation| sums.add(observation));
        moments.merge(&sums);
    }
    let parts = from_moments(&moments).unwrap();
    assert!(distance(parts.model.delta(), whole.model.delta()) < 1e-8);
    assert_eq!(parts.observed, whole.observed);
}

#[test]
fn a_component_that_never_occurs_gets_no_weight() {
    let law = Coefficients::new(World::law(3, 0.3)).unwrap();
    let world = World::new(6, 2, law, 1);
    let widen = |stack: &CpiStack| {
        CpiStack::new(stack.parts().iter().copied().chain([0.0]).collect()).unwrap()
    };
    let observations: Vec<Observation> = (world.observe(&world.all_pairs(), 3, 2).iter())
        .map(|observation| {
            let threads = observation.threads().iter().map(|thread| Observed {
                alone: widen(&thread.alone),
                together: widen(&thread.together),
                ..thread.clone()
            });
            Observation::new(threads.collect()).unwrap()
        })
        .collect();
    let fitted = fit(SmtMode::Smt2, &observations).unwrap();
    let Terms { alpha, beta, gamma, delta } = fitted.model.delta().terms()[3];
    assert!([alpha, beta, gamma, delta].into_iter().all(|value| close(value, 0.0)));
}

#[test]
fn programs_that_are_all_alike_are_fitted_without_panic() {
    let law = Coefficients::new(World::law(4, 0.3)).unwrap();
    let mut world = World::new(3, 1, law, 1);
    let same = world.programs[0].1.clone();
    world.programs.iter_mut().for_each(|(_, phases)| phases.clone_from(&same));
    let fitted = fit(SmtMode::Smt2, &world.observe(&world.all_pairs(), 5, 2)).unwrap();
    let truth: f64 = world.truth(&[&same[0], &same[0]])[0].iter().sum();
    for form in Form::ALL {
        let group = [same[0].clone(), same[0].clone()];
        assert!((fitted.model.slowdowns(form, &group).unwrap()[0] - truth).abs() < 1e-3);
    }
}

#[test]
fn observations_that_do_not_belong_together_are_refused() {
    assert_eq!(fit(SmtMode::Smt2, &[]), Err(FitError::Empty));
    let of = |components: usize, threads: usize| {
        let law = Coefficients::new(World::law(components, 0.3)).unwrap();
        World::new(4, 1, law, 1).observe(&[(0..threads).collect()], 1, 1).remove(0)
    };
    let refused = fit(SmtMode::Smt2, &[of(3, 2), of(4, 2)]);
    assert_eq!(refused, Err(FitError::Components { index: 1, got: 4, want: 3 }));
    let refused = fit(SmtMode::Smt2, &[of(3, 2), of(3, 3)]);
    assert_eq!(refused, Err(FitError::Mode { index: 1, threads: 3, mode: SmtMode::Smt2 }));
    assert!(fit(SmtMode::Smt4, &[of(3, 3), of(3, 4)]).is_ok());
}

#[test]
fn few_that_suffer_much_weigh_less_where_relative_errors_count() {
    let law = Coefficients::new(World::law(4, 0.0)).unwrap();
    let world = World::new(8, 2, law, 3);
    let mut observations = world.observe(&world.all_pairs(), 4, 4);
    // Of one observation everything is four times as slow as the law has it.
    let threads = observations[0].threads().iter().map(|thread| {
        let slower = thread.together.parts().iter().map(|part| 4.0 * part);
        Observed { together: CpiStack::new(slower.collect()).unwrap(), ..thread.clone() }
    });
    observations[0] = Observation::new(threads.collect()).unwrap();
    let off = |weighting| {
        let fitted = fit_weighted(SmtMode::Smt2, &observations, weighting).unwrap().model;
        let errors = observations[1..].iter().flat_map(|observation| {
            let slowdowns = fitted.slowdowns(Form::Linear, &observation.alone()).unwrap();
            let measured = observation.threads().iter().map(Observed::slowdown);
            let errors = slowdowns.into_iter().zip(measured).map(|(got, want)| got / want - 1.0);
            errors.collect::<Vec<_>>()
        });
        errors.map(f64::abs).sum::<f64>()
    };
    assert!(off(Weighting::Relative) < 0.5 * off(Weighting::Plain));
}
