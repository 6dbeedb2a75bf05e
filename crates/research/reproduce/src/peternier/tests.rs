//! Tests on simulated machines with synthetic programs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use symbiont_control::Step;
use symbiont_machine::{Machine, Signal, Signals, Target, ThreadId};
use symbiont_policy::{Settings, find};
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::Errors;
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::{CoreId, PuId, Topology};

use super::{BULLDOZER, POWER7};
use crate::described;
use symbiont_experiments_sim::{Library, Runner, Setup};

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
    let program = |name: &&str| SimProgram {
        name: (*name).to_owned(),
        profile: &profiles[*name],
        shape: Shape::Single,
        target: None,
    };
    let programs: Vec<SimProgram<'_>> = programs.iter().map(program).collect();
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

/// Where the policy bound threads of a program, by thread; of all programs if none is named.
fn bound(step: &Step, program: Option<&str>) -> BTreeMap<ThreadId, PuId> {
    let is = |id: &ThreadId| {
        let thread = step.sample.threads.iter().find(|thread| thread.id == *id);
        let of = step.sample.programs.iter().find(|it| thread.is_some_and(|t| t.program == it.id));
        program.is_none_or(|name| of.is_some_and(|of| of.name == name))
    };
    let own = step.placement.iter().filter(|(id, _)| is(id));
    let own = own.filter_map(|(id, assignment)| match &assignment.target {
        Target::Cpus(cpus) => Some((*id, cpus.first()?)),
        Target::Os => None,
    });
    own.collect()
}

#[test]
fn a_counter_of_the_module_mixes_the_ranks() {
    // In each of the later periods: modules with a floating-point thread, and how many of these threads have moved.
    let played = |fpu_of_core: bool| {
        let errors = Errors { fpu_of_core, ..Errors::default() };
        let programs = [INTEGER, INTEGER, INTEGER, INTEGER, FLOAT, FLOAT, FLOAT, FLOAT];
        let mut periods = Vec::new();
        let mut before = BTreeMap::new();
        run((BULLDOZER, 4, 2), &programs, "fpu", errors, 12, &mut |step, topology| {
            let now = bound(step, Some(FLOAT));
            let modules = now.values().filter_map(|pu| topology.core_of(*pu)).map(|core| core.id);
            let moved = now.iter().filter(|(id, pu)| before.get(*id) != Some(*pu)).count();
            periods.push((modules.collect::<BTreeSet<CoreId>>().len(), moved));
            before = now;
        });
        periods.split_off(6)
    };
    let (own, module) = (played(false), played(true));
    assert!(own.iter().all(|period| *period == (4, 0)), "{own:?}");
    // Integer threads come before floating-point ones, by their co-runners' use.
    assert!(module.iter().any(|(modules, _)| *modules < 4), "{module:?}");
    assert!(module.iter().any(|(_, moved)| *moved > 0), "{module:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn each_tier_of_consumers_is_spread_and_stays(
        hungry in proptest::collection::vec(any::<bool>(), 1..=8), power in any::<bool>(),
    ) {
        let machine = if power { (POWER7, 4, 2) } else { (BULLDOZER, 4, 2) };
        let programs: Vec<&str> =
            hungry.iter().map(|hungry| if *hungry { FLOAT } else { INTEGER }).collect();
        let mut before: BTreeMap<ThreadId, (usize, PuId)> = BTreeMap::new();
        run(machine, &programs, "fpu", Errors::default(), 6, &mut |step, topology| {
            let usage = |id: &ThreadId| step.measurements[id].value("fpu_usage").unwrap();
            let mut ranked: Vec<(ThreadId, PuId)> = bound(step, None).into_iter().collect();
            ranked.sort_by(|(a, _), (b, _)| usage(b).total_cmp(&usage(a)).then(a.cmp(b)));
            let mut now = BTreeMap::new();
            for (tier, threads) in ranked.chunks(topology.cores().len()).enumerate() {
                let core = |pu: PuId| topology.core_of(pu).unwrap().id;
                let cores: BTreeSet<CoreId> = threads.iter().map(|(_, pu)| core(*pu)).collect();
                assert_eq!(cores.len(), threads.len(), "tier {tier}: {threads:?}");
                now.extend(threads.iter().map(|(id, pu)| (*id, (tier, *pu))));
            }
            for (id, (tier, pu)) in &now {
                let was = before.get(id).filter(|(before, _)| before == tier);
                assert!(was.is_none_or(|(_, was)| was == pu), "{id:?} moved");
            }
            before = now;
        });
    }
}
