//! What the manager process does: enrol, loop, put back, report.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use symbiont_control::{Controller, Step};
use symbiont_linux::actuate::{Lock, LockError, restore};
use symbiont_linux::launch::Manager;
use symbiont_linux::machine::{CountOptions, LinuxError, LinuxMachine, Options, Wait};
use symbiont_linux::observe::{Choice, Method, WatchOptions};
use symbiont_linux::slow::SlowCpu;
use symbiont_linux::switches::SwitchError;
use symbiont_machine::{Ability, DryRun, Machine, Outcome, Program, Signals};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Entry, Phases, Policy, Settings};
use symbiont_topology::HostTopology;
use symbiont_trace::{Header, Recorder};

use crate::args::SeeBy;
use crate::report::{ManagerReport, Moves, PutBack};

/// All that was decided before the manager starts.
#[derive(Debug)]
pub struct Plan<'a> {
    pub policy: &'static Entry,
    pub settings: Settings,
    pub quantum: Duration,
    pub bounds: Bounds,
    pub choice: Choice,
    pub counting: CountOptions,
    pub dry_run: bool,
    /// Look again as soon as a program changes its phase?
    pub see_by: SeeBy,
    /// CPUs that are slower than the machine says.
    pub slower: Vec<SlowCpu>,
    pub state_dir: PathBuf,
    /// An open file for the recording, which the manager keeps, and its path.
    pub record: Option<(&'a File, &'a Path)>,
}

/// Manages the roots until they have ended, or until it is told to end.
pub fn manage(manager: Manager, plan: &Plan<'_>) {
    // The programs run whatever happens here; somebody may want to know why
    // they run unmanaged.
    if let Err((why, Some(manager))) = try_to_manage(manager, plan) {
        manager.fail(&crate::words(&why));
    }
}

/// The error gives the manager back if the roots are still held back.
fn try_to_manage(
    manager: Manager,
    plan: &Plan<'_>,
) -> Result<(), (anyhow::Error, Option<Manager>)> {
    let (lock, host, left) = match prepare(&manager, plan) {
        Ok(prepared) => prepared,
        Err(why) => return Err((why, Some(manager))),
    };
    let watch = WatchOptions { choice: plan.choice, ..WatchOptions::default() };
    let (state_dir, counting) = (plan.state_dir.clone(), plan.counting.clone());
    let options = Options { state_dir, watch, counting };
    let roots: Vec<(String, u32)> =
        manager.roots().iter().map(|root| (root.name().to_owned(), root.pid())).collect();
    let mut machine = match LinuxMachine::new(host, options, manager) {
        Ok(machine) => machine,
        Err((why, manager)) => return Err((why.into(), Some(manager))),
    };
    let mut policy = (plan.policy.make)(&plan.settings);
    // What can be counted is known once it is asked for.
    machine.measure(&policy.needs().union(&policy.alternatives()).copied().collect());
    let adapted = policy.adapt(machine.support());
    let needs = policy.needs();
    machine.measure(&needs);
    if let Some((signal, why)) = machine.support().missing(&needs) {
        let why = anyhow::anyhow!("policy '{}' needs {signal}, but {why}", plan.policy.name);
        return Err((why, Some(machine.put_back().1)));
    }
    for (name, pid) in &roots {
        if let Err(why) = machine.enrol(name, *pid) {
            let (_, manager) = machine.put_back();
            return Err((why.into(), Some(manager)));
        }
    }
    let mut notes = notes(&machine, plan, &needs, left);
    notes.extend(adapted);
    if let Err(why) = set_alarm(&mut machine, plan, &roots) {
        notes.push(format!("changes of phases are seen once a quantum only: {why}"));
    }
    if machine.waiter_mut().ready(&notes.join("; ")).is_err() {
        // Nobody waits any more: there is nothing to manage.
        return Ok(());
    }
    let programs = machine.programs().to_vec();
    let start = machine.cost().cpu;
    let (report, manager) = if plan.dry_run {
        let (machine, report) = run(DryRun(machine), policy, plan, programs);
        finish(machine.0, report, start)
    } else {
        let (machine, report) = run(machine, policy, plan, programs);
        finish(machine, report, start)
    };
    drop(lock);
    let bytes = serde_json::to_vec(&report).unwrap_or_default();
    // After an exec in place nobody is there to hear it.
    let _ = manager.report(bytes);
    Ok(())
}

/// The policy's threshold depends on how many hardware threads the programs can reach.
fn set_alarm<W: Wait>(
    machine: &mut LinuxMachine<W>,
    plan: &Plan<'_>,
    roots: &[(String, u32)],
) -> Result<(), SwitchError> {
    match plan.see_by {
        SeeBy::Accounts => Ok(()),
        SeeBy::Tracepoints => {
            let processes: Vec<u32> = roots.iter().map(|(_, process)| *process).collect();
            let reach = machine.reach(&processes);
            machine.set_alarm(Phases::with(&plan.settings).threshold(&reach))
        }
    }
}

/// The lock, the topology, and whether all is put back that crashed managers
/// left changed.
fn prepare(manager: &Manager, plan: &Plan<'_>) -> anyhow::Result<(Lock, HostTopology, Leftovers)> {
    let mut lock = acquire(&plan.state_dir).map_err(|why| match why {
        LockError::Busy { .. } => {
            anyhow::anyhow!("{why}; one job file (`--job`) manages several programs together")
        }
        why => why.into(),
    })?;
    for root in manager.roots() {
        lock.manages(root.pid())?;
    }
    let host = HostTopology::read().context("cannot read this machine's topology")?;
    let host = host.slowed(&plan.slower.iter().map(|slow| (slow.cpu(), slow.factor())).collect());
    // What a crashed manager left must not pass for what the user set.
    let restored = restore(&host, &plan.state_dir)?;
    let left = match restored.report.failed.is_empty() && restored.unusable.is_empty() {
        true => Leftovers::None,
        false => Leftovers::Some,
    };
    Ok((lock, host, left))
}

/// What crashed managers left changed and could not be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    None,
    Some,
}

/// Takes the lock. The manager of a program that has just ended still puts
/// things back for some milliseconds: in a script that is no reason to run the
/// next program unmanaged.
fn acquire(state_dir: &Path) -> Result<Lock, LockError> {
    const TRIES: u32 = 30;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 1..TRIES {
        match Lock::acquire(state_dir) {
            Err(LockError::Busy { .. }) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    Lock::acquire(state_dir)
}

/// What the user should know at once.
fn notes<W: Wait>(
    machine: &LinuxMachine<W>,
    plan: &Plan<'_>,
    needs: &Signals,
    left: Leftovers,
) -> Vec<String> {
    let support = machine.support();
    let mut notes = Vec::new();
    if left == Leftovers::Some {
        notes.push(
            "not all that a crashed symbiont changed could be put back: see `symbiont restore`"
                .to_owned(),
        );
    }
    match &support.affinity {
        Ability::Full => {}
        Ability::Partial(why) => notes.push(why.clone()),
        Ability::Absent(why) => notes.push(format!("threads cannot be placed: {why}")),
    }
    if let (true, Ability::Absent(why)) = (plan.policy.boosts, &support.boost) {
        notes.push(format!("serial threads are placed, not boosted: {why}"));
    }
    for signal in needs.iter().filter(|signal| signal.is_counted()) {
        if let Some(Ability::Partial(why)) = support.signals.get(signal) {
            notes.push(format!("{signal} in part: {why}"));
        }
    }
    notes
}

/// Runs the loop; never fails as a whole, for what is in force must be put back.
fn run<M: Machine<Error = LinuxError>>(
    machine: M,
    policy: Box<dyn Policy>,
    plan: &Plan<'_>,
    programs: Vec<Program>,
) -> (M, ManagerReport) {
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
        };
        match Recorder::new(file, path.display().to_string(), &header) {
            Ok(started) => recorder = Some(started),
            Err(error) => report.trouble.push(error.to_string()),
        }
    }
    let wishes = policy.wishes(machine.topology());
    let controller = Controller::new(machine, policy, Planner::new(plan.bounds));
    let mut controller = controller.measuring(&wishes);
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let ended = controller.run(plan.quantum, |step| {
        note_reasons(&mut reasons, step);
        if let Some(Err(error)) =
            recorder.as_mut().map(|r| r.record(&step.sample, &step.placement, step.moves()))
        {
            report.trouble.push(error.to_string());
            recorder = None;
        }
        ControlFlow::Continue(())
    });
    if let Err(error) = ended {
        report.trouble.push(error.to_string());
    }
    let tally = controller.tally();
    report.quanta = tally.quanta;
    report.threads = tally.threads;
    report.moves = Moves {
        done: tally.done,
        gone: tally.gone,
        foreign: tally.foreign,
        refused: tally.refused,
        not_enforced: tally.not_enforced,
        withheld: tally.withheld.values().sum(),
        reasons,
    };
    report.findings = controller.policy().findings();
    (controller.into_machine(), report)
}

fn note_reasons(reasons: &mut BTreeMap<String, u64>, step: &Step) {
    /// More different reasons than this are not told apart.
    const MOST: usize = 16;
    for outcome in &step.outcomes {
        if let Outcome::Refused(why) = outcome {
            if let Some(count) = reasons.get_mut(why) {
                *count += 1;
            } else if reasons.len() < MOST {
                reasons.insert(why.clone(), 1);
            }
        }
    }
}

/// Puts everything back, and completes the report. `start`: CPU time until the
/// loop began.
fn finish<W: Wait>(
    machine: LinuxMachine<W>,
    mut report: ManagerReport,
    start: Duration,
) -> (ManagerReport, W) {
    let method = match machine.method() {
        Method::Connector { .. } => "process connector".to_owned(),
        Method::Scan { why } => format!("scanning /proc ({why})"),
    };
    report.describe(&machine, method, start);
    let (put_back, waiter) = machine.put_back();
    report.put_back = PutBack::from(put_back);
    (report, waiter)
}
