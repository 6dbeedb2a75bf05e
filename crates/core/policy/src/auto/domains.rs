//! Which domain each program runs in.
//!
//! # Approach
//! A *domain* is a set of cores of about the same speed (a speed group of the topology) that share a last-level
//! cache, or a NUMA node where each
//! core has such a cache of its own. A program whose ready threads fit a domain stays in one; where
//! it fits none, or the CPUs allowed to its threads leave none, it is left to the OS.
//!
//! Programs go where they add most to [`worth`](Domain::worth), a rough measure of throughput: a thread that is alone
//! on a core counts with the core's capacity, one that shares a core with [`SHARED`] of it; of equally
//! good domains the emptier one, or the one where the program runs already. Where caches are of unequal size, what a
//! program loses by misses in each ([`super::caches`]) counts, too, and two programs may change places.
//!
//! Hysteresis and budget: a program changes its domain only if the worth would be larger by
//! [`LEAST_GAIN`] for [`HOLD`]; one program, or two that change places, in each [`HOLD`], and each at most
//! once in [`REST`].

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use symbiont_machine::ProgramId;
use symbiont_topology::{CpuSet, LlcId, NodeId, Topology};

/// What a second thread adds on a core, of what the first one does: SMT gains some 20 to 40 %.
const SHARED: f64 = 0.3;
/// How much a domain that is full counts less than one that is empty, in threads: caches and memory
/// bandwidth are shared.
const CROWDING: f64 = 0.4;
/// What it is worth, in threads, to leave all of a program where it is.
const NEAR: f64 = 0.05;
/// Least gain of a move, in threads: to part two threads on two domains of four CPUs gains 0.1.
const LEAST_GAIN: f64 = 0.08;
/// A program keeps its domain until it has so many times as many ready threads as fit.
const SLACK: f64 = 1.25;
/// How long a move must be worth it, and how long after it no other program moves.
const HOLD: Duration = Duration::from_secs(1);
/// How long a program that moved stays: its caches are filled, and its pages were left behind.
const REST: Duration = Duration::from_secs(10);

/// Names a domain for as long as the machine stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DomainId {
    node: NodeId,
    llc: Option<LlcId>,
    /// Of the fastest of the cores of about its speed.
    capacity: u32,
}

/// A domain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Domain {
    pub id: DomainId,
    /// Its hardware threads, as far as they are to be used.
    pub cpus: CpuSet,
    /// What people call it.
    pub name: String,
    /// Bytes of the last-level cache that its cores share, where known.
    pub cache: Option<u64>,
    cores: usize,
}

/// The domains of a machine of which only some hardware threads are to be used.
pub(super) fn domains(topology: &Topology, online: &CpuSet) -> Vec<Domain> {
    let cores_of = |llc| topology.cores().iter().filter(|core| core.llc == llc).count();
    let speeds = topology.speed_groups();
    let mut found: BTreeMap<DomainId, (RangeInclusive<u32>, Domain)> = BTreeMap::new();
    for core in topology.cores() {
        let cpus = core.cpus.intersection(online);
        if cpus.is_empty() {
            continue;
        }
        let llc = (cores_of(core.llc) > 1).then_some(core.llc);
        let speed = speeds.of_core(core);
        let id = DomainId { node: core.node, llc, capacity: *speed.end() };
        let (_, domain) = found.entry(id).or_insert_with(|| {
            let cache = llc.map_or(String::new(), |llc| format!(", LLC domain {}", llc.0));
            let name = format!("NUMA node {}{cache}", core.node.0);
            let cache = llc.and_then(|llc| topology.llc(llc)?.bytes);
            (speed, Domain { id, cpus: CpuSet::new(), name, cache, cores: 0 })
        });
        domain.cpus = domain.cpus.union(&cpus);
        domain.cores += 1;
    }
    let fastest = |id: &DomainId| id.capacity;
    let speeds_differ = found.keys().map(fastest).min() != found.keys().map(fastest).max();
    let named = |(speed, domain): (RangeInclusive<u32>, Domain)| {
        let capacity = match speed.start() == speed.end() {
            true => speed.end().to_string(),
            false => format!("{} to {}", speed.start(), speed.end()),
        };
        let name = match speeds_differ {
            true => format!("{}, cores of capacity {capacity}", domain.name),
            false => domain.name,
        };
        Domain { name, ..domain }
    };
    found.into_values().map(named).collect()
}

impl Domain {
    /// What so many ready threads there are worth: about the threads alone on the fastest core that get
    /// as much done, less what they disturb each other.
    fn worth(&self, ready: f64) -> f64 {
        let (cores, places) = (self.cores as f64, self.cpus.len().max(1) as f64);
        let alone = ready.min(cores);
        let shared = (ready - cores).clamp(0.0, (places - cores).max(0.0));
        let speed = f64::from(self.id.capacity) / 1024.0;
        speed * (alone + SHARED * shared) - CROWDING / 2.0 * ready * ready / places
    }

    /// Has it a hardware thread for each ready thread? `slack`: how many times as many may be ready.
    fn fits(&self, load: &Load, slack: f64) -> bool {
        load.ready <= slack * self.cpus.len() as f64 + 0.5
            && load.allowed.iter().all(|allowed| !allowed.is_disjoint(&self.cpus))
    }
}

/// What a program asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Load {
    /// Mean number of its ready threads.
    pub ready: f64,
    /// Different sets of CPUs that are allowed to its threads.
    pub allowed: Vec<CpuSet>,
    /// Ready threads by domain, where they are.
    pub there: BTreeMap<DomainId, f64>,
    /// What it loses by cache misses in each domain, in threads; empty where caches are equal or nothing is known.
    pub lost: BTreeMap<DomainId, f64>,
}

impl Load {
    fn lost(&self, domain: &Domain) -> f64 {
        self.lost.get(&domain.id).copied().unwrap_or_default()
    }
}

/// Where programs are at home.
#[derive(Debug, Clone, Default)]
pub(super) struct Homes {
    homes: BTreeMap<ProgramId, Home>,
    /// How long some move has been worth it.
    pending: Duration,
    /// Moves from domain to domain so far.
    pub moves: u64,
}

#[derive(Debug, Clone, Copy)]
struct Home {
    domain: DomainId,
    /// How long it must stay yet.
    rest: Duration,
}

impl Homes {
    /// The domain of each program that is to stay in one.
    pub fn decide(
        &mut self,
        domains: &[Domain],
        loads: &BTreeMap<ProgramId, Load>,
        over: Duration,
    ) -> BTreeMap<ProgramId, DomainId> {
        if domains.len() < 2 {
            *self = Self { moves: self.moves, ..Self::default() };
            return BTreeMap::new();
        }
        let find = |id: DomainId| domains.iter().find(|domain| domain.id == id);
        self.homes.retain(|program, home| {
            home.rest = home.rest.saturating_sub(over);
            let fits = |load| find(home.domain).is_some_and(|domain| domain.fits(load, SLACK));
            loads.get(program).is_some_and(fits)
        });
        let mut busy: BTreeMap<DomainId, f64> = domains.iter().map(|d| (d.id, 0.0)).collect();
        let places: usize = domains.iter().map(|domain| domain.cpus.len()).sum();
        for (program, load) in loads {
            match self.homes.get(program) {
                Some(home) => *busy.entry(home.domain).or_default() += load.ready,
                None if !domains.iter().any(|domain| domain.fits(load, 1.0)) => {
                    for domain in domains {
                        let share = domain.cpus.len() as f64 / places.max(1) as f64;
                        *busy.entry(domain.id).or_default() += load.ready * share;
                    }
                }
                None => {}
            }
        }
        let mut new: Vec<(&ProgramId, &Load)> =
            loads.iter().filter(|(program, _)| !self.homes.contains_key(program)).collect();
        new.sort_by(|(_, a), (_, b)| b.ready.total_cmp(&a.ready));
        for (program, load) in new {
            let gain = |domain: &&Domain| {
                let before = busy.get(&domain.id).copied().unwrap_or_default();
                let there = load.there.get(&domain.id).copied().unwrap_or_default();
                domain.worth(before + load.ready) - domain.worth(before)
                    + NEAR * there / load.ready.max(f64::MIN_POSITIVE)
                    - load.lost(domain)
            };
            let fitting = domains.iter().filter(|domain| domain.fits(load, 1.0));
            if let Some(best) = fitting.rev().max_by(|a, b| gain(a).total_cmp(&gain(b))) {
                *busy.entry(best.id).or_default() += load.ready;
                self.homes.insert(*program, Home { domain: best.id, rest: Duration::ZERO });
            }
        }
        self.rebalance(domains, loads, &busy, over);
        self.homes.iter().map(|(program, home)| (*program, home.domain)).collect()
    }

    fn movable<'l>(
        &'l self,
        domains: &'l [Domain],
        loads: &'l BTreeMap<ProgramId, Load>,
    ) -> impl Iterator<Item = Movable<'l>> {
        let rested = self.homes.iter().filter(|(_, home)| home.rest.is_zero());
        rested.filter_map(|(&program, home)| {
            let from = domains.iter().find(|domain| domain.id == home.domain)?;
            Some(Movable { program, load: loads.get(&program)?, from })
        })
    }

    fn rebalance(
        &mut self,
        domains: &[Domain],
        loads: &BTreeMap<ProgramId, Load>,
        busy: &BTreeMap<DomainId, f64>,
        over: Duration,
    ) {
        let movable: Vec<Movable<'_>> = self.movable(domains, loads).collect();
        let ready = |domain: &Domain| busy.get(&domain.id).copied().unwrap_or_default();
        // By how much more a domain is worth with so many more ready threads.
        let more = |domain: &Domain, added: f64| {
            domain.worth(ready(domain) + added) - domain.worth(ready(domain))
        };
        let mut best: Option<(f64, Vec<(ProgramId, DomainId)>)> = None;
        let mut try_it = |gain: f64, moves: &[(ProgramId, DomainId)]| {
            if gain >= LEAST_GAIN && best.as_ref().is_none_or(|(most, _)| gain > *most) {
                best = Some((gain, moves.to_vec()));
            }
        };
        for (at, one) in movable.iter().enumerate() {
            let (from, load) = (one.from, one.load);
            for to in domains.iter().filter(|to| to.id != from.id && to.fits(load, 1.0)) {
                let gain = more(to, load.ready) + more(from, -load.ready) + one.saved(to);
                try_it(gain, &[(one.program, to.id)]);
            }
            for other in movable.iter().skip(at + 1).filter(|other| other.from.id != from.id) {
                let saved = one.saved(other.from) + other.saved(from);
                let fit = other.from.fits(load, 1.0) && from.fits(other.load, 1.0);
                // Only for the caches: loads are balanced by single moves.
                if fit && saved >= LEAST_GAIN {
                    let added = other.load.ready - load.ready;
                    let gain = saved + more(from, added) + more(other.from, -added);
                    try_it(gain, &[(one.program, other.from.id), (other.program, from.id)]);
                }
            }
        }
        let Some((_, moves)) = best else {
            self.pending = Duration::ZERO;
            return;
        };
        self.pending += over;
        if self.pending >= HOLD {
            self.pending = Duration::ZERO;
            for (program, domain) in moves {
                self.moves += 1;
                self.homes.insert(program, Home { domain, rest: REST });
            }
        }
    }
}

/// A program that may change its domain.
struct Movable<'l> {
    program: ProgramId,
    load: &'l Load,
    from: &'l Domain,
}

impl Movable<'_> {
    /// What it would lose less by cache misses in another domain, in threads.
    fn saved(&self, to: &Domain) -> f64 {
        self.load.lost(self.from) - self.load.lost(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_millis(100);

    fn on(line: &str) -> Vec<Domain> {
        let topology = Topology::synthetic(line).unwrap();
        domains(&topology, &topology.cpus())
    }

    fn loads(domains: &[Domain], ready: &[f64]) -> BTreeMap<ProgramId, Load> {
        let all = domains.iter().fold(CpuSet::new(), |all, domain| all.union(&domain.cpus));
        let load = |&ready| Load { ready, allowed: vec![all.clone()], ..Load::default() };
        (0..).map(ProgramId).zip(ready.iter().map(load)).collect()
    }

    /// Where programs with so many ready threads are, by number of the domain.
    fn homes(line: &str, ready: &[f64]) -> Vec<Option<usize>> {
        let domains = on(line);
        let given = Homes::default().decide(&domains, &loads(&domains, ready), QUANTUM);
        let number = |id| domains.iter().position(|domain| domain.id == id);
        (0..ready.len() as u32).map(|at| number(*given.get(&ProgramId(at))?)).collect()
    }

    #[test]
    fn domains_are_caches_or_nodes_or_speeds() {
        let names = |line| on(line).into_iter().map(|domain| domain.name).collect::<Vec<_>>();
        let two = ["NUMA node 0, LLC domain 0", "NUMA node 0, LLC domain 1"];
        assert_eq!(names("llc:2 core:4 smt:2"), two);
        let power8 = "node:1 llc:5 smt:8 memory:32G | node:1 llc:5 smt:8 memory:0";
        assert_eq!(names(power8), ["NUMA node 0", "NUMA node 1"]);
        assert_eq!(names("core:4 smt:2").len(), 1);
        let hybrid = names("core:8 smt:2 | core:8 kind:efficiency capacity:600");
        assert_eq!(hybrid.len(), 2);
        assert!(hybrid[0].ends_with("capacity 600"), "{hybrid:?}");
        // As an NVIDIA GB10 says it.
        let gb10 =
            names("core:4 capacity:718 | core:1 capacity:731 | core:4 capacity:997 | core:1");
        assert_eq!(gb10.len(), 2, "{gb10:?}");
        assert!(gb10[0].ends_with("capacity 718 to 731"), "{gb10:?}");
        let each_another: Vec<String> =
            (0..20).map(|core| format!("core:1 capacity:{}", 1024 - 5 * core)).collect();
        assert_eq!(names(&each_another.join(" | ")).len(), 1);
    }

    #[test]
    fn programs_are_spread_over_equal_domains() {
        assert_eq!(homes("llc:2 core:4", &[4.0, 4.0]), [Some(0), Some(1)]);
        let mut spread = homes("package:2 core:4 smt:2", &[1.0; 6]);
        spread.sort_unstable();
        assert_eq!(spread, [[Some(0); 3], [Some(1); 3]].concat());
    }

    #[test]
    fn a_program_that_fits_no_domain_has_none() {
        assert_eq!(homes("llc:2 core:4", &[8.0, 1.0]), [None, Some(0)]);
    }

    #[test]
    fn fast_cores_are_taken_first_then_slow_ones_then_siblings() {
        // The slow ones are the first domain.
        let line = "core:2 smt:2 | core:2 kind:efficiency capacity:600";
        let counts = |programs: usize| {
            let homes = homes(line, &vec![1.0; programs]);
            [0, 1].map(|domain| homes.iter().filter(|home| **home == Some(domain)).count())
        };
        assert_eq!(counts(2), [0, 2]);
        assert_eq!(counts(4), [2, 2]);
        assert_eq!(counts(6), [2, 4]);
    }

    #[test]
    fn a_program_stays_where_it_runs_if_that_is_as_good() {
        let domains = on("llc:2 core:4");
        let mut loads = loads(&domains, &[2.0]);
        loads.get_mut(&ProgramId(0)).unwrap().there = [(domains[1].id, 2.0)].into();
        let given = Homes::default().decide(&domains, &loads, QUANTUM);
        assert_eq!(given[&ProgramId(0)], domains[1].id);
    }

    /// Three programs of which two end leave the domains uneven; one moves, once that has lasted.
    #[test]
    fn a_lasting_imbalance_moves_one_program_at_a_time() {
        let domains = on("llc:2 core:4");
        let mut homes = Homes::default();
        let before = homes.decide(&domains, &loads(&domains, &[1.0; 8]), QUANTUM);
        let mut left = loads(&domains, &[1.0; 8]);
        left.retain(|program, _| before[program] == domains[0].id);
        let mut changes = Vec::new();
        let mut last = before;
        for step in 0..40 {
            let now = homes.decide(&domains, &left, QUANTUM);
            let moved = now.iter().filter(|(program, home)| last[program] != **home).count();
            changes.extend(std::iter::repeat_n(step, moved));
            last = now;
        }
        assert_eq!(changes, [9, 19], "after a second each, until two are on either side");
        assert_eq!(homes.moves, 2);
    }

    /// Negative control: an imbalance that comes and goes moves nothing.
    #[test]
    fn an_imbalance_that_does_not_last_moves_no_program() {
        let domains = on("llc:2 core:4");
        let mut homes = Homes::default();
        for step in 0..100 {
            let swing = if step % 10 < 5 { 1.0 } else { 3.0 };
            homes.decide(&domains, &loads(&domains, &[2.0, 2.0, swing, 2.0]), QUANTUM);
        }
        assert_eq!(homes.moves, 0);
    }

    const X3D: &str = "llc:1 core:4 cache:96M | llc:1 core:4 cache:32M";

    /// Eight programs of which those with these numbers lose in the smaller cache what caches say.
    fn losing(domains: &[Domain], losers: &[u32], loses: [f64; 2]) -> BTreeMap<ProgramId, Load> {
        let mut loads = loads(domains, &[1.0; 8]);
        for number in losers {
            let lost = domains.iter().zip(loses).map(|(domain, lost)| (domain.id, lost));
            loads.get_mut(&ProgramId(*number)).unwrap().lost = lost.collect();
        }
        loads
    }

    #[test]
    fn programs_that_lose_in_the_smaller_cache_take_the_places_of_others() {
        let domains = on(X3D);
        let mut homes = Homes::default();
        let before = homes.decide(&domains, &loads(&domains, &[1.0; 8]), QUANTUM);
        let on_small = |(program, home): (&ProgramId, &DomainId)| {
            (*home == domains[1].id).then_some(program.0)
        };
        let losers: Vec<u32> = before.iter().filter_map(on_small).take(2).collect();
        let loads = losing(&domains, &losers, [0.1, 0.3]);
        let mut after = before;
        for _ in 0..300 {
            after = homes.decide(&domains, &loads, QUANTUM);
        }
        assert!(losers.iter().all(|number| after[&ProgramId(*number)] == domains[0].id));
        let large = after.values().filter(|home| **home == domains[0].id).count();
        assert_eq!((large, homes.moves), (4, 4), "each changes places with another, once");
    }

    /// Negative controls: programs lose the same in both caches, or all lose alike.
    #[test]
    fn equal_losses_move_no_program() {
        let domains = on(X3D);
        let all: Vec<u32> = (0..8).collect();
        for (losers, loses) in
            [(&all[..2], [0.3, 0.3]), (&all[..], [0.1, 0.3]), (&all[4..6], [0.25, 0.3])]
        {
            let mut homes = Homes::default();
            homes.decide(&domains, &loads(&domains, &[1.0; 8]), QUANTUM);
            let loads = losing(&domains, losers, loses);
            for _ in 0..300 {
                homes.decide(&domains, &loads, QUANTUM);
            }
            assert_eq!(homes.moves, 0, "{losers:?} {loses:?}");
        }
    }
}
