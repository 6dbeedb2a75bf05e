use std::collections::BTreeSet;

use super::*;
use symbiont_report::Block;
use symbiont_report::stats::{Estimate, Interval};

#[test]
fn ids_are_unique_and_name_their_paper() {
    let mut ids = BTreeSet::new();
    let reproduced = figures().map(|(_, figure)| (figure.id, figure.paper));
    for (id, paper) in reproduced.chain(ABSENT.iter().map(|absent| (absent.id, absent.paper))) {
        assert!(id.starts_with(paper.name()), "{id}");
        assert!(ids.insert(id), "{id} is there twice");
        assert!(
            id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{id}"
        );
    }
}

/// What a paper prints of a row of the table in docs/results.md.
fn printed(figure: &str, what: &str, at: &str) -> Option<f64> {
    use symbiont_report::published::{feliu, morad, navarro, peternier, settle};
    let said = |said: &[feliu::Statement]| {
        said.iter().find(|statement| statement.place() == at).map(|statement| statement.percent)
    };
    let gain = |gains: &[peternier::Gain]| {
        let gain = gains.iter().find(|gain| gain.programs == at)?;
        if what == "over the OS" { gain.over_os } else { gain.over_suboptimal }
    };
    match figure {
        "feliu-fig5" => {
            let of = feliu::FORWARD.iter().find(|of| format!("SMT{}", of.smt) == at);
            of.map(|of| of.mean_error)
        }
        "feliu-sec63" => said(feliu::STP),
        "feliu-sec64" => said(feliu::ANTT),
        "peternier-fig11" => gain(&peternier::FIGURE_11),
        "peternier-fig12a" => gain(&peternier::FIGURE_12A),
        "peternier-fig12b" => gain(&peternier::FIGURE_12B),
        "peternier-fig13" => gain(&peternier::FIGURE_13),
        "peternier-fig14a" => gain(&peternier::FIGURE_14A),
        "peternier-fig14b" => gain(&peternier::FIGURE_14B),
        "morad-tab5" if what == "throughput" => {
            morad::headline(&format!("mean gain in throughput, synthetic, {at}"))
        }
        "morad-tab5" if at == morad::SYMMETRIC => {
            Some(morad::TABLE_5.improvement.symmetric.fairness)
        }
        "morad-tab5" => Some(morad::TABLE_5.improvement.asymmetric.fairness),
        "navarro-tab1" => {
            let mix = navarro::TABLE_1.iter().find(|mix| mix.name == at)?;
            Some(100.0 * (mix.pinned / mix.linux - 1.0))
        }
        "navarro-fig2" if at == "TopB2M3L" => Some(navarro::GAIN.value),
        "settle-tab2" if at == "all programs" => {
            let mut values = settle::VECTORS.iter().zip(settle::PREDICTABLE);
            values.find(|(of, _)| **of == what).map(|(_, value)| value)
        }
        "settle-tab4" if at == "mean" && what == "IPC" => Some(settle::MEAN.1),
        "settle-tab4" if at == "mean" => Some(settle::MEAN.0),
        "settle-fig8" if at == "mean" && what == "bad" => Some(settle::BAD_DECISIONS),
        _ => None,
    }
}

/// The table in docs/results.md is generated (`scripts/figures.py`) from kept values, which follow this build's
/// figures.
#[test]
fn the_readme_shows_figures_and_published_values_of_this_build() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/figures/figures.json");
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rows = kept["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let [id, what, at] = ["figure", "what", "where"].map(|key| row[key].as_str().unwrap());
        let (_, figure) = figures().find(|(_, figure)| figure.id == id).expect(id);
        assert_eq!(row["title"], figure.title, "{id}: run `make figures`");
        assert_eq!(row["place"], format!("{}, {}", figure.paper.name(), figure.place));
        assert_eq!(row["unit"], figure.unit.unwrap_or_default());
        described(row["machine"].as_str().unwrap()).unwrap();
        let Some(published) = row["published"].as_f64() else {
            assert_eq!((printed(id, what, at), &row["verdict"]), (None, &"".into()), "{id}");
            continue;
        };
        let printed = printed(id, what, at).expect("add it to `printed`");
        assert!((published - printed).abs() < 1e-9, "{id}, {what}, {at}: run `make figures`");
        let [low, high] = [0, 1].map(|end| row["interval"][end].as_f64());
        let verdict = low
            .zip(high)
            .and_then(|(low, high)| Verdict::of(&point(low, high, published), figure.neutral));
        // Controls are kept in words.
        let by_control =
            verdict == Some(Verdict::Agrees) && row["verdict"] == Verdict::ControlGains.name();
        let verdict = if by_control { Some(Verdict::ControlGains) } else { verdict };
        assert_eq!(row["verdict"], verdict.map_or("", Verdict::name), "{id}, {what}, {at}");
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
    assert_eq!(of(1e-12, 2e-12, 5.0), Some(Verdict::NoEffect));
    assert_eq!(of(-0.2, 0.2, 5.0), Some(Verdict::NoEffect));
    assert_eq!(of(-0.2, -0.1, 5.0), Some(Verdict::NoEffect), "not a loss");
    assert_eq!(of(0.1, 0.3, 5.0), Some(Verdict::Agrees), "it may be a part of it");
    assert_eq!(Verdict::of(&Point::new("a", "b", Estimate::exact(1.0)), Some(0.0)), None);
    let exact = Point::new("a", "b", Estimate::exact(1.0)).published(Some(1.0));
    assert_eq!(Verdict::of(&exact, Some(0.0)), None, "without an interval");
    assert_eq!(Verdict::of(&point(1.0, 2.0, 5.0), None), None, "without a direction");
    let foregone = point(1.0, 2.0, 5.0).foregone(true);
    assert_eq!(Verdict::of(&foregone, Some(0.0)), None, "as an oracle gains over a policy");
}

#[test]
fn a_gain_that_its_control_has_too_does_not_agree() {
    let interval = |low, high| Estimate {
        interval: Some(Interval { low, high }),
        ..Estimate::exact(f64::midpoint(low, high))
    };
    let of = |published: f64, control: Estimate| {
        let sign = published.signum();
        let ours = point((2.0 * sign).min(4.0 * sign), (2.0 * sign).max(4.0 * sign), published);
        Verdict::of(&ours.control("signal", Some(control)), Some(0.0)).unwrap()
    };
    for (control, wanted) in [
        (interval(-1.0, 1.0), Verdict::Agrees),
        (interval(-3.0, -2.0), Verdict::Agrees),
        (interval(0.05, 0.1), Verdict::Agrees),
        (interval(0.1, 0.2), Verdict::ControlGains),
        (interval(1.0, 3.0), Verdict::ControlGains),
        (Estimate::exact(0.0), Verdict::ControlGains),
        // One that is so uncertain that it may gain as much says nothing for ours.
        (interval(-4.0, 6.0), Verdict::ControlGains),
        (interval(-9.0, 9.0), Verdict::ControlGains),
        (interval(-9.0, 1.0), Verdict::Agrees),
    ] {
        assert_eq!(of(5.0, control), wanted, "{control:?}");
        let (low, high) = (-control.high().unwrap_or(0.0), -control.low().unwrap_or(0.0));
        let other_way = control.interval.map_or(control, |_| interval(low, high));
        assert_eq!(of(-5.0, other_way), wanted, "{other_way:?}");
    }
    // What points the other way is no gain that a control could explain.
    let wrong = point(-4.0, -2.0, 5.0).control("signal", Some(interval(-3.0, -2.0)));
    assert_eq!(Verdict::of(&wrong, Some(0.0)), Some(Verdict::Contradicts));
}

#[test]
fn a_published_change_within_its_own_error_has_no_direction() {
    let of = |low, high, published: f64, error| {
        let point = point(low, high, published).published_error(error);
        Verdict::of(&point, Some(0.0)).unwrap()
    };
    for sign in [1.0, -1.0] {
        let published = 3.0 * sign;
        assert_eq!(of(1.0, 2.0, published, Some(1.6)), Verdict::Uncertain, "either way");
        assert_eq!(of(-2.0, -1.0, published, Some(1.6)), Verdict::Uncertain, "either way");
        assert_eq!(of(-0.1, 0.1, published, Some(1.6)), Verdict::Uncertain, "without an effect");
        let agrees = (sign.min(2.0 * sign), sign.max(2.0 * sign));
        assert_eq!(of(agrees.0, agrees.1, published, Some(1.4)), Verdict::Agrees);
        assert_eq!(of(-agrees.1, -agrees.0, published, Some(1.4)), Verdict::Contradicts);
        assert_eq!(of(agrees.0, agrees.1, published, None), Verdict::Agrees, "none is printed");
    }
    let unpublished = Point { published: None, ..point(1.0, 2.0, 1.0) }.published_error(Some(1.0));
    assert_eq!(unpublished.published_error, None);
}

#[test]
fn what_is_uncertain_in_the_paper_is_counted_on_its_own_and_shown_with_its_error() {
    let uncertain = point(1.0, 2.0, 1.0).published_error(Some(1.0));
    let figure = with_directions();
    let tally = Tally::of(figure, &[uncertain.clone(), point(1.0, 2.0, 1.0)]);
    assert_eq!(tally, Tally { agree: 1, uncertain: 1, ..Tally::default() });
    let alone = Tally::of(figure, std::slice::from_ref(&uncertain));
    assert_eq!(alone.verdict(), Some(Overall::Undecided));
    let shown = |points: &[Point]| format!("{:?}", page::of_figure(figure, points, Effort::Full));
    let error = "Standard error of published";
    assert!(shown(&[uncertain]).contains(error));
    assert!(!shown(&[point(1.0, 2.0, 1.0)]).contains(error));
}

#[test]
fn the_magnitude_is_in_parts_of_what_was_published() {
    let of = |low, high, published, neutral| {
        let part = magnitude(&point(low, high, published), neutral).unwrap();
        (part.value, part.low().unwrap(), part.high().unwrap())
    };
    assert_eq!(of(5.0, 15.0, 10.0, Some(0.0)), (1.0, 0.5, 1.5));
    assert_eq!(of(-15.0, -5.0, -10.0, Some(0.0)), (1.0, 0.5, 1.5));
    assert_eq!(of(-4.0, -2.0, 10.0, Some(0.0)), (-0.3, -0.4, -0.2));
    assert_eq!(of(1.5, 2.5, 3.0, Some(1.0)), (0.5, 0.25, 0.75), "of a ratio");
    assert_eq!(of(40.0, 60.0, 100.0, None), (0.5, 0.4, 0.6), "without a direction");
    assert_eq!(magnitude(&point(1.0, 2.0, 1.0), Some(1.0)), None, "no effect was published");
}

/// A figure in which values point up or down.
fn with_directions() -> &'static Figure {
    figures().map(|(_, figure)| figure).find(|figure| figure.neutral == Some(0.0)).unwrap()
}

#[test]
fn a_figure_is_mixed_where_points_agree_and_contradict() {
    let of = |points: &[Point]| Tally::of(with_directions(), points).verdict();
    assert_eq!(of(&[]), None);
    let (right, wrong, open) = (point(1.0, 2.0, 1.0), point(1.0, 2.0, -1.0), point(-1.0, 1.0, 1.0));
    assert_eq!(of(&[right.clone(), open.clone()]), Some(Overall::Agrees));
    assert_eq!(of(&[wrong.clone(), open.clone()]), Some(Overall::Contradicts));
    let mixed = [right.clone(), right.clone(), right.clone(), wrong];
    assert_eq!(of(&mixed), Some(Overall::Mixed));
    let control = right.clone().control("signal", right.ours);
    assert_eq!(of(&[open, control.clone()]), Some(Overall::Undecided));
    let scores = scores(&[(with_directions(), mixed.to_vec()), (with_directions(), vec![control])]);
    let score = &scores[&with_directions().paper];
    assert_eq!(score.figures, [(Overall::Mixed, 1), (Overall::Undecided, 1)].into());
    let values = Tally { agree: 3, contradict: 1, control_gains: 1, ..Tally::default() };
    assert_eq!(score.values, values);
}

#[test]
fn a_quick_report_gives_no_verdict() {
    let figures = vec![(with_directions(), vec![point(1.0, 2.0, 1.0)])];
    let said = |effort| {
        let outcome = Outcome { effort, figures: figures.clone(), ..Outcome::default() };
        let context = context(effort);
        let report = page(&outcome, &context);
        format!("{:?}{:?}", summary(&outcome), report.blocks).contains("\"agrees\"")
    };
    assert!(said(Effort::Full));
    assert!(!said(Effort::Quick));
}

#[test]
fn the_score_comes_first_then_what_its_words_say_then_the_facts_folded() {
    let figures = vec![(with_directions(), vec![point(1.0, 2.0, 1.0)])];
    let facts = vec![("Machine".to_owned(), "one".to_owned())];
    let outcome = Outcome { effort: Effort::Full, figures, facts, ..Outcome::default() };
    let report = page(&outcome, &context(Effort::Full));
    let html = report.html().unwrap();
    let parts = ["id=\"papers\"", "twentieth", "id=\"figures\"", "class=\"facts\"", "<dl>", "<h2"];
    let at = parts.map(|part| html.find(part).expect(part));
    assert!(at.is_sorted(), "{at:?}");
    let Block::Prose(legend) = &report.blocks[1] else { panic!("{:?}", report.blocks[1]) };
    let more = ["no effect", "Control gains", "Uncertain in the paper"];
    let words = Overall::ALL.map(Overall::name).into_iter().chain(more);
    let unsaid: Vec<&str> =
        words.filter(|word| !legend.contains(word.trim_end_matches('s'))).collect();
    assert!(unsaid.is_empty(), "{unsaid:?}");
}

#[test]
fn without_profiles_it_says_so_and_how_to_get_them() {
    for effort in [Effort::Quick, Effort::Full] {
        let context = context(effort);
        let sources: [&dyn Source; 3] = [&batch::Batches, &cluster::Queue, &feliu::Halves];
        for source in sources {
            let refused = source.reproduce(&context, &mut ()).unwrap_err().to_string();
            assert!(
                refused.contains("no profiles of programs here"),
                "{}: {refused}",
                source.name()
            );
            assert!(
                refused.contains("--profiles") && refused.contains("symbiont profile"),
                "{refused}"
            );
        }
    }
}

/// Of which nothing is run.
fn context(effort: Effort) -> Context<'static> {
    static LIBRARY: std::sync::LazyLock<Library> = std::sync::LazyLock::new(Library::default);
    Context {
        traces: PathBuf::new(),
        records: PathBuf::new(),
        effort,
        seed: 1,
        workers: 2,
        library: &LIBRARY,
        own: OwnPrograms::default(),
        workload: None,
        pairs: Vec::new(),
        prepare: &|_, _, _| Ok(()),
    }
}

#[test]
fn the_page_shows_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let points = |figure: &Figure| {
        let point = point(1.0, 2.0, 1.5);
        match figure.drawn {
            Drawing::Lines { .. } => {
                vec![point.clone().x(1.0), Point { at: "c".into(), ..point }.x(2.0)]
            }
            _ => vec![point],
        }
    };
    let outcome = Outcome {
        effort: Effort::Full,
        figures: figures().map(|(_, figure)| (figure, points(figure))).collect(),
        uses: Vec::new(),
        facts: Vec::new(),
        lacking: Vec::new(),
    };
    let report = page(&outcome, &context(Effort::Full));
    report.write(folder.path()).unwrap();
    for (_, figure) in figures() {
        let is_own = |block: &&Block| match block {
            Block::Table(table) => table.id == format!("{}-values", figure.id),
            Block::Plot(plot) => plot.id == figure.id,
            _ => false,
        };
        let wanted = if figure.drawn == Drawing::Table { 1 } else { 2 };
        assert_eq!(report.blocks.iter().filter(is_own).count(), wanted, "{}", figure.id);
    }
}
