//! Which threads are enrolled: a pure state machine, fed with events and scans.
//!
//! # Problem
//! Events of the whole machine arrive: some late, some twice (a scan found the thread before its event was read),
//! and some are lost. From these, exactly the threads of the enrolled programs are to be known.
//!
//! # Approach
//! A process belongs to the program of the process that made it, whatever becomes of its parent.
//!
//! ```text
//! fork(parent, child)   parent enrolled       → the child is enrolled in the same program, with a new serial
//! exec(process)         enrolled              → its other threads are gone; one more exec
//! exit(thread)          enrolled              → gone, unless it is owed by a former owner of the number
//! any event of a process that is not enrolled → dropped
//! scan                                        → what lost events left wrong is put right
//! ```
//!
//! By its *serial*, a file that was opened for a thread is not taken for that of a later one with the same
//! number.
//!
//! # Terms and units
//! *Epoch*: the number of reads so far. *Unconfirmed*: found by a scan; the report of its birth may still be
//! unread. *Owed exit*: the number was reused before its former owner's end was reported (the kernel may free the
//! number before it reports the end).
//!
//! # Properties
//! - With no loss, exactly the living threads of all descendants are enrolled
//!   (`events_alone_follow_the_world`).
//! - After a loss, a scan restores that (`a_scan_repairs_losses`).
//! - Memory is bounded by the living enrolled threads (the same tests: the
//!   sets are equal, nothing else is kept).

mod scan;

use std::collections::BTreeMap;

use symbiont_machine::ProgramId;

use super::event::Event;
use super::hook::{Birth, BirthHook, Exec, Moment};
use super::released::Released;
use super::seen::Seen;

/// An enrolled thread, as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Live {
    pub program: ProgramId,
    pub process: u32,
    pub thread: u32,
    pub generation: u32,
    pub serial: u64,
    /// When its process was born, where a scan saw that.
    pub process_born: Option<u64>,
    pub ages: Ages,
}

/// How many reads ago something happened to a thread; 0: since the last read.
/// None: not since it was enrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ages {
    /// Since it was enrolled.
    pub seen: u64,
    /// It forked a process, or a thread of its process did where it is not
    /// known which.
    pub forked: Option<u64>,
    /// A thread of its process made a thread; it is not known which.
    pub cloned: Option<u64>,
    /// Its process replaced its program.
    pub execed: Option<u64>,
}

impl Ages {
    /// The reads since the last of these.
    #[must_use]
    pub fn least(&self) -> u64 {
        [self.forked, self.cloned, self.execed].into_iter().flatten().fold(self.seen, u64::min)
    }
}

#[derive(Debug)]
struct Process {
    program: ProgramId,
    generation: u32,
    /// As seen in /proc; none before that, or since something changed it.
    born: Option<u64>,
    stack: Option<u64>,
    /// The session, if it was made after enrolment: all in it descend from
    /// enrolled processes, for one is in a session only by birth.
    own_session: Option<u32>,
    /// The session that the process was in when it was enrolled with its
    /// ancestors; 0 for those born later.
    old_session: u32,
    forked: Option<u64>,
    /// Page faults of the children that it waited for, as seen in /proc; none: not seen since it was enrolled.
    reaped: Option<u64>,
    cloned: Option<u64>,
    execed: Option<u64>,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    serial: u64,
    seen: u64,
    forked: Option<u64>,
    unconfirmed: bool,
    owed_exit: bool,
}

/// The sessions of processes that a scan found.
#[derive(Debug, Clone, Copy)]
enum Sessions {
    /// Made before enrolment: others may be in them too.
    Old,
    /// Perhaps made since.
    New,
}

/// The enrolled processes and threads.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Never enrolled: the watcher's own process.
    own_process: u32,
    processes: BTreeMap<u32, Process>,
    /// Not to be enrolled by a scan.
    released: Released,
    serials: u64,
    epoch: u64,
    catching_up: bool,
    /// Were reports lost since the last scan?
    lost_again: bool,
}

impl Tree {
    pub fn new(own_process: u32) -> Self {
        Self {
            own_process,
            processes: BTreeMap::new(),
            released: Released::default(),
            serials: 0,
            epoch: 0,
            catching_up: false,
            lost_again: false,
        }
    }

    /// Applies an event; drops it if it is about others.
    pub fn apply(&mut self, event: Event, hook: &mut dyn BirthHook) {
        match event {
            Event::Fork { child_process, child_thread, at, .. }
                if child_process != child_thread =>
            {
                self.thread_born(child_process, child_thread, Some(at), hook);
            }
            Event::Fork { parent_process, parent_thread, child_process, at, .. } => {
                self.forked((parent_process, parent_thread), child_process, at, hook);
            }
            Event::Exec { process } => self.execed(process, hook),
            Event::Exit { process, thread } => {
                if process == thread {
                    self.released.forget(process);
                }
                self.exited(process, thread, hook);
            }
            Event::Loss => (self.catching_up, self.lost_again) = (true, true),
            Event::Other => {}
        }
    }

    fn forked(
        &mut self,
        (parent, thread): (u32, u32),
        child: u32,
        at: Moment,
        hook: &mut dyn BirthHook,
    ) {
        let epoch = self.epoch;
        self.released.forget(child);
        let parent_known = self.processes.get_mut(&parent).map(|process| {
            match process.threads.get_mut(&thread) {
                Some(thread) => thread.forked = Some(epoch),
                None => process.forked = Some(epoch),
            }
            (process.program, process.own_session)
        });
        let known = self.processes.get_mut(&child).filter(|known| !known.threads.is_empty());
        let reused = known.is_some();
        if let Some(known) = known {
            // With a dead leader and living threads the number is still taken.
            let reported_again = match known.threads.get_mut(&child) {
                Some(leader) => std::mem::take(&mut leader.unconfirmed),
                None => true,
            };
            if reported_again {
                return;
            }
        }
        self.process_gone(child, hook);
        if let Some((program, own_session)) = parent_known {
            let birth = Birth {
                program,
                process: child,
                thread: child,
                generation: 0,
                parent_process: parent,
                parent_thread: Some(thread),
                at: Some(at),
            };
            let process = self.add_process(&birth, false, hook);
            process.own_session = own_session;
            if let Some(leader) = process.threads.get_mut(&child) {
                leader.owed_exit = reused;
            }
        }
    }

    fn execed(&mut self, process: u32, hook: &mut dyn BirthHook) {
        let (new_leader, epoch) = (self.new_thread(false), self.epoch);
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.generation += 1;
        known.execed = Some(epoch);
        known.stack = None;
        let before = std::mem::take(&mut known.threads);
        let leader = before.get(&process).copied().unwrap_or(new_leader);
        known.threads.insert(process, leader);
        hook.execed(&Exec {
            program: known.program,
            process,
            generation: known.generation,
            candidates: before.keys().copied().collect(),
        });
        for thread in before.into_keys().filter(|&thread| thread != process) {
            hook.exited(process, thread);
        }
    }

    fn exited(&mut self, process: u32, thread: u32, hook: &mut dyn BirthHook) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        let Some(entry) = known.threads.get_mut(&thread) else { return };
        if std::mem::take(&mut entry.owed_exit) {
            return;
        }
        known.threads.remove(&thread);
        if known.threads.is_empty() && !self.catching_up {
            self.processes.remove(&process);
        }
        hook.exited(process, thread);
    }

    /// From now on until [`Self::caught_up`], reports may repeat what a scan has
    /// seen already, or threads may live whose birth was not reported. A process
    /// without threads is kept meanwhile: the next report or scan may show one.
    /// (If its leader ends and then another thread calls exec, a scan sees the
    /// new leader only, and the end of the old one would look like the end of
    /// all.)
    pub fn catch_up(&mut self) {
        (self.catching_up, self.lost_again) = (true, false);
    }

    /// A scan was made, and all reports from before it have been applied. If some were lost
    /// meanwhile, the next scan is waited for.
    pub fn caught_up(&mut self) {
        if self.lost_again {
            return;
        }
        self.catching_up = false;
        self.processes.retain(|_, process| !process.threads.is_empty());
    }

    /// A thread's files say that it is gone or dead.
    pub fn vanished(&mut self, gone: &Live, hook: &mut dyn BirthHook) {
        if self.holds(gone) {
            self.clear_owed(gone.process, gone.thread);
            self.exited(gone.process, gone.thread, hook);
        }
    }

    fn clear_owed(&mut self, process: u32, thread: u32) {
        let known = self.processes.get_mut(&process);
        if let Some(thread) = known.and_then(|process| process.threads.get_mut(&thread)) {
            thread.owed_exit = false;
        }
    }

    fn process_gone(&mut self, process: u32, hook: &mut dyn BirthHook) {
        for thread in self.processes.remove(&process).into_iter().flat_map(|p| p.threads) {
            hook.exited(process, thread.0);
        }
    }

    /// A process is enrolled no more, nor are children that it will have.
    pub fn release(&mut self, process: u32, born: Option<u64>, hook: &mut dyn BirthHook) {
        if self.processes.contains_key(&process) {
            self.released.add(process, born);
            self.process_gone(process, hook);
        }
    }

    /// The program of a process.
    pub fn program(&self, process: u32) -> Option<ProgramId> {
        self.processes.get(&process).map(|process| process.program)
    }

    /// Is this thread still enrolled?
    pub fn holds(&self, live: &Live) -> bool {
        let process = self.processes.get(&live.process);
        let thread = process.and_then(|process| process.threads.get(&live.thread));
        thread.is_some_and(|thread| thread.serial == live.serial)
    }

    /// Is this the only thread that is known of its process?
    pub fn is_last(&self, live: &Live) -> bool {
        self.holds(live) && self.count(live.process) == 1
    }

    /// When a process was born, where that was noted.
    pub fn born(&self, process: u32) -> Option<u64> {
        self.processes.get(&process)?.born
    }

    /// Brings an entry up to date; false if that thread is enrolled no more.
    pub fn refresh(&self, live: &mut Live) -> bool {
        let Some(process) = self.processes.get(&live.process) else { return false };
        let Some(thread) = process.threads.get(&live.thread) else { return false };
        let holds = thread.serial == live.serial;
        if holds {
            *live = self.entry(live.process, process, live.thread, thread);
        }
        holds
    }

    /// The enrolled processes.
    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.processes.keys().copied()
    }

    /// How many threads of a process are known.
    pub fn count(&self, process: u32) -> usize {
        self.processes.get(&process).map_or(0, |process| process.threads.len())
    }

    /// Notes when a process was born: after a loss a scan can distinguish it from
    /// another with its number.
    pub fn note_born(&mut self, process: u32, born: u64) {
        if let Some(known) = self.processes.get_mut(&process) {
            known.born = Some(born);
        }
    }

    /// Notes what the leader's files say of a process. A stack that starts
    /// elsewhere shows an exec that no event reported; none (0) says nothing: a
    /// dead leader has none, and others' may not be seen.
    pub fn note(
        &mut self,
        process: u32,
        born: u64,
        stack: u64,
        session: u32,
        hook: &mut dyn BirthHook,
    ) {
        let Some(known) = self.processes.get_mut(&process) else { return };
        known.born = Some(born);
        if session == process && session != known.old_session {
            known.own_session = Some(session);
        }
        if stack == 0 {
            return;
        }
        let unseen_exec = known.stack.is_some_and(|before| before != stack);
        known.stack = Some(stack);
        if unseen_exec {
            self.execed(process, hook);
            if let Some(known) = self.processes.get_mut(&process) {
                known.stack = Some(stack);
            }
        }
    }

    /// Notes how many page faults the children had that a process waited for.
    /// It forked if they are more than before, also where no scan saw a child. Of those before it was
    /// enrolled it is not known whether this program made them: an exec keeps the number.
    pub fn note_reaped(&mut self, process: u32, faults: u64) {
        let epoch = self.epoch;
        let Some(known) = self.processes.get_mut(&process) else { return };
        if known.reaped.replace(faults).is_some_and(|before| before != faults) {
            known.forked = Some(epoch);
        }
    }

    /// All enrolled threads, ordered by process and thread.
    pub fn live(&self) -> impl Iterator<Item = Live> + '_ {
        self.processes.iter().flat_map(move |(&process, known)| {
            let threads = known.threads.iter();
            threads.map(move |(&number, thread)| self.entry(process, known, number, thread))
        })
    }

    fn entry(&self, process: u32, known: &Process, number: u32, thread: &Thread) -> Live {
        let ago = |then: Option<u64>| then.map(|then| self.epoch - then);
        Live {
            program: known.program,
            process,
            thread: number,
            generation: known.generation,
            serial: thread.serial,
            process_born: known.born,
            ages: Ages {
                seen: self.epoch - thread.seen,
                forked: ago(thread.forked.max(known.forked)),
                cloned: ago(known.cloned),
                execed: ago(known.execed),
            },
        }
    }

    /// A read is over.
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
    }

    fn add_seen(
        &mut self,
        program: ProgramId,
        seen: &Seen,
        hook: &mut dyn BirthHook,
    ) -> &mut Process {
        self.released.forget(seen.process);
        let birth = Birth {
            program,
            process: seen.process,
            thread: seen.process,
            generation: 0,
            parent_process: seen.parent,
            parent_thread: None,
            at: None,
        };
        let process = self.add_process(&birth, true, hook);
        process.born = Some(seen.born);
        process.stack = Some(seen.stack).filter(|&stack| stack != 0);
        process
    }

    fn add_process(
        &mut self,
        birth: &Birth,
        unconfirmed: bool,
        hook: &mut dyn BirthHook,
    ) -> &mut Process {
        hook.born(birth);
        let leader = self.new_thread(unconfirmed);
        let process = Process {
            program: birth.program,
            generation: 0,
            born: None,
            stack: None,
            own_session: None,
            old_session: 0,
            forked: None,
            reaped: Some(0),
            cloned: None,
            execed: None,
            threads: BTreeMap::from([(birth.process, leader)]),
        };
        let entry = self.processes.entry(birth.process);
        entry.or_insert(process)
    }

    fn thread_born(
        &mut self,
        process: u32,
        thread: u32,
        reported: Option<Moment>,
        hook: &mut dyn BirthHook,
    ) {
        let unconfirmed = reported.is_none();
        let mut new = self.new_thread(unconfirmed);
        let epoch = self.epoch;
        let Some(known) = self.processes.get_mut(&process) else { return };
        if let Some(old) = known.threads.get_mut(&thread) {
            if unconfirmed || std::mem::take(&mut old.unconfirmed) {
                return;
            }
            new.owed_exit = true;
            hook.exited(process, thread);
        }
        known.threads.insert(thread, new);
        known.cloned = Some(epoch);
        hook.born(&Birth {
            program: known.program,
            process,
            thread,
            generation: known.generation,
            parent_process: process,
            parent_thread: None,
            at: reported,
        });
    }

    fn new_thread(&mut self, unconfirmed: bool) -> Thread {
        self.serials += 1;
        Thread {
            serial: self.serials,
            seen: self.epoch,
            forked: None,
            unconfirmed,
            owed_exit: false,
        }
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
