//! What WorkOver costs on this machine: SciMark's kernels on threads that live on, alone and managed by the
//! daemon (section 5: under 2 %).
//!
//! Rounds of both are run until the interval of the difference is narrow. Each managed run has a daemon of
//! its own; in the place of floating-point operations it counts page faults, as machines without hardware
//! counters have those. Before the run that is timed a short one under the same daemon shows that all
//! threads are enrolled: to ask meanwhile would cost more than what is measured. A run whose results are
//! not those of the others is an error.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figure::{Drawing, Figure, Paper, Point};
use crate::{Context, Effort, Reproduction, Source};
use symbiont_campaign::{Decision, Error, InRound, Progress, Repeats, digest, read_json};
use symbiont_experiments_host::harness::{
    self, Daemon, Measure, MeasuredRun, Programs, RunFolder, Site, TIMEOUT,
};
use symbiont_report::stats::mean_estimate;

/// The daemon's cost, measured.
#[derive(Debug)]
pub struct Overhead;

const SOURCE: &str = include_str!("../../../../../programs/src/kernels.c");
const STAND_IN: &str = include_str!("stand-in.toml");
/// How often all threads run all kernels in a run that is timed: some seconds.
const ROUNDS: u32 = 800;
/// And in one in which only enrolment is looked at.
const SHORT: u32 = 400;
/// Time that building, or a run, may take.
const LIMIT: Duration = Duration::from_secs(120);

const FIGURES: &[Figure] = &[Figure {
    id: "peternier-overhead",
    paper: Paper::Peternier,
    place: "section 5",
    title: "Time of SciMark managed by the daemon over alone, measured",
    quantity: "Time over that alone",
    unit: Some("%"),
    neutral: None,
    drawn: Drawing::Table,
    deviations: &[
        "On this machine; the paper says that it is less than 2 %. Page faults are counted in the place of \
         floating-point operations, so that no thread is placed for its use of them.",
    ],
}];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Case {
    Alone,
    Managed,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone => "alone",
            Self::Managed => "managed",
        })
    }
}

/// What the program reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Report {
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
    repeats: Repeats,
}

impl Trial {
    /// The program, with this many threads.
    fn words(&self, threads: u32, rounds: u32) -> Vec<String> {
        let kernels = self.kernels.display().to_string();
        vec![kernels, "threads".into(), threads.to_string(), rounds.to_string(), "1".into()]
    }

    /// Under a daemon: once to see that all threads are enrolled, and once to time it.
    fn managed(&self, place: &RunFolder<'_>, out: &Path) -> Result<(), Error> {
        let catalogue = place.file("stand-in.toml");
        fs::write(&catalogue, STAND_IN).map_err(Error::io(&catalogue))?;
        let settings =
            format!("policy = \"fpu\"\ncatalogue = {:?}\n", catalogue.display().to_string());
        let daemon = Daemon::new(&self.symbiont, place.folder());
        let threads = place.machine.cpus;
        let run = |rounds: u32| {
            let mut words = daemon.command("run");
            words.push("--".to_owned());
            words.extend(self.words(threads, rounds));
            words
        };
        daemon.serve(&settings, 2 * LIMIT + TIMEOUT, &|| place.cancelled(), || {
            let over = AtomicBool::new(false);
            let enrolled = std::thread::scope(|scope| {
                let asking = scope.spawn(|| most_enrolled(&daemon, place, &over));
                let ran = place.run(&run(SHORT), &place.file("short.out"), LIMIT);
                over.store(true, Ordering::Relaxed);
                // A panic of its thread would be one of this crate's.
                let asked = asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                ran.and(asked)
            })?;
            // One more waits for the others.
            if enrolled < threads + 1 {
                let why = format!("{enrolled} of {} threads were enrolled", threads + 1);
                return Err(Error::Unmanaged(why));
            }
            place.run(&run(ROUNDS), out, LIMIT).map(drop)
        })
    }
}

/// The most threads that the daemon managed at a time.
fn most_enrolled(daemon: &Daemon, place: &RunFolder<'_>, over: &AtomicBool) -> Result<u32, Error> {
    let mut words = daemon.command("status");
    words.push("--json".to_owned());
    let (out, err) = (place.file("status.json"), place.file("status.err"));
    let mut most = 0;
    while !over.load(Ordering::Relaxed) {
        harness::run(&words, &out, &err, LIMIT, &|| place.cancelled())?;
        let status: Status = read_json(&out)?;
        most = most.max(status.programs.iter().map(|program| program.threads).sum());
    }
    Ok(most)
}

/// What managing adds in each round, as a share of the time alone.
fn added(done: &[MeasuredRun<Trial>]) -> Vec<f64> {
    let seconds = |case: Case| {
        let of_case = done.iter().filter(move |done| done.run.cell == case);
        of_case.map(|done| done.record.seconds)
    };
    seconds(Case::Managed).zip(seconds(Case::Alone)).map(|(own, alone)| own / alone - 1.0).collect()
}

impl Measure for Trial {
    type Cell = Case;
    type Record = Report;

    const NAME: &'static str = "peternier-overhead";

    fn cells(&self) -> Vec<Case> {
        vec![Case::Alone, Case::Managed]
    }

    fn options(&self) -> String {
        digest(&[&ROUNDS.to_string(), SOURCE, STAND_IN])
    }

    fn decided(&self, done: &[MeasuredRun<Self>]) -> bool {
        self.repeats.decide(&added(done)) != Decision::Undecided
    }

    fn measure(&self, run: &InRound<Case>, place: &RunFolder<'_>) -> Result<Report, Error> {
        let out = place.file("report.json");
        match run.cell {
            Case::Managed => self.managed(place, &out)?,
            Case::Alone => {
                place.run(&self.words(place.machine.cpus, ROUNDS), &out, LIMIT)?;
            }
        }
        read_json(&out)
    }

    fn cost(&self, cell: &Case) -> Duration {
        Duration::from_secs(if *cell == Case::Managed { 9 } else { 6 })
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
    ) -> Result<Reproduction, Error> {
        let quick = context.effort == Effort::Quick;
        let repeats = Repeats { least: 4, most: if quick { 4 } else { 16 }, narrow: 0.01 };
        let site = Site::new(&context.records, repeats, context.seed)?;
        let (source, kernels) = (site.folder.join("kernels.c"), site.folder.join("kernels"));
        fs::write(&source, SOURCE).map_err(Error::io(&source))?;
        let words = ["cc", "-O2", "-o"].map(str::to_owned).into_iter();
        let words = words.chain([kernels.display().to_string(), source.display().to_string()]);
        let words: Vec<String> = words.chain(["-lm", "-pthread"].map(str::to_owned)).collect();
        let (out, err) = (site.folder.join("cc.out"), site.folder.join("cc.err"));
        harness::run(&words, &out, &err, LIMIT, &|| progress.cancelled())?;
        let trial = Trial { symbiont: Programs::next_to_this_one()?.symbiont, kernels, repeats };
        let done = site.carry_out(&trial, progress)?;
        let first = done.first().map(|done| &done.record.kernels);
        if done.iter().any(|done| Some(&done.record.kernels) != first) {
            return Err(Error::WrongOutput { program: "kernels".to_owned() });
        }
        let added = mean_estimate(&added(&done))?.percent();
        let at = format!("{} threads", site.machine.cpus);
        let point = Point::new("time of all kernels", at, added);
        let mut reproduced =
            Reproduction { facts: site.machine.facts(), ..Reproduction::default() };
        reproduced.points.insert(FIGURES[0].id, vec![point]);
        Ok(reproduced)
    }
}
