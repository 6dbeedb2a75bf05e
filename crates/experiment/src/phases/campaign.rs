//! Carries out a campaign.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use symbiont_linux::slow::{SlowCpu, SlowError, Slowed};
use symbiont_synth::calibrate::Rate;

use super::command::{self, Ask};
use super::evaluate::{Cpus, evaluate};
use super::page;
use super::plan::{self, Part, Program, Run, Size, What};
use super::real;
use super::record::{self, Record};
use crate::harness::{self, Error, Journal, Machine, Programs, Progress, read_json, read_report};
use crate::report::{Block, Report};

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs and of the programs' phases.
    pub seed: u64,
    /// Mean length of a phase on the idle machine.
    pub phase: Duration,
    /// The real programs.
    pub tools: real::Tools,
    /// CPUs to slow down meanwhile.
    pub slow: Vec<SlowCpu>,
}

impl Options {
    /// A campaign with phases of 200 ms on average.
    #[must_use]
    pub fn new(programs: Programs, output: PathBuf, size: Size, seed: u64) -> Self {
        let phase = Duration::from_millis(200);
        let tools = real::Tools::default();
        Self { programs, output, size, seed, phase, tools, slow: Vec::new() }
    }

    /// The same with these CPUs slowed down.
    #[must_use]
    pub fn slowed(self, slow: Vec<SlowCpu>) -> Self {
        Self { slow, ..self }
    }
}

/// Time between the start of a run and the start of its programs' work; twice
/// that at the second attempt, and so on.
const LEAD: Duration = Duration::from_millis(400);
/// Time that a run may take beyond what it should.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest time that CPUs are slowed down if nobody ends it.
const LONGEST_SLOW: Duration = Duration::from_secs(6 * 3600);

/// What stays the same over a campaign, also when it is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    phase: Duration,
    /// CPUs that are slowed down, as `CPU:FACTOR`.
    #[serde(default)]
    slow: Vec<String>,
    machine: Machine,
    rate: Rate,
    /// What the real programs do, or why there are none.
    real: Result<real::Work, String>,
}

/// A campaign over an output folder.
///
/// The folder holds `campaign.json` (the setting), `runs.jsonl` (a line for
/// each finished run), `runs.csv`, `real-runs.csv`, `real.txt` (what xz gets),
/// and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them
    /// and writes the report.
    ///
    /// # Errors
    /// When a run fails again and again, the folder cannot be used, or the
    /// campaign is cancelled; finished runs are kept in each case.
    pub fn run(options: &Options, progress: &mut dyn Progress) -> Result<Report, Error> {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        // Programs get absolute paths: they need not share our folder.
        let folder = &fs::canonicalize(folder).map_err(Error::io(folder))?;
        let setting = setting(options, folder, progress)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let mut all = plan::plan(&setting.size, setting.seed);
        all.retain(|run| run.part != Part::Real || setting.real.is_ok());
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        if !left.is_empty() {
            harness::same_kernel(folder, &setting.machine)?;
        }
        progress.begin(all.len(), all.len() - left.len(), plan::estimate(left.iter().copied()));
        let slow: &[SlowCpu] = if left.is_empty() { &[] } else { &options.slow };
        let slow_error = |error: SlowError| Error::Evaluation(error.to_string());
        let mut slowed =
            Slowed::start(&options.programs.symbiont, slow, LONGEST_SLOW).map_err(slow_error)?;
        for run in left {
            progress.running(&run.to_string());
            let (record, _) = harness::attempt(&run.id(), progress, |attempt, progress| {
                carry_out(options, &setting, folder, run, attempt, progress)
            })?;
            // A run beside one that ended was of another machine.
            slowed.check().map_err(slow_error)?;
            journal.append(&record)?;
            records.push(record);
            progress.done();
        }
        drop(slowed);
        let csv = folder.join("runs.csv");
        fs::write(&csv, record::csv(&records)).map_err(Error::io(&csv))?;
        let csv = folder.join("real-runs.csv");
        fs::write(&csv, real::csv(&records)).map_err(Error::io(&csv))?;
        let cpus = Cpus::slowed(setting.machine.cpus, &options.slow);
        let evaluation = evaluate(&records, cpus, setting.rate.iterations_per_s, setting.seed)?;
        let mut report = page::page(&evaluation, &setting.size);
        if let Err(why) = &setting.real {
            report.push(Block::Note(format!("There were no real programs to measure: {why}")));
        }
        report.facts = facts(&setting, &records);
        report.write(folder)?;
        Ok(report)
    }
}

/// The setting of a new campaign, or of the one that the folder holds.
fn setting(
    options: &Options,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<Setting, Error> {
    let slow: Vec<String> = options.slow.iter().map(ToString::to_string).collect();
    let machine = Machine::read();
    let same = |kept: &Setting| {
        (&kept.size, kept.seed, kept.phase, kept.machine.cpus, &kept.slow)
            == (&options.size, options.seed, options.phase, machine.cpus, &slow)
    };
    harness::keep(folder, same, || {
        let rate = options.programs.calibrate(folder, progress)?;
        if rate.median_share < 0.9 {
            progress.note("the machine is not idle: other programs will disturb the measurements");
        }
        let (time, seed) = (options.size.real_time, options.seed);
        let real = match real::prepare(&options.tools, folder, time, seed, progress) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            other => other.map_err(|error| error.to_string()),
        };
        if let Err(why) = &real {
            progress.note(&format!("the real programs are left out: {why}"));
        }
        let (size, phase) = (options.size.clone(), options.phase);
        let (slow, machine) = (slow.clone(), machine.clone());
        Ok(Setting { size, seed, phase, slow, machine, rate, real })
    })
}

fn carry_out(
    options: &Options,
    setting: &Setting,
    folder: &Path,
    run: &Run,
    attempt: u32,
    progress: &dyn Progress,
) -> Result<Record, Error> {
    let scratch = folder.join("running");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir(&scratch).map_err(Error::io(&scratch))?;
    let file = |name: &str| scratch.join(name);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let lead = LEAD * attempt;
    let ask = Ask {
        threads: setting.machine.cpus,
        iterations_per_phase: setting.rate.iterations_per_s * setting.phase.as_secs_f64(),
        time: run.time,
        start: now + lead,
    };
    let synth = |program: Program| command::synth(&options.programs.synth, program, ask);
    let limit = lead + run.time + PATIENCE;
    let start = |words: &[String], stdout: &Path| {
        harness::run(words, stdout, &file("stderr"), limit, &|| progress.cancelled())
    };
    let outputs = [file("a.json"), file("b.json")];
    let manage = |text: String, policy: &str| {
        let (jobs, report) = (file("jobs.toml"), file("report.json"));
        fs::write(&jobs, text).map_err(Error::io(&jobs))?;
        let words =
            command::symbiont(&options.programs.symbiont, policy, &options.slow, &jobs, &report);
        Ok::<_, Error>((start(&words, &file("stdout"))?, Some(read_report(&report)?)))
    };
    let real = || match &setting.real {
        Ok(work) => Ok(real::start(work, &scratch, ask.start, ask.threads)),
        Err(why) => Err(Error::Evaluation(why.clone())),
    };
    let mut timed = None;
    let (finished, count, managed) = match &run.what {
        What::Alone { program } => (start(&synth(*program), &outputs[0])?, 1, None),
        What::Together { programs: [a, b], policy, grouping } => {
            let commands = [(synth(*a), &*outputs[0]), (synth(*b), &*outputs[1])];
            let text = command::job_file(&commands, *grouping)
                .map_err(|error| Error::Evaluation(error.to_string()))?;
            let (finished, managed) = manage(text, policy)?;
            (finished, 2, managed)
        }
        What::RealAlone => {
            let real = real()?;
            let (words, stdout) = real.alone();
            let finished = start(&words, stdout)?;
            timed = Some(real.serial()?);
            (finished, 0, None)
        }
        What::RealTogether { policy, grouping } => {
            let real = real()?;
            let (finished, managed) = manage(real.job_file(*grouping)?, policy)?;
            timed = Some(real.serial()?);
            real.check_parallel(progress)?;
            (finished, 0, managed)
        }
    };
    let programs =
        outputs.iter().take(count).map(|path| read_json(path)).collect::<Result<_, _>>()?;
    fs::remove_dir_all(&scratch).map_err(Error::io(&scratch))?;
    Ok(Record {
        run: run.clone(),
        wall_s: finished.wall.as_secs_f64(),
        attempts: attempt,
        programs,
        real: timed,
        managed,
    })
}

fn facts(setting: &Setting, records: &[Record]) -> Vec<(String, String)> {
    let mut facts = setting.machine.facts();
    let wall: f64 = records.iter().map(|record| record.wall_s).sum();
    let repeated: u32 = records.iter().map(|record| record.attempts - 1).sum();
    let size = &setting.size;
    let of = |part| records.iter().filter(|record| record.run.part == part).count();
    let slow = match setting.slow.as_slice() {
        [] => "none".to_owned(),
        slow => format!("{} (CPU:factor)", slow.join(", ")),
    };
    facts.extend(
        [
            (
                "Headline cell",
                format!(
                    "{} rounds of {:?}, {} runs",
                    size.headline_rounds,
                    size.headline_time,
                    of(Part::Headline)
                ),
            ),
            (
                "Matrix",
                format!(
                    "{} rounds of {:?}, {} runs",
                    size.matrix_rounds,
                    size.matrix_time,
                    of(Part::Matrix)
                ),
            ),
            (
                "Real programs",
                format!(
                    "{} rounds, {:?} alone, {} runs",
                    size.real_rounds,
                    size.real_time,
                    of(Part::Real)
                ),
            ),
            ("CPUs slowed down", slow),
            ("Runs repeated", repeated.to_string()),
            ("Wall time of all runs", format!("{:.1} min", wall / 60.0)),
            ("Seed", setting.seed.to_string()),
            ("Mean phase", format!("{:?} on the idle machine", setting.phase)),
            (
                "Rate of one thread",
                format!(
                    "{:.0} iterations/s (median of the calibration: {:.0} % of it)",
                    setting.rate.iterations_per_s,
                    100.0 * setting.rate.median_share
                ),
            ),
            ("Version", env!("CARGO_PKG_VERSION").to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    facts
}
