//! Tests on simulated machines with synthetic programs.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use symbiont_control::Step;
use symbiont_machine::{Machine, Signal, Signals, Target, ThreadId};
use symbiont_policy::{Settings, find};
use symbiont_sim::fast::TableBuilder;
use symbiont_sim::machine::Errors;
use symbiont_sim::program::{Program, Shape};
use symbiont_topology::{CoreId, PuId, Topology};

use super::{BULLDOZER, POWER7};
use crate::described;
use symbiont_simulated::{Library, Runner, Setup};

const INTEGER: &str = "synthetic-integer";
const FLOAT: &str = "synthetic-float";

/// Runs programs under a policy for some of its periods, on the first cores of a machine.
fn run(
    (machine, cores, width): (&str, usize, usize),
    programs: &[&str],
    policy: &str,
    errors: Errors,
    periods: u32,
    each: &mut dyn FnMut(&Step, &Topology),
) {
    let profiles = Library::default().load_all([INTEGER, FLOAT]).unwrap();
    let description = described(machine).unwrap().restricted(Some(cores), Some(width)).unwrap();
    let builder = TableBuilder::new(description);
    let entry = find(policy).unwrap();
    let until = Duration::from_secs(periods.into());
    let setup = Setup { until, errors, ..Setup::default() };
    let signals = Signals::from([Signal::FpuUsage]);
    let runner = Runner { level: &builder, setup: &setup, signals: &signals };
    let program = |name: &&str| Program {
        name: (*name).to_owned(),
        profile: &profiles[*name],
        shape: Shape::Single,
        target: None,
    };
    let programs: Vec<Program<'_>> = programs.iter().map(program).collect();
    let made = (entry.make)(&Settings::default());
    let quantum = Duration::from_secs(1);
    let once = runner.once(&programs, made, quantum, 1, &mut |controller| {
        if let Some(step) = controller.last() {
            each(step, controller.machine().topology());
        }
        Ok(())
    });
    once.unwrap();
}

/// FPU usage of an integer and a floating-point thread on one module, as it is counted.
fn usages(fpu_of_core: bool) -> Vec<f64> {
    let mut usages = Vec::new();
    let errors = Errors { fpu_of_core, ..Errors::NONE };
    run((BULLDOZER, 1, 2), &[INTEGER, FLOAT], "stay", errors, 3, &mut |step, _| {
        let measured = step.measurements.values();
        usages = measured.filter_map(|one| one.value("fpu_usage")).collect();
    });
    usages.sort_by(f64::total_cmp);
    usages
}

#[test]
fn a_counter_of_the_module_takes_an_integer_thread_for_fpu_intensive() {
    let own = usages(false);
    assert!(own[0] < 0.1 && own[1] > 0.5, "{own:?}");
    let module = usages(true);
    assert!(module[0] > 0.5 && (module[1] - module[0]).abs() < 0.05, "{module:?}");
}

#[test]
fn a_counter_of_the_module_binds_more_threads_and_settles_too() {
    let bound = |fpu_of_core: bool| {
        let errors = Errors { fpu_of_core, ..Errors::default() };
        let programs = [INTEGER, INTEGER, INTEGER, INTEGER, FLOAT, FLOAT, FLOAT, FLOAT];
        let mut periods = Vec::new();
        run((BULLDOZER, 4, 2), &programs, "fpu", errors, 12, &mut |step, _| {
            let is_bound = |target: &Target| matches!(target, Target::Cpus(_));
            let bound = step.placement.values().filter(|it| is_bound(&it.target)).count();
            periods.push((bound, step.plan.moves.len()));
        });
        periods
    };
    let (own, module) = (bound(false), bound(true));
    assert!(own[6..].iter().all(|period| *period == (4, 0)), "{own:?}");
    assert!(module[6..].iter().all(|(bound, moves)| *bound > 4 && *moves == 0), "{module:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn top_consumers_are_spread_and_stay(
        hungry in proptest::collection::vec(any::<bool>(), 1..=8), power in any::<bool>(),
    ) {
        let machine = if power { (POWER7, 4, 2) } else { (BULLDOZER, 4, 2) };
        let programs: Vec<&str> =
            hungry.iter().map(|hungry| if *hungry { FLOAT } else { INTEGER }).collect();
        let mut before: BTreeMap<ThreadId, PuId> = BTreeMap::new();
        run(machine, &programs, "fpu", Errors::default(), 6, &mut |step, topology| {
            let bound = step.placement.iter().filter_map(|(id, assignment)| match &assignment.target {
                Target::Cpus(cpus) => Some((*id, cpus.first()?)),
                Target::Os => None,
            });
            let bound: BTreeMap<ThreadId, PuId> = bound.collect();
            let mut cores: BTreeMap<CoreId, usize> =
                topology.cores().iter().map(|core| (core.id, 0)).collect();
            for core in bound.values().filter_map(|pu| topology.core_of(*pu)) {
                *cores.entry(core.id).or_default() += 1;
            }
            let (least, most) = (cores.values().min().unwrap(), cores.values().max().unwrap());
            assert!(most - least <= 1, "{cores:?}");
            for (id, pu) in &bound {
                assert!(before.get(id).is_none_or(|was| was == pu), "{id:?} moved");
            }
            before = bound;
        });
    }
}
