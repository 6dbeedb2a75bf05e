//! Values over a quantity.

use super::canvas::{Canvas, SMALL, filling, picture, stroke};
use super::frame::{ABOVE, BELOW, Frame};
use super::header::{Header, Key};
use super::theme::Role;
use super::ticks::Ruler;
use super::{Line, Lines, Plot, PlotError, cell, text, value_column};
use crate::stats::Method;
use crate::table::{Cell, Column, Table};

const HEIGHT: i32 = 320;

pub(super) fn draw(title: &str, chart: &Lines) -> Result<String, PlotError> {
    if chart.series.iter().all(|s| s.points.is_empty()) {
        return Err(PlotError::Empty("every line"));
    }
    let x = Ruler::new(&chart.x, horizontal(chart), 9)?;
    let y = Ruler::new(&chart.y, vertical(chart), 6)?;
    let names = chart.series.iter().enumerate().map(|(i, s)| (key(i, s), s.name.clone())).collect();
    let header = Header::new(title, names);
    let widest = y.ticks.iter().map(|t| text::width(&t.1, SMALL)).fold(0.0, f64::max);
    let left = widest.ceil() as i32 + 28;
    let top = header.height + ABOVE;
    picture(top + HEIGHT + BELOW, |canvas| {
        header.draw(canvas)?;
        let sides = (top, left, 28);
        let frame = Frame::draw(canvas, sides, (&x, chart.x.head()), Some((&y, chart.y.head())))?;
        for (i, line) in chart.series.iter().enumerate() {
            draw_band(canvas, &frame, i, line)?;
        }
        for (i, line) in chart.series.iter().enumerate() {
            draw_line(canvas, &frame, i, line)?;
        }
        Ok(())
    })
}

fn draw_band(
    canvas: &Canvas<'_>,
    frame: &Frame,
    series: usize,
    line: &Line,
) -> Result<(), PlotError> {
    let low = line.band.iter().filter_map(|b| frame.x(b.0).zip(frame.y(b.1)));
    let high = line.band.iter().rev().filter_map(|b| frame.x(b.0).zip(frame.y(b.2)));
    let outline: Vec<_> = low.chain(high).collect();
    if outline.is_empty() {
        return Ok(());
    }
    canvas.polygon(&outline, filling(Role::Series(series), 0.16))
}

fn draw_line(
    canvas: &Canvas<'_>,
    frame: &Frame,
    series: usize,
    line: &Line,
) -> Result<(), PlotError> {
    let role = Role::Series(series);
    let places: Vec<_> =
        line.points.iter().filter_map(|(x, e)| frame.x(*x).zip(frame.y(e.value))).collect();
    if is_exact(line) {
        return canvas.dashes(&places, role);
    }
    canvas.line(&places, stroke(role, 2))?;
    for (x, e) in &line.points {
        if let Some((x, interval)) = frame.x(*x).zip(e.interval) {
            canvas.interval_up(interval, x, role, |v| frame.y(v))?;
        }
    }
    places.into_iter().try_for_each(|at| canvas.mark(at, series))
}

/// Whether no point was measured.
fn is_exact(line: &Line) -> bool {
    line.points.iter().all(|(_, e)| e.method == Method::Exact)
}

fn key(series: usize, line: &Line) -> Key {
    if is_exact(line) { Key::Dashes(series) } else { Key::Line(series) }
}

fn horizontal(chart: &Lines) -> Vec<f64> {
    let of = |line: &Line| {
        let points = line.points.iter().map(|p| p.0);
        points.chain(line.band.iter().map(|b| b.0)).collect::<Vec<_>>()
    };
    chart.series.iter().flat_map(of).collect()
}

fn vertical(chart: &Lines) -> Vec<f64> {
    let mut values = Vec::new();
    for line in &chart.series {
        for (_, e) in &line.points {
            values.push(e.value);
            values.extend(e.low());
            values.extend(e.high());
        }
        values.extend(line.band.iter().flat_map(|b| [b.1, b.2]));
    }
    values
}

pub(super) fn data(plot: &Plot, chart: &Lines) -> Table {
    let mut columns = vec![Column::text("series"), value_column(&chart.x), value_column(&chart.y)];
    let banded = chart.series.iter().any(|s| !s.band.is_empty());
    if banded {
        columns.extend(["band low", "band high"].map(Column::number));
    }
    let mut rows = Vec::new();
    for line in &chart.series {
        for (x, e) in &line.points {
            let mut row: Vec<Cell> = vec![cell(line.name.as_str()), cell(*x), cell(*e)];
            if banded {
                let band = line.band.iter().find(|b| b.0 == *x);
                row.extend([cell(band.map(|b| b.1)), cell(band.map(|b| b.2))]);
            }
            rows.push(row);
        }
    }
    plot.table(columns, rows)
}
