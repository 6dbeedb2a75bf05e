//! Plots as values, and their pictures.
//!
//! A plot is drawn once, by plotters, with stand-in colours (`theme`), which
//! then become CSS variables for the page or plain colours for the files. Text
//! is laid out by estimated widths, so that long labels wrap instead of
//! overlapping.
//!
//! # Properties
//! - Whatever the data and names, a chart whose parts fit together is drawn as
//!   well-formed SVG, its marks within the picture
//!   (`any_dots_are_drawn_within_the_picture`,
//!   `any_lines_are_drawn_within_the_picture`,
//!   `any_matrix_is_drawn_within_the_picture`): a long experiment is not lost
//!   to an odd value.

use super::number;
use super::table::{Cell, Column, Table, Value, with_unit};
use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

mod canvas;
mod colours;
mod dots;
mod frame;
mod header;
mod lines;
mod matrix;
#[cfg(feature = "png")]
mod raster;
#[cfg(test)]
#[cfg(feature = "png")]
mod tests;
mod text;
mod theme;
mod ticks;

use colours::Colours;
#[cfg(feature = "png")]
pub(super) use raster::png;
pub(super) use theme::{DARK, LIGHT, inline, standalone};

/// A chart with what is said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// Names its files.
    pub id: String,
    /// The heading in the picture.
    pub title: String,
    /// What it shows; n and interval are added from the data.
    pub caption: String,
    /// The chart.
    pub chart: Chart,
}

/// Kinds of charts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// Figures of named things, several series each.
    Dots(Dots),
    /// Figures over a quantity.
    Lines(Lines),
    /// Figures of pairs of things, as a coloured matrix.
    Matrix(Matrix),
    /// Slowdowns of pairs, coloured by their logarithm; less is better, unlike in other matrices.
    Slowdowns(Matrix),
}

/// An axis of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// The quantity.
    pub label: String,
    /// Its unit; none for ratios.
    pub unit: Option<String>,
    /// What the axis holds at least; data beyond widen it. From the data alone
    /// if absent.
    pub range: Option<(f64, f64)>,
    /// How values are spread along it.
    pub scale: Scale,
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences, equal distances.
    Linear,
    /// Equal ratios, equal distances; values must be positive.
    Log,
}

impl Axis {
    /// A linear axis of a ratio, its ends from the data.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), unit: None, range: None, scale: Scale::Linear }
    }

    /// The same axis, in `unit`.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: Some(unit.into()), ..self }
    }

    /// The same axis, holding at least `low` to `high`.
    #[must_use]
    pub fn range(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// The same axis, logarithmic.
    #[must_use]
    pub fn log(self) -> Self {
        Self { scale: Scale::Log, ..self }
    }

    /// Label and, in parentheses, unit.
    #[must_use]
    pub fn head(&self) -> String {
        with_unit(&self.label, self.unit.as_deref())
    }
}

/// Categories down, values across; dots or bars with intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dots {
    /// Dots, or bars from zero.
    pub mark: Mark,
    /// The values' axis.
    pub axis: Axis,
    /// What a row is, such as "program".
    pub category: String,
    /// The rows, from the top.
    pub categories: Vec<String>,
    /// What is compared in each row.
    pub series: Vec<Series>,
    /// What the reference marks are, such as "model (Tables 1 and 3)".
    pub reference: Option<String>,
}

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// A dot; the axis need not start at 0.
    Dot,
    /// A bar from 0.
    Bar,
}

/// One figure for each category.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// One for each category; absent where nothing was measured.
    pub values: Vec<Option<Estimate>>,
    /// Reference marks: empty, or one for each category.
    pub references: Vec<Option<f64>>,
}

/// Lines over a quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The quantity.
    pub x: Axis,
    /// The values.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Points by increasing x. Exact figures are drawn as a dashed line
    /// without marks, measured ones with marks and intervals.
    pub points: Vec<(f64, Estimate)>,
    /// A band to shade behind the line (x, low, high), such as the model's
    /// extremes.
    pub band: Vec<(f64, f64, f64)>,
}

/// A figure for each pair of row and column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// What the rows are.
    pub row: String,
    /// What the columns are.
    pub column: String,
    /// Rows, from the top.
    pub rows: Vec<String>,
    /// Columns, from the left.
    pub columns: Vec<String>,
    /// By row, then column; absent cells stay blank.
    pub cells: Vec<Vec<Option<Estimate>>>,
    /// What the figures are.
    pub label: String,
    /// Their unit.
    pub unit: Option<String>,
    /// The figure that stays uncoloured: 1 for ratios, 0 for differences; of slowdowns more than 0.
    pub neutral: f64,
}

/// A chart that can't be drawn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlotError {
    /// A part has not as many items as it must have.
    #[error("{part} has {got} items, not {want}")]
    Length {
        /// The part of the chart.
        part: String,
        /// Items it has.
        got: usize,
        /// Items it should have.
        want: usize,
    },
    /// There is nothing to draw.
    #[error("nothing to draw: {0} is empty")]
    Empty(&'static str),
    /// An axis whose ends are not in order, not finite, or not positive on a
    /// logarithmic scale.
    #[error("axis {label:?} cannot reach from {low} to {high}")]
    Range {
        /// Label of the axis.
        label: String,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// The drawing library refused.
    #[error("cannot draw: {0}")]
    Draw(String),
    /// The picture could not be turned into pixels.
    #[cfg(feature = "png")]
    #[error("cannot make a PNG: {0}")]
    Raster(String),
}

impl Plot {
    /// A plot.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        caption: impl Into<String>,
        chart: Chart,
    ) -> Self {
        Self { id: id.into(), title: title.into(), caption: caption.into(), chart }
    }

    /// The picture, in stand-in colours.
    pub(super) fn draw(&self) -> Result<String, PlotError> {
        match &self.chart {
            Chart::Dots(chart) => dots::draw(&self.title, chart),
            Chart::Lines(chart) => lines::draw(&self.title, chart),
            Chart::Matrix(chart) => matrix::draw(&self.title, chart, Colours::MoreIsBetter),
            Chart::Slowdowns(chart) => matrix::draw(&self.title, chart, Colours::Slowdowns),
        }
    }

    /// The caption with n and interval, and how marks are to be read.
    pub(super) fn full_caption(&self) -> String {
        let mut parts = vec![self.caption.clone()];
        parts.extend(number::uncertainty(self.data().estimates()));
        parts.retain(|part| !part.is_empty());
        parts.join(" ")
    }

    /// What a screen reader says of the picture.
    pub(super) fn description(&self) -> String {
        let names = |names: &mut dyn Iterator<Item = &String>| {
            names.map(String::as_str).collect::<Vec<_>>().join(", ")
        };
        let content = match &self.chart {
            Chart::Dots(c) => {
                let series = names(&mut c.series.iter().map(|s| &s.name));
                format!("{} of {} for {}", c.axis.head(), series, names(&mut c.categories.iter()))
            }
            Chart::Lines(c) => {
                let series = names(&mut c.series.iter().map(|s| &s.name));
                format!("{} over {} for {}", c.y.head(), c.x.head(), series)
            }
            Chart::Matrix(c) | Chart::Slowdowns(c) => format!(
                "{} for {} {} by {} {}",
                with_unit(&c.label, c.unit.as_deref()),
                c.row,
                names(&mut c.rows.iter()),
                c.column,
                names(&mut c.columns.iter())
            ),
        };
        format!("{}. {content}. The data follow as a table.", self.title)
    }

    /// Its data as a table.
    pub(super) fn data(&self) -> Table {
        match &self.chart {
            Chart::Dots(c) => dots::data(self, c),
            Chart::Lines(c) => lines::data(self, c),
            Chart::Matrix(c) | Chart::Slowdowns(c) => matrix::data(self, c),
        }
    }

    fn table(&self, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
        let caption = format!("Data of “{}”", self.title);
        Table { id: self.id.clone(), caption, columns, rows, notes: Vec::new() }
    }
}

/// A value column in the axis' unit.
fn value_column(axis: &Axis) -> Column {
    Column { unit: axis.unit.clone(), ..Column::number(axis.label.clone()) }
}

fn cell(value: impl Into<Value>) -> Cell {
    value.into().into()
}

fn check_length(part: impl Into<String>, got: usize, want: usize) -> Result<(), PlotError> {
    if got == want { Ok(()) } else { Err(PlotError::Length { part: part.into(), got, want }) }
}
