//! Our own kernels, which run for the same time from the same moment and count their work.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::harness::{self, Lead, Programs, TIMEOUT, scratch};
use serde::{Deserialize, Serialize};
use symbiont_campaign::{Error, digest, read_json};
use symbiont_linux::kernels::LoopKernel;
use symbiont_synth::kernel;
use symbiont_topology::PuId;

use super::campaign::Bench;
use super::evaluate::Speeds;
use super::limit::AROUND;
use super::pinned::{at_once, on};
use crate::bench::noise::Watch;

/// Time between the start of a kernel's process and that of its work, at first.
const LEAD: Duration = Duration::from_millis(200);
/// The kernel that shows which hardware threads share a core: it asks for all ports of loads.
const CONTENDED: &str = "independent loads";
/// Are there kernels for this processor?
#[must_use]
pub fn has_kernels() -> bool {
    LoopKernel::named(CONTENDED).is_some()
}

/// Our own kernels on hardware threads.
pub struct Kernels {
    /// `symbiont-synth`.
    synth: PathBuf,
    /// How long they run.
    pub window: Duration,
    /// Folder for the files of a run.
    pub folder: PathBuf,
    lead: Lead,
}

impl Kernels {
    /// That run for so long.
    #[must_use]
    pub fn new(programs: &Programs, window: Duration, folder: &Path) -> Self {
        let (synth, folder) = (programs.synth.clone(), folder.to_owned());
        Self { synth, window, folder, lead: Lead::new(LEAD) }
    }

    /// Each on its hardware thread, all at the same time; operations per nanosecond of CPU time.
    pub(super) fn run(&self, placed: &[(&str, PuId)], stop: &AtomicBool) -> Result<Speeds, Error> {
        let (watch, begin) = (Watch::begin(), Instant::now());
        let folder = scratch(&self.folder)?;
        let lead = self.lead.get();
        let start = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + lead;
        let limit = lead + self.window + TIMEOUT;
        let cancelled = || stop.load(Ordering::Relaxed);
        let one = |at: usize, (name, cpu): (&str, PuId)| {
            let words = [
                self.synth.display().to_string(),
                "kernel".to_owned(),
                name.to_owned(),
                "--json".to_owned(),
                format!("--duration={}us", self.window.as_micros()),
                format!("--start-at={:.6}", start.as_secs_f64()),
            ];
            let file = |kind: &str| folder.path().join(format!("{at}.{kind}"));
            let out = file("out");
            on(cpu, || harness::run(&words, &out, &file("err"), limit, &cancelled))?;
            read_json::<kernel::Report>(&out)
        };
        let reports = self.lead.heed(at_once(placed, &one))?;
        let speeds: Vec<f64> = reports
            .iter()
            .map(|report| speed(report.ns_per_operation))
            .collect::<Result<_, _>>()?;
        let Some((&first, others)) = speeds.split_first() else {
            return Err(Error::evaluation("no kernel was to run"));
        };
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Speeds {
            first,
            second: others.first().copied(),
            seconds,
            noise: watch.end(Duration::ZERO),
        })
    }
}

/// Operations per nanosecond. A kernel that got no CPU time in its window has none: it is to be measured again.
fn speed(ns_per_operation: f64) -> Result<f64, Error> {
    let speed = 1.0 / ns_per_operation;
    match speed.is_finite() && speed > 0.0 {
        true => Ok(speed),
        false => Err(Error::evaluation("a kernel got no CPU time: other programs use the machine")),
    }
}

/// One hardware thread, alone or with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CpuCell {
    /// By the OS's number.
    pub cpu: u32,
    /// The other one.
    pub other: Option<u32>,
}

impl fmt::Display for CpuCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.other {
            None => write!(f, "cpu{}, alone", self.cpu),
            Some(other) => write!(f, "cpu{} + cpu{other}", self.cpu),
        }
    }
}

/// A kernel on pairs of hardware threads.
pub struct OnCpus {
    /// The kernels.
    pub kernels: Kernels,
    /// What all measurements follow from.
    pub basis: String,
}

impl Bench for OnCpus {
    type Cell = CpuCell;

    fn name(&self) -> String {
        "cpus".to_owned()
    }

    fn basis(&self, _: &CpuCell) -> String {
        digest(&[&self.basis, CONTENDED, &format!("{:?}", self.kernels.window)])
    }

    fn measure(&self, cell: &CpuCell, stop: &AtomicBool) -> Result<Speeds, Error> {
        let cpus = std::iter::once(cell.cpu).chain(cell.other);
        let placed: Vec<_> = cpus.map(|cpu| (CONTENDED, PuId(cpu))).collect();
        self.kernels.run(&placed, stop)
    }

    fn cost(&self, _: &CpuCell) -> Duration {
        self.kernels.window + AROUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_cpu_time_has_no_speed() {
        assert_eq!(speed(4.0).ok(), Some(0.25));
        for none in [0.0, f64::INFINITY, f64::NAN] {
            assert!(speed(none).is_err(), "{none}");
        }
    }
}
