//! From figures to a report.

use super::figure::{Control, Drawing, Figure, Point};
use super::verdict::{Overall, Tally, Verdict, magnitude, scores};
use super::{ABSENT, Context, Effort, Outcome, own};
use symbiont_report::number;
use symbiont_report::stats::Estimate;
use symbiont_report::{
    Axis, Block, Cell, Chart, Column, Dots, Highlight, Line, Lines, Mark, Matrix, Plot, Report,
    Series, Table, Value,
};

/// The report: the score and what its words say, an index, what all rests on, then each figure.
#[must_use]
pub fn page(outcome: &Outcome, context: &Context<'_>) -> Report {
    let mut report = Report::new(
        "Published figures next to ours",
        "Each with its interval, whether both point the same way, and how far ours goes",
    );
    if outcome.effort == Effort::Full {
        report.push(papers(outcome));
        report.push(Block::Prose(LEGEND.to_owned()));
    }
    report.push(index(outcome));
    report.push(Block::Facts);
    for (figure, points) in &outcome.figures {
        report.push(Block::Heading(format!("{}: {}", figure.id, figure.title)));
        report.push(Block::Prose(about(figure, outcome)));
        for block in of_figure(figure, points, outcome.effort) {
            report.push(block);
        }
    }
    if !outcome.uses.is_empty() {
        let source = |name: &str| context.library.source(name);
        report.push(own::table(&outcome.uses, &context.own, source));
    }
    report.push(absent(&outcome.lacking));
    for (name, value) in &outcome.facts {
        report.fact(name.clone(), value.clone());
    }
    report.fact(
        "Effort",
        match context.effort {
            Effort::Quick => QUICK,
            Effort::Full => "full",
        },
    );
    report.fact("Seed", context.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    report
}

/// A figure's plot, where it is drawn, and its table.
pub(super) fn of_figure(figure: &Figure, points: &[Point], effort: Effort) -> Vec<Block> {
    let plot = plot(figure, points).map(Block::from);
    plot.into_iter().chain([table(figure, points, effort).into()]).collect()
}

/// What the words of the verdicts say.
const LEGEND: &str = "A published value and ours agree if both lie on the same side of no change, with all of our \
    interval, and contradict if they lie on different sides. Ours has no effect if its interval stays below a \
    twentieth of the published change, and is undecided if the interval includes no change. Control gains: the same \
    comparison without what the gain is said to come from gains, too, or might gain as much, so ours shows nothing. \
    Uncertain in the paper: as far as the paper prints how its runs spread, the published change is less than two of \
    its own standard errors, so that it has no certain direction. \
    A figure agrees or contradicts if some of its values do and none does the other, however many are undecided; it \
    is mixed if some agree and others contradict, and undecided if none does either.";

fn about(figure: &Figure, outcome: &Outcome) -> String {
    let mut text = format!("{}, {}.", figure.paper.citation(), figure.place);
    let own = own::paragraph(&outcome.uses, figure.id);
    for said in own.as_deref().into_iter().chain(figure.deviations.iter().copied()) {
        text.push_str("\n\n");
        text.push_str(said);
    }
    text
}

/// What is said of a quick report.
const QUICK: &str = "quick: a smaller experiment, with other programs, mixes and times than the full one; it gives no verdicts";

/// The index: a row for each figure; then, of a full report, a row for each paper.
#[must_use]
pub fn summary(outcome: &Outcome) -> Vec<Table> {
    match outcome.effort {
        Effort::Quick => vec![index(outcome)],
        Effort::Full => vec![index(outcome), papers(outcome)],
    }
}

fn index(outcome: &Outcome) -> Table {
    let mut columns =
        vec![Column::text("Figure"), Column::text("Published in"), Column::text("What it shows")];
    let caption = match outcome.effort {
        Effort::Quick => "All figures; a quick report gives no verdicts",
        Effort::Full => {
            "All figures; values are counted by the side of the neutral value that they lie on"
        }
    };
    if outcome.effort == Effort::Full {
        columns.push(Column::text("Verdict"));
        columns.extend(TALLY.map(Column::number));
    }
    let mut table = Table::new("figures", caption, columns);
    for (figure, points) in &outcome.figures {
        let mut row = vec![
            figure.id.into(),
            format!("{}, {}", figure.paper.name(), figure.place).into(),
            figure.title.into(),
        ];
        if outcome.effort == Effort::Full {
            let tally = Tally::of(figure, points);
            row.push(overall(tally.verdict()));
            row.extend(counts(tally));
        }
        table.row(row);
    }
    table
}

const TALLY: [&str; 6] =
    ["Agree", "Contradict", "No effect", "Undecided", "Control gains", "Uncertain in the paper"];

fn counts(tally: Tally) -> [Cell; 6] {
    let Tally { agree, contradict, undecided, no_effect, control_gains, uncertain } = tally;
    let counts = [agree, contradict, no_effect, undecided, control_gains, uncertain];
    counts.map(|count| (count as u64).into())
}

/// Figures and values of each paper by verdict.
fn papers(outcome: &Outcome) -> Table {
    let mut columns = vec![Column::text("Paper")];
    columns.extend(Overall::ALL.map(|verdict| {
        let name = verdict.name();
        Column::number(format!("Figures: {name}"))
    }));
    columns.extend(TALLY.map(|name| Column::number(format!("Values: {}", name.to_lowercase()))));
    let mut table = Table::new("papers", "Figures and published values by paper", columns);
    for (paper, score) in scores(&outcome.figures) {
        let of = |verdict| score.figures.get(&verdict).map_or(0, |count| *count as u64);
        let figures = Overall::ALL.map(|verdict| Cell::from(of(verdict)));
        let row = std::iter::once(paper.name().into()).chain(figures).chain(counts(score.values));
        table.row(row.collect());
    }
    table
}

fn overall(verdict: Option<Overall>) -> Cell {
    let highlight = match verdict {
        Some(Overall::Agrees) => Highlight::Better,
        Some(Overall::Contradicts) => Highlight::Worse,
        Some(Overall::Mixed | Overall::Undecided) | None => Highlight::Muted,
    };
    Cell::from(verdict.map_or("nothing to compare", Overall::name)).highlight(highlight)
}

fn verdict(verdict: Verdict) -> Cell {
    let highlight = match verdict {
        Verdict::Agrees => Highlight::Better,
        Verdict::Contradicts => Highlight::Worse,
        Verdict::Undecided | Verdict::NoEffect | Verdict::ControlGains | Verdict::Uncertain => {
            Highlight::Muted
        }
    };
    Cell::from(verdict.name()).highlight(highlight)
}

fn table(figure: &Figure, points: &[Point], effort: Effort) -> Table {
    let unit = |column: Column| match figure.unit {
        Some(unit) => column.unit(unit),
        None => column,
    };
    let mut columns = vec![
        Column::text(row_name(figure)),
        Column::text(column_name(figure)),
        unit(Column::number("Published")),
    ];
    let has_errors = points.iter().any(|point| point.published_error.is_some());
    columns.extend(has_errors.then(|| unit(Column::number("Standard error of published"))));
    columns.extend([
        unit(Column::number("Ours")),
        Column::number("Ours over published"),
        Column::text("Negative controls"),
        Column::text("Verdict"),
    ]);
    let mut table = Table::new(format!("{}-values", figure.id), figure.title, columns);
    for point in points {
        let said = Verdict::of(point, figure.neutral).filter(|_| effort == Effort::Full);
        let mut row: Vec<Cell> =
            vec![point.series.as_str().into(), point.at.as_str().into(), point.published.into()];
        row.extend(has_errors.then(|| point.published_error.into()));
        row.extend([
            point.ours.into(),
            magnitude(point, figure.neutral).into(),
            controls(point).into(),
            said.map_or_else(|| "".into(), verdict),
        ]);
        table.row(row);
    }
    table
}

fn controls(point: &Point) -> String {
    let said =
        |control: &Control| format!("{}: {}", control.without, number::estimate(&control.ours));
    point.controls.iter().map(said).collect::<Vec<_>>().join("; ")
}

fn row_name(figure: &Figure) -> &'static str {
    match figure.drawn {
        Drawing::Matrix { row, .. } => row,
        _ => "What",
    }
}

fn column_name(figure: &Figure) -> &'static str {
    match figure.drawn {
        Drawing::Lines { x } => x,
        Drawing::Matrix { column, .. } => column,
        Drawing::Dots | Drawing::Table => "Where",
    }
}

/// Names in the order in which they appear.
fn names(points: &[Point], of: fn(&Point) -> &String) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in points.iter().map(of) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn plot(figure: &Figure, points: &[Point]) -> Option<Plot> {
    let drawn: Vec<Point> = points.iter().filter(|point| point.ours.is_some()).cloned().collect();
    if drawn.is_empty() {
        return None;
    }
    let chart = match figure.drawn {
        Drawing::Table => return None,
        Drawing::Lines { x } => Chart::Lines(lines(figure, x, points)),
        Drawing::Matrix { row, column } => Chart::Matrix(matrix(figure, (row, column), &drawn)),
        Drawing::Dots => Chart::Dots(dots(figure, &drawn)),
    };
    let title = format!("{} ({})", figure.title, figure.place);
    Some(Plot::new(figure.id, title, "", chart))
}

fn axis(figure: &Figure) -> Axis {
    let axis = Axis::new(figure.quantity);
    match figure.unit {
        Some(unit) => axis.unit(unit),
        None => axis,
    }
}

fn lines(figure: &Figure, x: &str, points: &[Point]) -> Lines {
    let line = |name: String, series: &str, of: &dyn Fn(&Point) -> Option<Estimate>| Line {
        name,
        points: points
            .iter()
            .filter(|point| point.series == series)
            .filter_map(|point| Some((point.x?, of(point)?)))
            .collect(),
        band: Vec::new(),
    };
    let mut series = Vec::new();
    for name in names(points, |point| &point.series) {
        series.push(line(name.to_owned(), name, &|point| point.ours));
        let published =
            line(format!("{name}, published"), name, &|point| point.published.map(Estimate::exact));
        if !published.points.is_empty() {
            series.push(published);
        }
    }
    Lines { x: Axis::new(x), y: axis(figure), series }
}

fn matrix(figure: &Figure, (row, column): (&str, &str), points: &[Point]) -> Matrix {
    let rows = names(points, |point| &point.series);
    let columns = names(points, |point| &point.at);
    let cell = |series: &str, at: &str| {
        points.iter().find(|point| point.series == series && point.at == at)?.ours
    };
    Matrix {
        row: row.to_owned(),
        column: column.to_owned(),
        cells: rows.iter().map(|r| columns.iter().map(|c| cell(r, c)).collect()).collect(),
        rows: rows.into_iter().map(str::to_owned).collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        label: figure.quantity.to_owned(),
        unit: figure.unit.map(str::to_owned),
        neutral: figure.neutral.unwrap_or(0.0),
    }
}

fn dots(figure: &Figure, points: &[Point]) -> Dots {
    let categories = names(points, |point| &point.at);
    let series = names(points, |point| &point.series).into_iter().map(|name| {
        let of = |at: &&str| points.iter().find(|point| point.series == name && point.at == *at);
        let published: Vec<Option<f64>> =
            categories.iter().map(|at| of(at).and_then(|point| point.published)).collect();
        Series {
            name: name.to_owned(),
            values: categories.iter().map(|at| of(at).and_then(|point| point.ours)).collect(),
            references: if published.iter().any(Option::is_some) { published } else { Vec::new() },
        }
    });
    let series: Vec<Series> = series.collect();
    let compared = series.iter().any(|series| !series.references.is_empty());
    Dots {
        mark: Mark::Dot,
        axis: axis(figure),
        category: "Where".to_owned(),
        categories: categories.iter().map(|name| (*name).to_owned()).collect(),
        series,
        reference: compared.then(|| "published".to_owned()),
    }
}

fn absent(lacking: &[(&Figure, String)]) -> Table {
    let columns = vec![
        Column::text("Figure"),
        Column::text("Published in"),
        Column::text("Why it is not here"),
    ];
    let mut table = Table::new("absent", "Figures that are not reproduced", columns);
    for (figure, what) in lacking {
        let published = format!("{}, {}", figure.paper.name(), figure.place);
        table.row(vec![figure.id.into(), published.into(), what.as_str().into()]);
    }
    for absent in ABSENT {
        let published = format!("{}, {}", absent.paper.name(), absent.place);
        table.row(vec![absent.id.into(), published.into(), Value::from(absent.why).into()]);
    }
    table
}
