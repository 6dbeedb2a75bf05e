//! From figures to a report.

use super::figure::{Drawn, Figure, Point};
use super::verdict::{Tally, Verdict};
use super::{ABSENT, Context, Effort, Outcome};
use symbiont_report::stats::Estimate;
use symbiont_report::{
    Axis, Block, Cell, Chart, Column, Dots, Highlight, Line, Lines, Mark, Matrix, Plot, Report,
    Series, Table, Value,
};

/// The report: an index with verdicts, then each figure.
#[must_use]
pub fn page(outcome: &Outcome, context: &Context<'_>) -> Report {
    let mut report = Report::new(
        "Published figures next to ours",
        "Each with its interval, and whether both point the same way",
    );
    report.push(summary(outcome));
    for (figure, points) in &outcome.figures {
        report.push(Block::Heading(format!("{}: {}", figure.id, figure.title)));
        report.push(Block::Prose(about(figure)));
        if let Some(plot) = plot(figure, points) {
            report.push(plot);
        }
        report.push(table(figure, points));
    }
    report.push(absent(&outcome.lacking));
    for (name, value) in &outcome.facts {
        report.fact(name.clone(), value.clone());
    }
    report.fact(
        "Effort",
        match context.effort {
            Effort::Quick => "quick: fewer cells and repeats, so that intervals are wide",
            Effort::Full => "full",
        },
    );
    report.fact("Seed", context.seed.to_string());
    report.fact("Version", env!("CARGO_PKG_VERSION"));
    report
}

fn about(figure: &Figure) -> String {
    let mut text = format!("{}, {}.", figure.paper.citation(), figure.place);
    for deviation in figure.deviations {
        text.push_str("\n\n");
        text.push_str(deviation);
    }
    text
}

/// The index: a row for each figure.
#[must_use]
pub fn summary(outcome: &Outcome) -> Table {
    let columns = vec![
        Column::text("Figure"),
        Column::text("Published in"),
        Column::text("What it shows"),
        Column::text("Verdict"),
        Column::number("Agree"),
        Column::number("Contradict"),
        Column::number("Undecided"),
    ];
    let caption = "All figures; points are counted by the side of the neutral value";
    let mut table = Table::new("figures", caption, columns);
    for (figure, points) in &outcome.figures {
        let tally = Tally::of(figure, points);
        table.row(vec![
            figure.id.into(),
            format!("{}, {}", figure.paper.prefix(), figure.place).into(),
            figure.title.into(),
            verdict(tally.verdict()),
            (tally.agree as u64).into(),
            (tally.contradict as u64).into(),
            (tally.undecided as u64).into(),
        ]);
    }
    table
}

fn verdict(verdict: Option<Verdict>) -> Cell {
    let highlight = match verdict {
        Some(Verdict::Agrees) => Highlight::Better,
        Some(Verdict::Contradicts) => Highlight::Worse,
        Some(Verdict::Undecided) | None => Highlight::Muted,
    };
    Cell::from(verdict.map_or("nothing to compare", Verdict::name)).highlight(highlight)
}

fn table(figure: &Figure, points: &[Point]) -> Table {
    let unit = |column: Column| match figure.unit {
        Some(unit) => column.unit(unit),
        None => column,
    };
    let columns = vec![
        Column::text(row_name(figure)),
        Column::text(column_name(figure)),
        unit(Column::number("Published")),
        unit(Column::number("Ours")),
        Column::text("Verdict"),
    ];
    let mut table = Table::new(format!("{}-values", figure.id), figure.title, columns);
    for point in points {
        let said =
            Verdict::of(point, figure.neutral).map_or_else(|| "".into(), |it| verdict(Some(it)));
        table.row(vec![
            point.series.as_str().into(),
            point.at.as_str().into(),
            point.published.into(),
            point.ours.into(),
            said,
        ]);
    }
    table
}

fn row_name(figure: &Figure) -> &'static str {
    match figure.drawn {
        Drawn::Matrix { row, .. } => row,
        _ => "What",
    }
}

fn column_name(figure: &Figure) -> &'static str {
    match figure.drawn {
        Drawn::Lines { x } => x,
        Drawn::Matrix { column, .. } => column,
        Drawn::Dots | Drawn::Table => "Where",
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
        Drawn::Table => return None,
        Drawn::Lines { x } => Chart::Lines(lines(figure, x, points)),
        Drawn::Matrix { row, column } => Chart::Matrix(matrix(figure, (row, column), &drawn)),
        Drawn::Dots => Chart::Dots(dots(figure, &drawn)),
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
        let published = format!("{}, {}", figure.paper.prefix(), figure.place);
        table.row(vec![figure.id.into(), published.into(), what.as_str().into()]);
    }
    for absent in ABSENT {
        let published = format!("{}, {}", absent.paper.prefix(), absent.place);
        table.row(vec![absent.id.into(), published.into(), Value::from(absent.why).into()]);
    }
    table
}
