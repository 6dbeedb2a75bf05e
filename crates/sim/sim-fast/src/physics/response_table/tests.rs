use super::*;
use crate::description::Description;
use crate::physics::domains::Physics;
use crate::physics::pipeline::CoreSharing;
use crate::physics::prepared::Prepared;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::OnceLock;
use symbiont_profile::{Profile, test_support};

struct BuiltTable {
    pipeline: Pipeline,
    ranges: Vec<Range>,
    prepared: Prepared,
    table: ResponseTable,
}

impl BuiltTable {
    fn new(profile: &Profile) -> Self {
        let machine = Description::named("xeon-e5-2620v4").unwrap();
        let physics = Physics::new(&machine);
        let prepared = Prepared::new(&machine, &profile.phases[0]).unwrap();
        let pipeline = physics.pipeline(0, 2, CoreSharing::Others).unwrap().clone();
        let (phase, written) = (&prepared.cores[0], prepared.facts.written);
        let (core_type, memory) = (&physics.core_types[0], &physics.memory);
        let table = ResponseTable::new(phase, written, &pipeline, core_type, memory);
        let ranges = ranges(phase, written, &pipeline, core_type, memory);
        Self { pipeline, ranges, prepared, table }
    }

    /// By how much the table is off in some environments: mean, 95th percentile, worst.
    fn off(&self, environments: impl Iterator<Item = Environment>) -> [f64; 3] {
        let off = |environment: Environment| {
            let trace = &self.prepared.cores[0].trace;
            let direct = Window::default().run(&self.pipeline, trace, &environment).cpi;
            (self.table.summary(&environment).cpi / direct - 1.0).abs()
        };
        let mut errors: Vec<f64> = environments.map(off).collect();
        errors.sort_by(f64::total_cmp);
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let all = [mean, errors[errors.len() * 95 / 100], errors[errors.len() - 1]];
        println!("mean, p95, worst: {all:.4?}");
        all
    }
}

fn made() -> &'static BuiltTable {
    static MADE: OnceLock<BuiltTable> = OnceLock::new();
    MADE.get_or_init(|| BuiltTable::new(&test_support::branchy()))
}

/// An environment within the ranges.
fn any_environment() -> impl Strategy<Value = Environment> {
    prop::collection::vec(0.0_f64..1.0, made().ranges.len()).prop_map(|shares| {
        let between =
            |(range, share): (&Range, &f64)| range.best + share * (range.worst - range.best);
        environment(&made().ranges.iter().zip(&shares).map(between).collect::<Vec<_>>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_answer_is_faster_than_the_best_environment(environment in any_environment()) {
        let best: Vec<f64> = made().ranges.iter().map(|range| range.best).collect();
        let best = made().table.summary(&self::environment(&best)).cpi;
        prop_assert!(made().table.summary(&environment).cpi >= best * 0.999);
    }

    #[test]
    fn parts_sum_to_the_whole(inputs in off_the_anchor()) {
        let made = made();
        let table = made.table.detail(&environment(&inputs), made.pipeline.width).0;
        prop_assert!((table.cycles.iter().sum::<f64>() / table.cpi - 1.0).abs() < 1e-6);
    }
}

/// Up to three inputs are anywhere, the others at the anchor.
fn off_the_anchor() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0_usize..18, 0.0_f64..1.0), 0..4).prop_map(|moved| {
        let mut inputs: Vec<f64> = made().ranges.iter().map(|range| range.anchor).collect();
        for (input, share) in moved {
            let range = made().ranges[input];
            inputs[input] = range.best + share * (range.worst - range.best);
        }
        inputs
    })
}

/// Most are met closely; where the curve bends between nodes, a few are not.
#[test]
fn environments_off_the_anchor_in_some_inputs_are_met() {
    let (made, mut runner) = (made(), TestRunner::deterministic());
    let drawn = std::iter::repeat_with(|| {
        environment(&off_the_anchor().new_tree(&mut runner).unwrap().current())
    });
    let [mean, p95, worst] = made.off(drawn.take(400));
    assert!(mean < 0.005 && p95 < 0.01 && worst < 0.12, "{mean} {p95} {worst}");
}

/// By how much what follows from slopes is off, as shares of the CPI: mean and 95th percentile.
/// `moves` leads from one environment to another nearby.
fn slopes_off(
    runner: &mut TestRunner,
    mut moves: impl FnMut(&mut TestRunner, &Linearization, Environment) -> Environment,
) -> [f64; 2] {
    let made = made();
    let mut errors: Vec<f64> = std::iter::repeat_with(|| {
        let from = environment(&off_the_anchor().new_tree(runner).unwrap().current());
        let linear = made.table.linearized_summary(&from).1;
        let to = moves(runner, &linear, from);
        assert!(linear.reaches(&from, &to) && linear.is_granted_alike(&from, &to));
        (linear.cpi(&from, &to) / made.table.summary(&to).cpi - 1.0).abs()
    })
    .take(400)
    .collect();
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let off = [mean, errors[errors.len() * 95 / 100]];
    println!("mean, p95: {off:.5?}, worst {:.5}", errors[errors.len() - 1]);
    off
}

/// A little off in all inputs.
#[test]
fn what_follows_is_what_the_table_says() {
    let [mean, p95] = slopes_off(&mut TestRunner::deterministic(), |_, _, mut to| {
        to.dispatch *= 0.99;
        to.ports[0] *= 0.99;
        to.entries = to.entries.map(|entries| entries * 1.01);
        to.reach = to.reach.map(|reach| reach + 0.01);
        to.memory_latency *= 1.01;
        to
    });
    assert!(mean < 1e-3 && p95 < 5e-3, "{mean} {p95}");
}

/// An environment with one input moved by a share of the furthest that slopes are ever followed.
fn moved(mut to: Environment, input: usize, share: f64) -> Environment {
    /// Octaves, or share of the input.
    const FURTHEST: f64 = 0.2;
    let Environment { dispatch, ports, entries, reach, memory_latency, memory_interval, .. } =
        &mut to;
    let rates = [dispatch, memory_latency, memory_interval].into_iter();
    match rates.chain(ports).chain(entries).nth(input) {
        Some(input) => *input *= 1.0 + FURTHEST * share,
        None => reach[input - 3 - GROUPS - STRUCTURES] += FURTHEST * share,
    }
    to
}

/// Each input is as far off as slopes are still followed, up to that.
#[test]
fn what_follows_from_afar_is_nearly_what_the_table_says() {
    let mut far = 0;
    let [mean, p95] = slopes_off(&mut TestRunner::deterministic(), |runner, linear, from| {
        (0..3 + GROUPS + STRUCTURES + REACHES).fold(from, |before, input| {
            let share = (-1.0_f64..1.0).new_tree(runner).unwrap().current();
            let to = moved(before, input, share);
            let follows = linear.reaches(&from, &to) && linear.is_granted_alike(&from, &to);
            far += usize::from(follows && share.abs() > 0.25);
            if follows { to } else { before }
        })
    });
    println!("{far} inputs beyond the usual range");
    assert!(far > 400, "{far}");
    assert!(mean < 2e-3 && p95 < 5e-3, "{mean} {p95}");
}

#[test]
fn coordinates_and_environments_are_inverse() {
    let anchor: Vec<f64> = made().ranges.iter().map(|range| range.anchor).collect();
    let environment = environment(&anchor);
    let coordinates = coordinates(&environment, u32::MAX);
    for (input, (anchor, again)) in anchor.iter().zip(coordinates).enumerate() {
        assert!((again - anchor).abs() < 1e-9, "input {input}: {again} for {anchor}");
    }
}
