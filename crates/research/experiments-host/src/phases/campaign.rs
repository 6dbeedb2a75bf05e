//! Carries out the experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use symbiont_linux::slow::SlowCpu;
use symbiont_synth::calibrate::Rate;

use super::command::{self, SynthArguments};
use super::evaluate::{evaluate, serial_gains};
use super::page;
use super::plan::{self, Part, PhasesRun, PhasesSize, RunKind, SyntheticProgram};
use super::prediction::Cpus;
use super::real::{self, Prepare};
use super::record::{self, PhasesRecord};
use super::sentence::sentence;
use crate::harness::{self, ATTEMPTS, Lead, Programs, Site, SlowedCpus, read_report, slow_cpus};
use symbiont_campaign::{Decision, Error, Experiment, FinishedRunOf, Progress, Repeats, read_json};
use symbiont_report::{Block, Report};

/// What to do.
#[derive(Debug, Clone)]
pub struct PhasesOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
    /// How large the experiment is.
    pub size: PhasesSize,
    /// Seed of the order of runs and of the programs' phases.
    pub seed: u64,
    /// Mean length of a phase on the idle machine.
    pub phase: Duration,
    /// The real programs.
    pub tools: real::Tools,
    /// CPUs to slow down meanwhile.
    pub slow: Vec<SlowCpu>,
}

impl PhasesOptions {
    /// With phases of 200 ms on average.
    #[must_use]
    pub fn new(programs: Programs, output: PathBuf, size: PhasesSize, seed: u64) -> Self {
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

/// Time between the start of a run and the start of its programs' work, at first.
const LEAD: Duration = Duration::from_millis(400);
/// Time that a run may take beyond what it should.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How often runs may begin too late in all, until the machine counts as too busy.
const MOST_LATE: u32 = 20;
/// How often in a row one may, once it is given no more time.
const MOST_LATE_AT_LAST: u32 = 3;

/// The result of a campaign.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// What came out, in one sentence; none where the headline cell did not run.
    pub sentence: Option<String>,
}

/// [`carry_out`], for its report alone.
///
/// # Errors
/// As of [`carry_out`].
pub fn run(options: &PhasesOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    carry_out(options, progress).map(|outcome| outcome.report)
}

/// Carries out all runs that are not kept yet, evaluates all of them, and writes the report, `runs.csv` and
/// `real-runs.csv`.
///
/// # Errors
/// When a run fails again and again, the folder cannot be used, or the user stops it; finished runs are kept
/// in each case. Where the machine is too busy for the runs to begin in time, a campaign that ends once it is
/// decided reports the rounds that are whole; only without one, and all others, end with [`Error::Busy`].
pub fn carry_out(options: &PhasesOptions, progress: &mut dyn Progress) -> Result<Outcome, Error> {
    // Rounds are those of the plan.
    let site = Site::new(&options.output, Repeats::exactly(1), options.seed)?;
    let rate = site.rate(&options.programs, progress)?;
    if rate.median_share < 0.9 {
        progress.note("the machine is not idle: other programs will disturb the measurements");
    }
    let prepare = Prepare {
        tools: &options.tools,
        site: &site,
        time: options.size.real_time,
        seed: options.seed,
    };
    let work = match prepare.work(progress) {
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(error) => Err(error.to_string()),
        Ok(work) => Ok(work),
    };
    if let Err(why) = &work {
        progress.note(&format!("the real programs are left out: {why}"));
    }
    let mut plan = plan::plan(&options.size, options.seed);
    plan.retain(|run| run.part != Part::Real || work.is_ok());
    // Its children end with the thread that starts them.
    let slow = SlowedCpus::start(&options.programs.symbiont, &options.slow)?;
    let phases = Phases {
        options,
        site: &site,
        plan: &plan,
        rate,
        work: &work,
        slow,
        lead: Lead::new(LEAD),
        late: AtomicU32::new(0),
        finished: Mutex::new(Vec::new()),
    };
    let done = symbiont_campaign::carry_out(&phases, &site.folder, 1, progress);
    let finished = phases.finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (records, busy) = match done {
        Ok(done) => (done.into_iter().map(|done| done.record).collect(), None),
        Err(busy @ Error::Busy { .. }) if options.size.headline_least.is_some() => {
            let whole = whole_rounds(&plan, finished);
            if whole.is_empty() {
                return Err(busy);
            }
            (whole, Some(busy.to_string()))
        }
        Err(error) => return Err(error),
    };
    drop(phases.slow);
    let csv = site.folder.join("runs.csv");
    fs::write(&csv, record::csv(&records)).map_err(Error::io(&csv))?;
    let csv = site.folder.join("real-runs.csv");
    fs::write(&csv, real::csv(&records)).map_err(Error::io(&csv))?;
    let cpus = Cpus::slowed(site.machine.cpus, &options.slow);
    let evaluation = evaluate(&records, cpus, rate.iterations_per_s, options.seed)?;
    let mut report = page::page(&evaluation, &options.size);
    if let Some(why) = busy {
        let text = format!("It ended after {} runs: {why}.", records.len());
        report.blocks.insert(0, Block::Warning(text));
    }
    if let Err(why) = &work {
        report.push(Block::Note(format!("There were no real programs to measure: {why}")));
    }
    report.facts = facts(options, rate, &records);
    site.write(&mut report)?;
    Ok(Outcome { report, sentence: sentence(&evaluation) })
}

/// The records of the rounds that are complete.
fn whole_rounds(plan: &[PhasesRun], finished: Vec<PhasesRecord>) -> Vec<PhasesRecord> {
    let of = |run: &PhasesRun| (run.part, run.round);
    let planned = |round| plan.iter().filter(|run| of(run) == round).count();
    let there = |round| finished.iter().filter(|record| of(&record.run) == round).count();
    let whole: Vec<bool> = finished
        .iter()
        .map(|record| of(&record.run))
        .map(|round| there(round) == planned(round))
        .collect();
    finished.into_iter().zip(whole).filter_map(|(record, whole)| whole.then_some(record)).collect()
}

/// Did a program find that the time at which it was to begin is past?
fn began_late(error: &Error) -> bool {
    let Error::Failed { stderr, .. } = error else { return false };
    stderr.contains(symbiont_synth::LATE) || stderr.contains(real::LATE)
}

/// The experiment on this machine.
struct Phases<'a> {
    options: &'a PhasesOptions,
    site: &'a Site,
    plan: &'a [PhasesRun],
    rate: Rate,
    work: &'a Result<real::Work, String>,
    slow: SlowedCpus,
    lead: Lead,
    /// How many runs began too late.
    late: AtomicU32,
    /// What was measured since the start.
    finished: Mutex<Vec<PhasesRecord>>,
}

impl Experiment for Phases<'_> {
    type Run = PhasesRun;
    type Record = PhasesRecord;

    fn name(&self) -> String {
        "phases".to_owned()
    }

    fn basis(&self, _: &PhasesRun) -> String {
        let PhasesOptions { phase, slow, seed, .. } = self.options;
        let (rate, work) = (&self.rate, &self.work);
        self.site.machine.basis(&[&format!("{seed} {phase:?} {slow:?} {rate:?} {work:?}")])
    }

    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<PhasesRun> {
        let size = &self.options.size;
        let gains = || {
            let records: Vec<PhasesRecord> = done.iter().map(|done| done.record.clone()).collect();
            serial_gains(&records)
        };
        let repeats = size.headline_repeats();
        let decided = || repeats.decide(&gains()) != Decision::Undecided;
        let headline = done.iter().map(|done| &done.run).filter(|run| run.part == Part::Headline);
        let measured = headline.map(|run| run.round + 1).max().unwrap_or(0);
        let rounds = repeats.wanted(measured, decided);
        let is_next = |run: &&PhasesRun| match run.part {
            Part::Headline => (measured..rounds).contains(&run.round),
            // Once all of the first headline rounds are there, these are too.
            Part::Matrix | Part::Real => done.is_empty(),
        };
        self.plan.iter().filter(is_next).cloned().collect()
    }

    fn carry_out(&self, run: &PhasesRun, stop: &AtomicBool) -> Result<PhasesRecord, Error> {
        let cancelled = || stop.load(Ordering::Relaxed);
        let mut at_last = 0;
        let record = loop {
            let lead = self.lead.get();
            at_last += u32::from(self.lead.is_longest());
            let measured = self.lead.heed(self.measure(run, &cancelled));
            match measured {
                Err(error) if began_late(&error) && !cancelled() => {
                    let late = self.late.fetch_add(1, Ordering::Relaxed) + 1;
                    if at_last >= MOST_LATE_AT_LAST || late >= MOST_LATE {
                        return Err(Error::Busy { run: run.to_string(), lead });
                    }
                }
                outcome => break outcome?,
            }
        };
        self.slow.check()?;
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.push(record.clone());
        Ok(record)
    }

    fn cost(&self, run: &PhasesRun) -> Duration {
        plan::estimate([run])
    }

    fn attempts(&self) -> u32 {
        ATTEMPTS
    }
}

impl Phases<'_> {
    fn measure(
        &self,
        run: &PhasesRun,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<PhasesRecord, Error> {
        let options = self.options;
        let scratch = harness::scratch(&self.site.folder)?;
        let file = |name: &str| scratch.path().join(name);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let lead = self.lead.get();
        let ask = SynthArguments {
            threads: self.site.machine.cpus,
            iterations_per_phase: self.rate.iterations_per_s * options.phase.as_secs_f64(),
            time: run.time,
            start: now + lead,
        };
        let synth =
            |program: SyntheticProgram| command::synth(&options.programs.synth, program, ask);
        let limit = lead + run.time + TIMEOUT;
        let start = |words: &[String], stdout: &Path| {
            harness::run(words, stdout, &file("stderr"), limit, cancelled)
        };
        let outputs = [file("a.json"), file("b.json")];
        let manage = |text: String, policy: &str| {
            let (jobs, report) = (file("jobs.toml"), file("report.json"));
            fs::write(&jobs, text).map_err(Error::io(&jobs))?;
            let symbiont = &options.programs.symbiont;
            // Neither a daemon nor what one left behind has a part in it.
            let state = harness::scratch(&std::env::temp_dir())?;
            let mut words = command::symbiont(symbiont, policy, &options.slow, &jobs, &report);
            words.push("--own-manager".to_owned());
            words.push(format!("--state-dir={}", state.path().display()));
            Ok::<_, Error>((start(&words, &file("stdout"))?, Some(read_report(&report)?)))
        };
        let real = || match self.work {
            Ok(work) => Ok(real::start(work, scratch.path(), ask.start, ask.threads)),
            Err(why) => Err(Error::evaluation(why.clone())),
        };
        let mut timed = None;
        let (wall, count, managed) = match &run.what {
            RunKind::Alone { program } => (start(&synth(*program), &outputs[0])?, 1, None),
            RunKind::Together { programs: [a, b], policy, grouping } => {
                let commands = [(synth(*a), &*outputs[0]), (synth(*b), &*outputs[1])];
                let text = command::job_file(&commands, *grouping).map_err(Error::evaluation)?;
                let (wall, managed) = manage(text, policy)?;
                (wall, 2, managed)
            }
            RunKind::RealAlone => {
                let real = real()?;
                let (words, stdout) = real.alone();
                let wall = start(&words, stdout)?;
                timed = Some(real.serial()?);
                (wall, 0, None)
            }
            RunKind::RealTogether { policy, grouping } => {
                let real = real()?;
                let (wall, managed) = manage(real.job_file(*grouping)?, policy)?;
                timed = Some(real.serial()?);
                real.check_parallel(cancelled)?;
                (wall, 0, managed)
            }
        };
        let programs =
            outputs.iter().take(count).map(|path| read_json(path)).collect::<Result<_, _>>()?;
        let wall_s = wall.as_secs_f64();
        Ok(PhasesRecord { run: run.clone(), wall_s, programs, real: timed, managed })
    }
}

fn facts(options: &PhasesOptions, rate: Rate, records: &[PhasesRecord]) -> Vec<(String, String)> {
    let size = &options.size;
    let runs = |part| records.iter().filter(|record| record.run.part == part).count();
    let part = |rounds: u32, time: Duration, what: &str, part: Part| {
        format!("{rounds} rounds of {time:?}{what}, {} runs", runs(part))
    };
    let headline = part(size.headline_rounds, size.headline_time, "", Part::Headline);
    let matrix = part(size.matrix_rounds, size.matrix_time, "", Part::Matrix);
    let real = part(size.real_rounds, size.real_time, " alone", Part::Real);
    let facts = [
        ("Headline cell", headline),
        ("Matrix", matrix),
        ("Real programs", real),
        ("CPUs slowed down", slow_cpus(&options.slow)),
        ("Mean phase", format!("{:?} on the idle machine", options.phase)),
        (
            "Rate of one thread",
            format!(
                "{:.0} iterations/s (median of the calibration: {:.0} % of it)",
                rate.iterations_per_s,
                100.0 * rate.median_share
            ),
        ),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}
