//! Lets go of processes that outlive their program.
//!
//! # Problem
//! A program may leave daemons behind (`gpg-agent`, `sccache`). Were they managed to their end, the manager would
//! hold the lock for hours, and all further programs would run unmanaged.
//!
//! # Approach
//! Once the first process of every program has ended, descendants that have left its session are *released*:
//!
//! ```text
//! at one sample:   what was changed on them is undone; the sample leaves them out, but they stay enrolled
//! at the next one: they are no longer enrolled
//! ```
//!
//! In between, a child that was being born with what its parent then had is still reported and repaired; then it
//! is released as well.
//!
//! # Properties
//! In `tests/release.rs`:
//! - A daemon is restored and released, descendants in the session are not
//!   (`a_daemon_is_released_once_its_program_has_ended`).
//! - A released process stays as its user left it, also where births are found by scanning
//!   (`a_released_process_is_left_alone`).

use std::collections::{BTreeMap, BTreeSet};

use procfs::process::Process;
use symbiont_machine::ProgramId;

use super::{LinuxMachine, Wait};
use crate::actuate::{RestoreReport, ThreadKey};
use crate::observe::Observed;

/// The first process of a program.
#[derive(Debug, Clone, Copy)]
struct Root {
    process: u32,
    /// The session that it is in, or was at its end.
    session: u32,
}

/// The processes that are released, and those that are to be.
#[derive(Debug, Default)]
pub(super) struct Releases {
    roots: BTreeMap<ProgramId, Root>,
    /// Release those that left the session of their program, once all programs' first processes
    /// have ended?
    leavers: bool,
    /// Programs that are left to their daemons: release those.
    ended: BTreeSet<ProgramId>,
    /// Restored, but still enrolled.
    leaving: BTreeSet<u32>,
}

impl Releases {
    /// A program begins with this process.
    pub fn begins(&mut self, program: ProgramId, process: u32) {
        // Session 0 is one that began outside of this process's namespace, or the kernel's own:
        // getsid(2) of rustix takes it for impossible.
        let stat = i32::try_from(process)
            .ok()
            .and_then(|pid| Process::new(pid).and_then(|process| process.stat()).ok());
        let session = stat.map_or(0, |stat| stat.session.unsigned_abs());
        self.roots.insert(program, Root { process, session });
    }

    /// The program is managed no longer.
    pub fn forget(&mut self, program: ProgramId) {
        self.roots.remove(&program);
        self.ended.remove(&program);
    }

    /// Is it restored, and enrolled until the next sample only?
    pub fn is_leaving(&self, process: u32) -> bool {
        self.leaving.contains(&process)
    }

    /// The first processes may change their sessions.
    fn note(&mut self, observed: &[Observed]) {
        for root in self.roots.values_mut() {
            let key = |thread: &Observed| (thread.id.process, thread.id.thread);
            let leader = (root.process, root.process);
            if let Ok(at) = observed.binary_search_by_key(&leader, key) {
                root.session = observed.get(at).map_or(root.session, |leader| leader.session);
            }
        }
    }

    /// Is it outside of the session of its program?
    fn has_left(&self, thread: &Observed) -> bool {
        self.is_outside(thread.program, thread.session)
    }

    fn is_outside(&self, program: ProgramId, session: u32) -> bool {
        self.roots.get(&program).is_some_and(|root| root.session != session)
    }
}

/// A process of a program that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Living {
    /// Its number.
    pub process: u32,
    /// Has it left the session of the program's first process, as daemons do?
    pub has_left: bool,
}

/// The session of a process that lives, as /proc has it now.
fn session_of_living(process: u32) -> Option<u32> {
    let number = i32::try_from(process).ok()?;
    let stat = Process::new(number).and_then(|process| process.stat()).ok()?;
    // The other threads of a leader that has ended may live.
    let is_dead = matches!(stat.state, 'Z' | 'X' | 'x') && stat.num_threads <= 1;
    (!is_dead).then(|| stat.session.unsigned_abs())
}

impl<W: Wait> LinuxMachine<W> {
    /// From now on releases descendants that left their program's session, once the first process
    /// of every program has ended.
    pub fn release_daemons(&mut self) {
        self.releases.leavers = true;
    }

    /// The first process of this program has ended: releases descendants that left its session, now
    /// and later.
    pub fn release_daemons_of(&mut self, program: ProgramId) {
        self.releases.ended.insert(program);
    }

    /// The processes of a program that live at this moment, without those that were released: what the last sample
    /// has not seen end, or leave the session, may have done so since.
    #[must_use]
    pub fn living(&self, program: ProgramId) -> Vec<Living> {
        let living = |process| {
            let session = session_of_living(process)?;
            Some(Living { process, has_left: self.releases.is_outside(program, session) })
        };
        self.processes_of(program).into_iter().filter_map(living).collect()
    }

    /// Lets go of processes: undoes what was changed on them, and manages them no longer.
    pub fn release(&mut self, processes: &BTreeSet<u32>) -> RestoreReport {
        self.releases.leaving.extend(processes);
        self.actuator.restore(processes)
    }

    /// Removes released processes from what was observed, and releases those that left.
    pub(super) fn take_released(&mut self, observed: &mut Vec<Observed>) {
        self.releases.note(observed);
        let released = std::mem::take(&mut self.releases.leaving);
        if !released.is_empty() {
            let born = |process: u32| {
                let leader =
                    observed.iter().find(|t| (t.id.process, t.id.thread) == (process, process));
                (process, leader.map(|leader| leader.id.born))
            };
            self.watcher.release(released.iter().map(|process| born(*process)));
            self.repair(observed, &released);
            self.actuator.forget_processes(&released);
            observed.retain(|thread| !released.contains(&thread.id.process));
        }
        let all = self.roots_ended && self.releases.leavers;
        // Born as its program was released, and found only now.
        let is_late =
            |program| self.programs.binary_search_by_key(&program, |known| known.id).is_err();
        let is_any_late = observed.iter().any(|thread| is_late(thread.program));
        if all || is_any_late || !self.releases.ended.is_empty() {
            let is_over = |thread: &Observed| all || self.releases.ended.contains(&thread.program);
            let has_left = |thread: &Observed| is_over(thread) && self.releases.has_left(thread);
            let left = observed.iter().filter(|one| has_left(one) || is_late(one.program));
            let left: BTreeSet<u32> = left.map(|thread| thread.id.process).collect();
            if !left.is_empty() {
                self.repair(observed, &left);
                // What could not be undone is tried again at the end, and reported then.
                let _ = self.release(&left);
                observed.retain(|thread| !left.contains(&thread.id.process));
            }
        }
    }

    /// Has threads of these processes repaired that were never looked at: they may have inherited
    /// what was applied for their parent.
    fn repair(&mut self, observed: &[Observed], processes: &BTreeSet<u32>) {
        for thread in observed.iter().filter(|thread| processes.contains(&thread.id.process)) {
            if self.known.binary_search(&ThreadKey::from(&thread.id)).is_err() {
                // It may be gone, or may not be touched: then that was reported when it was made.
                let _ = self.actuator.adopt(&thread.id);
            }
        }
    }
}
