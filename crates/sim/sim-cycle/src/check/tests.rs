use std::convert::Infallible;
use std::sync::Arc;

use symbiont_profile::{Phase, Profile, test_support as synthetic};
use symbiont_sim_fast::activity::{Activity, Cycle};
use symbiont_sim_fast::machine::{Contention, Runner, ThreadRate};
use symbiont_topology::NodeId;

use super::compare::rank_correlation;
use super::*;

/// A phase's CPI is its number + 1; each co-runner adds `slope` of that.
struct Toy {
    phases: usize,
    slope: f64,
}

impl<'p> Contention<'p> for Toy {
    type Error = Infallible;

    fn prepare(&mut self, _: &'p Phase) -> Result<usize, Infallible> {
        self.phases += 1;
        Ok(self.phases - 1)
    }

    fn thread_rates(&mut self, runners: &[Runner], _: f64) -> Vec<Arc<ThreadRate>> {
        let thread_rate = |runner: &Runner| {
            let own = runner.phase as f64 + 1.0;
            let cpi = own * (1.0 + self.slope * own * (runners.len() - 1) as f64);
            let mut activity = Activity::default();
            activity.cycles[Cycle::Retiring as usize] = own;
            activity.cycles[Cycle::Memory as usize] = cpi - own;
            Arc::new(ThreadRate { speed: 2.0 / cpi, activity, ghz: 2.0, width: 4.0 })
        };
        runners.iter().map(thread_rate).collect()
    }
}

fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).to_vec()
}

fn matrix(slope: f64, plan: &Plan, profile: &Profile) -> Matrix {
    let phases = vec![&profile.phases[0]; 3];
    let mut toy = Toy { phases: 0, slope };
    measure(&mut toy, plan, &phases, NodeId(0), &mut |_, _| true).unwrap().unwrap()
}

#[test]
fn equal_levels_agree() {
    let plan = Plan::new(names(), 2, 100, 1);
    assert_eq!(plan.groups.len(), 6);
    let profile = synthetic::branchy();
    let level = matrix(0.1, &plan, &profile);
    let compared = compare(&plan, &level, &level);
    assert_eq!((compared.slowdown.error, compared.stp.error), (0.0, 0.0));
    assert_eq!((compared.slowdown.rank, compared.stp.rank), (Some(1.0), Some(1.0)));
    assert_eq!((compared.slowdown.values, compared.slowdown.cases.len()), (12, 12));
    assert!(compared.stack.iter().all(|component| component.error == 0.0));
}

#[test]
fn a_level_that_errs_is_reported_with_its_worst_case() {
    let plan = Plan::new(names(), 2, 100, 1);
    let profile = synthetic::branchy();
    let compared = compare(&plan, &matrix(0.3, &plan, &profile), &matrix(0.1, &plan, &profile));
    assert_eq!(compared.alone.error, 0.0);
    // c: 1.9 against 1.3.
    let worst = &compared.slowdown.cases[0];
    assert_eq!(worst.of.program, "c");
    assert!((worst.fast - 1.9).abs() < 1e-9 && (worst.cycle - 1.3).abs() < 1e-9);
    assert!(compared.slowdown.bias > 0.0 && compared.stp.bias < 0.0);
    assert_eq!(compared.stp.cases[0].of, Group(vec!["c".into(), "c".into()]));
    let memory = compared.stack.iter().find(|component| component.name == "memory").unwrap();
    assert!(memory.fast > memory.cycle && memory.error > 0.1);
}

#[test]
fn groups_are_drawn_with_the_seed() {
    let plan = |seed| Plan::new(names(), 2, 3, seed).groups;
    assert_eq!(plan(1), plan(1));
    assert_eq!(plan(1).len(), 3);
    assert!((2..20).any(|seed| plan(seed) != plan(1)));
}

#[test]
fn a_question_can_be_the_last() {
    let plan = Plan::new(names(), 2, 100, 1);
    let profile = synthetic::branchy();
    let phases = vec![&profile.phases[0]; 3];
    let mut toy = Toy { phases: 0, slope: 0.1 };
    let ended = measure(&mut toy, &plan, &phases, NodeId(0), &mut |asked, _| asked < 4).unwrap();
    assert!(ended.is_none());
}

#[test]
fn ranks_correlate_whatever_the_scale() {
    let left = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(rank_correlation(&left, &[1.0, 10.0, 100.0, 1000.0]), Some(1.0));
    assert_eq!(rank_correlation(&left, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
    assert_eq!(rank_correlation(&left, &[1.0; 4]), None);
}

#[test]
fn only_what_passes_is_marked() {
    let plan = Plan::new(names(), 2, 100, 1);
    let profile = synthetic::branchy();
    let gates = Gates::default();
    let level = matrix(0.1, &plan, &profile);
    let good = compare(&plan, &level, &level);
    let bad = compare(&plan, &matrix(0.3, &plan, &profile), &level);
    assert_eq!(gates.missed(&good), None);
    assert!(gates.missed(&bad).unwrap().starts_with("STP errs by "));
    let marked = mark(std::slice::from_ref(&good), &gates, 3, "2026-01-31").unwrap();
    assert_eq!(
        marked,
        "checked against the cycle level on 2026-01-31 with 3 programs; SMT2: STP within 0.0 %, \
         slowdowns rank alike to 1.000 (6 groups)"
    );
    assert_eq!(mark(&[good.clone(), bad], &gates, 3, "2026-01-31"), None);
    assert_eq!(mark(&[], &gates, 3, "2026-01-31"), None);
    // What cannot be ranked does not pass.
    let mut unranked = good;
    unranked.slowdown.rank = None;
    assert!(gates.missed(&unranked).is_some());
    unranked.slowdown.rank = Some(0.96);
    unranked.stp.error = f64::NAN;
    assert!(gates.missed(&unranked).is_some());
}
