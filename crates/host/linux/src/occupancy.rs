//! What hardware threads spent their time on, and which threads ran there.
//!
//! # Problem
//! A program that is measured alone is disturbed by whatever else runs on its cores: threads that no manager
//! manages, the kernel's own, and a hypervisor that runs another guest meanwhile.
//!
//! # Approach
//! `/proc/stat` (proc_stat(5)) says for each hardware thread how long it was idle, and how long a hypervisor
//! withheld it; in the rest of the time something ran. [`last_on`] lists the threads that ran there last. It
//! opens a file for each thread of the machine, and is meant for finding out what went wrong.
//!
//! # Terms and units
//! Times are cumulative since boot, in steps of a clock tick (usually 10 ms). *Stolen*: a thread was ready, but
//! the hypervisor ran something else.
//!
//! # Properties
//! - No input makes the parser panic, and lines that it does not know are passed over
//!   (`any_text_is_read_or_refused`).
//! - Time adds up to that of the clock (`time_is_idle_or_used`).

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use symbiont_topology::{CpuSet, PuId};

pub use crate::observe::Bystander;
use crate::observe::{read_bystanders, unsigned};

/// What each hardware thread has done since boot, up to a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// The moment, since boot.
    pub at: Duration,
    /// The times of each hardware thread that is online.
    pub cpus: BTreeMap<PuId, CpuTime>,
}

/// How a hardware thread has spent its time since boot; for the rest, something ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in which nothing ran.
    pub idle: Duration,
    /// Time in which the hypervisor ran something else.
    pub stolen: Duration,
}

impl CpuTimes {
    /// Reads the times up to now.
    ///
    /// # Errors
    /// When /proc/stat cannot be read.
    pub fn read() -> io::Result<Self> {
        let text = std::fs::read("/proc/stat")?;
        Ok(Self { at: since_boot(), cpus: parse(&text, tick()) })
    }

    /// How long these hardware threads were used since an earlier moment, and how long they were stolen: each
    /// summed over those that were online at both moments.
    #[must_use]
    pub fn used_since(&self, before: &Self, cpus: &CpuSet) -> (Duration, Duration) {
        let passed = self.at.saturating_sub(before.at);
        let mut sums = (Duration::ZERO, Duration::ZERO);
        for cpu in cpus.iter() {
            let (Some(before), Some(now)) = (before.cpus.get(&cpu), self.cpus.get(&cpu)) else {
                continue;
            };
            let idle = now.idle.saturating_sub(before.idle);
            let stolen = now.stolen.saturating_sub(before.stolen);
            sums.0 += passed.saturating_sub(idle + stolen);
            sums.1 += stolen;
        }
        sums
    }
}

/// The threads of this machine that ran last on one of these hardware threads.
///
/// # Errors
/// When /proc cannot be listed.
pub fn last_on(cpus: &CpuSet) -> io::Result<Vec<Bystander>> {
    read_bystanders(Path::new("/proc"), cpus, tick())
}

fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Duration::from_secs(part(now.tv_sec)) + Duration::from_nanos(part(now.tv_nsec))
}

/// One tick of the clock that times are given in.
fn tick() -> Duration {
    Duration::from_secs(1) / u32::try_from(clock_ticks_per_second()).unwrap_or(100).max(1)
}

fn parse(text: &[u8], tick: Duration) -> BTreeMap<PuId, CpuTime> {
    text.split(|&byte| byte == b'\n').filter_map(|line| parse_line(line, tick)).collect()
}

/// `cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …`.
fn parse_line(line: &[u8], tick: Duration) -> Option<(PuId, CpuTime)> {
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let cpu = unsigned(fields.next()?.strip_prefix(b"cpu")?)?;
    let ticks: Vec<u64> = fields.take(8).map(unsigned).collect::<Option<_>>()?;
    let time = |ticks: u64| tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
    let at = |field: usize| ticks.get(field).copied();
    let idle = at(3)?.saturating_add(at(4).unwrap_or_default());
    let stolen = at(7).unwrap_or_default();
    Some((PuId(u32::try_from(cpu).ok()?), CpuTime { idle: time(idle), stolen: time(stolen) }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    #[test]
    fn idle_and_stolen_time_of_each_hardware_thread_are_read() {
        let text = b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 5 1 2 100 20 3 4 7 0 0\n\
                     cpu12 1 1 1 50 0 0 0 0 0 0\nintr 5 0 1\nctxt 77\n";
        let ms = Duration::from_millis;
        let expected = [
            (PuId(0), CpuTime { idle: ms(1200), stolen: ms(70) }),
            (PuId(12), CpuTime { idle: ms(500), stolen: ms(0) }),
        ];
        assert_eq!(parse(text, TICK), expected.into());
        // Of old kernels, without time that was stolen; and one that says too little.
        assert_eq!(parse(b"cpu3 1 2 3 4", TICK)[&PuId(3)].idle, ms(40));
        assert_eq!(parse(b"cpu3 1 2 3\ncpux 1 2 3 4\ncpu4 1 2 -3 4", TICK), [].into());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(cpu[0-9]{0,12}|[a-z]{1,4})( [0-9-]{0,22}){0,9}\n?") {
            let _ = parse(text.as_bytes(), TICK);
        }
    }

    #[test]
    fn time_is_idle_or_used() {
        let before = CpuTimes::read().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let after = CpuTimes::read().unwrap();
        assert!(!after.cpus.is_empty());
        let passed = after.at - before.at;
        for (cpu, time) in &after.cpus {
            let Some(earlier) = before.cpus.get(cpu) else { continue };
            let idle = time.idle.saturating_sub(earlier.idle);
            assert!(idle <= passed + 2 * TICK, "CPU {}: {idle:?} of {passed:?}", cpu.0);
        }
    }

    #[test]
    fn a_busy_thread_is_found_where_it_runs() {
        use std::sync::atomic::{AtomicBool, Ordering};
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                let cpus = crate::actuate::affinity::get(None).unwrap();
                let last: CpuSet = cpus.iter().last().into_iter().collect();
                crate::actuate::affinity::set(None, Some(&last)).unwrap();
                let mut found = None;
                while found.is_none() && !ends.load(Ordering::Relaxed) {
                    let all = last_on(&last).unwrap();
                    found =
                        all.into_iter().find(|one| one.thread == own && !one.run_time.is_zero());
                }
                found.unwrap()
            });
            let found = thread.join().unwrap();
            assert_eq!(found.process, std::process::id());
            assert!(!found.name.is_empty());
        });
        ends.store(true, Ordering::Relaxed);
        assert!(last_on(&CpuSet::new()).unwrap().is_empty());
    }
}
