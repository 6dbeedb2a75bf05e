//! Kernels and programs as this very host runs them.
//!
//! # Approach
//! Machines lend their cores and caches to others, and clocks change. So what is measured is timed in turn with the
//! chain of dependent adds, which takes one cycle for each: the ratio of both is a number of cycles, and what slows
//! down both drops out. Of several such ratios the median and the middle half are reported.
//!
//! # Terms and units
//! *Cycles*: of the clock of the moment. IPC of a program: its profile's instructions over the cycles in which it ran
//! in user mode. *Error*: mean size of simulated over measured, less one; *worst*: the largest factor either way.
//!
//! # Properties
//! `half_of_the_programs_are_kept_for_judging`, `errors_and_ranks_are_those_of_the_pairs`.

use std::time::Duration;

use serde::Serialize;
use symbiont_linux::kernels::{KERNELS, LoopKernel, Memory};
use symbiont_sim_cycle::check::rank_correlation;

use symbiont_report::stats::{mean, median};

/// Ratios that are measured of a kernel.
const REPEATS: usize = 15;
/// How long one side of a ratio takes at least.
const SIDE: Duration = Duration::from_millis(3);

/// A median with the middle half of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// First and third quartile.
    pub quartiles: [f64; 2],
}

impl Middle {
    /// Of some values; none if there are no values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |part: usize| sorted.get((sorted.len().saturating_sub(1)) * part / 4).copied();
        Some(Self { median: median(&sorted)?, quartiles: [at(1)?, at(3)?] })
    }
}

/// Rounds of a kernel that take long enough to be timed: whole passes through its memory.
fn rounds(kernel: &LoopKernel, memory: &Memory) -> u64 {
    let mut rounds = kernel.pass();
    while memory.time(rounds) < SIDE {
        rounds *= 2;
    }
    rounds
}

/// The clock next to which others are timed.
#[derive(Debug)]
pub struct Clock {
    adds: LoopKernel,
    memory: Memory,
    rounds: u64,
}

impl Clock {
    /// Made ready; none where there are no kernels.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new() -> std::io::Result<Option<Self>> {
        let Some(adds) = KERNELS.first().copied() else { return Ok(None) };
        let memory = adds.memory()?;
        let rounds = rounds(&adds, &memory);
        Ok(Some(Self { adds, memory, rounds }))
    }

    /// Cycles per ns, now.
    #[must_use]
    pub fn ghz(&self) -> f64 {
        let time = self.memory.time(self.rounds);
        (self.rounds * self.adds.operations) as f64 / time.as_nanos().max(1) as f64
    }
}

/// Cycles of each operation of a kernel.
///
/// # Errors
/// When there is no memory for it.
pub fn cycles(kernel: &LoopKernel, clock: &Clock) -> std::io::Result<Option<Middle>> {
    let memory = kernel.memory()?;
    let rounds = rounds(kernel, &memory);
    let each = |_| {
        let before = clock.ghz();
        let ns = memory.time(rounds).as_nanos() as f64;
        ns * (before + clock.ghz()) / 2.0 / (rounds * kernel.operations) as f64
    };
    Ok(Middle::of(&(0..REPEATS).map(each).collect::<Vec<f64>>()))
}

/// Is a program kept for judging, not looked at while something is mended? By its name.
#[must_use]
pub fn is_kept(program: &str) -> bool {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = program.bytes().fold(0x811c_9dc5, step);
    (hash ^ hash >> 16) & 1 == 1
}

/// How simulated values compare with measured ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Pairs of values.
    pub values: usize,
    /// Mean size of simulated over measured, less one.
    pub error: f64,
    /// The largest factor, either way.
    pub worst: f64,
    /// Spearman's rank correlation; none where all are equal.
    pub rank: Option<f64>,
}

impl Errors {
    /// Of pairs of a measured and a simulated value; none if there are no pairs.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let factors: Vec<f64> =
            pairs.iter().map(|(measured, simulated)| simulated / measured).collect();
        let (measured, simulated): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(Self {
            values: pairs.len(),
            error: mean(&factors.iter().map(|factor| (factor - 1.0).abs()).collect::<Vec<_>>())?,
            worst: factors.iter().map(|factor| factor.max(1.0 / factor)).fold(1.0, f64::max),
            rank: rank_correlation(&measured, &simulated),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_programs_are_kept_for_judging() {
        let names: Vec<String> = (0..1000).map(|number| format!("program{number}")).collect();
        let kept = names.iter().filter(|name| is_kept(name)).count();
        assert!((400..600).contains(&kept), "{kept}");
    }

    #[test]
    fn errors_and_ranks_are_those_of_the_pairs() {
        let errors = Errors::of(&[(1.0, 1.5), (2.0, 1.0), (4.0, 4.0)]).unwrap();
        assert!((errors.error - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((errors.values, errors.worst), (3, 2.0));
        assert_eq!(errors.rank, Some(0.5));
        assert_eq!(Errors::of(&[]), None);
    }

    #[test]
    fn quartiles_surround_the_median() {
        let values: Vec<f64> = (1..=9).rev().map(f64::from).collect();
        assert_eq!(Middle::of(&values), Some(Middle { median: 5.0, quartiles: [3.0, 7.0] }));
    }

    /// Latencies of a core as it is: an add takes one cycle, a multiplication more than two.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_chain_of_multiplications_is_slower_than_one_of_adds() {
        let clock = Clock::new().unwrap().unwrap();
        let of = |name| cycles(&LoopKernel::named(name).unwrap(), &clock).unwrap().unwrap().median;
        assert!(of("dependent multiplies") > 1.5 * of("dependent adds"));
    }
}
