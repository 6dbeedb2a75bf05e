//! Reports of experiments: one writer for all of them, estimates with intervals ([`stats`]), the figures that runs
//! are judged by ([`metrics`]), and what an analytic model predicts of them ([`theory`]).
//!
//! # Problem
//! Results must be readable on any machine, offline and years later, and
//! their data must be there for others to compute with. Every experiment
//! should get that for the price of listing its blocks.
//!
//! # Approach
//! A [`Report`] is a plain value: facts about the run and a list of
//! [`Block`]s. [`Report::write`] turns it into a directory:
//!
//! | file | content |
//! |---|---|
//! | `index.html` | everything, self-contained: inline style and SVG, no script, no network |
//! | `ID.svg`, `ID.png` | each plot, on white; the latter with the feature `png` |
//! | `ID.csv` | the data of each table and plot |
//! | `report.json` | the whole value ([`FORMAT`]) |
//!
//! Pages follow the reader's light or dark setting and print in light.
//! Numbers are formatted in one place ([`number`]): digits follow the
//! interval's width. Series differ by shape as well as by colour.
//!
//! # Terms and units
//! An *id* names a block's files: lower-case letters, digits and hyphens.
//! Units stand in column heads and axis labels, in parentheses.
//!
//! # Properties
//! - Same value, same bytes; fonts of the machine play no part
//!   (`same_report_gives_the_same_bytes`).
//! - No text of a report can become markup (`text_never_becomes_markup`).
//! - A report read back from its JSON is the same
//!   (`json_reads_back_to_the_same_report`).
//! - The files look as agreed (`golden_report_is_unchanged`; run the tests
//!   with `UPDATE_GOLDEN=1` to accept a change).

use serde::{Deserialize, Serialize};

mod csv;
mod html;
pub mod metrics;
pub mod number;
pub mod plot;
pub mod published;
pub mod stats;
mod table;
#[cfg(test)]
#[cfg(feature = "png")]
mod tests;
pub mod theory;
mod write;

pub use plot::{Axis, Chart, Dots, Line, Lines, Mark, Matrix, Plot, PlotError, Scale, Series};
pub use table::{Align, Cell, Column, Highlight, Table, TableError, Value};
pub use write::{ReportError, WrittenFiles};

/// Format of `report.json`; raised when a reader of the old one would fail.
pub const FORMAT: u32 = 1;

/// A report: what was run, where, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// One line below it: what the report answers.
    pub subtitle: String,
    /// Names and values that one needs to repeat the run: machine, kernel,
    /// date, command line, seeds, versions. Shown in this order, where [`Block::Facts`] is or at
    /// the top.
    pub facts: Vec<(String, String)>,
    /// The content, in order.
    pub blocks: Vec<Block>,
}

/// One part of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// Starts a section.
    Heading(String),
    /// Plain text; an empty line starts a new paragraph.
    Prose(String),
    /// Something worth knowing about the results.
    Note(String),
    /// Something that limits what the results mean.
    Warning(String),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
    /// The report's facts, folded: without it they stand open before all blocks.
    Facts,
}

impl Report {
    /// An empty report.
    #[must_use]
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        let (title, subtitle) = (title.into(), subtitle.into());
        Self { title, subtitle, facts: Vec::new(), blocks: Vec::new() }
    }

    /// Adds a fact.
    pub fn fact(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.facts.push((name.into(), value.into()));
    }

    /// Adds a block.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Self {
        Self::Plot(plot)
    }
}
