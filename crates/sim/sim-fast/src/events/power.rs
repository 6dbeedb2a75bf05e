//! Events of IBM's processors.

use super::Precision::{AsCause, Exactly, Plainly};
use super::Row;
use crate::activity::Activity;
use crate::activity::Cycle::{
    EmptyIcache, EmptyMispredict, EmptyOther, Finish, Integer, L1, L2, L3, Memory, Retiring, Store,
    Turn, Vector,
};

/// The oldest group waits for its own completion.
fn stall(a: &Activity) -> f64 {
    a.cycles_of(&[Integer, Vector, L1, L2, L3, Memory, Store])
}

fn no_slot(a: &Activity) -> f64 {
    a.cycles_of(&[EmptyIcache, EmptyMispredict, EmptyOther])
}

/// Translation is not distinguished from the L2 here, so stalls on it are the L2's; POWER8 counts
/// them as rejects. Lines from memory are all that the thread causes, those of code and stores too;
/// other cores' L3s serve nothing.
pub(super) const POWER8: &[Row] = &[
    ("PM_RUN_CYC", Exactly, Activity::all_cycles),
    ("PM_RUN_INST_CMPL", Exactly, |a| a.instructions),
    ("PM_GRP_CMPL", AsCause, |a| a.cycle(Retiring)),
    ("PM_CMPLU_STALL", AsCause, stall),
    ("PM_GCT_NOSLOT_CYC", AsCause, no_slot),
    ("PM_CMPLU_STALL_THRD", AsCause, |a| a.cycle(Turn)),
    ("PM_NTCG_ALL_FIN", AsCause, |a| a.cycle(Finish)),
    ("PM_GCT_NOSLOT_IC_MISS", AsCause, |a| a.cycle(EmptyIcache)),
    ("PM_GCT_NOSLOT_BR_MPRED", AsCause, |a| a.cycle(EmptyMispredict)),
    ("PM_FLOP", Plainly, |a| a.flops),
    ("PM_LD_REF_L1", Plainly, |a| a.loads),
    ("PM_ST_FIN", Plainly, |a| a.stores),
    ("PM_DATA_FROM_L2MISS", Plainly, |a| a.l2_load_misses),
    ("PM_DATA_FROM_L3MISS", Plainly, |a| a.llc_load_misses),
    ("PM_DATA_FROM_MEM", Plainly, |a| a.llc_load_misses),
    ("PM_CMPLU_STALL_VSU", AsCause, |a| a.cycle(Vector)),
    ("PM_CMPLU_STALL_DMISS_L2L3", AsCause, |a| a.cycles_of(&[L2, L3])),
    ("PM_CMPLU_STALL_DMISS_L3MISS", AsCause, |a| a.cycle(Memory)),
    ("PM_LD_MISS_L1", Plainly, |a| a.l1d_misses),
    ("PM_DATA_ALL_FROM_L2MISS_MOD", Plainly, |a| a.l2_load_misses),
    ("PM_DATA_ALL_FROM_L3MISS_MOD", Plainly, |a| a.memory_near + a.memory_far),
    ("PM_RUN_CYC_ST_MODE", Plainly, |a| a.modes[0]),
    ("PM_RUN_CYC_SMT2_MODE", Plainly, |a| a.modes[1]),
    ("PM_RUN_CYC_SMT4_MODE", Plainly, |a| a.modes[2]),
    ("PM_RUN_CYC_SMT8_MODE", Plainly, |a| a.modes[3]),
];

/// POWER7 does not report cycles in which all had finished; they stay in its
/// residue. Vector and scalar stalls are not distinguished here: all are scalar.
pub(super) const POWER7: &[Row] = &[
    ("PM_RUN_CYC", Exactly, Activity::all_cycles),
    ("PM_RUN_INST_CMPL", Exactly, |a| a.instructions),
    ("PM_GRP_CMPL", AsCause, |a| a.cycle(Retiring)),
    ("PM_CMPLU_STALL", AsCause, stall),
    ("PM_GCT_NOSLOT_CYC", AsCause, no_slot),
    ("PM_CMPLU_STALL_THRD", AsCause, |a| a.cycle(Turn)),
    ("PM_FLOP", Plainly, |a| a.flops),
    ("PM_LD_REF_L1", Plainly, |a| a.loads),
    ("PM_ST_FIN", Plainly, |a| a.stores),
    ("PM_L2_LDST_MISS", Plainly, |a| a.l2_misses),
    ("PM_DATA_FROM_L2MISS", Plainly, |a| a.l2_load_misses),
    ("PM_DATA_FROM_L3MISS", Plainly, |a| a.llc_load_misses),
    ("PM_DATA_FROM_LMEM", Plainly, |a| a.llc_load_misses - a.far_loads),
    ("PM_DATA_FROM_RMEM", Plainly, |a| a.far_loads),
    ("PM_CMPLU_STALL_SCALAR", AsCause, |a| a.cycle(Vector)),
    ("PM_CMPLU_STALL_VECTOR", AsCause, |_| 0.0),
    ("PM_CMPLU_STALL_DCACHE_MISS", AsCause, |a| a.cycles_of(&[L2, L3, Memory])),
];
