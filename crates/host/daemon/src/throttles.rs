//! Programs whose quota of CPU time makes them wait.
//!
//! # Problem
//! A container with a limit on its CPU time waits once that is used up, whatever runs next to it. The kernel counts
//! that time as it counts waiting for a CPU that others use, and so neighbours would be blamed for it.
//!
//! # Approach
//! Where a program waited for at least [`SHARE`] of a window of [`WINDOW`], the quotas of its process that waited
//! longest are looked up, and the periods in which they stopped it since the last such window counted. Programs that
//! hardly wait cost nothing. A program may have more than one cgroup, and the process may be in another one next time:
//! then counting begins anew. Of several quotas that one is named which stopped it most often.
//!
//! # Terms and units
//! See [`symbiont_linux::actuate::Quota`].
//!
//! # Properties
//! - A program that its quota stops is known with it (`a_program_that_its_quota_stops_is_known`), and no longer once it
//!   stops waiting (`a_program_that_waits_no_more_is_not_throttled`).
//! - One that waits for others has no quota to blame (`a_quota_that_stopped_nothing_is_not_named`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_counters::Characterizations;
use symbiont_linux::actuate::{CpuQuotas, Periods, Quota};
use symbiont_machine::{ProgramId, Sample, Timestamp};
use symbiont_topology::counted;
use symbiont_wire::Throttled;

/// Length of a window, at least.
const WINDOW: Duration = Duration::from_secs(1);
/// Part of a window for which a program's threads waited, from which on its quotas are looked at.
const SHARE: f64 = 0.05;

/// Where quotas are read.
pub(crate) trait Quotas {
    /// Those that hold for a process, with what they counted.
    fn of(&mut self, process: u32) -> Vec<(Quota, Periods)>;
}

impl Quotas for CpuQuotas {
    fn of(&mut self, process: u32) -> Vec<(Quota, Periods)> {
        let counted = |quota: Quota| quota.count().map(|periods| (quota, periods));
        CpuQuotas::of(self, process).into_iter().filter_map(counted).collect()
    }
}

/// All programs, as far as they wait.
#[derive(Debug, Default)]
pub(crate) struct Throttles {
    begin: Option<Timestamp>,
    /// How long the threads of each process waited in this window, by program.
    waited: BTreeMap<ProgramId, BTreeMap<u32, Duration>>,
    /// The counts at the end of the last window, and when that was.
    counted: BTreeMap<ProgramId, (Timestamp, Vec<(Quota, Periods)>)>,
    found: BTreeMap<ProgramId, Throttled>,
}

impl Throttles {
    /// Adds a quantum.
    pub fn check(&mut self, sample: &Sample, did: &Characterizations, quotas: &mut impl Quotas) {
        let begin = *self.begin.get_or_insert(sample.at);
        for thread in &sample.threads {
            let Some(did) = did.get(&thread.id) else { continue };
            let waited = did.over.mul_f64((did.ready - did.running).clamp(0.0, 1.0));
            let processes = self.waited.entry(thread.program).or_default();
            *processes.entry(thread.id.process).or_default() += waited;
        }
        let over = sample.at.since(begin);
        if over < WINDOW {
            return;
        }
        self.begin = Some(sample.at);
        let waited = std::mem::take(&mut self.waited);
        let mut waits = BTreeSet::new();
        for (id, processes) in waited {
            let all: Duration = processes.values().sum();
            let Some((process, _)) = processes.into_iter().max_by_key(|(_, waited)| *waited) else {
                continue;
            };
            if all >= over.mul_f64(SHARE) {
                waits.insert(id);
                self.add(id, sample.at, quotas.of(process));
            }
        }
        self.counted.retain(|id, _| waits.contains(id));
        self.found.retain(|id, _| waits.contains(id));
    }

    /// The quota that stopped a program in the last window.
    pub fn of(&self, id: ProgramId) -> Option<&Throttled> {
        self.found.get(&id)
    }

    /// How many programs a quota stopped in the last window.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    fn add(&mut self, id: ProgramId, now: Timestamp, counts: Vec<(Quota, Periods)>) {
        let (since, before) = self.counted.remove(&id).unwrap_or_default();
        let grown = counts.iter().filter_map(|(quota, now)| {
            let (_, before) = before.iter().find(|(before, _)| before.cgroup == quota.cgroup)?;
            let throttled = now.throttled.saturating_sub(before.throttled);
            Some((quota, now.all.saturating_sub(before.all), throttled))
        });
        let most = grown.max_by_key(|(_, _, throttled)| *throttled).filter(|(.., n)| *n > 0);
        match most {
            Some((quota, periods, throttled)) => {
                let throttled = Throttled {
                    cgroup: quota.cgroup.clone(),
                    cpus: quota.cpus,
                    periods,
                    throttled,
                    over_s: now.since(since).as_secs_f64(),
                };
                self.found.insert(id, throttled);
            }
            None => {
                self.found.remove(&id);
            }
        }
        self.counted.insert(id, (now, counts));
    }
}

/// Was the quota used up in at least half of the periods? Then it is what the program waits for.
pub fn is_mostly_throttled(throttled: &Throttled) -> bool {
    throttled.throttled.saturating_mul(2) >= throttled.periods
}

/// In words: "its quota of 0.5 CPUs (cgroup /pod) was used up in 9 of 10 periods of the last 1.0 s".
pub fn throttled_words(throttled: &Throttled) -> String {
    let Throttled { cgroup, cpus, periods, throttled, over_s } = throttled;
    let unit = if *cpus == 1.0 { "CPU" } else { "CPUs" };
    format!(
        "its quota of {} {unit} (cgroup {cgroup}) was used up in {throttled} of {} of the last {over_s:.1} s",
        (cpus * 1000.0).round() / 1000.0,
        counted(*periods, "period"),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use symbiont_counters::Characterization;
    use symbiont_machine::Program;
    use symbiont_machine::test_support::thread;

    use super::*;

    /// Quotas that a test states: one that stops nothing, and one that stops its cgroup so often in each window.
    struct Stated(u64, u64);

    impl Quotas for Stated {
        fn of(&mut self, process: u32) -> Vec<(Quota, Periods)> {
            assert_eq!(process, 1001, "the program's");
            self.1 += self.0;
            let quota = |cgroup: &str, cpus| Quota::new(cgroup, cpus, PathBuf::new());
            let stops = Periods { all: self.1 + 40, throttled: self.1 };
            vec![(quota("/pod/box", 0.5), stops), (quota("/pod", 2.0), Periods::default())]
        }
    }

    /// A program of one thread for so many windows of a second each, in which it waits for these shares.
    fn windows(waits: &[f64], throttled: u64) -> Throttles {
        let (mut throttles, mut quotas) = (Throttles::default(), Stated(throttled, 0));
        let thread = thread(1, 7, &"0-1".parse().unwrap());
        for quantum in 0..=10 * waits.len() {
            let at = Timestamp(u64::try_from(quantum).unwrap() * 100_000_000);
            let sample = Sample {
                at,
                threads: vec![thread.clone()],
                programs: vec![Program::new(thread.program, "box")],
                ..Sample::default()
            };
            let wait = waits[(quantum.saturating_sub(1) / 10).min(waits.len() - 1)];
            let over = Duration::from_millis(100);
            let did = Characterization {
                over,
                ready: 1.0,
                running: 1.0 - wait,
                switches: 1,
                migrated: None,
            };
            throttles.check(&sample, &[(thread.id, did)].into(), &mut quotas);
        }
        throttles
    }

    fn program() -> ProgramId {
        thread(1, 7, &"0-1".parse().unwrap()).program
    }

    #[test]
    fn a_program_that_its_quota_stops_is_known() {
        let throttles = windows(&[0.5; 3], 9);
        let found = throttles.of(program()).unwrap();
        assert_eq!((&*found.cgroup, found.cpus), ("/pod/box", 0.5));
        assert_eq!((found.periods, found.throttled), (9, 9));
        assert!((found.over_s - 1.0).abs() < 1e-9, "{found:?}");
        assert!(is_mostly_throttled(found));
        assert_eq!(
            throttled_words(found),
            "its quota of 0.5 CPUs (cgroup /pod/box) was used up in 9 of 9 periods of the last 1.0 s"
        );
        assert_eq!(windows(&[0.5], 9).of(program()), None, "since when is not known");
    }

    #[test]
    fn a_program_that_waits_no_more_is_not_throttled() {
        assert!(windows(&[0.5, 0.5], 9).of(program()).is_some());
        let throttles = windows(&[0.5, 0.5, 0.01], 9);
        assert_eq!(throttles.of(program()), None);
        assert!(throttles.counted.is_empty());
    }

    #[test]
    fn a_quota_that_stopped_nothing_is_not_named() {
        assert_eq!(windows(&[0.9; 4], 0).of(program()), None);
    }
}
