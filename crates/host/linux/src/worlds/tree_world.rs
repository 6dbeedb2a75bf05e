//! A plain model of the world that the tree watches: threads that fork, clone, exec and exit.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_machine::ProgramId;
use symbiont_topology::PuId;

use super::event::Event;
use super::hook::{Birth, BirthHook, Exec, Moment};
use super::seen::Seen;
use super::tree::Tree;

pub(super) const PROGRAM: ProgramId = ProgramId(3);
pub(super) const ROOT: u32 = 100;

/// A moment that no property here depends on.
const START: Moment = Moment { ns: 0, cpu: PuId(0) };

/// A hook that remembers all calls.
#[derive(Default)]
pub(super) struct RecordedEvents {
    pub alive: BTreeSet<(u32, u32)>,
    pub births: Vec<Birth>,
    pub execs: Vec<Exec>,
    pub wrong: Vec<String>,
}

impl BirthHook for RecordedEvents {
    fn born(&mut self, birth: &Birth) {
        if !self.alive.insert((birth.process, birth.thread)) {
            self.wrong.push(format!("born twice: {birth:?}"));
        }
        self.births.push(*birth);
    }

    fn execed(&mut self, exec: &Exec) {
        self.alive.insert((exec.process, exec.process));
        self.execs.push(exec.clone());
    }

    fn exited(&mut self, process: u32, thread: u32) {
        if !self.alive.remove(&(process, thread)) {
            self.wrong.push(format!("ended twice: {thread} of {process}"));
        }
    }
}

pub(super) fn seen(process: u32, parent: u32, session: u32) -> Seen {
    Seen { process, parent, session, born: 1000 + u64::from(process), stack: 1 }
}

pub(super) fn fork(parent: u32, child: u32) -> Event {
    Event::Fork {
        parent_process: parent,
        parent_thread: parent,
        child_process: child,
        child_thread: child,
        at: START,
    }
}

pub(super) fn clone(process: u32, thread: u32) -> Event {
    // As the kernel reports it: the parent is the parent of the process.
    Event::Fork {
        parent_process: 1,
        parent_thread: 1,
        child_process: process,
        child_thread: thread,
        at: START,
    }
}

pub(super) fn exit(process: u32, thread: u32) -> Event {
    Event::Exit { process, thread }
}

pub(super) fn enrolled(tree: &Tree) -> BTreeSet<(u32, u32)> {
    tree.live().map(|live| (live.process, live.thread)).collect()
}

/// A tree with the root enrolled, and the events of it.
pub(super) fn rooted() -> (Tree, RecordedEvents) {
    let (mut tree, mut events) = (Tree::new(1), RecordedEvents::default());
    let root = seen(ROOT, 50, 50);
    tree.enrol(PROGRAM, &root, &[root], &mut events);
    (tree, events)
}

/// One step of the world; the numbers choose among what is there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Fork(usize),
    Clone(usize),
    Exit(usize),
    Exec(usize),
    Stranger(usize),
}

/// All threads of the world: (process, thread), with what they belong to.
#[derive(Default)]
pub(super) struct World {
    threads: BTreeMap<(u32, u32), bool>,
    parents: BTreeMap<u32, u32>,
    stacks: BTreeMap<u32, u64>,
    next: u32,
    /// Processes with living children stay, so that scans can follow them.
    keep_parents: bool,
}

impl World {
    pub fn new(keep_parents: bool) -> Self {
        Self {
            threads: BTreeMap::from([((ROOT, ROOT), true), ((50, 50), false)]),
            parents: BTreeMap::from([(ROOT, 50), (50, 1)]),
            stacks: BTreeMap::new(),
            next: ROOT,
            keep_parents,
        }
    }

    /// Takes a step; gives the kernel's report of it.
    pub fn take(&mut self, step: Step) -> Option<Event> {
        let (Step::Fork(n) | Step::Clone(n) | Step::Exit(n) | Step::Exec(n) | Step::Stranger(n)) =
            step;
        let all: Vec<_> = self.threads.iter().map(|(thread, ours)| (*thread, *ours)).collect();
        let ((process, thread), ours) = *all.get(n % all.len().max(1))?;
        self.next += 1;
        let new = self.next;
        match step {
            Step::Fork(_) => {
                self.threads.insert((new, new), ours);
                self.parents.insert(new, process);
                Some(Event::Fork {
                    parent_process: process,
                    parent_thread: thread,
                    child_process: new,
                    child_thread: new,
                    at: START,
                })
            }
            Step::Clone(_) => {
                self.threads.insert((process, new), ours);
                Some(clone(process, new))
            }
            Step::Exit(_) => {
                let last = all.iter().filter(|((other, _), _)| *other == process).count() == 1;
                let parent = self.parents.values().any(|parent| *parent == process);
                if process == ROOT && last || (last && parent && self.keep_parents) {
                    return None;
                }
                self.threads.remove(&(process, thread));
                if last {
                    self.parents.remove(&process);
                }
                Some(exit(process, thread))
            }
            Step::Exec(_) => {
                self.threads.retain(|(other, _), _| *other != process);
                self.threads.insert((process, process), ours);
                self.stacks.insert(process, u64::from(new));
                Some(Event::Exec { process })
            }
            Step::Stranger(_) => {
                self.threads.insert((new, new), false);
                self.parents.insert(new, 1);
                Some(fork(7, new))
            }
        }
    }

    pub fn ours(&self) -> BTreeSet<(u32, u32)> {
        self.threads.iter().filter(|(_, ours)| **ours).map(|(thread, _)| *thread).collect()
    }

    pub fn scan(&self) -> Vec<Seen> {
        let stack = |process: &u32| self.stacks.get(process).copied().unwrap_or(1);
        let with_stack = |(process, parent): (&u32, &u32)| Seen {
            stack: stack(process),
            ..seen(*process, *parent, 50)
        };
        self.parents.iter().map(with_stack).collect()
    }

    pub fn threads_of(&self, process: u32) -> Vec<u32> {
        self.threads.keys().filter(|(other, _)| *other == process).map(|key| key.1).collect()
    }
}

pub(super) fn rescan(tree: &mut Tree, world: &World, events: &mut RecordedEvents) {
    let seen = world.scan();
    tree.retain_seen(&seen, events);
    for seen in &seen {
        tree.note(seen.process, seen.born, seen.stack, seen.session, events);
    }
    tree.adopt(&seen, events);
    for process in tree.processes().collect::<Vec<_>>() {
        tree.set_threads(process, &world.threads_of(process), events);
    }
}
