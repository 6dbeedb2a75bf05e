//! Numbers as text, for tables, axes and captions.
//!
//! Digits follow the interval: its half width is shown with two significant
//! digits if these are at most 35, else with one, and the value to the same
//! place (the rule of the Particle Data Group). Without an interval a value has
//! three significant digits. Whole digits are rounded likewise, and grouped by
//! three from 10 000 on. Very large and very small values are written as
//! `1.23×10⁸`; a minus is `−`.

use std::time::Duration;

use crate::stats::{Estimate, Method};

/// Three significant digits.
#[must_use]
pub fn plain(value: f64) -> String {
    if value.is_finite() && value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return scientific(value, 2);
    }
    fixed(value, decimals(value.abs(), 3))
}

/// As `1.23×10⁸`, with so many digits after the point; 0 is `0`.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() { plain(value) } else { scientific(value, digits) }
}

/// A length of time in the largest unit of which it has one at least, with two significant digits: `1.6 ms`, `20 ms`,
/// `150 s`.
#[must_use]
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    // What is rounded up to the next unit is written in it.
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let unit = units.into_iter().find(|(unit, _)| seconds / unit >= 0.9995);
    let (unit, name) = unit.unwrap_or((1e-9, "ns"));
    let value = seconds / unit;
    let places = decimals(value, 2).max(0);
    let text = fixed(value, places);
    let short = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short} {name}")
}

/// So many of something: `1 core`, `2 cores`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A value with its interval, if it has one: `0.983 [0.979, 0.988]`.
#[must_use]
pub fn estimate(estimate: &Estimate) -> String {
    let value = value(estimate);
    interval(estimate).map_or_else(|| value.clone(), |interval| format!("{value} {interval}"))
}

/// The value alone, with the digits that its interval allows.
#[must_use]
pub fn value(estimate: &Estimate) -> String {
    places(estimate).map_or_else(|| plain(estimate.value), |p| fixed(estimate.value, p))
}

/// The interval alone: `[0.979, 0.988]`.
#[must_use]
pub fn interval(estimate: &Estimate) -> Option<String> {
    let interval = estimate.interval?;
    Some(match places(estimate) {
        Some(p) => format!("[{}, {}]", fixed(interval.low, p), fixed(interval.high, p)),
        None => format!("[{}, {}]", plain(interval.low), plain(interval.high)),
    })
}

/// The interval as `±0.015`, or as its ends where it is not even on both sides.
#[must_use]
pub fn spread(estimate: &Estimate) -> Option<String> {
    spread_to(estimate, places(estimate))
}

/// Value and spread as above, but without digits that do not show next to a figure
/// of this `size`, i.e. beyond its third: an interval of hardly any width would
/// have many.
#[must_use]
pub fn next_to(estimate: &Estimate, size: f64) -> (String, Option<String>) {
    let own = places(estimate).unwrap_or_else(|| decimals(estimate.value.abs(), 3));
    let most = decimals(size, 3);
    if own <= most {
        return (value(estimate), spread(estimate));
    }
    (fixed(estimate.value, most), spread_to(estimate, Some(most)))
}

fn spread_to(estimate: &Estimate, places: Option<i32>) -> Option<String> {
    let ends = estimate.interval?;
    let show = |v: f64| places.map_or_else(|| plain(v), |p| fixed(v, p));
    let (below, above) = (show(estimate.value - ends.low), show(ends.high - estimate.value));
    if below == above {
        return Some(format!("±{above}"));
    }
    Some(format!("[{}, {}]", show(ends.low), show(ends.high)))
}

/// What a caption says of the figures' uncertainty; nothing if none was
/// measured: `95 % intervals by Student's t (n = 5–30).`
#[must_use]
pub fn uncertainty(estimates: impl IntoIterator<Item = Estimate>) -> Option<String> {
    let measured = estimates.into_iter().filter(|e| e.method != Method::Exact);
    let (with, without): (Vec<Estimate>, Vec<Estimate>) =
        measured.partition(|e| e.interval.is_some());
    let methods: Vec<String> = [
        (Method::StudentT, ""),
        (Method::Welch, ", both samples"),
        (Method::Bootstrap, ""),
        (Method::Ratio, ", both samples"),
    ]
    .into_iter()
    .filter_map(|(method, samples)| {
        let n = counts(with.iter().filter(|e| e.method == method))?;
        Some(format!("{} ({n}{samples})", method.name()))
    })
    .collect();
    let mut parts = Vec::new();
    if !methods.is_empty() {
        parts.push(format!("95 % intervals by {}.", methods.join(", ")));
    }
    parts.extend(counts(without.iter()).map(|n| format!("No interval where {n}.")));
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// `n = 5`, or `n = 5–30`, unbroken.
fn counts<'a>(estimates: impl Iterator<Item = &'a Estimate> + Clone) -> Option<String> {
    let least = estimates.clone().map(|e| e.n).min()?;
    let most = estimates.map(|e| e.n).max()?;
    Some(if least == most {
        format!("n\u{a0}=\u{a0}{least}")
    } else {
        format!("n\u{a0}=\u{a0}{least}–{most}")
    })
}

/// A value with a fixed number of decimals and a proper minus sign; `places`
/// below zero round to tens, hundreds and so on.
#[must_use]
pub fn fixed(value: f64, places: i32) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let unit = 10_f64.powi((-places).max(0));
    let decimals = places.max(0).unsigned_abs() as usize;
    let rounded = if places < 0 { (value / unit).round() * unit } else { value };
    let text = format!("{rounded:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| matches!(c, '0' | '.')) => grouped(digits),
        Some(digits) => format!("−{}", grouped(digits)),
        None => grouped(&text),
    }
}

/// Whole digits in groups of three, if there are five or more.
fn grouped(digits: &str) -> String {
    let whole = digits.find('.').unwrap_or(digits.len());
    if whole < 5 {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && i < whole && (whole - i) % 3 == 0 {
            text.push('\u{a0}');
        }
        text.push(c);
    }
    text
}

/// Places for value and interval; absent where fixed digits don't suit.
fn places(estimate: &Estimate) -> Option<i32> {
    let half = estimate.interval?.width() / 2.0;
    let size = estimate.value.abs();
    let fits = half > 0.0 && half.is_finite() && size < 1e7 && (size >= 1e-4 || half >= 1e-4);
    let lead = half / 10_f64.powf(half.log10().floor());
    fits.then(|| decimals(half, if lead < 3.55 { 2 } else { 1 }))
}

/// Places that show `significant` digits of a number of this size.
fn decimals(size: f64, significant: i32) -> i32 {
    if !(size.is_finite() && size > 0.0) {
        return 0;
    }
    let exponent = size.log10().floor() as i32;
    (significant - 1 - exponent).clamp(-6, 6)
}

fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let raised: String = exponent
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
        })
        .collect();
    format!("{}×10{raised}", mantissa.replace('-', "−"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Interval, mean_estimate};

    fn with(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, interval: Some(Interval { low, high }), n: 5, method: Method::StudentT }
    }

    #[test]
    fn times_are_short_in_the_unit_that_suits() {
        let of = |ns| time(Duration::from_nanos(ns));
        assert_eq!(
            [of(0), of(999), of(1_551_000), of(20_000_000)],
            ["0 ns", "999 ns", "1.6 ms", "20 ms"]
        );
        assert_eq!(
            [of(999_999_999), of(30_200_000_000), of(150_000_000_000)],
            ["1 s", "30 s", "150 s"]
        );
    }

    #[test]
    fn one_of_something_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "core")), ["0 cores", "1 core", "2 cores"]);
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(estimate(&with(0.98312, 0.97890, 0.98734)), "0.983 [0.979, 0.987]");
        assert_eq!(estimate(&with(0.98312, 0.94, 1.02)), "0.98 [0.94, 1.02]");
        assert_eq!(estimate(&with(0.5, 0.49, 0.51)), "0.500 [0.490, 0.510]");
        assert_eq!(estimate(&with(123.456, 100.0, 147.0)), "123 [100, 147]");
        assert_eq!(estimate(&with(-0.5, -1.5, 0.5)), "−0.5 [−1.5, 0.5]");
    }

    #[test]
    fn no_interval_shows_three_digits_and_no_zero_width() {
        assert_eq!(estimate(&mean_estimate(&[2.0 / 3.0]).unwrap()), "0.667");
        assert_eq!(plain(1234.5), "1230");
        assert_eq!(plain(1_234_567.0), "1\u{a0}230\u{a0}000");
        assert_eq!(plain(0.0), "0");
        assert_eq!(plain(-0.0), "0");
        assert_eq!(plain(-12.34), "−12.3");
    }

    #[test]
    fn spread_shows_both_ends_where_they_are_uneven() {
        assert_eq!(spread(&with(1.0, 0.9, 1.1)).as_deref(), Some("±0.10"));
        assert_eq!(spread(&with(1.0, 0.9, 1.2)).as_deref(), Some("[0.90, 1.20]"));
        assert_eq!(spread(&Estimate::exact(1.0)), None);
    }

    #[test]
    fn next_to_a_larger_figure_digits_that_do_not_show_are_left_out() {
        let (value, spread) = next_to(&with(0.008_335, 0.008_334_999, 0.008_335_001), 11.6);
        assert_eq!((value.as_str(), spread.as_deref()), ("0.0", Some("±0.0")));
        let (value, spread) = next_to(&with(0.983, 0.978, 0.988), 0.12);
        assert_eq!((value.as_str(), spread.as_deref()), ("0.983", Some("±0.005")));
        assert_eq!(next_to(&with(3.0, -1.0, 11.0), 11.6).1.as_deref(), Some("[−1, 11]"));
        assert_eq!(next_to(&Estimate::exact(0.016_47), 11.6), ("0.0".to_owned(), None));
        assert_eq!(next_to(&Estimate::exact(1.5e9), 2e9), ("1.50×10⁹".to_owned(), None));
    }

    #[test]
    fn whole_digits_are_rounded_and_grouped() {
        let e = with(1_234_000.0, 1_233_093.0, 1_234_907.0);
        assert_eq!(estimate(&e).replace('\u{a0}', "_"), "1_234_000 [1_233_100, 1_234_900]");
        assert_eq!(fixed(10_000.25, 1), "10\u{a0}000.2");
        assert_eq!(fixed(-9_999.6, 0), "−10\u{a0}000");
    }

    #[test]
    fn extreme_values_are_scientific() {
        assert_eq!(plain(123_456_789.0), "1.23×10⁸");
        assert_eq!(plain(-0.000_012_3), "−1.23×10⁻⁵");
        assert_eq!(plain(f64::NAN), "–");
        assert_eq!(estimate(&with(2e9, 1e9, 3e9)), "2.00×10⁹ [1.00×10⁹, 3.00×10⁹]");
    }

    #[test]
    fn equal_runs_show_a_closed_interval() {
        assert_eq!(estimate(&with(1.5, 1.5, 1.5)), "1.50 [1.50, 1.50]");
    }

    #[test]
    fn uncertainty_names_n_and_method() {
        let e = [with(1.0, 0.9, 1.1), Estimate { n: 30, ..with(1.0, 0.9, 1.1) }];
        assert_eq!(
            uncertainty(e).as_deref(),
            Some("95 % intervals by Student's t (n\u{a0}=\u{a0}5–30).")
        );
        assert_eq!(
            uncertainty([mean_estimate(&[1.0]).unwrap()]).as_deref(),
            Some("No interval where n\u{a0}=\u{a0}1.")
        );
        assert_eq!(uncertainty([Estimate::exact(1.0)]), None);
    }
}
