//! Carries out the experiment.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use symbiont_policy::Phases;
use symbiont_synth::Ratio;

use super::judge::{judge, moments};
use super::page::page;
use super::plan::{AROUND, Cell, Size};
use super::record::SeniorityRecord;
use crate::phases::Program;
use crate::phases::command::{self, Ask};
use symbiont_campaign::harness::{Error, Programs, Progress, read_report};
use symbiont_campaign::{InRound, Measure, Place, Repeats, Rounds, Site};
use symbiont_report::Report;

/// What to do.
#[derive(Debug, Clone)]
pub struct SeniorityOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the finished runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// Time that a run may take beyond what it should.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Programs start so long after the command: the manager has to be there first.
const LEAD: Duration = Duration::from_millis(500);
/// Mean length of a phase: none ends within a run.
const PHASE: Duration = Duration::from_secs(100_000);

/// Some cells of the experiment.
pub(super) struct Turns<'a> {
    options: &'a SeniorityOptions,
    cells: Vec<Cell>,
    iterations_per_s: f64,
}

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &SeniorityOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let size = &options.size;
    let site = Site::new(&options.output, Repeats::exactly(size.rounds), options.seed)?;
    let iterations_per_s = site.rate(&options.programs, progress)?.iterations_per_s;
    let turns = Turns { options, cells: size.turns(), iterations_per_s };
    let mut done = site.carry_out(&turns, progress)?;
    let starvation = Turns { cells: size.starvation(), ..turns };
    let once = Rounds { repeats: Repeats::exactly(1), ..site.rounds };
    let mut long = Site { rounds: once, ..site.clone() }.carry_out(&starvation, progress)?;
    // They ran in random order.
    long.sort_by_key(|done| (done.run.cell.parallel, done.run.cell.with_serial));
    done.extend(long);
    let mut report = page(&done, site.machine.cpus)?;
    report.fact("Runs", done.len().to_string());
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for Turns<'_> {
    type Cell = Cell;
    type Record = SeniorityRecord;

    const NAME: &'static str = "seniority";

    fn cells(&self) -> Vec<Cell> {
        self.cells.clone()
    }

    fn options(&self) -> String {
        self.iterations_per_s.to_string()
    }

    fn cost(&self, cell: &Cell) -> Duration {
        cell.time + AROUND
    }

    fn measure(&self, run: &InRound<Cell>, place: &Place<'_>) -> Result<SeniorityRecord, Error> {
        let (options, cell, file) = (self.options, run.cell, |name: &str| place.file(name));
        let ask = Ask {
            threads: place.machine.cpus,
            iterations_per_phase: self.iterations_per_s * PHASE.as_secs_f64(),
            time: cell.time,
            start: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + LEAD,
        };
        let programs = cell.parallel + u32::from(cell.with_serial);
        let outputs: Vec<PathBuf> = (0..programs).map(|n| file(&format!("{n}.json"))).collect();
        let commands: Vec<(Vec<String>, &Path)> = (outputs.iter().zip(0_u32..))
            .map(|(output, number)| {
                let ratio = if number < cell.parallel { Ratio::PARALLEL } else { Ratio::SERIAL };
                let seed = options.seed.wrapping_add(u64::from(1000 * run.round + number));
                let program = Program { ratio, seed };
                (command::synth(&options.programs.synth, program, ask), output.as_path())
            })
            .collect();
        let text = command::job_file(&commands, cell.grouping)
            .map_err(|error| Error::Evaluation(error.to_string()))?;
        let (jobs, report, recording) =
            (file("jobs.toml"), file("report.json"), file("recording.jsonl"));
        fs::write(&jobs, text).map_err(Error::io(&jobs))?;
        let symbiont = &options.programs.symbiont;
        let mut words = command::symbiont(symbiont, cell.policy(), &[], &jobs, &report);
        words.push(format!("--record={}", recording.display()));
        if let Some(timeout) = cell.timeout {
            words.push(format!("--set={}", Phases::SENIORITY.written(&timeout)));
        }
        place.run(&words, &file("stdout"), LEAD + cell.time + TIMEOUT)?;
        let managed = read_report(&report)?;
        let seen = moments(&recording).map_err(|error| Error::Evaluation(error.to_string()))?;
        let parallel: Vec<u32> = (0..cell.parallel).collect();
        let judged = judge(&seen, &parallel)
            .ok_or_else(|| Error::Evaluation(format!("{run}: nothing was recorded")))?;
        Ok(SeniorityRecord { quantum_ms: managed.quantum_ms, judged })
    }
}
