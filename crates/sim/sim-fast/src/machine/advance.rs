//! Time: from event to event.

use std::sync::Arc;

use symbiont_topology::{CoreId, CpuSet};

use super::SimMachine;
use super::contention::{Contention, Runner, ThreadRate};
use super::launch::NONE_LEFT;
use super::threads::{RunPhase, Thread};
use crate::os::{self, ReadyThread, TICK_NS, Task};

/// How much longer than another a thread may have run before that one takes its
/// place between two ticks.
const PATIENCE_NS: f64 = TICK_NS as f64;

/// Part of a span by which it may last longer or shorter than was asked for.
const NEAR: f64 = 0.1;

/// Speeds that differ by less are the same: caches no longer fill.
const SAME: f64 = 1e-3;

impl<'p, C: Contention<'p>> SimMachine<'p, C> {
    /// Lets time pass.
    pub(super) fn advance(&mut self, until: u64) {
        self.stale |= self.filling;
        while self.now < until {
            self.settle(until);
            let tick = self.next_tick();
            let end = self.next_end(until).min(self.reckoned);
            self.progress((end - self.now) as f64);
            self.now = end;
            self.stale |= self.filling && end == self.reckoned;
            self.enter_phases();
            self.events();
            if tick == Some(end) {
                self.tick();
            }
        }
    }

    /// When something next happens, `until` at the latest.
    fn next_end(&mut self, until: u64) -> u64 {
        until.min(self.next_tick().unwrap_or(u64::MAX)).min(self.next_event())
    }

    /// When the operating system next has anything to do.
    fn next_tick(&mut self) -> Option<u64> {
        (self.unbalanced || self.is_crowded()).then(|| (self.now / TICK_NS + 1) * TICK_NS)
    }

    /// Are there two in a queue?
    fn is_crowded(&mut self) -> bool {
        self.marks.clear();
        self.marks.resize(self.map.len(), false);
        let ready = self.threads.iter().filter(|thread| thread.ready);
        ready.into_iter().any(|thread| std::mem::replace(&mut self.marks[thread.at], true))
    }

    /// When something that is done next ends by itself; perhaps too early,
    /// never too late.
    fn next_event(&mut self) -> u64 {
        // Of each run: how fast its threads are together, and when the first of
        // them goes on.
        let mut runs = std::mem::take(&mut self.speeds);
        runs.clear();
        runs.resize(self.runs.len(), (0.0, f64::INFINITY));
        let mut soonest = f64::INFINITY;
        for (thread, thread_rate) in self.running() {
            if let Some((speed, still)) = runs.get_mut(thread.slot) {
                *speed += thread_rate.speed;
                *still = thread.still_ns.min(*still);
            }
            soonest = soonest.min(thread.still_ns + thread.course.left() / thread_rate.speed);
        }
        for (run, &(speed, still)) in self.runs.iter().zip(&runs) {
            let left = run.left().min(run.target - run.retired);
            if speed > 0.0 {
                soonest = soonest.min(still + left / speed);
            }
        }
        self.speeds = runs;
        // A cast from a float saturates.
        self.now.saturating_add((soonest.ceil() as u64).max(1))
    }

    /// Threads that run, with their rates.
    fn running(&self) -> impl Iterator<Item = (&Thread<'_>, &ThreadRate)> {
        let threads = self.current.iter().flatten().filter_map(|at| self.threads.get(*at));
        threads.filter_map(|thread| Some((thread, thread.thread_rate.as_deref()?)))
    }

    /// The mode of the core on which a thread ran last, as an index into the modes of an activity.
    pub(super) fn mode(&self, thread: &Thread<'_>) -> usize {
        let mode = thread.warm.and_then(|at| self.modes.get(self.map.place(at).core));
        mode.copied().unwrap_or_default().max(1).ilog2().min(3) as usize
    }

    /// Counts what a thread did; before its rate or the mode of its core changes, and before a sample
    /// is taken.
    pub(super) fn count(&mut self, thread: usize) {
        let Some(mode) = self.threads.get(thread).map(|thread| self.mode(thread)) else { return };
        if let Some(thread) = self.threads.get_mut(thread) {
            thread.count(mode, &self.options.errors);
        }
    }

    /// Every thread does what can be done in `ns`.
    fn progress(&mut self, ns: f64) {
        let mut runs = std::mem::take(&mut self.marks);
        runs.clear();
        runs.resize(self.threads.len(), false);
        for at in 0..self.current.len() {
            let Some(running) = self.current[at] else { continue };
            runs[running] = true;
            let thread = &mut self.threads[running];
            let Some(thread_rate) = &thread.thread_rate else { continue };
            let still = thread.still_ns.min(ns);
            thread.still_ns -= still;
            let instructions = thread_rate.speed * (ns - still);
            thread.uncounted.ns += ns;
            thread.uncounted.still_ns += still;
            thread.uncounted.instructions += instructions;
            thread.ran_ns += ns;
            thread.virtual_ns += ns * 1024.0 / os::weight(thread.priority);
            thread.course.go(instructions);
            let run = &mut self.runs[thread.slot];
            run.retired += instructions;
            match &mut run.stage {
                RunPhase::Together => {}
                RunPhase::Serial(left) | RunPhase::Parallel { left, .. } => *left -= instructions,
            }
        }
        let left = os::left_after(ns);
        for (used, now) in self.used.iter_mut().zip(&self.current) {
            *used = os::follow(*used, left, now.is_some());
        }
        for (thread, runs) in self.threads.iter_mut().zip(&runs) {
            thread.used = os::follow(thread.used, left, *runs);
            if thread.ready && !runs {
                thread.waited_ns += ns;
            }
        }
        self.marks = runs;
    }

    /// As soon as one must be in its next phase, all that may go on to theirs.
    fn enter_phases(&mut self) {
        if !self.running().any(|(thread, _)| thread.course.is_late()) {
            return;
        }
        for running in self.current.iter().flatten() {
            self.stale |= self.threads[*running].course.enter_next();
        }
    }

    /// Ends what has ended.
    fn events(&mut self) {
        let mut freed = false;
        for slot in 0..self.runs.len() {
            if self.runs[slot].target - self.runs[slot].retired <= NONE_LEFT {
                self.complete(slot);
                freed = true;
            }
            if self.runs[slot].left() <= NONE_LEFT {
                self.next_stage(slot);
                freed = true;
            }
        }
        // An idle hardware thread looks for work at once.
        if freed {
            self.balance();
        }
    }

    /// What the operating system does at a tick.
    fn tick(&mut self) {
        self.balance();
        self.share();
        for at in 0..self.current.len() {
            let next = self.first_in(at, None);
            if next != self.current[at] {
                self.switch(at, next);
            }
        }
    }

    fn balance(&mut self) {
        if !self.unbalanced {
            return;
        }
        let ready: Vec<usize> =
            (0..self.threads.len()).filter(|&at| self.threads[at].ready).collect();
        let tasks: Vec<Task<'_>> = ready
            .iter()
            .map(|&at| self.threads[at].task(self.runs[self.threads[at].slot].home))
            .collect();
        let shifts = os::balance(&self.map, &tasks);
        self.unbalanced = !shifts.is_empty();
        for (task, to) in shifts {
            self.stop(ready[task]);
            self.join(ready[task], to);
        }
    }

    /// With more threads than places, busy hardware threads take from others.
    fn share(&mut self) {
        let queues = self.queues();
        if (0..self.map.len()).all(|at| queues.len(at) < 2) {
            return;
        }
        let which: Vec<usize> =
            (0..self.threads.len()).filter(|&at| self.threads[at].ready).collect();
        let ready: Vec<ReadyThread<'_>> = which
            .iter()
            .map(|&at| {
                let thread = &self.threads[at];
                ReadyThread {
                    task: thread.task(self.runs[thread.slot].home),
                    weight: os::weight(thread.priority) as u64,
                    used: thread.used,
                    runs: self.current[thread.at] == Some(at),
                    turn: thread.virtual_ns,
                }
            })
            .collect();
        let shifts = self.balancer.tick(&self.map, &ready, &self.used, self.now / TICK_NS);
        self.unbalanced |= !shifts.is_empty();
        for (task, to) in shifts {
            self.stop(which[task]);
            self.join(which[task], to);
        }
    }

    /// The thread of a queue that has had least; `but` if it has had not much
    /// more.
    fn first_in(&self, at: usize, but: Option<usize>) -> Option<usize> {
        let queue = self.threads.iter().enumerate().filter(|(_, t)| t.ready && t.at == at);
        let least = queue.min_by(|(_, a), (_, b)| {
            a.virtual_ns.total_cmp(&b.virtual_ns).then(a.number.cmp(&b.number))
        });
        let (first, least) = least?;
        let stays = but.and_then(|now| self.threads.get(now)).is_some_and(|now| {
            now.ready && now.at == at && now.virtual_ns <= least.virtual_ns + PATIENCE_NS
        });
        if stays { but } else { Some(first) }
    }

    /// A thread no longer runs where it ran.
    pub(super) fn stop(&mut self, thread: usize) {
        for now in &mut self.current {
            if *now == Some(thread) {
                *now = None;
            }
        }
        self.count(thread);
        self.threads[thread].thread_rate = None;
        self.stale = true;
    }

    /// Another thread, or none, runs on a hardware thread.
    fn switch(&mut self, at: usize, next: Option<usize>) {
        if let Some(before) = self.current[at] {
            self.stop(before);
        }
        self.current[at] = next;
        self.stale = true;
        let Some(next) = next else { return };
        let place = self.map.place(at);
        let thread = &mut self.threads[next];
        thread.switches += 1;
        thread.still_ns += self.costs.context_switch_us * 1e3;
        let from = thread.warm.map(|warm| self.map.place(warm));
        if from.is_some_and(|from| from != place) {
            thread.still_ns += self.costs.migration_us * 1e3;
        }
        thread.warm = Some(at);
    }

    /// Assigns a thread to each hardware thread.
    pub(super) fn assign(&mut self) {
        for at in 0..self.current.len() {
            let next = self.first_in(at, self.current[at]);
            if next != self.current[at] {
                self.switch(at, next);
            }
        }
        self.set_modes();
    }

    /// Assigns a thread to each hardware thread and asks for rates until the end
    /// of the quantum, if anything has changed.
    fn settle(&mut self, until: u64) {
        if !self.stale {
            // Nothing changes, so what was reckoned goes on.
            if self.reckoned <= self.now {
                self.reckoned = until;
            }
            return;
        }
        // Where no thread waits, each has its place.
        let ready = self.threads.iter().filter(|thread| thread.ready).count();
        if ready > self.current.iter().flatten().count() {
            self.assign();
        } else {
            self.set_modes();
        }
        let mut runners = Vec::with_capacity(self.current.len());
        let mut which = Vec::with_capacity(self.current.len());
        for (at, now) in self.current.iter().enumerate() {
            let Some(thread) = now.and_then(|now| self.threads.get(now)) else { continue };
            let numbers = &self.phases[self.runs[thread.slot].program];
            let core = self.map.place(at).core;
            runners.push(Runner {
                thread: thread.number,
                core: CoreId(core as u32),
                phase: numbers.get(thread.course.phase()).or(numbers.first()).copied().unwrap_or(0),
                home: self.runs[thread.slot].home,
                mode: self.modes[core] as u32,
            });
            which.extend(*now);
        }
        self.contention.lasted((self.now - self.asked) as f64);
        self.asked = self.now;
        // Most often what happens next is what would have happened next anyway.
        let span = self.next_end(until) - self.now;
        let thread_rates = self.contention.thread_rates(&runners, span as f64);
        self.filling = false;
        self.take(&which, self.as_counted(&runners, thread_rates));
        let really = self.next_end(until) - self.now;
        if really.abs_diff(span) as f64 > NEAR * span as f64 {
            if let Some(thread_rates) = self.contention.instead(&runners, really as f64) {
                self.take(&which, self.as_counted(&runners, thread_rates));
            }
        }
        let fills = self.contention.fills();
        self.filling |= fills;
        // Caches are not to be taken for filled before they are.
        self.reckoned = if fills { self.now + really } else { until };
        self.stale = false;
    }

    /// The same, with the floating-point unit as busy for each thread as the counters report it.
    fn as_counted(
        &self,
        runners: &[Runner],
        thread_rates: Vec<Arc<ThreadRate>>,
    ) -> Vec<Arc<ThreadRate>> {
        if !self.options.errors.fpu_of_core {
            return thread_rates;
        }
        let core = |of: CoreId| {
            let on_it = runners.iter().zip(&thread_rates).filter(|(runner, _)| runner.core == of);
            // Threads use it independently of each other.
            1.0 - on_it
                .map(|(_, thread_rate)| 1.0 - thread_rate.activity.fpu_busy())
                .product::<f64>()
        };
        let counted = |(runner, thread_rate): (&Runner, &Arc<ThreadRate>)| {
            let mut thread_rate = ThreadRate::clone(thread_rate);
            thread_rate.activity.vector_cycles =
                core(runner.core) * thread_rate.activity.all_cycles();
            Arc::new(thread_rate)
        };
        runners.iter().zip(&thread_rates).map(counted).collect()
    }

    /// Threads go on at these rates.
    fn take(&mut self, which: &[usize], thread_rates: Vec<Arc<ThreadRate>>) {
        for (&at, thread_rate) in which.iter().zip(thread_rates) {
            let before = self.threads[at].thread_rate.as_ref();
            if before.is_some_and(|before| Arc::ptr_eq(before, &thread_rate)) {
                continue;
            }
            let change =
                before.map_or(1.0, |before| (thread_rate.speed / before.speed - 1.0).abs());
            self.filling |= change > SAME;
            if before != Some(&thread_rate) {
                self.count(at);
                self.threads[at].thread_rate = Some(thread_rate);
            }
        }
    }

    /// Cores repartition when their number of threads asks for it.
    fn set_modes(&mut self) {
        for core in 0..self.modes.len() {
            let here = self.map.core(core);
            let count = here.iter().filter(|at| self.current[**at].is_some()).count();
            let mode = count.next_power_of_two().max(self.options.least_mode as usize);
            if count == 0 || mode == self.modes[core] {
                continue;
            }
            let current: Vec<usize> = here.iter().filter_map(|&at| self.current[at]).collect();
            let first = self.modes[core] == 0;
            current.iter().for_each(|thread| self.count(*thread));
            self.modes[core] = mode;
            for thread in current {
                if !first {
                    self.threads[thread].still_ns += self.costs.mode_switch_us * 1e3;
                }
            }
        }
    }

    /// Lets a thread run on some hardware threads only, or, with none, again
    /// wherever it could at first.
    pub(super) fn retarget(&mut self, at: usize, target: Option<CpuSet>) {
        let allowed = target.clone().map_or_else(|| self.allowed.clone(), Into::into);
        let thread = &mut self.threads[at];
        thread.target = target;
        thread.allowed = allowed;
        let thread = &self.threads[at];
        self.unbalanced = true;
        if !thread.ready || thread.allowed.contains(self.map.place(thread.at).pu) {
            return;
        }
        let mut queues = self.queues();
        queues.remove(&self.map, thread.at);
        let home = self.runs[thread.slot].home;
        let task = Task { at: thread.at, allowed: &thread.allowed, home };
        if let Some(to) = os::place(&self.map, &queues, &task, &mut self.random) {
            self.stop(at);
            self.join(at, to);
        }
    }
}
