//! Formulas of each machine, from counts that are published or worked out by
//! hand. The counts by hand are round numbers; the expressions that they go
//! through are those of the sources that stand in the catalogues.

use super::formulas::{counts, expect, value};
use super::*;

/// The parts of a sum, from these counts, add up to what they should.
fn adds_up(catalogue: &Catalogue, sum: &str, list: &[(&str, f64)]) {
    let counts = counts(list);
    let sum = catalogue.sums().iter().find(|known| known.name == sum).expect("a known sum");
    let parts: f64 = sum.parts.iter().map(|part| value(catalogue, part, &counts)).sum();
    let total = sum.total.as_ref().map_or(1.0, |total| value(catalogue, total, &counts));
    assert!((parts - total).abs() < 1e-12, "{}: {parts} is not {total}", catalogue.name());
}

/// The example of perf-stat(1) (tools/perf/Documentation/perf-stat.txt): a
/// whole `make`, with 1.36 instructions per cycle and 0.039 million page
/// faults a second.
#[test]
fn the_example_of_the_perf_stat_manual_comes_out() {
    let list = [
        ("cpu_cycles", 229_570_665_834.0),
        ("instructions_retired", 313_163_853_778.0),
        ("task_clock", 83_723_452_481.0),
        ("page_faults", 3_228_188.0),
        ("context_switches", 0.0),
    ];
    let counts = counts(&list);
    let ipc = value(&shipped("generic"), "ipc", &counts);
    assert!((ipc - 1.36).abs() < 0.005, "{ipc}");
    let software = shipped("software");
    let faults = value(&software, "fault_rate", &counts) * 1e9 / 1e6;
    assert!((faults - 0.039).abs() < 0.0005, "{faults} M/s");
    assert_eq!(value(&software, "switch_rate", &counts), 0.0, "counted, and none");
}

/// The stacks of the other POWER machines, component by component (their CPI
/// stacks in perf's tables; Feliu et al., Table 1, for the names).
#[test]
fn power_stacks_and_their_residue_equal_run_cycles() {
    let power7 = [
        ("PM_RUN_CYC", 2_000.0),
        ("PM_RUN_INST_CMPL", 1_000.0),
        ("PM_GRP_CMPL", 500.0),
        ("PM_CMPLU_STALL", 1_000.0),
        ("PM_CMPLU_STALL_THRD", 200.0),
        ("PM_GCT_NOSLOT_CYC", 300.0),
    ];
    let expected = [
        ("cpi_base", 0.5),
        ("cpi_stall", 0.8),
        ("cpi_thread", 0.2),
        ("cpi_empty", 0.3),
        ("cpi_other", 0.2),
    ];
    expect(&shipped("power7"), &counts(&power7), &expected);
    adds_up(&shipped("power7"), "cpi_stack", &power7);
    let power9 = [
        ("PM_RUN_CYC", 2_000.0),
        ("PM_RUN_INST_CMPL", 1_000.0),
        ("PM_1PLUS_PPC_CMPL", 400.0),
        ("PM_CMPLU_STALL", 900.0),
        ("PM_ICT_NOSLOT_CYC", 300.0),
        ("PM_CMPLU_STALL_THRD", 250.0),
    ];
    expect(&shipped("power9"), &counts(&power9), &[("cpi_stall", 0.9), ("cpi_other", 0.15)]);
    adds_up(&shipped("power9"), "cpi_stack", &power9);
    let power10 = [
        ("PM_RUN_CYC", 1_600.0),
        ("PM_RUN_INST_CMPL", 1_000.0),
        ("PM_DISP_STALL_CYC", 300.0),
        ("PM_ISSUE_STALL", 200.0),
        ("PM_EXEC_STALL", 800.0),
        ("PM_CMPL_STALL", 100.0),
    ];
    expect(&shipped("power10"), &counts(&power10), &[("cpi_stall", 0.8), ("cpi_other", 0.2)]);
    adds_up(&shipped("power10"), "cpi_stack", &power10);
}

/// Yasin's level 1 and the split of the back end on a four-wide core alone
/// (Intel's Top-Down tables for Cascade Lake).
#[test]
fn skylake_level_1_sums_to_one_and_memory_takes_its_share() {
    let list = [
        ("CPU_CLK_UNHALTED.THREAD", 1_000.0),
        ("INST_RETIRED.ANY", 1_500.0),
        ("CPU_CLK_UNHALTED.REF_XCLK", 100.0),
        ("CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", 100.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 600.0),
        ("UOPS_ISSUED.ANY", 2_000.0),
        ("UOPS_RETIRED.RETIRE_SLOTS", 1_800.0),
        ("INT_MISC.RECOVERY_CYCLES", 30.0),
        ("CYCLE_ACTIVITY.STALLS_MEM_ANY", 200.0),
        ("CYCLE_ACTIVITY.STALLS_TOTAL", 350.0),
        ("EXE_ACTIVITY.BOUND_ON_STORES", 50.0),
        ("EXE_ACTIVITY.1_PORTS_UTIL", 120.0),
        ("EXE_ACTIVITY.2_PORTS_UTIL", 100.0),
    ];
    let skylake = shipped("skylake-sp");
    let expected = [
        ("ipc", 1.5),
        ("frontend_bound", 0.15),
        ("bad_speculation", 0.05 + 0.03),
        ("retiring", 0.45),
        ("backend_bound", 0.32),
        ("few_ports", 0.165),
        ("memory_bound", 0.32 * 0.25 / 0.565),
        ("cpi_base", 0.3),
    ];
    expect(&skylake, &counts(&list), &expected);
    adds_up(&skylake, "top_down_1", &list);
    adds_up(&skylake, "top_down_2_backend", &list);
    adds_up(&skylake, "cpi_stack", &list);
}

/// Five and six slots a cycle, counted by an event of their own (Intel's
/// Top-Down tables for Ice Lake and Sapphire Rapids).
#[test]
fn level_1_of_machines_with_a_slots_event_sums_to_one() {
    let icelake = [
        ("TOPDOWN.SLOTS", 5_000.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 800.0),
        ("INT_MISC.UOP_DROPPING", 50.0),
        ("UOPS_RETIRED.SLOTS", 2_000.0),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", 1_700.0),
        ("INT_MISC.CLEARS_COUNT", 20.0),
    ];
    let expected = [
        ("frontend_bound", 0.15),
        ("retiring", 0.4),
        ("backend_bound", 0.36),
        ("bad_speculation", 0.09),
    ];
    expect(&shipped("icelake-sp"), &counts(&icelake), &expected);
    adds_up(&shipped("icelake-sp"), "top_down_1", &icelake);
    let sapphire = [
        ("TOPDOWN.SLOTS", 6_000.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 1_000.0),
        ("INT_MISC.UOP_DROPPING", 100.0),
        ("UOPS_RETIRED.SLOTS", 2_400.0),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", 2_100.0),
        ("TOPDOWN.MEMORY_BOUND_SLOTS", 1_500.0),
        ("TOPDOWN.BR_MISPREDICT_SLOTS", 480.0),
    ];
    let expected = [
        ("frontend_bound", 0.15),
        ("retiring", 0.4),
        ("backend_bound", 0.35),
        ("bad_speculation", 0.1),
        ("branch_mispredicts", 0.08),
        ("machine_clears", 0.02),
        ("memory_bound", 0.25),
        ("core_bound", 0.1),
    ];
    for name in ["sapphire-rapids", "alder-lake-p"] {
        expect(&shipped(name), &counts(&sapphire), &expected);
        adds_up(&shipped(name), "top_down_1", &sapphire);
    }
}

/// Every slot of a Gracemont core has an event of its own; the residue of three
/// stands for the fourth (Intel's tables for Alder Lake's E cores).
#[test]
fn gracemont_level_1_sums_to_one() {
    let list = [
        ("CPU_CLK_UNHALTED.CORE", 1_000.0),
        ("TOPDOWN_FE_BOUND.ALL", 1_000.0),
        ("TOPDOWN_BE_BOUND.ALL", 2_000.0),
        ("TOPDOWN_RETIRING.ALL", 1_500.0),
        ("TOPDOWN_BAD_SPECULATION.ALL", 450.0),
    ];
    let expected = [
        ("frontend_bound", 0.2),
        ("backend_bound", 0.4),
        ("retiring", 0.3),
        ("bad_speculation", 0.1),
        ("bad_speculation_counted", 0.09),
    ];
    expect(&shipped("alder-lake-e"), &counts(&list), &expected);
    adds_up(&shipped("alder-lake-e"), "top_down_1", &list);
}

/// Three-part stacks of machines without slots (nearest to Feliu et al., Table
/// 1), loads and stores per cycle (section 5), floating point per cycle
/// (Peternier et al., equation 2).
#[test]
fn three_part_stacks_add_up() {
    let nehalem = [
        ("CPU_CLK_UNHALTED.THREAD", 1_000.0),
        ("INST_RETIRED.ANY", 800.0),
        ("UOPS_RETIRED.ACTIVE_CYCLES", 500.0),
        ("RESOURCE_STALLS.ANY", 300.0),
        ("UOPS_ISSUED.ANY", 1_800.0),
        ("UOPS_RETIRED.RETIRE_SLOTS", 1_600.0),
        ("FP_COMP_OPS_EXE.SSE_FP", 100.0),
        ("FP_COMP_OPS_EXE.X87", 50.0),
        ("MEM_INST_RETIRED.LOADS", 300.0),
        ("MEM_INST_RETIRED.STORES", 100.0),
    ];
    let expected = [
        ("cpi", 1.25),
        ("cpi_base", 0.625),
        ("cpi_backend", 0.375),
        ("cpi_other", 0.25),
        ("retiring", 0.4),
        ("wrong_path", 0.05),
        ("fpu_usage", 0.15),
        ("l1d_bandwidth", 0.4),
    ];
    expect(&shipped("nehalem"), &counts(&nehalem), &expected);
    adds_up(&shipped("nehalem"), "cpi_stack", &nehalem);
    let bulldozer = [
        ("CPU_CLK_UNHALTED", 1_000.0),
        ("RETIRED_INSTRUCTIONS", 500.0),
        ("DECODER_EMPTY", 200.0),
        ("DISPATCH_STALLS", 500.0),
        ("DATA_CACHE_ACCESSES", 400.0),
    ];
    let expected =
        [("cpi_frontend", 0.4), ("cpi_backend", 1.0), ("cpi_base", 0.6), ("l1d_bandwidth", 0.4)];
    expect(&shipped("bulldozer"), &counts(&bulldozer), &expected);
    adds_up(&shipped("bulldozer"), "cpi_stack", &bulldozer);
    for (name, second) in [
        ("zen2", "de_dis_dispatch_token_stalls0.any"),
        ("zen3", "de_dis_dispatch_token_stalls2.any"),
    ] {
        let zen = [
            ("ls_not_halted_cyc", 1_000.0),
            ("ex_ret_instr", 500.0),
            ("de_dis_uop_queue_empty_di0", 200.0),
            ("de_dis_dispatch_token_stalls1.any", 300.0),
            (second, 100.0),
            ("fp_ret_sse_avx_ops.all", 250.0),
        ];
        let expected =
            [("cpi_frontend", 0.4), ("cpi_backend", 0.8), ("cpi_base", 0.8), ("fpu_usage", 0.25)];
        expect(&shipped(name), &counts(&zen), &expected);
        adds_up(&shipped(name), "cpi_stack", &zen);
    }
}

/// Arm's dispatch-stage stack: front end, back end, the rest (Arm's PMU guides,
/// STALL_FRONTEND and STALL_BACKEND).
#[test]
fn arm_stacks_add_up() {
    let common = [
        ("CPU_CYCLES", 1_000.0),
        ("INST_RETIRED", 1_250.0),
        ("STALL_FRONTEND", 200.0),
        ("STALL_BACKEND", 400.0),
        ("VFP_SPEC", 100.0),
        ("ASE_SPEC", 60.0),
        ("L1D_CACHE", 500.0),
        ("L1D_CACHE_RD", 300.0),
        ("L1D_CACHE_WR", 120.0),
        ("BUS_ACCESS_RD", 30.0),
        ("BUS_ACCESS_WR", 10.0),
    ];
    let stack =
        [("cpi_frontend", 0.16), ("cpi_backend", 0.32), ("cpi_base", 0.32), ("fpu_usage", 0.16)];
    for name in ["neoverse-n1", "thunderx2"] {
        expect(&shipped(name), &counts(&common), &stack);
        adds_up(&shipped(name), "cpi_stack", &common);
    }
    expect(&shipped("neoverse-n1"), &counts(&common), &[("l1d_bandwidth", 0.5)]);
    let thunderx2 = [("l1d_bandwidth", 0.42), ("memory_requests", 40.0)];
    expect(&shipped("thunderx2"), &counts(&common), &thunderx2);
}

/// Fills of the L1D by where they come from (AMD's metrics for Zen 3).
#[test]
fn zen3_memory_is_near_far_or_another_complex() {
    let list = [
        ("ls_not_halted_cyc", 1_000.0),
        ("ls_any_fills_from_sys.mem_io_local", 30.0),
        ("ls_any_fills_from_sys.mem_io_remote", 10.0),
        ("ls_any_fills_from_sys.ext_cache", 20.0),
    ];
    let expected = [
        ("llc_misses", 60.0),
        ("llc_miss_rate", 0.06),
        ("memory_requests", 40.0),
        ("memory_remote_share", 0.25),
    ];
    expect(&shipped("zen3"), &counts(&list), &expected);
}
