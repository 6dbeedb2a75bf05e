//! What reuse-time distributions promise.

use super::ReuseHistogram;
use crate::ReuseBin;
use proptest::prelude::*;

fn histogram(times: &[u64], cold: u64) -> ReuseHistogram {
    let mut histogram = ReuseHistogram::default();
    for &time in times {
        histogram.add(ReuseBin::of(time), 1);
    }
    histogram.add(ReuseBin::COLD, cold);
    histogram.accesses = histogram.sampled();
    histogram
}

fn any_histogram() -> impl Strategy<Value = ReuseHistogram> {
    let time =
        (0_u32..36, any::<u64>()).prop_map(|(octave, low)| (1 << octave) | (low % (1 << octave)));
    (proptest::collection::vec(time, 1..60), 0_u64..20)
        .prop_map(|(times, cold)| histogram(&times, cold))
}

#[test]
fn one_line_over_and_over_fills_one_line() {
    let curve = histogram(&[1; 10], 0).curve();
    assert_eq!(curve.survival(0.5), 1.0);
    assert_eq!(curve.survival(1.0), 0.0);
    assert_eq!(curve.integral(100.0), 1.0);
    assert_eq!(curve.misses(1.0), 0.0);
}

#[test]
fn a_cyclic_sweep_of_three_lines_thrashes_two_and_fits_three() {
    let curve = histogram(&[3; 10], 0).curve();
    assert_eq!(curve.misses(2.0), 1.0);
    assert_eq!(curve.misses(3.0), 0.0);
    assert_eq!(curve.reach(2.0), 2.0);
}

#[test]
fn a_stream_that_never_returns_always_misses() {
    let curve = histogram(&[], 10).curve();
    assert_eq!(curve.integral(1e6), 1e6);
    assert_eq!(curve.misses(1e6), 1.0);
    assert_eq!(curve.floor(), 1.0);
}

#[test]
fn a_stream_without_accesses_fills_nothing() {
    let curve = ReuseHistogram::default().curve();
    assert_eq!((curve.survival(0.0), curve.integral(1e9), curve.misses(1.0)), (0.0, 0.0, 0.0));
    assert_eq!(curve.reach(1.0), f64::INFINITY);
}

#[test]
fn infinity_can_be_asked_for() {
    let curve = histogram(&[1, 2, 100], 0).curve();
    assert_eq!(curve.survival(f64::INFINITY), 0.0);
    assert!(curve.integral(f64::INFINITY).is_finite());
    assert_eq!(histogram(&[1], 1).curve().integral(f64::INFINITY), f64::INFINITY);
}

proptest! {
    #[test]
    fn survival_falls_from_one_to_the_share_of_cold_accesses(h in any_histogram(), t in 0.0..1e12_f64, d in 0.0..1e9_f64) {
        let curve = h.curve();
        prop_assert!((curve.survival(0.0) - 1.0).abs() < 1e-12);
        prop_assert!(curve.survival(t + d) <= curve.survival(t) + 1e-12);
        prop_assert!((curve.survival(1e15) - h.cold as f64 / h.sampled() as f64).abs() < 1e-12);
    }

    #[test]
    fn the_integral_is_the_mean_of_times_cut_at_t(times in proptest::collection::vec(1_u64..4, 1..50), cold in 0_u64..9, t in 0_u64..6) {
        // Times below 4 have bins of their own, so nothing is rounded.
        let sum: u64 = times.iter().map(|time| time.min(&t)).sum::<u64>() + cold * t;
        let mean = sum as f64 / (times.len() as u64 + cold) as f64;
        prop_assert!((histogram(&times, cold).curve().integral(t as f64) - mean).abs() < 1e-9);
    }

    #[test]
    fn reach_undoes_the_integral(h in any_histogram(), lines in 0.1..1e6_f64) {
        let curve = h.curve();
        let t = curve.reach(lines);
        if t.is_finite() {
            prop_assert!((curve.integral(t) - lines).abs() <= 1e-6 * lines, "{} {}", curve.integral(t), lines);
        } else {
            prop_assert!(curve.integral(1e18) <= lines * (1.0 + 1e-9));
        }
    }

    #[test]
    fn a_larger_cache_never_misses_more(h in any_histogram(), lines in 0.0..1e6_f64, more in 0.0..1e6_f64) {
        let curve = h.curve();
        prop_assert!(curve.misses(lines + more) <= curve.misses(lines) + 1e-9);
    }

    #[test]
    fn merging_adds(a in any_histogram(), b in any_histogram()) {
        let mut sum = a.clone();
        sum.merge(&b);
        prop_assert_eq!(sum.sampled(), a.sampled() + b.sampled());
        prop_assert_eq!(sum.accesses, a.accesses + b.accesses);
        let mut other = b;
        other.merge(&a);
        prop_assert_eq!(sum, other);
    }
}
