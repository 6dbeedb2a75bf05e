//! From a recording to figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Placement, Priority, ProgramId, Sample, ThreadId};
use symbiont_trace::{Quantum, Reader, TraceError};

use symbiont_report::stats;

/// Seconds of a window in which each program should get on.
const WINDOW_S: f64 = 5.0;

/// The programs at a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// Seconds since some moment.
    pub at: f64,
    /// CPU seconds of each program so far.
    pub run_time: BTreeMap<u32, f64>,
    /// Context switches of all threads so far.
    pub switches: u64,
    /// The program that is boosted as a parallel program from now on.
    pub holder: Option<u32>,
}

/// What a run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Each parallel program's share of their CPU time, over the whole run.
    pub shares: Vec<f64>,
    /// The holder's share while it was that; none if there never was one.
    pub held_share: Option<f64>,
    /// How many of the parallel programs held the boost at some time.
    #[serde(default)]
    pub holders: usize,
    /// Part of the time in which a program held the boost.
    pub held_part: f64,
    /// Seconds of each turn that another one followed.
    pub turns: Vec<f64>,
    /// The longest wait for the boost, in seconds.
    pub longest_wait: f64,
    /// Reactions, in seconds, median.
    pub reaction: Option<f64>,
    /// Context switches of all threads per CPU second.
    pub switches_per_s: f64,
    /// CPU seconds of all programs, per second.
    pub cpus: f64,
    /// The least CPU time that a program got in any window of five seconds, in
    /// seconds; none for runs that are shorter.
    pub least: Option<f64>,
}

/// Moments, one after the other.
#[derive(Debug, Default)]
pub struct Story {
    /// In order.
    pub moments: Vec<Moment>,
    /// Threads that ended keep what they did.
    known: BTreeMap<ThreadId, (ProgramId, Duration, u64)>,
}

impl Story {
    /// Adds what was seen at the start of a quantum, and what was wanted then.
    pub fn add(&mut self, sample: &Sample, placement: &Placement) {
        for thread in &sample.threads {
            self.known.insert(thread.id, (thread.program, thread.run_time, thread.switches));
        }
        let mut moment = Moment { at: sample.at.0 as f64 / 1e9, ..Moment::default() };
        for (ProgramId(program), ran, switches) in self.known.values() {
            *moment.run_time.entry(*program).or_default() += ran.as_secs_f64();
            moment.switches += switches;
        }
        let boosted = sample.threads.iter().find(|thread| {
            placement.get(&thread.id).is_some_and(|assignment| {
                assignment.priority != Priority::Normal && assignment.reason.starts_with("parallel")
            })
        });
        moment.holder = boosted.map(|thread| thread.program.0);
        self.moments.push(moment);
    }
}

/// Reads the moments of a recording.
pub(super) fn moments(path: &Path) -> Result<Vec<Moment>, TraceError> {
    let mut reader = Reader::open(path)?;
    let mut story = Story::default();
    while let Some(Quantum { sample, placement, .. }) = reader.next_quantum()? {
        story.add(&sample, &placement);
    }
    Ok(story.moments)
}

/// Judges a run by its moments; `parallel` are the numbers of the parallel programs.
/// None if there are too few moments.
#[must_use]
pub fn judge(moments: &[Moment], parallel: &[u32]) -> Option<Judged> {
    // Once all are there.
    let there = |moment: &&Moment| parallel.iter().all(|p| moment.run_time.contains_key(p));
    let moments: Vec<&Moment> = moments.iter().filter(there).collect();
    let (first, last) = (*moments.first()?, *moments.last()?);
    let over = last.at - first.at;
    let ran = |from: &Moment, to: &Moment, program: u32| {
        let of = |moment: &Moment| moment.run_time.get(&program).copied().unwrap_or_default();
        (of(to) - of(from)).max(0.0)
    };
    let all = |from: &Moment, to: &Moment| parallel.iter().map(|p| ran(from, to, *p)).sum::<f64>();
    let total = all(first, last);
    if !(over > 0.0 && total > 0.0) {
        return None;
    }
    let (mut held, mut own, mut meanwhile) = (0.0, 0.0, 0.0);
    let (mut turns, mut reactions) = (Vec::new(), Vec::new());
    let mut waits: BTreeMap<u32, f64> = parallel.iter().map(|p| (*p, 0.0)).collect();
    let mut longest_wait: f64 = 0.0;
    let mut holders = BTreeSet::new();
    // Whose turn it is, for how long, and whether it is not yet felt.
    let mut turn: Option<(u32, f64, bool)> = None;
    for pair in moments.windows(2) {
        let [from, to] = pair else { continue };
        let Some(holder) = from.holder else { continue };
        let time = to.at - from.at;
        holders.insert(holder);
        let (mine, all_programs) = (ran(from, to, holder), all(from, to));
        held += time;
        own += mine;
        meanwhile += all_programs;
        turn = match turn {
            Some((before, length, felt)) if before == holder => Some((holder, length + time, felt)),
            Some((_, length, _)) => {
                turns.push(length);
                Some((holder, time, false))
            }
            None => Some((holder, time, true)),
        };
        if let Some((_, length, felt)) = turn.as_mut().filter(|turn| !turn.2) {
            if all_programs > 0.0 && mine > 0.5 * all_programs {
                reactions.push(*length);
                *felt = true;
            }
        }
        for (program, wait) in &mut waits {
            *wait = if *program == holder { 0.0 } else { *wait + time };
            longest_wait = longest_wait.max(*wait);
        }
    }
    let mut least: Option<f64> = None;
    let mut from = moments.iter().peekable();
    for to in &moments {
        // The latest moment that lies a window back.
        while let Some(start) = from.peek().filter(|start| to.at - start.at >= WINDOW_S) {
            let fewest = to.run_time.keys().map(|p| ran(start, to, *p)).reduce(f64::min);
            least = least.into_iter().chain(fewest).reduce(f64::min);
            from.next();
        }
    }
    let everything: f64 = last.run_time.keys().map(|program| ran(first, last, *program)).sum();
    Some(Judged {
        shares: parallel.iter().map(|program| ran(first, last, *program) / total).collect(),
        held_share: (meanwhile > 0.0).then(|| own / meanwhile),
        holders: parallel.iter().filter(|program| holders.contains(program)).count(),
        held_part: held / over,
        turns,
        longest_wait,
        reaction: stats::median(&reactions),
        switches_per_s: last.switches.saturating_sub(first.switches) as f64 / everything,
        cpus: everything / over,
        least,
    })
}
