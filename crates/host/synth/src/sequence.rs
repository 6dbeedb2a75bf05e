//! The random sequence of phases.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::Ratio;

/// The parameters of the sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Parallel to serial work.
    pub ratio: Ratio,
    /// Cores that the label is meant for (n of eq. 1); at least one.
    pub cores: u32,
    /// Mean length of a phase, in iterations of one thread.
    pub mean: f64,
}

/// One parallel phase and the serial one after it, in iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cycle {
    /// Iterations that all threads do together.
    pub parallel: u64,
    /// Iterations that the main thread does alone.
    pub serial: u64,
}

impl Cycle {
    /// What is left when a share of the cycle's time on an idle machine is over.
    fn without(self, share: f64, cores: f64) -> Self {
        let parallel = self.parallel as f64 / cores;
        let over = share * (parallel + self.serial as f64);
        let of_serial = (over - parallel).max(0.0);
        Self {
            parallel: self.parallel - ((over * cores) as u64).min(self.parallel),
            serial: self.serial - (of_serial as u64).min(self.serial),
        }
    }
}

/// An endless sequence of cycles, the same for the same seed.
///
/// On an idle machine a cycle takes twice the mean phase length on average,
/// divided between the two kinds as the ratio says; so programs of different
/// ratios change phases equally often. The parallel length is uniform between
/// zero and twice its mean (bounded, so that no single phase fills a short
/// measurement) and the serial one follows from it by eq. 1, as in Fig. 3. A
/// completely serial program draws its serial length instead.
///
/// The first cycle is entered at a random moment of it: programs that start
/// together must not all start with a parallel phase.
#[derive(Debug, Clone)]
pub struct Sequence {
    shape: Shape,
    rng: Pcg64,
    carried: f64,
    /// Share of the next cycle that is left out.
    skipped: f64,
}

impl Sequence {
    /// Starts the sequence of a seed.
    #[must_use]
    pub fn new(shape: Shape, seed: u64) -> Self {
        let mut rng = Pcg64::seed_from_u64(seed);
        let skipped = rng.random();
        Self { shape, rng, carried: 0.0, skipped }
    }

    fn whole_cycle(&mut self) -> Cycle {
        let Shape { ratio, cores, mean } = self.shape;
        let cores = f64::from(cores.max(1));
        // Length of the whole cycle on an idle machine: 0…4 mean phases, mean 2.
        let cycle = self.rng.random::<f64>() * 4.0 * mean.max(1.0);
        let share = ratio.parallel_share();
        if share == 0.0 {
            return Cycle { parallel: 0, serial: (cycle as u64).max(1) };
        }
        let parallel = ((cycle * share * cores) as u64).max(1);
        // The fraction of an iteration is carried over, so that rounding never
        // shifts the ratio.
        let serial = ratio.serial_after(parallel as f64, cores) + self.carried;
        self.carried = serial.fract();
        Cycle { parallel, serial: serial as u64 }
    }
}

impl Iterator for Sequence {
    type Item = Cycle;

    fn next(&mut self) -> Option<Cycle> {
        let skipped = std::mem::take(&mut self.skipped);
        let cycle = self.whole_cycle();
        Some(cycle.without(skipped, f64::from(self.shape.cores.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(ratio: &str, cores: u32, mean: f64) -> Shape {
        Shape { ratio: ratio.parse().unwrap(), cores, mean }
    }

    #[test]
    fn a_seed_always_gives_the_same_sequence() {
        let of = |seed| Sequence::new(shape("4:1", 2, 1e5), seed).take(50).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn pure_programs_have_one_kind_of_phase() {
        assert!(Sequence::new(shape("inf:1", 4, 1e5), 1).take(100).all(|c| c.serial == 0));
        assert!(Sequence::new(shape("1:inf", 4, 1e5), 1).take(100).all(|c| c.parallel == 0));
    }

    #[test]
    fn a_whole_cycle_is_never_empty() {
        for ratio in ["inf:1", "1:1", "1:inf", "1:1000000"] {
            assert!(
                Sequence::new(shape(ratio, 1, 0.0), 3)
                    .skip(1)
                    .take(100)
                    .all(|c| c.parallel + c.serial > 0)
            );
        }
    }

    #[test]
    fn programs_start_in_either_kind_of_phase_as_often_as_they_are_in_it() {
        let first = |seed| Sequence::new(shape("1:1", 2, 1e5), seed).next().unwrap();
        let parallel = (0..1_000).filter(|seed| first(*seed).parallel > 0).count();
        // Standard deviation of 1,000 fair coins: 16.
        assert!((400..600).contains(&parallel), "{parallel}");
    }

    proptest! {
        #[test]
        fn leaving_out_a_share_leaves_the_rest(
            parallel in 0u64..1_000_000, serial in 0u64..1_000_000, share in 0.0f64..1.0,
        ) {
            let cycle = Cycle { parallel, serial };
            let time = |cycle: Cycle| cycle.parallel as f64 / 4.0 + cycle.serial as f64;
            let left = cycle.without(share, 4.0);
            prop_assert!((time(left) - (1.0 - share) * time(cycle)).abs() <= 2.0);
            prop_assert!(left.serial == serial || left.parallel == 0);
        }
    }

    #[test]
    fn a_cycle_lasts_two_mean_phases_on_average() {
        for ratio in ["inf:1", "4:1", "1:1", "1:4", "1:inf"] {
            let (cores, mean, count) = (3, 1e5, 4_000);
            let time: f64 = Sequence::new(shape(ratio, cores, mean), 11)
                .take(count)
                .map(|c| c.parallel as f64 / f64::from(cores) + c.serial as f64)
                .sum();
            let cycles = time / (2.0 * mean * count as f64);
            // Standard error of the mean of 4,000 uniform draws: 0.9 %.
            assert!((cycles - 1.0).abs() < 0.05, "{ratio}: {cycles}");
        }
    }

    proptest! {
        #[test]
        fn work_is_split_as_equation_1_says(
            p in 1u32..50, s in 1u32..50, cores in 1u32..256, seed: u64, mean in 100.0f64..1e7,
        ) {
            let shape = shape(&format!("{p}:{s}"), cores, mean);
            let (mut parallel, mut serial) = (0u64, 0u64);
            // The first cycle is entered somewhere within; it may leave a fraction.
            for cycle in Sequence::new(shape, seed).skip(1).take(20) {
                parallel += cycle.parallel;
                serial += cycle.serial;
                let expected = parallel as f64 * f64::from(s) / (f64::from(p) * f64::from(cores));
                prop_assert!((serial as f64 - expected).abs() <= 1.0 + expected * 1e-9);
            }
        }
    }
}
