use std::convert::Infallible;

use proptest::prelude::*;
use symbiont_machine::Priority;
use symbiont_profile::{OpClass, Phase, Profile, Span, Thread as Recorded};
use symbiont_topology::CoreId;

use super::*;
use crate::activity::{Activity, Cycle, Slot};
use crate::program::{Alternating, Shape};

/// A physics that can be worked out by hand: a phase's CPI alone is its loads
/// per instruction, and each co-runner on the core adds half of that.
#[derive(Debug, Default)]
pub(super) struct Toy {
    phases: Vec<f64>,
}

impl<'p> Contention<'p> for Toy {
    type Error = Infallible;

    fn prepare(&mut self, phase: &'p Phase) -> Result<usize, Infallible> {
        self.phases.push(phase.per_instruction(phase.mix.count(OpClass::Load)));
        Ok(self.phases.len() - 1)
    }

    fn thread_rates(&mut self, running: &[Runner], _span_ns: f64) -> Vec<Arc<ThreadRate>> {
        let co_runners = |core: CoreId| running.iter().filter(|r| r.core == core).count() - 1;
        running
            .iter()
            .map(|thread| {
                let cpi = self.phases[thread.phase] * (1.0 + 0.5 * co_runners(thread.core) as f64);
                let mut activity = Activity { instructions: 1.0, uops: 1.0, ..Activity::default() };
                activity.cycles[Cycle::Retiring as usize] = 0.5;
                activity.cycles[Cycle::Memory as usize] = cpi - 0.5;
                activity.slots[Slot::Retiring as usize] = 1.0;
                activity.slots[Slot::Memory as usize] = 8.0 * cpi - 1.0;
                Arc::new(ThreadRate { speed: 1.0 / cpi, activity, ghz: 1.0, width: 8.0 })
            })
            .collect()
    }
}

/// A profile whose phases have these CPIs, and this sequence of phase and
/// instructions.
pub(super) fn profile(cpis: &[u64], sequence: &[(u16, u64)]) -> Profile {
    let phase = |cpi: &u64| {
        let mut phase = Phase { instructions: 1, ..Phase::default() };
        phase.mix.ops[OpClass::Load.index()] = *cpi;
        phase
    };
    let spans = sequence.iter().map(|&(phase, instructions)| Span { phase, instructions });
    Profile {
        program: "toy".into(),
        command: vec!["toy".into()],
        digest: "0".repeat(64),
        instructions: sequence.iter().map(|(_, n)| n).sum(),
        phases: cpis.iter().map(phase).collect(),
        threads: vec![Recorded { program: "toy".into(), process: 0, sequence: spans.collect() }],
        gaps: Vec::new(),
    }
}

const MS: u64 = 1_000_000;

fn two_phases() -> Profile {
    profile(&[1, 3], &[(0, 7 * MS), (1, 2 * MS), (0, 5 * MS), (1, 3 * MS)])
}

pub(super) fn program<'p>(
    profile: &'p Profile,
    shape: Shape,
    target: Option<u64>,
) -> SimProgram<'p> {
    SimProgram { name: profile.program.clone(), profile, shape, target }
}

fn power8() -> Description {
    Description::named("power8-s812l").unwrap()
}

fn start<'p>(
    machine: &str,
    programs: Vec<SimProgram<'p>>,
    options: SimOptions,
) -> SimMachine<'p, Toy> {
    let description = Description::named(machine).unwrap();
    SimMachine::new(&description, Toy::default(), programs, &[], options).unwrap()
}

fn limited(cpus: &str, seed: u64) -> SimOptions {
    SimOptions { seed, allowed: Some(cpus.parse().unwrap()), ..SimOptions::default() }
}

/// Runs some quanta under moves that a seed draws; gives all samples.
fn shuffled(seed: u64, quantum: Duration, quanta: usize) -> Vec<Sample> {
    use rand::Rng;
    let profile = two_phases();
    let phases = Alternating { threads: 3, parallel: (1e6, 5e6), serial: 0.3 };
    let programs = (0..4)
        .map(|n| match n % 2 {
            0 => program(&profile, Shape::Single, Some(30 * MS)),
            _ => program(&profile, Shape::Alternating(phases), Some(60 * MS)),
        })
        .collect();
    let mut machine = start("power8-s812l", programs, limited("0-3,8-11", seed));
    machine.measure(&[Signal::CpiStack, Signal::L1dBandwidth].into());
    let mut random = Pcg64Mcg::seed_from_u64(seed + 1);
    let mut samples = Vec::new();
    for _ in 0..quanta {
        let sample = machine.sample().unwrap();
        let mut moves = Vec::new();
        for thread in &sample.threads {
            let pus: Vec<_> = machine.allowed.iter().collect();
            let pu = pus[random.random_range(0..pus.len())];
            if random.random_bool(0.5) {
                let change = Change::Affinity(Target::Cpus([pu].into_iter().collect()));
                moves.push(Move { thread: thread.id, change });
            }
        }
        assert!(machine.apply(&moves).unwrap().iter().all(|o| *o == Outcome::Done));
        samples.push(sample);
        machine.wait(quantum).unwrap();
    }
    samples.push(machine.sample().unwrap());
    samples
}

#[test]
fn equal_seeds_give_equal_samples() {
    let text =
        |seed| serde_json::to_string(&shuffled(seed, Duration::from_millis(10), 30)).unwrap();
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

/// Its cycles at each count of instructions, past the end of what was recorded, show in which
/// phases it was.
#[test]
fn a_program_does_the_same_alone_and_with_co_runners() {
    let profile = profile(&[1, 3, 9], &[(0, MS), (1, MS), (0, MS), (2, MS), (1, MS), (2, MS)]);
    let other = two_phases();
    let cycles = |others_count: usize, seed: u64| -> f64 {
        let others = (0..others_count).map(|_| program(&other, Shape::Single, None));
        let own = program(&profile, Shape::Single, Some(200 * MS));
        let programs = others.chain([own]).collect();
        // Each has a core of its own, so that no thread slows it down.
        let mut machine = start("power8-s812l", programs, limited("0,8,16,24", seed));
        machine.wait(Duration::from_secs(3)).unwrap();
        let first = machine.completions().iter().find(|c| c.slot == others_count && c.run == 0);
        let first = first.unwrap();
        (first.ended.0 - first.started.0) as f64
    };
    let alone = cycles(0, 1);
    for (others_count, seed) in [(0, 2), (1, 1), (3, 5)] {
        let again = cycles(others_count, seed);
        assert!((again / alone - 1.0).abs() < 1e-3, "{others_count} {seed}: {again} {alone}");
    }
}

#[test]
fn no_count_runs_backwards() {
    let samples = shuffled(3, Duration::from_millis(3), 60);
    let mut compared = 0;
    for pair in samples.windows(2) {
        for now in &pair[1].threads {
            let Some(before) = pair[0].threads.iter().find(|t| t.id == now.id) else { continue };
            assert!(before.run_time <= now.run_time && before.wait_time <= now.wait_time);
            assert!(before.switches <= now.switches);
            for (a, b) in before.counts.iter().zip(&now.counts) {
                let (a, b) = (a.as_ref().unwrap(), b.as_ref().unwrap());
                assert!(a.enabled <= b.enabled && a.running <= b.running && b.running <= b.enabled);
                assert!(a.counts.iter().zip(&b.counts).all(|(a, b)| a <= b));
                compared += 1;
            }
        }
    }
    assert!(compared > 100);
    assert!(samples.iter().any(|sample| !sample.ended.is_empty()), "no thread ended");
}

#[test]
fn work_is_conserved() {
    let profile = two_phases();
    // Two on one core: CPI 1.5 and 4.5, on one hardware thread each.
    let programs = (0..2).map(|_| program(&profile, Shape::Single, None)).collect();
    let mut machine = start("power8-s812l", programs, limited("0-1", 1));
    machine.wait(Duration::from_millis(40)).unwrap();
    for slot in 0..2 {
        let retired = machine.retired(slot).unwrap();
        let thread = machine.threads.iter().find(|t| t.slot == slot).unwrap();
        assert_eq!(thread.ran_ns, 4e7);
        // 7 million at CPI 1.5, 2 at 4.5, 5 at 1.5, then some at 4.5; each phase ends late by 2 %
        // of its length. The start costs a context switch.
        let (lost, ends) = (2e3, [7.14e6, 9.04e6, 14.1e6]);
        let fast = ends[0] + (ends[2] - ends[1]);
        let left = 4e7 - lost - 1.5 * fast - 4.5 * (ends[1] - ends[0]);
        let expected = ends[2] + left / 4.5;
        assert!((retired - expected).abs() < 2e3, "{retired}, not {expected}");
    }
}

/// Whenever a sample is taken: what was done makes up the time that was run.
#[test]
fn what_is_done_is_counted() {
    let profile = two_phases();
    let programs = (0..6).map(|_| program(&profile, Shape::Single, Some(9 * MS))).collect();
    let mut machine = start("power8-s812l", programs, limited("0-3", 3));
    machine.measure(&[Signal::CpiStack].into());
    for _ in 0..40 {
        machine.wait(Duration::from_micros(1700)).unwrap();
        let done: Vec<Activity> = machine.truth().map(|truth| truth.done).collect();
        machine.sample().unwrap();
        for (thread, done) in machine.threads.iter().zip(&done) {
            // One cycle in each ns.
            let cycles = done.all_cycles();
            assert!((cycles - thread.ran_ns).abs() < 1e-6 * thread.ran_ns + 1e-3, "{cycles}");
            let modes: f64 = done.modes.iter().sum();
            assert!((modes - cycles).abs() < 1e-6 * cycles + 1e-3, "{modes} of {cycles}");
            // Sampling changes nothing.
            assert!((thread.done.instructions - done.instructions).abs() < 1e-3);
        }
    }
}

#[test]
fn cutting_time_changes_nothing() {
    let profile = two_phases();
    let run = |cuts: u64| {
        let programs = (0..5).map(|_| program(&profile, Shape::Single, Some(9 * MS))).collect();
        let mut machine = start("power8-s812l", programs, limited("0-3", 7));
        for _ in 0..cuts {
            machine.wait(Duration::from_nanos(180 * MS / cuts)).unwrap();
        }
        machine.completions().to_vec()
    };
    let (whole, cut) = (run(1), run(600));
    assert!(whole.len() > 3);
    assert_eq!(whole.len(), cut.len());
    for (a, b) in whole.iter().zip(&cut) {
        assert_eq!((a.slot, a.run), (b.slot, b.run));
        assert!(a.ended.0.abs_diff(b.ended.0) < 100, "{a:?} {b:?}");
    }
}

#[test]
fn a_program_is_launched_again_and_its_lead_does_not_count() {
    let profile = profile(&[1], &[(0, 1000)]);
    let programs = vec![program(&profile, Shape::Single, Some(10 * MS))];
    let options = limited("0-7", 1);
    let mut machine =
        SimMachine::new(&power8(), Toy::default(), programs, &[4 * MS], options).unwrap();
    machine.wait(Duration::from_millis(30)).unwrap();
    let done = machine.completions().to_vec();
    assert_eq!(done.len(), 3);
    assert_eq!(done.iter().map(|run| run.counts).collect::<Vec<_>>(), [false, true, true]);
    let times: Vec<u64> =
        done.iter().map(|run| run.ended.since(run.started).as_nanos() as u64).collect();
    for (time, expected) in times.iter().zip([4 * MS, 10 * MS, 10 * MS]) {
        let cost = time.abs_diff(expected);
        assert!(cost > 0 && cost < 10_000, "{times:?}");
    }
    let ids: Vec<_> = machine.sample().unwrap().threads.iter().map(|t| t.id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(ids[0].born, done[2].ended.0);
}

#[test]
fn serial_phases_have_one_ready_thread() {
    let profile = profile(&[1], &[(0, 1000 * MS)]);
    // 4 million in parallel by 4 threads take 1 ms, then 2 ms alone.
    let phases = Alternating { threads: 4, parallel: (4e6, 4e6), serial: 0.5 };
    let programs = vec![program(&profile, Shape::Alternating(phases), None)];
    let mut machine = start("xeon-e5-2620v4", programs, SimOptions::default());
    machine.wait(Duration::from_millis(100)).unwrap();
    let (mut serial, mut parallel) = (0, 0);
    for _ in 0..3000 {
        machine.wait(Duration::from_micros(100)).unwrap();
        let sample = machine.sample().unwrap();
        match sample.threads.iter().filter(|t| t.state == RunState::Runnable).count() {
            1 => serial += 1,
            4 => parallel += 1,
            other => panic!("{other} ready threads"),
        }
    }
    let share = f64::from(serial) / f64::from(serial + parallel);
    assert!((share - 0.66).abs() < 0.03, "{share}");
}

#[test]
fn no_thread_waits_next_to_an_idle_place() {
    let profile = two_phases();
    let phases = Alternating { threads: 6, parallel: (2e6, 9e6), serial: 0.4 };
    let programs = vec![
        program(&profile, Shape::Alternating(phases), None),
        program(&profile, Shape::Alternating(phases), None),
    ];
    let mut machine = start("morad-8-symmetric", programs, SimOptions::default());
    let (mut idle, mut before) = (0, vec![0; 12]);
    for _ in 0..500 {
        machine.wait(Duration::from_millis(4)).unwrap();
        let queues = machine.queues();
        let empty = (0..8).any(|at| queues.len(at) == 0);
        let crowded = (0..8).any(|at| queues.len(at) > 1);
        idle += usize::from(empty && crowded);
        let now: Vec<u64> = machine.threads.iter().map(|t| t.ran_ns as u64).collect();
        assert!(now.iter().zip(&before).all(|(now, before)| now >= before));
        before = now;
    }
    // A tick falls on each of these moments: waking threads may have just come.
    assert!(idle < 25, "{idle} of 500 moments");
}

/// Of 24 on 16 hardware threads 8 have a place for themselves, in turn.
#[test]
fn all_waiting_threads_get_about_as_much() {
    let profile = profile(&[1], &[(0, 1000 * MS)]);
    for (name, places, count) in [
        ("xeon-e5-2620v4", 16.0, 24),
        ("xeon-e5-2620v4", 16.0, 20),
        ("morad-8-symmetric", 8.0, 12),
        ("morad-8-symmetric", 8.0, 9),
    ] {
        let programs = (0..count).map(|_| program(&profile, Shape::Single, None)).collect();
        let mut machine = start(name, programs, SimOptions::default());
        machine.wait(Duration::from_secs(60)).unwrap();
        let share = places / f64::from(count);
        for thread in &machine.threads {
            let got = thread.ran_ns / 60e9;
            assert!((got - share).abs() < 0.05, "{got}, not {share}: {count} on {name}");
        }
    }
}

#[test]
fn a_boosted_thread_gets_the_share_of_its_weight() {
    let profile = profile(&[1], &[(0, 1000 * MS)]);
    let programs = (0..2).map(|_| program(&profile, Shape::Single, None)).collect();
    let mut machine = start("power8-s812l", programs, limited("0", 1));
    let ids: Vec<_> = machine.sample().unwrap().threads.iter().map(|t| (t.program, t.id)).collect();
    let boost = |priority| Move { thread: ids[0].1, change: Change::Priority(priority) };
    for (priority, expected) in
        [(Priority::Normal, 0.5), (Priority::Boosted(5), 0.753), (Priority::Idle, 0.003)]
    {
        machine.apply(&[boost(priority)]).unwrap();
        let ran = |machine: &mut SimMachine<'_, Toy>| {
            let threads = machine.sample().unwrap().threads;
            threads.iter().find(|t| t.id == ids[0].1).unwrap().run_time.as_secs_f64()
        };
        let before = ran(&mut machine);
        machine.wait(Duration::from_secs(10)).unwrap();
        let share = (ran(&mut machine) - before) / 10.0;
        assert!((share - expected).abs() < 0.01, "{priority:?}: {share}");
    }
}

#[test]
fn moves_outside_the_limit_and_of_others_are_answered() {
    let profile = two_phases();
    let programs = vec![program(&profile, Shape::Single, None)];
    let mut machine = start("power8-s812l", programs, limited("0-7", 1));
    let id = machine.sample().unwrap().threads[0].id;
    let to = |thread, cpus: &str| {
        let change = Change::Affinity(Target::Cpus(cpus.parse().unwrap()));
        Move { thread, change }
    };
    let gone = ThreadId { thread: 99, ..id };
    let outcomes = machine.apply(&[to(id, "8-15"), to(gone, "1"), to(id, "5")]).unwrap();
    assert!(
        matches!(&outcomes[0], Outcome::Refused(why) if why.contains("none of the allowed CPUs"))
    );
    assert_eq!(outcomes[1..], [Outcome::Gone, Outcome::Done]);
    machine.wait(Duration::from_millis(1)).unwrap();
    assert_eq!(machine.sample().unwrap().threads[0].cpu.unwrap().0, 5);
}

/// Share of the quanta in which two busy threads that were put on one hardware thread are still
/// there, while others are idle.
fn stay_together(change: impl Fn(CpuSet) -> Change) -> f64 {
    let profile = two_phases();
    let programs =
        vec![program(&profile, Shape::Single, None), program(&profile, Shape::Single, None)];
    let mut machine = start("power8-s812l", programs, limited("0-7", 1));
    let mut together = 0;
    for quantum in 0..100 {
        let threads = machine.sample().unwrap().threads;
        together += u32::from(threads.iter().all(|thread| thread.cpu == Some(PuId(5))));
        if quantum == 0 {
            let to =
                |thread: &ThreadSample| Move { thread: thread.id, change: change(PuId(5).into()) };
            let moves: Vec<Move> = threads.iter().map(to).collect();
            assert_eq!(machine.apply(&moves).unwrap(), [Outcome::Done, Outcome::Done]);
            let there = machine.sample().unwrap().threads;
            assert!(there.iter().all(|thread| *thread.allowed == "0-7".parse().unwrap()));
        }
        machine.wait(Duration::from_millis(10)).unwrap();
    }
    f64::from(together) / 99.0
}

#[test]
fn a_nudged_thread_is_moved_and_not_held() {
    assert_eq!(stay_together(|cpus| Change::Affinity(Target::Cpus(cpus))), 1.0);
    let nudged = stay_together(Change::Nudge);
    assert!(nudged < 0.5, "{nudged}");
    let profile = two_phases();
    let programs = vec![program(&profile, Shape::Single, None)];
    let mut machine = start("power8-s812l", programs, limited("0-7", 1));
    let id = machine.sample().unwrap().threads[0].id;
    let nudge = |cpus: &str| Move { thread: id, change: Change::Nudge(cpus.parse().unwrap()) };
    for cpu in [5, 2, 7] {
        assert_eq!(machine.apply(&[nudge(&cpu.to_string())]).unwrap(), [Outcome::Done]);
        machine.wait(Duration::from_millis(1)).unwrap();
        assert_eq!(machine.sample().unwrap().threads[0].cpu, Some(PuId(cpu)));
    }
    assert!(matches!(&machine.apply(&[nudge("8-15")]).unwrap()[..], [Outcome::Refused(_)]));
}

#[test]
fn what_does_not_suit_the_machine_is_refused() {
    let profile = two_phases();
    let programs = |count: usize| {
        (0..count).map(|_| program(&profile, Shape::Single, None)).collect::<Vec<_>>()
    };
    let refused = |programs, options| {
        SimMachine::new(&power8(), Toy::default(), programs, &[], options).unwrap_err().to_string()
    };
    assert_eq!(
        refused(programs(65), limited("3", 1)),
        "65 threads on 1 hardware threads: a simulated machine takes at most 64 for each"
    );
    assert_eq!(
        refused(programs(1), limited("80-81", 1)),
        "the hardware threads 80-81 are none of this machine's (0-79)"
    );
    let empty = Profile { phases: Vec::new(), ..two_phases() };
    let error = refused(vec![program(&empty, Shape::Single, None)], SimOptions::default());
    assert_eq!(error, "program 'toy' has an empty profile; capture it again");
}

/// What the counts of a sample say of a thread's CPI and the share of its
/// cycles that retired something.
fn reported(machine: &mut SimMachine<'_, Toy>) -> (f64, f64) {
    let sample = machine.sample().unwrap();
    let groups = &sample.counting.as_ref().unwrap().groups;
    let reading = sample.threads[0].counts[0].as_ref().unwrap();
    let count = |name: &str| {
        let at = groups[0].events.iter().position(|event| &**event == name).unwrap();
        reading.counts[at] as f64
    };
    (count("PM_RUN_CYC") / count("PM_RUN_INST_CMPL"), count("PM_GRP_CMPL") / count("PM_RUN_CYC"))
}

#[test]
fn counters_err_as_configured() {
    let profile = profile(&[2], &[(0, 1000 * MS)]);
    let run = |errors| {
        let programs = vec![program(&profile, Shape::Single, None)];
        let options = SimOptions { errors, ..limited("0", 1) };
        let mut machine = start("power8-s812l", programs, options);
        machine.wait(Duration::from_millis(100)).unwrap();
        machine.measure(&[Signal::CpiStack].into());
        for _ in 0..200 {
            machine.wait(Duration::from_millis(5)).unwrap();
            machine.sample().unwrap();
        }
        reported(&mut machine)
    };
    let (cpi, retiring) = run(Errors::NONE);
    assert!((cpi - 2.0).abs() < 1e-6 && (retiring - 0.25).abs() < 1e-6, "{cpi} {retiring}");
    let (cpi, retiring) = run(Errors { residue: 0.1, ..Errors::NONE });
    assert!((cpi - 2.0).abs() < 1e-6 && (retiring - 0.225).abs() < 3e-3, "{cpi} {retiring}");
    let (cpi, retiring) = run(Errors { noise: 0.05, ..Errors::default() });
    assert!((cpi - 2.0).abs() < 1e-3 && (retiring - 0.245).abs() < 5e-3, "{cpi} {retiring}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn time_that_threads_ran_and_waited_is_the_time_that_passed(
        count in 1_usize..12, seed: u64, steps in proptest::collection::vec(1_u64..9_000_000, 1..20),
    ) {
        let profile = two_phases();
        let programs = (0..count).map(|_| program(&profile, Shape::Single, None)).collect();
        let mut machine = start("power8-s812l", programs, limited("0-2,8", seed));
        let mut passed = 0;
        for step in steps {
            machine.wait(Duration::from_nanos(step)).unwrap();
            passed += step;
        }
        for thread in &machine.threads {
            let time = thread.ran_ns + thread.waited_ns;
            prop_assert!((time - passed as f64).abs() < 1.0, "{} of {}", time, passed);
        }
        let ran: f64 = machine.threads.iter().map(|t| t.ran_ns).sum();
        prop_assert!(ran <= passed as f64 * 4.0 + 1.0);
    }
}

#[test]
fn programs_are_launched_in_their_order_where_that_is_asked() {
    let profile = two_phases();
    let slots = |in_order, seed| -> Vec<usize> {
        let programs = (0..4).map(|_| program(&profile, Shape::Single, None)).collect();
        let options = SimOptions { in_order, ..limited("0-3", seed) };
        start("power8-s812l", programs, options).threads.iter().map(|one| one.slot).collect()
    };
    assert!((0..20).all(|seed| slots(true, seed) == [0, 1, 2, 3]));
    assert!((0..20).any(|seed| slots(false, seed) != [0, 1, 2, 3]));
}

#[test]
fn a_slot_runs_its_programs_in_turn() {
    let (slow, fast) = (profile(&[4], &[(0, MS)]), profile(&[1], &[(0, MS)]));
    let programs = vec![
        program(&slow, Shape::Single, Some(2 * MS)),
        program(&fast, Shape::Single, Some(3 * MS)),
    ];
    let options = SimOptions { orders: vec![vec![0, 1], vec![1, 0]], ..limited("0,8", 1) };
    let mut machine = start("power8-s812l", programs, options);
    assert_eq!(machine.sample().unwrap().threads.len(), 2);
    machine.wait(Duration::from_millis(50)).unwrap();
    let mut runs: Vec<_> = machine.completions().iter().map(|c| (c.slot, c.program)).collect();
    runs.sort_unstable();
    assert_eq!(runs, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let spans: Vec<_> = machine
        .completions()
        .iter()
        .filter(|c| c.slot == 0)
        .map(|c| (c.started, c.ended))
        .collect();
    assert_eq!(spans[0].1, spans[1].0, "the second starts when the first has ended");
    assert!(machine.sample().unwrap().threads.is_empty(), "each ran once");
}

#[test]
fn an_order_of_unknown_programs_is_refused() {
    let profile = profile(&[1], &[(0, MS)]);
    let options = SimOptions { orders: vec![vec![0, 1]], ..limited("0", 1) };
    let description = Description::named("power8-s812l").unwrap();
    let programs = vec![program(&profile, Shape::Single, None)];
    let made = SimMachine::new(&description, Toy::default(), programs, &[], options);
    assert!(made.unwrap_err().to_string().contains("program 1"));
}
