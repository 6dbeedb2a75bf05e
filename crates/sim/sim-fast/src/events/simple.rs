//! Events of machines that the papers count little on.

use super::Precision::{AsCause, Exactly, Plainly};
use super::Row;
use crate::activity::Activity;
use crate::activity::Cycle::{EmptyIcache, EmptyMispredict, EmptyOther, Retiring};

pub(super) const SIMPLE: &[Row] = &[
    ("cycles_active", Exactly, Activity::all_cycles),
    ("instructions_retired", Exactly, |a| a.instructions),
    ("cycles_retiring", AsCause, |a| a.cycle(Retiring)),
    ("cycles_empty", AsCause, |a| a.cycles_of(&[EmptyIcache, EmptyMispredict, EmptyOther])),
    ("fp_operations", Plainly, |a| a.flops),
    ("l1d_accesses", Plainly, |a| a.loads + a.stores),
    ("l1d_load_misses", Plainly, |a| a.l1d_misses),
    ("l2_requests_missed", Plainly, |a| a.l2_misses),
    ("memory_lines_read", Plainly, |a| a.memory_near + a.memory_far),
];
