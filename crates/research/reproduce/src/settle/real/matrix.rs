//! Slowdowns of the programs in pairs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::on_cpus;
use super::programs::{PROGRAMS, Program};
use crate::figure::Point;
use symbiont_campaign::{Error, InRound, digest};
use symbiont_experiments_host::harness::{self, Measure, MeasuredRun, RunFolder};
use symbiont_report::stats::{StatsError, mean, mean_estimate};

/// Time that a run may take.
const LIMIT: Duration = Duration::from_secs(120);

/// One program, or two at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatrixCell {
    programs: Vec<String>,
}

impl MatrixCell {
    /// Of these programs.
    pub fn of(programs: &[&str]) -> Self {
        Self { programs: programs.iter().map(|&name| name.to_owned()).collect() }
    }
}

impl fmt::Display for MatrixCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.programs.join(" + "))
    }
}

/// The programs alone and in pairs, each on a hardware thread of its own.
pub struct Matrix<'a> {
    /// Folder of the programs.
    pub folder: PathBuf,
    /// Those that run.
    pub programs: &'a [Program],
    /// Their hardware threads.
    pub cpus: [u32; 2],
}

/// Half of the usual repetitions.
fn repeats(program: &Program) -> u32 {
    program.repeats.div_ceil(2)
}

impl Matrix<'_> {
    fn run(
        &self,
        at: usize,
        name: &str,
        place: &RunFolder<'_>,
        over: &AtomicBool,
    ) -> Result<f64, Error> {
        let unknown = || Error::evaluation(format!("no program is called {name}"));
        let program = PROGRAMS.iter().find(|it| it.name == name).ok_or_else(unknown)?;
        let mut words = on_cpus(&[self.cpus.get(at).copied().unwrap_or_default()]);
        words.extend(["env".to_owned(), format!("REPEATS={}", repeats(program))]);
        words.extend(program.words(&self.folder));
        let file = |what: &str| place.file(&format!("{what}-{at}"));
        let stopped = || over.load(Ordering::Relaxed) || place.cancelled();
        let wall = harness::run(&words, &file("out"), &file("err"), LIMIT, &stopped)?;
        Ok(wall.as_secs_f64())
    }

    /// The time of one of two programs; then it runs again until the other one has ended, too.
    fn co_run(
        &self,
        at: usize,
        cell: &MatrixCell,
        place: &RunFolder<'_>,
        ended: &[AtomicBool; 2],
    ) -> Result<f64, Error> {
        let name = cell.programs.get(at).map_or("", String::as_str);
        let first = self.run(at, name, place, &AtomicBool::new(false));
        let [one, two] = ended;
        let (own, other) = if at == 0 { (one, two) } else { (two, one) };
        own.store(true, Ordering::Relaxed);
        while first.is_ok() && !other.load(Ordering::Relaxed) {
            match self.run(at, name, place, other) {
                Err(Error::Cancelled) if other.load(Ordering::Relaxed) => break,
                again => again.map(drop)?,
            }
        }
        first
    }
}

impl Measure for Matrix<'_> {
    type Cell = MatrixCell;
    type Record = Vec<f64>;

    const NAME: &'static str = "settle-real-matrix";

    fn cells(&self) -> Vec<MatrixCell> {
        let names: Vec<&str> = self.programs.iter().map(|program| program.name).collect();
        let alone = names.iter().map(|name| MatrixCell::of(&[name]));
        let pairs = names.iter().enumerate().flat_map(|(at, one)| {
            names.iter().skip(at).map(move |other| MatrixCell::of(&[one, other]))
        });
        alone.chain(pairs).collect()
    }

    fn options(&self) -> String {
        digest(&[&format!("{:?}", self.cpus), &format!("{PROGRAMS:?}")])
    }

    fn measure(&self, run: &InRound<MatrixCell>, place: &RunFolder<'_>) -> Result<Vec<f64>, Error> {
        let cell = &run.cell;
        let [alone] = &cell.programs[..] else {
            let ended = [AtomicBool::new(false), AtomicBool::new(false)];
            let run = |at| self.co_run(at, cell, place, &ended);
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(|| run(1));
                let one = run(0);
                // A panic of its thread would be one of this crate's.
                (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            return Ok(vec![one?, other?]);
        };
        Ok(vec![self.run(0, alone, place, &AtomicBool::new(false))?])
    }

    fn cost(&self, _: &MatrixCell) -> Duration {
        Duration::from_millis(1500)
    }
}

/// Seconds of each program alone, with the repetitions of this experiment, by round.
type Alone = BTreeMap<(u32, String), f64>;

fn alone(done: &[MeasuredRun<Matrix<'_>>]) -> Alone {
    let one = |done: &MeasuredRun<Matrix<'_>>| match (&done.run.cell.programs[..], &done.record[..])
    {
        ([name], [seconds]) => Some(((done.run.round, name.clone()), *seconds)),
        _ => None,
    };
    done.iter().filter_map(one).collect()
}

/// Seconds that one repetition of each program takes alone.
pub fn seconds(done: &[MeasuredRun<Matrix<'_>>]) -> BTreeMap<String, f64> {
    let alone = alone(done);
    let of = |program: &Program| {
        let all = alone.iter().filter(|((_, name), _)| name == program.name);
        let all: Vec<f64> = all.map(|(_, seconds)| seconds / f64::from(repeats(program))).collect();
        Some((program.name.to_owned(), mean(&all)?))
    };
    PROGRAMS.iter().filter_map(of).collect()
}

/// Time of each program co-running with each, over that alone in the same round.
pub fn points(done: &[MeasuredRun<Matrix<'_>>]) -> Result<Vec<Point>, StatsError> {
    let alone = alone(done);
    let mut slowdowns: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for done in done {
        let ([one, other], [first, second]) = (&done.run.cell.programs[..], &done.record[..])
        else {
            continue;
        };
        // Two of one program are one observation.
        let twins = [(one, other, (first + second) / 2.0)];
        let apart = [(one, other, *first), (other, one, *second)];
        for &(victim, co_runner, seconds) in if one == other { &twins[..] } else { &apart } {
            let Some(own) = alone.get(&(done.run.round, victim.clone())) else { continue };
            slowdowns.entry((victim.clone(), co_runner.clone())).or_default().push(seconds / own);
        }
    }
    let point = |((victim, co_runner), all): (&(String, String), &Vec<f64>)| {
        Ok(Point::new(victim.as_str(), co_runner.as_str(), mean_estimate(all)?))
    };
    slowdowns.iter().map(point).collect()
}
