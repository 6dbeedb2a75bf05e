use super::*;
use proptest::prelude::*;

#[track_caller]
fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "got {got}, want {want} ± {tolerance}");
}

#[test]
fn mean_median_and_deviation_of_a_worked_sample() {
    // Deviations from 5: −3 −1 −1 −1 0 0 2 4, squares sum to 32, 32 / 7.
    let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
    assert_eq!(mean(&values), Some(5.0));
    assert_eq!(median(&values), Some(4.5));
    close(standard_deviation(&values).unwrap(), (32.0_f64 / 7.0).sqrt(), 1e-12);
}

#[test]
fn quantiles_equal_the_printed_table_of_students_t() {
    // Two-sided 95 %, any statistics textbook.
    for (freedom, want) in
        [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (29.0, 2.045), (120.0, 1.980)]
    {
        close(t_quantile(freedom), want, 5e-4);
    }
}

#[test]
fn mean_interval_equals_the_hand_worked_one() {
    // Mean 3, s = √2.5, half width = 2.7764 · √2.5 / √5 = 1.9632.
    let e = mean_estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    assert_eq!((e.value, e.n, e.method), (3.0, 5, Method::StudentT));
    close(e.low().unwrap(), 3.0 - 1.9632, 1e-4);
    close(e.high().unwrap(), 3.0 + 1.9632, 1e-4);
}

#[test]
fn welch_equals_a_hand_worked_example() {
    // Means 3 and 6; squared errors 2.5/5 = 0.5 and 10/5 = 2; degrees of freedom
    // 2.5² / (0.25/4 + 4/4) = 5.882; t = 2.4586; half = 2.4586 · √2.5 = 3.887.
    let e = difference_of_means(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
    assert_eq!((e.value, e.n, e.method), (-3.0, 10, Method::Welch));
    close(e.interval.unwrap().width() / 2.0, 3.887, 2e-3);
}

#[test]
fn one_value_has_no_interval() {
    assert_eq!(mean_estimate(&[7.0]).unwrap().interval, None);
    assert_eq!(difference_of_means(&[7.0], &[1.0, 2.0]).unwrap().interval, None);
    assert_eq!(bootstrap(&[7.0], |v| v[0], 1).unwrap().interval, None);
    assert_eq!(ratio_of_means(&[7.0], &[1.0, 2.0]).unwrap().interval, None);
    assert_eq!(standard_deviation(&[7.0]), None);
}

#[test]
fn no_values_and_values_that_are_not_numbers_are_errors() {
    assert_eq!(mean_estimate(&[]), Err(StatsError::Empty));
    assert_eq!(mean_estimate(&[1.0, f64::NAN]), Err(StatsError::NotFinite { index: 1 }));
    assert_eq!(difference_of_means(&[1.0], &[]), Err(StatsError::Empty));
    assert_eq!(ratio_of_means(&[f64::INFINITY], &[1.0]), Err(StatsError::NotFinite { index: 0 }));
}

#[test]
fn equal_runs_have_an_interval_of_width_zero() {
    assert_eq!(mean_estimate(&[2.0, 2.0, 2.0]).unwrap().interval.unwrap().width(), 0.0);
    let e = difference_of_means(&[2.0, 2.0], &[1.0, 1.0]).unwrap();
    assert_eq!(e.interval, Some(Interval { low: 1.0, high: 1.0 }));
}

#[test]
fn same_seed_gives_the_same_interval() {
    let values = [1.0, 1.1, 1.2, 5.0, 1.3];
    let of = |seed| bootstrap(&values, |v| median(v).unwrap(), seed).unwrap();
    assert_eq!(of(7), of(7));
}

#[test]
fn bootstrap_of_a_mean_is_near_its_exact_distribution() {
    // Two values, 0 and 1: resample means are 0, ½, 1 with ¼, ½, ¼, so the
    // 2.5 % and 97.5 % points are the extremes.
    let e = bootstrap(&[0.0, 1.0], |v| v.iter().sum::<f64>() / v.len() as f64, 3).unwrap();
    assert_eq!(e.interval, Some(Interval { low: 0.0, high: 1.0 }));
}

#[test]
fn a_jackknife_of_means_is_students_and_welchs() {
    let (one, two) = ([1.0, 2.0, 4.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0]);
    let mean_of = |values: &[f64], taken: &[usize]| {
        mean(&taken.iter().map(|at| values[*at]).collect::<Vec<_>>()).unwrap()
    };
    let same = |got: Estimate, want: Estimate| {
        close(got.value, want.value, 1e-12);
        close(got.low().unwrap(), want.low().unwrap(), 1e-9);
        close(got.high().unwrap(), want.high().unwrap(), 1e-9);
        assert_eq!(got.n, want.n);
    };
    let by_jackknife = jackknife(&[5], |taken| mean_of(&one, &taken[0]));
    same(by_jackknife.unwrap(), mean_estimate(&one).unwrap());
    let by_jackknife =
        jackknife(&[5, 4], |taken| mean_of(&one, &taken[0]) - mean_of(&two, &taken[1]));
    same(by_jackknife.unwrap(), difference_of_means(&one, &two).unwrap());
    assert_eq!(jackknife(&[1], |_| 3.0).unwrap().interval, None);
    assert_eq!(jackknife(&[2, 1], |_| 3.0).unwrap().interval, None);
    assert_eq!(jackknife(&[3], |taken| taken[0][0] as f64 / 0.0).unwrap().interval, None);
    assert_eq!(jackknife(&[3, 0], |_| 3.0), Err(StatsError::Empty));
}

/// Ratios of means of five runs each, of which the true one is 1.
#[test]
fn few_runs_are_judged_at_the_stated_level() {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    // About normal: a sum of twelve, with a deviation of 2 %.
    let mut run = || 1.0 + 0.02 * ((0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0);
    let (mut jackknifed, mut bootstrapped) = (0, 0);
    let trials = 1000;
    for trial in 0..trials {
        let pairs: Vec<(f64, f64)> = (0..5).map(|_| (run(), run())).collect();
        let ratio = |taken: &[usize]| {
            let sum =
                |of: fn(&(f64, f64)) -> f64| taken.iter().map(|at| of(&pairs[*at])).sum::<f64>();
            sum(|pair| pair.0) / sum(|pair| pair.1)
        };
        let missed = |estimate: Estimate| u32::from(!estimate.interval.unwrap().contains(1.0));
        jackknifed += missed(jackknife(&[5], |taken| ratio(&taken[0])).unwrap());
        if trial % 10 == 0 {
            bootstrapped += missed(over_rounds(5, 7, ratio).unwrap());
        }
    }
    let share = f64::from(jackknifed) / f64::from(trials);
    assert!((0.03..0.07).contains(&share), "{share}");
    assert!(bootstrapped >= 10, "of a hundred by bootstrap: {bootstrapped}");
}

/// Two columns, of 0 and of 1, in a hundred rows: as above, whatever the number of rows.
#[test]
fn many_rows_of_few_columns_say_little_of_columns() {
    let of = |rows: usize| {
        crossed((rows, 2), 5, |rows, columns| {
            let rows: f64 = rows.iter().sum();
            rows * columns[1] / (rows * columns.iter().sum::<f64>())
        })
    };
    let estimate = of(100).unwrap();
    assert_eq!((estimate.value, estimate.n), (0.5, 100));
    assert_eq!(estimate.interval, Some(Interval { low: 0.0, high: 1.0 }));
    assert_eq!(of(100), of(100));
    // Drawn as if each row had programs of its own, it would have no width.
    let apart = over_rounds(100, 5, |_| 0.5).unwrap();
    assert_eq!(apart.interval.unwrap().width(), 0.0);
    assert_eq!(of(1).unwrap().interval, None);
    assert_eq!(of(0), Err(StatsError::Empty));
    assert_eq!(crossed((2, 2), 1, |_, _| f64::NAN), Err(StatsError::NotFinite { index: 0 }));
}

/// With effects of rows alone it is the bootstrap over rows.
#[test]
fn without_effects_of_columns_rows_decide() {
    let values: Vec<f64> = (0..12).map(|at| f64::from(at * at % 7)).collect();
    let crossed = crossed((12, 5), 3, |rows, columns| {
        let sum: f64 = rows.iter().zip(&values).map(|(weight, value)| weight * value).sum();
        let all: f64 = rows.iter().sum::<f64>() * columns.iter().sum::<f64>();
        sum * columns.iter().sum::<f64>() / all
    });
    let (crossed, rows) = (crossed.unwrap(), bootstrap(&values, |v| mean(v).unwrap(), 3).unwrap());
    close(crossed.value, rows.value, 1e-12);
    let (a, b) = (crossed.interval.unwrap(), rows.interval.unwrap());
    close(a.low, b.low, 0.12 * b.width());
    close(a.high, b.high, 0.12 * b.width());
}

#[test]
fn ratio_of_means_has_the_ratio_inside() {
    let e = ratio_of_means(&[0.6, 0.7, 0.65], &[1.0, 1.02, 0.98]).unwrap();
    close(e.value, 0.65, 1e-12);
    let interval = e.interval.unwrap();
    assert!(interval.contains(0.65) && interval.low > 0.5 && interval.high < 0.8);
}

fn runs() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1e6..1e6_f64, 2..30)
}

proptest! {
    #[test]
    fn interval_contains_the_mean(values in runs()) {
        let e = mean_estimate(&values).unwrap();
        prop_assert!(e.interval.unwrap().contains(e.value));
    }

    #[test]
    fn order_of_the_runs_does_not_matter(
        (values, shuffled) in runs().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle()))
    ) {
        prop_assert_eq!(mean_estimate(&values), mean_estimate(&shuffled));
        prop_assert_eq!(median(&values), median(&shuffled));
        let of = |v: &[f64]| difference_of_means(v, &[1.0, 2.0, 4.0]);
        prop_assert_eq!(of(&values), of(&shuffled));
    }

    #[test]
    fn a_difference_turned_round_changes_sign(a in runs(), b in runs()) {
        let (ab, ba) =
            (difference_of_means(&a, &b).unwrap(), difference_of_means(&b, &a).unwrap());
        prop_assert_eq!(ab.value, -ba.value);
        let (x, y) = (ab.interval.unwrap(), ba.interval.unwrap());
        prop_assert!((x.low + y.high).abs() <= 1e-9 * x.width().max(1.0));
    }
}
