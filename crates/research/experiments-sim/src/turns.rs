//! How fairly parallel programs take turns at being boosted, from what a controller saw and wanted: for tests.
//!
//! *Holder*: the program that is boosted. *Turn*: how long a program held the boost until another got it. *Wait*: how
//! long a program was without it, counting only time in which a program had it.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_machine::{Placement, Priority, ProgramId, Sample, ThreadId};

/// Seconds of a window in which each program should get on.
const WINDOW_S: f64 = 5.0;

/// The programs at a moment.
#[derive(Clone, Default)]
struct Moment {
    /// Seconds since some moment.
    at: f64,
    /// CPU seconds of each program so far.
    run_time: BTreeMap<u32, f64>,
    /// The program that is boosted as a parallel program from now on.
    holder: Option<u32>,
}

/// What was seen of a run, quantum by quantum.
#[derive(Default)]
pub(crate) struct Story {
    moments: Vec<Moment>,
    /// Threads that ended keep what they did.
    threads: BTreeMap<ThreadId, (ProgramId, Duration)>,
}

/// What a run showed; all times in seconds.
#[derive(Debug)]
pub(crate) struct Turns {
    /// The holder's share of the parallel programs' CPU time while it was that; none if there never was one.
    pub held_share: Option<f64>,
    /// Each turn that another one followed.
    pub turns: Vec<f64>,
    /// The longest wait for the boost.
    pub longest_wait: f64,
    /// CPU time of all programs, per second.
    pub cpus: f64,
    /// The least CPU time that a program got in any window of five seconds; none for runs that are shorter.
    pub least: Option<f64>,
}

impl Story {
    /// Adds what was seen at the start of a quantum, and what was wanted then.
    pub fn add(&mut self, sample: &Sample, placement: &Placement) {
        for thread in &sample.threads {
            self.threads.insert(thread.id, (thread.program, thread.run_time));
        }
        let mut moment = Moment { at: sample.at.0 as f64 / 1e9, ..Moment::default() };
        for (ProgramId(program), run_time) in self.threads.values() {
            *moment.run_time.entry(*program).or_default() += run_time.as_secs_f64();
        }
        let boosted = sample.threads.iter().find(|thread| {
            placement.get(&thread.id).is_some_and(|assignment| {
                assignment.priority != Priority::Normal && assignment.reason.starts_with("parallel")
            })
        });
        moment.holder = boosted.map(|thread| thread.program.0);
        self.moments.push(moment);
    }

    /// The turns of the parallel programs of these numbers.
    pub fn turns(&self, parallel: &[u32]) -> Turns {
        let (first, last) = (self.moments.first().unwrap(), self.moments.last().unwrap());
        let (mut own, mut meanwhile) = (0.0, 0.0);
        let mut turns = Vec::new();
        let mut waits: BTreeMap<u32, f64> =
            parallel.iter().map(|program| (*program, 0.0)).collect();
        let mut longest_wait: f64 = 0.0;
        let mut turn: Option<(u32, f64)> = None;
        for pair in self.moments.windows(2) {
            let Some(holder) = pair[0].holder else { continue };
            let time = pair[1].at - pair[0].at;
            own += ran(&pair[0], &pair[1], holder);
            meanwhile +=
                parallel.iter().map(|program| ran(&pair[0], &pair[1], *program)).sum::<f64>();
            let length = match turn {
                Some((before, length)) if before == holder => length,
                ended => {
                    turns.extend(ended.map(|(_, length)| length));
                    0.0
                }
            };
            turn = Some((holder, length + time));
            for (program, wait) in &mut waits {
                *wait = if *program == holder { 0.0 } else { *wait + time };
                longest_wait = longest_wait.max(*wait);
            }
        }
        let everything: f64 = last.run_time.keys().map(|program| ran(first, last, *program)).sum();
        Turns {
            held_share: (meanwhile > 0.0).then(|| own / meanwhile),
            turns,
            longest_wait,
            cpus: everything / (last.at - first.at),
            least: self.least(),
        }
    }

    fn least(&self) -> Option<f64> {
        let mut starts = self.moments.iter().peekable();
        let mut least: Option<f64> = None;
        for to in &self.moments {
            while let Some(start) = starts.next_if(|start| to.at - start.at >= WINDOW_S) {
                let fewest =
                    to.run_time.keys().map(|program| ran(start, to, *program)).reduce(f64::min);
                least = least.into_iter().chain(fewest).reduce(f64::min);
            }
        }
        least
    }
}

/// CPU seconds of a program between two moments.
fn ran(from: &Moment, to: &Moment, program: u32) -> f64 {
    let of = |moment: &Moment| moment.run_time.get(&program).copied().unwrap_or_default();
    (of(to) - of(from)).max(0.0)
}
