//! The loop of a run's manager, from the first step to the report.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use symbiont_control::{Controller, Step, Summary};
use symbiont_linux::machine::{LinuxError, LinuxMachine, Wait};
use symbiont_linux::observe::Method;
use symbiont_machine::{Machine, Program};
use symbiont_planner::Planner;
use symbiont_policy::{LearnedPairs, Policy};
use symbiont_topology::{CpuSet, counted};
use symbiont_trace::{Header, Recorder};

use super::held::RunLock;
use super::report::{ManagerReport, Moves, RestoreOutcome};
use super::{Plan, TOLERATED};
use crate::explain;
use crate::masks::{doubted, suspected};
use crate::occupants::Host;
use crate::quiet::Watch;

/// Runs the loop, and gives what the policy has learned; never fails as a whole, for what is applied must be restored.
pub(super) fn run<M: Machine<Error = LinuxError>>(
    machine: M,
    policy: Box<dyn Policy>,
    plan: &Plan<'_>,
    programs: Vec<Program>,
    mut held: RunLock<'_>,
) -> (M, ManagerReport, Option<LearnedPairs>) {
    let mut report = ManagerReport {
        policy: plan.policy.name.to_owned(),
        quantum_ms: plan.quantum.as_secs_f64() * 1e3,
        hardware_threads: machine.topology().cpus().len(),
        dry_run: plan.dry_run,
        ..ManagerReport::default()
    };
    let mut recorder = None;
    if let Some((file, path)) = plan.record {
        let header = Header {
            topology: machine.topology().clone(),
            support: machine.support().clone(),
            policy: plan.policy.name.to_owned(),
            quantum: plan.quantum,
            programs,
            processor: plan.processor.clone(),
        };
        match Recorder::new(file, path.display().to_string(), &header) {
            Ok(started) => recorder = Some(started),
            Err(error) => report.trouble.push(error.to_string()),
        }
    }
    let mut summary = plan.summarise.then(|| Summary::new(machine.topology()));
    let topology = machine.topology().clone();
    let controller = Controller::new(machine, policy, Planner::new(plan.bounds));
    let mut controller = controller.tolerating(TOLERATED).holding(plan.holding);
    let mut quiet = Watch::default();
    let mut each = |step: &Step| {
        if !plan.dry_run {
            quiet.check(&step.sample, &step.placement, &topology, &mut Host);
            report.quiet = quiet.total().or(report.quiet.take());
        }
        if report.usable == 0 {
            let all = step.sample.threads.iter().map(|thread| &thread.allowed);
            report.usable = all.fold(CpuSet::new(), |all, cpus| all.union(cpus)).len();
        }
        held.note(&step.sample);
        if let Some(summary) = &mut summary {
            summary.add(&step.sample, &step.characterizations, &step.placement);
        }
        if let Some(Err(error)) =
            recorder.as_mut().map(|r| r.record(&step.sample, &step.placement, step.moves()))
        {
            report.trouble.push(error.to_string());
            recorder = None;
        }
        if let Err(error) = held.keep(step.sample.at) {
            report.trouble.push(format!("management ended: {error}"));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    // After any end of the loop, applied changes must be restored.
    let ended = catch_unwind(AssertUnwindSafe(|| controller.run(plan.quantum, &mut each)));
    let mut learned = None;
    match ended {
        Ok(ended) => {
            report.findings = controller.policy().findings();
            learned = controller.policy().learned();
            let early = ended.err().map(|error| format!("management ended early: {error}"));
            report.trouble.extend(early);
        }
        Err(panic) => report.trouble.push(format!(
            "management ended early: it panicked, which is a defect of symbiont: {}",
            panic_message(&*panic)
        )),
    }
    let tally = controller.tally();
    if let Some(why) = &tally.last_failure {
        let failures = counted(tally.failures, "quantum");
        report.trouble.push(format!("{failures} had to be skipped; the last time: {why}"));
    }
    report.quanta = tally.quanta;
    report.threads = tally.threads;
    report.moves = Moves {
        done: tally.done,
        nudges: tally.nudges,
        gone: tally.gone,
        externally_changed: tally.externally_changed,
        refused: tally.refused,
        not_enforced: tally.not_enforced,
        withheld: tally.withheld.values().sum(),
        reasons: tally.refusals.clone(),
        withheld_reasons: explain::withheld(tally),
    };
    report.summary = summary.map(|summary| summary.report()).unwrap_or_default();
    (controller.into_machine(), report, learned)
}

/// Keeps what was learned, after all was restored; why it could not.
pub(super) fn keep(plan: &Plan<'_>, learned: Option<LearnedPairs>) -> Option<String> {
    let file = plan.learned.as_ref().filter(|_| !plan.dry_run);
    file.zip(learned).and_then(|(file, learned)| file.write(learned).err())
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

/// Restores everything, and completes the report. `start`: CPU time until the
/// loop began.
pub(super) fn finish<W: Wait>(
    machine: LinuxMachine<W>,
    mut report: ManagerReport,
    start: Duration,
) -> (ManagerReport, W) {
    let method = match machine.method() {
        Method::Connector { .. } => "process connector".to_owned(),
        Method::Scan { why } => format!("scanning /proc ({why})"),
    };
    report.describe(&machine, method, start);
    if machine.was_terminated() {
        let why = "management ended before the programs did: by a signal, or before its limit of CPU time";
        report.trouble.push(why.to_owned());
    }
    report.trouble.extend(machine.troubles());
    report.trouble.extend(suspected(&machine.suspects()));
    report.trouble.extend(doubted(&machine.doubts()));
    let slipped = machine.slipped();
    let (restored, waiter) = machine.restore_all();
    report.restored = RestoreOutcome::from(restored);
    report.trouble.extend(unrestored(slipped, report.restored.failed.len()));
    (report, waiter)
}

/// What a user should know of threads that could not be restored at once, or not at all.
fn unrestored(slipped: u64, left: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if slipped > 0 {
        lines.push(format!(
            "{} became another user's (a setuid program) while a change by symbiont was applied \
             to it: it could not be restored at once",
            counted(slipped, "thread")
        ));
    }
    if left > 0 {
        lines.push(format!(
            "{} could not be restored: `symbiont restore` as root does so, with --state-dir if \
             you gave one",
            counted(left, "thread")
        ));
    }
    lines
}

#[cfg(test)]
mod tests;
