//! Type and capacity of cores from what a machine reports of its CPUs.
//!
//! The readers of `/sys` and of hwloc exports share these rules.
//!
//! *Core type.* Where the kernel lists types (Intel hybrids), they are these. Elsewhere a machine has two types if its
//! cores, ordered by capacity, have a gap: a neighbour with at least [`GAP`] times the capacity. The widest gap
//! separates the types. Cores of one design (Arm's `midr_el1`) are of one type, as fast as the fastest of them, since
//! the same core is built with several ceilings. Small steps are no gap: firmware gives cores of one type
//! slightly different capacities (NVIDIA's GB10: 718 to 731 and 997 to 1024), and favoured cores clock a little higher.
//!
//! *Speed groups.* What treats cores of different speed differently asks for [`SpeedGroups`], which the same gaps
//! separate, each of them: a machine may have more than two.
//!
//! *Capacity of hybrids.* Where the kernel gives all cores one capacity or
//! none (Intel hybrids with SMT on), a core of the efficiency type is given
//! the ratio of the types' highest frequency ceilings. This is an estimate,
//! and a high one: it leaves out what such a core does less in each cycle.
//! Low-power cores are given their own ratio, and never more than other efficiency cores.
//!
//! # Properties
//! - Listed types are kept (`capacities_are_in_range_and_listed_types_are_kept`).
//! - Types are separated by speed, and one design is one type
//!   (`the_slower_designs_are_the_efficiency_type`).
//! - Cores of one type are of one speed (`small_steps_make_no_group`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::{Core, CoreKind, Topology};

/// Capacity of the fastest core.
pub(crate) const FASTEST: u32 = 1024;

/// A gap between types, as numerator and denominator: favoured cores differ by
/// less than a tenth, types by a third and more.
const GAP: (u32, u32) = (5, 4);

/// What a machine reports of the speed of one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuSpeed {
    /// Capacity on any scale, where reported.
    pub(crate) capacity: Option<u64>,
    /// Frequency ceiling, where reported.
    pub(crate) max_khz: Option<u64>,
    /// Implementer and part, where reported.
    pub(crate) design: Option<u64>,
    /// Core type, where the machine lists types.
    pub(crate) kind: Option<ListedKind>,
}

/// Core types as Linux lists them, fastest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListedKind {
    /// `cpu_core`.
    Performance,
    /// `cpu_atom`.
    Efficiency,
    /// `cpu_lowpower`.
    LowPower,
}

impl From<ListedKind> for CoreKind {
    fn from(listed: ListedKind) -> Self {
        match listed {
            ListedKind::Performance => Self::Performance,
            ListedKind::Efficiency | ListedKind::LowPower => Self::Efficiency,
        }
    }
}

/// Core type and capacity of each CPU, in the same order.
pub(crate) fn speeds(cpus: &[CpuSpeed]) -> Vec<(CoreKind, u32)> {
    let fastest = cpus.iter().filter_map(|cpu| cpu.capacity).max();
    let scaled: Vec<u32> = cpus
        .iter()
        .map(|cpu| match (cpu.capacity, fastest) {
            (Some(capacity), Some(fastest)) => ratio(capacity, fastest),
            _ => FASTEST,
        })
        .collect();
    let alike = scaled.iter().all(|&capacity| capacity == FASTEST);
    let designs: Vec<Option<u64>> = cpus.iter().map(|cpu| cpu.design).collect();
    let by_speed = kinds(&scaled, &designs);
    let both = |((cpu, capacity), kind): ((&CpuSpeed, u32), CoreKind)| match cpu.kind {
        None => (kind, capacity),
        Some(listed) if alike => (listed.into(), estimate(cpus, listed).unwrap_or(capacity)),
        Some(listed) => (listed.into(), capacity),
    };
    cpus.iter().zip(scaled).zip(by_speed).map(both).collect()
}

/// The types of cores by their capacities and, where all are known, their designs; in the same order.
pub(crate) fn kinds(capacities: &[u32], designs: &[Option<u64>]) -> Vec<CoreKind> {
    let mut speed_of: BTreeMap<u64, u32> = BTreeMap::new();
    let all_known = designs.len() == capacities.len() && designs.iter().all(Option::is_some);
    for (&capacity, design) in capacities.iter().zip(designs.iter().flatten()) {
        let speed = speed_of.entry(*design).or_insert(capacity);
        *speed = capacity.max(*speed);
    }
    let of_design = |at: usize| designs.get(at).copied().flatten().and_then(|d| speed_of.get(&d));
    let speed = |(at, &capacity): (usize, &u32)| match all_known {
        true => of_design(at).copied().unwrap_or(capacity),
        false => capacity,
    };
    let speeds: Vec<u32> = capacities.iter().enumerate().map(speed).collect();
    let slow = below_the_gap(speeds.clone());
    let kind = |speed: u32| match slow.is_some_and(|slow| speed <= slow) {
        true => CoreKind::Efficiency,
        false => CoreKind::Performance,
    };
    speeds.into_iter().map(kind).collect()
}

/// Groups of cores of about the same speed: between their capacities there are gaps as between core types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeedGroups(Vec<RangeInclusive<u32>>);

impl SpeedGroups {
    fn of(capacities: BTreeSet<u32>) -> Self {
        let mut groups: Vec<RangeInclusive<u32>> = Vec::new();
        for capacity in capacities {
            match groups.last_mut().filter(|last| !is_wide((*last.end(), capacity), GAP)) {
                Some(last) => *last = *last.start()..=capacity,
                None => groups.push(capacity..=capacity),
            }
        }
        Self(groups)
    }

    /// Are all cores of about the same speed?
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.0.len() < 2
    }

    /// The capacities of the cores that are about as fast as this one.
    #[must_use]
    pub fn of_core(&self, core: &Core) -> RangeInclusive<u32> {
        let group = self.0.iter().find(|group| group.contains(&core.capacity));
        group.cloned().unwrap_or(core.capacity..=core.capacity)
    }

    /// The groups, slowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &RangeInclusive<u32>> {
        self.0.iter()
    }
}

impl Topology {
    /// Which cores are of about the same speed.
    #[must_use]
    pub fn speed_groups(&self) -> SpeedGroups {
        SpeedGroups::of(self.cores().iter().map(|core| core.capacity).collect())
    }
}

/// Is the second at least so many times the first?
fn is_wide((slow, fast): (u32, u32), than: (u32, u32)) -> bool {
    u64::from(fast) * u64::from(than.1) >= u64::from(slow) * u64::from(than.0)
}

/// The fastest speed below the widest gap, the lowest of several as wide; none without gap.
fn below_the_gap(mut speeds: Vec<u32>) -> Option<u32> {
    speeds.sort_unstable();
    let mut widest: Option<(u32, u32)> = None;
    for gap in speeds.iter().copied().zip(speeds.iter().copied().skip(1)) {
        let wider = match widest {
            None => is_wide(gap, GAP),
            // Wider, not as wide.
            Some((slow, fast)) => !is_wide((slow, fast), (gap.1, gap.0)),
        };
        if wider {
            widest = Some(gap);
        }
    }
    widest.map(|(slow, _)| slow)
}

/// Capacity of a listed type by the ratio of frequency ceilings; none for the fastest.
fn estimate(cpus: &[CpuSpeed], listed: ListedKind) -> Option<u32> {
    let ceiling =
        |kind| cpus.iter().filter(|cpu| cpu.kind == Some(kind)).filter_map(|cpu| cpu.max_khz).max();
    let fast = ceiling(ListedKind::Performance)?;
    let of = |kind| ceiling(kind).map(|khz| ratio(khz.min(fast), fast));
    let efficiency = of(ListedKind::Efficiency);
    match listed {
        ListedKind::Performance => None,
        ListedKind::Efficiency => efficiency,
        ListedKind::LowPower => of(ListedKind::LowPower).into_iter().chain(efficiency).min(),
    }
}

/// `part / whole` in 1024ths, rounded, 1 to 1024.
fn ratio(part: u64, whole: u64) -> u32 {
    let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
    let scaled = (part * u128::from(FASTEST) + whole / 2) / whole;
    u32::try_from(scaled).unwrap_or(FASTEST).clamp(1, FASTEST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use CoreKind::{Efficiency as E, Performance as P};

    fn cpu_speed() -> impl Strategy<Value = CpuSpeed> {
        let kind = prop_oneof![
            Just(ListedKind::Performance),
            Just(ListedKind::Efficiency),
            Just(ListedKind::LowPower)
        ];
        let number = || prop::option::of(prop_oneof![1u64..5000, 1..=u64::MAX]);
        (number(), number(), prop::option::of(0u64..3), prop::option::of(kind)).prop_map(
            |(capacity, max_khz, design, kind)| CpuSpeed { capacity, max_khz, design, kind },
        )
    }

    proptest! {
        #[test]
        fn capacities_are_in_range_and_listed_types_are_kept(
            cpus in prop::collection::vec(cpu_speed(), 1..8),
        ) {
            let speeds = speeds(&cpus);
            prop_assert_eq!(speeds.len(), cpus.len());
            for (reported, (kind, capacity)) in cpus.iter().zip(&speeds) {
                prop_assert!((1..=FASTEST).contains(capacity));
                prop_assert!(reported.kind.is_none_or(|listed| CoreKind::from(listed) == *kind));
            }
        }

        #[test]
        fn the_slower_designs_are_the_efficiency_type(
            cores in prop::collection::vec((1u32..=1024, 0u64..4), 1..12),
        ) {
            let (capacities, designs): (Vec<_>, Vec<_>) = cores.into_iter().unzip();
            let some: Vec<_> = designs.iter().copied().map(Some).collect();
            let kinds = kinds(&capacities, &some);
            let of = |wanted| designs.iter().zip(&kinds).filter(move |(_, k)| **k == wanted);
            for (design, _) in of(E) {
                prop_assert!(of(P).all(|(fast, _)| fast != design));
            }
            let most = |wanted| {
                let all = capacities.iter().zip(&kinds).filter(|(_, k)| **k == wanted);
                all.map(|(capacity, _)| *capacity).max()
            };
            prop_assert!(most(P).is_some());
            prop_assert!(most(E).is_none_or(|slow| slow * 5 <= most(P).unwrap_or(0) * 4));
        }
    }

    #[test]
    fn small_steps_make_no_group() {
        let of = |capacities: &[u32]| SpeedGroups::of(capacities.iter().copied().collect()).0;
        assert_eq!(of(&[718, 1024, 731, 720, 997, 1017]), [718..=731, 997..=1024]);
        let each_another: Vec<u32> = (0..20).map(|core| 1024 - 5 * core).collect();
        assert_eq!(of(&each_another), [929..=1024]);
        assert_eq!(of(&[256, 512, 1024]), [256..=256, 512..=512, 1024..=1024]);
    }

    #[test]
    fn gaps_separate_types_and_steps_do_not() {
        let of = |capacities: &[u32]| kinds(capacities, &vec![None; capacities.len()]);
        assert_eq!(of(&[718, 731, 997, 1024]), [E, E, P, P]);
        assert_eq!(of(&[446, 446, 1024]), [E, E, P]);
        assert_eq!(of(&[250, 871, 1024]), [E, P, P]);
        assert_eq!(of(&[1024, 990, 950, 1009]), [P, P, P, P]);
        assert_eq!(of(&[1024, 900, 800, 700, 620, 550]), [P; 6]);
    }

    #[test]
    fn one_design_is_one_type_whatever_its_ceilings() {
        let (big, small) = (Some(0x4100_d850), Some(0x4100_d870));
        assert_eq!(kinds(&[512, 1024], &[big, big]), [P, P]);
        assert_eq!(kinds(&[500, 700, 1024], &[small, small, big]), [E, E, P]);
        // Where one is not known, capacities decide.
        assert_eq!(kinds(&[512, 1024], &[big, None]), [E, P]);
        assert_eq!(kinds(&[1024, 1024], &[big, small]), [P, P]);
    }

    #[test]
    fn low_power_cores_are_the_slowest() {
        let cpu = |kind, max_khz| CpuSpeed { kind: Some(kind), max_khz, ..CpuSpeed::default() };
        let fast = cpu(ListedKind::Performance, Some(5_000_000));
        let small = cpu(ListedKind::Efficiency, Some(4_000_000));
        let low = |khz| cpu(ListedKind::LowPower, khz);
        let of = |cpus: &[CpuSpeed]| speeds(cpus);
        assert_eq!(of(&[fast, small, low(Some(2_500_000))]), [(P, 1024), (E, 819), (E, 512)]);
        assert_eq!(of(&[fast, small, low(None)]), [(P, 1024), (E, 819), (E, 819)]);
        assert_eq!(of(&[fast, low(Some(9_000_000)), small]), [(P, 1024), (E, 819), (E, 819)]);
    }
}
