//! Carries out the experiment.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_machine::ProgramId;
use symbiont_policy::Phases;
use symbiont_topology::HostTopology;

use super::judge::{Judged, judge};
use super::page;
use super::plan::{AROUND, Cell, CoRunner, Manager, Size};
use super::readers::{Tracepoints, recorded};
use crate::phases::Grouping;
use crate::phases::command::job_file;
use symbiont_campaign::harness::{Error, Programs, Progress, read_json, read_report};
use symbiont_campaign::{InRound, Measure, Measured, Place, Repeats, Site};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct DetectionOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs and of the programs' phases.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Programs start so long after the command: the manager has to be there first.
const LEAD: Duration = Duration::from_millis(700);

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectionRecord {
    /// How good the manager was.
    pub manager: Judged,
    /// How good the scheduler's tracepoints were by themselves, or why they were
    /// not read; none where the manager read them.
    pub tracepoints: Option<Result<Judged, String>>,
    /// Events that were lost.
    pub lost: u64,
}

/// A finished run.
pub(crate) type Done = Measured<Detection<'static>>;

/// The experiment on this machine.
pub(crate) struct Detection<'a> {
    options: &'a DetectionOptions,
    host: HostTopology,
    iterations_per_s: f64,
}

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &DetectionOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let host = HostTopology::read()
        .map_err(|error| Error::Evaluation(format!("this machine's topology: {error}")))?;
    let site = Site::new(&options.output, Repeats::exactly(options.size.rounds), options.seed)?;
    let iterations_per_s = site.rate(&options.programs, progress)?.iterations_per_s;
    let done = site.carry_out(&Detection { options, host, iterations_per_s }, progress)?;
    let mut report = page::page(&done)?;
    report.fact("Rounds", options.size.rounds.to_string());
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for Detection<'_> {
    type Cell = Cell;
    type Record = DetectionRecord;

    const NAME: &'static str = "detection";

    fn cells(&self) -> Vec<Cell> {
        self.options.size.cells()
    }

    fn options(&self) -> String {
        self.iterations_per_s.to_string()
    }

    fn cost(&self, cell: &Cell) -> Duration {
        cell.time + AROUND
    }

    fn measure(&self, run: &InRound<Cell>, place: &Place<'_>) -> Result<DetectionRecord, Error> {
        let (options, cell) = (self.options, run.cell);
        let file = |name: &str| place.file(name);
        let (out, other, report) = (file("watched.json"), file("other.json"), file("report.json"));
        let (recording, jobs) = (file("recording.jsonl"), file("jobs.toml"));
        let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + LEAD;
        let seed = options.seed.wrapping_add(u64::from(run.round));
        let program = |ratio: &str, length: Duration| {
            let threads = place.machine.cpus.max(2);
            self.synth(threads, cell.time, (ratio, length, seed, start))
        };
        let mut programs = vec![(program("1:1", cell.length), out.as_path())];
        if cell.co_runner == CoRunner::Parallel {
            programs.push((program("inf:1", Duration::from_millis(200)), other.as_path()));
        }
        let text = job_file(&programs, Grouping::OneSession)
            .map_err(|error| Error::Evaluation(format!("the job file: {error}")))?;
        fs::write(&jobs, text).map_err(Error::io(&jobs))?;
        let words = [
            options.programs.symbiont.display().to_string(),
            "run".to_owned(),
            "--policy=phases".to_owned(),
            "--dry-run".to_owned(),
            match cell.manager {
                Manager::Accounts => "--see-by=accounts".to_owned(),
                Manager::Woken => "--see-by=tracepoints".to_owned(),
            },
            "--report=json".to_owned(),
            format!("--report-file={}", report.display()),
            format!("--record={}", recording.display()),
            format!("--job={}", jobs.display()),
        ];
        let apart = cell.manager == Manager::Accounts;
        let tracepoints = apart.then(|| Tracepoints::start(&self.host.cpus()));
        place.run(&words, &file("stdout"), LEAD + cell.time + TIMEOUT)?;
        let seen = tracepoints.map(|started| started.map(Tracepoints::stop));
        read_report(&report)?;
        let phases = read_json::<symbiont_synth::Report>(&out)?.log.unwrap_or_default();
        let recorded = recorded(&recording, ProgramId(0))
            .map_err(|error| Error::Evaluation(error.to_string()))?;
        let nothing = || Error::Evaluation(format!("{run}: the program had no phases"));
        let threshold = Phases::new(None).threshold(&self.host.cpus());
        Ok(DetectionRecord {
            manager: judge(&phases, &recorded.beliefs).ok_or_else(nothing)?,
            lost: seen.as_ref().and_then(|seen| seen.as_ref().ok()).map_or(0, |seen| seen.lost),
            tracepoints: match seen {
                Some(Ok(seen)) => {
                    let beliefs = seen.beliefs(&recorded.threads, threshold);
                    Some(Ok(judge(&phases, &beliefs).ok_or_else(nothing)?))
                }
                Some(Err(why)) => Some(Err(why.to_string())),
                None => None,
            },
        })
    }
}

impl Detection<'_> {
    /// The command line of a program with phases.
    fn synth(
        &self,
        threads: u32,
        time: Duration,
        (ratio, length, seed, start): (&str, Duration, u64, Duration),
    ) -> Vec<String> {
        [
            self.options.programs.synth.display().to_string(),
            "--json".to_owned(),
            "--log".to_owned(),
            format!("--ratio={ratio}"),
            format!("--seed={seed}"),
            format!("--threads={threads}"),
            format!("--phase={}us", length.as_micros()),
            format!("--rate={}", self.iterations_per_s),
            format!("--duration={}ms", time.as_millis()),
            format!("--start-at={:.6}", start.as_secs_f64()),
        ]
        .into()
    }
}
