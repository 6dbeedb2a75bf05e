//! Carries out the experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use symbiont_linux::slow::SlowCpu;
use symbiont_synth::calibrate::Rate;

use super::command::{self, Ask};
use super::evaluate::{Cpus, evaluate};
use super::page;
use super::plan::{self, Part, Program, Run, RunKind, Size};
use super::real::{self, Prepare};
use super::record::{self, PhasesRecord};
use symbiont_campaign::harness::{
    self, Error, Lead, Programs, Progress, Slow, read_json, read_report, slow_cpus,
};
use symbiont_campaign::{ATTEMPTS, Done, Experiment, Repeats, Site, carry_out};
use symbiont_report::{Block, Report};

/// What to do.
#[derive(Debug, Clone)]
pub struct PhasesOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the finished runs.
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

impl PhasesOptions {
    /// With phases of 200 ms on average.
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

/// Time between the start of a run and the start of its programs' work, at first.
const LEAD: Duration = Duration::from_millis(400);
/// Time that a run may take beyond what it should.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Carries out all runs that are not kept yet, evaluates all of them, and writes the report, `runs.csv` and
/// `real-runs.csv`.
///
/// # Errors
/// When a run fails again and again, the folder cannot be used, or the user stops it; finished runs are kept
/// in each case.
pub fn run(options: &PhasesOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
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
    let slow = Slow::start(&options.programs.symbiont, &options.slow)?;
    let phases = Phases {
        options,
        site: &site,
        plan: &plan,
        rate,
        work: &work,
        slow,
        lead: Lead::new(LEAD),
    };
    let done = carry_out(&phases, &site.folder, 1, progress)?;
    drop(phases);
    let records: Vec<PhasesRecord> = done.into_iter().map(|done| done.record).collect();
    let csv = site.folder.join("runs.csv");
    fs::write(&csv, record::csv(&records)).map_err(Error::io(&csv))?;
    let csv = site.folder.join("real-runs.csv");
    fs::write(&csv, real::csv(&records)).map_err(Error::io(&csv))?;
    let cpus = Cpus::slowed(site.machine.cpus, &options.slow);
    let evaluation = evaluate(&records, cpus, rate.iterations_per_s, options.seed)?;
    let mut report = page::page(&evaluation, &options.size);
    if let Err(why) = &work {
        report.push(Block::Note(format!("There were no real programs to measure: {why}")));
    }
    report.facts = facts(options, rate, &records);
    site.write(&mut report)?;
    Ok(report)
}

/// The experiment on this machine.
struct Phases<'a> {
    options: &'a PhasesOptions,
    site: &'a Site,
    plan: &'a [Run],
    rate: Rate,
    work: &'a Result<real::Work, String>,
    slow: Slow,
    lead: Lead,
}

impl Experiment for Phases<'_> {
    type Run = Run;
    type Record = PhasesRecord;

    fn name(&self) -> String {
        "phases".to_owned()
    }

    fn basis(&self, _: &Run) -> String {
        let PhasesOptions { phase, slow, seed, .. } = self.options;
        let (rate, work) = (&self.rate, &self.work);
        self.site.machine.basis(&[&format!("{seed} {phase:?} {slow:?} {rate:?} {work:?}")])
    }

    fn next(&self, done: &[Done<Self>]) -> Vec<Run> {
        if done.is_empty() { self.plan.to_vec() } else { Vec::new() }
    }

    fn carry_out(&self, run: &Run, stop: &AtomicBool) -> Result<PhasesRecord, Error> {
        let record = self.lead.heed(self.measure(run, &|| stop.load(Ordering::Relaxed)))?;
        self.slow.check()?;
        Ok(record)
    }

    fn cost(&self, run: &Run) -> Duration {
        plan::estimate([run])
    }

    fn attempts(&self) -> u32 {
        ATTEMPTS
    }
}

impl Phases<'_> {
    fn measure(&self, run: &Run, cancelled: &dyn Fn() -> bool) -> Result<PhasesRecord, Error> {
        let options = self.options;
        let scratch = harness::scratch(&self.site.folder)?;
        let file = |name: &str| scratch.path().join(name);
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let lead = self.lead.get();
        let ask = Ask {
            threads: self.site.machine.cpus,
            iterations_per_phase: self.rate.iterations_per_s * options.phase.as_secs_f64(),
            time: run.time,
            start: now + lead,
        };
        let synth = |program: Program| command::synth(&options.programs.synth, program, ask);
        let limit = lead + run.time + TIMEOUT;
        let start = |words: &[String], stdout: &Path| {
            harness::run(words, stdout, &file("stderr"), limit, cancelled)
        };
        let outputs = [file("a.json"), file("b.json")];
        let manage = |text: String, policy: &str| {
            let (jobs, report) = (file("jobs.toml"), file("report.json"));
            fs::write(&jobs, text).map_err(Error::io(&jobs))?;
            let symbiont = &options.programs.symbiont;
            let words = command::symbiont(symbiont, policy, &options.slow, &jobs, &report);
            Ok::<_, Error>((start(&words, &file("stdout"))?, Some(read_report(&report)?)))
        };
        let real = || match self.work {
            Ok(work) => Ok(real::start(work, scratch.path(), ask.start, ask.threads)),
            Err(why) => Err(Error::Evaluation(why.clone())),
        };
        let mut timed = None;
        let (finished, count, managed) = match &run.what {
            RunKind::Alone { program } => (start(&synth(*program), &outputs[0])?, 1, None),
            RunKind::Together { programs: [a, b], policy, grouping } => {
                let commands = [(synth(*a), &*outputs[0]), (synth(*b), &*outputs[1])];
                let text = command::job_file(&commands, *grouping)
                    .map_err(|error| Error::Evaluation(error.to_string()))?;
                let (finished, managed) = manage(text, policy)?;
                (finished, 2, managed)
            }
            RunKind::RealAlone => {
                let real = real()?;
                let (words, stdout) = real.alone();
                let finished = start(&words, stdout)?;
                timed = Some(real.serial()?);
                (finished, 0, None)
            }
            RunKind::RealTogether { policy, grouping } => {
                let real = real()?;
                let (finished, managed) = manage(real.job_file(*grouping)?, policy)?;
                timed = Some(real.serial()?);
                real.check_parallel(cancelled)?;
                (finished, 0, managed)
            }
        };
        let programs =
            outputs.iter().take(count).map(|path| read_json(path)).collect::<Result<_, _>>()?;
        let wall_s = finished.wall.as_secs_f64();
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
