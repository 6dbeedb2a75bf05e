//! Makes an exact [`Phase`] of a stream of micro-operations.
//!
//! # Problem
//! Synthetic programs, and windows of captured traces, need the same description as profiled programs.
//!
//! # Approach
//! Every operation is counted, with the exact reuse times of its accesses and fetches. Memory grows with the
//! lines that are touched: good for some million operations.
//!
//! # Properties
//! `what_was_known_before_is_used_again_after_that_long`, `an_instruction_of_several_operations_is_one`; the
//! synthetic programs are checked by the tests of the crates that use them.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::trace::BranchKind;
use crate::{
    Access, Branches, CodeSketch, Footprint, FromStore, MicroOp, MicroTrace, OpClass, PREDICTORS,
    Phase, Reuse, ReuseBin, ReuseHistogram, SUPER_SET_CACHES, Stream, SuperSetMap,
};

/// One micro-operation that an [`Observer`] is given.
#[derive(Debug, Clone, Copy)]
pub struct ObservedOp {
    /// Address of the instruction.
    pub at: u64,
    /// What it needs.
    pub class: OpClass,
    /// Is it the first micro-operation of its instruction?
    pub starts_instruction: bool,
    /// Distances to its sources, as in [`MicroOp::sources`].
    pub sources: [u16; 2],
    /// As in [`MicroOp::stored`].
    pub stored: Option<FromStore>,
    /// The address that a load or store accesses.
    pub address: Option<u64>,
    /// Of a branch, its kind and whether it was taken; none means a conditional one that was not.
    pub branch: Option<(BranchKind, bool)>,
    /// As in [`MicroOp::mispredicted`].
    pub mispredicted: u8,
}

impl ObservedOp {
    /// An instruction of one operation at `at`, without sources, access or misprediction.
    pub fn plain(at: u64, class: OpClass) -> Self {
        Self {
            at,
            class,
            starts_instruction: true,
            sources: [0; 2],
            stored: None,
            address: None,
            branch: None,
            mispredicted: 0,
        }
    }
}

/// Accesses that were before the first that is observed, more than any program makes.
const BEFORE: u64 = 1 << 62;

/// When each line was accessed last, in one stream.
#[derive(Debug)]
struct Clock<K> {
    now: u64,
    last: HashMap<K, u64>,
}

impl<K> Default for Clock<K> {
    fn default() -> Self {
        Self { now: BEFORE, last: HashMap::new() }
    }
}

impl<K: Eq + Hash> Clock<K> {
    fn access(&mut self, key: K) -> ReuseBin {
        self.now += 1;
        let before = self.last.insert(key, self.now);
        before.map_or(ReuseBin::COLD, |before| ReuseBin::of(self.now - before))
    }

    /// It was accessed so many accesses ago.
    fn knew(&mut self, key: K, ago: u64) {
        let then = self.now.saturating_sub(ago.max(1) - 1);
        let last = self.last.entry(key).or_insert(then);
        *last = then.max(*last);
    }
}

/// Counts what a stream of micro-operations does.
#[derive(Debug, Default)]
pub struct Observer {
    data: [Clock<u64>; 3],
    code: [Clock<u64>; 3],
    fetched: Option<u64>,
    phase: Phase,
    touched: [HashSet<u64>; 4],
    recording: Option<MicroTrace>,
}

/// Adds one access to a histogram.
fn count(histogram: &mut ReuseHistogram, bin: ReuseBin) {
    if bin != ReuseBin::NONE {
        histogram.accesses += 1;
        histogram.add(bin, 1);
    }
}

fn count_all(reuse: &mut Reuse, access: Access) {
    count(&mut reuse.line_64, access.reuse_64);
    count(&mut reuse.line_128, access.reuse_128);
    count(&mut reuse.page, access.reuse_page);
}

impl Observer {
    /// An observer that has observed nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the counts but stays warm.
    pub fn reset(&mut self) {
        let super_sets = SUPER_SET_CACHES.map(|(stream, sets)| SuperSetMap::empty(stream, sets));
        self.phase = Phase { super_sets: super_sets.to_vec(), ..Phase::default() };
        self.touched = Default::default();
    }

    /// From here on operations are kept for a micro-trace.
    pub fn start_trace(&mut self) {
        self.recording = Some(MicroTrace::default());
    }

    /// Ends the micro-trace.
    pub fn end_trace(&mut self) {
        self.phase.traces.extend(self.recording.take());
    }

    /// Notes that the line was accessed this many accesses before the next one of its stream, counted at lines of
    /// 64 bytes, lines of 128 bytes and pages: if that next one is to the line, it has these reuse times.
    pub fn knew(&mut self, stream: Stream, line: u64, ago: [u64; 3]) {
        let [lines, double, pages] = match stream {
            Stream::Data => &mut self.data,
            Stream::Instruction => &mut self.code,
        };
        lines.knew(line, ago[0]);
        double.knew(line / 2, ago[1]);
        pages.knew(line / 64, ago[2]);
    }

    /// Executes one operation.
    pub fn execute(&mut self, op: &ObservedOp) {
        let fetch = self.fetch(op.at / 64);
        let access = op.address.map(|address| self.access(address / 64, op.class));
        self.phase.instructions += u64::from(op.starts_instruction);
        self.phase.mix.ops[op.class.index()] += 1;
        if op.class.is_floating_point() {
            self.phase.mix.by_width[0] += 1;
            self.phase.mix.flops += if op.class == OpClass::FpFma { 2 } else { 1 };
        }
        if op.class == OpClass::Branch {
            let branches: &mut Branches = &mut self.phase.branches;
            let (kind, taken) = op.branch.unwrap_or((BranchKind::Conditional, false));
            branches.executed += 1;
            branches.conditional += u64::from(kind == BranchKind::Conditional);
            branches.taken += u64::from(taken);
            branches.indirect +=
                u64::from(matches!(kind, BranchKind::IndirectJump | BranchKind::IndirectCall));
            for size in 0..PREDICTORS {
                branches.mispredicted[size] += u64::from(op.mispredicted >> size & 1);
            }
        }
        if let Some(trace) = &mut self.recording {
            trace.ops.push(MicroOp {
                class: op.class,
                starts_instruction: op.starts_instruction,
                sources: op.sources,
                stored: op.stored,
                access,
                fetch,
                mispredicted: op.mispredicted,
            });
        }
    }

    fn fetch(&mut self, line: u64) -> Option<Access> {
        let before = self.fetched.replace(line);
        if before == Some(line) {
            return None;
        }
        let [lines, double, pages] = &mut self.code;
        let coarse = |clock: &mut Clock<u64>, factor| {
            if before.is_some_and(|before| before / factor == line / factor) {
                return ReuseBin::NONE;
            }
            clock.access(line / factor)
        };
        let access = Access {
            line,
            reuse_64: lines.access(line),
            reuse_128: coarse(double, 2),
            reuse_page: coarse(pages, 64),
        };
        count_all(&mut self.phase.code, access);
        self.touched[3].insert(line);
        self.count_region(Stream::Instruction, access);
        Some(access)
    }

    fn access(&mut self, line: u64, class: OpClass) -> Access {
        let [lines, double, pages] = &mut self.data;
        let access = Access {
            line,
            reuse_64: lines.access(line),
            reuse_128: double.access(line / 2),
            reuse_page: pages.access(line / 64),
        };
        count_all(&mut self.phase.data, access);
        self.touched[0].insert(line);
        if class == OpClass::Store {
            self.touched[1].insert(line);
        }
        self.touched[2].insert(line / 64);
        self.count_region(Stream::Data, access);
        access
    }

    fn count_region(&mut self, stream: Stream, access: Access) {
        for map in self.phase.super_sets.iter_mut().filter(|map| map.stream == stream) {
            let region = SuperSetMap::region_of(map.sets, access.line);
            count(&mut map.regions[region], access.reuse_64);
        }
    }

    /// What was counted since the last reset.
    pub fn finish(mut self) -> Phase {
        self.phase.code_sketch = CodeSketch::of(self.touched[3].iter().copied());
        let [data, written, pages, code] = self.touched.map(|set| set.len() as u64);
        self.phase.footprint = Footprint {
            data_lines: data,
            written_lines: written,
            data_pages: pages,
            code_lines: code,
        };
        self.phase
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(line: u64) -> ObservedOp {
        ObservedOp { address: Some(64 * line), ..ObservedOp::plain(0x1000, OpClass::Load) }
    }

    #[test]
    fn what_was_known_before_is_used_again_after_that_long() {
        let mut observer = Observer::new();
        observer.knew(Stream::Data, 7, [5, 6, 7]);
        // Longer ago than what is known already.
        observer.knew(Stream::Data, 7, [50, 50, 50]);
        observer.start_trace();
        [load(3), load(7), load(7)].iter().for_each(|op| observer.execute(op));
        observer.end_trace();
        let trace = &observer.finish().traces[0];
        let times: Vec<_> = trace.ops.iter().filter_map(|op| op.access).collect();
        assert_eq!(times[0].reuse_64, ReuseBin::COLD);
        // Line 3 lies in the same page.
        assert_eq!(times[0].reuse_page, ReuseBin::of(7));
        assert_eq!((times[1].reuse_64, times[1].reuse_128), (ReuseBin::of(6), ReuseBin::of(7)));
        assert_eq!(times[1].reuse_page, ReuseBin::of(1));
        assert_eq!(times[2].reuse_64, ReuseBin::of(1));
    }

    #[test]
    fn an_instruction_of_several_operations_is_one() {
        let mut observer = Observer::new();
        let jump = ObservedOp {
            starts_instruction: false,
            branch: Some((BranchKind::IndirectJump, true)),
            ..ObservedOp::plain(0x1000, OpClass::Branch)
        };
        [load(1), jump].iter().for_each(|op| observer.execute(op));
        let phase = observer.finish();
        assert_eq!((phase.instructions, phase.mix.count(OpClass::Branch)), (1, 1));
        let branches = phase.branches;
        assert_eq!((branches.executed, branches.taken, branches.indirect), (1, 1, 1));
        assert_eq!(branches.conditional, 0);
    }
}
