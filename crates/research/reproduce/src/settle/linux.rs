//! Eight jobs on a simulated Pentium 4 with Hyper-Threading, under the scheduler of Linux 2.6.0 with and without
//! activity vectors (Table 5, Fig. 7 to 11).
//!
//! # Approach
//! As in the paper, vectors are made beforehand from each program alone, interval by interval, and a job's place in
//! them follows from the instructions that it has retired. The two hardware threads schedule in turn, half a
//! time slice apart.
//!
//! As in the mixes of four, what a choice by vectors gains may come from choosing at all. So the controls are held
//! against the same choice with the super-sets of each job in an order of its own (*elsewhere*).

use super::Players;
use super::alone::Alone;
use super::play::{PlayRecord, Sampled, Schedule, ScheduleRun};
use super::scheduler::{By, Decision};
use super::scoring::Scoring;
use crate::figure::Point;
use symbiont_campaign::{Error, FinishedRunOf};
use symbiont_report::published::settle::{
    BAD_DECISIONS, BETTER_CHOICES, LATE, OPPORTUNITY, WORKLOADS,
};
use symbiont_report::stats::{Estimate, StatsError, mean_estimate, median};

/// Ours for the programs of Table 5 that no other table has.
const MORE: [(&str, &str); 6] = [
    ("vpr", "metis"),
    ("gcc", "gcc"),
    ("art", "fftw"),
    ("crafty", "gnugo"),
    ("gap", "iverilog"),
    ("vortex", "sqlite"),
];

/// A scheduler of a workload.
struct WorkloadScheduler {
    by: By,
    called: &'static str,
    /// A control: are the super-sets of each job in an order of its own?
    elsewhere: bool,
    /// A control: has each job caches of its own?
    private: bool,
}

const LINUX: WorkloadScheduler =
    WorkloadScheduler { by: By::Default, called: "Linux", elsewhere: false, private: false };
const ACTIVITY: WorkloadScheduler =
    WorkloadScheduler { by: By::Vectors, called: "activity vectors", ..LINUX };
const COUNTERS: WorkloadScheduler =
    WorkloadScheduler { by: By::Misses, called: "counters", ..LINUX };
const OTHERS: WorkloadScheduler =
    WorkloadScheduler { by: By::OthersVectors, called: "activity vectors of another job", ..LINUX };
const ELSEWHERE: WorkloadScheduler = WorkloadScheduler {
    called: "activity vectors, super-sets elsewhere",
    elsewhere: true,
    ..ACTIVITY
};
const ACTIVITY_PRIVATE: WorkloadScheduler =
    WorkloadScheduler { called: "activity vectors, private caches", private: true, ..ACTIVITY };
const ELSEWHERE_PRIVATE: WorkloadScheduler = WorkloadScheduler {
    called: "activity vectors, super-sets elsewhere, private caches",
    private: true,
    ..ELSEWHERE
};

const ALL: [WorkloadScheduler; 7] =
    [LINUX, ACTIVITY, COUNTERS, OTHERS, ELSEWHERE, ACTIVITY_PRIVATE, ELSEWHERE_PRIVATE];

/// What is compared, with which base.
const CONTROLS: [[&WorkloadScheduler; 2]; 6] = [
    [&ACTIVITY, &LINUX],
    [&COUNTERS, &LINUX],
    [&ELSEWHERE, &LINUX],
    [&ACTIVITY, &ELSEWHERE],
    [&OTHERS, &ELSEWHERE],
    [&ACTIVITY_PRIVATE, &ELSEWHERE_PRIVATE],
];

/// All programs of Table 5.
pub fn programs() -> Vec<&'static str> {
    let mut all: Vec<&str> =
        WORKLOADS.iter().flatten().filter_map(|name| counterpart(name)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Ours for a program of the paper, of both machines.
pub fn counterpart(program: &str) -> Option<&'static str> {
    let more = MORE.iter().find(|(theirs, _)| *theirs == program).map(|(_, ours)| *ours);
    more.or_else(|| super::counterpart(program))
}

fn jobs(workload: &[&str; 8]) -> Vec<String> {
    workload.iter().filter_map(|name| counterpart(name)).map(str::to_owned).collect()
}

/// Each workload under each scheduler: jobs with so much work, in samples alone of so many cycles. Where super-sets are
/// elsewhere is drawn by the seed.
pub fn runs(size: (u32, u64), scoring: &Scoring, alone: &Alone, seed: u64) -> Vec<ScheduleRun> {
    let of = |(number, jobs): (usize, Vec<String>)| {
        let seed = seed.wrapping_add((number * jobs.len()) as u64);
        ALL.map(|WorkloadScheduler { by, called, elsewhere, private }| {
            let scoring = Scoring { elsewhere: elsewhere.then_some(seed), ..scoring.clone() };
            let schedule = Schedule::Linux(by, scoring);
            ScheduleRun { private, ..super::mixes::run(&jobs, called, schedule, size, alone) }
        })
    };
    WORKLOADS.iter().map(jobs).enumerate().flat_map(of).collect()
}

/// Fig. 7 to 11.
pub fn points(
    done: &[FinishedRunOf<Players<'_>>],
) -> Result<Vec<(&'static str, Vec<Point>)>, Error> {
    evaluate(done).map_err(Error::evaluation)
}

fn evaluate(
    done: &[FinishedRunOf<Players<'_>>],
) -> Result<Vec<(&'static str, Vec<Point>)>, StatsError> {
    let find = |jobs: &[String], called: &str| {
        let is = |run: &ScheduleRun| run.jobs == jobs && run.called == called;
        done.iter().find(|done| is(&done.run)).map(|done| &done.record)
    };
    let workloads: Vec<(String, Vec<String>)> = (WORKLOADS.iter().enumerate())
        .map(|(number, names)| (format!("WL{number}"), jobs(names)))
        .collect();
    let (mut opportunity, mut decisions, mut better) = (Vec::new(), Vec::new(), Vec::new());
    for (name, jobs) in &workloads {
        let Some(record) = find(jobs, LINUX.called) else { continue };
        let judged = DecisionShares::of(&record.decisions);
        opportunity.push(Point::new("a better job was there", name.as_str(), judged.opportunity));
        for (what, share) in ["good", "moderate", "bad"].iter().zip(judged.classes) {
            decisions.push(Point::new(*what, name.as_str(), share));
        }
        for (what, share) in
            ["at least one better", "at least two better"].iter().zip(judged.better)
        {
            better.push(Point::new(*what, name.as_str(), share));
        }
    }
    add_mean(&mut opportunity, "a better job was there", OPPORTUNITY)?;
    add_mean(&mut decisions, "bad", BAD_DECISIONS)?;
    add_mean(&mut better, "at least one better", BETTER_CHOICES.0)?;
    add_mean(&mut better, "at least two better", BETTER_CHOICES.1)?;
    let (gains, finish, controls) = compared(&workloads, &find)?;
    Ok(vec![
        ("settle-fig7", opportunity),
        ("settle-fig8", decisions),
        ("settle-fig9", better),
        ("settle-fig10", gains),
        ("settle-fig11", finish),
        ("settle-linux-controls", controls),
    ])
}

/// Adds the mean over workloads next to the published one.
fn add_mean(points: &mut Vec<Point>, series: &str, published: f64) -> Result<(), StatsError> {
    let of = points.iter().filter(|point| point.series == series);
    let values: Vec<f64> = of.filter_map(|point| point.ours).map(|it| it.value).collect();
    points.push(Point::new(series, "mean", mean_estimate(&values)?).published(Some(published)));
    Ok(())
}

/// Shares of the default scheduler's decisions, %.
pub(super) struct DecisionShares {
    /// Those with a better job in the pool.
    pub opportunity: Estimate,
    /// Good, moderate, bad.
    pub classes: [Estimate; 3],
    /// Of the bad ones, those with at least one and two better jobs.
    pub better: [Estimate; 2],
}

impl DecisionShares {
    /// Good, moderate, bad: in the lowest, middle and highest third of all overlaps that there were in a pool,
    /// equal ones by the middle of their ranks. So a bad decision need not have a better job in its pool.
    pub fn of(decisions: &[Decision]) -> Self {
        let mut overlaps: Vec<f64> =
            decisions.iter().flat_map(|decision| decision.overlaps.iter().copied()).collect();
        overlaps.sort_by(f64::total_cmp);
        let third = |own: f64| {
            let below = overlaps.partition_point(|overlap| *overlap < own);
            let up_to = overlaps.partition_point(|overlap| *overlap <= own);
            let place = (below + up_to) as f64 / (2 * overlaps.len()).max(1) as f64;
            ((3.0 * place) as usize).min(2)
        };
        let (mut classes, mut better, mut some_better) = ([0.0; 3], [0.0; 2], 0.0);
        for decision in decisions {
            let all = &decision.overlaps;
            let own = all.first().copied().unwrap_or(0.0);
            let class = third(own);
            classes[class] += 1.0;
            let lower = all.iter().filter(|overlap| **overlap < own).count();
            some_better += f64::from(u8::from(lower > 0));
            if class == 2 {
                better[0] += f64::from(u8::from(lower >= 1));
                better[1] += f64::from(u8::from(lower >= 2));
            }
        }
        let percent = |part: f64, of: f64| Estimate::exact(100.0 * part / of.max(1.0));
        let count = decisions.len() as f64;
        Self {
            opportunity: percent(some_better, count),
            classes: classes.map(|class| percent(class, count)),
            better: better.map(|part| percent(part, classes[2])),
        }
    }
}

/// Misses of the L2.
fn misses(record: &PlayRecord) -> f64 {
    let turns = record.samples.iter().flat_map(|sample| &sample.turns);
    let l2 = turns.filter_map(|turn| turn.caches.last());
    l2.map(|cache| cache.misses.iter().map(|count| f64::from(*count)).sum::<f64>()).sum()
}

/// When each job was complete, cycles.
fn finished(record: &PlayRecord, jobs: usize) -> Vec<f64> {
    let mut times = vec![f64::NAN; jobs];
    let mut before = 0.0;
    for Sampled { cycles, turns } in &record.samples {
        for turn in turns {
            if let (Some(part), Some(time)) = (turn.complete, times.get_mut(turn.job)) {
                *time = before + part * cycles;
            }
        }
        before += cycles;
    }
    times
}

/// Changes of the times of completion that are shown: the least, the middle one, the most.
const ENDS: [&str; 3] = ["early", "median", "late"];

/// These of one run over another, %.
fn changes(own: &PlayRecord, base: &PlayRecord, jobs: usize) -> Option<[f64; 3]> {
    let (now, before) = (finished(own, jobs), finished(base, jobs));
    let mut relative: Vec<f64> =
        now.iter().zip(&before).map(|(now, before)| 100.0 * (now / before - 1.0)).collect();
    relative.retain(|change| change.is_finite());
    relative.sort_by(f64::total_cmp);
    Some([*relative.first()?, median(&relative)?, *relative.last()?])
}

type Points = (Vec<Point>, Vec<Point>, Vec<Point>);

fn compared<'r>(
    workloads: &[(String, Vec<String>)],
    find: &dyn Fn(&[String], &str) -> Option<&'r PlayRecord>,
) -> Result<Points, StatsError> {
    let (mut gains, mut finish, mut controls) = (Vec::new(), Vec::new(), Vec::new());
    let fewer = |jobs: &[String]| {
        let (own, base) = (find(jobs, ACTIVITY.called)?, find(jobs, LINUX.called)?);
        Some(100.0 * (1.0 - misses(own) / misses(base).max(1.0)))
    };
    let later = |jobs: &[String], called: &str| {
        changes(find(jobs, called)?, find(jobs, LINUX.called)?, jobs.len())
    };
    for (name, jobs) in workloads {
        let mut add = |what: &str, ours: Option<f64>| {
            let point = |ours| Point::new(what, name.as_str(), Estimate::exact(ours));
            gains.extend(ours.map(point));
        };
        let (own, base) = (find(jobs, ACTIVITY.called), find(jobs, LINUX.called));
        let ipc = |(own, base)| super::mixes::gain(own, base, jobs.len());
        add("misses of the L2 avoided", fewer(jobs));
        add("IPC", own.zip(base).and_then(ipc).map(|gain| 100.0 * gain));
        for (what, value) in ENDS.iter().zip(later(jobs, ACTIVITY.called).into_iter().flatten()) {
            finish.push(Point::new(*what, name.as_str(), Estimate::exact(value)));
        }
    }
    let all: Vec<f64> = workloads.iter().filter_map(|(_, jobs)| fewer(jobs)).collect();
    gains.push(Point::new("misses of the L2 avoided", "mean", mean_estimate(&all)?));
    for (at, what) in ENDS.iter().enumerate() {
        let mean = |called: &str| {
            let own = workloads.iter().filter_map(|(_, jobs)| Some(later(jobs, called)?[at]));
            mean_estimate(&own.collect::<Vec<_>>())
        };
        let printed = (*what == "late").then_some(LATE);
        let point = Point::new(*what, "mean", mean(ACTIVITY.called)?).published(printed);
        finish.push(point.control("super-sets elsewhere", Some(mean(ELSEWHERE.called)?)));
    }
    for (number, [own, base]) in CONTROLS.into_iter().enumerate() {
        let gain = |(_, jobs): &(String, Vec<String>)| {
            super::mixes::gain(find(jobs, own.called)?, find(jobs, base.called)?, jobs.len())
        };
        let values: Vec<f64> = workloads.iter().filter_map(gain).collect();
        let gain = mean_estimate(&values)?.percent();
        if number == 0 {
            gains.push(Point::new("IPC", "mean", gain));
        }
        controls.push(Point::new(own.called, format!("over {}", base.called), gain));
    }
    Ok((gains, finish, controls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_judged_by_all_overlaps() {
        let decision = |overlaps: &[f64]| Decision { overlaps: overlaps.to_vec(), chosen: 0 };
        // 1 2 3 | 4 5 6 | 8 8 9
        let judged = DecisionShares::of(&[
            decision(&[9.0, 1.0, 2.0]),
            decision(&[8.0, 8.0]),
            decision(&[5.0, 6.0]),
            decision(&[3.0]),
            decision(&[4.0]),
        ]);
        let values = |all: &[Estimate]| all.iter().map(|it| it.value).collect::<Vec<_>>();
        assert_eq!(values(&judged.classes), [20.0, 40.0, 40.0]);
        assert_eq!(values(&[judged.opportunity]), [20.0]);
        // Of two bad ones one had no better job.
        assert_eq!(values(&judged.better), [50.0, 50.0]);
    }

    #[test]
    fn all_programs_of_the_workloads_have_a_counterpart() {
        assert!(WORKLOADS.iter().all(|workload| jobs(workload).len() == 8));
        assert_eq!(programs().len(), 13);
    }
}
