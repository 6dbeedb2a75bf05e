//! A phase prepared for one core type.
//!
//! # Approach
//! The profile's histograms become footprints and its micro-traces become operations, by the line sizes
//! and the prefetcher of the core type.

use std::hash::{DefaultHasher, Hash, Hasher};

use symbiont_profile::{CodeSketch, OpClass, PREDICTORS, Phase};

use super::aet::{Footprint, Stream};
use super::pipeline::{CacheLevel, REACHES};
use super::trace::Trace;
use crate::description::CoreType;

/// What a phase does per instruction, whatever the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    /// Micro-operations.
    pub ops: f64,
    /// Loads.
    pub loads: f64,
    /// Stores.
    pub stores: f64,
    /// Branches.
    pub branches: f64,
    /// Floating-point operations on single values.
    pub flops: f64,
    /// Floating-point and vector micro-operations.
    pub vector_ops: f64,
    /// Scalar floating-point micro-operations.
    pub fp_scalar: f64,
    /// Packed floating-point micro-operations.
    pub fp_packed: f64,
    /// Floating-point divisions.
    pub fp_divisions: f64,
    /// Mispredicted branches at each size of the profile's predictors.
    pub mispredicted: [f64; PREDICTORS],
    /// Share of the lines that leave a cache that are written back.
    pub written: f64,
}

/// A phase for one core type.
#[derive(Debug, Clone, PartialEq)]
pub struct ForCore {
    /// Its micro-traces.
    pub trace: Trace,
    /// Micro-operations per instruction of the micro-traces.
    pub ops: f64,
    /// Distinct lines, pages or streams of each [`CacheLevel`].
    pub footprints: [Footprint; REACHES],
    /// Useless prefetches; they are in the footprints of the L2 and the last level, too.
    pub overshoot: Footprint,
    /// Identifies the phase: equal phases have equal ones.
    pub fingerprint: u64,
    /// Which lines of code it touches.
    pub code: CodeSketch,
}

impl Facts {
    /// Of a phase.
    #[must_use]
    pub fn new(phase: &Phase) -> Self {
        let count = |class| phase.per_instruction(phase.mix.count(class));
        let arithmetic: f64 =
            OpClass::ALL.into_iter().filter(|c| c.is_floating_point()).map(count).sum();
        // Widths are counted of floating-point and vector work together.
        let [scalar, packed @ ..] = phase.mix.by_width;
        let wide = packed.iter().fold(0, |sum: u64, more| sum.saturating_add(*more));
        let share = wide as f64 / scalar.saturating_add(wide).max(1) as f64;
        Self {
            ops: phase.per_instruction(phase.mix.total()),
            loads: count(OpClass::Load),
            stores: count(OpClass::Store),
            branches: phase.per_instruction(phase.branches.executed),
            flops: phase.flops_per_instruction(),
            vector_ops: arithmetic + count(OpClass::Vector),
            fp_scalar: arithmetic * (1.0 - share),
            fp_packed: arithmetic * share,
            fp_divisions: count(OpClass::FpDivide),
            mispredicted: phase.branches.mispredicted.map(|count| phase.per_instruction(count)),
            written: phase.written_share(),
        }
    }

    fn mark(&self, hasher: &mut impl Hasher) {
        let Self { ops, loads, stores, branches, flops, vector_ops, .. } = *self;
        let Self { fp_scalar, fp_packed, fp_divisions, mispredicted, written, .. } = *self;
        let numbers = [ops, loads, stores, branches, flops, vector_ops, fp_scalar, fp_packed];
        let more = [fp_divisions, written];
        let all = numbers.iter().chain(&more).chain(&mispredicted);
        all.for_each(|number| number.to_bits().hash(hasher));
    }
}

impl ForCore {
    /// The phase on that core type.
    #[must_use]
    pub fn new(core: &CoreType, phase: &Phase) -> Self {
        let wide = core.l1d.line >= 128;
        let stream = |histogram| Stream::new(histogram, phase.instructions);
        let (data, code) = (&phase.data, &phase.code);
        let lines =
            if wide { [&data.line_128, &code.line_128] } else { [&data.line_64, &code.line_64] };
        let [data_lines, code_lines] = lines.map(stream);
        let [data_pages, code_pages] = [&data.page, &code.page].map(stream);
        let trace = Trace::new(phase, core.l1d.line, prefetch(core));
        let vain = Stream::new(&trace.overshoot, trace.instructions as u64);
        let followed = Stream::new(&trace.streams, trace.instructions as u64);
        let of = |level| match level {
            CacheLevel::L1d => Footprint::new(&[&data_lines]),
            CacheLevel::L1i => Footprint::new(&[&code_lines]),
            CacheLevel::L2 | CacheLevel::Last => Footprint::new(&[&data_lines, &code_lines, &vain]),
            CacheLevel::DataTlb => Footprint::new(&[&data_pages]),
            CacheLevel::CodeTlb => Footprint::new(&[&code_pages]),
            CacheLevel::Tlb2 => Footprint::new(&[&data_pages, &code_pages]),
            CacheLevel::Streams => Footprint::new(&[&followed]),
        };
        Self {
            ops: trace.ops.len() as f64 / trace.instructions.max(1.0),
            trace,
            footprints: CacheLevel::ALL.map(of),
            overshoot: Footprint::new(&[&vain]),
            fingerprint: 0,
            code: phase.code_sketch.clone(),
        }
        .marked(&Facts::new(phase))
    }

    /// With its fingerprint. It is compared within one process, never kept, and seeds nothing: a hash that another
    /// toolchain may compute otherwise will do.
    fn marked(mut self, facts: &Facts) -> Self {
        let mut hasher = DefaultHasher::new();
        for op in &self.trace.ops {
            let times = [op.reuse, op.page, op.fetch, op.fetch_page, op.rested].map(f32::to_bits);
            let rest = (op.line, op.trigger, op.sources, op.class, op.mispredicted);
            (times, rest).hash(&mut hasher);
        }
        self.footprints.iter().for_each(|footprint| footprint.mark(&mut hasher));
        facts.mark(&mut hasher);
        self.fingerprint = hasher.finish();
        self
    }
}

/// How many lines the prefetcher of a core runs ahead.
fn prefetch(core: &CoreType) -> u32 {
    if core.prefetch_streams == 0 { 0 } else { core.prefetch_lines }
}
