//! What WorkOver costs on this machine: SciMark's kernels on threads that live on, alone and managed by the
//! daemon (section 5: under 2 %).
//!
//! Rounds of both are run until the interval of the difference is narrow. Each managed run has a daemon of
//! its own; in the place of floating-point operations it counts page faults, as machines without hardware
//! counters have those. A run whose results are not those of the run alone, or not all of whose threads were
//! enrolled, is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::campaign::{Decision, Done, Experiment, Repeats, carry_out, digest};
use crate::harness::{self, Error, Machine, Programs, Progress, read_json};
use crate::reproduce::figure::{Drawn, Figure, Paper, Point};
use crate::reproduce::{Context, Effort, Reproduced, Source};
use crate::stats::mean_estimate;

/// The daemon's cost, measured.
#[derive(Debug)]
pub struct Overhead;

const SOURCE: &str = include_str!("../../../../../programs/src/kernels.c");
const STAND_IN: &str = include_str!("stand-in.toml");
/// Time that building, a run, or the start of a daemon may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How often all threads run all kernels in a run: some seconds.
const WORK: u32 = 300;

const FIGURES: &[Figure] = &[Figure {
    id: "peternier-overhead",
    paper: Paper::Peternier,
    place: "section 5",
    title: "Time of SciMark managed by the daemon over alone, measured",
    quantity: "Time over that alone",
    unit: Some("%"),
    neutral: None,
    drawn: Drawn::Table,
    deviations: &[
        "On this machine. The paper states less than 2 %, no figure; 2 stands for that. Page faults are \
         counted in the place of floating-point operations, so that no thread is placed for its use of them.",
    ],
}];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Alone,
    Managed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Run {
    round: u32,
    how: How,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "round {}, {:?}", self.round + 1, self.how)
    }
}

/// What the program reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Told {
    seconds: f64,
    kernels: Vec<Kernel>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kernel {
    name: String,
    result: f64,
}

/// The part of `symbiont status --json` that is read.
#[derive(Deserialize)]
struct Status {
    programs: Vec<Enrolled>,
}

#[derive(Deserialize)]
struct Enrolled {
    threads: u32,
}

struct Trial {
    symbiont: PathBuf,
    kernels: PathBuf,
    folder: PathBuf,
    machine: Machine,
    repeats: Repeats,
}

impl Trial {
    fn words(&self) -> Vec<String> {
        let (threads, rounds) = (self.machine.cpus.to_string(), WORK.to_string());
        [self.kernels.display().to_string(), "threads".into(), threads, rounds, "1".into()].into()
    }

    fn symbiont(&self, words: &[&str], state: &Path) -> Vec<String> {
        let own = self.symbiont.display().to_string();
        let state = format!("--state-dir={}", state.display());
        let words = words.iter().map(|word| (*word).to_owned());
        [own].into_iter().chain(words).chain([state]).collect()
    }

    /// The program, with the threads of it that the daemon knew meanwhile.
    fn managed(&self, folder: &Path, stop: &AtomicBool) -> Result<Told, Error> {
        let file = |name: &str| folder.join(name);
        let (state, config, catalogue) =
            (file("state"), file("config.toml"), file("stand-in.toml"));
        let text = format!("policy = \"fpu\"\ncatalogue = {:?}\n", catalogue.display().to_string());
        fs::write(&config, text).map_err(Error::io(&config))?;
        fs::write(&catalogue, STAND_IN).map_err(Error::io(&catalogue))?;
        let over = AtomicBool::new(false);
        let daemon = self.symbiont(&["daemon", "--config", &config.display().to_string()], &state);
        let mut program = self.symbiont(&["run"], &state);
        program.push("--".to_owned());
        program.extend(self.words());
        let (out, err) = (file("program.out"), file("program.err"));
        let enrolled = std::thread::scope(|scope| {
            let serve = || {
                let ends = || over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                match harness::run(&daemon, &file("daemon.out"), &file("daemon.err"), LIMIT, &ends)
                {
                    Err(Error::Cancelled) => Ok(()),
                    other => other.map(drop),
                }
            };
            let serving = scope.spawn(serve);
            let socket = state.join("symbiontd.sock");
            let listens = || std::os::unix::net::UnixStream::connect(&socket).is_ok();
            let begin = Instant::now();
            while !listens() && begin.elapsed() < LIMIT && !serving.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let running = scope.spawn(|| {
                harness::run(&program, &out, &err, LIMIT, &|| stop.load(Ordering::Relaxed))
            });
            let mut most: Result<u32, Error> = Ok(0);
            while !running.is_finished() && most.is_ok() {
                std::thread::sleep(Duration::from_millis(300));
                most = most.and_then(|most: u32| Ok(most.max(self.enrolled(folder, &state)?)));
            }
            over.store(true, Ordering::Relaxed);
            // A panic of theirs would be one of this crate's.
            let joined = running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            joined?;
            most
        })?;
        // One more waits for the others.
        if enrolled < self.machine.cpus + 1 {
            let why = format!("{enrolled} of {} threads were enrolled", self.machine.cpus + 1);
            return Err(Error::Unmanaged(why));
        }
        read_json(&out)
    }

    /// Threads that the daemon manages now.
    fn enrolled(&self, folder: &Path, state: &Path) -> Result<u32, Error> {
        let (out, err) = (folder.join("status.json"), folder.join("status.err"));
        harness::run(&self.symbiont(&["status", "--json"], state), &out, &err, LIMIT, &|| false)?;
        let status: Status = read_json(&out)?;
        Ok(status.programs.iter().map(|program| program.threads).sum())
    }
}

/// What managing adds in each round, as a share of the time alone.
fn added(done: &[Done<Trial>]) -> Vec<f64> {
    let of = |round: u32, how: How| {
        let found = done.iter().find(|done| (done.run.round, done.run.how) == (round, how));
        found.map(|done| done.record.seconds)
    };
    let rounds = done.iter().map(|done| done.run.round + 1).max().unwrap_or(0);
    let added = |round| Some(of(round, How::Managed)? / of(round, How::Alone)? - 1.0);
    (0..rounds).filter_map(added).collect()
}

impl Experiment for Trial {
    type Run = Run;
    type Record = Told;

    fn name(&self) -> String {
        "peternier-overhead".to_owned()
    }

    fn basis(&self, _: &Run) -> String {
        let kernel = self.machine.kernel.clone().unwrap_or_default();
        let settings = format!("{} {WORK}", self.machine.cpus);
        digest(&[env!("CARGO_PKG_VERSION"), &kernel, &settings, SOURCE])
    }

    fn next(&self, done: &[Done<Self>]) -> Vec<Run> {
        let rounds = (done.len() / 2) as u32;
        let decided = || self.repeats.decide(&added(done)) != Decision::Undecided;
        let wanted = self.repeats.wanted(rounds, decided);
        // Each comes first in turn.
        let order = |round: u32| match round % 2 {
            0 => [How::Alone, How::Managed],
            _ => [How::Managed, How::Alone],
        };
        (rounds..wanted).flat_map(|round| order(round).map(|how| Run { round, how })).collect()
    }

    fn carry_out(&self, run: &Run, stop: &AtomicBool) -> Result<Told, Error> {
        let scratch = tempfile::Builder::new().prefix("running-").tempdir_in(&self.folder);
        let scratch = scratch.map_err(Error::io(&self.folder))?;
        if run.how == How::Managed {
            return self.managed(scratch.path(), stop);
        }
        let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
        harness::run(&self.words(), &out, &err, LIMIT, &|| stop.load(Ordering::Relaxed))?;
        read_json(&out)
    }

    fn cost(&self, _: &Run) -> Duration {
        Duration::from_secs(5)
    }
}

impl Source for Overhead {
    fn name(&self) -> &'static str {
        "the daemon under SciMark, on this machine"
    }

    fn figures(&self) -> &'static [Figure] {
        FIGURES
    }

    fn simulated(&self) -> bool {
        false
    }

    fn reproduce(
        &self,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Reproduced, Error> {
        fs::create_dir_all(&context.records).map_err(Error::io(&context.records))?;
        let folder = fs::canonicalize(&context.records).map_err(Error::io(&context.records))?;
        let (source, kernels) = (folder.join("kernels.c"), folder.join("kernels"));
        fs::write(&source, SOURCE).map_err(Error::io(&source))?;
        let words = ["cc", "-O2", "-o"].map(str::to_owned).into_iter();
        let words = words.chain([kernels.display().to_string(), source.display().to_string()]);
        let words: Vec<String> = words.chain(["-lm", "-pthread"].map(str::to_owned)).collect();
        let (out, err) = (folder.join("cc.out"), folder.join("cc.err"));
        harness::run(&words, &out, &err, LIMIT, &|| progress.cancelled())?;
        let quick = context.effort == Effort::Quick;
        let trial = Trial {
            symbiont: Programs::beside_this_one()?.symbiont,
            kernels,
            folder,
            machine: Machine::read(),
            repeats: Repeats { least: 4, most: if quick { 4 } else { 16 }, narrow: 0.005 },
        };
        let done = carry_out(&trial, &context.records, 1, progress)?;
        let first = done.first().map(|done| &done.record.kernels);
        if done.iter().any(|done| Some(&done.record.kernels) != first) {
            return Err(Error::WrongOutput { program: "kernels".to_owned() });
        }
        let failed = |error: crate::stats::StatsError| Error::Evaluation(error.to_string());
        let added = mean_estimate(&added(&done)).map_err(failed)?.percent();
        let at = format!("{} threads", trial.machine.cpus);
        let point = Point::new("time of all kernels", at, added).published(Some(2.0));
        let mut reproduced = Reproduced { facts: trial.machine.facts(), ..Reproduced::default() };
        reproduced.points.insert(FIGURES[0].id, vec![point]);
        Ok(reproduced)
    }
}
