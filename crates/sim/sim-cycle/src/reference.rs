//! The cycle level as the physics of the simulated machine.
//!
//! # Approach
//! The machine asks how fast threads co-run over some milliseconds, too long to be simulated cycle by cycle
//! each time. So the answer comes from a sample: each thread runs the window that was captured of its phase
//! ([`CycleReference::trace`]) or, without one, a replay of the phase's micro-traces ([`crate::replay`]), on
//! the core that it is on, with caches filled as by its past. The warm-up of a window is skimmed outside of
//! time but for its last instructions; after these, [`Sample::counted`] instructions of each thread are
//! counted while the others run on. Answers are kept: no question is simulated twice.
//!
//! *Shares of caches*: threads occupy a shared cache by their speeds, and their speeds depend on their shares.
//! Filling a large cache takes longer than is simulated. So caches are filled as by threads as fast as each is
//! alone, then as by threads as fast as they turned out, until speeds no longer change ([`Sample::fills`]).
//! Where several ways to share are stable, it is the one reached from full caches.
//!
//! *Twins*: threads in the same phase run the same program. The OS keeps its code once, so they hit each
//! other's lines in instruction caches and below; translations and predictor entries belong to each process.
//!
//! # What this leaves out
//! Caches that fill after a change (answers are of threads that have run together for long), and how a
//! phase varies within itself.
//!
//! # Properties
//! - A thread alone runs at the speed that its program sets (`known_programs_run_as_they_must`).
//! - Equal questions get equal answers (`equal_questions_get_equal_answers`).
//! - Further fills of the caches change nothing (`caches_are_filled_until_speeds_stay`).
//! - Captured and replayed threads co-run (`a_captured_program_runs_as_it_must`).
//! - On a core with halves it matters which threads share one, but not which of its hardware threads
//!   (`runners_stay_in_their_half`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use symbiont_profile::{OpClass, Phase, PredictorConfig};
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::activity::Activity;
use symbiont_sim_fast::description::{CoreType, Description, SmtRule};
use symbiont_sim_fast::machine::{Contention, Fidelity, Runner, Switches, ThreadRate};

use crate::captured::CapturedWindow;
use crate::op::Stream;
use crate::replay::{Replay, Setup, Touch};
use crate::{Chip, CoreSlot, Counts, CycleOptions};

/// How much is simulated for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Instructions of each thread that warm up.
    pub warm_up: u64,
    /// Instructions of each thread, at least, that are counted.
    pub counted: u64,
    /// Cycles after which an answer is given in any case.
    pub longest: u64,
    /// How often the caches of threads that run together are filled anew, at most, until their speeds
    /// stay.
    pub fills: u32,
}

impl Default for Sample {
    /// 20,000 instructions to warm up, 60,000 that count, up to eight fills.
    fn default() -> Self {
        Self { warm_up: 20_000, counted: 60_000, longest: 20_000_000, fills: 8 }
    }
}

/// A runner as answers are known by: core, phase, mode, home.
type Key = (u32, usize, u32, usize);

/// What was asked so far.
#[derive(Debug, Default)]
struct Answers<'p> {
    phases: Vec<&'p Phase>,
    /// By phase: what was captured of it.
    windows: BTreeMap<usize, Arc<CapturedWindow>>,
    answers: BTreeMap<Vec<Key>, Vec<ThreadRate>>,
}

impl<'p> Answers<'p> {
    /// A phase's number, new or known.
    fn number(&mut self, phase: &'p Phase) -> usize {
        let known = self.phases.iter().position(|known| std::ptr::eq(*known, phase));
        known.unwrap_or_else(|| {
            self.phases.push(phase);
            self.phases.len() - 1
        })
    }
}

/// What a thread runs, and what comes before.
struct Source<'p> {
    stream: Stream<'p>,
    past: std::iter::Peekable<std::vec::IntoIter<Touch>>,
    /// Where its program's memory begins.
    origin: u64,
    /// Instructions that go by outside of time.
    skimmed: u64,
}

/// Speeds stay that change by no more than this part from one fill to the next; fewer instructions are
/// counted for that than for an answer.
const STAY: f64 = 0.03;

/// Instructions that go by at a time while caches are filled.
const STRIDE: u64 = 64;

/// The cycle level of a machine. Clones share what they know.
#[derive(Debug, Clone)]
pub struct CycleReference<'p> {
    machine: Arc<Description>,
    options: CycleOptions,
    sample: Sample,
    known: Arc<Mutex<Answers<'p>>>,
}

impl<'p> CycleReference<'p> {
    /// Of a described machine.
    #[must_use]
    pub fn new(machine: Description, options: CycleOptions, sample: Sample) -> Self {
        Self { machine: Arc::new(machine), options, sample, known: Arc::default() }
    }

    /// From now on a phase is run from what was captured of it.
    pub fn trace(&mut self, phase: &'p Phase, window: CapturedWindow) {
        let mut known = self.known();
        let number = known.number(phase);
        known.windows.insert(number, Arc::new(window));
        known.answers.clear();
    }

    /// A captured window that could no longer be read, so that figures are worth nothing.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        let known = self.known();
        known.windows.values().find_map(|window| window.failed().map(ToString::to_string))
    }

    fn known(&self) -> MutexGuard<'_, Answers<'p>> {
        // What is in it is whole, even if a thread panicked meanwhile.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn phase(&self, number: usize) -> Option<&'p Phase> {
        self.known().phases.get(number).copied()
    }

    fn core_type(&self, core: u32) -> Option<(&CoreType, f64)> {
        let core = self.machine.topology.cores().get(core as usize)?;
        Some((self.machine.core_type(core.kind)?, self.machine.hertz(core) / 1e9))
    }

    /// What the runner at a slot executes. Chance is the same for it alone and with any co-runners, so that these
    /// can be compared; for twins it is another.
    fn source(&self, slot: usize, keys: &[Key]) -> Option<Source<'p>> {
        let key = keys.get(slot)?;
        let peers = keys.iter().filter(|other| other.0 == key.0).count();
        let twins = keys[..slot].iter().filter(|other| other.1 == key.1).count();
        let (core_type, _) = self.core_type(key.0)?;
        let phase = self.phase(key.1)?;
        let lines = |cache: &symbiont_sim_fast::description::Cache| cache.lines();
        let lines =
            lines(&core_type.l1d) + lines(&core_type.l2) + core_type.l3.as_ref().map_or(0, lines);
        let window = self.known().windows.get(&key.1).cloned();
        if let Some(window) = window {
            let skimmed = window.info().warm_up.saturating_sub(self.sample.warm_up);
            let mut walk = window.begin(slot as u8).ok()?;
            // The trace's lines may be shorter than the machine's.
            let most = (lines + lines / 4) * u64::from(core_type.l1d.line.max(64) / 64);
            let past = walk.past(most as usize, skimmed).into_iter().peekable();
            let origin = walk.origin();
            return Some(Source { stream: Box::new(walk), past, origin, skimmed });
        }
        let setup = Setup {
            space: slot as u8,
            line: core_type.l1d.line,
            lines,
            // A thread that is alone has all of it, whatever its core is set up for.
            predictor: PredictorConfig::nearest(
                core_type.prediction,
                f64::from(core_type.predictor) / peers.max(1) as f64,
            ),
            mispredicts: core_type.mispredicts,
            seed: twins as u64 * 7919 + key.1 as u64,
        };
        let replay = Replay::new(phase, &setup)?;
        let past = replay.past().into_iter().peekable();
        let origin = replay.origin();
        Some(Source { stream: Box::new(replay), past, origin, skimmed: 0 })
    }

    /// Counts of each runner over a stretch in which all run; `speeds` are of each before, in
    /// instructions per ns, as far as known.
    fn run(&self, keys: &[Key], speeds: &[f64], counted: u64) -> Option<Vec<Counts>> {
        let (mut slots, mut pasts, mut origins) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, key) in keys.iter().enumerate() {
            let Source { stream, past, origin, skimmed } = self.source(slot, keys)?;
            let speed = speeds.get(slot).copied().unwrap_or(1.0).max(1e-9);
            let core = symbiont_topology::CoreId(key.0);
            slots.push(CoreSlot { core, mode: key.2, home: key.3, stream });
            pasts.push((past, skimmed, speed));
            origins.push(origin);
        }
        let mut chip = Chip::new(&self.machine, slots, &self.options).ok()?;
        // The OS keeps the code of a program once, however many run it.
        for (slot, (key, origin)) in keys.iter().zip(&origins).enumerate() {
            let first = keys.iter().zip(&origins).find(|(other, _)| other.1 == key.1);
            let there = first.map_or(*origin, |(_, origin)| *origin);
            chip.levels_mut().move_code(slot, there.wrapping_sub(*origin));
        }
        // What is longest ago goes first, of whichever thread.
        loop {
            let ago = |(slot, (past, skimmed, speed)): (usize, &mut (_, u64, f64))| {
                let past: &mut std::iter::Peekable<std::vec::IntoIter<Touch>> = past;
                let touch = past.peek().map(|touch| touch.instructions_ago);
                let next = touch.or_else(|| (*skimmed > 0).then_some(*skimmed as f64))?;
                Some((slot, next / *speed))
            };
            let next = pasts.iter_mut().enumerate().filter_map(ago);
            let Some((slot, _)) = next.min_by(|a, b| b.1.total_cmp(&a.1)) else { break };
            let (past, skimmed, _) = &mut pasts[slot];
            if let Some(touch) = past.next() {
                touch.what.warm(chip.levels_mut(), slot);
            } else {
                let stride = STRIDE.min(*skimmed);
                chip.skim(slot, stride);
                *skimmed -= stride;
            }
        }
        let ghz = keys.iter().filter_map(|key| self.core_type(key.0)).map(|(_, ghz)| ghz);
        let slice = 1000.0 / ghz.fold(0.1, f64::max);
        let end = slice * self.sample.longest as f64 / 1000.0;
        // Each thread is counted over the same instructions, whichever its co-runners.
        let warm_up = self.sample.warm_up.min(counted);
        let mut stretches = vec![(None, None); keys.len()];
        let mut ns = 0.0;
        while ns < end && stretches.iter().any(|(_, done)| done.is_none()) {
            ns += slice;
            chip.run_until(ns);
            for (slot, (from, done)) in stretches.iter_mut().enumerate() {
                let now = chip.counts(slot);
                if now.instructions >= warm_up {
                    from.get_or_insert(now);
                }
                if now.instructions >= warm_up + counted {
                    done.get_or_insert(now);
                }
            }
        }
        let counts = stretches.into_iter().enumerate().map(|(slot, (from, done))| {
            done.unwrap_or_else(|| chip.counts(slot)).since(&from.unwrap_or_default())
        });
        Some(counts.collect())
    }

    /// Paces of runners, known or simulated.
    fn answer(&self, keys: &[Key]) -> Option<Vec<ThreadRate>> {
        if let Some(known) = self.known().answers.get(keys) {
            return Some(known.clone());
        }
        let thread_rates = self.simulate(keys)?;
        self.known().answers.insert(keys.to_vec(), thread_rates.clone());
        Some(thread_rates)
    }

    fn simulate(&self, keys: &[Key]) -> Option<Vec<ThreadRate>> {
        let mut speeds = Vec::new();
        if keys.len() > 1 {
            for key in keys {
                speeds.extend(self.answer(&[*key])?.first().map(|thread_rate| thread_rate.speed));
            }
            for _ in 0..self.sample.fills {
                let counts = self.run(keys, &speeds, self.sample.counted / 4)?;
                let now = keys
                    .iter()
                    .zip(&counts)
                    .map(|(key, counts)| self.thread_rate(key, counts).speed);
                let before = std::mem::replace(&mut speeds, now.collect());
                let mut pairs = before.iter().zip(&speeds);
                if pairs.all(|(before, now)| (now / before - 1.0).abs() <= STAY) {
                    break;
                }
            }
        }
        let counts = self.run(keys, &speeds, self.sample.counted)?;
        Some(keys.iter().zip(&counts).map(|(key, counts)| self.thread_rate(key, counts)).collect())
    }

    /// Numbers of the runners in an order that stands for all others with the same answers: the
    /// hardware thread of a core makes no difference, but for the threads that share a half
    /// where a core divides its threads among two.
    fn order(&self, asked: &[Key]) -> Vec<usize> {
        let mut cores: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, key) in asked.iter().enumerate() {
            cores.entry(key.0).or_default().push(at);
        }
        let mut order = Vec::with_capacity(asked.len());
        for (core, members) in cores {
            let modes = members.iter().map(|at| asked[*at].2);
            let mode = modes.max().unwrap_or(1).max(members.len() as u32);
            let halved =
                self.core_type(core).is_some_and(|(core_type, _)| divides(core_type, mode));
            let step = if halved { 2 } else { 1 };
            let half = |first: usize| {
                let every = members.iter().skip(first).step_by(step);
                let mut half: Vec<usize> = every.copied().collect();
                half.sort_by_key(|at| asked[*at]);
                half
            };
            let mut halves: Vec<Vec<usize>> = (0..step).map(half).collect();
            let keys = |half: &Vec<usize>| half.iter().map(|at| asked[*at]).collect::<Vec<_>>();
            // The longer one stays the first.
            halves.sort_by_cached_key(|half| (Reverse(half.len()), keys(half)));
            let longest = halves.first().map_or(0, Vec::len);
            let each = |at: usize| halves.iter().filter_map(move |half| half.get(at).copied());
            order.extend((0..longest).flat_map(each));
        }
        order
    }

    fn thread_rate(&self, key: &Key, counts: &Counts) -> ThreadRate {
        let (width, ghz) = self
            .core_type(key.0)
            .map_or((1.0, 1.0), |(core_type, ghz)| (f64::from(core_type.dispatch), ghz));
        let instructions = counts.instructions.max(1) as f64;
        let mut activity = counts.activity().times(1.0 / instructions);
        if let Some(phase) = self.phase(key.1) {
            floating(phase, &mut activity);
        }
        let cycles = counts.all_cycles().max(1) as f64;
        ThreadRate { speed: counts.instructions as f64 / cycles * ghz, activity, ghz, width }
    }
}

/// Does a core divide its threads, or a queue, in turn among two halves?
fn divides(core_type: &CoreType, mode: u32) -> bool {
    let CoreType { rob, iq, fp_iq, lq, sq, mshrs, .. } = *core_type;
    let queues = [Some(rob), Some(iq), fp_iq, Some(lq), Some(sq), Some(mshrs)];
    let halved = queues.into_iter().flatten().any(|queue| queue.smt == SmtRule::Halved);
    mode > 1 && (halved || core_type.halves_from.is_some_and(|from| mode >= from))
}

/// What a core does not see of floating-point operations: how wide they are.
fn floating(phase: &Phase, activity: &mut Activity) {
    let mix = &phase.mix;
    let fp: u64 =
        OpClass::ALL.iter().filter(|c| c.is_floating_point()).map(|c| mix.count(*c)).sum();
    let vector = fp + mix.count(OpClass::Vector);
    let scalar = mix.by_width[0].min(fp) as f64;
    let share = if vector > 0 { fp as f64 / vector as f64 } else { 0.0 };
    let packed: u64 = mix.by_width[1..].iter().sum();
    let per = |count: f64| count / phase.instructions.max(1) as f64;
    activity.flops = per(mix.flops as f64);
    activity.fp_scalar = per(scalar);
    activity.fp_packed = per(packed as f64 * share);
}

impl<'p> Fidelity<'p> for CycleReference<'p> {
    type Run<'a>
        = Self
    where
        Self: 'a;

    const NAME: &'static str = "cycle level";

    fn description(&self) -> &Description {
        &self.machine
    }

    /// Everything that the description says is shared stays so.
    fn begin(&self, private: Switches) -> Option<Self> {
        (private == Switches::default()).then(|| self.clone())
    }
}

impl<'p> Contention<'p> for CycleReference<'p> {
    type Error = PrepareError;

    fn prepare(&mut self, phase: &'p Phase) -> Result<usize, PrepareError> {
        if phase.instructions == 0 {
            return Err(PrepareError::Empty);
        }
        let mut known = self.known();
        let number = known.number(phase);
        let replayable = phase.traces.iter().any(|trace| !trace.ops.is_empty());
        if replayable || known.windows.contains_key(&number) {
            Ok(number)
        } else {
            Err(PrepareError::NoTraces)
        }
    }

    fn thread_rates(&mut self, runners: &[Runner], _span_ns: f64) -> Vec<Arc<ThreadRate>> {
        let nodes = self.machine.topology.nodes();
        let key = |runner: &Runner| {
            let home = nodes.iter().position(|node| node.id == runner.home).unwrap_or(0);
            (runner.core.0, runner.phase, runner.mode, home)
        };
        let asked: Vec<Key> = runners.iter().map(key).collect();
        let order = self.order(&asked);
        let sorted: Vec<Key> = order.iter().map(|at| asked[*at]).collect();
        let still = ThreadRate { speed: 1e-6, activity: Activity::default(), ghz: 1.0, width: 1.0 };
        let thread_rates = self.answer(&sorted).unwrap_or_else(|| vec![still; sorted.len()]);
        let mut answer: Vec<(usize, ThreadRate)> = order.into_iter().zip(thread_rates).collect();
        answer.sort_by_key(|(at, _)| *at);
        answer.into_iter().map(|(_, thread_rate)| Arc::new(thread_rate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use symbiont_profile::{Profile, test_support as synthetic};
    use symbiont_topology::{CoreId, NodeId};

    use super::*;
    use crate::worlds::traces::{PASS, chase};

    const QUICK: Sample = Sample { warm_up: 10_000, counted: 20_000, longest: 5_000_000, fills: 2 };

    fn reference(profile: &Profile) -> CycleReference<'_> {
        let machine = Description::named("xeon-e5-2620v4").unwrap();
        let mut reference = CycleReference::new(machine, CycleOptions::default(), QUICK);
        reference.prepare(&profile.phases[0]).unwrap();
        reference
    }

    fn runner(thread: u64, mode: u32) -> Runner {
        Runner { thread, core: CoreId(0), phase: 0, home: NodeId(0), mode }
    }

    #[test]
    fn known_programs_run_as_they_must() {
        // One load in four instructions, each after the one before, from L1 or L2.
        let profile = synthetic::pointer_chasing(2_000);
        let thread_rate = reference(&profile).thread_rates(&[runner(0, 1)], 1e6)[0].clone();
        let cpi = thread_rate.activity.all_cycles();
        let expected = (4.0 + 8.0 * profile.phases[0].data.line_64.curve().misses(512.0)) / 4.0;
        assert!((cpi / expected - 1.0).abs() < 0.07, "{cpi} {expected}");
        let profile = synthetic::cache_resident();
        let thread_rate = reference(&profile).thread_rates(&[runner(0, 1)], 1e6)[0].clone();
        assert!(thread_rate.activity.all_cycles() < 0.45, "{}", thread_rate.activity.all_cycles());
        assert!(
            (thread_rate.speed - thread_rate.ghz / thread_rate.activity.all_cycles()).abs() < 1e-9
        );
    }

    #[test]
    fn equal_questions_get_equal_answers() {
        let profile = synthetic::branchy();
        let both = [runner(0, 2), runner(1, 2)];
        let mut first = reference(&profile);
        let answer = first.thread_rates(&both, 1e6);
        assert_eq!(answer, first.thread_rates(&both, 5e6));
        assert_eq!(answer, reference(&profile).thread_rates(&both, 1e6));
        let alone = first.thread_rates(&both[..1], 1e6)[0].clone();
        assert!(answer.iter().all(|thread_rate| thread_rate.speed < alone.speed));
        // Twins are about equally fast.
        assert!((answer[0].speed / answer[1].speed - 1.0).abs() < 0.05);
    }

    /// The large one holds less of a cache the slower it is, and is slower for that.
    #[test]
    fn caches_are_filled_until_speeds_stay() {
        let (large, stream) = (synthetic::pointer_chasing(2_500), synthetic::streaming());
        let speed = |fills: u32| {
            let machine = Description::named("xeon-e5-2620v4").unwrap();
            let sample = Sample { fills, ..QUICK };
            let mut reference = CycleReference::new(machine, CycleOptions::default(), sample);
            reference.prepare(&large.phases[0]).unwrap();
            reference.prepare(&stream.phases[0]).unwrap();
            reference.thread_rates(&[runner(0, 2), Runner { phase: 1, ..runner(1, 2) }], 1e6)[0]
                .speed
        };
        let [never, once, often, longer] = [0, 1, 8, 16].map(speed);
        println!("{never} {once} {often} {longer}");
        assert!((longer / often - 1.0).abs() < STAY, "{often} {longer}");
        assert!((never / often - 1.0).abs() > STAY, "{never} {often}");
    }

    #[test]
    fn runners_stay_in_their_half() {
        let order = |machine: &str, phases: &[usize]| -> Vec<usize> {
            let machine = Description::named(machine).unwrap();
            let reference = CycleReference::new(machine, CycleOptions::default(), QUICK);
            let keys: Vec<Key> = phases.iter().map(|phase| (0, *phase, 4, 0)).collect();
            reference.order(&keys).into_iter().map(|at| phases[at]).collect()
        };
        assert_eq!(order("power8-s812l", &[1, 0, 1, 0]), [0, 1, 0, 1]);
        assert_eq!(order("power8-s812l", &[1, 1, 0, 0]), [0, 0, 1, 1]);
        assert_eq!(order("power8-s812l", &[2, 0, 1]), [1, 0, 2]);
        assert_eq!(order("xeon-e5-2620v4", &[1, 0]), [0, 1]);
    }

    #[test]
    fn a_captured_program_runs_as_it_must() {
        // Each load after the one before, 64 lines of one set of the L1 and eight of the L2.
        let made = chase(64, 4096);
        let profile = synthetic::pointer_chasing(2_000);
        let mut first = reference(&profile);
        let captured = CapturedWindow::new(&made.file(), 0, &profile.phases[0]).unwrap();
        assert_eq!(captured.info().warm_up, PASS as u64 / 2);
        first.trace(&profile.phases[0], captured);
        let thread_rate = first.thread_rates(&[runner(0, 1)], 1e6)[0].clone();
        let core_type = &first.description().core_types[0];
        let cpi = thread_rate.activity.all_cycles();
        let expected = f64::from(core_type.l2.latency) / 2.0;
        assert!((cpi / expected - 1.0).abs() < 0.02, "{cpi} {expected}");
        assert!(
            (thread_rate.activity.loads - 0.5).abs() < 1e-3
                && thread_rate.activity.mispredicted < 0.01
        );
        // With its replay, as another phase.
        let other = synthetic::pointer_chasing(2_000);
        let number = first.prepare(&other.phases[0]).unwrap();
        let both = [runner(0, 2), Runner { phase: number, ..runner(1, 2) }];
        let co_running = first.thread_rates(&both, 1e6);
        assert_eq!(co_running, first.clone().thread_rates(&both, 1e6));
        assert!(co_running[0].speed <= thread_rate.speed * 1.01 && first.failed().is_none());
    }
}
