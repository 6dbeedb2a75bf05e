//! A phase made ready for the cores of a machine.
//!
//! # Approach
//! [`Prepared::new`] turns the profile's histograms into footprints and its
//! micro-traces into operations, for each core type, once. What
//! the window model answers is prepared per SMT mode when it is first asked for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use thiserror::Error;

use symbiont_profile::{CodeSketch, OpClass, PREDICTORS, Phase};

use super::footprint::{Footprint, Stream};
use super::pipeline::{CacheLevel, CoreSharing, REACHES};
use super::response::ResponseTable;
use super::trace::Trace;
use crate::description::{CoreType, Description, MOST_THREADS};

/// SMT modes that are distinguished.
const MODES: usize = MOST_THREADS;

/// Why a phase cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// It holds no micro-trace of even one instruction.
    #[error("the phase holds no micro-traces; capture the profile again")]
    NoTraces,
    /// It counts no instructions.
    #[error("the phase counts no instructions; capture the profile again")]
    Empty,
}

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
    /// Lines that the prefetcher brings in vain; they are in those of the L2 and the last level.
    pub overshoot: Footprint,
    /// Tells phases apart: what is equal has equal ones.
    pub fingerprint: u64,
    /// Which lines of code it touches.
    pub code: CodeSketch,
    /// What the window model answers, by SMT mode, alone and with co-runners, once it is made.
    tables: [[OnceLock<Box<ResponseTable>>; 2]; MODES],
}

/// A phase made ready for a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Per instruction, whatever the core.
    pub facts: Facts,
    /// By the description's core types.
    pub cores: Vec<ForCore>,
}

impl Prepared {
    /// Makes a phase ready for a machine.
    ///
    /// # Errors
    /// If the phase is empty or has no micro-traces.
    pub fn new(machine: &Description, phase: &Phase) -> Result<Self, PrepareError> {
        if phase.instructions == 0 {
            return Err(PrepareError::Empty);
        }
        let cores: Vec<_> =
            machine.core_types.iter().map(|core| ForCore::new(core, phase)).collect();
        if cores.iter().any(|core| core.trace.instructions < 1.0) {
            return Err(PrepareError::NoTraces);
        }
        Ok(Self { facts: Facts::new(phase), cores })
    }

    /// The tables made so far: core type, SMT mode, sharing of the core, table. To be kept for the next
    /// run; they hold for this phase on this machine alone.
    pub fn tables(&self) -> impl Iterator<Item = (usize, u32, CoreSharing, &ResponseTable)> {
        self.cores.iter().enumerate().flat_map(|(core_type, core)| {
            core.tables.iter().zip(1..).flat_map(move |(tables, mode)| {
                let made = tables.iter().zip([CoreSharing::Alone, CoreSharing::Others]);
                made.filter_map(move |(table, sharing)| {
                    Some((core_type, mode, sharing, table.get()?.as_ref()))
                })
            })
        })
    }

    /// Takes a kept table; one that is there already stays. Tells whether the table
    /// could be one.
    pub fn put_table(
        &self,
        core_type: usize,
        mode: u32,
        sharing: CoreSharing,
        table: ResponseTable,
    ) -> bool {
        let core = self.cores.get(core_type).filter(|_| table.is_sound());
        core.map(|core| core.table(mode, sharing, || table)).is_some()
    }
}

impl Facts {
    fn new(phase: &Phase) -> Self {
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
    fn new(core: &CoreType, phase: &Phase) -> Self {
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
            tables: Default::default(),
        }
        .marked(&Facts::new(phase))
    }

    /// With its fingerprint.
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

    /// The table of an SMT mode; `make` makes it the first time.
    pub fn table(
        &self,
        mode: u32,
        sharing: CoreSharing,
        make: impl FnOnce() -> ResponseTable,
    ) -> &ResponseTable {
        let slot = (mode.max(1) as usize).min(MODES) - 1;
        let shares_core = usize::from(sharing == CoreSharing::Others);
        self.tables[slot][shares_core].get_or_init(|| Box::new(make()))
    }
}

/// How many lines the prefetcher of a core runs ahead.
fn prefetch(core: &CoreType) -> u32 {
    if core.prefetch_streams == 0 { 0 } else { core.prefetch_lines }
}
