//! Mixes of four jobs on two hardware threads by a schedule (Table 4), and the controls.
//!
//! # Approach
//! A schedule by scores changes jobs less often than round robin does. Caches that are filled again less often are a
//! gain by themselves in samples as short as these, whatever the vectors say. So the controls are held
//! against the same scores with the super-sets of each job in an order of its own (*elsewhere*): as many bits
//! are set, jobs change about as often (the figure shows how often), and only where they conflict is not known.
//!
//! In what order a mix's jobs begin is drawn: in the order of their names, round robin would run two of one program
//! together more often than chance. The vectors of the control are dealt among the jobs by chance too, not
//! from each to the next one, of which in mixes with two of one program some would have the right ones.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::alone::Alone;
use super::play::{PlayRecord, Sampled, Schedule, ScheduleRun};
use super::scoring::{Scoring, VECTORS};
use super::{Players, Size, counterpart};
use crate::figure::Point;
use symbiont_campaign::{Error, FinishedRunOf};
use symbiont_report::published::settle::{MEAN, MIXES};
use symbiont_report::stats::{Estimate, mean_estimate};

pub const ROUND_ROBIN: &str = "round robin";
pub const ACTIVITY: &str = "activity vectors";
const ELSEWHERE: &str = "activity vectors, super-sets elsewhere";
const RESIDENCE: &str = "residence alone";
const COUNTERS: &str = "counters";
const SHUFFLED: &str = "activity vectors shuffled between jobs";
const ELSEWHERE_PRIVATE: &str = "activity vectors, super-sets elsewhere, private caches";
const ACTIVITY_PRIVATE: &str = "activity vectors, private caches";
/// Schedules whose changes of jobs are counted.
const CHANGES: [&str; 6] = [ROUND_ROBIN, RESIDENCE, COUNTERS, ACTIVITY, ELSEWHERE, SHUFFLED];

/// A run is given up after so many times the samples that its work takes alone, one job after the other.
const MOST: u32 = 3;
/// Weight of the product of misses for the scheduler that has counters alone: of two average jobs as
/// much as eight overlapping bits.
const MISSES: f64 = 8.0;

/// A mix of Table 4.
pub struct Mix {
    /// The paper's programs.
    name: String,
    /// Ours, in the order in which they begin.
    jobs: Vec<String>,
    /// Whose vectors each job has in the control.
    dealt: Vec<usize>,
    /// By which its super-sets are put elsewhere.
    seed: u64,
    /// The published gains: kick-outs avoided and IPC, %.
    published: (f64, f64),
}

/// All of them, what is drawn by a seed.
pub fn mixes(seed: u64) -> Vec<Mix> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mix = |(programs, avoided, gained): &([&str; 4], f64, f64)| {
        let ours = programs.iter().filter_map(|name| counterpart(name));
        let mut jobs: Vec<String> = ours.map(str::to_owned).collect();
        let mut dealt: Vec<usize> = (0..jobs.len()).collect();
        jobs.shuffle(&mut random);
        dealt.shuffle(&mut random);
        let (seed, published) = (random.random(), (*avoided, *gained));
        Mix { name: programs.join("."), jobs, dealt, seed, published }
    };
    MIXES.iter().map(mix).collect()
}

/// A run of a mix by a schedule: each job has the work of so many samples alone, of so many cycles.
pub fn run(
    jobs: &[String],
    called: &str,
    schedule: Schedule,
    (work, sample): (u32, u64),
    alone: &Alone,
) -> ScheduleRun {
    let cycles = f64::from(work) * sample as f64;
    let target = |job: &String| (alone.ipc(job).unwrap_or(1.0) * cycles) as u64;
    ScheduleRun {
        jobs: jobs.to_vec(),
        schedule,
        called: called.to_owned(),
        samples: (MOST * work * jobs.len() as u32, sample),
        targets: jobs.iter().map(target).collect(),
        private: false,
    }
}

/// Each mix by each schedule.
pub fn runs(mixes: &[Mix], size: &Size, scoring: &Scoring, alone: &Alone) -> Vec<ScheduleRun> {
    let residence = Scoring { overlap: [0.0; VECTORS], misses: 0.0, ..scoring.clone() };
    let counters = Scoring { misses: MISSES, ..residence.clone() };
    let of = |mix: &Mix| {
        let run =
            |called, schedule| run(&mix.jobs, called, schedule, (size.work, size.sample), alone);
        let elsewhere = Scoring { elsewhere: Some(mix.seed), ..scoring.clone() };
        let shuffled = Scoring { vectors_of: Some(mix.dealt.clone()), ..scoring.clone() };
        let private = |called, schedule| ScheduleRun { private: true, ..run(called, schedule) };
        let scored = |scoring: &Scoring| Schedule::Scored(scoring.clone());
        [
            run(ROUND_ROBIN, Schedule::RoundRobin),
            run(ACTIVITY, scored(scoring)),
            run(RESIDENCE, scored(&residence)),
            run(COUNTERS, scored(&counters)),
            run(ELSEWHERE, scored(&elsewhere)),
            run(SHUFFLED, scored(&shuffled)),
            private(ELSEWHERE_PRIVATE, scored(&elsewhere)),
            private(ACTIVITY_PRIVATE, scored(scoring)),
        ]
    };
    mixes.iter().flat_map(of).collect()
}

/// Misses of lines that another job had displaced: of the L2, and of all caches.
pub fn kicked_out(record: &PlayRecord) -> [f64; 2] {
    let turns = || record.samples.iter().flat_map(|sample| &sample.turns);
    let l2 = turns().filter_map(|turn| turn.caches.last()).map(|it| f64::from(it.kicked_out)).sum();
    let all = turns().flat_map(|turn| &turn.caches).map(|it| f64::from(it.kicked_out)).sum();
    [l2, all]
}

/// Jobs that enter per sample.
fn changes(record: &PlayRecord) -> f64 {
    let mut before: Vec<usize> = Vec::new();
    let entered = |sample: &Sampled| {
        let now: Vec<usize> = sample.turns.iter().map(|turn| turn.job).collect();
        let entered = now.iter().filter(|job| !before.contains(job)).count();
        before = now;
        entered
    };
    record.samples.iter().map(entered).sum::<usize>() as f64 / record.samples.len().max(1) as f64
}

/// Gain in IPC by one run over another of the same work.
pub fn gain(own: &PlayRecord, base: &PlayRecord, jobs: usize) -> Option<f64> {
    Some(base.makespan(jobs)? / own.makespan(jobs)? - 1.0)
}

/// What a mix gains by a schedule over round robin, %.
type Of<'r> = dyn Fn(&Mix, &str) -> Option<f64> + 'r;

/// Table 4: each mix, and the means with what the same scores gain with super-sets elsewhere.
fn table<'r>(
    mixes: &[Mix],
    find: &dyn Fn(&[String], &str) -> Option<&'r PlayRecord>,
) -> Result<Vec<Point>, Error> {
    let avoided = |number: usize| {
        move |mix: &Mix, called: &str| {
            let [before, now] =
                [ROUND_ROBIN, called].map(|called| find(&mix.jobs, called).map(kicked_out));
            Some(100.0 * (1.0 - now?[number] / before?[number].max(1.0)))
        }
    };
    let ipc = |mix: &Mix, called: &str| {
        let (own, base) = (find(&mix.jobs, called)?, find(&mix.jobs, ROUND_ROBIN)?);
        Some(100.0 * gain(own, base, mix.jobs.len())?)
    };
    let (l2, all) = (avoided(0), avoided(1));
    let rows: [(&str, &Of<'_>, PublishedValue, Option<f64>); 3] = [
        ("kick-outs avoided, L2", &l2, |mix| Some(mix.published.0), Some(MEAN.0)),
        ("kick-outs avoided, all caches", &all, |_| None, None),
        ("IPC", &ipc, |mix| Some(mix.published.1), Some(MEAN.1)),
    ];
    let mut table = Vec::new();
    for (what, of, printed, mean) in rows {
        for mix in mixes {
            let point = |ours| Point::new(what, mix.name.as_str(), Estimate::exact(ours));
            let point = of(mix, ACTIVITY).map(point);
            table.extend(point.map(|point| point.published(printed(mix))));
        }
        let over = |called: &str| {
            let values: Vec<f64> = mixes.iter().filter_map(|mix| of(mix, called)).collect();
            mean_estimate(&values).map_err(Error::evaluation)
        };
        let point = Point::new(what, "mean", over(ACTIVITY)?).published(mean);
        table.push(point.control("super-sets elsewhere", Some(over(ELSEWHERE)?)));
    }
    Ok(table)
}

/// What is published of a mix.
type PublishedValue = fn(&Mix) -> Option<f64>;

/// Table 4 and the controls.
pub fn points(
    mixes: &[Mix],
    done: &[FinishedRunOf<Players<'_>>],
) -> Result<Vec<(&'static str, Vec<Point>)>, Error> {
    let find = |jobs: &[String], called: &str| {
        let is = |run: &ScheduleRun| run.jobs == jobs && run.called == called;
        done.iter().find(|done| is(&done.run)).map(|done| &done.record)
    };
    let table = table(mixes, &find)?;
    let mut controls = Vec::new();
    for (own, base) in [
        (ACTIVITY, ROUND_ROBIN),
        (RESIDENCE, ROUND_ROBIN),
        (COUNTERS, ROUND_ROBIN),
        (ELSEWHERE, ROUND_ROBIN),
        (ACTIVITY, ELSEWHERE),
        (SHUFFLED, ELSEWHERE),
        (ACTIVITY_PRIVATE, ELSEWHERE_PRIVATE),
    ] {
        let of = |Mix { jobs, .. }: &Mix| gain(find(jobs, own)?, find(jobs, base)?, jobs.len());
        let gains: Vec<f64> = mixes.iter().filter_map(of).collect();
        let gain = mean_estimate(&gains).map_err(Error::evaluation)?;
        controls.push(Point::new(own, format!("over {base}"), gain.percent()));
    }
    let mut turns = Vec::new();
    for called in CHANGES {
        let all = mixes.iter().filter_map(|mix| Some(changes(find(&mix.jobs, called)?)));
        let mean = mean_estimate(&all.collect::<Vec<_>>());
        let mean = mean.map_err(Error::evaluation)?;
        turns.push(Point::new("jobs that enter per sample", called, mean));
    }
    Ok(vec![("settle-tab4", table), ("settle-controls", controls), ("settle-turns", turns)])
}
