//! Turns the counts of an interval into what is written.

use symbiont_profile::raw::{BUCKETS, Interval, Signature, Traces};
use symbiont_profile::vectors::Counts as CacheCounts;
use symbiont_profile::{
    CodeSketch, Footprint, MicroTrace, OpClass, Phase, PredictorConfig, Reuse, ReuseBin,
    ReuseHistogram, SUPER_SET_CACHES, Stream, SuperSetMap,
};

use crate::block::Block;
use crate::clock::{Counts, OCTAVES, SETS};
use crate::executed::{BlockCount, BranchCounts};

/// All that was counted in an interval.
#[derive(Debug)]
pub struct Tally<'a> {
    /// The thread, counted from 0 in its process.
    pub thread: u32,
    /// Instructions.
    pub instructions: u64,
    /// Executions of each block.
    pub executed: &'a [BlockCount],
    /// Loads and stores.
    pub accesses: [u64; 2],
    /// Rounds of repeated string instructions after their first.
    pub rounds: u64,
    /// Branches.
    pub branches: &'a BranchCounts,
    /// The data stream.
    pub data: &'a Counts,
    /// The instruction stream.
    pub code: &'a Counts,
    /// Micro-traces.
    pub traces: Vec<MicroTrace>,
    /// What was done to simulated caches.
    pub caches: Option<[CacheCounts; 3]>,
    /// About to execute another program?
    pub before_exec: bool,
}

/// The interval as it is written.
pub fn interval(tally: Tally<'_>) -> Interval {
    let phase = phase(&tally);
    let signature = signature(&tally, &phase);
    Interval { signature, phase, traces: Traces { traces: tally.traces }, caches: tally.caches }
}

/// The blocks that were executed, and how often.
fn executed(tally: &Tally<'_>) -> impl Iterator<Item = (&'static Block, u64)> {
    let known = tally.executed.iter().filter(|executed| executed.times > 0);
    known.filter_map(|executed| Some((executed.block?, executed.times)))
}

fn phase(tally: &Tally<'_>) -> Phase {
    let mut phase = Phase { instructions: tally.instructions, ..Phase::default() };
    for (block, times) in executed(tally) {
        let mix = &block.mix;
        let slots = phase.mix.ops.iter_mut().chain(&mut phase.mix.by_width);
        for (sum, each) in slots.zip(mix.ops.iter().chain(&mix.by_width)) {
            *sum += each * times;
        }
        phase.mix.flops += mix.flops * times;
    }
    let integers = &mut phase.mix.ops[OpClass::Integer.index()];
    *integers = integers.saturating_sub(tally.rounds);
    let [loads, stores] = tally.accesses;
    phase.mix.ops[OpClass::Load.index()] = loads;
    phase.mix.ops[OpClass::Store.index()] = stores;
    phase.branches = tally.branches.branches();
    phase.data = reuse(tally.data);
    phase.code = reuse(tally.code);
    phase.super_sets = SUPER_SET_CACHES
        .iter()
        .map(|(stream, sets)| match stream {
            Stream::Data => super_sets(*stream, *sets, tally.data),
            Stream::Instruction => super_sets(*stream, *sets, tally.code),
        })
        .collect();
    phase.footprint = Footprint {
        data_lines: tally.data.touched[0],
        written_lines: tally.data.touched[1],
        data_pages: tally.data.touched[2],
        code_lines: tally.code.touched[0],
    };
    let lines = executed(tally).flat_map(|(block, _)| block.lines.iter().copied());
    phase.code_sketch = CodeSketch::of(lines);
    phase
}

fn reuse(counts: &Counts) -> Reuse {
    let [line_64, line_128, page] = counts.bins.each_ref().map(histogram);
    Reuse { line_64, line_128, page }
}

fn histogram(bins: &[u64; 256]) -> ReuseHistogram {
    let mut histogram = ReuseHistogram::default();
    for (index, count) in bins.iter().enumerate() {
        histogram.add(ReuseBin::from_index(index), *count);
    }
    histogram.accesses = histogram.sampled();
    histogram
}

fn super_sets(stream: Stream, sets: u32, counts: &Counts) -> SuperSetMap {
    let mut octaves = vec![[0_u64; OCTAVES]; symbiont_profile::SUPER_SETS];
    for (set, counted) in counts.sets.iter().enumerate().take(SETS) {
        let region = SuperSetMap::region_of(sets, set as u64);
        for (sum, count) in octaves[region].iter_mut().zip(counted) {
            *sum += u64::from(*count);
        }
    }
    SuperSetMap { stream, sets, regions: octaves.iter().map(spread).collect() }
}

/// An octave's count spread over its bins.
fn spread(octaves: &[u64; OCTAVES]) -> ReuseHistogram {
    let mut histogram = ReuseHistogram::default();
    for (octave, count) in octaves.iter().enumerate().take(OCTAVES - 1) {
        // Time 0 is none; the first group of bins holds the times 1 to 3 only.
        let bins: &[usize] = if octave == 0 { &[1, 2, 3] } else { &[0, 1, 2, 3] };
        for (place, bin) in bins.iter().enumerate() {
            let share = (count + place as u64) / bins.len() as u64;
            histogram.add(ReuseBin::from_index(4 * octave + bin), share);
        }
    }
    histogram.add(ReuseBin::COLD, octaves[OCTAVES - 1]);
    histogram.accesses = histogram.sampled();
    histogram
}

/// Accesses of a histogram with at least this reuse time, cold ones too.
fn beyond(histogram: &ReuseHistogram, time: u64) -> u64 {
    let from = ReuseBin::of(time).index().unwrap_or(0);
    histogram.counts.iter().skip(from).sum::<u64>() + histogram.cold
}

fn signature(tally: &Tally<'_>, phase: &Phase) -> Signature {
    let mut blocks = vec![0; BUCKETS];
    for (block, times) in executed(tally) {
        blocks[bucket(block)] += block.instructions.len() as u64 * times;
    }
    let floating = OpClass::ALL.iter().filter(|class| class.is_floating_point());
    let data = &phase.data.line_64;
    Signature {
        thread: tally.thread,
        instructions: tally.instructions,
        before_exec: tally.before_exec,
        blocks,
        events: [
            phase.branches.mispredicted[PredictorConfig::BEST],
            phase.mix.count(OpClass::Load),
            phase.mix.count(OpClass::Store),
            floating.map(|class| phase.mix.count(*class)).sum(),
            beyond(data, 1 << 10),
            beyond(data, 1 << 14),
            beyond(data, 1 << 18),
            beyond(data, 1 << 22),
            beyond(&phase.code.line_64, 1 << 9),
        ],
    }
}

/// The group of a block: at random by its address.
fn bucket(block: &Block) -> usize {
    (block.start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::{OCTAVES, spread};

    #[test]
    fn spreading_an_octave_loses_no_access() {
        let mut octaves = [0_u64; OCTAVES];
        for (index, count) in octaves.iter_mut().enumerate() {
            *count = 7 * index as u64 + 5;
        }
        assert_eq!(spread(&octaves).sampled(), octaves.iter().sum::<u64>());
        assert_eq!(spread(&octaves).counts[0], 0);
    }
}
