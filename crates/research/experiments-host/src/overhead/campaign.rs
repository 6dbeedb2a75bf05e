//! Carries out the experiment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use symbiont_synth::many;
use symbiont_synth::watch::Watched;

use super::evaluate::evaluate;
use super::page;
use super::plan::{AROUND, Load, QUANTUM, Size, WAKES_PER_S, WORK};
use super::record::OverheadRecord;
use symbiont_campaign::harness::{
    Costs, Error, Managed, Programs, Progress, read_json, read_report,
};
use symbiont_campaign::{InRound, Measure, Place, Repeats, Site};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct OverheadOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs and of the moments of wake-ups.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &OverheadOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let Size { rounds, time } = options.size;
    let site = Site::new(&options.output, Repeats::exactly(rounds), options.seed)?;
    let mut report = page::page(&evaluate(&site.carry_out(options, progress)?)?);
    report.fact("Runs", format!("{rounds} rounds of {} loads, {time:?} each", Load::ALL.len()));
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for OverheadOptions {
    type Cell = Load;
    type Record = OverheadRecord;

    const NAME: &'static str = "overhead";

    fn cells(&self) -> Vec<Load> {
        Load::ALL.into()
    }

    fn options(&self) -> String {
        format!("{:?}", self.size.time)
    }

    fn cost(&self, _: &Load) -> Duration {
        self.size.time + AROUND
    }

    fn measure(&self, run: &InRound<Load>, place: &Place<'_>) -> Result<OverheadRecord, Error> {
        let (out, report) = (place.file("load.json"), place.file("report.json"));
        let finished = place.run(&words(self, *run, &report), &out, self.size.time + TIMEOUT)?;
        let load: many::Report = read_json(&out)?;
        let managed = match run.cell {
            Load::Sleepers(_) | Load::Busy(_) => read_report(&report)?,
            Load::Bare(_) => bare(load.watched).ok_or_else(|| {
                Error::Evaluation("this kernel does not report a thread's CPU time".to_owned())
            })?,
        };
        Ok(OverheadRecord { wall_s: finished.wall.as_secs_f64(), load, managed })
    }
}

/// What a bare loop reported, in the terms of a manager.
fn bare(watched: Option<Watched>) -> Option<Managed> {
    let Watched { quanta, thread_quanta, cpu_ns } = watched?;
    let manager = Costs { cpu_ns: cpu_ns?, start_ns: 0, quanta, thread_quanta, rss_kb: None };
    Some(Managed { manager, ..Managed::default() })
}

fn words(options: &OverheadOptions, run: InRound<Load>, report: &Path) -> Vec<String> {
    let OverheadOptions { programs, size, seed, .. } = options;
    let count = run.cell.threads();
    let (busy, watch) = match run.cell {
        Load::Sleepers(_) => (0, None),
        Load::Busy(count) => (count, None),
        Load::Bare(_) => (0, Some(format!("--watch={}ms", QUANTUM.as_millis()))),
    };
    let manager = [
        programs.symbiont.display().to_string(),
        "run".to_owned(),
        "--policy=phases".to_owned(),
        format!("--quantum={}ms", QUANTUM.as_millis()),
        "--report=json".to_owned(),
        format!("--report-file={}", report.display()),
        "--".to_owned(),
    ];
    let load = [
        programs.synth.display().to_string(),
        "threads".to_owned(),
        format!("--count={count}"),
        format!("--busy={busy}"),
        format!("--wakes={WAKES_PER_S}"),
        format!("--work={WORK}"),
        format!("--duration={}ms", size.time.as_millis()),
        format!("--seed={}", seed.wrapping_add(u64::from(run.round))),
        "--json".to_owned(),
    ];
    let managed = manager.into_iter().filter(|_| watch.is_none());
    managed.chain(load).chain(watch.clone()).collect()
}
