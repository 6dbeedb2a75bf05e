//! Carries an evaluation out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use symbiont_model::Model;
use symbiont_policy::{Settings, Symbiosis};
use symbiont_profile::Profile;
use symbiont_sim::description::{Costs, Description};
use symbiont_sim::fast::{Switches, Workshop};
use symbiont_sim::machine::Errors;
use symbiont_topology::CpuSet;

use super::checks::Judged;
use super::evaluate::{Evaluation, evaluate};
use super::left_out::{check, needs_model};
use super::page;
use super::plan::{DECISION, Run, Size, Terms, plan};
use crate::harness::{self, Error, Journal, Progress};
use crate::report::Report;
use crate::simulated::{App, AppOutcome, Decision, Form, Setup, Shown, Workload, simulate};
use crate::stats::Estimate;
use crate::training::Models;

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of everything.
    pub output: PathBuf,
    /// How large.
    pub size: Size,
    /// Seed of everything that is random.
    pub seed: u64,
    /// What the policies know.
    pub settings: Settings,
    /// Which resources each thread has for itself.
    pub switches: Switches,
    /// How far counters err.
    pub errors: Errors,
    /// Runs at a time.
    pub workers: usize,
}

/// One finished run: a line of `runs.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run.
    pub run: Run,
    /// Its programs.
    pub programs: Vec<String>,
    /// How each of them fared, in the same order.
    pub places: Vec<Place>,
    /// System throughput over the repeats.
    pub stp: Estimate,
    /// Average normalised turnaround time over the repeats.
    pub antt: Estimate,
    /// Moves per quantum.
    pub moves: f64,
    /// Share of quanta in which two of its programs were on one core, by their order; of some runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Vec<f64>>,
    /// Repeats that did not end in time.
    pub unfinished: usize,
    /// Seconds that it took.
    pub wall_s: f64,
}

/// How a program of a workload fared: means over the repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// T_alone / T_together.
    pub speedup: f64,
    /// T_together / T_alone.
    pub turnaround: f64,
}

/// What stays the same when an evaluation is interrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Setting {
    machine: String,
    size: Size,
    seed: u64,
    made_private: String,
    model: Option<String>,
    /// Are models fitted without the programs of each workload?
    #[serde(default)]
    left_out: bool,
    /// Which programs workloads are drawn from.
    #[serde(default)]
    programs: Vec<String>,
    /// What the oracle knows.
    #[serde(default)]
    slowdowns: Option<String>,
    /// How far counters err.
    #[serde(default)]
    errors: String,
}

/// An evaluation over its folder, which holds `campaign.json` (the setting),
/// `runs.jsonl` (a line for each finished run) and the report.
#[derive(Debug)]
pub struct Campaign;

impl Campaign {
    /// Carries out all runs that are not done yet, then evaluates all of them
    /// and writes the report. `profiles` are by program; where there are `models`, each workload is
    /// predicted by the one that knows none of its programs.
    ///
    /// # Errors
    /// When a run fails, the folder cannot be used, or the user stops it;
    /// finished runs are kept in each case. When a workload leaves no model, before anything runs.
    pub fn run<'p>(
        workshop: &Workshop<'p>,
        profiles: &'p BTreeMap<String, Profile>,
        models: Option<&Models<'_>>,
        options: &Options,
        progress: &mut dyn Progress,
    ) -> Result<(Evaluation, Report), Error> {
        let all = plan(&options.size);
        let stage = Stage { workshop, profiles, models, options };
        if let Some(models) = models {
            check(models, &stage.all_programs(), options)?;
        }
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
        setting(workshop, profiles, models.is_some(), options)?;
        let (mut journal, mut records) = Journal::open::<Record>(&folder.join("runs.jsonl"))?;
        let done: BTreeSet<&Run> = records.iter().map(|record| &record.run).collect();
        let left: Vec<Run> = all.iter().filter(|run| !done.contains(run)).cloned().collect();
        let finished = all.len() - left.len();
        // The first run tells how long the others take.
        let mut estimate = Duration::ZERO;
        let mut rest = left.as_slice();
        if let Some((first, others)) = left.split_first() {
            let record = stage.carry_out(first)?;
            let threads = |run: &Run| run.case.width * run.case.cores;
            let all: usize = others.iter().map(threads).sum();
            let each = record.wall_s / threads(first) as f64 / options.workers.max(1) as f64;
            estimate = Duration::from_secs_f64(each * all as f64);
            journal.append(&record)?;
            records.push(record);
            rest = others;
        }
        progress.begin(all.len(), finished + (left.len() - rest.len()), estimate);
        let begin = Instant::now();
        stage.all_of(rest, progress, &mut |record| {
            journal.append(&record)?;
            records.push(record);
            Ok(())
        })?;
        let evaluation = evaluate(&records);
        let report = stage.report(&evaluation, &records, begin.elapsed());
        report.write(folder)?;
        Ok((evaluation, report))
    }
}

fn setting(
    workshop: &Workshop<'_>,
    profiles: &BTreeMap<String, Profile>,
    left_out: bool,
    options: &Options,
) -> Result<(), Error> {
    let known = options.settings.symbiosis.as_ref();
    let slowdowns = options.settings.slowdowns.as_deref().map(serde_json::to_string).transpose();
    let new = Setting {
        machine: workshop.description().name.clone(),
        size: options.size.clone(),
        seed: options.seed,
        made_private: format!("{:?}", options.switches),
        model: known.map(|known| {
            let by = (known.form, known.objective, known.inversion, known.recalls);
            let models = std::iter::once(&known.model).chain(&known.others);
            let told: Vec<String> = models
                .map(|model| format!("{} of {}", model.machine, model.training.date))
                .collect();
            format!("{}, {by:?}", told.join(", "))
        }),
        left_out,
        programs: profiles.keys().cloned().collect(),
        slowdowns: slowdowns.map_err(|why| Error::Evaluation(why.to_string()))?,
        errors: format!("{:?}", options.errors),
    };
    harness::keep(&options.output, |kept| *kept == new, || Ok(new.clone())).map(drop)
}

struct Stage<'a, 'p> {
    workshop: &'a Workshop<'p>,
    profiles: &'p BTreeMap<String, Profile>,
    models: Option<&'a Models<'a>>,
    options: &'a Options,
}

impl Stage<'_, '_> {
    /// The programs of a run.
    fn programs(&self, run: &Run) -> Vec<String> {
        run.case.programs(&self.all_programs(), self.options.seed)
    }

    fn all_programs(&self) -> Vec<String> {
        self.profiles.keys().cloned().collect()
    }

    fn carry_out(&self, run: &Run) -> Result<Record, Error> {
        let begin = Instant::now();
        let Options { size, seed, switches, errors, .. } = self.options;
        let programs = self.programs(run);
        let app = |program: &String| App { program: program.clone(), form: Form::Single };
        let workload =
            Workload { name: run.case.to_string(), apps: programs.iter().map(app).collect() };
        let setup = Setup {
            policy: run.policy.clone(),
            settings: self.settings(run, &programs)?,
            alone: size.alone,
            repeats: size.repeats,
            shown: match run.terms {
                Terms::Exchanged => Shown::Exchanged,
                Terms::Shuffled => Shown::Anew,
                _ => Shown::Own,
            },
            seed: *seed,
            switches: match run.terms {
                Terms::Private => {
                    Switches { private_units: true, private_caches: true, ..*switches }
                }
                terms => Switches { warm_caches: terms.moves_freely(), ..*switches },
            },
            costs: run.terms.moves_freely().then_some(Costs::NONE),
            errors: *errors,
            limit: Some(self.limit(run)),
            share: run.terms == Terms::Narrow,
            decision: match run.terms {
                Terms::Late => Decision { takes: DECISION, reserved: false },
                Terms::Reserved => Decision { takes: DECISION, reserved: true },
                _ => Decision::default(),
            },
            ..Setup::default()
        };
        let mut go_on = |_| ControlFlow::Continue(());
        let source = |_: &str| String::new();
        let outcome =
            simulate(self.workshop, &workload, self.profiles, &setup, &source, &mut go_on, None);
        let outcome = outcome.map_err(|why| Error::Evaluation(format!("{run}: {why}")))?;
        let place = |app: &AppOutcome| Place {
            speedup: app.speedup.value,
            turnaround: app.turnaround.value,
        };
        Ok(Record {
            run: run.clone(),
            programs,
            places: outcome.apps.iter().map(place).collect(),
            stp: outcome.stp,
            antt: outcome.antt,
            moves: outcome.moves as f64 / outcome.quanta.max(1) as f64,
            together: if run.keeps_company(size) { outcome.together } else { Vec::new() },
            unfinished: outcome.unfinished,
            wall_s: begin.elapsed().as_secs_f64(),
        })
    }

    /// What a policy knows that meets these programs.
    fn settings(&self, run: &Run, programs: &[String]) -> Result<Settings, Error> {
        let mut settings = self.options.settings.clone();
        if let (Some(known), true) = (&mut settings.symbiosis, run.terms.exchanges()) {
            Arc::make_mut(known).recalls = false;
        }
        let asks = needs_model(&run.policy, &settings);
        let (Some(models), Some(known), true) = (self.models, &settings.symbiosis, asks) else {
            return Ok(settings);
        };
        let model = Model::clone(&*models.without(programs, run.case.width)?);
        let symbiosis = Symbiosis { model, ..Symbiosis::clone(known) };
        Ok(Settings { symbiosis: Some(Arc::new(symbiosis)), ..settings })
    }

    /// The first hardware threads of the first cores.
    fn limit(&self, run: &Run) -> CpuSet {
        let cores = self.workshop.description().topology.cores().iter().take(run.case.cores);
        let width = match run.terms {
            Terms::Narrow => run.case.width / 2,
            _ => run.case.width,
        };
        cores.flat_map(|core| core.cpus.iter().take(width)).collect()
    }

    /// Carries runs out by several workers; `keep` gets each, in any order.
    fn all_of(
        &self,
        runs: &[Run],
        progress: &mut dyn Progress,
        keep: &mut dyn FnMut(Record) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (next, stop) = (&AtomicUsize::new(0), &AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.options.workers.max(1) {
                let tell = tell.clone();
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(run) = runs.get(at) else { break };
                        if tell.send(self.carry_out(run)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(tell);
            let mut result = Ok(());
            for record in told {
                let kept = record.and_then(|record| {
                    progress.running(&record.run.to_string());
                    keep(record)
                });
                progress.done();
                let stopped = if progress.cancelled() { Err(Error::Cancelled) } else { Ok(()) };
                if kept.is_err() || stopped.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    result = result.and(kept).and(stopped);
                }
            }
            result
        })
    }

    /// What the machine and the models make of the checks.
    fn judged(&self) -> Judged {
        let Description { memory, topology, .. } = self.workshop.description();
        Judged {
            left_out: self.models.is_some(),
            memory_everywhere: memory.nodes.len() == topology.nodes().len(),
        }
    }

    fn report(&self, evaluation: &Evaluation, records: &[Record], wall: Duration) -> Report {
        let mut report = page::page(evaluation, records, self.judged());
        let description = self.workshop.description();
        let checked = description.checked.as_deref().unwrap_or("unchecked");
        let Options { size, seed, switches, settings, .. } = self.options;
        report.fact("Machine", format!("simulated: {} ({})", description.name, description.title));
        report.fact("Checked by a cycle-level core", checked);
        report.fact("Note", description.note.clone());
        report.fact("Programs", self.profiles.keys().cloned().collect::<Vec<_>>().join(", "));
        if let Some(known) = &settings.symbiosis {
            let (form, objective) = (known.form.name(), known.objective.name());
            let trained = known.model.training.programs.len();
            report.fact(
                "Model",
                format!(
                    "trained on {trained} programs; {form}, {objective}, {}{}",
                    known.inversion.name(),
                    if known.recalls { ", corrected by what is remembered" } else { "" }
                ),
            );
            report.fact(
                "Programs of a workload",
                match self.models {
                    Some(models) => {
                        let asks = |record: &&Record| needs_model(&record.run.policy, settings);
                        left_out(models, &records.iter().filter(asks).collect::<Vec<_>>())
                    }
                    None => "known to the model, if it was trained on them".to_owned(),
                },
            );
        }
        report.fact("Made private to each thread", format!("{switches:?}"));
        report.fact(
            "Size",
            format!(
                "{} workloads of each width, {} repeats, targets of {:?} alone",
                size.workloads, size.repeats, size.alone
            ),
        );
        let cpu: f64 = records.iter().map(|record| record.wall_s).sum();
        report.fact("Time of all runs", format!("{:.1} min, one after the other", cpu / 60.0));
        report.fact("Wall time of this part", format!("{:.1} min", wall.as_secs_f64() / 60.0));
        report.fact("Seed", seed.to_string());
        report.fact("Version", env!("CARGO_PKG_VERSION"));
        report
    }
}

/// What is told where a workload's programs are left out of training: how much else remains.
fn left_out(models: &Models<'_>, records: &[&Record]) -> String {
    if records.is_empty() {
        return "met by no policy that asks for a model".to_owned();
    }
    let trained = models.programs();
    let without = |record: &&Record| {
        trained.iter().filter(|program| !record.programs.contains(program)).count()
    };
    let mut told = format!(
        "left out of the training of the model that predicts it; of its {} programs {} remain",
        trained.len(),
        range(records.iter().map(without))
    );
    let wide: Vec<&&Record> = records.iter().filter(|record| record.run.case.width > 2).collect();
    if !wide.is_empty() {
        let groups = wide.iter().map(|record| models.groups_without(&record.programs, 4));
        let _ = write!(
            told,
            "; of its {} groups of four {} remain where more than two threads share a core",
            models.groups_without(&[], 4),
            range(groups)
        );
    }
    told
}

/// The fewest to the most.
pub(super) fn range(counts: impl Iterator<Item = usize>) -> String {
    let counts: Vec<usize> = counts.collect();
    let fewest = counts.iter().min().copied().unwrap_or_default();
    let most = counts.iter().max().copied().unwrap_or_default();
    if fewest < most { format!("{fewest} to {most}") } else { fewest.to_string() }
}
