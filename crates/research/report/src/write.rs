//! The files of a report.

#[cfg(feature = "png")]
use super::plot::png;
use super::plot::{PlotError, standalone};
use super::{Block, FORMAT, Report, TableError, csv, html};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a report was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFiles {
    /// The page.
    pub index: PathBuf,
    /// All files, the page among them.
    pub files: Vec<PathBuf>,
}

/// A report that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// An id that can't name a file.
    #[error("block id {0:?}: use lower-case letters, digits and hyphens")]
    Id(String),
    /// Two blocks would write the same files.
    #[error("two blocks have the id {0:?}")]
    Duplicate(String),
    /// A table whose rows don't fit.
    #[error("table {id:?}: {source}")]
    Table {
        /// The block's id.
        id: String,
        /// What is wrong.
        source: TableError,
    },
    /// A plot that can't be drawn.
    #[error("plot {id:?}: {source}")]
    Plot {
        /// The block's id.
        id: String,
        /// What is wrong.
        source: PlotError,
    },
    /// A file or directory that can't be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not the JSON of a report.
    #[error("not a report: {0}")]
    Json(#[from] serde_json::Error),
    /// A report of a later version.
    #[error("report format {0} is not known here; this version reads {FORMAT}")]
    Format(u32),
}

/// What `report.json` holds.
#[derive(Serialize, Deserialize)]
struct Stored<R> {
    format: u32,
    report: R,
}

impl Report {
    /// Writes page, pictures and data into `directory`, which is made if it is
    /// not there. Files of the same names are replaced, others left alone.
    pub fn write(&self, directory: &Path) -> Result<WrittenFiles, ReportError> {
        let mut files = vec![("index.html".to_owned(), self.html()?.into_bytes())];
        for block in &self.blocks {
            match block {
                Block::Table(table) => {
                    files.push((format!("{}.csv", table.id), csv::csv(table).into_bytes()));
                }
                Block::Plot(plot) => {
                    let failed = |source| ReportError::Plot { id: plot.id.clone(), source };
                    let svg = standalone(&plot.draw().map_err(failed)?);
                    #[cfg(feature = "png")]
                    files.push((format!("{}.png", plot.id), png(&svg).map_err(failed)?));
                    files.push((format!("{}.svg", plot.id), svg.into_bytes()));
                    files.push((format!("{}.csv", plot.id), csv::csv(&plot.data()).into_bytes()));
                }
                _ => {}
            }
        }
        files.push(("report.json".to_owned(), self.to_json()?.into_bytes()));
        store(directory, &files)
    }

    /// The page alone.
    pub fn html(&self) -> Result<String, ReportError> {
        self.check()?;
        html::page(self)
    }

    /// The report as `report.json` holds it.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let stored = Stored { format: FORMAT, report: self };
        Ok(serde_json::to_string_pretty(&stored)? + "\n")
    }

    /// Reads what [`Self::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let stored: Stored<serde_json::Value> = serde_json::from_str(text)?;
        if stored.format != FORMAT {
            return Err(ReportError::Format(stored.format));
        }
        Ok(serde_json::from_value(stored.report)?)
    }

    /// Whether every block can be written.
    fn check(&self) -> Result<(), ReportError> {
        let mut ids = BTreeSet::from(["index", "report"]);
        for block in &self.blocks {
            let id = match block {
                Block::Table(table) => {
                    let failed = |source| ReportError::Table { id: table.id.clone(), source };
                    table.check().map_err(failed)?;
                    &table.id
                }
                Block::Plot(plot) => &plot.id,
                _ => continue,
            };
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if id.is_empty() || id.len() > 80 || !id.chars().all(allowed) {
                return Err(ReportError::Id(id.clone()));
            }
            if !ids.insert(id) {
                return Err(ReportError::Duplicate(id.clone()));
            }
        }
        Ok(())
    }
}

fn store(directory: &Path, files: &[(String, Vec<u8>)]) -> Result<WrittenFiles, ReportError> {
    let failed = |path: &Path, source| ReportError::Io { path: path.to_owned(), source };
    fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
    let mut written = Vec::new();
    for (name, bytes) in files {
        let path = directory.join(name);
        fs::write(&path, bytes).map_err(|source| failed(&path, source))?;
        written.push(path);
    }
    Ok(WrittenFiles { index: directory.join("index.html"), files: written })
}
