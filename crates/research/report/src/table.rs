//! Tables as values.

use crate::stats::Estimate;
use serde::{Deserialize, Serialize};

/// A table; the first column names the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Names its files.
    pub id: String,
    /// What it shows; n and interval are added from the cells.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// Remarks below the table, such as what highlighting means.
    pub notes: Vec<String>,
}

/// A table whose rows do not fit its columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {row} (from 0) has {cells} cells for {columns} columns")]
pub struct TableError {
    /// The first such row.
    pub row: usize,
    /// Its cells.
    pub cells: usize,
    /// Columns of the table.
    pub columns: usize,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// What it holds.
    pub name: String,
    /// In what unit; none for ratios and text.
    pub unit: Option<String>,
    /// How it is aligned.
    pub align: Align,
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Align {
    /// To the left.
    Text,
    /// To the right, digits of equal width.
    Number,
}

impl Column {
    /// A column of text.
    #[must_use]
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: None, align: Align::Text }
    }

    /// A column of numbers without unit.
    #[must_use]
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: None, align: Align::Number }
    }

    /// The same column, its values in `unit`.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: Some(unit.into()), ..self }
    }

    /// Name and, in parentheses, unit.
    #[must_use]
    pub fn head(&self) -> String {
        with_unit(&self.name, self.unit.as_deref())
    }
}

/// `name (unit)`, or just the name.
pub(super) fn with_unit(name: &str, unit: Option<&str>) -> String {
    unit.map_or_else(|| name.to_owned(), |unit| format!("{name} ({unit})"))
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What it says.
    pub value: Value,
    /// How it stands out.
    pub highlight: Highlight,
}

/// What a cell says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A figure, perhaps with its interval.
    Estimate(Estimate),
    /// Not measured, or not defined.
    Missing,
}

/// Named styles of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Highlight {
    /// As the others.
    Plain,
    /// What the reader should see first.
    Strong,
    /// Better than what it is compared with.
    Better,
    /// Worse than what it is compared with.
    Worse,
    /// Of less interest.
    Muted,
}

impl Cell {
    /// The same cell, standing out.
    #[must_use]
    pub fn highlight(self, highlight: Highlight) -> Self {
        Self { highlight, ..self }
    }
}

impl<T: Into<Value>> From<T> for Cell {
    fn from(value: T) -> Self {
        Self { value: value.into(), highlight: Highlight::Plain }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Estimate(Estimate::exact(value))
    }
}

impl From<Estimate> for Value {
    fn from(estimate: Estimate) -> Self {
        Self::Estimate(estimate)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(id: impl Into<String>, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        let (id, caption) = (id.into(), caption.into());
        Self { id, caption, columns, rows: Vec::new(), notes: Vec::new() }
    }

    /// Its data as CSV (RFC 4180); a column with intervals becomes four: value, low, high and n.
    #[must_use]
    pub fn csv(&self) -> String {
        crate::csv::csv(self)
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds a remark below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// All figures of the table.
    pub(super) fn estimates(&self) -> impl Iterator<Item = Estimate> {
        self.rows.iter().flatten().filter_map(|cell| match cell.value {
            Value::Estimate(estimate) => Some(estimate),
            _ => None,
        })
    }

    pub(super) fn check(&self) -> Result<(), TableError> {
        let columns = self.columns.len();
        match self.rows.iter().position(|row| row.len() != columns) {
            Some(row) => Err(TableError { row, cells: self.rows[row].len(), columns }),
            None => Ok(()),
        }
    }
}
