//! Ranges and tick marks of axes.
//!
//! # Properties
//! - The labels of an axis differ, and its ticks reach to less than a step from both ends, whatever the data
//!   (`labels_of_any_axis_differ_and_its_ticks_cover_it`).
//! - Values that differ by rounding alone are not spread over an axis (`rounding_noise_is_not_spread_over_an_axis`).

use super::{Axis, PlotError, Scale};
use crate::number;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis ready to draw: its ends, and its ticks with their labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ruler {
    low: f64,
    high: f64,
    scale: Scale,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Ruler {
    /// A ruler that holds all `values`, and the axis' own range.
    pub(super) fn new(
        axis: &Axis,
        values: impl IntoIterator<Item = f64>,
        most_ticks: usize,
    ) -> Result<Self, PlotError> {
        let scale = axis.scale;
        // On a logarithmic axis the rest is kept at the lower edge.
        let shown = |v: &f64| v.is_finite() && (scale == Scale::Linear || *v > 0.0);
        let values = values.into_iter().filter(shown);
        if let Some((low, high)) = axis.range {
            let ordered = low.is_finite() && high.is_finite() && low < high;
            if !ordered || (scale == Scale::Log && low <= 0.0) {
                return Err(PlotError::Range { label: axis.label.clone(), low, high });
            }
        }
        let (low, high) = extent(scale, values, axis.range);
        let ticks = match scale {
            Scale::Linear => linear_ticks(low, high, most_ticks),
            Scale::Log => log_ticks(low, high, most_ticks),
        };
        Ok(Self { low, high, scale, ticks })
    }

    /// From 0 to 1, without ticks.
    pub(super) fn blank() -> Self {
        Self { low: 0.0, high: 1.0, scale: Scale::Linear, ticks: Vec::new() }
    }

    /// How far along the axis a value lies, from 0 to 1; values outside are
    /// kept at the edge. Absent for a value that is not a number.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let on = |v: f64| if self.scale == Scale::Log { v.max(self.low).log2() } else { v };
        let share = (on(value) - on(self.low)) / (on(self.high) - on(self.low));
        (!value.is_nan()).then(|| share.clamp(0.0, 1.0))
    }
}

impl Ranged for Ruler {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (self.share(*value).unwrap_or(0.0) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let wanted = !hint.weight().allow_light_points();
        self.ticks.iter().map(|tick| tick.0).filter(|_| wanted).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Ruler {
    fn format(value: &f64) -> String {
        number::plain(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.0 == *value);
        tick.map_or_else(|| Self::format(value), |tick| tick.1.clone())
    }
}

/// Values that differ by less than this part of them differ by rounding alone.
const NOISE: f64 = 1e-9;

/// Ends that hold all values, with some air, and the range that is asked for.
fn extent(
    scale: Scale,
    values: impl Iterator<Item = f64>,
    range: Option<(f64, f64)>,
) -> (f64, f64) {
    // Differences of what is left can be seen; the rest is kept at the edge.
    const MOST: f64 = f64::MAX / 8.0;
    let wider = |(l, h): (f64, f64), v: f64| (l.min(v), h.max(v));
    let values = values.map(|v| v.clamp(-MOST, MOST));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), wider);
    let held = |v: f64| range.is_some_and(|(from, to)| from <= v && v <= to);
    let (airy_low, airy_high) = match scale {
        Scale::Log if low > high => range.unwrap_or((1.0, 10.0)),
        Scale::Linear if low > high => range.unwrap_or((0.0, 1.0)),
        Scale::Log => (low / 1.15, high * 1.15),
        Scale::Linear => {
            // Ticks of a narrower span are no normal numbers, and values that are closer differ by rounding.
            let least = (1e12 * f64::MIN_POSITIVE).max(NOISE * low.abs().max(high.abs()));
            let wide = high - low > least;
            let air = if wide { 0.06 * (high - low) } else { 0.5 * high.abs().max(0.1) };
            // Values near zero start there: an axis from 0.02 deceives.
            let from = if low >= 0.0 && low < 0.35 * high { 0.0 } else { low - air };
            (from, high + air)
        }
    };
    match range {
        None => (airy_low, airy_high),
        Some((from, to)) => (
            if held(low) { from } else { from.min(airy_low) },
            if held(high) { to } else { to.max(airy_high) },
        ),
    }
}

/// Multiples of 1, 2 or 5 × 10^k, at most `most` of them.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let least = (high - low) / most.max(1) as f64;
    let power = 10_f64.powi(least.log10().floor() as i32);
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= least).unwrap_or(10.0);
    let step = factor * power;
    let exponent = step.log10().floor() as i32;
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let largest = low.abs().max(high.abs());
    let digits = largest.log10().floor() as i32 - exponent;
    let text = |v: f64| match (1e-6..1e7).contains(&step) {
        true => number::fixed(v, (-exponent).max(0)),
        false => number::significant(v, digits.max(2).unsigned_abs() as usize),
    };
    distinct((first..=last).map(|k| k as f64 * step).map(|v| (v, text(v))))
}

/// Those whose label is not that of the one before: steps of a given range may be too small to differ.
fn distinct(ticks: impl Iterator<Item = (f64, String)>) -> Vec<(f64, String)> {
    let mut ticks: Vec<(f64, String)> = ticks.collect();
    ticks.dedup_by(|one, before| one.1 == before.1);
    ticks
}

/// Powers of two, or of ten where two would give too many and ten two at least; as on a linear axis
/// where there is hardly a power.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<(f64, String)> {
    let doublings = high.log2() - low.log2();
    if doublings < 2.0 {
        return linear_ticks(low, high, most);
    }
    let ends = |base: f64| {
        let of = |value: f64| value.ln() / base.ln();
        ((of(low) - 1e-9).ceil() as i32, (of(high) + 1e-9).floor() as i32)
    };
    let (tens_first, tens_last) = ends(10.0);
    let base = if doublings <= most as f64 || tens_last <= tens_first { 2.0_f64 } else { 10.0 };
    let (first, last) = ends(base);
    let step = 1 + (last - first).max(0) as usize / most.max(1);
    let text = |v: f64| {
        let whole = (1.0..1e7).contains(&v);
        if whole { number::fixed(v, 0) } else { number::plain(v) }
    };
    // By `powf`, as `powi` of a large negative exponent is 0.
    let power = |k: i32| base.powf(f64::from(k));
    distinct((first..=last).step_by(step).map(power).map(|v| (v, text(v))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What is wrong with an axis' ticks, if anything.
    fn fault(ruler: &Ruler) -> Option<&'static str> {
        let labels: BTreeSet<&str> = ruler.ticks.iter().map(|tick| tick.1.as_str()).collect();
        let along: Vec<f64> = ruler.ticks.iter().filter_map(|tick| ruler.share(tick.0)).collect();
        let values: Vec<f64> = ruler.ticks.iter().map(|tick| tick.0).collect();
        let gaps = |of: &[f64]| of.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
        // A logarithmic axis of hardly a power has the ticks of a linear one.
        let reaches = |of: &[f64], (low, high): (f64, f64)| {
            let step = 1.001 * gaps(of).into_iter().fold(0.0, f64::max);
            of.first().is_some_and(|first| first - low <= step)
                && of.last().is_some_and(|last| high - last <= step)
        };
        match () {
            () if labels.len() < ruler.ticks.len() => Some("two ticks have one label"),
            () if along.len() < 2 => Some("there is hardly a tick"),
            () if gaps(&along).iter().any(|gap| *gap <= 0.0) => Some("ticks are not in order"),
            () if !reaches(&along, (0.0, 1.0)) && !reaches(&values, (ruler.low, ruler.high)) => {
                Some("an end is without ticks")
            }
            () => None,
        }
    }

    proptest! {
        #[test]
        fn labels_of_any_axis_differ_and_its_ticks_cover_it(
            size in -1.0..1.0_f64, exponent in -30..30, spreads in prop::collection::vec(-18.0..3.0_f64, 0..4),
            log in any::<bool>(), most in 5..10_usize,
        ) {
            let middle = size * 10_f64.powi(exponent);
            let far = spreads.iter().map(|spread| middle * (1.0 + 10_f64.powf(*spread)));
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis { scale, ..Axis::new("x") };
            let ruler = Ruler::new(&axis, far.chain([middle]), most).unwrap();
            prop_assert_eq!(fault(&ruler), None, "{:?}", ruler);
            prop_assert!(ruler.ticks.len() <= most + 2, "{:?}", ruler);
        }

        #[test]
        fn labels_of_any_given_range_differ_and_its_ticks_cover_it(
            low in -1e6..1e6_f64, part in -12.0..6.0_f64, most in 5..10_usize,
        ) {
            let axis = Axis::new("x").range(low, low + low.abs().max(1.0) * 10_f64.powf(part));
            let ruler = Ruler::new(&axis, [], most).unwrap();
            prop_assert_eq!(fault(&ruler), None, "{:?}", ruler);
        }
    }

    #[test]
    fn rounding_noise_is_not_spread_over_an_axis() {
        let noisy = [1.0, 1.0 + 1.7e-14, 1.0 + 1.6e-14];
        assert_eq!(labels(&Axis::new(""), &noisy), ["0.6", "0.8", "1.0", "1.2", "1.4"]);
        let apart = [1.0, 1.000_01];
        let labels = labels(&Axis::new(""), &apart);
        assert!(labels.contains(&"1.000010".to_owned()), "{labels:?}");
    }

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let ruler = Ruler::new(axis, values.iter().copied(), 6).unwrap();
        ruler.ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            labels(&Axis::new("").range(0.0, 1.0), &[]),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&Axis::new("").range(-30.0, 20.0), &[]),
            ["−30", "−20", "−10", "0", "10", "20"]
        );
        assert_eq!(
            labels(&Axis::new("").log().range(2.0, 64.0), &[]),
            ["2", "4", "8", "16", "32", "64"]
        );
        assert_eq!(
            labels(&Axis::new("").log().range(1.0, 1e4), &[]),
            ["1", "10", "100", "1000", "10\u{a0}000"]
        );
    }

    #[test]
    fn an_axis_with_one_value_or_none_has_a_width() {
        for values in [&[][..], &[3.0], &[0.0], &[-2.0], &[f64::NAN]] {
            let ruler = Ruler::new(&Axis::new("x"), values.iter().copied(), 6).unwrap();
            assert!(ruler.low < ruler.high && !ruler.ticks.is_empty(), "{values:?}: {ruler:?}");
        }
    }

    #[test]
    fn extreme_values_have_few_ticks_too() {
        let tiny = f64::MIN_POSITIVE;
        for values in [[0.0, tiny], [-0.8 * tiny, 0.0], [f64::MAX, f64::MAX], [-f64::MAX, f64::MAX]]
        {
            let ruler = Ruler::new(&Axis::new("x"), values, 6).unwrap();
            assert!(ruler.low < ruler.high, "{values:?}: {ruler:?}");
            assert!((1..=7).contains(&ruler.ticks.len()), "{values:?}: {ruler:?}");
        }
    }

    #[test]
    fn an_interval_below_zero_fits_a_logarithmic_axis() {
        let ruler = Ruler::new(&Axis::new("x").log(), [-10.0, 60.0, 130.0], 6).unwrap();
        assert_eq!((ruler.share(-10.0), ruler.share(f64::INFINITY)), (Some(0.0), Some(1.0)));
        assert!(!ruler.ticks.is_empty());
        assert!(Ruler::new(&Axis::new("x").log(), [-1.0], 6).is_ok());
    }

    #[test]
    fn values_beyond_the_range_widen_it() {
        let ends = |values: &[f64]| {
            let axis = Axis::new("x").range(0.0, 1.0);
            Ruler::new(&axis, values.iter().copied(), 5).unwrap().range()
        };
        assert_eq!(ends(&[0.2, 0.9]), 0.0..1.0);
        assert!(ends(&[0.2, 1.5]).start == 0.0 && ends(&[0.2, 1.5]).end > 1.5);
        assert!(ends(&[-0.2]).start < -0.2);
    }

    #[test]
    fn impossible_axes_are_refused() {
        for axis in [
            Axis::new("x").range(1.0, 1.0),
            Axis::new("x").range(2.0, 1.0),
            Axis::new("x").range(0.0, f64::INFINITY),
            Axis::new("x").log().range(0.0, 1.0),
        ] {
            assert!(matches!(Ruler::new(&axis, [], 5), Err(PlotError::Range { .. })));
        }
    }

    #[test]
    fn values_outside_are_kept_at_the_edge() {
        let ruler = Ruler::new(&Axis::new("x").range(0.0, 1.0), [], 5).unwrap();
        assert_eq!((ruler.share(-1.0), ruler.share(7.0)), (Some(0.0), Some(1.0)));
        assert_eq!(ruler.share(f64::NAN), None);
    }
}
