//! Decisions on jobs that are released or for which a node is kept, with their reasons.

use symbiont_jobs::{Basis, Job, ProgramNumber, Reason, Release};

use super::Releaser;
use super::capacity::UNKNOWN;
use crate::Decision;
use crate::knowledge::Predictor;

impl<C> Releaser<C> {
    /// A job was released to its node.
    pub(super) fn released(
        &self,
        release: &Release,
        waited_s: f64,
        now_s: f64,
        predictor: &Predictor,
    ) -> Decision {
        let Predictor { numbering, combined, .. } = predictor;
        let names = self.jobs.names();
        let name = |program: &ProgramNumber| {
            let key = numbering.key(*program);
            key.and_then(|key| names.get(key)).map_or("another program", |name| name).to_owned()
        };
        let own = self.jobs.identity(release.job);
        let victim = own.and_then(|one| numbering.get(&one.key)).unwrap_or(UNKNOWN);
        // Alone there is nothing to predict, and without the nodes' answers only one way to do so.
        let is_predicted = self.daemons.is_some() && !release.co_runners.is_empty();
        let basis = combined.basis(victim, &release.co_runners);
        let records = self.knowledge.observations().records();
        let record = own.and_then(|one| records.get(&one.key));
        Decision {
            node: Some(release.node.clone()),
            waited_s,
            co_runners: release.co_runners.iter().map(name).collect(),
            slowdown: release.slowdown,
            predicted_from: is_predicted.then(|| name_of(basis).to_owned()),
            known_runs: record.map_or(0, |one| one.runs.len()),
            ..Decision::of(
                release.job,
                self.jobs.program_name(release.job),
                now_s,
                reason(release, self.options.rules.most_wait_s),
            )
        }
    }

    /// A node is kept for a job.
    pub(super) fn keeps(&self, id: u64, node: String, queue: &[Job], now_s: f64) -> Decision {
        let reason = "its turn has come, and it has room nowhere yet".to_owned();
        Decision {
            node: Some(node),
            is_kept: true,
            waited_s: queue.iter().find(|job| job.id == id).map_or(0.0, |job| job.waited_s(now_s)),
            ..Decision::of(id, self.jobs.program_name(id), now_s, reason)
        }
    }
}

/// The label under which a release is counted.
pub fn label(reason: &Reason) -> &'static str {
    match reason {
        Reason::Overdue { .. } => "overdue",
        Reason::First => "first",
        Reason::Partner { .. } => "partner",
    }
}

fn name_of(basis: Basis) -> &'static str {
    match basis {
        Basis::Stacks => "CPI stacks",
        Basis::SharedCores => "shared cores",
        Basis::RunTimes => "run times",
    }
}

/// Why a job was released, in a sentence.
fn reason(release: &Release, most_wait_s: f64) -> String {
    let reason = match &release.reason {
        Reason::Overdue { waited_s } => {
            format!("it waited for {waited_s:.0} s, of {most_wait_s:.0} s at most")
        }
        Reason::First => "first of the queue that fits there".to_owned(),
        Reason::Partner { first, first_cost, cost, overtaken } => format!(
            "it suits what runs there: costs {cost:+.2} against its average, job {first} before it \
             {first_cost:+.2}; starts before {overtaken} others"
        ),
    };
    match release.kept_for {
        Some(wide) => format!(
            "{reason}; by the time limits job {wide}, for which {} is kept, starts no later",
            release.node
        ),
        None => reason,
    }
}
