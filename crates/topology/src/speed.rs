//! Type and capacity of cores from what a machine reports of its CPUs.
//!
//! The readers of `/sys` and of hwloc exports share these rules.
//!
//! *Core type.* Where the kernel lists no types but capacities differ (Arm),
//! a core with less than half of the fastest core's capacity is of the
//! efficiency type.
//!
//! *Capacity of hybrids.* Where the kernel gives all cores one capacity or
//! none (Intel hybrids with SMT on), a core of the efficiency type is given
//! the ratio of the types' highest frequency ceilings. This is an estimate,
//! and a high one: it leaves out what such a core does less in each cycle.

use crate::CoreKind;

/// Capacity of the fastest core.
pub(crate) const FASTEST: u32 = 1024;

/// What a machine reports of the speed of one CPU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuSpeed {
    /// Capacity on any scale, where reported.
    pub(crate) capacity: Option<u64>,
    /// Frequency ceiling, where reported.
    pub(crate) max_khz: Option<u64>,
    /// Core type, where the machine lists types.
    pub(crate) kind: Option<CoreKind>,
}

/// Core type and capacity of each CPU, in the same order.
pub(crate) fn speeds(cpus: &[CpuSpeed]) -> Vec<(CoreKind, u32)> {
    let capacity = |cpu: &CpuSpeed| cpu.capacity.unwrap_or(u64::from(FASTEST));
    let fastest = cpus.iter().map(capacity).max().unwrap_or(1);
    let scaled: Vec<u32> = cpus.iter().map(|cpu| ratio(capacity(cpu), fastest)).collect();
    let estimate = match scaled.iter().all(|&capacity| capacity == FASTEST) {
        true => estimate(cpus),
        false => None,
    };
    let both = |(cpu, capacity): (&CpuSpeed, u32)| match cpu.kind.unwrap_or(kind_of(capacity)) {
        CoreKind::Performance => (CoreKind::Performance, capacity),
        CoreKind::Efficiency => (CoreKind::Efficiency, estimate.unwrap_or(capacity)),
    };
    cpus.iter().zip(scaled).map(both).collect()
}

/// The type of a core where only capacities are reported.
pub(crate) fn kind_of(capacity: u32) -> CoreKind {
    if capacity < FASTEST / 2 { CoreKind::Efficiency } else { CoreKind::Performance }
}

/// Capacity of efficiency cores by the ratio of frequency ceilings.
fn estimate(cpus: &[CpuSpeed]) -> Option<u32> {
    let ceiling =
        |kind| cpus.iter().filter(|cpu| cpu.kind == Some(kind)).filter_map(|cpu| cpu.max_khz).max();
    let fast = ceiling(CoreKind::Performance)?;
    let small = ceiling(CoreKind::Efficiency)?;
    Some(ratio(small.min(fast), fast))
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

    fn cpu_speed() -> impl Strategy<Value = CpuSpeed> {
        let kind =
            prop::option::of(prop_oneof![Just(CoreKind::Performance), Just(CoreKind::Efficiency)]);
        let number = || prop::option::of(prop_oneof![1u64..5000, 1..=u64::MAX]);
        (number(), number(), kind).prop_map(|(capacity, max_khz, kind)| CpuSpeed {
            capacity,
            max_khz,
            kind,
        })
    }

    proptest! {
        #[test]
        fn capacities_are_in_range_and_listed_types_are_kept(
            cpus in prop::collection::vec(cpu_speed(), 1..8),
        ) {
            let speeds = speeds(&cpus);
            prop_assert_eq!(speeds.len(), cpus.len());
            for (reported, (kind, capacity)) in cpus.iter().zip(speeds) {
                prop_assert!((1..=FASTEST).contains(&capacity));
                prop_assert!(reported.kind.is_none_or(|listed| listed == kind));
            }
        }
    }
}
