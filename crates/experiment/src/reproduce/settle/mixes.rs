//! Mixes of four jobs on two hardware threads by a schedule (Table 4), and the controls.

use super::alone::Alone;
use super::play::{Record, Run, Schedule, Scoring, VECTORS};
use super::{Players, Size, counterpart};
use crate::campaign::Done;
use crate::harness::Error;
use crate::published::vectors::{MEAN, MIXES};
use crate::reproduce::figure::Point;
use crate::stats::{Estimate, mean_estimate};

pub const ROUND_ROBIN: &str = "round robin";
pub const ACTIVITY: &str = "activity vectors";
const RESIDENCE: &str = "residence alone";
const COUNTERS: &str = "counters";
const SHUFFLED: &str = "activity vectors of another job";
const ROUND_ROBIN_PRIVATE: &str = "round robin, private caches";
const RESIDENCE_PRIVATE: &str = "residence alone, private caches";
const ACTIVITY_PRIVATE: &str = "activity vectors, private caches";

/// A run is given up after so many times the samples that its work takes alone, one job after the other.
const MOST: u32 = 3;
/// Weight of the product of misses for the scheduler that has counters alone: of two average jobs as
/// much as eight overlapping bits.
const MISSES: f64 = 8.0;

/// Ours for a mix of the paper.
fn ours(programs: &[&str]) -> Vec<String> {
    programs.iter().filter_map(|name| counterpart(name)).map(str::to_owned).collect()
}

/// A run of a mix by a schedule: each job has the work of so many samples alone, of so many cycles.
pub fn run(
    jobs: &[String],
    called: &str,
    schedule: Schedule,
    (work, sample): (u32, u64),
    alone: &Alone,
) -> Run {
    let cycles = f64::from(work) * sample as f64;
    let target = |job: &String| (alone.ipc(job).unwrap_or(1.0) * cycles) as u64;
    Run {
        jobs: jobs.to_vec(),
        schedule,
        called: called.to_owned(),
        samples: (MOST * work * jobs.len() as u32, sample),
        targets: jobs.iter().map(target).collect(),
        private: false,
    }
}

/// Each mix of Table 4 by each schedule.
pub fn runs(size: &Size, scoring: &Scoring, alone: &Alone) -> Vec<Run> {
    let residence = Scoring { overlap: [0.0; VECTORS], misses: 0.0, ..scoring.clone() };
    let counters = Scoring { misses: MISSES, ..residence.clone() };
    let of = |jobs: &Vec<String>| {
        let run = |called, schedule| run(jobs, called, schedule, (size.work, size.sample), alone);
        let private = |called, schedule| Run { private: true, ..run(called, schedule) };
        let scored = |scoring: &Scoring| Schedule::Scored(scoring.clone());
        [
            run(ROUND_ROBIN, Schedule::RoundRobin),
            run(ACTIVITY, scored(scoring)),
            run(RESIDENCE, scored(&residence)),
            run(COUNTERS, scored(&counters)),
            run(SHUFFLED, scored(&Scoring { shuffled: true, ..scoring.clone() })),
            private(ROUND_ROBIN_PRIVATE, Schedule::RoundRobin),
            private(RESIDENCE_PRIVATE, scored(&residence)),
            private(ACTIVITY_PRIVATE, scored(scoring)),
        ]
    };
    MIXES.iter().map(|(programs, ..)| ours(programs)).flat_map(|jobs| of(&jobs)).collect()
}

/// Misses of lines that another job had displaced: of the L2, and of all caches.
pub fn kicked_out(record: &Record) -> [f64; 2] {
    let turns = || record.samples.iter().flat_map(|sample| &sample.turns);
    let l2 = turns().filter_map(|turn| turn.caches.last()).map(|it| f64::from(it.kicked_out)).sum();
    let all = turns().flat_map(|turn| &turn.caches).map(|it| f64::from(it.kicked_out)).sum();
    [l2, all]
}

/// Gain in IPC by one run over another of the same work.
pub fn gain(own: &Record, base: &Record, jobs: usize) -> Option<f64> {
    Some(base.makespan(jobs)? / own.makespan(jobs)? - 1.0)
}

/// Table 4 and the controls.
pub fn points(done: &[Done<Players<'_>>]) -> Result<Vec<(&'static str, Vec<Point>)>, Error> {
    let find = |jobs: &[String], called: &str| {
        let is = |run: &Run| run.jobs == jobs && run.called == called;
        done.iter().find(|done| is(&done.run)).map(|done| &done.record)
    };
    let mut table = Vec::new();
    let (mut kicked, mut ipc) = ([Vec::new(), Vec::new()], Vec::new());
    for (programs, reduction, gained) in &MIXES {
        let jobs = ours(programs);
        let (Some(base), Some(own)) = (find(&jobs, ROUND_ROBIN), find(&jobs, ACTIVITY)) else {
            continue;
        };
        let at = programs.join(".");
        let (before, now) = (kicked_out(base), kicked_out(own));
        for (number, what) in
            ["kick-outs avoided, L2", "kick-outs avoided, all caches"].iter().enumerate()
        {
            let avoided = 100.0 * (1.0 - now[number] / before[number].max(1.0));
            kicked[number].push(avoided);
            let printed = (number == 0).then_some(*reduction);
            table.push(Point::new(*what, at.as_str(), Estimate::exact(avoided)).published(printed));
        }
        let Some(gain) = gain(own, base, jobs.len()) else { continue };
        ipc.push(100.0 * gain);
        let ours = Estimate::exact(100.0 * gain);
        table.push(Point::new("IPC", at, ours).published(Some(*gained)));
    }
    let mut mean = |what: &str, values: &[f64], published: Option<f64>| {
        let ours = mean_estimate(values).map_err(|error| Error::Evaluation(error.to_string()))?;
        table.push(Point::new(what, "mean", ours).published(published));
        Ok::<(), Error>(())
    };
    mean("kick-outs avoided, L2", &kicked[0], Some(MEAN.0))?;
    mean("kick-outs avoided, all caches", &kicked[1], None)?;
    mean("IPC", &ipc, Some(MEAN.1))?;
    let mut controls = Vec::new();
    for (own, base) in [
        (ACTIVITY, ROUND_ROBIN),
        (RESIDENCE, ROUND_ROBIN),
        (COUNTERS, ROUND_ROBIN),
        (SHUFFLED, ROUND_ROBIN),
        (ACTIVITY_PRIVATE, ROUND_ROBIN_PRIVATE),
        (ACTIVITY, RESIDENCE),
        (COUNTERS, RESIDENCE),
        (SHUFFLED, RESIDENCE),
        (ACTIVITY_PRIVATE, RESIDENCE_PRIVATE),
    ] {
        let mixes = MIXES.iter().map(|(programs, ..)| ours(programs));
        let gains: Vec<f64> = mixes
            .filter_map(|jobs| gain(find(&jobs, own)?, find(&jobs, base)?, jobs.len()))
            .collect();
        let gain = mean_estimate(&gains).map_err(|error| Error::Evaluation(error.to_string()))?;
        controls.push(Point::new(own, format!("over {base}"), gain.percent()));
    }
    Ok(vec![("settle-tab4", table), ("settle-controls", controls)])
}
