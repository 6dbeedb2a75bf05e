use proptest::prelude::*;

use super::*;
use crate::LEAST_SLOWDOWN;

fn shares(m: usize) -> impl Strategy<Value = Shares> {
    prop::collection::vec(0.02..1.0_f64, m).prop_map(|parts| Shares::new(parts).unwrap())
}

/// Coefficients whose eigenvalues are far from 0.
fn coefficients(m: usize, delta: f64) -> impl Strategy<Value = Coefficients> {
    let terms = (0.0..0.05_f64, 0.8..1.3_f64, 0.0..0.3_f64, 0.0..1.0_f64).prop_map(
        move |(alpha, beta, gamma, part)| Terms { alpha, beta, gamma, delta: delta * part },
    );
    prop::collection::vec(terms, m).prop_map(|terms| Coefficients::new(terms).unwrap())
}

/// The group as it would be measured with co-runners.
fn together(coefficients: &Coefficients, group: &[Shares]) -> (Vec<Shares>, Vec<f64>) {
    let group: Vec<&Shares> = group.iter().collect();
    let predictions = coefficients.forward(&group).unwrap();
    predictions.into_iter().map(|p| (Shares::new(p.parts).unwrap(), p.slowdown)).unzip()
}

fn distance(a: &[Shares], b: &[Shares]) -> f64 {
    let pairs = a.iter().zip(b).flat_map(|(a, b)| a.parts().iter().zip(b.parts()));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn round_trip(method: Inversion, coefficients: &Coefficients, alone: &[Shares]) -> (f64, f64) {
    let (co_running, slowdowns) = together(coefficients, alone);
    let co_running: Vec<&Shares> = co_running.iter().collect();
    let inverted = invert(method, coefficients, &co_running).unwrap();
    let errors = inverted.slowdowns.iter().zip(&slowdowns).map(|(a, b)| (a - b).abs());
    (distance(&inverted.stacks, alone), errors.fold(0.0, f64::max))
}

proptest! {
    /// Section 3.3: when all components grow alike, the first estimate is right.
    #[test]
    fn the_published_inverse_is_exact_where_all_components_grow_alike(
        beta in 0.9..1.5_f64,
        alone in prop::collection::vec(shares(5), 2..9),
    ) {
        let terms = Terms { beta, ..Terms::default() };
        let c = Coefficients::new(vec![terms; 5]).unwrap();
        let (stacks, slowdowns) = round_trip(Inversion::Published, &c, &alone);
        prop_assert!(stacks < 1e-12 && slowdowns < 1e-12);
    }

    #[test]
    fn the_published_inverse_is_nearer_than_the_co_running_stack_on_average(
        c in coefficients(5, 0.0),
        groups in prop::collection::vec(prop::collection::vec(shares(5), 2), 40),
    ) {
        let mean = |method| {
            let far = groups.iter().map(|alone| round_trip(method, &c, alone).0);
            far.sum::<f64>() / groups.len() as f64
        };
        prop_assert!(mean(Inversion::Published) <= mean(Inversion::Normalised) + 1e-3);
    }

    #[test]
    fn whatever_the_coefficients_the_result_is_a_stack(
        n in 1..9_usize,
        terms in prop::collection::vec(prop::array::uniform4(-3.0..3.0_f64), 5),
        stacks in prop::collection::vec(shares(5), 8),
    ) {
        let terms = terms.iter().map(|&[alpha, beta, gamma, delta]| {
            Terms { alpha, beta, gamma, delta }
        });
        let full = Coefficients::new(terms.collect()).unwrap();
        let linear = full.terms().iter().map(|t| Terms { delta: 0.0, ..*t }).collect();
        let linear = Coefficients::new(linear).unwrap();
        let group: Vec<&Shares> = stacks.iter().take(n).collect();
        for method in Inversion::ALL {
            let inverted = invert(method, &linear, &group).unwrap();
            prop_assert_eq!(inverted.stacks.len(), n);
            for stack in &inverted.stacks {
                prop_assert!(stack.parts().iter().all(|p| (0.0..=1.0 + 1e-9).contains(p)));
                prop_assert!((stack.parts().iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
            prop_assert!(inverted.slowdowns.iter().all(|s| *s >= LEAST_SLOWDOWN));
        }
    }
}

#[test]
fn where_threads_cannot_be_distinguished_the_first_estimate_decides() {
    let terms = Terms { beta: 0.6, gamma: 0.6, ..Terms::default() };
    for least in [ZERO, LEAST_EIGENVALUE] {
        let mut regularised = 0;
        let got = solve(&terms, (&[0.66, 0.54], &[0.7, 0.4]), least, &mut regularised);
        assert_eq!(regularised, 1);
        // The mean is what the equations say, the difference what it was.
        assert!((got[0] + got[1] - 1.0).abs() < 1e-12);
        assert!((got[0] - got[1] - 0.3).abs() < 1e-12);
    }
}

#[test]
fn small_eigenvalues_are_regularised_or_solved_exactly() {
    let terms = Terms { beta: 0.55, gamma: 0.5, ..Terms::default() };
    let apart = |least| {
        let got = solve(&terms, (&[0.66, 0.6], &[0.6, 0.5]), least, &mut 0);
        got[0] - got[1]
    };
    assert!((apart(ZERO) - 0.06 / 0.05).abs() < 1e-9);
    // x + e (z - e x) / T².
    assert!((apart(LEAST_EIGENVALUE) - (0.1 + 5.0 * (0.06 - 0.005))).abs() < 1e-9);
}

#[test]
fn regularisation_sets_in_without_a_jump() {
    let at = |apart: f64| {
        let terms = Terms { beta: 0.5 + apart, gamma: 0.5, ..Terms::default() };
        solve(&terms, (&[0.6, 0.5], &[0.6, 0.5]), LEAST_EIGENVALUE, &mut 0)[0]
    };
    assert!((at(LEAST_EIGENVALUE - 1e-9) - at(LEAST_EIGENVALUE + 1e-9)).abs() < 1e-6);
}

#[test]
fn negative_components_are_set_to_zero_and_counted() {
    let terms = Terms { alpha: 0.3, beta: 1.0, gamma: 0.1, delta: 0.0 };
    let c = Coefficients::new(vec![terms; 2]).unwrap();
    let stacks = [Shares::new(vec![0.99, 0.01]).unwrap(), Shares::new(vec![0.5, 0.5]).unwrap()];
    let group: Vec<&Shares> = stacks.iter().collect();
    let inverted = invert(Inversion::Published, &c, &group).unwrap();
    assert_eq!((inverted.clamped, inverted.unsolved), (1, 0));
    assert_eq!(inverted.stacks[0].parts(), [1.0, 0.0]);
}

#[test]
fn a_thread_alone_is_its_own_throttled_stack() {
    let c = Coefficients::new(vec![Terms { alpha: 0.1, ..Terms::default() }; 2]).unwrap();
    let alone = Shares::new(vec![0.3, 0.7]).unwrap();
    for method in Inversion::ALL {
        let inverted = invert(method, &c, &[&alone]).unwrap();
        assert_eq!((inverted.stacks, inverted.slowdowns), (vec![alone.clone()], vec![1.0]));
    }
}

#[test]
fn a_stack_of_another_length_is_refused() {
    let c = Coefficients::new(vec![Terms::default(); 2]).unwrap();
    let three = Shares::new(vec![1.0; 3]).unwrap();
    for method in Inversion::ALL {
        let refused = invert(method, &c, &[&three, &three]);
        assert_eq!(refused, Err(StackError::Length { got: 3, want: 2 }));
    }
}
