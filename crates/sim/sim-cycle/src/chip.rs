//! Cores that share caches and memory.
//!
//! # Approach
//! The core whose clock is behind always takes the next cycle, so that requests to shared caches and memory
//! come in the order of time, to within a cycle.
//!
//! # Properties
//! `cores_share_their_last_level_only`.

use std::collections::BTreeMap;

use symbiont_sim_fast::description::Description;
use symbiont_topology::CoreId;

use crate::CycleOptions;
use crate::core::{Core, Thread, Work};
use crate::counts::Counts;
use crate::levels::{Levels, UserPlace};
use crate::op::Stream;

/// A hardware thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Its core.
    pub core: CoreId,
    /// Hardware threads that the core is set up for; the most that any of it says, or as many as there are
    /// if that is more.
    pub mode: u32,
    /// Node of the memory of what runs there, by index in the topology.
    pub home: usize,
}

/// A thread and where it runs.
pub struct CoreSlot<'s> {
    /// Its core.
    pub core: CoreId,
    /// Hardware threads that the core is set up for; the most that any slot of it says, or as many as
    /// there are if that is more.
    pub mode: u32,
    /// Node of its memory, by index in the topology.
    pub home: usize,
    /// What it executes.
    pub stream: Stream<'s>,
}

/// Why there is no such chip.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChipError {
    /// The machine has no such core.
    #[error("the machine has no core {0}")]
    NoCore(u32),
    /// No thread runs.
    #[error("a chip without threads")]
    NoThreads,
}

/// Cores with their caches and memory.
pub struct Chip<'s> {
    cores: Vec<Core<'s>>,
    levels: Levels,
    /// Core and thread there of each slot.
    slots: Vec<(usize, usize)>,
}

impl<'s> Chip<'s> {
    /// The cores of a machine that have threads, cold.
    ///
    /// # Errors
    /// See [`ChipError`].
    pub fn new(
        machine: &Description,
        slots: Vec<CoreSlot<'s>>,
        options: &CycleOptions,
    ) -> Result<Self, ChipError> {
        let context =
            |slot: &CoreSlot<'s>| Context { core: slot.core, mode: slot.mode, home: slot.home };
        let contexts: Vec<Context> = slots.iter().map(context).collect();
        let users: Vec<(usize, usize)> = (0..slots.len()).map(|slot| (slot, slot)).collect();
        let works = slots.into_iter().enumerate().map(|(at, slot)| Work::new(at, slot.stream));
        Self::assembled(machine, &contexts, works.collect(), &users, options)
    }

    /// Hardware threads that execute nothing yet. The user of a job on the hardware thread at an index has the
    /// number index · jobs + job.
    pub(crate) fn idle(
        machine: &Description,
        contexts: &[Context],
        jobs: usize,
        options: &CycleOptions,
    ) -> Result<Self, ChipError> {
        let of = |thread| (0..jobs).map(move |job| (thread, job));
        let users: Vec<(usize, usize)> = (0..contexts.len()).flat_map(of).collect();
        let works = (0..contexts.len()).map(|thread| Work::none(thread * jobs)).collect();
        Self::assembled(machine, contexts, works, &users, options)
    }

    /// `works`: of each hardware thread. `users`: the hardware thread and the job of each.
    fn assembled(
        machine: &Description,
        contexts: &[Context],
        works: Vec<Work<'s>>,
        users: &[(usize, usize)],
        options: &CycleOptions,
    ) -> Result<Self, ChipError> {
        if contexts.is_empty() || users.is_empty() {
            return Err(ChipError::NoThreads);
        }
        let mut known = Vec::new();
        let mut by_core: BTreeMap<CoreId, (u32, Vec<Work<'s>>)> = BTreeMap::new();
        let mut places = Vec::new();
        for (context, work) in contexts.iter().zip(works) {
            let missing = ChipError::NoCore(context.core.0);
            let core = machine.topology.core(context.core).ok_or(missing.clone())?;
            let core_type = machine.core_type(core.kind).ok_or(missing)?;
            known.push((core, core_type, 1e9 / machine.hertz(core)));
            let of_core = by_core.entry(context.core).or_default();
            of_core.0 = of_core.0.max(context.mode);
            places.push((context.core, of_core.1.len()));
            of_core.1.push(work);
        }
        let user = |&(thread, job): &(usize, usize)| {
            let (&(core, core_type, period), context) =
                known.get(thread).zip(contexts.get(thread))?;
            Some(UserPlace { thread, job, core, core_type, period, home: context.home })
        };
        let users: Vec<UserPlace<'_>> = users.iter().filter_map(user).collect();
        let levels = Levels::new(machine, &users, options.prefetching, options.private_caches);
        let mut numbers = BTreeMap::new();
        let mut cores = Vec::new();
        for (id, (mode, works)) in by_core {
            let Some((_, core_type, period)) = known.iter().find(|(core, ..)| core.id == id) else {
                continue;
            };
            numbers.insert(id, cores.len());
            cores.push(Core::new(core_type, 1.0 / period, mode, works));
        }
        let slot =
            |(core, thread): (CoreId, usize)| (numbers.get(&core).copied().unwrap_or(0), thread);
        Ok(Self { cores, levels, slots: places.into_iter().map(slot).collect() })
    }

    /// Lets a hardware thread fetch no more; what it would fetch next.
    pub(crate) fn leave(&mut self, slot: usize) -> Option<Work<'s>> {
        self.thread_mut(slot).map(Thread::leave)
    }

    /// Has all that a hardware thread fetched left?
    pub(crate) fn is_drained(&self, slot: usize) -> bool {
        let thread =
            self.slots.get(slot).map(|&(core, thread)| &self.cores[core].threads()[thread]);
        thread.is_none_or(Thread::is_drained)
    }

    /// A drained hardware thread executes this from now on.
    pub(crate) fn enter(&mut self, slot: usize, work: Work<'s>) {
        if let Some(thread) = self.thread_mut(slot) {
            thread.enter(work);
        }
    }

    fn thread_mut(&mut self, slot: usize) -> Option<&mut Thread<'s>> {
        let &(core, thread) = self.slots.get(slot)?;
        self.cores.get_mut(core)?.threads_mut().get_mut(thread)
    }

    /// Lets all run until each core's clock is at `ns` or later. False when all threads are done.
    pub fn run_until(&mut self, ns: f64) -> bool {
        self.go(ns, true)
    }

    /// As [`Chip::run_until`], but looks at every single cycle.
    #[cfg(test)]
    fn run_every_cycle_until(&mut self, ns: f64) -> bool {
        self.go(ns, false)
    }

    fn go(&mut self, ns: f64, skip: bool) -> bool {
        let mut alive = vec![true; self.cores.len()];
        let ends: Vec<u64> =
            self.cores.iter().map(|core| (ns / core.period() - 1e-6).ceil() as u64).collect();
        loop {
            let behind = |at: &usize| self.cores[*at].now() as f64 * self.cores[*at].period();
            let next = (0..self.cores.len())
                .filter(|&at| alive[at] && self.cores[at].now() < ends[at])
                .min_by(|a, b| behind(a).total_cmp(&behind(b)));
            let Some(at) = next else { break };
            alive[at] = self.cores[at].step(&mut self.levels, ends[at], skip);
        }
        alive.contains(&true)
    }

    /// Lets so many of the next instructions of a slot's thread go by outside of time, to warm
    /// caches, translation buffers and predictor by them (functional warming: Wunderlich et al.,
    /// SMARTS, ISCA 2003). Before the first cycle only: the threads' clocks stand still.
    pub fn skim(&mut self, slot: usize, instructions: u64) {
        let Some(&(core, thread)) = self.slots.get(slot) else { return };
        self.cores[core].skim(&mut self.levels, thread, instructions);
    }

    /// What the thread of a slot did so far, by the slots' order.
    #[must_use]
    pub fn counts(&self, slot: usize) -> Counts {
        let Some(&(core, thread)) = self.slots.get(slot) else { return Counts::default() };
        let thread = &self.cores[core].threads()[thread];
        Counts { traffic: self.levels.traffic(thread.user()), ..*thread.counts() }
    }

    /// How many slots there are.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The caches; users are numbered as slots.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The caches, to warm them.
    pub fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use symbiont_profile::OpClass;

    use super::*;
    use crate::op::{Branch, Op};

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = (0..OpClass::COUNT, 0_u16..6, 0_u16..30, 0_u64..4000, 0_u8..40, 0_u64..50);
        let made = op.prop_map(|(class, a, b, line, wrong, pc)| {
            let class = OpClass::ALL[class];
            let wrong = wrong == 0 && class == OpClass::Branch;
            Op {
                sources: [a, b],
                branch: Branch::Given { wrong },
                pc: pc * 40,
                ..Op::memory(class, line * 64)
            }
        });
        prop::collection::vec(made, 1..300)
    }

    fn run(threads: &[Vec<Op>], skip: bool) -> Vec<Counts> {
        let machine = Description::named("power8-s812l").unwrap();
        let slots = threads.iter().zip(0_u64..).map(|(ops, which)| CoreSlot {
            core: CoreId(which as u32 / 3),
            mode: 4,
            home: which as usize % 2,
            stream: Box::new(
                ops.clone()
                    .into_iter()
                    .map(move |op| Op { address: op.address + (which << 40), ..op }),
            ),
        });
        let mut chip = Chip::new(&machine, slots.collect(), &CycleOptions::default()).unwrap();
        for slice in 1..100 {
            let until = f64::from(slice) * 777.0;
            let more = if skip { chip.run_until(until) } else { chip.run_every_cycle_until(until) };
            if !more {
                break;
            }
        }
        (0..chip.slots()).map(|slot| chip.counts(slot)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn skipping_idle_cycles_changes_nothing(threads in prop::collection::vec(ops(), 1..5)) {
            let (quick, slow) = (run(&threads, true), run(&threads, false));
            prop_assert!(quick == slow, "{:?}\n{:?}", quick, slow);
            for (counts, ops) in quick.iter().zip(&threads) {
                prop_assert_eq!(counts.uops, ops.len() as u64);
                // Its halves dispatch four each.
                prop_assert_eq!(counts.slots.iter().sum::<u64>(), 4 * counts.all_cycles());
            }
        }
    }
}
