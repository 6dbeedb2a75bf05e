//! What ran on hardware threads between two looks, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use symbiont_linux::occupancy::{self, Bystander, CpuTimes};
use symbiont_topology::CpuSet;
use symbiont_wire::Intruder;

/// The accounts of a machine's hardware threads.
pub(crate) trait Occupancy {
    fn times(&mut self) -> io::Result<CpuTimes>;
    fn last_on(&mut self, cpus: &CpuSet) -> io::Result<Vec<Bystander>>;
}

/// This host.
#[derive(Debug)]
pub(crate) struct Host;

impl Occupancy for Host {
    fn times(&mut self) -> io::Result<CpuTimes> {
        CpuTimes::read()
    }

    fn last_on(&mut self, cpus: &CpuSet) -> io::Result<Vec<Bystander>> {
        occupancy::last_on(cpus)
    }
}

/// The run time of threads when they were read, by number and birth.
#[derive(Debug, Default)]
pub(crate) struct RunTimes(BTreeMap<(u32, Duration), Duration>);

impl RunTimes {
    /// What the threads that ran last on these hardware threads ran since the look before, by name; of one that is
    /// seen for the first time only if it was born since that moment.
    pub fn since(
        &mut self,
        moment: Duration,
        cpus: &CpuSet,
        own: &BTreeSet<u32>,
        machine: &mut impl Occupancy,
    ) -> BTreeMap<String, Duration> {
        let Ok(found) = machine.last_on(cpus) else { return BTreeMap::new() };
        let mut by = BTreeMap::<String, Duration>::new();
        let mut known = BTreeMap::new();
        for one in found.into_iter().filter(|one| !own.contains(&one.thread)) {
            let key = (one.thread, one.born);
            let before = match self.0.get(&key) {
                None if one.born >= moment => Some(Duration::ZERO),
                before => before.copied(),
            };
            known.insert(key, one.run_time);
            let run_time =
                before.map(|before| one.run_time.saturating_sub(before)).unwrap_or_default();
            if !run_time.is_zero() {
                *by.entry(one.name).or_default() += run_time;
            }
        }
        self.0 = known;
        by
    }
}

/// For a reply, most run time first.
pub(crate) fn intruders(by: &BTreeMap<String, Duration>) -> Vec<Intruder> {
    let mut sorted: Vec<_> = by.iter().collect();
    sorted.sort_by_key(|(_, run_time)| std::cmp::Reverse(**run_time));
    let intruder = |(name, run_time): (&String, &Duration)| Intruder {
        name: name.clone(),
        s: run_time.as_secs_f64(),
    };
    sorted.into_iter().map(intruder).collect()
}
