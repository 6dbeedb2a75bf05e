//! The profile of nothing but a captured window.
//!
//! # Problem
//! A profile describes a phase of billions of instructions, a captured window some million of them. Where two
//! simulators disagree about the two, the fault may be a model's or that of the choice of the window.
//!
//! # Approach
//! The window's counted instructions are observed as the capture observes a program. Reuse times are exact
//! within the window and its warm-up; that of a line last used before is the time that the window takes to
//! bring in as many others ([`super::dated`]): then a cache modelled by reuse times holds the same lines as
//! a simulated one. Predictors are warmed by the warm-up. Micro-traces are taken at even distances, so many
//! that it matters little which: how well a few represent a program is another question.
//!
//! # Properties
//! `the_profile_of_a_window_is_of_its_counted_instructions`,
//! `lines_used_before_the_window_are_no_new_ones`.

use symbiont_profile::observe::{ObservedOp, Observer};
use symbiont_profile::predict::Predictors;
use symbiont_profile::trace::{BranchKind, Line, TraceError, TraceOp};
use symbiont_profile::{Phase, Stream};

use super::CapturedWindow;
use super::dated::ReuseAges;

/// Micro-traces, and instructions of each, at least.
const TRACES: u64 = 100;
const TRACE: u64 = 1_200;
/// Lines of what reuse times are counted of: lines of 64 bytes, of 128, pages.
const SIZES: [u64; 3] = [1, 2, 64];

impl CapturedWindow {
    /// The first `counted` instructions behind the warm-up, as a profile of just these would
    /// describe them; as many as there are.
    ///
    /// # Errors
    /// When the file can no longer be read.
    pub fn as_profiled(&self, counted: u64) -> Result<Phase, TraceError> {
        let window = self.file.window(self.index)?;
        let mut observer = Observer::new();
        let mut predictors = Predictors::new();
        let counted = counted.min(self.info.instructions - self.info.warm_up);
        self.remember(&mut observer, counted)?;
        let stride = (counted / TRACES).max(TRACE);
        let mut begun: u64 = 0;
        for op in window.ops {
            let op = op?;
            if op.starts_instruction {
                let at = begun.checked_sub(self.info.warm_up);
                if at == Some(counted) {
                    break;
                }
                if at == Some(0) {
                    observer.reset();
                }
                let place = at.map(|at| at % stride);
                if matches!(place, Some(0 | TRACE)) {
                    observer.end_trace();
                }
                if place == Some(0) {
                    observer.start_trace();
                }
                begun += 1;
            }
            observer.execute(&observed(&op, &mut predictors));
        }
        observer.end_trace();
        let mut phase = observer.finish();
        // A trace does not contain the width of vectors.
        let part = phase.instructions as f64 / self.phase.instructions.max(1) as f64;
        let scaled = |count: u64| (count as f64 * part).round() as u64;
        phase.mix.by_width = self.phase.mix.by_width.map(scaled);
        phase.mix.flops = scaled(self.phase.mix.flops);
        Ok(phase)
    }

    /// Lets the observer know what was used before the window, of which so many instructions count.
    fn remember(&self, observer: &mut Observer, counted: u64) -> Result<(), TraceError> {
        let window = self.file.window(self.index)?;
        let dated = |lines: &[Line], runs: bool| {
            SIZES.map(|size| ReuseAges::new(lines.iter().map(|line| line.line), size, runs))
        };
        let (mut data, mut code) = (dated(&window.data, false), dated(&window.code, true));
        let mut begun = 0;
        for op in window.ops {
            let op = op?;
            begun += u64::from(op.starts_instruction);
            if begun > self.info.warm_up + counted {
                break;
            }
            code.iter_mut().for_each(|code| code.access(op.at / 64));
            if let Some(address) = op.address {
                data.iter_mut().for_each(|data| data.access(address / 64));
            }
        }
        let streams =
            [(Stream::Data, &window.data, &data), (Stream::Instruction, &window.code, &code)];
        for (stream, lines, dated) in streams {
            let ages = dated.each_ref().map(ReuseAges::ages);
            for line in lines {
                observer.knew(stream, line.line, ages.each_ref().map(|ages| ages.of(line.line)));
            }
        }
        Ok(())
    }
}

fn observed(op: &TraceOp, predictors: &mut Predictors) -> ObservedOp {
    let wrong = op.branch.map_or(0, |branch| match branch.kind {
        BranchKind::Conditional => predictors.conditional(op.at, branch.taken),
        BranchKind::IndirectJump => predictors.indirect(op.at, branch.next),
        BranchKind::IndirectCall => {
            predictors.call(op.at + u64::from(op.length));
            predictors.indirect(op.at, branch.next)
        }
        BranchKind::Call => {
            predictors.call(op.at + u64::from(op.length));
            0
        }
        BranchKind::Return => predictors.returned(branch.next),
        BranchKind::Jump => 0,
    });
    ObservedOp {
        starts_instruction: op.starts_instruction,
        sources: op.sources,
        stored: op.stored,
        address: op.address,
        branch: op.branch.map(|branch| (branch.kind, branch.taken)),
        mispredicted: wrong,
        ..ObservedOp::plain(op.at, op.class)
    }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::test_support::pointer_chasing;
    use symbiont_profile::{OpClass, ReuseBin};

    use super::*;
    use crate::worlds::traces::{PASS, chase};

    fn profiled(lines: u64, counted: u64) -> Phase {
        let known = &pointer_chasing(2_000).phases[0];
        let made = chase(lines, 64);
        let window = CapturedWindow::new(&made.file(), 0, known).unwrap();
        window.as_profiled(counted).unwrap()
    }

    #[test]
    fn the_profile_of_a_window_is_of_its_counted_instructions() {
        let half = PASS as u64 / 2;
        for (asked, counted) in [(half / 4, half / 4), (u64::MAX, half)] {
            let phase = profiled(1000, asked);
            assert_eq!(phase.instructions, counted);
            assert_eq!(phase.mix.count(OpClass::Load), counted / 2);
            let data = &phase.data.line_64;
            assert_eq!((data.accesses, data.cold), (counted / 2, 0));
            assert_eq!(data.counts[ReuseBin::of(1000).index().unwrap()], counted / 2);
            let branches = &phase.branches;
            assert_eq!((branches.executed, branches.conditional), (counted / 2, counted / 2));
            assert!(branches.mispredicted[0] < 3 && branches.taken + 2 > counted / 2);
            let traces = phase.traces.iter().map(|trace| trace.instructions() as u64);
            assert!(traces.clone().count() > 1 && traces.max() == Some(TRACE));
        }
    }

    #[test]
    fn lines_used_before_the_window_are_no_new_ones() {
        // More lines than are touched: half of them were used before.
        let phase = profiled(1 << 16, u64::MAX);
        let data = &phase.data.line_64;
        assert_eq!(data.cold, data.accesses / 2);
    }
}
