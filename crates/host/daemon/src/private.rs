//! The manager of a single run, where no daemon manages the machine.
//!
//! # Problem
//! A program that `symbiont run` starts shall be managed from its first instruction to its end, by a
//! process that no one sees, that never harms it and that reports at the end.
//!
//! # Approach
//! [`manage`] takes the lock of its state directory, restores what a crashed manager left, enrols the
//! programs that [`symbiont_linux::launch`] holds back, and steps the same
//! [`Controller`](symbiont_control::Controller) as the daemon, without clients. The loop ends with
//! the programs; then it restores everything, and reports.
//!
//! # Properties
//! - A panic in the loop is reported, and everything is restored
//!   (`a_panic_in_the_loop_is_reported_and_gives_the_machine_back_to_be_restored`).

mod held;
mod last_word;
mod report;
mod run;
mod start;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use symbiont_control::Holding;
use symbiont_linux::actuate::{LockError, StateDirError};
use symbiont_linux::launch::Manager;
use symbiont_linux::machine::{CountOptions, Keeping, LinuxError, LinuxMachine, MachineOptions};
use symbiont_linux::observe::{Choice, WatchOptions};
use symbiont_linux::slow::SlowCpu;
use symbiont_machine::{Class, DryRun, Machine, Signal};
use symbiont_planner::Bounds;
use symbiont_policy::{Classes, Entry, Policy, Settings};
use symbiont_topology::SysfsError;

use crate::learned::LearnedFile;

use held::RunLock;
use last_word::LastWord;
pub use report::{LatenessMs, ManagerCost, ManagerReport, Moves, RestoreOutcome};
pub(crate) use run::panic_message;
use run::{finish, keep, run};
use start::{notes, prepare, room, set_alarm};

/// Quanta in a row that may fail: there may be no memory, or no descriptors, for a moment.
const TOLERATED: u32 = 10;

/// All that was decided before the manager starts.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Decides.
    pub policy: &'static Entry,
    /// The settings of the policy.
    pub settings: Settings,
    /// Between two steps.
    pub quantum: Duration,
    /// The bounds of the planner.
    pub bounds: Bounds,
    /// Which masks stay narrow.
    pub holding: Holding,
    /// How other threads are kept on their targets.
    pub keeping: Keeping,
    /// How new threads are found.
    pub choice: Choice,
    /// How events are counted.
    pub counting: CountOptions,
    /// Decides, and changes nothing.
    pub dry_run: bool,
    /// The purpose of the programs.
    pub class: Class,
    /// Manage daemons to their end?
    pub linger: bool,
    /// Add up where programs ran, with which co-runners, and why?
    pub summarise: bool,
    /// When it looks again.
    pub wakes: Wakes,
    /// CPUs that are slower than the machine says.
    pub slower: Vec<SlowCpu>,
    /// Where lock and journal are.
    pub state_dir: PathBuf,
    /// What was learned of pairs of programs is kept here.
    pub learned: Option<LearnedFile>,
    /// This machine's processor, for the recording.
    pub processor: Option<String>,
    /// An open file for the recording, which the manager keeps, and its path.
    pub record: Option<(&'a File, &'a Path)>,
}

/// When the loop looks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wakes {
    /// Once a quantum.
    Quanta,
    /// Also as soon as a program changes its phase, by the scheduler's tracepoints.
    Phases,
}

/// Why programs run unmanaged.
#[derive(Debug, thiserror::Error)]
enum PrivateError {
    #[error("/proc is not mounted here: {0}")]
    NoProc(std::io::Error),
    #[error(
        "{0}; for programs of several runs start the daemon (`symbiont daemon`, or `systemctl start symbiontd`), or \
         name them in one job file (`symbiont run --job FILE`)"
    )]
    Busy(LockError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("cannot read this machine's topology: {0}")]
    Topology(#[from] SysfsError),
    #[error(transparent)]
    StateDir(#[from] StateDirError),
    #[error(transparent)]
    Machine(#[from] LinuxError),
    #[error("policy '{policy}' needs {signal}, but {why}")]
    MissingSignal { policy: &'static str, signal: Signal, why: String },
    #[error("not alone: {0}")]
    NotAlone(String),
}

/// Manages the roots until they have ended, or until it is asked to end.
pub fn manage(manager: Manager, plan: &Plan<'_>) {
    // The programs run whatever happens here; their user may want to know why they run unmanaged.
    if let Err((why, Some(manager))) = try_to_manage(manager, plan) {
        manager.fail(&why.to_string());
    }
}

/// The error gives the manager back if the roots are still held back.
fn try_to_manage(
    manager: Manager,
    plan: &Plan<'_>,
) -> Result<(), (Box<PrivateError>, Option<Manager>)> {
    let (mut lock, host, left) = match prepare(&manager, plan) {
        Ok(prepared) => prepared,
        Err(why) => return Err((Box::new(why), Some(manager))),
    };
    let watch = WatchOptions { choice: plan.choice, ..WatchOptions::default() };
    let (state_dir, counting) = (plan.state_dir.clone(), plan.counting.clone());
    let options = MachineOptions { state_dir, watch, counting, keeping: plan.keeping };
    let roots: Vec<(String, u32)> =
        manager.roots().iter().map(|root| (root.name().to_owned(), root.pid())).collect();
    let last_word = roots.first().and_then(|(_, process)| LastWord::to_user_of(*process));
    let mut machine = match LinuxMachine::new(host, options, manager) {
        Ok(machine) => machine,
        Err((why, manager)) => return Err((Box::new(why.into()), Some(manager))),
    };
    if !plan.linger {
        machine.release_daemons();
    }
    let mut policy: Box<dyn Policy> = Box::new(Classes::new((plan.policy.make)(&plan.settings)));
    // The machine reports what it can count only after it was asked.
    machine.measure(&policy.requirements().asked());
    let note = policy.offer(machine.support(), machine.topology());
    let needs = policy.requirements().required;
    machine.measure(&needs);
    if let Some((signal, why)) = machine.support().missing(&needs) {
        let why = PrivateError::MissingSignal { policy: plan.policy.name, signal, why };
        return Err((Box::new(why), Some(machine.restore_all().1)));
    }
    let no_core = match room(&machine, plan.class, &roots) {
        Ok(note) => note,
        Err(why) => return Err((Box::new(why), Some(machine.restore_all().1))),
    };
    for (name, pid) in &roots {
        match machine.enrol(name, *pid) {
            Ok(id) => machine.set_class(id, plan.class),
            Err(why) => {
                let (_, manager) = machine.restore_all();
                return Err((Box::new(why.into()), Some(manager)));
            }
        }
    }
    let mut notes = notes(&machine, plan, &needs, left);
    notes.extend(machine.scheduler_lost());
    notes.extend(no_core);
    notes.extend(note);
    if let Err(why) = set_alarm(&mut machine, plan, &roots) {
        notes.push(format!("changes of phases are seen once a quantum only: {why}"));
    }
    if machine.waiter_mut().ready(&notes.join("; ")).is_err() {
        // No supervisor waits any more: there is nothing to manage.
        return Ok(());
    }
    let programs = machine.programs().to_vec();
    let start = machine.cost().cpu;
    let held = RunLock::new(&mut lock, &roots);
    let (machine, report, learned) = if plan.dry_run {
        let (machine, report, learned) = run(DryRun(machine), policy, plan, programs, held);
        (machine.0, report, learned)
    } else {
        run(machine, policy, plan, programs, held)
    };
    let (mut report, manager) = finish(machine, report, start);
    report.trouble.extend(keep(plan, learned));
    drop(lock);
    let bytes = serde_json::to_vec(&report).unwrap_or_default();
    // After an exec in place no supervisor hears it.
    if let (Err(_), Some(last_word)) = (manager.report(bytes), last_word) {
        last_word.say(&report.trouble);
    }
    Ok(())
}
