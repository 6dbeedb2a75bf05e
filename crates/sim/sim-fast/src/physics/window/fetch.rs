//! Fetch groups: what the front end delivers in one cycle.
//!
//! The front end serves one thread per cycle: what a cycle leaves unused is lost, to other threads too. A
//! group ends when it is full, after as many taken branches as can be passed in a cycle, or after a
//! mispredicted one. Some cores dispatch and complete operations in groups: so many branches end them,
//! and their other places hold no branch. Where groups begin depends on the operations and the predictor
//! alone, not on times: it is found once ([`marks`]).

use symbiont_profile::OpClass;

use super::super::pipeline::Pipeline;
use super::super::trace::{Op, Trace};
use super::spread;

/// Mark of an operation that begins a group.
pub(super) const BEGINS: u8 = 1;
/// Mark of a mispredicted branch.
pub(super) const MISLEADS: u8 = 2;

/// What the front end makes of each operation, with the predictor of a size.
pub(super) fn marks(pipeline: &Pipeline, trace: &Trace, predictor: usize) -> Box<[u8]> {
    let mut groups = Groups::new(pipeline);
    // A better predictor makes some of the mispredictions, evenly spread.
    let mut erred = 0_u32;
    let kept = (pipeline.mispredicts * (1_u64 << 32) as f64) as u64;
    let mark = |op: &Op| {
        let begins = groups.next(op);
        let flagged = op.mispredicted >> predictor & 1;
        erred += u32::from(flagged);
        let misleads = flagged == 1 && u64::from(spread(erred)) < kept;
        if misleads {
            groups.end();
        }
        u8::from(begins) * BEGINS + u8::from(misleads) * MISLEADS
    };
    trace.ops.iter().map(mark).collect()
}

/// Divides operations into groups.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    most: u32,
    most_taken: u32,
    most_branches: u32,
    most_plain: u32,
    branches: u32,
    plain: u32,
    taken: u32,
    open: bool,
    begun: u32,
}

impl Groups {
    fn new(pipeline: &Pipeline) -> Self {
        let most = pipeline.fetch.max(1);
        let branches = pipeline.group_branches.map(|branches| branches.clamp(1, most));
        Self {
            most,
            most_taken: pipeline.taken.max(1),
            most_branches: branches.unwrap_or(most),
            most_plain: branches.map_or(most, |branches| (most - branches).max(1)),
            branches: 0,
            plain: 0,
            taken: 0,
            open: false,
            begun: 0,
        }
    }

    /// Takes the next operation; does a group begin with it?
    fn next(&mut self, op: &Op) -> bool {
        let branch = op.class == OpClass::Branch;
        let full =
            self.branches + self.plain >= self.most || !branch && self.plain >= self.most_plain;
        let begins = !self.open || full;
        if begins {
            (self.branches, self.plain, self.taken) = (0, 0, 0);
            self.begun += 1;
            self.open = true;
        }
        if branch {
            self.branches += 1;
            self.taken += u32::from(op.taken);
            self.open = self.branches < self.most_branches && self.taken < self.most_taken;
        } else {
            self.plain += 1;
        }
        begins
    }

    /// The group ends with the last operation.
    fn end(&mut self) {
        self.open = false;
    }

    /// Groups that began so far.
    fn begun(&self) -> f64 {
        f64::from(self.begun)
    }

    /// How full groups are that are completed as such; 1 if operations are completed
    /// one by one.
    pub(super) fn fill(pipeline: &Pipeline, trace: &Trace) -> f64 {
        if pipeline.group_branches.is_none() || trace.ops.is_empty() {
            return 1.0;
        }
        let mut groups = Self::new(pipeline);
        for op in &trace.ops {
            groups.next(op);
        }
        trace.ops.len() as f64 / (groups.begun() * f64::from(groups.most))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{op, pipeline};
    use super::*;

    fn begun(pipeline: &Pipeline, ops: &[Op]) -> Vec<bool> {
        let mut groups = Groups::new(pipeline);
        ops.iter().map(|op| groups.next(op)).collect()
    }

    #[test]
    fn a_group_ends_when_full_or_after_a_taken_branch() {
        let plain = op(OpClass::Integer);
        let straight = op(OpClass::Branch);
        let taken = Op { taken: true, ..straight };
        let (o, x) = (false, true);
        assert_eq!(begun(&pipeline(), &[plain; 6]), [x, o, o, o, x, o]);
        assert_eq!(begun(&pipeline(), &[plain, taken, plain, straight, plain]), [x, o, x, o, o]);
        let two = Pipeline { taken: 2, ..pipeline() };
        assert_eq!(begun(&two, &[taken, plain, taken, plain]), [x, o, o, x]);
    }

    #[test]
    fn groups_of_a_completion_table_keep_places_for_branches() {
        let grouped = Pipeline { fetch: 4, group_branches: Some(1), ..pipeline() };
        let (plain, branch) = (op(OpClass::Integer), op(OpClass::Branch));
        let (o, x) = (false, true);
        assert_eq!(begun(&grouped, &[plain, plain, plain, plain]), [x, o, o, x]);
        assert_eq!(
            begun(&grouped, &[plain, branch, plain, plain, plain, branch]),
            [x, o, x, o, o, o]
        );
        let ops = vec![plain; 300];
        let trace = Trace { instructions: 300.0, ops, ..Trace::default() };
        assert!((Groups::fill(&grouped, &trace) - 0.75).abs() < 1e-9);
        assert_eq!(Groups::fill(&pipeline(), &trace), 1.0);
    }
}
