//! The reach of each thread in each cache that it shares.
//!
//! # Approach
//! The steady state is that of StatCC ([`eviction_time`]), cache by cache; of the L2 and the last level,
//! which see only what the levels above miss, with a [`Filter`] between. There a thread's occupancy also
//! takes time to become steady ([`Transient`]).
//!
//! Threads of the same program share code, which the OS keeps once: all of it in the same phase, in
//! others the part that the sketches of their profiles give ([`CodeSketch`](symbiont_profile::CodeSketch)).
//! In the instruction cache each brings in the part that no earlier one brings, at the speed of the
//! fastest of those that share most of their code. In the L2 and the last level, one that shares most of
//! its code with an earlier one brings in its data alone. Translations belong to each process.
//!
//! # Properties
//! `twins_bring_their_code_once`, `other_phases_bring_what_is_not_in_common`,
//! `a_prefetcher_forgets_when_all_streams_together_are_too_many`.

use super::aet::FOREVER;
use super::groups::Group;
use super::occupancy::{Transient, is_notable};
use super::pipeline::{CacheLevel, Environment, REACHES};
use super::statcc::{Filter, Sharer, eviction_time};
use super::tasks::Task;

/// Lines that a thread occupies in its L2 and last level; none: not known, it
/// has its steady share.
pub type Occupancy = [Option<f64>; 2];

/// The occupancy of a thread at the end of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct After {
    /// Lines.
    pub held: Occupancy,
    /// Does it still differ from its steady share, by level?
    pub changing: [bool; 2],
    /// Has it changed notably since the beginning, by level?
    pub shifted: [bool; 2],
    /// For how long caches keep lines of which it is the first sharer, log₂ ns: where the next search
    /// begins.
    kept: [Option<f64>; REACHES],
}

/// The span over which occupancies change.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// Over how many ns the mean is wanted; none: the steady state.
    pub ns: Option<f64>,
    /// The occupancy of each thread at its beginning.
    pub held: &'a [Occupancy],
}

/// The reach of a thread at each level, log₂ instructions.
pub type Reaches = [f64; REACHES];

/// Sets the reaches of those that share each of the `groups` for which `wanted` says so;
/// `speeds` are log₂ of instructions per ns. Writes into `after` what is held at
/// the end of the span. `reaches` hold the last ones, from which the search begins.
pub(super) fn set<'g>(
    groups: impl Iterator<Item = Group<'g>>,
    tasks: &[Task<'_>],
    speeds: &[f64],
    span: Span<'_>,
    wanted: impl Fn(CacheLevel, &[usize]) -> bool,
    reaches: &mut [Reaches],
    after: &mut [After],
) {
    let mut threads: Vec<Sharer<'_>> = Vec::new();
    let mut steady: Vec<f64> = Vec::new();
    let mut kin = Kin::default();
    for (level, lines, members) in groups {
        if !wanted(level, members) {
            continue;
        }
        let at = level as usize;
        threads.clear();
        threads.reserve(members.len());
        let footprint = |member: usize| &tasks[member].phase.footprints[at];
        let data = |member: usize| &tasks[member].phase.footprints[CacheLevel::L1d as usize];
        if matches!(level, CacheLevel::L1i | CacheLevel::L2 | CacheLevel::Last) {
            kin.find(tasks, members);
        }
        for (place, &member) in members.iter().enumerate() {
            let filter = filter(&tasks[member], level, &reaches[member]);
            let sharer = |footprint, speed| Sharer { footprint, speed, filter, part: 1.0 };
            match level {
                CacheLevel::L1i if kin.any => {
                    let part = 1.0 - kin.brought[place];
                    let fastest = kin.fastest(tasks, speeds, &members[place..]);
                    if part > 0.0 {
                        threads.push(Sharer { part, ..sharer(footprint(member), fastest) });
                    }
                }
                CacheLevel::L2 | CacheLevel::Last if kin.any && kin.brought[place] >= MOST => {
                    threads.push(sharer(data(member), speeds[member]));
                }
                _ => threads.push(sharer(footprint(member), speeds[member])),
            }
        }
        let Some(&first) = members.first() else { continue };
        let time = eviction_time(lines, &threads, after[first].kept[at]);
        after[first].kept[at] = Some(time);
        let slot = level.occupancy_index();
        if let (Some(slot), Some(ns)) = (slot, span.ns) {
            steady.clear();
            steady.extend(threads.iter().map(|sharer| sharer.reach(time)));
            let missed =
                |(s, reach): (&Sharer<'_>, &f64)| s.footprint.misses(*reach) * s.speed.exp2();
            let mut known = None;
            let mut refill = || {
                let missed = || threads.iter().zip(&steady).map(missed).sum::<f64>();
                *known.get_or_insert_with(|| missed() / lines)
            };
            for ((&member, sharer), &steady) in members.iter().zip(&threads).zip(&steady) {
                let Sharer { footprint, speed, .. } = *sharer;
                let before = span.held[member][slot].unwrap_or_else(|| footprint.lines(steady));
                let part = Transient { footprint, before, steady, speed }.over(ns, &mut refill);
                reaches[member][at] = part.reach;
                after[member].held[slot] = Some(part.held);
                after[member].changing[slot] = part.changing;
                after[member].shifted[slot] = is_notable(before, part.held);
            }
            continue;
        }
        for &member in members {
            let filter = filter(&tasks[member], level, &reaches[member]);
            let own =
                Sharer { footprint: footprint(member), speed: speeds[member], filter, part: 1.0 };
            reaches[member][at] = own.reach(time);
        }
    }
}

/// What the levels above do to a thread's lines at a level.
fn filter(task: &Task<'_>, level: CacheLevel, reaches: &Reaches) -> Filter {
    let footprint = |level: CacheLevel| &task.phase.footprints[level as usize];
    let first = || {
        let above = [CacheLevel::L1d, CacheLevel::L1i].map(|above| {
            let reach = reaches[above as usize];
            (footprint(above).misses(reach), reach.exp2())
        });
        let misses: f64 = above.iter().map(|(misses, _)| misses).sum();
        let weighted: f64 = above.iter().map(|(misses, reach)| misses * reach).sum();
        if misses > 0.0 { (weighted / misses).log2() } else { FOREVER }
    };
    match level {
        CacheLevel::L2 => Filter::below(footprint(level), first()),
        // Without an L3 the last level is the L2.
        CacheLevel::Last if task.two_levels => Filter::below(footprint(level), first()),
        CacheLevel::Last => Filter::below(footprint(level), reaches[CacheLevel::L2 as usize]),
        _ => Filter::default(),
    }
}

/// A thread with more than this share of its code in common is taken to have all of it in common.
const MOST: f64 = 0.5;

/// The share of a thread's code that it has in common with another.
fn in_common(tasks: &[Task<'_>], one: usize, other: usize) -> f64 {
    let (one, other) = (tasks[one].phase, tasks[other].phase);
    if one.fingerprint == other.fingerprint { 1.0 } else { one.code.shared_with(&other.code) }
}

/// Code that the members of a group have in common.
#[derive(Default)]
struct Kin<'g> {
    members: &'g [usize],
    any: bool,
    /// The share of each member's code that an earlier one brings.
    brought: Vec<f64>,
}

impl<'g> Kin<'g> {
    /// Looks at these members, if they are not those of last time.
    fn find(&mut self, tasks: &[Task<'_>], members: &'g [usize]) {
        if self.members != members {
            let brought = |(place, member): (usize, &usize)| {
                let earlier = members[..place].iter();
                earlier.map(|other| in_common(tasks, *member, *other)).fold(0.0, f64::max)
            };
            self.brought.clear();
            self.brought.extend(members.iter().enumerate().map(brought));
            self.any = self.brought.iter().any(|part| *part > 0.0);
            self.members = members;
        }
    }

    /// The speed of the fastest of the members that have most of the first one's code.
    fn fastest(&self, tasks: &[Task<'_>], speeds: &[f64], members: &[usize]) -> f64 {
        let first = members.first();
        let has = |other: &&usize| first.is_some_and(|it| in_common(tasks, *it, **other) >= MOST);
        members.iter().filter(has).map(|other| speeds[*other]).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Copies the reaches into an environment; the last level reaches at least as far as the L2.
pub fn hand_over(reaches: &Reaches, environment: &mut Environment) {
    environment.reach = *reaches;
    let last = &mut environment.reach[CacheLevel::Last as usize];
    *last = last.max(reaches[CacheLevel::L2 as usize]);
}

#[cfg(test)]
mod tests {
    use symbiont_profile::observe::{ObservedOp, Observer};
    use symbiont_profile::{CodeSketch, OpClass, Phase};

    use super::*;
    use crate::description::Description;
    use crate::physics::domains::Physics;
    use crate::physics::groups::Groups;
    use crate::physics::prepared::Prepared;
    use crate::physics::tasks::{self, CoreLoad, RunningThread, Switches};

    /// Code of so many lines, executed from the first to the last again and again; begins with
    /// an operation of some class.
    fn straight(lines: u64, first: OpClass) -> Phase {
        let mut observer = Observer::new();
        let round = 16 * lines;
        for index in 0..3 * round {
            if index == round {
                observer.reset();
                observer.start_trace();
            } else if index == round + 1200 {
                observer.end_trace();
            }
            let class = if index % round == 0 { first } else { OpClass::Integer };
            observer.execute(&ObservedOp::plain(4 * (index % round), class));
        }
        observer.finish()
    }

    /// Adds up so many long arrays, a word of each in turn.
    fn sums(arrays: u64) -> Phase {
        let mut observer = Observer::new();
        for index in 0..12_000 {
            if index == 6_000 {
                observer.reset();
                observer.start_trace();
            }
            let (word, array) = (index / arrays, index % arrays);
            let address = Some(((array + 1) << 32) | (word * 8));
            let load = ObservedOp::plain(4 * array, OpClass::Load);
            observer.execute(&ObservedOp { address, ..load });
        }
        observer.end_trace();
        observer.finish()
    }

    #[test]
    fn a_prefetcher_forgets_when_all_streams_together_are_too_many() {
        // It follows 16.
        let machine = Description::named("power8-s812l").unwrap();
        let physics = Physics::new(&machine);
        let forgotten = |arrays: &[u64]| {
            let prepared = arrays.iter().map(|arrays| Prepared::new(&machine, &sums(*arrays)));
            let prepared: Vec<Prepared> = prepared.map(Result::unwrap).collect();
            let thread = |(thread, prepared)| RunningThread { thread, prepared, pages: &[] };
            let threads: Vec<_> = (0..).zip(&prepared).map(thread).collect();
            let load = [CoreLoad { core: 0, mode: 4, threads: &threads }];
            let tasks = tasks::flatten(&physics, &load, Switches::default());
            let mut groups = Groups::default();
            groups.update(&physics, &tasks, false);
            let mut reaches = vec![[0.0; REACHES]; arrays.len()];
            let mut after = vec![After::default(); arrays.len()];
            let (span, speeds) = (Span { ns: None, held: &[] }, vec![0.0; arrays.len()]);
            let of_core = groups.of_core(0);
            set(of_core, &tasks, &speeds, span, |_, _| true, &mut reaches, &mut after);
            let at = CacheLevel::Streams as usize;
            let share = |(task, reaches): (&Task<'_>, &Reaches)| {
                let streams = &task.phase.footprints[at];
                let begun = streams.misses(FOREVER);
                (streams.misses(reaches[at]) - begun) / (streams.accesses() - begun)
            };
            tasks.iter().zip(&reaches).map(share).collect::<Vec<f64>>()
        };
        for few in [&[7][..], &[15], &[7, 7]] {
            assert!(forgotten(few).iter().all(|share| *share < 0.05), "{few:?}");
        }
        assert!(forgotten(&[7, 7, 7]).iter().all(|share| *share > 0.5));
        // Streams of few are touched more often.
        let [few, many] = forgotten(&[7, 15])[..] else { panic!("two threads") };
        assert!(few < 0.05 && many > 0.5, "{few} {many}");
    }

    /// How far the first of two threads of a core reaches, and what it misses in the L2. Both go through so many
    /// lines, the other with such an operation and code.
    fn co_running(first: OpClass, code_sketch: CodeSketch) -> (Reaches, f64) {
        let machine = Description::named("xeon-e5-2620v4").unwrap();
        let physics = Physics::new(&machine);
        let own = (OpClass::Integer, code(0));
        let [one, other] = [own, (first, code_sketch)].map(|(first, code_sketch)| {
            let phase = Phase { code_sketch, ..straight(3000, first) };
            Prepared::new(&machine, &phase).unwrap()
        });
        let thread = |thread, prepared| RunningThread { thread, prepared, pages: &[] };
        let threads = [thread(1, &one), thread(2, &other)];
        let load = [CoreLoad { core: 0, mode: 2, threads: &threads }];
        let tasks = tasks::flatten(&physics, &load, Switches::default());
        let mut groups = Groups::default();
        groups.update(&physics, &tasks, false);
        let (mut reaches, mut after) = ([[0.0; REACHES]; 2], [After::default(); 2]);
        let span = Span { ns: None, held: &[] };
        let of_core = groups.of_core(0);
        set(of_core, &tasks, &[0.0; 2], span, |_, _| true, &mut reaches, &mut after);
        let at = CacheLevel::L2 as usize;
        (reaches[0], one.cores[0].footprints[at].misses(reaches[0][at]))
    }

    /// Code that begins with this line.
    fn code(first: u64) -> CodeSketch {
        CodeSketch::of(first..first + 100).in_program("one")
    }

    #[test]
    fn twins_bring_their_code_once() {
        let (twins, misses) = co_running(OpClass::Integer, code(0));
        let (strangers, more) = co_running(OpClass::Multiply, CodeSketch::default());
        // The L2 holds the code of one, not of two.
        assert!(misses < 1e-3 && more > 0.05, "{misses} {more}");
        assert!(twins[CacheLevel::L1i as usize] > strangers[CacheLevel::L1i as usize] + 0.5);
        assert_eq!(twins[CacheLevel::CodeTlb as usize], strangers[CacheLevel::CodeTlb as usize]);
    }

    #[test]
    fn other_phases_bring_what_is_not_in_common() {
        let twins = co_running(OpClass::Integer, code(0));
        let of_others = CodeSketch::of(0..100).in_program("other");
        let strangers = co_running(OpClass::Multiply, of_others);
        assert_eq!(co_running(OpClass::Multiply, code(0)), twins);
        assert_eq!(co_running(OpClass::Multiply, code(1_000)), strangers);
        let reach = |of: (Reaches, f64)| of.0[CacheLevel::L1i as usize];
        let part = reach(co_running(OpClass::Multiply, code(50)));
        assert!(part + 0.1 < reach(twins) && part > reach(strangers) + 0.1, "{part}");
    }
}
