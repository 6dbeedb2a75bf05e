//! What disturbed a measurement: CPU time of other programs, and what a hypervisor withheld.

use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// In CPUs: 0.5 is half of one CPU all the time. Zero where the kernel does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Used by other programs and by the kernel for them.
    pub others_cpus: f64,
    /// Withheld by a hypervisor.
    pub stolen_cpus: f64,
}

/// CPU time, in ticks of `USER_HZ`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    /// Of all programs.
    busy: u64,
    /// Withheld.
    stolen: u64,
    /// Of the children of this process that have ended, and of theirs.
    children: u64,
}

/// A measurement that goes on.
#[derive(Debug)]
pub(crate) struct Watch {
    begin: Instant,
    before: Ticks,
}

impl Watch {
    pub fn begin() -> Self {
        Self { begin: Instant::now(), before: Ticks::read() }
    }

    /// What disturbed a run whose manager, no child of this process, took so much CPU time.
    pub fn end(self, manager: Duration) -> Noise {
        let (after, before) = (Ticks::read(), self.before);
        let rate = rustix::param::clock_ticks_per_second() as f64;
        let cpus = |ticks: u64| ticks as f64 / rate / self.begin.elapsed().as_secs_f64().max(1e-3);
        let own =
            after.children.saturating_sub(before.children) + (manager.as_secs_f64() * rate) as u64;
        let busy = after.busy.saturating_sub(before.busy);
        Noise {
            others_cpus: cpus(busy.saturating_sub(own)),
            stolen_cpus: cpus(after.stolen.saturating_sub(before.stolen)),
        }
    }
}

impl Ticks {
    fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let (busy, stolen) = machine(&text("/proc/stat")).unwrap_or_default();
        Self { busy, stolen, children: children(&text("/proc/self/stat")).unwrap_or_default() }
    }
}

/// Busy and withheld ticks of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn machine(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum();
    Some((busy, ticks.get(7).copied()?))
}

/// The fields `cutime` and `cstime` of `/proc/self/stat`.
fn children(text: &str) -> Option<u64> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(13);
    Some(times.next()?.parse::<u64>().ok()? + times.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_by_their_fields() {
        let text = "cpu  10 20 30 400 50 6 7 8 9 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(machine(text), Some((10 + 20 + 30 + 6 + 7, 8)));
        let own = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 11 12 13 14 20 0 1 0 100 0 0";
        assert_eq!(children(own), Some(13 + 14));
        for bad in ["", "cpu", "cpu x", "7 (a) S 1"] {
            assert_eq!((machine(bad), children(bad)), (None, None));
        }
    }

    #[test]
    fn time_of_children_is_part_of_the_machines() {
        let watch = Watch::begin();
        let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let ended = std::process::Command::new("sh").args(["-c", spin]).status().unwrap();
        assert!(ended.success());
        let children = Ticks::read().children - watch.before.children;
        assert!(children > 0);
        let busy = Ticks::read().busy - watch.before.busy;
        // Accounts of the whole machine are summed CPU by CPU, a tick late each.
        assert!(busy + 4 >= children, "{busy} {children}");
    }
}
