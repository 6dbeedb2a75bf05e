//! Policies that need instructions and cycles alone, on machines of measured pairs: how much of what pairing can
//! gain they get, and how soon.
//!
//! No paper has this. The matrices are a user's own measurements, or others' (`--pairs FILE`); where none is given,
//! one is drawn in the proportions of real ones, which shows what policies do and not what they gain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_campaign::{Error, Experiment, FinishedRunOf, Progress, carry_out, digest};
use symbiont_experiments_sim::ShownMeasurements;
use symbiont_experiments_sim::code::CODE;
use symbiont_experiments_sim::measured_pairs::{
    Events, Matrix, Rival, Sums, Trial, candidates, captured, drawn_pairs,
};
use symbiont_policy::{Learned, LearnedBy, find};

use super::figure::{Drawing, Figure, Paper, Point};
use super::{Context, Effort, Reproduction, Source};

/// Policies on measured pairs.
#[derive(Debug)]
pub struct MeasuredPairs;

const FIGURES: &[Figure] = &[Figure {
    id: "symbiont-measured-pairs",
    paper: Paper::Symbiont,
    place: "learned",
    title: "Policies that need IPC alone, on pairs as they were measured, simulated",
    quantity: "Share captured of what the best pairing gains over all pairings on average",
    unit: None,
    neutral: Some(0.0),
    drawn: Drawing::Table,
    deviations: &[
        "Threads run at the slowdowns of a matrix of pairs; IPC alone is drawn, measurements err by 3 %, a new \
         co-runner costs 1 ms. Mixes are drawn with repeats.",
        "Two controls: measurements shuffled between programs, and co-runners that make no difference; what is lost \
         there is given in parts of the same headroom.",
    ],
}];

/// Programs of the matrix that is drawn, and its seed.
const DRAWN: (usize, u64) = (12, 7);
/// Policies that are the same as another one here, or need more from their user.
const LEFT_OUT: [&str; 3] = ["static", "phases", "phases-online"];

/// What happens meanwhile.
const SCENES: [&str; 4] =
    ["steady", "phases each 20 s", "arrivals each 10 s", "drift of 10 % a minute"];
const STEADY: &str = SCENES[0];

fn events(scene: &str) -> Events {
    let seconds = |s| Some(Duration::from_secs(s));
    match SCENES.iter().position(|known| *known == scene) {
        Some(1) => Events { phases: seconds(20), ..Events::default() },
        Some(2) => Events { arrivals: seconds(10), ..Events::default() },
        Some(3) => Events { drift: 0.1, ..Events::default() },
        _ => Events::default(),
    }
}

const LEARNED: &str = "learned";
const BY_THREAD: &str = "learned, each thread by itself";
const GREEDY: &str = "learned, nothing tried";
const SHUFFLED: &str = "learned, measurements shuffled";
const ALIKE: &str = "learned, co-runners make no difference";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MeasuredPairsRun {
    matrix: String,
    rival: String,
    threads: usize,
    scene: String,
    mix: u32,
}

impl fmt::Display for MeasuredPairsRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { matrix, rival, threads, scene, mix } = self;
        write!(f, "{rival}, {matrix}, {threads} threads, {scene}, mix {mix}")
    }
}

/// How much is run.
struct Size {
    mixes: u32,
    until: &'static [u64],
    threads: &'static [usize],
    scenes: &'static [&'static str],
}

const QUICK: Size = Size { mixes: 4, until: &[10, 30], threads: &[16], scenes: &[STEADY] };
const FULL: Size =
    Size { mixes: 20, until: &[10, 30, 120], threads: &[16, 8, 40], scenes: &SCENES };

struct Trials<'c> {
    matrices: BTreeMap<&'c str, &'c Matrix>,
    size: Size,
    seed: u64,
}

impl Trials<'_> {
    fn runs(&self) -> Vec<MeasuredPairsRun> {
        let mut runs = Vec::new();
        let usual = self.size.threads[0];
        for (name, matrix) in &self.matrices {
            let mut add = |rival: &str, threads, scene: &str| {
                let run = |mix| MeasuredPairsRun {
                    matrix: (*name).to_owned(),
                    rival: rival.to_owned(),
                    threads,
                    scene: scene.to_owned(),
                    mix,
                };
                runs.extend((0..self.size.mixes).map(run));
            };
            let others = candidates(matrix).map(|entry| entry.name);
            for rival in others.filter(|name| *name != LEARNED && !LEFT_OUT.contains(name)) {
                add(rival, usual, STEADY);
            }
            for rival in [GREEDY, SHUFFLED, ALIKE] {
                add(rival, usual, STEADY);
            }
            for rival in [LEARNED, BY_THREAD] {
                self.size.threads.iter().for_each(|threads| add(rival, *threads, STEADY));
                self.size.scenes.iter().skip(1).for_each(|scene| add(rival, usual, scene));
            }
        }
        runs
    }
}

fn rival(name: &str) -> Result<Rival, Error> {
    let policy = if name.starts_with(LEARNED) { LEARNED } else { name };
    let mut rival = Rival::new(find(policy).map_err(Error::evaluation)?);
    let settings = rival.settings.clone();
    match name {
        BY_THREAD => {
            let set = settings.with(&Learned::BY, &LearnedBy::Thread);
            rival.settings = set.map_err(Error::evaluation)?;
        }
        GREEDY => {
            let set = settings.with(&Learned::EXPLORE, &false);
            rival.settings = set.map_err(Error::evaluation)?;
        }
        SHUFFLED => rival.shown = ShownMeasurements::Shuffled,
        _ => {}
    }
    Ok(rival)
}

impl Experiment for Trials<'_> {
    type Run = MeasuredPairsRun;
    type Record = Vec<Sums>;

    fn name(&self) -> String {
        "symbiont-measured-pairs".to_owned()
    }

    fn basis(&self, run: &MeasuredPairsRun) -> String {
        let matrix = self.matrices.get(run.matrix.as_str());
        let slowdowns = format!("{:?}", matrix.map(|it| &it.slowdowns));
        digest(&[CODE, &slowdowns, &format!("{:?} {}", self.size.until, self.seed)])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<MeasuredPairsRun> {
        if done.is_empty() { self.runs() } else { Vec::new() }
    }

    fn carry_out(&self, run: &MeasuredPairsRun, _: &AtomicBool) -> Result<Vec<Sums>, Error> {
        let matrix = self.matrices.get(run.matrix.as_str()).copied();
        let matrix =
            matrix.ok_or_else(|| Error::evaluation(format!("no matrix {}", run.matrix)))?;
        let trial = Trial {
            matrix,
            interacts: run.rival != ALIKE,
            threads: run.threads,
            events: events(&run.scene),
            mixes: self.size.mixes,
            until: self.size.until.iter().map(|s| Duration::from_secs(*s)).collect(),
            seed: self.seed,
        };
        let sums = trial.mix(&rival(&run.rival)?, run.mix);
        sums.map_err(Error::evaluation)
    }

    fn cost(&self, run: &MeasuredPairsRun) -> Duration {
        let longest = self.size.until.last().copied().unwrap_or_default();
        Duration::from_micros(longest * 10 * 25 * run.threads as u64)
    }
}

impl Source for MeasuredPairs {
    fn name(&self) -> &'static str {
        "measured pairs, simulated"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduction, Error> {
        let drawn = drawn_pairs(DRAWN.0, DRAWN.1);
        let given: BTreeMap<&str, &Matrix> =
            context.pairs.iter().map(|(name, matrix)| (name.as_str(), matrix)).collect();
        let matrices = if given.is_empty() { [("drawn", &drawn)].into() } else { given };
        let size = match context.effort {
            Effort::Quick => QUICK,
            Effort::Full => FULL,
        };
        let trials = Trials { matrices, size, seed: context.seed };
        let done = carry_out(&trials, &context.records, context.workers, progress)?;
        let mut reproduced = Reproduction::default();
        let points = points(&trials, &done)?;
        reproduced.points.insert(FIGURES[0].id, points);
        for (name, matrix) in &trials.matrices {
            let what =
                format!("{} programs: {}", matrix.programs.len(), matrix.programs.join(", "));
            reproduced.facts.push(((*name).to_owned(), what));
        }
        Ok(reproduced)
    }
}

fn points(trials: &Trials<'_>, done: &[FinishedRunOf<Trials<'_>>]) -> Result<Vec<Point>, Error> {
    let mut mixes: Vec<(MeasuredPairsRun, Vec<Vec<Sums>>)> = Vec::new();
    for FinishedRunOf::<Trials<'_>> { run, record } in done {
        let run = MeasuredPairsRun { mix: 0, ..run.clone() };
        match mixes.iter_mut().find(|(known, _)| *known == run) {
            Some((_, all)) => all.push(record.clone()),
            None => mixes.push((run, vec![record.clone()])),
        }
    }
    let mut points = Vec::new();
    for (run, sums) in &mixes {
        for (at, until) in trials.size.until.iter().enumerate() {
            let estimate = captured(sums, at, trials.seed).map_err(Error::evaluation)?;
            let place =
                format!("{}, {} threads, {}, {until} s", run.matrix, run.threads, run.scene);
            let mut point = Point::new(&run.rival, place, estimate);
            if run.rival == LEARNED && run.scene == STEADY && run.threads == trials.size.threads[0]
            {
                for (without, rival) in [("own measurements", SHUFFLED), ("interaction", ALIKE)] {
                    let is_it = |(other, _): &&(MeasuredPairsRun, Vec<Vec<Sums>>)| {
                        *other == MeasuredPairsRun { rival: rival.to_owned(), ..run.clone() }
                    };
                    let control = mixes.iter().find(is_it);
                    point = point.control(
                        without,
                        control.and_then(|(_, sums)| captured(sums, at, trials.seed).ok()),
                    );
                }
            }
            points.push(point);
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_runs_on_each_matrix() {
        let drawn = [drawn_pairs(3, 1), drawn_pairs(4, 2)];
        let matrices = BTreeMap::from([("a", &drawn[0]), ("b", &drawn[1])]);
        let size = Size { mixes: 2, until: &[1, 2], ..QUICK };
        let trials = Trials { matrices, size, seed: 1 };
        let runs = trials.runs();
        for name in
            ["stay", "random", "never-twice", "auto", LEARNED, BY_THREAD, GREEDY, SHUFFLED, ALIKE]
        {
            for matrix in ["a", "b"] {
                let many =
                    runs.iter().filter(|run| run.rival == name && run.matrix == matrix).count();
                assert_eq!(many, 2, "{name} {matrix}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let done = carry_out(&trials, folder.path(), 2, &mut ()).unwrap();
        let points = points(&trials, &done).unwrap();
        assert_eq!(points.len(), runs.len());
        let learned = points.iter().find(|point| point.series == LEARNED).unwrap();
        assert_eq!(
            (learned.at.as_str(), learned.controls.len()),
            ("a, 16 threads, steady, 1 s", 2)
        );
        // They are kept.
        assert_eq!(carry_out(&trials, folder.path(), 1, &mut ()).unwrap(), done);
    }
}
