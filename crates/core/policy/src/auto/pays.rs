//! Does a program's placement pay?
//!
//! # Approach
//! What a placement gains shows only next to what happens without it. So all programs are left to the OS
//! for a moment ([`TRIAL`]) now and then, and each program's *progress* before, during and after that
//! is compared. Where it was lower by [`MARGIN`] both before and after than it was during, the placement
//! does not pay, and the program is released for [`RELEASE`], twice as long each further time. Both
//! sides are asked for because programs change by themselves: one that only slows down, or only
//! speeds up, is no evidence. Where all programs together gain (mean of the quotients), none is released:
//! throughput is the objective, and the others' gain depends on where this one is.
//!
//! Trials come [`FIRST`] after the last one where the number of ready threads has changed by a quarter
//! or a released program is placed again, else in intervals that double up to [`LONGEST`]: at most a
//! twelfth of the time is spent on them, as a rule less than a percent. Where nothing is applied, as in a
//! dry run, there is nothing to compare, and no trial.
//!
//! # Terms and units
//! *Progress* of a program: per second in which a thread of it is ready, the time that it runs, times its
//! speed: 1 / slowdown where the policy estimates that (against running alone), else instructions per
//! second, else 1. So a thread that waits makes none.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{Assignment, Priority, ProgramId, Target, ThreadId};

use crate::View;

/// How long all programs are left to the OS.
const TRIAL: Duration = Duration::from_secs(1);
/// How long before and after it is compared: several seconds, so that single quanta do not count.
const COMPARED: Duration = Duration::from_secs(3);
/// By how much progress must be less: half of what pairing gains as a rule (Feliu et al. and
/// Navarro et al. report 3 to 10 %), and more than the noise of a second.
const MARGIN: f64 = 0.03;
/// Shortest time from the end of a trial to the next one.
const FIRST: Duration = Duration::from_secs(8);
/// Longest time between two trials.
const LONGEST: Duration = Duration::from_secs(320);
/// How long a program is released for the first time.
const RELEASE: Duration = Duration::from_secs(5);
/// It is doubled this often at most: to 320 s.
const DOUBLED: u32 = 6;
/// The load has changed where the number of ready threads is so many times as large or as small.
const CHANGED: f64 = 1.25;

/// What progress is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gauge {
    Slowdown,
    Instructions,
    RunTime,
}

/// The progress of a program in a quantum.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Progress {
    gauge: Gauge,
    rate: f64,
}

/// A mean over time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Mean {
    sum: f64,
    time: Duration,
}

impl Mean {
    /// Adds a quantum; of what is older than [`COMPARED`], little remains.
    fn add(&mut self, rate: f64, over: Duration) {
        let kept = COMPARED.saturating_sub(over).as_secs_f64() / COMPARED.as_secs_f64();
        if self.time + over > COMPARED {
            self.sum *= kept;
            self.time = self.time.mul_f64(kept);
        }
        self.sum += rate * over.as_secs_f64();
        self.time += over;
    }

    fn get(&self) -> Option<f64> {
        (!self.time.is_zero()).then(|| self.sum / self.time.as_secs_f64())
    }
}

/// What is kept of a program.
#[derive(Debug, Clone, Copy, Default)]
struct TrialRecord {
    gauge: Option<Gauge>,
    before: Mean,
    during: Mean,
    after: Mean,
    /// Progress placed over progress without, by the last trial.
    verdict: Option<f64>,
    /// How long it is released yet.
    released: Duration,
    /// How often it was released lately.
    releases: u32,
}

/// Where the trial is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TrialState {
    /// Not yet, or over and evaluated.
    #[default]
    Before,
    During,
    After,
}

/// Predicted and achieved slowdowns of a program: sums over quanta in which both are known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slowdowns {
    pub predicted: f64,
    pub achieved: f64,
    pub quanta: u64,
}

/// Whether placements pay.
#[derive(Debug, Clone, Default)]
pub(super) struct Pays {
    records: BTreeMap<ProgramId, TrialRecord>,
    state: TrialState,
    /// How long the state has lasted.
    lasted: Duration,
    interval: Duration,
    /// Ready threads at the last trial.
    load: f64,
    /// Comes the next trial early, since the load has changed?
    hastened: bool,
    /// The quantum that comes to be seen next covers time before a change.
    changed: bool,
    pub trials: u64,
    pub releases: u64,
    pub slowdowns: BTreeMap<ProgramId, Slowdowns>,
}

impl Pays {
    /// Learns from a quantum; `achieved` gives a thread's slowdown, `ready` is the number of ready
    /// threads.
    pub fn learn(
        &mut self,
        view: &View<'_>,
        achieved: &dyn Fn(ThreadId) -> Option<f64>,
        ready: f64,
        over: Duration,
    ) {
        let alive = |program: &ProgramId| view.threads.iter().any(|t| t.program == *program);
        self.records.retain(|program, _| alive(program));
        self.slowdowns.retain(|program, _| alive(program));
        for thread in &view.threads {
            let predicted = thread.applied.and_then(|applied| applied.predicted_slowdown);
            if let (Some(predicted), Some(achieved)) = (predicted, achieved(thread.id)) {
                let slowdowns = self.slowdowns.entry(thread.program).or_default();
                slowdowns.predicted += predicted;
                slowdowns.achieved += achieved;
                slowdowns.quanta += 1;
            }
        }
        if std::mem::take(&mut self.changed) {
            return;
        }
        let state = self.state;
        for (program, progress) in progress(view, achieved) {
            let record = self.records.entry(program).or_default();
            if record.gauge != Some(progress.gauge) {
                let TrialRecord { released, releases, .. } = *record;
                *record = TrialRecord { released, releases, ..TrialRecord::default() };
                record.gauge = Some(progress.gauge);
            }
            if record.released.is_zero() {
                match state {
                    TrialState::Before => record.before.add(progress.rate, over),
                    TrialState::During => record.during.add(progress.rate, over),
                    TrialState::After => record.after.add(progress.rate, over),
                }
            }
        }
        let is_placed = |applied: &Assignment| {
            applied.target != Target::Os || applied.priority != Priority::Normal
        };
        let any = view.threads.iter().any(|thread| thread.applied.is_some_and(is_placed));
        if !any && self.state == TrialState::Before {
            self.lasted = Duration::ZERO;
        }
        self.pass(ready, over);
    }

    /// Time passes.
    fn pass(&mut self, ready: f64, over: Duration) {
        self.lasted += over;
        let mut again = false;
        for record in self.records.values_mut().filter(|record| !record.released.is_zero()) {
            record.released = record.released.saturating_sub(over);
            again |= record.released.is_zero();
        }
        let (most, least) = (ready.max(self.load).max(1.0), ready.min(self.load).max(1.0));
        if self.interval.is_zero() || again || (!self.hastened && most > CHANGED * least) {
            (self.interval, self.hastened) = (FIRST, true);
        }
        if again && self.state == TrialState::Before {
            // Progress before the trial must be known.
            self.lasted = Duration::ZERO;
        }
        match self.state {
            TrialState::Before if self.lasted >= self.interval => {
                self.begin(TrialState::During);
                (self.load, self.hastened) = (ready, false);
                self.trials += 1;
                for record in self.records.values_mut() {
                    (record.during, record.after) = (Mean::default(), Mean::default());
                }
            }
            TrialState::During if self.lasted >= TRIAL => self.begin(TrialState::After),
            TrialState::After if self.lasted >= COMPARED => {
                let released = self.judge();
                self.begin(TrialState::Before);
                self.interval = if released { FIRST } else { (2 * self.interval).min(LONGEST) };
            }
            TrialState::Before | TrialState::During | TrialState::After => {}
        }
    }

    fn begin(&mut self, state: TrialState) {
        // In these the placement changes.
        self.changed = state != TrialState::Before;
        (self.state, self.lasted) = (state, Duration::ZERO);
    }

    /// Releases the programs whose placement does not pay; were there any?
    fn judge(&mut self) -> bool {
        let mut verdicts = Vec::new();
        for (program, record) in &mut self.records {
            record.verdict = None;
            if let [Some(before), Some(during), Some(after)] =
                [record.before, record.during, record.after].map(|mean| mean.get())
            {
                if during > 0.0 && record.released.is_zero() {
                    // The better side: both must be worse.
                    let verdict = before.max(after) / during;
                    record.verdict = Some(verdict);
                    verdicts.push((*program, verdict));
                }
            }
            record.before = record.after;
        }
        let mean =
            verdicts.iter().map(|(_, verdict)| verdict).sum::<f64>() / verdicts.len().max(1) as f64;
        let before = self.releases;
        for (program, verdict) in verdicts {
            let Some(record) = self.records.get_mut(&program) else { continue };
            if mean < 1.0 && verdict < 1.0 - MARGIN {
                record.released = RELEASE * 2u32.pow(record.releases.min(DOUBLED));
                record.releases += 1;
                record.before = Mean::default();
                self.releases += 1;
            } else {
                record.releases = record.releases.saturating_sub(1);
            }
        }
        self.releases > before
    }

    /// Is the program released for longer than a trial?
    pub fn is_released(&self, program: ProgramId) -> bool {
        self.records.get(&program).is_some_and(|record| !record.released.is_zero())
    }

    /// Why a program is left to the OS now, if it is.
    pub fn released(&self, program: ProgramId) -> Option<String> {
        let record = self.records.get(&program);
        if let Some(record) = record.filter(|record| !record.released.is_zero()) {
            let share = record.verdict.unwrap_or_default();
            return Some(format!(
                "released: placed it made {share:.2} of the progress that it makes without; placed \
                 again in {:.0} s",
                record.released.as_secs_f64()
            ));
        }
        (self.state == TrialState::During)
            .then(|| "left to the OS for a moment, to compare with its placement".to_owned())
    }

    /// What the last trial said of each program: progress placed over progress without.
    pub fn verdicts(&self) -> impl Iterator<Item = (ProgramId, f64)> {
        self.records.iter().filter_map(|(program, record)| Some((*program, record.verdict?)))
    }
}

/// The progress of each program that had ready threads.
fn progress(
    view: &View<'_>,
    achieved: &dyn Fn(ThreadId) -> Option<f64>,
) -> BTreeMap<ProgramId, Progress> {
    #[derive(Default)]
    struct Sums {
        threads: usize,
        ready: f64,
        running: f64,
        slowed: (usize, f64),
        counted: (f64, f64),
    }
    let mut sums: BTreeMap<ProgramId, Sums> = BTreeMap::new();
    for thread in &view.threads {
        let Some(did) = thread.did.filter(|did| did.ready > 0.0 && !did.over.is_zero()) else {
            continue;
        };
        let sum = sums.entry(thread.program).or_default();
        sum.threads += 1;
        sum.ready += did.ready;
        sum.running += did.running;
        if let Some(slowdown) = achieved(thread.id).filter(|slowdown| *slowdown > 0.0) {
            sum.slowed = (sum.slowed.0 + 1, sum.slowed.1 + did.running / slowdown);
        }
        let counted = thread.measured.and_then(|measured| measured.get("instructions").ok());
        if let Some(counted) = counted.filter(|counted| counted.age == 0) {
            let (instructions, ready) = &mut sum.counted;
            *instructions += counted.value / did.over.as_secs_f64();
            *ready += did.ready;
        }
    }
    let of = |sum: Sums| {
        let progress = if sum.slowed.0 == sum.threads {
            Progress { gauge: Gauge::Slowdown, rate: sum.slowed.1 / sum.ready }
        } else if sum.counted.1 > 0.0 {
            Progress { gauge: Gauge::Instructions, rate: sum.counted.0 / sum.counted.1 }
        } else {
            Progress { gauge: Gauge::RunTime, rate: sum.running / sum.ready }
        };
        progress.rate.is_finite().then_some(progress)
    };
    sums.into_iter().filter_map(|(program, sum)| Some((program, of(sum)?))).collect()
}
