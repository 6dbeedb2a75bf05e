//! Launching programs, their serial and parallel phases, and their completion.

use std::sync::Arc;

use rand::Rng;
use rand::seq::SliceRandom;
use symbiont_machine::{Ended, Priority, ProgramId, ThreadId, Timestamp};
use symbiont_topology::NodeId;

use super::contention::Contention;
use super::meter::Meter;
use super::threads::{PendingActivity, ProgramRun, RunPhase, Thread};
use super::{Completion, SimMachine};
use crate::activity::Activity;
use crate::os::{self, Queues, Task};
use crate::program::{Course, Shape};

/// Less than an instruction left is none: a matter of rounding.
pub(super) const NONE_LEFT: f64 = 0.5;

impl<'p, C: Contention<'p>> SimMachine<'p, C> {
    /// Launches all programs, in random order unless they have one.
    pub(super) fn launch_all(&mut self, leads: &[u64]) {
        let empty = |order: &Vec<usize>| ProgramRun {
            number: 0,
            program: order.first().copied().unwrap_or(0),
            position: 0,
            counts: true,
            started_ns: 0,
            target: f64::INFINITY,
            retired: 0.0,
            stage: RunPhase::Together,
            home: NodeId(0),
        };
        self.runs = self.orders.iter().map(empty).collect();
        let mut slots: Vec<usize> = (0..self.orders.len()).collect();
        if !self.options.in_order {
            slots.shuffle(&mut self.random);
        }
        for slot in slots {
            match leads.get(slot).copied().unwrap_or(0) {
                0 => self.launch(slot, 0, 0, None),
                lead => self.launch(slot, 0, 0, Some(lead as f64)),
            }
        }
    }

    /// Launches the program at a position of a slot's order; with a `lead`, for so
    /// many instructions that do not count.
    fn launch(&mut self, slot: usize, number: u64, position: usize, lead: Option<f64>) {
        let order = self.orders.get(slot);
        let Some(&which) = order.and_then(|order| order.get(position)) else { return };
        let Some(program) = self.programs.get(which).cloned() else { return };
        let target = program.target.map_or(f64::INFINITY, |target| target.max(1) as f64);
        let stage = self.first_stage(program.shape);
        let mut home = self.memory_nodes.first().copied().unwrap_or(NodeId(0));
        let process = self.born as u32 + 1;
        for thread in 0..program.threads() {
            let allowed = Arc::clone(&self.allowed);
            let queues = self.queues();
            let task = Task { at: 0, allowed: &allowed, home: self.wanted_home(thread, home) };
            let Some(at) = os::place(&self.map, &queues, &task, &mut self.random) else { continue };
            if thread == 0 && !self.options.one_memory {
                home = self.memory_near(self.map.place(at).node);
            }
            self.born += 1;
            let id = ThreadId { process, thread: self.born as u32, born: self.now, generation: 0 };
            self.threads.push(Thread {
                number: self.born,
                id,
                slot,
                course: Course::new(program.profile, thread),
                at,
                ready: thread == 0 || !matches!(stage, RunPhase::Serial(_)),
                target: None,
                allowed,
                priority: Priority::Normal,
                virtual_ns: 0.0,
                ran_ns: 0.0,
                used: os::newborn(self.used[at]),
                waited_ns: 0.0,
                switches: 0,
                still_ns: 0.0,
                warm: None,
                thread_rate: None,
                uncounted: PendingActivity::default(),
                meter: Meter::new(Arc::clone(&self.reader), Timestamp(self.now)),
                done: Activity::default(),
            });
            self.used[at] += os::newborn(self.used[at]);
            self.join(self.threads.len() - 1, at);
        }
        let counts = lead.is_none();
        let target = lead.unwrap_or(target);
        let run = ProgramRun {
            number,
            program: which,
            position,
            counts,
            started_ns: self.now,
            target,
            retired: 0.0,
            stage,
            home,
        };
        if let Some(place) = self.runs.get_mut(slot) {
            *place = run;
        }
        self.unbalanced = true;
    }

    /// The node that the thread should be near: that of the program's memory,
    /// or, for its first thread where all nodes have some, the emptiest.
    fn wanted_home(&self, thread: usize, home: NodeId) -> NodeId {
        if thread > 0 {
            return home;
        }
        let load = |node: &NodeId| {
            let here = |t: &&Thread<'_>| t.ready && self.map.place(t.at).node == *node;
            self.threads.iter().filter(here).count()
        };
        self.memory_nodes.iter().copied().min_by_key(load).unwrap_or(home)
    }

    /// The node with memory that is nearest to a node.
    fn memory_near(&self, node: NodeId) -> NodeId {
        let distances = self.topology.node(node).map(|node| &node.distances);
        let distance = |other: &NodeId| {
            let distance = distances.and_then(|distances| distances.get(other)).copied();
            (*other != node, distance.unwrap_or(u32::MAX), *other)
        };
        self.memory_nodes.iter().copied().min_by_key(distance).unwrap_or(node)
    }

    fn first_stage(&mut self, shape: Shape) -> RunPhase {
        match shape {
            Shape::Single | Shape::Recorded => RunPhase::Together,
            Shape::Alternating(phases) if phases.serial.is_infinite() => {
                RunPhase::Serial(f64::INFINITY)
            }
            Shape::Alternating(phases) => self.parallel(phases.parallel),
        }
    }

    fn parallel(&mut self, (least, most): (f64, f64)) -> RunPhase {
        let least = least.max(1.0);
        let of = if most > least { self.random.random_range(least..most) } else { least };
        RunPhase::Parallel { left: of, of }
    }

    /// The stage of a run of `slot` ended; starts the next one.
    pub(super) fn next_stage(&mut self, slot: usize) {
        let Some(run) = self.runs.get(slot).copied() else { return };
        let Some(program) = self.programs.get(run.program) else { return };
        let Shape::Alternating(phases) = program.shape else { return };
        let stage = match run.stage {
            RunPhase::Parallel { of, .. } if phases.serial > 0.0 => {
                RunPhase::Serial((of * phases.serial).max(1.0))
            }
            _ => self.parallel(phases.parallel),
        };
        let serial = matches!(stage, RunPhase::Serial(_));
        if let Some(run) = self.runs.get_mut(slot) {
            run.stage = stage;
        }
        let mut first = true;
        for at in 0..self.threads.len() {
            if self.threads[at].slot != slot {
                continue;
            }
            let wanted = first || !serial;
            first = false;
            match (self.threads[at].ready, wanted) {
                (true, false) => self.sleep(at),
                (false, true) => self.wake(at),
                _ => {}
            }
        }
    }

    pub(super) fn sleep(&mut self, thread: usize) {
        self.threads[thread].ready = false;
        self.stop(thread);
        self.unbalanced = true;
    }

    fn wake(&mut self, thread: usize) {
        let queues = self.queues();
        let woken = &self.threads[thread];
        let home = self.runs[woken.slot].home;
        let task = Task { at: woken.at, allowed: &woken.allowed, home };
        let to = os::wake(&self.map, &queues, &task, &mut self.random).unwrap_or(woken.at);
        self.threads[thread].ready = true;
        self.join(thread, to);
        self.unbalanced = true;
    }

    /// Which threads are in which queue.
    pub(super) fn queues(&self) -> Queues {
        let ready = self.threads.iter().filter(|thread| thread.ready);
        Queues::new(&self.map, ready.map(|thread| thread.at))
    }

    /// Puts a thread into a queue, next to the thread that had least there.
    pub(super) fn join(&mut self, thread: usize, at: usize) {
        let number = self.threads[thread].number;
        let others = self.threads.iter().filter(|t| t.ready && t.at == at && t.number != number);
        let least = others.map(|t| t.virtual_ns).reduce(f64::min);
        let joining = &mut self.threads[thread];
        let from = std::mem::replace(&mut joining.at, at);
        self.used[from] = (self.used[from] - joining.used).max(0.0);
        self.used[at] += joining.used;
        joining.virtual_ns = least.unwrap_or(joining.virtual_ns);
        self.stale = true;
    }

    /// A run of `slot` has completed: notes it and launches what comes next.
    pub(super) fn complete(&mut self, slot: usize) {
        let Some(run) = self.runs.get(slot).copied() else { return };
        self.completions.push(Completion {
            slot,
            program: run.program,
            run: run.number,
            counts: run.counts,
            started: Timestamp(run.started_ns),
            ended: Timestamp(self.now),
            instructions: run.retired,
        });
        for at in 0..self.threads.len() {
            if self.threads[at].slot == slot {
                self.stop(at);
                let was = self.threads[at].at;
                self.used[was] = (self.used[was] - self.threads[at].used).max(0.0);
                self.contention.forget(self.threads[at].number);
                if self.reader.counting().is_some() {
                    let id = self.threads[at].id;
                    let program = ProgramId(slot as u32);
                    let counts = self.counts(at);
                    self.ended.push(Ended { id, program, counts });
                }
            }
        }
        let before = self.current.iter().map(|now| now.and_then(|at| self.threads.get(at)));
        let running: Vec<Option<u64>> = before.map(|t| t.map(|t| t.number)).collect();
        self.threads.retain(|thread| thread.slot != slot);
        let find = |number: u64| self.threads.iter().position(|t| t.number == number);
        self.current = running.into_iter().map(|number| number.and_then(find)).collect();
        let length = self.orders.get(slot).map_or(0, Vec::len);
        let next = match run.position + usize::from(run.counts) {
            over if over >= length && self.again => 0,
            next => next,
        };
        if let Some(run) = self.runs.get_mut(slot) {
            // Until the launch, and for good where nothing is left.
            *run = ProgramRun { target: f64::INFINITY, stage: RunPhase::Together, ..*run };
        }
        self.launch(slot, run.number + 1, next, None);
    }
}
