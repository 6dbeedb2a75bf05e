use super::*;
use crate::stats::{Interval, Method};
use proptest::prelude::*;
use resvg::usvg::roxmltree::Document;

/// Any figure, also absurd ones.
fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -2.0..2.0_f64, 1 => any::<f64>(), 1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY)]
}

fn estimate() -> impl Strategy<Value = Estimate> {
    (figure(), prop::option::of((figure(), figure()))).prop_map(|(value, interval)| Estimate {
        value,
        interval: interval.map(|(low, high)| Interval { low, high }),
        n: 5,
        method: Method::StudentT,
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,12}", "\\PC{0,60}", "W{0,120}", Just("\u{1}<&>\"'\u{ffff}".to_owned())]
}

fn axis() -> impl Strategy<Value = Axis> {
    (name(), any::<bool>(), any::<bool>()).prop_map(|(label, log, range)| {
        let axis = Axis::new(label).unit("µs");
        let axis = if range { axis.range(0.5, 1.0) } else { axis };
        if log { axis.log() } else { axis }
    })
}

/// Whether the picture is well-formed and its places lie within it.
fn check(svg: &str) -> Result<(), TestCaseError> {
    let document = Document::parse(svg).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let height: f64 = document.root_element().attribute("height").unwrap_or("").parse().unwrap();
    for node in document.descendants() {
        for (attribute, most) in [
            ("x", 760.0),
            ("x1", 760.0),
            ("x2", 760.0),
            ("cx", 760.0),
            ("y", height),
            ("cy", height),
        ] {
            if let Some(text) = node.attribute(attribute) {
                let place: f64 = text.parse().unwrap();
                prop_assert!((0.0..=most).contains(&place), "{attribute} = {place} of {most}");
            }
        }
        for pair in node.attribute("points").unwrap_or("").split_whitespace() {
            let (x, y) = pair.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            // Caps and marks may reach a few pixels over the axes.
            prop_assert!((-8.0..=768.0).contains(&x) && (-8.0..=height + 8.0).contains(&y));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_dots_are_drawn_within_the_picture(
        (categories, series) in (1..5_usize, 1..9_usize).prop_flat_map(|(rows, series)| (
            prop::collection::vec(name(), rows),
            prop::collection::vec(
                (
                    name(),
                    prop::collection::vec(prop::option::of(estimate()), rows),
                    prop::collection::vec(prop::option::of(figure()), rows),
                ),
                series,
            ),
        )),
        (axis, title, bar) in (axis(), name(), any::<bool>()),
    ) {
        let chart = Dots {
            mark: if bar { Mark::Bar } else { Mark::Dot },
            axis,
            category: "program".into(),
            categories,
            series: series
                .into_iter()
                .map(|(name, values, references)| Series { name, values, references })
                .collect(),
            reference: Some("model".into()),
        };
        check(&Plot::new("p", title, "", Chart::Dots(chart)).draw().unwrap())?;
    }

    #[test]
    fn any_lines_are_drawn_within_the_picture(
        series in prop::collection::vec(
            (
                name(),
                prop::collection::vec((figure(), estimate()), 1..6),
                prop::collection::vec((figure(), figure(), figure()), 0..4),
            ),
            1..5,
        ),
        (x, y, title) in (axis(), axis(), name()),
    ) {
        let series =
            series.into_iter().map(|(name, points, band)| Line { name, points, band }).collect();
        let chart = Chart::Lines(Lines { x, y, series });
        check(&Plot::new("p", title, "", chart).draw().unwrap())?;
    }

    #[test]
    fn any_matrix_is_drawn_within_the_picture(
        (rows, columns, cells) in (1..14_usize, 1..14_usize).prop_flat_map(|(r, c)| (
            prop::collection::vec(name(), r),
            prop::collection::vec(name(), c),
            prop::collection::vec(prop::collection::vec(prop::option::of(estimate()), c), r),
        )),
        (row, column, label) in (name(), name(), name()),
        kind in prop_oneof![Just(Chart::Matrix as fn(_) -> _), Just(Chart::Slowdowns as fn(_) -> _)],
    ) {
        let chart =
            Matrix { row, column, rows, columns, cells, label, unit: None, neutral: 1.0 };
        check(&Plot::new("p", "", "", kind(chart)).draw().unwrap())?;
    }
}
