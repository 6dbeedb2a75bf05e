//! Carries out the experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use symbiont_profile::Profile;
use symbiont_sim::fast::Workshop;

use super::evaluate::evaluate;
use super::page;
use super::plan::{self, Run, Size};
use super::play::{PairStp, Player, Record, estimate};
use crate::harness::{self, Error, Journal, Progress};
use crate::report::Report;
use crate::simulated::{Provenance, Setup};

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of everything that is random.
    pub seed: u64,
}

/// The simulated machine and its programs.
#[derive(Debug, Clone, Copy)]
pub struct Lab<'a, 'p> {
    /// The machine.
    pub workshop: &'a Workshop<'p>,
    /// The programs' profiles, by name.
    pub profiles: &'p BTreeMap<String, Profile>,
}

/// What stays the same, also when the experiment is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    size: Size,
    seed: u64,
    machine: String,
    version: String,
}

/// The experiment over an output folder, which holds `campaign.json` (the
/// setting), `runs.jsonl` (a line for each finished run) and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them
    /// and writes the report.
    ///
    /// # Errors
    /// When a run fails, the folder cannot be used, or the campaign is
    /// cancelled; finished runs are kept in each case.
    pub fn run(
        options: &Options,
        lab: Lab<'_, '_>,
        progress: &mut dyn Progress,
    ) -> Result<Report, Error> {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        let setting = setting(options, &lab, folder)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let all = plan::plan(&setting.size, setting.seed);
        let done: BTreeSet<String> = records.iter().map(|record| record.run.id()).collect();
        let left: Vec<&Run> = all.iter().filter(|run| !done.contains(&run.id())).collect();
        let expected = estimate(left.iter().copied(), &setting.size);
        progress.begin(all.len(), all.len() - left.len(), expected);
        let mut player = Player::new(lab.workshop, lab.profiles, &setting.size, setting.seed);
        let mut pair_stp = PairStp::default();
        records.iter().for_each(|record| pair_stp.add(record));
        for run in left {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            progress.running(&run.to_string());
            let record = player.play(run, &pair_stp)?;
            journal.append(&record)?;
            pair_stp.add(&record);
            records.push(record);
            progress.done();
        }
        let provenance = Provenance::new(lab.workshop.description(), &Setup::default());
        let mut report = page::page(&evaluate(&records)?, &provenance);
        facts(&mut report, &setting, &provenance, &all);
        report.write(folder)?;
        Ok(report)
    }
}

fn facts(report: &mut Report, setting: &Setting, provenance: &Provenance, all: &[Run]) {
    let Size { alone, quantum, repeats, pair_repeats, mixes, programs, .. } = &setting.size;
    report.fact("Simulated machine", format!("{} ({})", provenance.machine, provenance.title));
    report.fact(
        "Description",
        format!(
            "{}; {} of its {} values are assumed",
            provenance.checked, provenance.assumed, provenance.values
        ),
    );
    report.fact("Profiles", programs.join(", "));
    report.fact(
        "Runs",
        format!(
            "{}: {mixes} mixes with {repeats} repeats, pairs with {pair_repeats}; targets of {} s \
             alone, quanta of {} ms",
            all.len(),
            alone.as_secs_f64(),
            quantum.as_millis()
        ),
    );
    report.fact("Seed", setting.seed.to_string());
    report.fact("Version", setting.version.clone());
}

fn setting(options: &Options, lab: &Lab<'_, '_>, folder: &Path) -> Result<Setting, Error> {
    let new = Setting {
        size: options.size.clone(),
        seed: options.seed,
        machine: lab.workshop.description().name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    harness::keep(folder, |kept| *kept == new, || Ok(new.clone()))
}
