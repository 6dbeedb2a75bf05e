//! Categories down, values across.

use super::canvas::{Canvas, LABEL, SMALL, WIDTH, filling, picture, stroke, style};
use super::frame::{BELOW, Frame};
use super::header::{Header, Key};
use super::theme::Role;
use super::ticks::Ruler;
use super::{Dots, Mark, Plot, PlotError, Series, cell, check_length, text, value_column};
use crate::number;
use crate::stats::Estimate;
use crate::table::{Cell, Column, Table};
use plotters::style::text_anchor::{HPos, VPos};

/// Height of one series in a row.
const LANE: i32 = 20;
/// Free pixels above and below a row.
const PADDING: i32 = 9;
const LABEL_LINE: i32 = 17;
/// Most pixels that category labels take; longer ones wrap.
const LABEL_ROOM: f64 = 230.0;

pub(super) fn draw(title: &str, chart: &Dots) -> Result<String, PlotError> {
    check(chart)?;
    let ruler = Ruler::new(&chart.axis, extent(chart), 7)?;
    let header = Header::new(title, legend(chart));
    let layout = Layout::new(chart, header.height);
    picture(layout.bottom() + BELOW, |canvas| {
        header.draw(canvas)?;
        let sides = (layout.top, layout.left, layout.right);
        let frame = Frame::draw(canvas, sides, (&ruler, chart.axis.head()), None)?;
        for (row, label) in layout.labels.iter().enumerate() {
            layout.draw_label(canvas, row, label)?;
            for (k, series) in chart.series.iter().enumerate() {
                let value = series.values.get(row).copied().flatten();
                let reference = series.references.get(row).copied().flatten();
                let y = layout.lane(row, k);
                draw_lane(canvas, &frame, chart.mark, (k, y), (value, reference))?;
                if let Some(value) = value {
                    let right = style(SMALL, Role::Muted, (HPos::Right, VPos::Center));
                    canvas.text(&number::value(&value), (WIDTH - 12, y), right)?;
                }
            }
        }
        Ok(())
    })
}

/// One figure of one series, with interval and reference.
fn draw_lane(
    canvas: &Canvas<'_>,
    frame: &Frame,
    mark: Mark,
    (series, y): (usize, i32),
    (value, reference): (Option<Estimate>, Option<f64>),
) -> Result<(), PlotError> {
    let role = Role::Series(series);
    let at = value.and_then(|v| frame.x(v.value));
    if let (Mark::Bar, Some(x), Some(zero)) = (mark, at, frame.x(0.0)) {
        let corners = [(x.min(zero), y - 7), (x.max(zero), y + 7)];
        canvas.rectangle(corners, filling(role, 0.75))?;
    }
    if let Some(x) = reference.and_then(|r| frame.x(r)) {
        canvas.line(&[(x, y - 9), (x, y + 9)], stroke(Role::Text, 2))?;
    }
    if let Some(interval) = value.and_then(|v| v.interval) {
        // On a bar of its own colour an interval would not be seen.
        let role = if mark == Mark::Bar { Role::Text } else { role };
        canvas.interval_across(interval, y, role, |v| frame.x(v))?;
    }
    match (mark, at) {
        (Mark::Dot, Some(x)) => canvas.mark((x, y), series),
        _ => Ok(()),
    }
}

/// Where rows and lanes lie.
struct Layout {
    labels: Vec<Vec<String>>,
    series: i32,
    row: i32,
    top: i32,
    left: i32,
    right: i32,
}

impl Layout {
    fn new(chart: &Dots, top: i32) -> Self {
        let labels: Vec<Vec<String>> =
            chart.categories.iter().map(|c| text::wrap(c, LABEL, LABEL_ROOM)).collect();
        let widest = labels.iter().flatten().map(|l| text::width(l, LABEL)).fold(0.0, f64::max);
        let lines = labels.iter().map(Vec::len).max().unwrap_or(1) as i32;
        let series = chart.series.len() as i32;
        let numbers = chart.series.iter().flat_map(|s| s.values.iter().flatten());
        let right = numbers.map(|e| text::width(&number::value(e), SMALL)).fold(16.0, f64::max);
        Self {
            labels,
            series,
            row: (LANE * series).max(LABEL_LINE * lines) + 2 * PADDING,
            top,
            left: widest.ceil() as i32 + 28,
            right: right.ceil() as i32 + 26,
        }
    }

    fn bottom(&self) -> i32 {
        self.top + self.row * self.labels.len() as i32
    }

    fn middle(&self, row: usize) -> i32 {
        self.top + self.row * row as i32 + self.row / 2
    }

    fn lane(&self, row: usize, series: usize) -> i32 {
        self.middle(row) + LANE * series as i32 - LANE * (self.series - 1) / 2
    }

    fn draw_label(
        &self,
        canvas: &Canvas<'_>,
        row: usize,
        lines: &[String],
    ) -> Result<(), PlotError> {
        if row > 0 {
            let y = self.middle(row) - self.row / 2;
            canvas.line(&[(12, y), (WIDTH - 12, y)], stroke(Role::Grid, 1))?;
        }
        let first = self.middle(row) - LABEL_LINE * (lines.len() as i32 - 1) / 2;
        for (i, line) in lines.iter().enumerate() {
            let at = (self.left - 12, first + LABEL_LINE * i as i32);
            canvas.text(line, at, style(LABEL, Role::Text, (HPos::Right, VPos::Center)))?;
        }
        Ok(())
    }
}

fn legend(chart: &Dots) -> Vec<(Key, String)> {
    let key = |i| if chart.mark == Mark::Bar { Key::Bar(i) } else { Key::Mark(i) };
    let mut names: Vec<(Key, String)> =
        chart.series.iter().enumerate().map(|(i, s)| (key(i), s.name.clone())).collect();
    names.extend(chart.reference.clone().map(|name| (Key::Reference, name)));
    names
}

/// All values that the axis must hold.
fn extent(chart: &Dots) -> Vec<f64> {
    let mut values = if chart.mark == Mark::Bar { vec![0.0] } else { Vec::new() };
    for series in &chart.series {
        values.extend(series.references.iter().flatten());
        for e in series.values.iter().flatten() {
            values.push(e.value);
            values.extend(e.low());
            values.extend(e.high());
        }
    }
    values
}

fn check(chart: &Dots) -> Result<(), PlotError> {
    let want = chart.categories.len();
    if want == 0 {
        return Err(PlotError::Empty("the list of categories"));
    }
    if chart.series.is_empty() {
        return Err(PlotError::Empty("the list of series"));
    }
    for Series { name, values, references } in &chart.series {
        check_length(format!("the values of {name:?}"), values.len(), want)?;
        if !references.is_empty() {
            check_length(format!("the references of {name:?}"), references.len(), want)?;
        }
    }
    Ok(())
}

pub(super) fn data(plot: &Plot, chart: &Dots) -> Table {
    let mut columns =
        vec![Column::text(&chart.category), Column::text("series"), value_column(&chart.axis)];
    columns.extend(chart.reference.as_ref().map(Column::number));
    let mut rows = Vec::new();
    for (i, category) in chart.categories.iter().enumerate() {
        for series in &chart.series {
            let value = series.values.get(i).copied().flatten();
            let mut row: Vec<Cell> =
                vec![cell(category.as_str()), cell(series.name.as_str()), cell(value)];
            if chart.reference.is_some() {
                row.push(cell(series.references.get(i).copied().flatten()));
            }
            rows.push(row);
        }
    }
    plot.table(columns, rows)
}
