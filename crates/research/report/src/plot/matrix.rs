//! Figures of pairs, coloured by their distance from a neutral value.

use super::canvas::{Canvas, LABEL, SMALL, WIDTH, bold, filling, picture, stroke, style};
use super::colours::Colours;
use super::header::Header;
use super::theme::Role;
use super::{Matrix, Plot, PlotError, cell, check_length, text};
use crate::number;
use crate::stats::Estimate;
use crate::table::{Cell, Column, Table, with_unit};
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, VPos};

/// Height of a cell: its width, within these.
const HEIGHTS: (i32, i32) = (24, 44);
const MOST_WIDTH: i32 = 110;
const LABEL_ROOM: f64 = 160.0;
/// Font size of intervals.
const LEAST: f64 = 11.0;
/// Most lines of a name; more are cut.
const MOST_LINES: usize = 3;
/// Deepest colour of a cell; text must stay readable on it.
const DEEPEST: f64 = 0.55;

pub(super) fn draw(title: &str, chart: &Matrix, colours: Colours) -> Result<String, PlotError> {
    check(chart)?;
    let header = Header::new(title, Vec::new());
    let layout = Layout::new(chart, header.height);
    let span = span(chart, colours);
    picture(layout.bottom + 44, |canvas| {
        header.draw(canvas)?;
        layout.draw_names(canvas, chart, header.height)?;
        for (r, row) in chart.cells.iter().enumerate() {
            for (c, value) in row.iter().enumerate() {
                if let Some(value) = value.filter(|v| v.value.is_finite()) {
                    draw_cell(canvas, layout.cell(r, c), &value, (chart.neutral, colours, span))?;
                }
            }
        }
        draw_scale(canvas, (layout.left, layout.bottom + 24), chart, (colours, span))
    })
}

/// Names of columns.
enum Heads {
    /// In lines, each as wide as its column.
    Across(Vec<Vec<String>>),
    /// Written upwards, where columns are too narrow for their words.
    Upright(Vec<String>),
}

impl Heads {
    fn new(names: &[String], width: f64) -> Self {
        let fits = |name: &String| name.split(' ').all(|word| text::width(word, SMALL) <= width);
        if names.iter().all(fits) {
            let lines = |name: &String| text::wrap_to(name, SMALL, width, MOST_LINES);
            Self::Across(names.iter().map(lines).collect())
        } else {
            Self::Upright(names.iter().map(|name| text::fit(name, SMALL, LABEL_ROOM)).collect())
        }
    }

    fn height(&self) -> i32 {
        match self {
            Self::Across(heads) => 16 * heads.iter().map(Vec::len).max().unwrap_or(1) as i32,
            Self::Upright(heads) => {
                heads.iter().map(|head| text::width(head, SMALL)).fold(16.0, f64::max).ceil() as i32
            }
        }
    }
}

/// Where cells lie.
struct Layout {
    heads: Heads,
    row_label: String,
    left: i32,
    top: i32,
    bottom: i32,
    width: i32,
    height: i32,
}

impl Layout {
    fn new(chart: &Matrix, below: i32) -> Self {
        let names = chart.rows.iter().map(|r| text::width(r, SMALL)).fold(0.0, f64::max);
        let row_label = text::fit(&chart.row, LABEL, LABEL_ROOM);
        let left = 28 + names.min(LABEL_ROOM).max(text::width(&row_label, LABEL)).ceil() as i32;
        let width = ((WIDTH - left - 16) / chart.columns.len() as i32).min(MOST_WIDTH);
        let heads = Heads::new(&chart.columns, f64::from(width - 6));
        let top = below + 22 + heads.height() + 4;
        let height = width.clamp(HEIGHTS.0, HEIGHTS.1);
        let bottom = top + height * chart.rows.len() as i32;
        Self { heads, row_label, left, top, bottom, width, height }
    }

    /// The upper left corner of a cell.
    fn corner(&self, row: usize, column: usize) -> (i32, i32) {
        (self.left + self.width * column as i32, self.top + self.height * row as i32)
    }

    /// The upper left and the lower right corner of a cell.
    fn cell(&self, row: usize, column: usize) -> [(i32, i32); 2] {
        [self.corner(row, column), self.corner(row + 1, column + 1)]
    }

    fn draw_names(&self, canvas: &Canvas<'_>, chart: &Matrix, below: i32) -> Result<(), PlotError> {
        let strong = bold(LABEL, Role::Text, (HPos::Left, VPos::Center));
        let room = f64::from(WIDTH - self.left - 16);
        let column_label = text::fit(&chart.column, LABEL, room);
        canvas.text(&column_label, (self.left, below + 10), strong.clone())?;
        canvas.text(&self.row_label, (16, self.top - 14), strong)?;
        let middle = |c: usize| self.corner(0, c).0 + self.width / 2;
        match &self.heads {
            Heads::Across(heads) => {
                for (c, head) in heads.iter().enumerate() {
                    for (k, line) in head.iter().enumerate() {
                        let center = style(SMALL, Role::Text, (HPos::Center, VPos::Center));
                        canvas.text(line, (middle(c), below + 30 + 16 * k as i32), center)?;
                    }
                }
            }
            Heads::Upright(heads) => {
                for (c, head) in heads.iter().enumerate() {
                    let begin = style(SMALL, Role::Text, (HPos::Left, VPos::Center));
                    let upwards = begin.transform(FontTransform::Rotate270);
                    canvas.text(head, (middle(c), self.top - 6), upwards)?;
                }
            }
        }
        for (r, name) in chart.rows.iter().enumerate() {
            let most = (self.height / 14) as usize;
            let lines = text::wrap_to(name, SMALL, f64::from(self.left - 26), most);
            let first = self.corner(r, 0).1 + self.height / 2 - 7 * (lines.len() as i32 - 1);
            for (k, line) in lines.iter().enumerate() {
                let right = style(SMALL, Role::Text, (HPos::Right, VPos::Center));
                canvas.text(line, (self.left - 10, first + 14 * k as i32), right)?;
            }
        }
        Ok(())
    }
}

/// A cell, coloured by how far its figure lies from neutral, as a share of `span`.
fn draw_cell(
    canvas: &Canvas<'_>,
    [(x, y), (right, below)]: [(i32, i32); 2],
    value: &Estimate,
    (neutral, colours, span): (f64, Colours, f64),
) -> Result<(), PlotError> {
    let depth = colours.distance(value.value, neutral) / span;
    let corners = [(x + 1, y + 1), (right - 1, below - 1)];
    let role = colours.role(depth);
    canvas.rectangle(corners, filling(role, DEEPEST * depth.abs().min(1.0)))?;
    canvas.rectangle(corners, stroke(Role::Grid, 1))?;
    let (across, down) = ((x + right) / 2, (y + below) / 2);
    let center = (HPos::Center, VPos::Center);
    let room = f64::from(right - x - 4);
    let (value, spread) = number::next_to(value, colours.size(span, neutral));
    let tall = below - y >= HEIGHTS.1;
    let spread = spread.filter(|spread| tall && text::width(spread, LEAST) < room);
    let above = if spread.is_some() { 7 } else { 0 };
    // Only the colour shows the value, where no digits fit.
    let sizes = [LABEL, SMALL, LEAST, LEAST - 2.0];
    if let Some(size) = sizes.into_iter().find(|size| text::width(&value, *size) <= room + 2.0) {
        canvas.text(&value, (across, down - above), style(size, Role::Text, center))?;
    }
    spread.map_or(Ok(()), |spread| {
        canvas.text(&spread, (across, down + 10), style(LEAST, Role::Text, center))
    })
}

/// What the colours mean.
fn draw_scale(
    canvas: &Canvas<'_>,
    (x, y): (i32, i32),
    chart: &Matrix,
    (colours, span): (Colours, f64),
) -> Result<(), PlotError> {
    const STEP: i32 = 16;
    let figure = |distance| number::plain(colours.at(distance, chart.neutral));
    let [lower, upper] = colours.ends();
    let low = format!("{}{lower}", figure(-span));
    let text_style = |h| style(SMALL, Role::Muted, (h, VPos::Center));
    let start = x + text::width(&low, SMALL).ceil() as i32 + 8;
    canvas.text(&low, (start - 8, y), text_style(HPos::Right))?;
    for step in -4_i32..=4 {
        let role = colours.role(f64::from(step));
        let from = start + STEP * (step + 4);
        let style = filling(role, DEEPEST * f64::from(step.abs()) / 4.0);
        canvas.rectangle([(from, y - 6), (from + STEP, y + 6)], style)?;
    }
    let end = start + 9 * STEP;
    canvas.rectangle([(start, y - 6), (end, y + 6)], stroke(Role::Grid, 1))?;
    let label = with_unit(&chart.label, chart.unit.as_deref());
    let label = format!("{}{upper}   {label}", figure(span));
    let label = text::fit(&label, SMALL, f64::from(WIDTH - end - 24));
    canvas.text(&label, (end + 8, y), text_style(HPos::Left))
}

/// The largest distance from neutral, over which colours spread.
fn span(chart: &Matrix, colours: Colours) -> f64 {
    let values = chart.cells.iter().flatten().flatten();
    let distance = |e: &Estimate| colours.distance(e.value, chart.neutral).abs();
    let most = values.map(distance).filter(|d| d.is_finite());
    Some(most.fold(0.0, f64::max)).filter(|m| *m > 0.0).unwrap_or(1.0)
}

fn check(chart: &Matrix) -> Result<(), PlotError> {
    if chart.rows.is_empty() || chart.columns.is_empty() {
        return Err(PlotError::Empty("the list of rows or columns"));
    }
    check_length("the matrix", chart.cells.len(), chart.rows.len())?;
    for (row, name) in chart.cells.iter().zip(&chart.rows) {
        check_length(format!("the row {name:?}"), row.len(), chart.columns.len())?;
    }
    Ok(())
}

pub(super) fn data(plot: &Plot, chart: &Matrix) -> Table {
    let value = Column { unit: chart.unit.clone(), ..Column::number(chart.label.clone()) };
    let columns = vec![Column::text(&chart.row), Column::text(&chart.column), value];
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (row, cells) in chart.rows.iter().zip(&chart.cells) {
        for (column, value) in chart.columns.iter().zip(cells) {
            if let Some(value) = value {
                rows.push(vec![cell(row.as_str()), cell(column.as_str()), cell(*value)]);
            }
        }
    }
    plot.table(columns, rows)
}
