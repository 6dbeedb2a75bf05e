//! A window of a program's captured trace as an endless stream of operations.
//!
//! # Approach
//! Operations, dependences, addresses and branches are the program's own. They are read from the file as
//! they are needed, a chunk at a time. What the caches held before the window comes from the lines that
//! precede it in the file, dated by the profile's reuse times; the warm-up of the window is skimmed, outside
//! of time ([`crate::Chip::skim`]).
//!
//! *Repetition*: a window that ends starts again, warm-up included. What was new data to the program must
//! then not hit in a cache: lines of data that had not been used before the window are different lines in
//! each pass (for 32 passes).
//!
//! *Memory*: each thread has an address space of its own (the caches learn which code two threads share:
//! [`Walk::origin`]). Its memory is contiguous, as with large pages, and offset by some pages
//! from that of other threads, so that equal addresses of two programs are not always in equal sets.
//!
//! *Branches*: conditional and indirect ones and returns are predicted by the core's predictor; direct jumps
//! and calls are always predicted right.
//!
//! *Profile of the window*: [`CapturedWindow::as_profiled`] gives the profile of nothing but the window, so
//! that another simulator can be asked about the very same instructions.
//!
//! # What this leaves out
//! The operating system; memory that threads share; reuses over more than a window, of which repetition
//! makes reuses over one window.
//!
//! # Properties
//! `operations_are_the_programs`, `a_window_that_ends_begins_anew_with_new_lines`,
//! `two_threads_share_no_address`, `a_damaged_window_is_refused`,
//! `the_profile_of_a_window_is_of_its_counted_instructions`; at the cycle level:
//! `a_captured_program_runs_as_it_must`.

mod dated;
mod profiled;

use std::fmt;
use std::sync::{Arc, OnceLock};

use symbiont_profile::trace::{
    Branch as Did, BranchKind, Line, TraceError, TraceFile, TraceOp, TraceOps, WindowInfo,
};
use symbiont_profile::{Phase, ReuseHistogram};

use crate::op::{Branch, Op};
use crate::replay::{PastAccess, Touch};

/// log₂ of the bytes of a trace's lines, and of the pages that operations name.
const LINE: u32 = 6;
const PAGE: u32 = 12;
/// Bits of an address of the program, of the pass, and the thread's place above these.
const ADDRESS_BITS: u32 = 48;
const PASS_BITS: u32 = 5;
const SPACE: u32 = 54;
/// Pages by which threads may be apart: 256 MiB.
const APART: u64 = 1 << 16;

/// A window that was read once and is whole.
#[derive(Debug)]
pub struct CapturedWindow {
    file: TraceFile,
    index: usize,
    info: WindowInfo,
    /// The profile's phase, without its micro-traces.
    phase: Arc<Phase>,
    failed: Arc<OnceLock<TraceError>>,
}

impl CapturedWindow {
    /// The window of a trace, which is of `phase` of its program's profile; reads all of it.
    ///
    /// # Errors
    /// When there is no such window, or it cannot be read or is damaged.
    pub fn new(file: &TraceFile, index: usize, phase: &Phase) -> Result<Self, TraceError> {
        let mut window = file.window(index)?;
        window.ops.try_for_each(|op| op.map(drop))?;
        let missing = || TraceError::NoWindow {
            name: file.about().program.clone(),
            index,
            windows: file.windows().len(),
        };
        let info = file.windows().get(index).ok_or_else(missing)?.clone();
        let phase = Phase { traces: Vec::new(), super_sets: Vec::new(), ..phase.clone() };
        let phase = Arc::new(phase);
        Ok(Self { file: file.clone(), index, info, phase, failed: Arc::default() })
    }

    /// What it is.
    #[must_use]
    pub fn info(&self) -> &WindowInfo {
        &self.info
    }

    /// What went wrong since while it was read: a stream ends there.
    #[must_use]
    pub fn failed(&self) -> Option<&TraceError> {
        self.failed.get()
    }

    /// A thread that begins with the window; `space`, below 256, distinguishes threads.
    ///
    /// # Errors
    /// When the file can no longer be read.
    pub fn begin(&self, space: u8) -> Result<Walk, TraceError> {
        let window = self.file.window(self.index)?;
        // Any two spaces are apart by other steps.
        let apart = u64::from(space).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Ok(Walk {
            file: self.file.clone(),
            index: self.index,
            space: Space {
                base: u64::from(space) << SPACE,
                moved: (apart % APART) << PAGE,
                pass: 0,
            },
            data: window.data,
            code: window.code,
            known: Vec::new(),
            ops: window.ops,
            phase: Arc::clone(&self.phase),
            failed: Arc::clone(&self.failed),
        })
    }
}

/// Where a thread's memory lies.
#[derive(Debug, Clone, Copy)]
struct Space {
    base: u64,
    moved: u64,
    pass: u64,
}

impl Space {
    /// What the caches see of an address.
    fn place(self, address: u64) -> u64 {
        self.base | (address.wrapping_add(self.moved) & ((1 << ADDRESS_BITS) - 1))
    }

    /// The same of data that are new in each pass.
    fn fresh(self, address: u64) -> u64 {
        self.place(address) | (self.pass & ((1 << PASS_BITS) - 1)) << ADDRESS_BITS
    }
}

/// A thread that goes through a window again and again.
pub struct Walk {
    file: TraceFile,
    index: usize,
    space: Space,
    /// Lines used before the window, the least recently used first.
    data: Vec<Line>,
    code: Vec<Line>,
    /// From the second pass on: numbers of the lines of data used before, in order.
    known: Vec<u64>,
    ops: TraceOps,
    phase: Arc<Phase>,
    failed: Arc<OnceLock<TraceError>>,
}

/// How many instructions ago the most recently used of `lines` lines were last used, longest ago
/// first.
fn ages(phase: &Phase, reuse: &ReuseHistogram, lines: usize) -> Vec<f64> {
    let curve = reuse.curve();
    let rate = phase.per_instruction(reuse.accesses).max(1e-12);
    let mut back = 0.0_f64;
    let mut ages: Vec<f64> = (0..lines)
        .map(|line| {
            let reach = curve.reach(line as f64 + 0.5);
            // Those that the profile does not know follow closely.
            back = if reach.is_finite() { reach.max(back + 1.0) } else { back + 1.0 };
            back / rate
        })
        .collect();
    ages.reverse();
    ages
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Walk {
    /// Where the program's address 0 lies: what lies in the same place of two threads is as far apart
    /// as these.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.space.base.wrapping_add(self.space.moved)
    }

    /// What the thread touched before the window, the least recently used first: the last `most` lines
    /// of data and of code; the window begins `ahead` instructions after now. Can be asked for once.
    pub fn past(&mut self, most: usize, ahead: u64) -> Vec<Touch> {
        let (data, code) = (std::mem::take(&mut self.data), std::mem::take(&mut self.code));
        let mut touches = Vec::new();
        let phase = &self.phase;
        let streams = [(&data, &phase.data.line_64, false), (&code, &phase.code.line_64, true)];
        for (lines, reuse, is_code) in streams {
            let kept = lines.len().min(most);
            let ages = ages(phase, reuse, kept);
            let mut last_page = None;
            for (line, age) in lines[lines.len() - kept..].iter().zip(ages) {
                let instructions_ago = ahead as f64 + age;
                let address = self.space.place(line.line << LINE);
                let page = address >> PAGE;
                let (what, of_page) = if is_code {
                    (PastAccess::Code { address }, PastAccess::CodePage(page))
                } else {
                    (PastAccess::Data { address, writes: line.written }, PastAccess::DataPage(page))
                };
                touches.push(Touch { instructions_ago, what });
                if last_page.replace(page) != Some(page) {
                    touches.push(Touch { instructions_ago, what: of_page });
                }
            }
        }
        touches.sort_by(|a, b| b.instructions_ago.total_cmp(&a.instructions_ago));
        touches
    }

    fn again(&mut self) -> Result<(), TraceError> {
        let window = self.file.window(self.index)?;
        if self.space.pass == 0 {
            self.known = window.data.iter().map(|line| line.line).collect();
            self.known.sort_unstable();
        }
        self.space.pass += 1;
        self.ops = window.ops;
        Ok(())
    }

    /// The next operation, of this pass or the next.
    fn read(&mut self) -> Result<Option<TraceOp>, TraceError> {
        if let Some(op) = self.ops.next() {
            return op.map(Some);
        }
        self.again()?;
        self.ops.next().transpose()
    }

    fn made(&self, op: &TraceOp) -> Op {
        let pc = self.space.place(op.at);
        let known = |address: u64| {
            self.space.pass == 0 || self.known.binary_search(&(address >> LINE)).is_ok()
        };
        let address = op.address.map_or(0, |address| {
            if known(address) { self.space.place(address) } else { self.space.fresh(address) }
        });
        let (branch, taken) = match op.branch {
            None => (Branch::Foreseen, false),
            Some(Did { kind, taken, next }) => {
                let after = op.at.wrapping_add(u64::from(op.length));
                (guessed(kind, taken, next as u32, after as u32), taken)
            }
        };
        Op {
            class: op.class,
            starts_instruction: op.starts_instruction,
            sources: op.sources,
            stored: op.stored,
            branch,
            taken,
            pc,
            code_page: pc >> PAGE,
            address,
            page: address >> PAGE,
        }
    }
}

/// `target`, `after`: the low bits of where it went, and of the address behind it.
fn guessed(kind: BranchKind, taken: bool, target: u32, after: u32) -> Branch {
    match kind {
        BranchKind::Conditional => Branch::Conditional { taken },
        BranchKind::IndirectJump => Branch::Indirect { target },
        BranchKind::IndirectCall => Branch::IndirectCall { target, after },
        BranchKind::Call => Branch::Call { after },
        BranchKind::Return => Branch::Return { target },
        BranchKind::Jump => Branch::Foreseen,
    }
}

impl Iterator for Walk {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        match self.read() {
            Ok(op) => op.map(|op| self.made(&op)),
            Err(error) => {
                // The first is the one that counts.
                let _ = self.failed.set(error);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::{OpClass, test_support as synthetic};

    use super::*;
    use crate::worlds::traces::{PASS, chase};

    fn captured(file: &TraceFile, index: usize) -> Result<CapturedWindow, TraceError> {
        CapturedWindow::new(file, index, &synthetic::pointer_chasing(2_000).phases[0])
    }

    fn walk(space: u8) -> Walk {
        let made = chase(1000, 64);
        captured(&made.file(), 0).unwrap().begin(space).unwrap()
    }

    #[test]
    fn operations_are_the_programs() {
        let ops: Vec<Op> = walk(0).take(PASS).collect();
        let loads: Vec<&Op> = ops.iter().filter(|op| op.class == OpClass::Load).collect();
        assert_eq!(loads.len(), PASS / 2);
        // Each load of a chain makes the address of the next.
        assert!(loads[1..].iter().all(|load| load.sources == [2, 0]));
        assert!(loads.windows(2).all(|pair| pair[1].address.abs_diff(pair[0].address) == 64
            || pair[1].address < pair[0].address));
        let branches = ops.iter().filter(|op| op.class == OpClass::Branch);
        let jumped = branches.filter(|op| op.branch == Branch::Conditional { taken: true });
        assert!(jumped.count() > PASS / 2 - 10);
    }

    #[test]
    fn a_window_that_ends_begins_anew_with_new_lines() {
        let ops: Vec<Op> = walk(1).take(2 * PASS).collect();
        let (first, second) = ops.split_at(PASS);
        for (a, b) in first.iter().zip(second) {
            assert_eq!((a.pc, a.class), (b.pc, b.class));
            if a.class == OpClass::Load {
                // Half of the lines had been used before.
                let before = (a.address >> LINE) % 2 == 0;
                assert_eq!(a.address == b.address, before, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn two_threads_share_no_address() {
        let addresses = |space| -> std::collections::BTreeSet<u64> {
            walk(space)
                .take(2 * PASS)
                .flat_map(|op| [op.address, op.pc])
                .filter(|a| *a > 0)
                .collect()
        };
        assert!(addresses(1).is_disjoint(&addresses(2)));
    }

    #[test]
    fn a_damaged_window_is_refused() {
        let made = chase(1000, 64);
        let file = made.file();
        made.damage();
        assert!(matches!(captured(&file, 0), Err(TraceError::Damaged { .. })));
        assert!(matches!(captured(&file, 7), Err(TraceError::NoWindow { .. })));
    }
}
