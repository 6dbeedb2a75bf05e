//! Cores that share caches and memory.
//!
//! # Approach
//! Always the core whose clock is behind takes the next cycle, so that what cores ask of what
//! they share comes in the order of time, up to a cycle.
//!
//! # Properties
//! `cores_share_their_last_level_only`.

use std::collections::BTreeMap;

use symbiont_sim::description::Description;
use symbiont_topology::CoreId;

use crate::Options;
use crate::core::Core;
use crate::counts::Counts;
use crate::levels::{Levels, UserPlace};
use crate::op::Stream;

/// A thread and where it runs.
pub struct Seat<'s> {
    /// Its core.
    pub core: CoreId,
    /// Hardware threads that the core is set up for; the most that any seat of it says, or as many as
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
    /// Nobody runs.
    #[error("a chip without threads")]
    NoThreads,
}

/// Cores at work.
pub struct Chip<'s> {
    cores: Vec<Core<'s>>,
    levels: Levels,
    /// Core and thread there of each seat.
    seats: Vec<(usize, usize)>,
}

impl<'s> Chip<'s> {
    /// The cores of a machine that have threads, cold.
    ///
    /// # Errors
    /// See [`ChipError`].
    pub fn new(
        machine: &Description,
        seats: Vec<Seat<'s>>,
        options: &Options,
    ) -> Result<Self, ChipError> {
        if seats.is_empty() {
            return Err(ChipError::NoThreads);
        }
        let mut users = Vec::new();
        let mut by_core: BTreeMap<CoreId, (u32, Vec<(usize, Stream<'s>)>)> = BTreeMap::new();
        let mut places = Vec::new();
        for (user, seat) in seats.into_iter().enumerate() {
            let missing = ChipError::NoCore(seat.core.0);
            let core = machine.topology.core(seat.core).ok_or(missing.clone())?;
            let sort = machine.core_type(core.kind).ok_or(missing)?;
            let period = 1e9 / machine.hertz(core);
            users.push(UserPlace { core, sort, period, home: seat.home });
            let of_core = by_core.entry(seat.core).or_default();
            of_core.0 = of_core.0.max(seat.mode);
            places.push((seat.core, of_core.1.len()));
            of_core.1.push((user, seat.stream));
        }
        let levels = Levels::new(machine, &users, options.prefetching);
        let mut numbers = BTreeMap::new();
        let mut cores = Vec::new();
        for (id, (mode, streams)) in by_core {
            let user = streams.first().and_then(|(user, _)| users.get(*user));
            let Some(place) = user else { continue };
            numbers.insert(id, cores.len());
            let ghz = 1.0 / place.period;
            cores.push(Core::new(place.sort, ghz, mode, streams, options));
        }
        let seat =
            |(core, thread): (CoreId, usize)| (numbers.get(&core).copied().unwrap_or(0), thread);
        Ok(Self { cores, levels, seats: places.into_iter().map(seat).collect() })
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

    /// Lets so many of the next instructions of a seat's thread go by outside of time, to warm
    /// caches, translation buffers and predictor by them (functional warming: Wunderlich et al.,
    /// SMARTS, ISCA 2003). Before the first cycle only: the threads' clocks stand still.
    pub fn skim(&mut self, seat: usize, instructions: u64) {
        let Some(&(core, thread)) = self.seats.get(seat) else { return };
        self.cores[core].skim(&mut self.levels, thread, instructions);
    }

    /// What the thread of a seat did so far, by the seats' order.
    #[must_use]
    pub fn counts(&self, seat: usize) -> Counts {
        let Some(&(core, thread)) = self.seats.get(seat) else { return Counts::default() };
        let thread = &self.cores[core].threads()[thread];
        Counts { traffic: self.levels.traffic(thread.user()), ..*thread.counts() }
    }

    /// How many seats there are.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.seats.len()
    }

    /// The caches; users are numbered as seats.
    #[must_use]
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The caches, to warm them or to forget their counts.
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
    use crate::{Fetch, Options};

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = (0..OpClass::COUNT, 0_u16..6, 0_u16..30, 0_u64..4000, 0_u8..40, 0_u64..50);
        let made = op.prop_map(|(class, a, b, line, wrong, pc)| {
            let class = OpClass::ALL[class];
            let wrong = wrong == 0 && class == OpClass::Branch;
            Op {
                sources: [a, b],
                branch: Branch::Told { wrong },
                pc: pc * 40,
                ..Op::memory(class, line * 64)
            }
        });
        prop::collection::vec(made, 1..300)
    }

    fn run(threads: &[Vec<Op>], fetch: Fetch, skip: bool) -> Vec<Counts> {
        let machine = Description::named("power8-s812l").unwrap();
        let seats = threads.iter().zip(0_u64..).map(|(ops, which)| Seat {
            core: CoreId(which as u32 / 3),
            mode: 4,
            home: which as usize % 2,
            stream: Box::new(
                ops.clone()
                    .into_iter()
                    .map(move |op| Op { address: op.address + (which << 40), ..op }),
            ),
        });
        let options = Options { fetch, ..Options::default() };
        let mut chip = Chip::new(&machine, seats.collect(), &options).unwrap();
        for slice in 1..100 {
            let until = f64::from(slice) * 777.0;
            let more = if skip { chip.run_until(until) } else { chip.run_every_cycle_until(until) };
            if !more {
                break;
            }
        }
        (0..chip.seats()).map(|seat| chip.counts(seat)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn skipping_idle_cycles_changes_nothing(
            threads in prop::collection::vec(ops(), 1..5), icount in any::<bool>(),
        ) {
            let fetch =
                if icount { Fetch::Icount { threads: 2, each: 4 } } else { Fetch::RoundRobin };
            let (quick, slow) = (run(&threads, fetch, true), run(&threads, fetch, false));
            prop_assert!(quick == slow, "{:?}\n{:?}", quick, slow);
            for (counts, ops) in quick.iter().zip(&threads) {
                prop_assert_eq!(counts.uops, ops.len() as u64);
                // Its halves dispatch four each.
                prop_assert_eq!(counts.slots.iter().sum::<u64>(), 4 * counts.all_cycles());
            }
        }
    }
}
