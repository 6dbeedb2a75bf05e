//! Synthetic programs that differ in everything at once.
//!
//! # Problem
//! A model that shall hold for programs that it never saw must have seen programs on all sides
//! of them. Real ones crowd in some places and leave others empty, and there are few of them.
//!
//! # Approach
//! A ruler is a program of one phase with eleven traits ([`Traits`]), each between bounds that real
//! programs span. Traits are drawn by an additive recurrence in eleven dimensions (Roberts, "The
//! Unreasonable Effectiveness of Quasirandom Sequences", 2018): any number of rulers, taken from the
//! first, covers the range of all traits more evenly than chance does.
//!
//! Code is made of blocks, each of which ends with a branch; what an instruction is, is fixed by its
//! address. Most steps from block to block stay among a few, most accesses among a few lines; the
//! others go anywhere in the code, or in the data.
//!
//! # Properties
//! - Each trait is spread evenly (`traits_are_spread_evenly`).
//! - A ruler does what its traits say (`a_ruler_does_what_its_traits_say`).

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::programs::{CODE, DATA, LENGTH, observe, synthetic};
use crate::observe::ObservedOp;
use crate::{OpClass, PREDICTORS, Profile};

/// How many traits there are.
const TRAITS: usize = 11;

/// Lines that most accesses go to.
const HOT_LINES: u64 = 32;
/// Blocks that most of the code is executed in.
const HOT_BLOCKS: u64 = 8;
/// Bytes of a block: sixteen instructions at most.
const BLOCK: u64 = 64;
/// One in so many operations that compute divides.
const DIVISION: u64 = 64;
/// What each smaller predictor mispredicts more, as a part of what the largest does.
const MORE: f64 = 0.4;

/// How accesses that leave the hot lines go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Eight bytes further each.
    Sequential,
    /// Anywhere.
    Random,
    /// Anywhere, each by what the one before read.
    Chased,
}

/// What a ruler is like.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Traits {
    /// Share of operations that access memory, branches apart.
    memory: f64,
    /// Share of accesses that store.
    stores: f64,
    /// Share of floating point in what computes.
    float: f64,
    /// Operations between one and what it needs.
    distance: u16,
    /// Lines of its data.
    lines: u64,
    /// Share of accesses to hot lines.
    hot: f64,
    pattern: Pattern,
    /// Share of branches that the largest predictor mispredicts.
    mispredicted: f64,
    /// Blocks of its code.
    blocks: u64,
    /// Share of steps to hot blocks.
    hot_code: f64,
    /// Instructions of a block.
    length: u64,
}

impl Traits {
    /// From places between the bounds, 0 to 1 each.
    fn at(places: [f64; TRAITS]) -> Self {
        let [memory, stores, float, distance, lines, hot, pattern, wrong, blocks, hot_code, length] =
            places;
        let power = |least: f64, octaves: f64, place: f64| (least + octaves * place).exp2();
        Self {
            memory: 0.15 + 0.35 * memory,
            stores: 0.05 + 0.45 * stores,
            float: (1.6 * float - 0.6).max(0.0),
            distance: power(0.0, 4.5, distance) as u16,
            lines: power(7.0, 12.0, lines) as u64,
            hot: 0.4 + 0.59 * hot,
            pattern: match pattern {
                p if p < 0.35 => Pattern::Sequential,
                p if p < 0.7 => Pattern::Random,
                _ => Pattern::Chased,
            },
            mispredicted: 0.12 * wrong * wrong,
            blocks: power(3.0, 10.0, blocks) as u64,
            hot_code: 0.5 + 0.49 * hot_code,
            length: 4 + (12.0 * length) as u64,
        }
    }

    /// Those of the ruler of that number.
    fn of(number: u32) -> Self {
        // The root of x^(d + 1) = x + 1, by iteration.
        let root = (0..60).fold(1.5_f64, |x, _| (1.0 + x).powf(1.0 / (TRAITS as f64 + 1.0)));
        let place = |at: usize| {
            let step = root.powi(-(at as i32) - 1);
            (0.5 + f64::from(number) * step).fract()
        };
        Self::at(std::array::from_fn(place))
    }
}

/// Scatters bits, so that what stands at an address looks drawn (SplitMix64; Steele, Lea, Flood, 2014).
fn scattered(address: u64) -> u64 {
    let z = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Executes a ruler.
struct Execution {
    traits: Traits,
    random: Pcg64Mcg,
    block: u64,
    slot: u64,
    /// Bytes that sequential accesses have come.
    walked: u64,
    /// Operations since the last load that was chased.
    since_chased: u16,
}

impl Execution {
    fn new(traits: Traits, seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Self { traits, random, block: 0, slot: 0, walked: 0, since_chased: 0 }
    }

    fn step(&mut self) -> ObservedOp {
        let at = CODE + BLOCK * self.block + 4 * self.slot;
        self.since_chased = self.since_chased.saturating_add(1);
        self.slot += 1;
        if self.slot == self.traits.length {
            return self.branch(at);
        }
        let bits = scattered(at);
        let drawn = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let sources = [self.traits.distance, 0];
        let Traits { memory, stores, float, .. } = self.traits;
        if drawn < memory * stores {
            let address = Some(self.address(false).0);
            return ObservedOp { sources, address, ..ObservedOp::plain(at, OpClass::Store) };
        }
        if drawn < memory {
            let (address, chased) = self.address(true);
            let sources = chased.map_or(sources, |distance| [distance, 0]);
            let address = Some(address);
            return ObservedOp { sources, address, ..ObservedOp::plain(at, OpClass::Load) };
        }
        let floats = drawn - memory < (1.0 - memory) * float;
        let class = match (floats, bits % DIVISION, bits % 4) {
            (true, 0, _) => OpClass::FpDivide,
            (true, _, 0) => OpClass::FpMultiply,
            (true, _, 1) => OpClass::FpAdd,
            (true, ..) => OpClass::FpFma,
            (false, 0, _) => OpClass::Divide,
            (false, 1..=3, _) => OpClass::Multiply,
            (false, ..) => OpClass::Integer,
        };
        ObservedOp { sources, ..ObservedOp::plain(at, class) }
    }

    /// Ends the block.
    fn branch(&mut self, at: u64) -> ObservedOp {
        let Traits { blocks, hot_code, mispredicted, distance, .. } = self.traits;
        let among = if self.random.random_bool(hot_code) { HOT_BLOCKS.min(blocks) } else { blocks };
        self.block = self.random.random_range(0..among);
        self.slot = 0;
        let drawn: f64 = self.random.random_range(0.0..1.0);
        let missed = |size: &usize| drawn < mispredicted * (1.0 + MORE * *size as f64);
        let mispredicted = (0..PREDICTORS).filter(missed).fold(0, |bits, size| bits | 1 << size);
        let plain = ObservedOp::plain(at, OpClass::Branch);
        ObservedOp { sources: [distance, 0], mispredicted, ..plain }
    }

    /// The next address; of a load that is chased, how far back the one before is.
    fn address(&mut self, load: bool) -> (u64, Option<u16>) {
        let Traits { hot, lines, pattern, .. } = self.traits;
        if self.random.random_bool(hot) {
            return (DATA + 8 * self.random.random_range(0..8 * HOT_LINES), None);
        }
        let data = DATA + 64 * HOT_LINES;
        let anywhere = data + 64 * self.random.random_range(0..lines);
        match pattern {
            Pattern::Sequential => {
                self.walked = (self.walked + 8) % (64 * lines);
                (data + self.walked, None)
            }
            Pattern::Random => (anywhere, None),
            Pattern::Chased if load => {
                let distance = std::mem::take(&mut self.since_chased);
                (anywhere, Some(distance))
            }
            Pattern::Chased => (anywhere, None),
        }
    }
}

/// The synthetic mixture of that number.
pub fn ruler(number: u32) -> Profile {
    let mut execution = Execution::new(Traits::of(number), number.into());
    synthetic(&format!("ruler-{number}"), observe(|_| execution.step()), LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_are_spread_evenly() {
        for count in [16, 48, 128] {
            let all: Vec<Traits> = (1..=count).map(Traits::of).collect();
            let mean =
                |of: &dyn Fn(&Traits) -> f64| all.iter().map(of).sum::<f64>() / f64::from(count);
            let near = |value: f64, want: f64, part: f64| (value - want).abs() < part;
            assert!(near(mean(&|t| t.memory), 0.325, 0.03), "{count}");
            assert!(near(mean(&|t| t.stores), 0.275, 0.04), "{count}");
            assert!(near(mean(&|t| t.hot), 0.695, 0.05), "{count}");
            assert!(near(mean(&|t| (t.lines as f64).log2()), 13.0, 1.0), "{count}");
            assert!(near(mean(&|t| (t.blocks as f64).log2()), 8.0, 0.8), "{count}");
            let chased = mean(&|t| f64::from(u8::from(t.pattern == Pattern::Chased)));
            assert!(near(chased, 0.3, 0.1), "{count} {chased}");
        }
        assert_ne!(Traits::of(1), Traits::of(2));
    }

    #[test]
    fn a_ruler_does_what_its_traits_say() {
        for number in [1, 2, 3, 7] {
            let (traits, profile) = (Traits::of(number), ruler(number));
            assert_eq!(profile, ruler(number));
            let phase = &profile.phases[0];
            let share = |count: u64| count as f64 / phase.instructions as f64;
            let branches = 1.0 / traits.length as f64;
            let executed = share(phase.branches.executed);
            assert!((executed - branches).abs() < 0.05, "{number}: {executed} {branches}");
            // What stands in few hot blocks is drawn coarsely.
            let memory = share(phase.mix.memory());
            assert!((memory - traits.memory * (1.0 - branches)).abs() < 0.2, "{number}: {memory}");
            let wrong = phase.branches.mispredicted[0] as f64 / phase.branches.executed as f64;
            assert!((wrong - traits.mispredicted).abs() < 0.01, "{number}: {wrong}");
            // All but the accesses to hot lines miss a cache that holds no more than those.
            let small = phase.data.line_64.curve().misses(2.0 * HOT_LINES as f64);
            assert!(small <= 1.0 - traits.hot + 0.05, "{number}: {small} {traits:?}");
        }
    }
}
