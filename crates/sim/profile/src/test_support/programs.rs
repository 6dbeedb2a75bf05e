//! Synthetic programs, each with one trait.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::observe::{ObservedOp, Observer};
use crate::{FromStore, OpClass, PREDICTORS, Phase, Profile, Span, Thread};

/// Where the synthetic programs' instructions and data lie.
const CODE: u64 = 0x40_0000;
const DATA: u64 = 0x1000_0000;

/// Instructions that warm up, and those that are counted.
const WARM_UP: u64 = 100_000;
const COUNTED: u64 = 200_000;
const TRACES: u64 = 8;
const TRACE_LENGTH: u64 = 1_200;

/// Observes what `step` yields for each next instruction (counted from 0).
fn observe(mut step: impl FnMut(u64) -> ObservedOp) -> Phase {
    let mut observer = Observer::new();
    for index in 0..WARM_UP {
        observer.execute(&step(index));
    }
    observer.reset();
    let stride = COUNTED / TRACES;
    for index in 0..COUNTED {
        match index % stride {
            0 => observer.start_trace(),
            TRACE_LENGTH => observer.end_trace(),
            _ => {}
        }
        observer.execute(&step(WARM_UP + index));
    }
    observer.finish()
}

/// A profile of one thread that is in `phase` for `instructions`.
pub fn synthetic(name: &str, phase: Phase, instructions: u64) -> Profile {
    Profile {
        program: name.to_owned(),
        command: vec![name.to_owned()],
        digest: "0".repeat(64),
        instructions,
        phases: vec![phase],
        threads: vec![Thread {
            program: name.to_owned(),
            process: 0,
            sequence: vec![Span { phase: 0, instructions }],
        }],
        gaps: Vec::new(),
    }
}

/// Instructions that each synthetic program is said to execute.
const LENGTH: u64 = 10_000_000_000;

/// Reads an array far larger than any cache, 8 bytes after 8 bytes, adds, and stores every eighth value: bound by
/// bandwidth.
pub fn streaming() -> Profile {
    let phase = observe(|index| {
        let (round, slot) = (index / 8, index % 8);
        let at = CODE + 4 * slot;
        let address = Some(DATA + 8 * (2 * round + slot / 3));
        match slot {
            0 | 3 => {
                ObservedOp { sources: [8, 0], address, ..ObservedOp::plain(at, OpClass::Load) }
            }
            1 | 4 => ObservedOp { sources: [1, 8], ..ObservedOp::plain(at, OpClass::FpAdd) },
            5 => ObservedOp { sources: [1, 0], address, ..ObservedOp::plain(at, OpClass::Store) },
            7 => ObservedOp { sources: [1, 0], ..ObservedOp::plain(at, OpClass::Branch) },
            _ => ObservedOp { sources: [8, 0], ..ObservedOp::plain(at, OpClass::Integer) },
        }
    });
    synthetic("streaming", phase, LENGTH)
}

/// Follows pointers at random through `lines` lines of 64 bytes; each load needs
/// the one before: bound by latency.
pub fn pointer_chasing(lines: u64) -> Profile {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let phase = observe(|index| {
        let slot = index % 4;
        let at = CODE + 4 * slot;
        match slot {
            0 => ObservedOp {
                sources: [4, 0],
                address: Some(DATA + 64 * random.random_range(0..lines.max(1))),
                ..ObservedOp::plain(at, OpClass::Load)
            },
            3 => ObservedOp { sources: [1, 0], ..ObservedOp::plain(at, OpClass::Branch) },
            _ => {
                ObservedOp { sources: [slot as u16, 0], ..ObservedOp::plain(at, OpClass::Integer) }
            }
        }
    });
    synthetic("pointer-chasing", phase, LENGTH)
}

/// Integer work with much parallelism on 8 KiB of data: bound by issue width.
pub fn cache_resident() -> Profile {
    let phase = observe(|index| {
        let slot = index % 10;
        let at = CODE + 4 * slot;
        match slot {
            0 | 5 => ObservedOp {
                address: Some(DATA + (index * 24) % 8192),
                ..ObservedOp::plain(at, OpClass::Load)
            },
            8 => ObservedOp {
                sources: [3, 0],
                address: Some(DATA + (index * 8) % 8192),
                ..ObservedOp::plain(at, OpClass::Store)
            },
            9 => ObservedOp { sources: [10, 0], ..ObservedOp::plain(at, OpClass::Branch) },
            _ => ObservedOp { sources: [10, 0], ..ObservedOp::plain(at, OpClass::Integer) },
        }
    });
    synthetic("cache-resident", phase, LENGTH)
}

/// Multiplies and adds floating-point numbers on 16 KiB, in four chains, with an
/// occasional division: bound by the floating-point units.
pub fn floating_point() -> Profile {
    let phase = observe(|index| {
        let slot = index % 12;
        let at = CODE + 4 * slot;
        match slot {
            0 | 6 => ObservedOp {
                address: Some(DATA + (index * 8) % 16_384),
                ..ObservedOp::plain(at, OpClass::Load)
            },
            3 => ObservedOp { sources: [12, 0], ..ObservedOp::plain(at, OpClass::FpAdd) },
            9 if index / 12 % 8 == 0 => {
                ObservedOp { sources: [96, 0], ..ObservedOp::plain(at, OpClass::FpDivide) }
            }
            9 => ObservedOp { sources: [12, 0], ..ObservedOp::plain(at, OpClass::FpMultiply) },
            11 => ObservedOp { sources: [12, 0], ..ObservedOp::plain(at, OpClass::Branch) },
            _ => ObservedOp { sources: [12, 3], ..ObservedOp::plain(at, OpClass::FpFma) },
        }
    });
    synthetic("floating-point", phase, LENGTH)
}

/// A branch in five instructions, of which the largest predictor mispredicts
/// 4 % and each smaller one 2 % more, over 256 KiB of code and 32 KiB of data.
pub fn branchy() -> Profile {
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut block = 0;
    let phase = observe(|index| {
        let slot = index % 5;
        if slot == 0 {
            block = random.random_range(0..4_096_u64);
        }
        let at = CODE + 64 * block + 4 * slot;
        match slot {
            1 => ObservedOp {
                sources: [1, 0],
                address: Some(DATA + 8 * random.random_range(0..4_096)),
                ..ObservedOp::plain(at, OpClass::Load)
            },
            4 => {
                let draw = random.random_range(0.0..1.0);
                let missed = |size: &usize| draw < [0.08, 0.1, 0.12, 0.14, 0.04, 0.06][*size];
                let mispredicted =
                    (0..PREDICTORS).filter(missed).fold(0, |bits, size| bits | 1 << size);
                ObservedOp {
                    sources: [3, 0],
                    mispredicted,
                    ..ObservedOp::plain(at, OpClass::Branch)
                }
            }
            _ => ObservedOp { sources: [2, 0], ..ObservedOp::plain(at, OpClass::Integer) },
        }
    });
    synthetic("branchy", phase, LENGTH)
}

/// Adds to a variable that it keeps in memory: each round of four instructions loads what the round before
/// stored.
pub fn kept_in_memory() -> Profile {
    let from = FromStore { back: 2, whole: true, same_form: true };
    let phase = observe(|index| {
        let at = CODE + 4 * (index % 4);
        let op = |class, sources| ObservedOp { sources, ..ObservedOp::plain(at, class) };
        let access = |class, sources| ObservedOp { address: Some(DATA), ..op(class, sources) };
        match index % 4 {
            0 => ObservedOp { stored: Some(from), ..access(OpClass::Load, [0; 2]) },
            1 => op(OpClass::Integer, [1, 0]),
            2 => access(OpClass::Store, [1, 0]),
            _ => op(OpClass::Branch, [2, 0]),
        }
    });
    synthetic("kept-in-memory", phase, LENGTH)
}

/// Executes no-operations; of 64 instructions one reads a flag and one jumps back. It needs next to nothing of a
/// core but its slots.
pub fn no_operations() -> Profile {
    let phase = observe(|index| {
        let slot = index % 64;
        let at = CODE + 4 * slot;
        match slot {
            62 => ObservedOp { address: Some(DATA), ..ObservedOp::plain(at, OpClass::Load) },
            63 => ObservedOp { sources: [1, 0], ..ObservedOp::plain(at, OpClass::Branch) },
            _ => ObservedOp::plain(at, OpClass::Other),
        }
    });
    synthetic("no-operations", phase, LENGTH)
}

/// A program that alternates between the only phases of two others, a billion
/// instructions each.
pub fn phased(first: &Profile, second: &Profile) -> Profile {
    let phases: Vec<Phase> =
        [first, second].iter().filter_map(|profile| profile.phases.first().cloned()).collect();
    let mut profile = synthetic("phased", Phase::default(), LENGTH);
    profile.phases = phases;
    profile.threads[0].sequence =
        (0..10).map(|index| Span { phase: index % 2, instructions: LENGTH / 10 }).collect();
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PredictorConfig;
    use crate::ReuseHistogram;

    fn misses(profile: &Profile, lines: f64) -> f64 {
        profile.phases[0].data.line_64.curve().misses(lines)
    }

    #[test]
    fn each_program_has_the_trait_that_it_is_named_for() {
        assert!(misses(&streaming(), 1e5) > 0.05);
        assert!(misses(&pointer_chasing(1_000), 100.0) > 0.8);
        assert!(misses(&pointer_chasing(1_000), 1_100.0) < 0.01);
        assert_eq!(misses(&cache_resident(), 512.0), 0.0);
        let nothing = &no_operations().phases[0];
        assert!(nothing.mix.count(OpClass::Other) > 60 * nothing.mix.memory());
        assert!(floating_point().phases[0].flops_per_instruction() > 0.8);
        let branchy = branchy();
        let branches = &branchy.phases[0].branches;
        let ratio = branches.mispredicted[PredictorConfig::BEST] as f64 / branches.executed as f64;
        assert!((ratio - 0.04).abs() < 0.005, "{ratio}");
        assert!(branchy.phases[0].code.line_64.curve().misses(512.0) > 0.5);
    }

    #[test]
    fn counts_agree_with_each_other() {
        let phased = phased(&streaming(), &branchy());
        for phase in &phased.phases {
            assert_eq!(phase.instructions, COUNTED);
            assert_eq!(phase.mix.total(), COUNTED);
            assert_eq!(phase.data.line_64.accesses, phase.mix.memory());
            assert_eq!(phase.data.line_64.sampled(), phase.data.line_64.accesses);
            assert_eq!(phase.traces.len(), TRACES as usize);
            let instructions = |trace: &crate::MicroTrace| trace.instructions() as u64;
            assert!(phase.traces.iter().all(|trace| instructions(trace) == TRACE_LENGTH));
            for map in &phase.super_sets {
                let whole = match map.stream {
                    crate::Stream::Data => &phase.data.line_64,
                    crate::Stream::Instruction => &phase.code.line_64,
                };
                let mut sum = ReuseHistogram::default();
                map.regions.iter().for_each(|region| sum.merge(region));
                assert_eq!(&sum, whole);
            }
        }
    }
}
