//! Carries out the experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use symbiont_linux::slow::SlowCpu;

use super::evaluate::{Evaluation, evaluate};
use super::kernels::{self, Fit, Kernel, Outcome};
use super::page::page;
use super::plan::{AROUND, OpenmpSize, RunKind};
use super::record::OpenmpRecord;
use crate::harness::{
    Lead, Measure, Programs, RunFolder, Site, SlowedCpus, read_report, slow_cpus,
};
use crate::phases::{Cpus, Grouping, command};
use symbiont_campaign::{Error, InRound, Progress, Repeats, Rounds, digest};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct OpenmpOptions {
    /// The programs to run.
    pub programs: Programs,
    /// The C compiler.
    pub compiler: PathBuf,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
    /// How large the experiment is.
    pub size: OpenmpSize,
    /// Seed of the order of runs.
    pub seed: u64,
    /// CPUs to slow down meanwhile.
    pub slow: Vec<SlowCpu>,
}

/// Time between the start of a run and the start of its programs' work, at first.
const LEAD: Duration = Duration::from_millis(400);
/// A run that begins later than this is made again.
const LATE: Duration = Duration::from_millis(50);
/// Time that a run may take, in times of its programs alone, and beyond that.
const TIMEOUT: (u32, Duration) = (40, Duration::from_secs(30));
/// Runs two kernels, one after the other.
const SEQUENCE: &str = r#""$0" "$1" "$2" "$5" && exec "$0" "$3" "$4" 0"#;

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report. More rounds
/// may be asked for later.
///
/// # Errors
/// When the kernels cannot be built, a run fails, the folder cannot be used, or the user stops it; finished
/// runs are kept in each case.
pub fn run(options: &OpenmpOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let OpenmpSize { rounds, time, .. } = options.size;
    let site = site(options)?;
    let (evaluation, runs) = evaluated(options, &site, progress)?;
    let mut report = page(&evaluation);
    report.fact("Rounds", format!("{rounds}, each kernel {time:?} alone on the idle machine"));
    report.fact("Runs", runs.to_string());
    report.fact("CPUs slowed down", slow_cpus(&options.slow));
    site.write(&mut report)?;
    Ok(report)
}

/// The same without a report: its figures.
///
/// # Errors
/// As [`run`].
pub fn measure(options: &OpenmpOptions, progress: &mut dyn Progress) -> Result<Evaluation, Error> {
    Ok(evaluated(options, &site(options)?, progress)?.0)
}

fn site(options: &OpenmpOptions) -> Result<Site, Error> {
    Site::new(&options.output, Repeats::exactly(options.size.rounds), options.seed)
}

/// The figures, and of how many runs.
fn evaluated(
    options: &OpenmpOptions,
    site: &Site,
    progress: &mut dyn Progress,
) -> Result<(Evaluation, usize), Error> {
    let program = kernels::build(&options.compiler, &site.folder, progress)?;
    let fit = Fit { program: &program, names: &options.size.kernels, time: options.size.time };
    let once = Rounds { repeats: Repeats::exactly(1), seed: 0 };
    let fitted = Site { rounds: once, ..site.clone() }.carry_out(&fit, progress)?;
    let fitted: Vec<Kernel> = fitted.into_iter().map(|done| done.record).collect();
    let kernels = in_order(&options.size.kernels, &fitted);
    // Its children end with the thread that starts them.
    let slow = SlowedCpus::start(&options.programs.symbiont, &options.slow)?;
    let pairs =
        Pairs { options, program: &program, kernels: &kernels, slow: &slow, lead: Lead::new(LEAD) };
    let done = site.carry_out(&pairs, progress)?;
    drop(slow);
    let cpus = Cpus::slowed(site.machine.cpus, &options.slow);
    Ok((evaluate(&done, &options.size, &kernels, cpus)?, done.len()))
}

/// The kernels in the order in which the user named them: they were measured in random order.
pub(super) fn in_order(names: &[String], fitted: &[Kernel]) -> Vec<Kernel> {
    let find = |name: &String| fitted.iter().find(|kernel| kernel.name == *name).cloned();
    names.iter().filter_map(find).collect()
}

/// Kernels alone, and in all pairs.
pub(super) struct Pairs<'a> {
    options: &'a OpenmpOptions,
    program: &'a Path,
    kernels: &'a [Kernel],
    slow: &'a SlowedCpus,
    lead: Lead,
}

impl Measure for Pairs<'_> {
    type Cell = RunKind;
    type Record = OpenmpRecord;

    const NAME: &'static str = "openmp";

    fn cells(&self) -> Vec<RunKind> {
        self.options.size.cells()
    }

    fn options(&self) -> String {
        digest(&[&format!("{:?}", self.kernels), &format!("{:?}", self.options.slow)])
    }

    fn cost(&self, what: &RunKind) -> Duration {
        let time = self.options.size.time;
        match what {
            RunKind::Alone { .. } => time + AROUND,
            // Four programs' work; by the model up to a third less than one after the other.
            RunKind::Both { .. } => time * 4 + AROUND,
        }
    }

    fn measure(
        &self,
        run: &InRound<RunKind>,
        place: &RunFolder<'_>,
    ) -> Result<OpenmpRecord, Error> {
        let record = match &run.cell {
            RunKind::Alone { kernel } => {
                let (kernel, threads) = (self.kernel(kernel)?, place.machine.cpus);
                let outcome =
                    kernels::run(self.program, &kernel.name, kernel.steps, threads, place)?;
                kernel.check(&outcome)?;
                OpenmpRecord { outcomes: vec![outcome], managed: None }
            }
            RunKind::Both { kernels: [a, b], policy, grouping } => {
                let both = [self.kernel(a)?, self.kernel(b)?];
                self.lead.heed(self.both(both, (policy, *grouping), place))?
            }
        };
        self.slow.check()?;
        Ok(record)
    }
}

impl Pairs<'_> {
    fn kernel(&self, name: &str) -> Result<&Kernel, Error> {
        let known = self.kernels.iter().find(|kernel| kernel.name == name);
        known.ok_or_else(|| Error::evaluation(format!("there is no kernel {name}")))
    }

    /// Two kernels in both orders at the same time, managed.
    fn both(
        &self,
        [a, b]: [&Kernel; 2],
        (policy, grouping): (&str, Grouping),
        place: &RunFolder<'_>,
    ) -> Result<OpenmpRecord, Error> {
        let (options, lead) = (self.options, self.lead.get());
        let file = |name: &str| place.file(name);
        let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + lead;
        let sequence = |first: &Kernel, second: &Kernel| {
            let mut words = kernels::environment(place.machine.cpus);
            words.extend(["sh", "-c", SEQUENCE].map(str::to_owned));
            words.push(self.program.display().to_string());
            for kernel in [first, second] {
                words.extend([kernel.name.clone(), kernel.steps.to_string()]);
            }
            words.push(format!("{:.6}", start.as_secs_f64()));
            words
        };
        let (ab, ba) = (file("ab.jsonl"), file("ba.jsonl"));
        let commands = [(sequence(a, b), &*ab), (sequence(b, a), &*ba)];
        let text = command::job_file(&commands, grouping).map_err(Error::evaluation)?;
        let (jobs, report) = (file("jobs.toml"), file("report.json"));
        fs::write(&jobs, text).map_err(Error::io(&jobs))?;
        let symbiont = &options.programs.symbiont;
        let words = command::symbiont(symbiont, policy, &options.slow, &jobs, &report);
        let limit = lead + options.size.time * TIMEOUT.0 + TIMEOUT.1;
        place.run(&words, &file("stdout"), limit)?;
        let mut outcomes = Vec::new();
        for (path, order) in [(ab, [a, b]), (ba, [b, a])] {
            let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
            let lines = text.lines().map(serde_json::from_str::<Outcome>);
            let both: Vec<Outcome> = lines.collect::<Result<_, _>>().map_err(Error::json(&path))?;
            if both.len() != order.len() {
                return Err(Error::evaluation("a kernel reported nothing"));
            }
            both.iter().zip(order).try_for_each(|(outcome, kernel)| kernel.check(outcome))?;
            // The two sequences would overlap in another way.
            let late = both.first().map_or(0.0, |first| first.begin - start.as_secs_f64());
            if late > LATE.as_secs_f64() {
                return Err(Error::evaluation(format!("it began {:.0} ms late", 1e3 * late)));
            }
            outcomes.extend(both);
        }
        Ok(OpenmpRecord { outcomes, managed: Some(read_report(&report)?) })
    }
}
