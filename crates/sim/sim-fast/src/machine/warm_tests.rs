//! What a move costs by the caches that it leaves, whatever else happens meanwhile.

use std::time::Duration;

use symbiont_machine::{Change, Machine, Move, Target};
use symbiont_profile::{Profile, Span, test_support};
use symbiont_topology::{CoreId, NodeId};

use super::tests::program;
use super::{Contention, Runner, SimMachine};
use crate::description::Description;
use crate::fast::{Switches, TableBuilder};
use crate::machine::{Errors, SimOptions};
use crate::program::Shape;

/// Something that goes from one phase to another and back, each of so many instructions.
fn restless(each: u64) -> Profile {
    let mut profile = test_support::branchy();
    let mut other = profile.phases[0].clone();
    other.branches.taken /= 2;
    profile.phases.push(other);
    let whole = profile.instructions;
    let spans = (0..whole / each).map(|at| Span { phase: (at % 2) as u16, instructions: each });
    profile.threads[0].sequence = spans.collect();
    profile.instructions = profile.threads[0].instructions();
    profile
}

/// Sends each program's thread to a hardware thread.
fn place<'p, C: Contention<'p>>(machine: &mut SimMachine<'p, C>, pus: [u32; 2]) {
    let sample = machine.sample().unwrap();
    let to = |pu: u32| Change::Affinity(Target::Cpus(pu.to_string().parse().unwrap()));
    let threads = sample.threads.iter();
    let moves: Vec<Move> = threads
        .map(|thread| Move { thread: thread.id, change: to(pus[thread.program.0 as usize]) })
        .collect();
    machine.apply(&moves).unwrap();
}

/// Instructions in the 100 ms after a program of many lines was moved to another core, or was not,
/// with one on a third core that changes its phase every so many instructions, asked so often.
fn retired(moves: bool, each: u64, cuts: u32) -> f64 {
    retired_with(Switches::default(), moves, each, cuts)
}

fn retired_with(switches: Switches, moves: bool, each: u64, cuts: u32) -> f64 {
    let (large, restless) = (test_support::pointer_chasing(20_000), restless(each));
    let builder = TableBuilder::new(Description::named("power8-s812l").unwrap());
    let programs = [&large, &restless].map(|profile| program(profile, Shape::Single, None)).into();
    let allowed = Some("0,8,16".parse().unwrap());
    let options = SimOptions { allowed, errors: Errors::NONE, seed: 1, ..SimOptions::default() };
    let fast = builder.fast(switches);
    let mut machine = SimMachine::new(builder.description(), fast, programs, &[], options).unwrap();
    place(&mut machine, [0, 16]);
    machine.wait(Duration::from_secs(2)).unwrap();
    let before = machine.retired(0).unwrap();
    place(&mut machine, [if moves { 8 } else { 0 }, 16]);
    (0..cuts).for_each(|_| machine.wait(Duration::from_millis(100) / cuts).unwrap());
    machine.retired(0).unwrap() - before
}

/// Asked ten thousand times, the answers for such short spans are what happens. Over a long span, the mean
/// of its misses stands for all moments; but while caches are empty a miss costs most.
#[test]
fn what_happens_elsewhere_fills_nobodys_caches() {
    const NEVER: u64 = 1_000_000_000;
    let lost = |each: u64, cuts: u32| retired(false, each, cuts) - retired(true, each, cuts);
    let happens = lost(NEVER, 10_000);
    assert!(happens > 1e5, "a move costs nothing to begin with: {happens}");
    let long = [(NEVER, 1), (5_000_000, 10)].map(|asked| (asked, 0.5..1.2));
    let short = [(NEVER, 1000), (500_000, 10), (500_000, 100)].map(|asked| (asked, 0.9..1.1));
    for ((each, cuts), expected) in long.into_iter().chain(short) {
        let share = lost(each, cuts) / happens;
        assert!(expected.contains(&share), "{each}, {cuts} times: {share} of what happens");
    }
}

#[test]
fn where_caches_are_warm_at_once_moves_leave_nothing_behind() {
    let warm = Switches { warm_caches: true, ..Switches::default() };
    let [moved, stayed] = [true, false].map(|moves| retired_with(warm, moves, 1_000_000_000, 1));
    // The move itself takes some microseconds of 100 ms.
    assert!((moved / stayed - 1.0).abs() < 2e-4, "{moved} {stayed}");
    let cold = retired(true, 1_000_000_000, 1);
    assert!(cold < 0.997 * moved, "{cold} {moved}");
}

/// What happens sooner or later than was thought is as if that had been known.
#[test]
fn another_span_instead_is_as_if_asked_at_once() {
    let large = test_support::pointer_chasing(20_000);
    let builder = TableBuilder::new(Description::named("power8-s812l").unwrap());
    let runner =
        |core: u32| Runner { thread: 1, core: CoreId(core), phase: 0, home: NodeId(0), mode: 1 };
    // On a core whose caches hold some of it, asked about so many ns, or first about others.
    let speed = |first: Option<f64>, ns: f64| {
        let mut fast = builder.fast(Switches::default());
        fast.prepare(&large.phases[0]).unwrap();
        fast.thread_rates(&[runner(0)], 1e9);
        fast.lasted(1e9);
        fast.thread_rates(&[runner(1)], 1e5);
        fast.lasted(1e5);
        let thread_rates = match first {
            None => fast.thread_rates(&[runner(1)], ns),
            Some(first) => {
                let before = fast.thread_rates(&[runner(1)], first);
                fast.instead(&[runner(1)], ns).unwrap_or(before)
            }
        };
        // What is held in the end shows in the next answer.
        fast.lasted(ns);
        [thread_rates[0].speed, fast.thread_rates(&[runner(1)], 1e5)[0].speed]
    };
    let near = |a: [f64; 2], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 5e-3);
    let (brief, long) = (speed(None, 1e4), speed(None, 1e6));
    assert!(long[0] > 1.02 * brief[0], "{brief:?} {long:?}");
    for (first, ns, at_once) in [(1e4, 1e6, long), (1e6, 1e4, brief), (1e2, 1e6, long)] {
        let instead = speed(Some(first), ns);
        assert!(near(instead, at_once), "{first}, {ns}: {instead:?}, not {at_once:?}");
    }
}
