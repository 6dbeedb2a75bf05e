//! Values of formulas, from counts worked out by hand.

use super::super::{Absent, Counts, Encoding, Quantity, Unit};
use super::*;

/// Counts by name; what is not listed was not counted.
pub(super) fn counts<'a>(list: &'a [(&'a str, f64)]) -> impl Fn(&str) -> Option<f64> + 'a {
    |event| list.iter().find(|(name, _)| *name == event).map(|(_, count)| *count)
}

pub(super) fn value(catalogue: &Catalogue, formula: &str, counts: &dyn Counts) -> f64 {
    catalogue.evaluate(formula, counts).unwrap_or_else(|why| panic!("{formula}: {why}")).value
}

#[test]
fn fields_go_to_their_bits() {
    let toy = sound();
    let encoding = |name| toy.event(name).expect("an event of the toy").encoding;
    assert_eq!(encoding("CYCLES"), Encoding { config: 0x11, config1: 0 });
    assert_eq!(encoding("STALLS"), Encoding { config: 0x1_0000_02a3, config1: 0 });
}

#[test]
fn values_carry_their_unit() {
    let toy = sound();
    let counts = counts(&[("CYCLES", 100.0), ("LOADS.ALL", 30.0), ("STORES", 20.0)]);
    let value = toy.evaluate("l1d_bandwidth", &counts).unwrap();
    assert_eq!(value.value, 0.5);
    assert_eq!(value.unit, Unit::Per(Quantity::Accesses, Quantity::Cycles));
}

#[test]
fn what_was_not_counted_makes_a_formula_absent() {
    let toy = sound();
    let counted = counts(&[("CYCLES", 100.0), ("STORES", 20.0)]);
    assert_eq!(toy.evaluate("running", &counted), Err(Absent::NotCounted("STALLS".into())));
    let idle = counts(&[("CYCLES", 0.0), ("STALLS", 0.0)]);
    assert_eq!(toy.evaluate("running", &idle), Err(Absent::ZeroDivisor));
    let broken = counts(&[("CYCLES", f64::NAN), ("STALLS", 0.0)]);
    assert_eq!(toy.evaluate("running", &broken), Err(Absent::NotFinite));
    assert_eq!(toy.evaluate("walking", &idle), Err(Absent::NoFormula("walking".into())));
}

/// Cycles differ by group, as they do under multiplexing.
struct Rotated;

impl Counts for Rotated {
    fn count(&self, group: Option<&str>, event: &str) -> Option<f64> {
        match (group, event) {
            (Some("stalls"), "CYCLES") => Some(100.0),
            (Some("stores"), "CYCLES") => Some(400.0),
            (None, "CYCLES") => Some(250.0),
            (Some("stalls"), "LOADS.ALL") => Some(50.0),
            (Some("stores"), "STORES") => Some(100.0),
            _ => None,
        }
    }
}

#[test]
fn a_division_takes_both_sides_from_one_group() {
    let toy = sound();
    assert_eq!(value(&toy, "l1d_bandwidth", &Rotated), 50.0 / 100.0 + 100.0 / 400.0);
    let cycles = spoiled("1 - stalled", "0 * stalled + CYCLES").unwrap();
    assert!(cycles.evaluate("running", &Rotated).is_err());
    let cycles = spoiled("1 - stalled", "CYCLES").unwrap();
    assert_eq!(value(&cycles, "running", &Rotated), 250.0);
}

#[test]
fn a_choice_takes_one_branch() {
    let choice = spoiled("1 - stalled", "if(stalled > 0.25, STALLS / CYCLES, 7)").unwrap();
    let busy = counts(&[("CYCLES", 100.0), ("STALLS", 50.0)]);
    let idle = counts(&[("CYCLES", 100.0), ("STALLS", 25.0)]);
    assert_eq!(value(&choice, "running", &busy), 0.5);
    assert_eq!(value(&choice, "running", &idle), 7.0);
}

/// Feliu et al., Table 1: five components; what they leave of the run cycles
/// is kept. Counts by hand: 1,000 instructions in 2,500 cycles.
#[test]
fn power8_components_and_residue_equal_run_cycles() {
    let power8 = shipped("power8");
    let counts = counts(&[
        ("PM_RUN_CYC", 2_500.0),
        ("PM_RUN_INST_CMPL", 1_000.0),
        ("PM_GRP_CMPL", 400.0),
        ("PM_CMPLU_STALL", 1_400.0),
        ("PM_GCT_NOSLOT_CYC", 300.0),
        ("PM_CMPLU_STALL_THRD", 250.0),
        ("PM_NTCG_ALL_FIN", 100.0),
        ("PM_FLOP", 500.0),
    ]);
    let expected = [
        ("cpi", 2.5),
        ("ipc", 0.4),
        ("cpi_base", 0.4),
        ("cpi_stall", 1.4),
        ("cpi_empty", 0.3),
        ("cpi_thread", 0.25),
        ("cpi_finish", 0.1),
        ("cpi_other", 0.05),
        ("fpu_usage", 0.2),
    ];
    expect(&power8, &counts, &expected);
    let stack = power8.sums().iter().find(|sum| sum.name == "cpi_stack").unwrap();
    let cycles: f64 = stack.parts.iter().map(|part| value(&power8, part, &counts) * 1_000.0).sum();
    assert!((cycles - 2_500.0).abs() < 1e-9);
}

/// Checks formulas against values worked out by hand.
pub(super) fn expect(catalogue: &Catalogue, counts: &dyn Counts, expected: &[(&str, f64)]) {
    for (formula, wanted) in expected {
        let got = value(catalogue, formula, counts);
        assert!((got - wanted).abs() < 1e-12, "{formula} is {got}, not {wanted}");
    }
}

/// Yasin's level 1 on a four-wide core, once alone and once with a busy
/// sibling: the same counts in half of the slots.
#[test]
fn broadwell_level_1_sums_to_one_alone_and_with_a_sibling() {
    let broadwell = shipped("broadwell");
    let with_sibling_halted = |alone: f64| {
        move |event: &str| {
            Some(match event {
                "CPU_CLK_UNHALTED.THREAD" => 1_000.0,
                "CPU_CLK_UNHALTED.REF_XCLK" => 100.0,
                "CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE" => alone,
                "IDQ_UOPS_NOT_DELIVERED.CORE" => 400.0,
                "UOPS_ISSUED.ANY" => 1_300.0,
                "UOPS_RETIRED.RETIRE_SLOTS" => 1_200.0,
                "INT_MISC.RECOVERY_CYCLES" => 50.0,
                _ => return None,
            })
        }
    };
    let alone = [
        ("slot_share", 1.0),
        ("frontend_bound", 0.1),
        ("bad_speculation", 0.025 + 0.05),
        ("retiring", 0.3),
        ("backend_bound", 0.525),
    ];
    expect(&broadwell, &with_sibling_halted(100.0), &alone);
    let with_sibling = [
        ("slot_share", 0.5),
        ("frontend_bound", 0.2),
        ("bad_speculation", 0.05 + 0.05),
        ("retiring", 0.6),
        ("backend_bound", 0.1),
    ];
    expect(&broadwell, &with_sibling_halted(0.0), &with_sibling);
}

/// The choices of `tma_memory_bound`: low IPC counts cycles with two uops as
/// limited, a starved front end takes the empty scheduler out.
#[test]
fn broadwell_memory_bound_follows_its_conditions() {
    let broadwell = shipped("broadwell");
    let starved = |fetch: f64| {
        move |event: &str| {
            Some(match event {
                "CPU_CLK_UNHALTED.THREAD" | "INST_RETIRED.ANY" => 1_000.0,
                "CPU_CLK_UNHALTED.REF_XCLK" | "CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE" => 100.0,
                "IDQ_UOPS_NOT_DELIVERED.CORE" => 400.0,
                "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE" => fetch,
                "UOPS_ISSUED.ANY" | "UOPS_RETIRED.RETIRE_SLOTS" => 1_600.0,
                "INT_MISC.RECOVERY_CYCLES" => 0.0,
                "CYCLE_ACTIVITY.STALLS_MEM_ANY" => 300.0,
                "RESOURCE_STALLS.SB" => 50.0,
                "CYCLE_ACTIVITY.STALLS_TOTAL" => 400.0,
                "UOPS_EXECUTED.CYCLES_GE_1_UOP_EXEC" => 600.0,
                "UOPS_EXECUTED.CYCLES_GE_2_UOPS_EXEC" => 400.0,
                "RS_EVENTS.EMPTY_CYCLES" => 150.0,
                _ => return None,
            })
        }
    };
    let fed = [
        ("backend_bound", 0.5),
        ("execution_limited", 0.6),
        ("memory_bound", 0.5 * 0.35 / 0.65),
        ("core_bound", 0.5 * 0.30 / 0.65),
    ];
    expect(&broadwell, &starved(100.0), &fed);
    let hungry = [("execution_limited", 0.45), ("memory_bound", 0.5 * 0.35 / 0.5)];
    expect(&broadwell, &starved(101.0), &hungry);
}

/// AMD's five parts of level 1 leave a residue; the stack mirrors POWER8's.
#[test]
fn zen4_parts_and_residues_add_up() {
    let zen4 = shipped("zen4");
    let counts = counts(&[
        ("ls_not_halted_cyc", 1_000.0),
        ("ex_ret_instr", 500.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 1_200.0),
        ("de_no_dispatch_per_slot.backend_stalls", 1_800.0),
        ("de_no_dispatch_per_slot.smt_contention", 600.0),
        ("de_src_op_disp.all", 2_100.0),
        ("ex_ret_ops", 1_500.0),
        ("ex_no_retire.all", 700.0),
        ("ex_no_retire.not_complete", 400.0),
        ("ex_no_retire.load_not_complete", 100.0),
        ("ex_no_retire.empty", 150.0),
        ("ex_no_retire.thread_not_selected", 100.0),
    ]);
    let expected = [
        ("frontend_bound", 0.2),
        ("backend_bound", 0.3),
        ("bad_speculation", 0.1),
        ("retiring", 0.25),
        ("smt_contention", 0.1),
        ("top_down_other", 0.05),
        ("memory_bound", 0.075),
        ("core_bound", 0.225),
        ("cpi", 2.0),
        ("cpi_base", 0.6),
        ("cpi_stall", 0.8),
        ("cpi_empty", 0.3),
        ("cpi_thread", 0.2),
        ("cpi_other", 0.1),
    ];
    expect(&zen4, &counts, &expected);
}

/// Arm's own formulas, with four cycles of refill for each mispredict.
#[test]
fn neoverse_v1_level_1_sums_to_one() {
    let v1 = shipped("neoverse-v1");
    let counts = counts(&[
        ("CPU_CYCLES", 1_000.0),
        ("STALL_SLOT", 4_000.0),
        ("STALL_SLOT_FRONTEND", 1_600.0),
        ("STALL_SLOT_BACKEND", 2_400.0),
        ("OP_RETIRED", 3_600.0),
        ("OP_SPEC", 4_000.0),
        ("BR_MIS_PRED", 10.0),
    ]);
    let expected = [
        ("frontend_bound", 0.2 - 0.04),
        ("backend_bound", 0.3),
        ("retiring", 0.9 * 0.5),
        ("bad_speculation", 0.1 * 0.5 + 0.04),
        ("top_down_other", 0.0),
    ];
    expect(&v1, &counts, &expected);
}

/// Peternier et al., equations 1 and 2.
#[test]
fn fpu_usage_follows_the_two_equations() {
    let bulldozer = shipped("bulldozer");
    let empty = counts(&[("CYCLES_FPU_EMPTY", 210.0), ("CPU_CLK_UNHALTED", 1_000.0)]);
    expect(&bulldozer, &empty, &[("fpu_usage", 0.79)]);
    let flops = counts(&[("PM_FLOP", 70.0), ("PM_RUN_CYC", 1_000.0)]);
    expect(&shipped("power7"), &flops, &[("fpu_usage", 0.07)]);
}
