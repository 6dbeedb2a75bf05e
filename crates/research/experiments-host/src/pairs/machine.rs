//! This machine as a bench: programs on two of its hardware threads.
//!
//! # Approach
//! Each program runs in a session of its own, limited to one hardware thread. Our own kernels run for the same time
//! from the same moment and count their work. Users' programs are repeated: where instructions and cycles can be
//! counted, `symbiont stat` counts both programs of a pair for a while; else the first runs once while the other is
//! repeated, and its CPU time is taken.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{self, TIMEOUT, scratch};
use serde::{Deserialize, Serialize};
use symbiont_campaign::{Error, digest};
use symbiont_linux::cpu_time_of_children;
use symbiont_report::number::time;
use symbiont_topology::PuId;

use super::campaign::Bench;
use super::evaluate::Speeds;
use super::kernels::Kernels;
use super::limit::AROUND;
use super::names::{NamedWork, Work};
use super::pinned::{PlacedProgram, at_once, joined, on};
use super::plan::{PairCell, Sides};
use crate::bench::noise::Watch;

#[cfg(test)]
mod tests;

/// Time in which repeated programs come to run before anything counts.
const SETTLE: Duration = Duration::from_millis(200);
/// A run of less CPU time is not compared.
const LEAST: Duration = Duration::from_millis(20);
/// Repeats the command $0, and writes its own number to the file $1.
const REPEAT: &str =
    r#"echo $$ >"$1.new" && mv "$1.new" "$1"; while sh -c "$0" >/dev/null; do :; done; exit 1"#;

/// Shall what runs be ended?
type Ends<'a> = &'a (dyn Fn() -> bool + Sync);

/// How speeds are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Work done by CPU time.
    Work,
    /// Instructions by cycle.
    Ipc,
    /// Whole runs by CPU time.
    CpuTime,
}

impl Method {
    /// What starting and ending programs takes for each measurement.
    #[must_use]
    pub fn around(self) -> Duration {
        match self {
            Self::Work => AROUND,
            // Programs that are repeated are ended, and come to run before anything counts.
            Self::Ipc | Self::CpuTime => AROUND + 2 * SETTLE,
        }
    }

    /// Of which programs of a pair it gives the speed.
    #[must_use]
    pub fn sides(self) -> Sides {
        match self {
            Self::Work | Self::Ipc => Sides::Both,
            Self::CpuTime => Sides::First,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Work => "work done per second of CPU time",
            Self::Ipc => "instructions per cycle",
            Self::CpuTime => "CPU time of one run, while the other program is repeated",
        })
    }
}

/// Programs on two hardware threads.
pub struct OnCore<'a> {
    /// Whose cells are measured.
    pub programs: &'a [NamedWork],
    /// By which means.
    pub method: Method,
    /// The two hardware threads.
    pub cpus: [PuId; 2],
    /// `symbiont`.
    pub symbiont: PathBuf,
    /// Kernels, with the window of all measurements, and the folder for the files of a run.
    pub kernels: Kernels,
    /// A run takes longer than this: it is ended.
    pub most: Duration,
    /// What all measurements follow from.
    pub basis: String,
    /// How long each program runs alone, where whole runs are measured and that is known.
    pub alone: BTreeMap<String, Duration>,
}

impl OnCore<'_> {
    /// The command line of a program; of a kernel, its name.
    fn work(&self, name: &str) -> &str {
        match self.programs.iter().find(|program| program.name == name).map(|it| &it.work) {
            Some(Work::Command(command)) => command,
            _ => "",
        }
    }

    /// Counts both programs, which are repeated, for a while.
    fn count(&self, placed: &[PlacedProgram<'_>], stop: &AtomicBool) -> Result<Vec<f64>, Error> {
        let folder = scratch(&self.kernels.folder)?;
        let pid_file = |at: usize| folder.path().join(format!("{at}.pid"));
        self.while_repeated(placed, &pid_file, stop, &|over| {
            std::thread::sleep(SETTLE);
            let one = |at: usize, (command, _): PlacedProgram<'_>| {
                let file = |kind: &str| folder.path().join(format!("{at}.{kind}"));
                let pid =
                    std::fs::read_to_string(pid_file(at)).map_err(Error::io(&pid_file(at)))?;
                let counts = file("counts");
                let words = [
                    self.symbiont.display().to_string(),
                    "stat".to_owned(),
                    "--json".to_owned(),
                    "--formula=ipc".to_owned(),
                    format!("--output={}", counts.display()),
                    format!("--limit={}us", self.kernels.window.as_micros()),
                    format!("--pid={}", pid.trim()),
                ];
                let limit = self.kernels.window + TIMEOUT;
                harness::run(&words, &file("out"), &file("err"), limit, over)?;
                let text = std::fs::read_to_string(&counts).map_err(Error::io(&counts))?;
                counted(&text).map_err(Error::json(&counts))?.ok_or_else(|| {
                    Error::evaluation(format!(
                        "instructions and cycles of `{command}` were not counted"
                    ))
                })
            };
            at_once(placed, &one)
        })
    }

    /// CPU time of a run, while the others are repeated.
    fn time(&self, placed: &[PlacedProgram<'_>], stop: &AtomicBool) -> Result<f64, Error> {
        let Some((&(command, cpu), others)) = placed.split_first() else { return Ok(f64::NAN) };
        let folder = scratch(&self.kernels.folder)?;
        let pid_file = |at: usize| folder.path().join(format!("{at}.pid"));
        let cpu_time = || cpu_time_of_children().map_err(Error::io("/proc/self".as_ref()));
        self.while_repeated(others, &pid_file, stop, &|over| {
            if !others.is_empty() {
                std::thread::sleep(SETTLE);
            }
            let before = cpu_time()?;
            let words = ["sh", "-c", command].map(str::to_owned);
            let (out, err) = (folder.path().join("out"), folder.path().join("err"));
            // What is repeated is not waited for yet, so that its time does not count.
            on(cpu, || harness::run(&words, &out, &err, self.most, over))?;
            compared(command, cpu_time()?.saturating_sub(before))
        })
    }

    /// Does something while programs are repeated, and ends them.
    fn while_repeated<T>(
        &self,
        placed: &[PlacedProgram<'_>],
        pid_file: &(dyn Fn(usize) -> PathBuf + Sync),
        stop: &AtomicBool,
        work: &dyn Fn(Ends<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let over = AtomicBool::new(false);
        let ends = || over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let repeat = |at: usize, (command, cpu): PlacedProgram<'_>| {
            let pid = pid_file(at);
            let words =
                ["sh", "-c", REPEAT, command, &pid.display().to_string()].map(str::to_owned);
            let (out, err) = (pid.with_extension("repeated"), pid.with_extension("failed"));
            let ended = on(cpu, || harness::run(&words, &out, &err, self.most, &ends));
            over.store(true, Ordering::Relaxed);
            match ended {
                Err(Error::Cancelled) => Ok(()),
                Err(Error::Failed { status, stderr, .. }) => {
                    Err(Error::Failed { program: command.to_owned(), status, stderr })
                }
                other => other.map(drop),
            }
        };
        std::thread::scope(|scope| {
            let repeated = scope.spawn(|| at_once(placed, &repeat));
            let began = || (0..placed.len()).all(|at| pid_file(at).exists());
            while !began() && !ends() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let did = work(&ends);
            over.store(true, Ordering::Relaxed);
            // Where one fails, that is why the work was ended.
            joined(repeated).and(did)
        })
    }
}

/// The speed of a run that took so much CPU time.
fn compared(command: &str, took: Duration) -> Result<f64, Error> {
    if took < LEAST {
        return Err(Error::evaluation(format!(
            "`{command}` takes {} of CPU time; at least {} can be compared",
            time(took),
            time(LEAST)
        )));
    }
    Ok(1.0 / took.as_secs_f64())
}

/// Instructions per cycle as `symbiont stat --json` reports them at last.
fn counted(text: &str) -> Result<Option<f64>, serde_json::Error> {
    let last = text.lines().last().unwrap_or_default();
    let account: serde_json::Value = serde_json::from_str(last)?;
    let ipc = account.pointer("/all/values/ipc/value").and_then(serde_json::Value::as_f64);
    Ok(ipc.filter(|ipc| *ipc > 0.0))
}

impl Bench for OnCore<'_> {
    type Cell = PairCell;

    fn name(&self) -> String {
        "programs".to_owned()
    }

    fn basis(&self, cell: &PairCell) -> String {
        let names = std::iter::once(&cell.program).chain(&cell.co_runner);
        let mut parts = vec![
            self.basis.clone(),
            format!("{:?} {:?}", self.method, self.cpus),
            format!("{:?}", self.kernels.window),
        ];
        parts.extend(names.map(|name| self.work(name).to_owned()));
        digest(&parts.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn measure(&self, cell: &PairCell, stop: &AtomicBool) -> Result<Speeds, Error> {
        let names: Vec<&str> =
            std::iter::once(&cell.program).chain(&cell.co_runner).map(String::as_str).collect();
        if self.method == Method::Work {
            let placed: Vec<_> = names.into_iter().zip(self.cpus).collect();
            return self.kernels.run(&placed, stop);
        }
        let placed: Vec<_> = names.into_iter().map(|it| self.work(it)).zip(self.cpus).collect();
        let (watch, begin) = (Watch::begin(), Instant::now());
        let (first, second) = match self.method {
            Method::CpuTime => (self.time(&placed, stop)?, None),
            _ => {
                let mut speeds = self.count(&placed, stop)?.into_iter();
                (speeds.next().unwrap_or(f64::NAN), speeds.next())
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Speeds { first, second, seconds, noise: watch.end(Duration::ZERO) })
    }

    fn cost(&self, cell: &PairCell) -> Duration {
        let whole = self.alone.get(&cell.program);
        whole.map_or(self.kernels.window, |alone| {
            *alone * if cell.co_runner.is_some() { 2 } else { 1 }
        }) + self.method.around()
    }
}
