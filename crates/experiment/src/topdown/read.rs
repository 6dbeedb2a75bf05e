//! Reads the files of a series.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::TopdownError;

/// Shares of the slots, in the order of [`super::Level1::ALL`], 0 to 1.
pub type Shares = [f64; 4];

/// What was recorded of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The name of its folder.
    pub name: String,
    /// Counts of the whole run.
    pub counts: Counts,
    /// Level 1 as the file itself prints it, without contention.
    pub own: Shares,
    /// Level 1 of each second that was measured; empty without a series.
    pub seconds: Vec<Shares>,
}

/// Counts of a whole run, in slots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Counts {
    /// All slots.
    pub slots: f64,
    /// Of ops that retired.
    pub retiring: f64,
    /// That the front end left empty.
    pub frontend: f64,
    /// That the back end could not take.
    pub backend: f64,
    /// Of these, those that waited for memory.
    pub memory: f64,
    /// Of ops that did not retire.
    pub speculation: f64,
    /// That the other thread had.
    pub contention: f64,
}

/// Reads all programs of a folder, by name.
///
/// # Errors
/// The first file that cannot be understood, and where; or that there is none.
pub fn read(folder: &Path) -> Result<Vec<Program>, TopdownError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| TopdownError::Io { path, source }
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        let path = entry.map_err(io(folder))?.path();
        if path.join(TOTALS).is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    if folders.is_empty() {
        return Err(TopdownError::Empty(folder.to_owned()));
    }
    folders.iter().map(|folder| program(folder)).collect()
}

const TOTALS: &str = "ipc.topdown.txt";
const SERIES: &str = "amdtopdown.csv";

fn program(folder: &Path) -> Result<Program, TopdownError> {
    let totals = Totals::read(folder.join(TOTALS))?;
    let counts = Counts {
        slots: totals.line("slots")?.count,
        retiring: totals.line("retiring")?.count,
        frontend: totals.line("frontend")?.count,
        backend: totals.line("backend")?.count,
        memory: totals.line("-- memory")?.count,
        speculation: totals.line("speculation")?.count,
        contention: totals.line("smt-contention")?.count,
    };
    let own = |name| {
        let line = totals.line(name)?;
        line.own.ok_or_else(|| totals.wrong(line.at, "no percentage in parentheses"))
    };
    Ok(Program {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        counts,
        own: [own("retiring")?, own("frontend")?, own("backend")?, own("speculation")?],
        seconds: series(&folder.join(SERIES))?,
    })
}

/// The counts of a file.
struct Totals {
    path: PathBuf,
    lines: Vec<Line>,
}

/// `NAME  COUNT  # REMARK (OWN%)`
#[derive(Clone)]
struct Line {
    name: String,
    at: usize,
    count: f64,
    own: Option<f64>,
}

impl Totals {
    fn read(path: PathBuf) -> Result<Self, TopdownError> {
        let text = symbiont_input::read_to_string(&path)
            .map_err(|source| TopdownError::Io { path: path.clone(), source })?;
        let mut totals = Self { path, lines: Vec::new() };
        for (at, text) in (1..).zip(text.lines()) {
            let (what, remark) = text.split_once('#').unwrap_or((text, ""));
            let Some((name, count)) = what.trim().rsplit_once(char::is_whitespace) else {
                continue;
            };
            let count: f64 = count.parse().map_err(|_| totals.wrong(at, "not a count"))?;
            if !count.is_finite() || count < 0.0 {
                return Err(totals.wrong(at, "not a count"));
            }
            let own = remark.split_once('(').and_then(|(_, rest)| rest.split_once("%)"));
            let own = own.and_then(|(percent, _)| percent.trim().parse::<f64>().ok());
            let own = own.map(|percent| percent / 100.0);
            totals.lines.push(Line { name: name.trim().to_owned(), at, count, own });
        }
        Ok(totals)
    }

    fn line(&self, name: &'static str) -> Result<Line, TopdownError> {
        let found = self.lines.iter().find(|line| line.name == name).cloned();
        found.ok_or_else(|| TopdownError::Missing { path: self.path.clone(), name })
    }

    fn wrong(&self, line: usize, what: &str) -> TopdownError {
        TopdownError::Line { path: self.path.clone(), line, what: what.to_owned() }
    }
}

/// The seconds of a series. Rows without any share were not measured.
fn series(path: &Path) -> Result<Vec<Shares>, TopdownError> {
    let text = match symbiont_input::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(TopdownError::Io { path: path.to_owned(), source }),
    };
    let wrong = |line: usize, what: &str| TopdownError::Line {
        path: path.to_owned(),
        line,
        what: what.to_owned(),
    };
    let mut rows = (1..).zip(text.lines());
    let head = "time,retire,frontend,backend,speculate";
    if rows.next().is_none_or(|(_, first)| !first.trim().starts_with(head)) {
        return Err(wrong(1, &format!("the columns should be {head}")));
    }
    let mut seconds = Vec::new();
    for (at, row) in rows.filter(|(_, row)| !row.trim().is_empty()) {
        let cells: Result<Vec<f64>, _> =
            row.trim_end_matches(',').split(',').map(|cell| cell.trim().parse()).collect();
        let cells = cells.map_err(|_| wrong(at, "not a row of numbers"))?;
        let [_, shares @ ..] = &cells[..] else { return Err(wrong(at, "an empty row")) };
        let shares: Shares = shares.try_into().map_err(|_| wrong(at, "not five columns"))?;
        if shares.iter().any(|share| !(0.0..=101.0).contains(share)) {
            return Err(wrong(at, "not percentages"));
        }
        if shares.iter().sum::<f64>() > 0.0 {
            seconds.push(shares.map(|percent| percent / 100.0));
        }
    }
    Ok(seconds)
}
