//! Events of Intel's processors.

use super::Precision::{AsCause, Exactly, Plainly};
use super::Row;
use crate::activity::Activity;
use crate::activity::Cycle::{EmptyIcache, EmptyMispredict, EmptyOther, Store};
use crate::activity::{Cycle, Slot};

/// Slots that the front end left empty.
fn not_delivered(a: &Activity) -> f64 {
    a.slots_of(&[Slot::FetchLatency, Slot::FetchBandwidth])
}

/// Share of the cycles in which it is this thread's turn to get slots: on
/// Broadwell, threads of a core take turns, and slots count in the own turn only.
fn turn(a: &Activity) -> f64 {
    let cycles = a.all_cycles();
    if cycles > 0.0 { (1.0 + a.modes[0] / cycles) / 2.0 } else { 1.0 }
}

/// Slots lost to memory.
fn memory_slots(a: &Activity) -> f64 {
    a.slots_of(&[Slot::L1, Slot::L2, Slot::L3, Slot::Memory, Slot::Store])
}

/// Slots that the back end could not take.
fn backend_slots(a: &Activity) -> f64 {
    a.slot(Slot::Core) + memory_slots(a)
}

/// Slots of the thread: those that the other one had are not its own.
fn own_slots(a: &Activity) -> f64 {
    a.all_slots() - a.slot(Slot::OtherThread)
}

/// Cycles in which a load beyond this level held the thread up.
fn beyond_core(a: &Activity) -> f64 {
    a.cycles_of(&[Cycle::L1, Cycle::L2, Cycle::L3, Cycle::Memory])
}

fn beyond_l1(a: &Activity) -> f64 {
    a.cycles_of(&[Cycle::L2, Cycle::L3, Cycle::Memory])
}

fn beyond_l2(a: &Activity) -> f64 {
    a.cycles_of(&[Cycle::L3, Cycle::Memory])
}

/// Cycles without execution: the rest of those without retirement is taken as
/// execution of what retires later.
fn idle(a: &Activity) -> f64 {
    beyond_core(a) + a.cycles_of(&[EmptyIcache, EmptyMispredict, EmptyOther, Store])
}

/// Cycles in which at least `k` micro-ops executed: geometrically distributed
/// over the cycles with execution, around their mean.
fn executing(a: &Activity, k: i32) -> f64 {
    let cycles = (a.all_cycles() - idle(a)).max(0.0);
    let mean = if cycles > 0.0 { (a.uops / cycles).max(1.0) } else { 1.0 };
    cycles * (1.0 - 1.0 / mean).powi(k - 1)
}

/// Cycles in which the front end delivered anything, and in which as much as
/// it can.
fn delivering(a: &Activity) -> f64 {
    (a.all_cycles() - a.slot(Slot::FetchLatency) / 4.0).max(0.0)
}

fn delivering_all(a: &Activity) -> f64 {
    (a.all_cycles() - not_delivered(a) / 4.0).max(0.0)
}

/// Nothing: this machine does not do it.
fn never(_: &Activity) -> f64 {
    0.0
}

/// The reference clock is taken as a 24th of the core's; only ratios of its
/// counts are used.
const REFERENCE: f64 = 24.0;

pub(super) const BROADWELL: &[Row] = &[
    ("INST_RETIRED.ANY", Exactly, |a| a.instructions),
    ("CPU_CLK_UNHALTED.THREAD", Exactly, Activity::all_cycles),
    ("IDQ_UOPS_NOT_DELIVERED.CORE", AsCause, |a| not_delivered(a) * turn(a)),
    ("UOPS_ISSUED.ANY", Plainly, |a| a.uops + a.slot(Slot::BadSpeculation) * turn(a)),
    ("UOPS_RETIRED.RETIRE_SLOTS", Plainly, |a| a.uops),
    ("INT_MISC.RECOVERY_CYCLES", AsCause, never),
    ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", Plainly, |a| a.modes[0] / REFERENCE),
    ("CPU_CLK_UNHALTED.REF_XCLK", Plainly, |a| a.all_cycles() / REFERENCE),
    ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", AsCause, |a| {
        a.slot(Slot::FetchLatency) * turn(a) / 4.0
    }),
    ("ICACHE.IFDATA_STALL", AsCause, |a| a.cycle(EmptyIcache)),
    ("CYCLE_ACTIVITY.STALLS_MEM_ANY", AsCause, beyond_core),
    ("CYCLE_ACTIVITY.STALLS_L1D_MISS", AsCause, beyond_l1),
    ("CYCLE_ACTIVITY.STALLS_L2_MISS", AsCause, beyond_l2),
    ("RESOURCE_STALLS.SB", AsCause, |a| a.cycle(Store)),
    ("CYCLE_ACTIVITY.STALLS_TOTAL", AsCause, idle),
    ("UOPS_EXECUTED.CYCLES_GE_1_UOP_EXEC", AsCause, |a| executing(a, 1)),
    ("UOPS_EXECUTED.CYCLES_GE_2_UOPS_EXEC", AsCause, |a| executing(a, 2)),
    ("UOPS_EXECUTED.CYCLES_GE_3_UOPS_EXEC", AsCause, |a| executing(a, 3)),
    ("RS_EVENTS.EMPTY_CYCLES", AsCause, |a| {
        a.cycles_of(&[EmptyIcache, EmptyMispredict, EmptyOther])
    }),
    ("MEM_LOAD_UOPS_RETIRED.L3_HIT", Plainly, |a| a.l2_load_misses - a.llc_load_misses),
    ("MEM_LOAD_UOPS_RETIRED.L3_MISS", Plainly, |a| a.llc_load_misses),
    ("ARITH.FPU_DIV_ACTIVE", Plainly, |a| a.divider_cycles),
    ("BR_MISP_RETIRED.ALL_BRANCHES", Plainly, |a| a.mispredicted),
    ("MACHINE_CLEARS.COUNT", Plainly, never),
    ("BACLEARS.ANY", Plainly, never),
    ("IDQ.MS_SWITCHES", Plainly, never),
    ("IDQ.ALL_DSB_CYCLES_ANY_UOPS", Plainly, never),
    ("IDQ.ALL_DSB_CYCLES_4_UOPS", Plainly, never),
    ("IDQ.ALL_MITE_CYCLES_ANY_UOPS", Plainly, delivering),
    ("IDQ.ALL_MITE_CYCLES_4_UOPS", Plainly, delivering_all),
    ("DSB2MITE_SWITCHES.PENALTY_CYCLES", AsCause, never),
    ("ILD_STALL.LCP", AsCause, never),
    ("ITLB_MISSES.STLB_HIT", Plainly, |a| a.itlb_misses),
    ("ITLB_MISSES.WALK_COMPLETED", Plainly, never),
    ("ITLB_MISSES.WALK_CYCLES", AsCause, never),
    ("MEM_UOPS_RETIRED.ALL_LOADS", Plainly, |a| a.loads),
    ("MEM_UOPS_RETIRED.ALL_STORES", Plainly, |a| a.stores),
    ("FP_ARITH_INST_RETIRED.SCALAR", Plainly, |a| a.fp_scalar),
    ("FP_ARITH_INST_RETIRED.PACKED", Plainly, |a| a.fp_packed),
    ("L2_RQSTS.MISS", Plainly, |a| a.l2_misses),
    ("LONGEST_LAT_CACHE.MISS", Plainly, |a| a.llc_load_misses),
    ("OFFCORE_RESPONSE.ALL_READS.LLC_MISS.ANY_RESPONSE", Plainly, |a| a.memory_near + a.memory_far),
];

/// Sapphire Rapids and the performance cores of Alder Lake.
pub(super) const GOLDEN_COVE: &[Row] = &[
    ("INST_RETIRED.ANY", Exactly, |a| a.instructions),
    ("CPU_CLK_UNHALTED.THREAD", Exactly, Activity::all_cycles),
    ("TOPDOWN.SLOTS", Exactly, own_slots),
    ("TOPDOWN.BACKEND_BOUND_SLOTS", AsCause, backend_slots),
    ("IDQ_UOPS_NOT_DELIVERED.CORE", AsCause, not_delivered),
    ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", AsCause, |a| {
        a.slot(Slot::FetchLatency) / 6.0
    }),
    ("UOPS_RETIRED.SLOTS", Plainly, |a| a.uops),
    ("INT_MISC.UOP_DROPPING", AsCause, never),
    ("TOPDOWN.MEMORY_BOUND_SLOTS", AsCause, memory_slots),
    ("TOPDOWN.BR_MISPREDICT_SLOTS", AsCause, |a| a.slot(Slot::BadSpeculation)),
    ("EXE_ACTIVITY.BOUND_ON_LOADS", AsCause, beyond_core),
    ("MEMORY_ACTIVITY.STALLS_L1D_MISS", AsCause, beyond_l1),
    ("MEMORY_ACTIVITY.STALLS_L2_MISS", AsCause, beyond_l2),
    ("MEMORY_ACTIVITY.STALLS_L3_MISS", AsCause, |a| a.cycle(Cycle::Memory)),
    ("EXE_ACTIVITY.BOUND_ON_STORES", AsCause, |a| a.cycle(Store)),
    ("ARITH.DIV_ACTIVE", Plainly, |a| a.divider_cycles),
    ("ICACHE_DATA.STALLS", AsCause, |a| a.cycle(EmptyIcache)),
    ("ICACHE_TAG.STALLS", AsCause, never),
    ("INT_MISC.CLEAR_RESTEER_CYCLES", AsCause, |a| a.cycle(EmptyMispredict)),
    ("DSB2MITE_SWITCHES.PENALTY_CYCLES", AsCause, never),
    ("DECODE.LCP", AsCause, never),
    ("MEM_INST_RETIRED.ALL_LOADS", Plainly, |a| a.loads),
    ("MEM_INST_RETIRED.ALL_STORES", Plainly, |a| a.stores),
    ("FP_ARITH_INST_RETIRED.SCALAR", Plainly, |a| a.fp_scalar),
    ("FP_ARITH_INST_RETIRED.VECTOR", Plainly, |a| a.fp_packed),
    ("L2_RQSTS.MISS", Plainly, |a| a.l2_misses),
    ("LONGEST_LAT_CACHE.MISS", Plainly, |a| a.llc_load_misses),
    ("OCR.READS_TO_CORE.L3_MISS", Plainly, |a| a.memory_near + a.memory_far),
    ("OCR.DEMAND_DATA_RD.L3_MISS", Plainly, |a| a.llc_load_misses),
];

/// The efficiency cores of Alder Lake; no hyper-threading, so all slots are
/// the thread's own.
pub(super) const GRACEMONT: &[Row] = &[
    ("INST_RETIRED.ANY", Exactly, |a| a.instructions),
    ("CPU_CLK_UNHALTED.CORE", Exactly, Activity::all_cycles),
    ("TOPDOWN_FE_BOUND.ALL", AsCause, not_delivered),
    ("TOPDOWN_BE_BOUND.ALL", AsCause, backend_slots),
    ("TOPDOWN_RETIRING.ALL", Plainly, |a| a.uops),
    ("TOPDOWN_BAD_SPECULATION.ALL", AsCause, |a| a.slot(Slot::BadSpeculation)),
    ("TOPDOWN_FE_BOUND.FRONTEND_LATENCY", AsCause, |a| a.slot(Slot::FetchLatency)),
    ("TOPDOWN_FE_BOUND.FRONTEND_BANDWIDTH", AsCause, |a| a.slot(Slot::FetchBandwidth)),
    ("TOPDOWN_BAD_SPECULATION.MISPREDICT", AsCause, |a| a.slot(Slot::BadSpeculation)),
    ("TOPDOWN_BAD_SPECULATION.MACHINE_CLEARS", AsCause, never),
    ("TOPDOWN_BE_BOUND.ALLOC_RESTRICTIONS", AsCause, never),
    ("TOPDOWN_FE_BOUND.ICACHE", AsCause, |a| {
        let empty = a.cycles_of(&[EmptyIcache, EmptyMispredict]);
        let share = if empty > 0.0 { a.cycle(EmptyIcache) / empty } else { 0.0 };
        a.slot(Slot::FetchLatency) * share
    }),
    ("TOPDOWN_FE_BOUND.ITLB", AsCause, never),
    ("TOPDOWN_FE_BOUND.BRANCH_RESTEER", AsCause, |a| {
        let empty = a.cycles_of(&[EmptyIcache, EmptyMispredict]);
        let share = if empty > 0.0 { a.cycle(EmptyMispredict) / empty } else { 0.0 };
        a.slot(Slot::FetchLatency) * share
    }),
    ("MEM_BOUND_STALLS.LOAD", AsCause, beyond_l1),
    ("MEM_BOUND_STALLS.LOAD_L2_HIT", AsCause, |a| a.cycle(Cycle::L2)),
    ("MEM_BOUND_STALLS.LOAD_LLC_HIT", AsCause, |a| a.cycle(Cycle::L3)),
    ("MEM_BOUND_STALLS.LOAD_DRAM_HIT", AsCause, |a| a.cycle(Cycle::Memory)),
    ("MEM_UOPS_RETIRED.ALL_LOADS", Plainly, |a| a.loads),
    ("MEM_UOPS_RETIRED.ALL_STORES", Plainly, |a| a.stores),
    ("UOPS_RETIRED.FPDIV", Plainly, |a| a.fp_divisions),
    ("UOPS_RETIRED.X87", Plainly, never),
    ("LONGEST_LAT_CACHE.REFERENCE", Plainly, |a| a.l2_misses),
    ("LONGEST_LAT_CACHE.MISS", Plainly, |a| a.llc_load_misses),
    ("OCR.DEMAND_DATA_RD.L3_MISS", Plainly, |a| a.llc_load_misses),
];
