//! What comes before the first step of a run's manager.

use std::path::Path;
use std::time::{Duration, Instant};

use symbiont_linux::actuate::{Lock, LockError, default_state_dir, restore};
use symbiont_linux::launch::Manager;
use symbiont_linux::machine::{LinuxMachine, Wait};
use symbiont_linux::switches::SwitchError;
use symbiont_machine::{Ability, Class, Machine, Signals};
use symbiont_policy::{Phases, room_for_one};
use symbiont_topology::HostTopology;

use super::{Plan, PrivateError, Wakes};
use crate::client::remove_dead_socket;

/// Takes the lock, restores what crashed managers left changed, reads the topology.
pub(super) fn prepare(
    manager: &Manager,
    plan: &Plan<'_>,
) -> Result<(Lock, HostTopology, Leftovers), PrivateError> {
    // Identities, and the boot that journals belong to, are read there.
    std::fs::metadata("/proc/self/stat").map_err(PrivateError::NoProc)?;
    let mut lock = acquire(&plan.state_dir).map_err(|why| match why {
        LockError::Busy { .. } => PrivateError::Busy(why),
        why => PrivateError::Lock(why),
    })?;
    for root in manager.roots() {
        lock.manages(root.pid())?;
    }
    remove_dead_socket(&plan.state_dir);
    let host = HostTopology::read()?;
    let host = host.slowed(&plan.slower.iter().map(|slow| (slow.cpu(), slow.factor())).collect());
    // What a crashed manager left must not pass for what the user set.
    let restored = restore(&host, &plan.state_dir)?;
    let left = if restored.leaves_something() { Leftovers::Some } else { Leftovers::None };
    Ok((lock, host, left))
}

/// What crashed managers left changed and could not be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftovers {
    None,
    Some,
}

/// Takes the lock. The manager of a program that has just ended still
/// restores: in a script that is no reason to run the next program unmanaged.
fn acquire(state_dir: &Path) -> Result<Lock, LockError> {
    /// For a manager whose programs live: they may be about to end.
    const TIMEOUT: Duration = Duration::from_millis(300);
    /// For one whose programs have ended.
    const PATIENCE_WITH_END: Duration = Duration::from_secs(6);
    const PAUSE: Duration = Duration::from_millis(10);
    let (begin, usual) = (Instant::now(), [default_state_dir()]);
    loop {
        match Lock::acquire(state_dir, &usual) {
            Err(LockError::Busy { ending: false, .. }) if begin.elapsed() < TIMEOUT => {}
            Err(LockError::Busy { ending: true, .. }) if begin.elapsed() < PATIENCE_WITH_END => {}
            other => return other,
        }
        std::thread::sleep(PAUSE);
    }
}

/// The policy's threshold depends on how many hardware threads the programs can reach.
pub(super) fn set_alarm<W: Wait>(
    machine: &mut LinuxMachine<W>,
    plan: &Plan<'_>,
    roots: &[(String, u32)],
) -> Result<(), SwitchError> {
    match plan.wakes {
        Wakes::Quanta => Ok(()),
        Wakes::Phases => {
            let processes: Vec<u32> = roots.iter().map(|(_, process)| *process).collect();
            let reach = machine.reach(&processes);
            machine.set_alarm(Phases::with(&plan.settings).threshold(&reach))
        }
    }
}

/// Is there a core for programs of this class? A note where those that answer requests have to do
/// without.
pub(super) fn room<W: Wait>(
    machine: &LinuxMachine<W>,
    class: Class,
    roots: &[(String, u32)],
) -> Result<Option<String>, PrivateError> {
    if !class.keeps_cores() {
        return Ok(None);
    }
    let processes: Vec<u32> = roots.iter().map(|(_, process)| *process).collect();
    let room = room_for_one(machine.topology(), &machine.reach(&processes), 0);
    let trouble = match (&machine.support().affinity, room) {
        (Ability::Absent(why), _) => format!("threads cannot be placed: {why}"),
        (_, Err(why)) => why.to_string(),
        (_, Ok(())) => return Ok(None),
    };
    match class {
        Class::Alone => Err(PrivateError::NotAlone(trouble)),
        _ => Ok(Some(format!("no core of its own: {trouble}"))),
    }
}

/// What the user should know at once.
pub(super) fn notes<W: Wait>(
    machine: &LinuxMachine<W>,
    plan: &Plan<'_>,
    needs: &Signals,
    left: Leftovers,
) -> Vec<String> {
    let support = machine.support();
    let mut notes = Vec::new();
    if left == Leftovers::Some {
        notes.push(
            "not all that a crashed symbiont changed could be restored: see `symbiont restore`"
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
