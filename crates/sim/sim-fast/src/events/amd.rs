//! Events of AMD's processors.

use super::Precision::{AsCause, Exactly, Plainly};
use super::Row;
use crate::activity::Activity;
use crate::activity::Cycle::{
    EmptyIcache, EmptyMispredict, EmptyOther, Finish, Integer, L1, L2, L3, Memory, Retiring, Store,
    Turn, Vector,
};
use crate::activity::Slot;

fn frontend_slots(a: &Activity) -> f64 {
    a.slots_of(&[Slot::FetchLatency, Slot::FetchBandwidth])
}

fn backend_slots(a: &Activity) -> f64 {
    a.slots_of(&[Slot::Core, Slot::L1, Slot::L2, Slot::L3, Slot::Memory, Slot::Store])
}

fn empty(a: &Activity) -> f64 {
    a.cycles_of(&[EmptyIcache, EmptyMispredict, EmptyOther])
}

/// Lines that a prefetch, not a load, brought from memory.
fn prefetched(a: &Activity) -> f64 {
    (a.memory_near + a.memory_far - a.llc_load_misses).max(0.0)
}

/// Nothing: this machine does not do it.
fn never(_: &Activity) -> f64 {
    0.0
}

/// Dispatch is four micro-ops wide. Whose cycles with a busy floating-point unit are counted is for
/// [`crate::machine::Errors`] to say.
pub(super) const BULLDOZER: &[Row] = &[
    ("CPU_CLK_UNHALTED", Exactly, Activity::all_cycles),
    ("RETIRED_INSTRUCTIONS", Exactly, |a| a.instructions),
    ("CYCLES_FPU_EMPTY", Plainly, |a| (a.all_cycles() - a.vector_cycles).max(0.0)),
    ("DECODER_EMPTY", AsCause, empty),
    ("DISPATCH_STALLS", AsCause, |a| backend_slots(a) / 4.0),
    ("RETIRED_UOPS", Plainly, |a| a.uops),
    ("DATA_CACHE_ACCESSES", Plainly, |a| a.loads + a.stores),
    ("L2_CACHE_MISS", Plainly, |a| a.l2_misses),
    ("DATA_CACHE_REFILLS_FROM_NORTHBRIDGE", Plainly, |a| a.l2_load_misses),
];

pub(super) const ZEN4: &[Row] = &[
    ("ls_not_halted_cyc", Exactly, Activity::all_cycles),
    ("ex_ret_instr", Exactly, |a| a.instructions),
    ("de_no_dispatch_per_slot.no_ops_from_frontend", AsCause, frontend_slots),
    ("de_no_dispatch_per_slot.backend_stalls", AsCause, backend_slots),
    ("de_no_dispatch_per_slot.smt_contention", AsCause, |a| a.slot(Slot::OtherThread)),
    ("de_src_op_disp.all", Plainly, |a| a.uops + a.slot(Slot::BadSpeculation)),
    ("ex_ret_ops", Plainly, |a| a.uops),
    ("ex_ret_brn_misp", Plainly, |a| a.mispredicted),
    ("resyncs_or_nc_redirects", Plainly, never),
    ("ex_no_retire.all", AsCause, |a| a.all_cycles() - a.cycle(Retiring)),
    ("ex_no_retire.not_complete", AsCause, |a| {
        a.cycles_of(&[Integer, Vector, L1, L2, L3, Memory, Store, Finish])
    }),
    ("ex_no_retire.load_not_complete", AsCause, |a| a.cycles_of(&[L1, L2, L3, Memory])),
    ("ex_no_retire.empty", AsCause, empty),
    ("ex_no_retire.thread_not_selected", AsCause, |a| a.cycle(Turn)),
    ("ex_ret_ucode_ops", Plainly, never),
    ("fp_ret_sse_avx_ops.all", Plainly, |a| a.flops),
    ("ls_dispatch.ld_dispatch", Plainly, |a| a.loads),
    ("ls_dispatch.store_dispatch", Plainly, |a| a.stores),
    ("ls_dispatch.ld_st_dispatch", Plainly, never),
    ("l2_cache_req_stat.ic_dc_miss_in_l2", Plainly, |a| a.l2_misses),
    ("l2_pf_miss_l2_hit_l3.all", Plainly, never),
    ("l2_pf_miss_l2_l3.all", Plainly, prefetched),
    ("ls_any_fills_from_sys.dram_io_near", Plainly, |a| a.memory_near),
    ("ls_any_fills_from_sys.dram_io_far", Plainly, |a| a.memory_far),
    ("ls_any_fills_from_sys.remote_cache", Plainly, never),
    ("de_no_dispatch_per_slot.no_ops_cycles", AsCause, |a| a.slot(Slot::FetchLatency) / 6.0),
];
