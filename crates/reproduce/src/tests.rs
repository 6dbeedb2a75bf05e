use std::collections::BTreeSet;

use super::*;
use symbiont_report::Block;
use symbiont_report::stats::{Estimate, Interval};

#[test]
fn ids_are_unique_and_name_their_paper() {
    let mut ids = BTreeSet::new();
    let reproduced = figures().map(|(_, figure)| (figure.id, figure.paper));
    for (id, paper) in reproduced.chain(ABSENT.iter().map(|absent| (absent.id, absent.paper))) {
        assert!(id.starts_with(paper.prefix()), "{id}");
        assert!(ids.insert(id), "{id} is there twice");
        assert!(
            id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{id}"
        );
    }
}

/// What a paper prints of a row of README's table.
fn printed(figure: &str, what: &str, at: &str) -> Option<f64> {
    use symbiont_report::published::{hysched, phases, vectors, workover};
    let said = |said: &[feliu::Said]| said.iter().find(|of| feliu::place(of) == at).map(|of| of.5);
    let gain = |gains: &[workover::Gain]| {
        let gain = gains.iter().find(|gain| gain.programs == at)?;
        if what == "over the OS" { gain.over_os } else { gain.over_suboptimal }
    };
    match figure {
        "feliu-fig5" => feliu::FORWARD.iter().find(|of| of.1 == at).map(|of| of.2),
        "feliu-sec63" => said(feliu::STP),
        "feliu-sec64" => said(feliu::ANTT),
        "peternier-fig11" => gain(&workover::FIGURE_11),
        "peternier-fig12a" => gain(&workover::FIGURE_12A),
        "peternier-fig12b" => gain(&workover::FIGURE_12B),
        "peternier-fig13" => gain(&workover::FIGURE_13),
        "peternier-fig14a" => gain(&workover::FIGURE_14A),
        "peternier-fig14b" => gain(&workover::FIGURE_14B),
        "morad-tab5" if what == "throughput" => {
            phases::headline(&format!("mean gain in throughput, synthetic, {at}"))
        }
        "morad-tab5" if at == phases::SYMMETRIC => {
            Some(phases::TABLE_5.improvement.symmetric.fairness)
        }
        "morad-tab5" => Some(phases::TABLE_5.improvement.asymmetric.fairness),
        "navarro-tab1" => {
            let mix = hysched::TABLE_1.iter().find(|mix| mix.name == at)?;
            Some(100.0 * (mix.pinned / mix.linux - 1.0))
        }
        "navarro-fig2" if at == "TopB2M3L" => Some(hysched::GAIN.value),
        "settle-tab2" if at == "all programs" => {
            let mut values = vectors::VECTORS.iter().zip(vectors::PREDICTABLE);
            values.find(|(of, _)| **of == what).map(|(_, value)| value)
        }
        "settle-tab4" if at == "mean" && what == "IPC" => Some(vectors::MEAN.1),
        "settle-tab4" if at == "mean" => Some(vectors::MEAN.0),
        "settle-fig8" if at == "mean" && what == "bad" => Some(vectors::BAD_DECISIONS),
        _ => None,
    }
}

/// README's table is generated (`scripts/figures.py`) from kept values, which follow this build's figures.
#[test]
fn the_readme_shows_figures_and_published_values_of_this_build() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures/figures.json");
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = kept["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let [id, what, at] = ["figure", "what", "where"].map(|key| row[key].as_str().unwrap());
        let (_, figure) = figures().find(|(_, figure)| figure.id == id).expect(id);
        assert_eq!(row["title"], figure.title, "{id}: run `make figures`");
        assert_eq!(row["place"], format!("{}, {}", figure.paper.prefix(), figure.place));
        assert_eq!(row["unit"], figure.unit.unwrap_or_default());
        described(row["machine"].as_str().unwrap()).unwrap();
        let Some(published) = row["published"].as_f64() else {
            assert_eq!((printed(id, what, at), &row["verdict"]), (None, &"".into()), "{id}");
            continue;
        };
        let printed = printed(id, what, at).expect("add it to `printed`");
        assert!((published - printed).abs() < 1e-9, "{id}, {what}, {at}: run `make figures`");
        let [low, high] = [0, 1].map(|end| row["interval"][end].as_f64());
        let verdict = low.zip(high).and_then(|(low, high)| {
            Verdict::of(&point(low, high, published), figure.neutral).map(Verdict::name)
        });
        assert_eq!(row["verdict"], verdict.unwrap_or_default(), "{id}, {what}, {at}");
    }
    for (id, picture) in kept["pictures"].as_object().unwrap() {
        let (_, figure) = figures().find(|(_, figure)| figure.id == id).expect(id);
        assert_eq!(picture["title"], figure.title, "{id}: run `make figures`");
    }
}

fn point(low: f64, high: f64, published: f64) -> Point {
    let interval = Some(Interval { low, high });
    let ours = Estimate { interval, ..Estimate::exact(f64::midpoint(low, high)) };
    Point::new("a", "b", ours).published(Some(published))
}

#[test]
fn points_agree_by_side() {
    let of = |low, high, published| Verdict::of(&point(low, high, published), Some(0.0));
    assert_eq!(of(1.0, 2.0, 5.0), Some(Verdict::Agrees));
    assert_eq!(of(-2.0, -1.0, -5.0), Some(Verdict::Agrees));
    assert_eq!(of(-2.0, -1.0, 5.0), Some(Verdict::Contradicts));
    assert_eq!(of(1.0, 2.0, -5.0), Some(Verdict::Contradicts));
    assert_eq!(of(-1.0, 2.0, 5.0), Some(Verdict::Undecided));
    assert_eq!(of(1.0, 2.0, 0.0), None, "no direction was published");
    assert_eq!(Verdict::of(&Point::new("a", "b", Estimate::exact(1.0)), Some(0.0)), None);
    let exact = Point::new("a", "b", Estimate::exact(1.0)).published(Some(1.0));
    assert_eq!(Verdict::of(&exact, Some(0.0)), Some(Verdict::Undecided), "without an interval");
    assert_eq!(Verdict::of(&point(1.0, 2.0, 5.0), None), None, "without a direction");
}

#[test]
fn a_figure_has_the_verdict_of_most_of_its_points() {
    let figure = figures().next().unwrap().1;
    let figure = &Figure { neutral: Some(0.0), ..*figure };
    let of = |points: &[Point]| Tally::of(figure, points).verdict();
    assert_eq!(of(&[]), None);
    let (right, wrong, open) = (point(1.0, 2.0, 1.0), point(1.0, 2.0, -1.0), point(-1.0, 1.0, 1.0));
    assert_eq!(of(&[right.clone(), open.clone()]), Some(Verdict::Agrees));
    assert_eq!(of(&[right.clone(), wrong.clone(), wrong]), Some(Verdict::Contradicts));
    assert_eq!(of(&[open]), Some(Verdict::Undecided));
}

#[test]
fn the_page_shows_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let library = Library::default();
    let context = Context {
        traces: Default::default(),
        records: folder.path().join("records"),
        effort: Effort::Quick,
        seed: 1,
        workers: 2,
        library: &library,
        workload: None,
        prepare: &|_, _, _| Ok(()),
    };
    let points = |figure: &Figure| {
        let point = point(1.0, 2.0, 1.5);
        match figure.drawn {
            Drawn::Lines { .. } => {
                vec![point.clone().x(1.0), Point { at: "c".into(), ..point }.x(2.0)]
            }
            _ => vec![point],
        }
    };
    let outcome = Outcome {
        figures: figures().map(|(_, figure)| (figure, points(figure))).collect(),
        facts: Vec::new(),
        lacking: Vec::new(),
    };
    let report = page(&outcome, &context);
    report.write(folder.path()).unwrap();
    for (_, figure) in figures() {
        let is_own = |block: &&Block| match block {
            Block::Table(table) => table.id == format!("{}-values", figure.id),
            Block::Plot(plot) => plot.id == figure.id,
            _ => false,
        };
        let wanted = if figure.drawn == Drawn::Table { 1 } else { 2 };
        assert_eq!(report.blocks.iter().filter(is_own).count(), wanted, "{}", figure.id);
    }
}
