//! All programs at the same time on two hardware threads, under Linux and under `activity`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_linux::switches::{Event, Reader};
use symbiont_policy::activity::Course;
use symbiont_topology::{CpuSet, PuId};

use super::decisions::{Follower, Job};
use super::on_cpus;
use super::programs::PROGRAMS;
use crate::settle::scheduler::Decision;
use symbiont_campaign::{Error, InRound, digest, read_json};
use symbiont_experiments_host::harness::{Measure, RunFolder, read_report};

/// Time that a run may take.
const LIMIT: Duration = Duration::from_secs(300);

/// What decides which program runs where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// Linux: the manager moves no thread.
    Stay,
    /// The policy.
    Activity,
    /// A control: the policy with vectors of another program.
    OthersVectors,
    /// Linux, while its decisions are recorded.
    Recorded,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stay => "stay",
            Self::Activity => "activity",
            Self::OthersVectors => "activity, vectors of another program",
            Self::Recorded => "stay, its decisions recorded",
        })
    }
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContestRecord {
    /// Seconds of each program.
    pub seconds: Vec<f64>,
    /// Moves that were carried out.
    pub moves: u64,
    /// What Linux chose from, where that was recorded.
    pub decisions: Vec<Decision>,
}

/// The programs under each.
pub struct Contest {
    /// `symbiont`.
    pub symbiont: PathBuf,
    /// Folder of the programs, and of their vectors.
    pub folder: PathBuf,
    /// Folder of vectors of other programs.
    pub others: PathBuf,
    /// Hardware threads that all share.
    pub cpus: [u32; 2],
    /// Seconds that one repetition of each program takes alone.
    pub alone: BTreeMap<String, f64>,
    /// Vectors of each program.
    pub courses: BTreeMap<String, Course>,
    /// Can decisions be recorded?
    pub records: bool,
}

#[derive(Serialize)]
struct JobFile {
    job: Vec<JobEntry>,
}

#[derive(Serialize)]
struct JobEntry {
    name: &'static str,
    command: Vec<String>,
    stdout: &'static str,
    env: BTreeMap<&'static str, String>,
}

/// The part of a report that is read here.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Ended>,
}

#[derive(Deserialize)]
struct Ended {
    wall_s: f64,
}

impl Contest {
    fn job_file(&self, path: &Path) -> Result<(), Error> {
        let job = PROGRAMS.iter().map(|program| JobEntry {
            name: program.name,
            command: program.words(&self.folder),
            stdout: "/dev/null",
            env: [("REPEATS", program.repeats.to_string())].into(),
        });
        let text = toml::to_string(&JobFile { job: job.collect() }).map_err(Error::evaluation)?;
        fs::write(path, text).map_err(Error::io(path))
    }

    /// Instructions in a second of CPU time, alone.
    fn rate(&self, program: &str) -> Option<f64> {
        let instructions = self.courses.get(program)?.instructions() as f64;
        self.alone.get(program).map(|seconds| instructions / seconds)
    }

    fn options_of(&self, contender: Contender) -> Vec<String> {
        let folder = match contender {
            Contender::Activity => &self.folder,
            Contender::OthersVectors => &self.others,
            Contender::Stay | Contender::Recorded => return vec!["--policy=stay".to_owned()],
        };
        let rates: Vec<f64> = PROGRAMS.iter().filter_map(|it| self.rate(it.name)).collect();
        let rate = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let files = PROGRAMS.iter().map(|program| program.vectors(folder));
        let vectors = files.map(|file| format!("--vectors={}", file.display()));
        let policy =
            ["--policy=activity".to_owned(), format!("--set=instructions-per-second={rate}")];
        policy.into_iter().chain(vectors).collect()
    }

    /// The decisions in the events of a run, whose recording says which thread is which program.
    fn decisions(&self, events: &[Event], recording: &Path) -> Result<Vec<Decision>, Error> {
        let mut reader = symbiont_trace::Reader::open(recording).map_err(Error::evaluation)?;
        let mut jobs = BTreeMap::new();
        while let Some(quantum) = reader.next_quantum().map_err(Error::evaluation)? {
            let sample = &quantum.sample;
            for thread in &sample.threads {
                let program = sample.programs.iter().find(|it| it.id == thread.program);
                let name = program.map_or("", |program| program.name.as_str());
                if let (Some(course), Some(rate)) = (self.courses.get(name), self.rate(name)) {
                    jobs.insert(thread.id.thread, Job { course, rate });
                }
            }
        }
        Ok(Follower::new(jobs).decisions(events))
    }
}

/// Records what the scheduler does while something runs, in the order of time.
fn recorded<T>(
    cpus: &CpuSet,
    run: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Vec<Event>), Error> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&log);
    let reader = Reader::start(cpus, move |events, _| {
        theirs.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(events);
    });
    let reader = reader.map_err(Error::evaluation)?;
    let ran = run();
    let lost = reader.lost();
    drop(reader);
    let mut events = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    events.sort_by_key(|event| event.at);
    match lost {
        0 => Ok((ran?, events)),
        lost => Err(Error::evaluation(format!("{lost} events of the scheduler were lost"))),
    }
}

impl Measure for Contest {
    type Cell = Contender;
    type Record = ContestRecord;

    const NAME: &'static str = "settle-real";

    fn cells(&self) -> Vec<Contender> {
        let contenders = [Contender::Stay, Contender::Activity, Contender::OthersVectors];
        contenders.into_iter().chain(self.records.then_some(Contender::Recorded)).collect()
    }

    fn options(&self) -> String {
        digest(&[&format!("{:?}", self.cpus), &format!("{PROGRAMS:?}"), &self.records.to_string()])
    }

    fn measure(
        &self,
        run: &InRound<Contender>,
        place: &RunFolder<'_>,
    ) -> Result<ContestRecord, Error> {
        let (jobs, report) = (place.file("jobs.toml"), place.file("report.json"));
        let recording = place.file("recording.jsonl");
        self.job_file(&jobs)?;
        let mut words = on_cpus(&self.cpus);
        words.push(self.symbiont.display().to_string());
        words.extend(["run", "--report=json"].map(str::to_owned));
        words.push(format!("--report-file={}", report.display()));
        words.push(format!("--job={}", jobs.display()));
        words.extend(self.options_of(run.cell));
        let mut decisions = Vec::new();
        if run.cell == Contender::Recorded {
            words.push(format!("--record={}", recording.display()));
            let cpus = self.cpus.iter().map(|cpu| PuId(*cpu)).collect();
            let (_, events) = recorded(&cpus, || place.run(&words, &place.file("out"), LIMIT))?;
            decisions = self.decisions(&events, &recording)?;
        } else {
            place.run(&words, &place.file("out"), LIMIT)?;
        }
        let moves = read_report(&report)?.moves.done;
        let ended: Report = read_json(&report)?;
        Ok(ContestRecord {
            seconds: ended.jobs.iter().map(|job| job.wall_s).collect(),
            moves,
            decisions,
        })
    }

    fn cost(&self, _: &Contender) -> Duration {
        Duration::from_secs(10)
    }
}
