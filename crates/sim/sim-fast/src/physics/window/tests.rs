use std::borrow::Cow;

use proptest::prelude::*;
use symbiont_profile::OpClass;

use crate::description::Forwarding;

use super::super::pipeline::{CacheLevel, CoreSharing, Environment, Group, Pipeline, Queue, Room};
use super::super::streams::NO_TRIGGER;
use super::super::trace::{Op, Trace};
use super::{Course, Outcome, Window};

/// Four wide; ports 0 to 3 integer, 4 and 5 floating point, 6 and 7 loads, 8 stores.
pub(super) fn pipeline() -> Pipeline {
    let room = |entries: f64| Room {
        total: entries,
        most: entries,
        even: entries,
        shared: false,
        halved: false,
    };
    let mut ports = [0b1111; OpClass::COUNT];
    for class in
        [OpClass::FpAdd, OpClass::FpMultiply, OpClass::FpFma, OpClass::FpDivide, OpClass::Vector]
    {
        ports[class.index()] = 0b11_0000;
    }
    ports[OpClass::Divide.index()] = 0b1;
    ports[OpClass::Load.index()] = 0b1100_0000;
    ports[OpClass::Store.index()] = 0b1_0000_0000;
    let mut latency = [1; OpClass::COUNT];
    latency[OpClass::FpAdd.index()] = 4;
    latency[OpClass::Divide.index()] = 20;
    let mut divider_busy = [0; OpClass::COUNT];
    divider_busy[OpClass::Divide.index()] = 20;
    Pipeline {
        mode: 1,
        sharing: CoreSharing::Alone,
        halved: false,
        fetch: 4,
        taken: 1,
        group_branches: None,
        width: 4.0,
        retire: 4.0,
        fetch_buffer: 64,
        refill: 15.0,
        rooms: [room(64.0), room(64.0), room(64.0), room(64.0), room(64.0), room(8.0)],
        split_iq: false,
        ports,
        group_ports: [0b1111, 0b11_0000, 0b1100_0000, 0b1_0000_0000, 0b1],
        private_groups: [false; 5],
        latency,
        divider_busy,
        cache_latency: [4, 12, 40],
        forwarding: Forwarding { latency: 5, partial: 12, renames: false },
        tlb_latency: [7, 30],
        prefetch_lines: 0,
        prediction: symbiont_profile::Prediction::Gshare,
        predictor: 16_384.0,
        mispredicts: 1.0,
        line: 64,
    }
}

/// L1 caches reach 2^10 instructions, L2 2^14, L3 2^20; pages are always there, streams for 2^8.
pub(super) fn environment(pipeline: &Pipeline) -> Environment {
    pipeline.alone([10.0, 10.0, 14.0, 20.0, 40.0, 40.0, 40.0, 8.0], 200.0, 1.0)
}

pub(super) fn op(class: OpClass) -> Op {
    Op {
        reuse: 1.0,
        page: 1.0,
        fetch: 0.0,
        fetch_page: 0.0,
        line: 0,
        trigger: NO_TRIGGER,
        rested: 0.0,
        sources: [0, 0],
        stored: None,
        class,
        mispredicted: 0,
        taken: false,
    }
}

pub(super) fn trace(count: u32, make: impl Fn(u32) -> Op) -> Trace {
    let ops: Vec<Op> = (0..count).map(make).collect();
    Trace { instructions: ops.len() as f64, lines: count, ops, ..Trace::default() }
}

fn run(trace: &Trace, set: impl Fn(&mut Environment)) -> Outcome {
    let pipeline = pipeline();
    let mut environment = environment(&pipeline);
    set(&mut environment);
    Window::default().run(&pipeline, trace, &environment)
}

fn cpi(trace: &Trace, set: impl Fn(&mut Environment)) -> f64 {
    run(trace, set).cpi
}

#[track_caller]
pub(super) fn about(cpi: f64, expected: f64) {
    assert!((cpi / expected - 1.0).abs() < 0.02, "{cpi} instead of {expected}");
}

pub(super) const LONG: u32 = 20_000;

#[test]
fn independent_work_runs_at_the_width() {
    let work = trace(LONG, |_| op(OpClass::Integer));
    about(cpi(&work, |_| {}), 0.25);
    about(cpi(&work, |e| e.dispatch = 1.5), 1.0 / 1.5);
    about(cpi(&work, |e| e.ports[Group::Integer as usize] = 0.25), 1.0);
    about(cpi(&work, |e| e.ports[Group::Integer as usize] = 0.6), 1.0 / 2.4);
    about(cpi(&trace(LONG, |_| op(OpClass::FpAdd)), |_| {}), 0.5);
}

#[test]
fn a_chain_takes_its_latencies() {
    let chained = |class| trace(LONG, move |_| Op { sources: [1, 0], ..op(class) });
    about(cpi(&chained(OpClass::FpAdd), |_| {}), 4.0);
    about(cpi(&chained(OpClass::Integer), |_| {}), 1.0);
    about(cpi(&chained(OpClass::Load), |_| {}), 4.0);
    // A second source that is further back changes nothing.
    about(cpi(&trace(LONG, |_| Op { sources: [9, 1], ..op(OpClass::FpAdd) }), |_| {}), 4.0);
}

#[test]
fn a_divider_bounds_divisions() {
    let divisions = trace(LONG / 10, |_| op(OpClass::Divide));
    about(cpi(&divisions, |_| {}), 20.0);
    about(cpi(&divisions, |e| e.ports[Group::Divider as usize] = 0.5), 40.0);
    let outcome = run(&divisions, |_| {});
    about(outcome.port_cycles[Group::Divider as usize], 20.0);
}

/// Loads of lines of their own that reach memory.
fn misses(count: u32) -> Trace {
    trace(count, |line| Op { reuse: f32::INFINITY, line, ..op(OpClass::Load) })
}

#[test]
fn miss_registers_bound_independent_misses() {
    about(cpi(&misses(LONG / 4), |_| {}), 200.0 / 8.0);
    about(cpi(&misses(LONG / 4), |e| e.entries[Queue::Mshr as usize] = 2.0), 100.0);
}

#[test]
fn memory_grants_one_request_per_interval() {
    about(cpi(&misses(LONG / 4), |e| e.memory_interval = 50.0), 50.0);
}

#[test]
fn a_late_request_does_not_delay_an_early_one() {
    // A chain of misses, one in 16 operations, and far ahead of each the next chain's.
    let two_chains = trace(LONG / 4, |index| match index % 16 {
        0 | 8 => Op { reuse: f32::INFINITY, line: index, sources: [16, 0], ..op(OpClass::Load) },
        _ => op(OpClass::Integer),
    });
    about(cpi(&two_chains, |e| e.memory_interval = 30.0), 200.0 / 16.0);
}

#[test]
fn the_window_bounds_overlap() {
    let sparse = trace(LONG, |line| match line % 16 {
        0 => Op { reuse: f32::INFINITY, line, ..op(OpClass::Load) },
        _ => op(OpClass::Integer),
    });
    // 64 operations with four misses each latency, and as long as it takes to refill.
    let window = cpi(&sparse, |_| {});
    assert!((200.0 / 64.0..220.0 / 64.0).contains(&window), "{window}");
    let half = cpi(&sparse, |e| e.entries[Queue::Rob as usize] = 32.0);
    assert!((200.0 / 32.0..220.0 / 32.0).contains(&half), "{half}");
    let issue = cpi(
        &trace(LONG, |line| match line % 16 {
            0 => Op { reuse: f32::INFINITY, line, ..op(OpClass::Load) },
            n => Op { sources: [n as u16, 0], ..op(OpClass::Integer) },
        }),
        |e| e.entries[Queue::Iq as usize] = 15.0,
    );
    assert!(issue > 190.0 / 16.0, "all that wait for the load fill the queue: {issue}");
}

#[test]
fn a_thread_with_co_runners_keeps_to_its_part_while_loads_are_far_away() {
    let run = |sharing, even: f64, reuse| {
        let mut pipeline = Pipeline { sharing, ..pipeline() };
        pipeline.rooms[Queue::Rob as usize].even = even;
        let environment = environment(&pipeline);
        let sparse = trace(LONG, |line| match line % 16 {
            0 => Op { reuse, line, ..op(OpClass::Load) },
            _ => op(OpClass::Integer),
        });
        Window::default().run(&pipeline, &sparse, &environment).cpi
    };
    let all = run(CoreSharing::Alone, 32.0, f32::INFINITY);
    // As if the buffer were half as long.
    let part = run(CoreSharing::Others, 32.0, f32::INFINITY);
    assert!((200.0 / 32.0..220.0 / 32.0).contains(&part) && all < 0.6 * part, "{part} {all}");
    // Loads from the L2 are near.
    let near = |sharing| run(sharing, 32.0, 5e3);
    assert_eq!(near(CoreSharing::Others), near(CoreSharing::Alone));
}

#[test]
fn a_hit_on_a_line_in_flight_waits_for_it() {
    // Each load opens a line, the next hits it; each pair needs the pair before.
    let pairs = trace(LONG / 4, |index| match index % 2 {
        0 => Op { reuse: f32::INFINITY, line: index, sources: [1, 0], ..op(OpClass::Load) },
        _ => Op { line: index - 1, ..op(OpClass::Load) },
    });
    about(cpi(&pairs, |_| {}), 100.0);
}

#[test]
fn a_prefetched_stream_runs_at_the_rate_of_memory() {
    let stream = |trigger| {
        trace(LONG, move |index| match index % 16 {
            0 => Op { reuse: f32::INFINITY, line: index, trigger, ..op(OpClass::Load) },
            _ => Op { sources: [1, 0], ..op(OpClass::Integer) },
        })
    };
    let bare = cpi(&stream(NO_TRIGGER), |_| {});
    let ahead = cpi(&stream(16 * 20), |_| {});
    assert!(ahead < bare / 2.0, "{ahead} against {bare}");
    about(cpi(&stream(16 * 20), |e| e.memory_interval = 64.0), 4.0);
}

#[test]
fn a_stream_that_rested_for_long_is_not_followed_any_more() {
    let stream = |trigger, rested| {
        trace(LONG, move |index| match index % 16 {
            0 => Op { reuse: f32::INFINITY, line: index, trigger, rested, ..op(OpClass::Load) },
            _ => Op { sources: [1, 0], ..op(OpClass::Integer) },
        })
    };
    let bare = cpi(&stream(NO_TRIGGER, 0.0), |_| {});
    let [brief, long] = [250.0, 260.0].map(|rested| cpi(&stream(16 * 20, rested), |_| {}));
    assert!(brief < bare / 2.0 && long == bare, "{brief} {long} against {bare}");
}

#[test]
fn each_level_has_its_latency() {
    let chained = |reuse: f32| {
        trace(LONG / 10, move |line| Op { reuse, line, sources: [1, 0], ..op(OpClass::Load) })
    };
    for (reuse, latency) in [(500.0, 4.0), (5e3, 12.0), (5e5, 40.0), (5e6, 200.0)] {
        about(cpi(&chained(reuse), |_| {}), latency);
    }
    about(cpi(&chained(5e3), |e| e.reach[CacheLevel::L2 as usize] = 12.0), 40.0);
    let walks = |e: &mut Environment| {
        e.reach[CacheLevel::DataTlb as usize] = -1.0;
        e.reach[CacheLevel::Tlb2 as usize] = -1.0;
    };
    about(cpi(&chained(500.0), walks), 34.0);
}

#[test]
fn a_misprediction_costs_resolution_and_refill() {
    let branches = |mispredicted| {
        trace(LONG, move |index| match index % 10 {
            9 => Op { mispredicted, ..op(OpClass::Branch) },
            _ => op(OpClass::Integer),
        })
    };
    about(cpi(&branches(0), |_| {}), 0.25);
    let all = cpi(&branches(0b11_1111), |_| {}) * 10.0;
    assert!((18.0..22.0).contains(&all), "{all}");
    // Only the small predictor errs.
    about(cpi(&branches(0b10), |_| {}), 0.25);
    let small = cpi(&branches(0b10), |e| e.predictor += 1) * 10.0;
    assert!((small / all - 1.0).abs() < 0.01);
}

#[test]
fn an_instruction_miss_stops_the_front_end() {
    let code = trace(LONG, |index| match index % 16 {
        0 => Op { fetch: 5e3, ..op(OpClass::Integer) },
        _ => op(OpClass::Integer),
    });
    about(cpi(&code, |_| {}), (12.0 + 4.0) / 16.0);
    about(cpi(&code, |e| e.reach[CacheLevel::L1i as usize] = 14.0), 0.25);
}

#[test]
fn stores_do_not_wait_but_drain() {
    let stores = trace(LONG / 4, |line| Op { reuse: f32::INFINITY, line, ..op(OpClass::Store) });
    about(cpi(&stores, |_| {}), 25.0);
    let few = trace(LONG, |line| match line % 200 {
        0 => Op { reuse: f32::INFINITY, line, ..op(OpClass::Store) },
        _ => op(OpClass::Integer),
    });
    assert!(cpi(&few, |_| {}) < 0.3);
}

#[test]
fn charges_name_the_cause() {
    use super::account::{Cycle, Slot};
    let chased = trace(LONG / 10, |line| Op {
        reuse: f32::INFINITY,
        line,
        sources: [1, 0],
        ..op(OpClass::Load)
    });
    let outcome = run(&chased, |_| {});
    assert!(outcome.cycles[Cycle::Memory as usize] > 0.95 * outcome.cpi);
    assert!(outcome.slots[Slot::Memory as usize] > 0.9 * 4.0 * outcome.cpi);
    let shared = run(&trace(LONG, |_| op(OpClass::Integer)), |e| e.dispatch = 0.5);
    assert!(shared.slots[Slot::OtherThread as usize] > 0.8 * 4.0 * shared.cpi);
    assert!(shared.cycles[Cycle::Turn as usize] > 0.4 * shared.cpi);
    let wrong = trace(LONG, |index| match index % 10 {
        9 => Op { mispredicted: 0xff, ..op(OpClass::Branch) },
        _ => op(OpClass::Integer),
    });
    let outcome = run(&wrong, |_| {});
    assert!(outcome.cycles[Cycle::EmptyMispredict as usize] > 0.6 * outcome.cpi);
    let code = trace(LONG, |_| Op { fetch: 5e3, ..op(OpClass::Integer) });
    let outcome = run(&code, |_| {});
    assert!(outcome.slots[Slot::FetchLatency as usize] > 0.9 * 4.0 * outcome.cpi - 1.0);
    assert!(outcome.cycles[Cycle::EmptyIcache as usize] > 0.7 * outcome.cpi);
}

fn any_op() -> impl Strategy<Value = Op> {
    let class = prop::sample::select(OpClass::ALL.to_vec());
    let reuse = prop::sample::select(vec![10.0_f32, 5e3, 5e5, f32::INFINITY]);
    let sources = (0_u16..40, 0_u16..200);
    (class, reuse, sources, 0_u32..64, 0_u32..40).prop_map(|(class, reuse, sources, line, rare)| {
        Op {
            reuse,
            line,
            sources: [sources.0, sources.1],
            mispredicted: if class == OpClass::Branch && rare < 8 { 0b01_1110 } else { 0 },
            fetch: if rare == 39 { 5e3 } else { 0.0 },
            ..op(class)
        }
    })
}

fn any_trace() -> impl Strategy<Value = Trace> {
    prop::collection::vec(any_op(), 800..1200).prop_map(|ops| Trace {
        instructions: ops.len() as f64,
        lines: 64,
        ops,
        ..Trace::default()
    })
}

/// An environment with less of something.
fn any_loss() -> impl Strategy<Value = fn(&mut Environment)> {
    prop::sample::select(vec![
        (|e| e.dispatch /= 2.0) as fn(&mut Environment),
        |e| e.ports[Group::Vector as usize] /= 2.0,
        |e| e.ports[Group::Load as usize] /= 2.0,
        |e| e.entries[Queue::Rob as usize] /= 2.0,
        |e| e.entries[Queue::Mshr as usize] /= 2.0,
        |e| e.reach[CacheLevel::Last as usize] = e.reach[CacheLevel::L2 as usize],
        |e| e.reach[CacheLevel::L1d as usize] -= 8.0,
        |e| e.memory_latency *= 1.5,
        |e| e.memory_interval *= 8.0,
        |e| e.predictor += 1,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stacks_sum_to_the_cycles(trace in any_trace(), loss in any_loss()) {
        let outcome = run(&trace, loss);
        prop_assert!((outcome.cycles.iter().sum::<f64>() - outcome.cpi).abs() < 1e-9);
        prop_assert!((outcome.slots.iter().sum::<f64>() - 4.0 * outcome.cpi).abs() < 1e-6);
        prop_assert!(outcome.cycles.iter().chain(&outcome.slots).all(|part| *part >= 0.0));
        prop_assert!(outcome.vector_cycles <= outcome.cpi + 1e-9);
    }

    /// On the mean over programs. Of a single one less may be a gain: an order of issue
    /// that is not planned ahead has anomalies, by less than a factor of two (Graham,
    /// "Bounds on multiprocessing timing anomalies", 1969, theorem 1).
    #[test]
    fn less_of_anything_is_no_gain(
        traces in prop::collection::vec(any_trace(), 8), loss in any_loss(),
    ) {
        let costs: Vec<f64> =
            traces.iter().map(|trace| cpi(trace, loss) / cpi(trace, |_| {})).collect();
        prop_assert!(costs.iter().all(|cost| *cost > 0.5), "{costs:?}");
        prop_assert!(costs.iter().sum::<f64>() >= 0.97 * costs.len() as f64, "{costs:?}");
    }

    #[test]
    fn queues_hold_no_more_than_they_can(trace in any_trace(), loss in any_loss()) {
        let outcome = run(&trace, loss);
        let mut environment = environment(&pipeline());
        loss(&mut environment);
        for queue in [Queue::Rob, Queue::Iq, Queue::Lq, Queue::Sq, Queue::Mshr] {
            let held = outcome.held[queue as usize] / outcome.cpi;
            prop_assert!(held <= environment.entries[queue as usize] + 1.0, "{queue:?} {held}");
        }
    }

    #[test]
    fn the_cpi_alone_is_that_of_a_run(trace in any_trace(), loss in any_loss(), shares in any::<bool>()) {
        let sharing = if shares { CoreSharing::Others } else { CoreSharing::Alone };
        let pipeline = Pipeline { sharing, ..pipeline() };
        let mut environment = environment(&pipeline);
        loss(&mut environment);
        let mut window = Window::default();
        let whole = window.run(&pipeline, &trace, &environment).cpi;
        let course = Course::new(&pipeline, Cow::Borrowed(&trace));
        prop_assert_eq!(window.cpi(&course, &environment), whole);
    }

    #[test]
    fn a_window_used_again_answers_the_same(trace in any_trace(), loss in any_loss()) {
        let pipeline = pipeline();
        let mut environment = environment(&pipeline);
        loss(&mut environment);
        let mut window = Window::default();
        let first = window.run(&pipeline, &trace, &environment);
        let _ = window.run(&pipeline, &trace, &self::environment(&pipeline));
        prop_assert_eq!(window.run(&pipeline, &trace, &environment), first);
    }
}
