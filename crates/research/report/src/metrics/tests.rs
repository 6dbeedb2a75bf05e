use super::*;
use proptest::prelude::*;

#[test]
fn fairness_is_the_least_ratio_of_speedups() {
    assert_eq!(fairness(&[0.5, 1.0]), Some(0.5));
    assert_eq!(fairness(&[0.8, 0.8]), Some(1.0));
    assert_eq!(fairness(&[0.9, 0.3, 0.6]), Some(0.3 / 0.9));
    assert_eq!(fairness(&[0.0, 0.6]), Some(0.0));
    assert_eq!(fairness(&[]), None);
    assert_eq!(fairness(&[0.0, 0.0]), None);
    assert_eq!(fairness(&[0.5, f64::INFINITY]), None);
}

#[test]
fn jitter_equals_the_hand_worked_one() {
    // Mean 10; normalised deviations −0.1, 0, 0.1; √(0.02 / 3).
    let got = jitter(&[9.0, 10.0, 11.0]).unwrap();
    assert!((got - (0.02_f64 / 3.0).sqrt()).abs() < 1e-12);
    assert_eq!(jitter(&[4.0, 4.0]), Some(0.0));
    assert_eq!(jitter(&[4.0]), None);
    assert_eq!(jitter(&[4.0, -1.0]), None);
}

#[test]
fn stp_antt_and_throughput_equal_the_hand_worked_ones() {
    assert_eq!(stp(&[0.5, 1.0]), Some(1.5));
    assert_eq!(antt(&[0.5, 1.0]), Some(1.5));
    assert_eq!(antt(&[0.25, 1.0]), Some(2.5));
    assert_eq!(antt(&[0.0, 1.0]), None);
    assert_eq!(throughput(&[3.0, 4.0]), Some(7.0));
    assert_eq!(throughput(&[]), None);
}

fn speedups() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.01..2.0_f64, 1..9)
}

proptest! {
    #[test]
    fn fairness_lies_in_zero_to_one_and_is_symmetric(
        (given, shuffled) in speedups().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle()))
    ) {
        let got = fairness(&given).unwrap();
        prop_assert!((0.0..=1.0).contains(&got));
        prop_assert_eq!(Some(got), fairness(&shuffled));
    }

    #[test]
    fn jitter_is_free_of_scale(
        times in prop::collection::vec(0.1..100.0_f64, 2..20), scale in 0.001..1000.0_f64
    ) {
        let scaled: Vec<f64> = times.iter().map(|t| t * scale).collect();
        let (a, b) = (jitter(&times).unwrap(), jitter(&scaled).unwrap());
        prop_assert!((a - b).abs() <= 1e-9 * a.max(1e-3));
    }

    #[test]
    fn stp_and_antt_keep_their_bound(given in speedups()) {
        let n = given.len() as f64;
        prop_assert!(stp(&given).unwrap() * antt(&given).unwrap() >= n * (1.0 - 1e-12));
    }
}
