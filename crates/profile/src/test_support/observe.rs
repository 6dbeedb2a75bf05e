//! Observes a synthetic stream of micro-operations exactly.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::{
    Access, Branches, Footprint, MicroOp, MicroTrace, OpClass, PREDICTORS, Phase, Reuse, ReuseBin,
    ReuseHistogram, SUPER_SET_CACHES, Stream, SuperSetMap,
};

/// One micro-operation of a synthetic program; each is an instruction.
#[derive(Debug, Clone, Copy)]
pub struct SyntheticOp {
    /// Address of the instruction.
    pub at: u64,
    /// What it needs.
    pub class: OpClass,
    /// Distances to its sources, as in [`MicroOp::sources`].
    pub sources: [u16; 2],
    /// The address that a load or store accesses.
    pub address: Option<u64>,
    /// As in [`MicroOp::mispredicted`].
    pub mispredicted: u8,
}

impl SyntheticOp {
    /// An operation at `at` without sources, access or misprediction.
    pub fn plain(at: u64, class: OpClass) -> Self {
        Self { at, class, sources: [0; 2], address: None, mispredicted: 0 }
    }
}

/// When each line was accessed last, in one stream.
#[derive(Debug, Default)]
struct Clock<K> {
    now: u64,
    last: HashMap<K, u64>,
}

impl<K: Eq + Hash> Clock<K> {
    fn access(&mut self, key: K) -> ReuseBin {
        self.now += 1;
        let before = self.last.insert(key, self.now);
        before.map_or(ReuseBin::COLD, |before| ReuseBin::of(self.now - before))
    }
}

/// Counts what a stream of synthetic micro-operations does.
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
    /// Nothing observed yet.
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

    /// Executes one operation.
    pub fn execute(&mut self, op: &SyntheticOp) {
        let fetch = self.fetch(op.at / 64);
        let access = op.address.map(|address| self.access(address / 64, op.class));
        self.phase.instructions += 1;
        self.phase.mix.ops[op.class.index()] += 1;
        if op.class.is_floating_point() {
            self.phase.mix.by_width[0] += 1;
            self.phase.mix.flops += if op.class == OpClass::FpFma { 2 } else { 1 };
        }
        if op.class == OpClass::Branch {
            let branches: &mut Branches = &mut self.phase.branches;
            branches.executed += 1;
            branches.conditional += 1;
            for size in 0..PREDICTORS {
                branches.mispredicted[size] += u64::from(op.mispredicted >> size & 1);
            }
        }
        if let Some(trace) = &mut self.recording {
            trace.ops.push(MicroOp {
                class: op.class,
                starts_instruction: true,
                sources: op.sources.map(|d| if usize::from(d) > trace.ops.len() { 0 } else { d }),
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
