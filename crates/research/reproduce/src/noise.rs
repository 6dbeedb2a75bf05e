//! Values that differ from no change by rounding alone are set to no change, in all figures.
//!
//! What is equal in exact arithmetic, as a program's speed with and without a policy that never touches it, comes out
//! as a gain of 10⁻¹³ % or so. Points are cleaned of that before anything is made of them, so table, plot, files and
//! verdicts agree.
//!
//! # Properties
//! - Noise becomes no change, in plot, table and CSV alike (`noise_is_no_change_in_plot_table_and_csv`), and has no
//!   direction (`noise_has_no_direction`).
//! - What is larger is not changed (`larger_values_stay`).

use symbiont_report::stats::{Estimate, Interval};

use super::figure::{Control, Figure, Point};

/// In parts of the figure's largest value: what is closer to no change differs from it by rounding.
const NOISE: f64 = 1e-9;

/// The points without rounding noise.
pub(super) fn cleaned(figure: &Figure, points: Vec<Point>) -> Vec<Point> {
    let neutral = figure.neutral.unwrap_or(0.0);
    let least = NOISE * scale(figure, &points);
    let value = |value: f64| if (value - neutral).abs() < least { neutral } else { value };
    let estimate = |it: Estimate| {
        let ends = |it: Interval| Interval { low: value(it.low), high: value(it.high) };
        Estimate { value: value(it.value), interval: it.interval.map(ends), ..it }
    };
    let control = |it: Control| Control { ours: estimate(it.ours), ..it };
    let point = |it: Point| Point {
        ours: it.ours.map(estimate),
        controls: it.controls.into_iter().map(control).collect(),
        ..it
    };
    points.into_iter().map(point).collect()
}

/// The largest value of a figure. Percentages are made of ratios, which are rounded next to 1.
fn scale(figure: &Figure, points: &[Point]) -> f64 {
    let of = |point: &Point| {
        let ours = point.ours.map(|it| it.value);
        [ours, point.published].into_iter().flatten().map(f64::abs).fold(0.0, f64::max)
    };
    let least = if figure.unit == Some("%") { 100.0 } else { 0.0 };
    points.iter().map(of).filter(|size| size.is_finite()).fold(least, f64::max)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;
    use symbiont_report::Report;
    use symbiont_report::stats::Method;

    use super::*;
    use crate::page::of_figure;
    use crate::{Effort, Verdict, figures};

    fn figure(id: &str) -> &'static Figure {
        figures().map(|(_, figure)| figure).find(|figure| figure.id == id).unwrap()
    }

    fn point(value: f64, (low, high): (f64, f64)) -> Point {
        let interval = Some(Interval { low, high });
        Point::new("1:∞", "1:1", Estimate { value, interval, n: 3, method: Method::Bootstrap })
    }

    #[test]
    fn noise_is_no_change_in_plot_table_and_csv() {
        for (id, neutral) in [("morad-fig8", 0.0), ("morad-fig7", 1.0)] {
            let noisy = neutral + 5.55e-13;
            let noise = point(noisy, (noisy, noisy + 1e-14)).x(2.0);
            let points = cleaned(
                figure(id),
                vec![noise.clone(), Point { at: "2:1".into(), ..noise.x(4.0) }],
            );
            let mut report = Report::new("", "");
            report.blocks = of_figure(figure(id), &points, Effort::Full);
            let folder = tempfile::tempdir().unwrap();
            let written = report.write(folder.path()).unwrap().files;
            let ends = [".html", ".svg", "-values.csv", ".csv", "report.json"];
            for end in ends {
                let of_end = |path: &&PathBuf| path.to_string_lossy().ends_with(end);
                let path = written.iter().find(of_end).expect(end);
                let text = std::fs::read_to_string(path).unwrap();
                let text = text.split("<main>").last().unwrap();
                let noise =
                    ["0000005", "5.55", "e-1", "⁻"].into_iter().find(|it| text.contains(it));
                assert_eq!(noise, None, "{id}, {}: {text}", path.display());
            }
        }
    }

    #[test]
    fn noise_has_no_direction() {
        let of = |points| cleaned(figure("morad-fig8"), points);
        let noise = || point(1.9, (4.4e-14, 3.5)).published(Some(3.0));
        let verdict = |point: &Point| Verdict::of(point, Some(0.0));
        assert_eq!(verdict(&noise()), Some(Verdict::Agrees));
        assert_eq!(verdict(&of(vec![noise()])[0]), Some(Verdict::Undecided));
    }

    proptest! {
        #[test]
        fn larger_values_stay(values in prop::collection::vec(-50.0..50.0_f64, 1..9)) {
            let points: Vec<Point> = values.iter().filter(|value| value.abs() > 1e-6)
                .map(|value| point(*value, (value - 1.0, value + 1.0)).published(Some(3.0)))
                .collect();
            prop_assert_eq!(cleaned(figure("morad-fig8"), points.clone()), points);
        }
    }
}
