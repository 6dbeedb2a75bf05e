//! What a simulated experiment gives.

use serde::Serialize;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, Fidelity};

use super::{App, Setup};
use symbiont_report::stats::Estimate;
use symbiont_report::{Column, Table};

/// What a figure of the simulated machine rests on. Goes with every report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Provenance {
    /// Always true: nothing of this was measured on hardware.
    pub simulated: bool,
    /// Which level of the simulated machine the figures are of.
    pub level: &'static str,
    /// How a cycle-level core checked this description; `unchecked` if none did.
    pub checked: String,
    /// What was measured on the real machine and this was held against, with the error; else that nothing was.
    pub held: String,
    /// The description's name.
    pub machine: String,
    /// What people call the machine.
    pub title: String,
    /// What to know before trusting it.
    pub note: String,
    /// Hardware threads and cores that took part.
    pub hardware_threads: usize,
    /// Cores that took part.
    pub cores: usize,
    /// Values of the description, and how many of them are unpublished.
    pub values: usize,
    /// The unpublished ones.
    pub assumed: usize,
    /// Resources that each thread got for itself, to show what sharing them
    /// causes.
    pub made_private: Vec<&'static str>,
    /// How far the counters erred.
    pub counter_errors: Errors,
}

/// What a description was held against, in words.
#[must_use]
pub fn held(description: &Description) -> &str {
    description.held.as_deref().unwrap_or("not held against hardware")
}

/// What simulated speeds say of pairs of threads on real cores; none where a core has one hardware thread.
#[must_use]
pub fn pairs(description: &Description) -> Option<&'static str> {
    const WRONG: &str = "simulated pair speeds do not choose pairs on real hardware: held against measured pairs, \
                         on the xeon-silver-4110, they rank victims right and co-runners wrong";
    (description.topology.smt_width() > 1).then_some(WRONG)
}

impl Provenance {
    /// Of figures of the fast level.
    pub fn new(description: &Description, setup: &Setup) -> Self {
        Self {
            simulated: true,
            level: <TableBuilder<'_> as Fidelity<'_>>::NAME,
            checked: description.checked.clone().unwrap_or_else(|| "unchecked".to_owned()),
            held: held(description).to_owned(),
            machine: description.name.clone(),
            title: description.title.clone(),
            note: description.note.clone(),
            hardware_threads: description.topology.cpus().len(),
            cores: description.topology.cores().len(),
            values: description.values.len(),
            assumed: description.assumed().count(),
            made_private: made_private(setup.switches),
            counter_errors: setup.errors,
        }
    }
}

fn made_private(switches: Switches) -> Vec<&'static str> {
    [
        (switches.private_units, "units"),
        (switches.private_caches, "caches"),
        (switches.private_bandwidth, "bandwidth"),
        (switches.private_predictor, "predictor"),
    ]
    .into_iter()
    .filter_map(|(private, name)| private.then_some(name))
    .collect()
}

/// What became of one program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppOutcome {
    /// The program, as in the workload.
    pub app: App,
    /// Where its profile comes from.
    pub profile: String,
    /// The command that was profiled.
    pub command: String,
    /// Instructions that it had to retire.
    pub target: u64,
    /// Instructions per nanosecond alone.
    pub alone_speed: f64,
    /// Speedup, T_alone / T_together, over the repeats; below 1 as a rule.
    pub speedup: Estimate,
    /// Turnaround time, T_together / T_alone, over the repeats.
    pub turnaround: Estimate,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// What all of it rests on.
    pub provenance: Provenance,
    /// The workload's name.
    pub workload: String,
    /// The policy.
    pub policy: String,
    /// Period of its decisions, ms.
    pub quantum_ms: f64,
    /// How long each of its decisions takes, ms; none: no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_ms: Option<f64>,
    /// Is the last core left to the decision meanwhile?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reserved_core: bool,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Time alone that sets the targets, s.
    pub alone_s: f64,
    /// Repeats from which the figures come.
    pub repeats: usize,
    /// Repeats that did not end in the time given, and were left out.
    pub unfinished: usize,
    /// System throughput: sum of speedups.
    pub stp: Estimate,
    /// Average normalised turnaround time: mean of 1 / speedup.
    pub antt: Estimate,
    /// Least ratio of two programs' speedups; none where there is one program.
    pub fairness: Option<Estimate>,
    /// Mean length of a repeat, s of simulated time.
    pub length_s: f64,
    /// Quanta and moves of all repeats.
    pub quanta: u64,
    /// Moves that were carried out.
    pub moves: u64,
    /// Share of the physics' questions for which no fixed point was found.
    pub unsettled: f64,
    /// By program, in the workload's order.
    pub apps: Vec<AppOutcome>,
    /// Share of quanta in which two programs were on one core, by their places in the workload.
    pub together: Vec<Vec<f64>>,
}

impl Outcome {
    /// A row for each program, with what distinguishes runs; speedups and turnaround times with their
    /// intervals. The sum of a run's speedups is its STP.
    #[must_use]
    pub fn by_program(&self) -> Table {
        let columns = vec![
            Column::text("machine"),
            Column::text("policy"),
            Column::number("seed"),
            Column::number("place"),
            Column::text("program"),
            Column::number("instructions"),
            Column::number("alone_per_ns"),
            Column::number("speedup"),
            Column::number("turnaround"),
            Column::text("workload"),
        ];
        let caption = format!("Programs on {}, simulated", self.provenance.machine);
        let mut table = Table::new("programs", caption, columns);
        for (place, app) in self.apps.iter().enumerate() {
            table.row(vec![
                self.provenance.machine.as_str().into(),
                self.policy.as_str().into(),
                self.seed.into(),
                (place as u64).into(),
                app.app.to_string().into(),
                app.target.into(),
                app.alone_speed.into(),
                app.speedup.into(),
                app.turnaround.into(),
                self.workload.as_str().into(),
            ]);
        }
        table
    }
}
