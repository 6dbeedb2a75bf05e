//! The experiment `symbiont bench latency`: what a class does for a program that answers requests.
//!
//! # Problem
//! A program that answers requests sleeps most of the time, and is to run at once when one arrives,
//! however busy batch programs keep the machine.
//!
//! # Approach
//! The request loop of `symbiont-synth requests` runs together with twice as many busy threads as there are
//! CPUs, all managed by one daemon under `stay`, which moves no thread: from [`Case`] to [`Case`] only the
//! classes differ. Cases are interleaved: each round holds each of them once, in random order; a round is
//! compared with itself.
//!
//! # Terms and units
//! *Latency*: from the arrival of a request to the end of its work, µs. *Throughput*: iterations of the
//! busy threads per second.
//!
//! # Properties
//! - A class that changes nothing shows no difference (`equal_runs_show_no_difference`).

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_synth::{many, requests};

use crate::harness::{self, Check, Daemon, Measure, Programs, RunFolder, Site, TIMEOUT, Verdict};
use symbiont_campaign::{Decision, Error, FinishedRun, InRound, Progress, Repeats, read_json};
use symbiont_report::stats::{Estimate, Interval, StatsError, mean_estimate};
use symbiont_report::{Block, Column, Report, Table};

/// What differs between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    /// No classes: as Linux runs them.
    Stay,
    /// The request loop is of class `latency`.
    Latency,
    /// The busy threads are of class `batch`.
    Batch,
    /// There are no busy threads: the least that can be.
    Idle,
}

impl Case {
    const ALL: [Self; 4] = [Self::Stay, Self::Latency, Self::Batch, Self::Idle];

    fn name(self) -> &'static str {
        match self {
            Self::Stay => "no classes (stay)",
            Self::Latency => "requests: class latency",
            Self::Batch => "busy threads: class batch",
            Self::Idle => "nothing else running",
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to do.
#[derive(Debug, Clone)]
pub struct LatencyOptions {
    /// The programs to run.
    pub programs: Programs,
    /// Folder of the report and of the raw runs.
    pub output: PathBuf,
    /// Rounds: until class `latency` is decided against no classes.
    pub repeats: Repeats,
    /// Time in which requests count, in each run.
    pub time: Duration,
    /// Seed of the order of runs and of arrivals.
    pub seed: u64,
}

/// Rounds and the time of a run: three and a half to seven minutes, or half of one.
#[must_use]
pub fn size(short: bool) -> (Repeats, Duration) {
    if short {
        return (Repeats::exactly(1), Duration::from_secs(2));
    }
    (Repeats { least: 4, most: 8, narrow: 0.02 }, Duration::from_secs(8))
}

/// A class is given once a program was there for a while.
const WARM_UP: Duration = Duration::from_secs(3);
/// For the daemon to start, and for the end of a run.
const AROUND: Duration = Duration::from_secs(2);

/// What a run gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyRecord {
    /// Of the request loop.
    pub requests: requests::Report,
    /// Iterations of the busy threads per second; none without them.
    pub throughput: Option<f64>,
}

type Run = InRound<Case>;
type LatencyRun = FinishedRun<InRound<Case>, LatencyRecord>;

/// Carries out all runs that are not kept yet, evaluates all of them and writes the report.
///
/// # Errors
/// When a run fails, the folder cannot be used, or the user stops it; finished runs are kept.
pub fn run(options: &LatencyOptions, progress: &mut dyn Progress) -> Result<Report, Error> {
    let site = Site::new(&options.output, options.repeats, options.seed)?;
    let done = site.carry_out(options, progress)?;
    let mut report = page(&done)?;
    let rounds = done.len() / Case::ALL.len();
    report.fact("Runs", format!("{rounds} rounds, {:?} each", options.time));
    report.fact("Busy threads", format!("{}", 2 * site.machine.cpus));
    site.write(&mut report)?;
    Ok(report)
}

impl Measure for LatencyOptions {
    type Cell = Case;
    type Record = LatencyRecord;

    const NAME: &'static str = "latency";

    fn cells(&self) -> Vec<Case> {
        Case::ALL.into()
    }

    fn options(&self) -> String {
        format!("{:?}", self.time)
    }

    fn decided(&self, done: &[LatencyRun]) -> bool {
        let decide = |of| self.repeats.decide(&logarithms(done, Case::Latency, of));
        TAIL.iter().all(|(_, of)| decide(*of) != Decision::Undecided)
    }

    fn cost(&self, _: &Case) -> Duration {
        self.time + WARM_UP + AROUND
    }

    /// A daemon, the busy threads, and the request loop; the others end with the loop.
    fn measure(&self, run: &Run, place: &RunFolder<'_>) -> Result<LatencyRecord, Error> {
        let InRound { round, cell: case } = *run;
        let (options, cpus) = (self, place.machine.cpus);
        let daemon = Daemon::new(&options.programs.symbiont, place.folder());
        let managed = |class: Option<&str>, words: Vec<String>| {
            let class = class.map(|class| format!("--class={class}"));
            let synth = options.programs.synth.display().to_string();
            let program = ["--".to_owned(), synth].into_iter().chain(words);
            daemon.command("run").into_iter().chain(class).chain(program).collect::<Vec<_>>()
        };
        let limit = options.time + WARM_UP + TIMEOUT;
        let count = 2 * cpus;
        let busy = ["threads", "--json", &format!("--count={count}"), &format!("--busy={count}")];
        let busy: Vec<String> = busy.map(str::to_owned).into_iter().chain([time(limit)]).collect();
        let busy = managed((case == Case::Batch).then_some("batch"), busy);
        let requests = [
            "requests".to_owned(),
            "--json".to_owned(),
            format!("--warm-up={}ms", WARM_UP.as_millis()),
            time(options.time),
            format!("--seed={}", options.seed.wrapping_add(u64::from(round))),
        ];
        let requests = managed((case == Case::Latency).then_some("latency"), requests.into());
        let (answered, over) = (place.file("requests.out"), AtomicBool::new(false));
        let load = || {
            let ends = || over.load(Ordering::Relaxed) || place.cancelled();
            let (out, err) = (place.file("busy.out"), place.file("busy.err"));
            match harness::run(&busy, &out, &err, limit, &ends) {
                Err(Error::Cancelled) => Ok(()),
                other => other.map(drop),
            }
        };
        let under_load = || {
            std::thread::scope(|scope| {
                let load = (case != Case::Idle).then(|| scope.spawn(load));
                let done = place.run(&requests, &answered, limit);
                over.store(true, Ordering::Relaxed);
                // A panic of its thread would be one of this crate's.
                let ended = load.map(|load| {
                    load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                });
                ended.transpose().and(done)
            })
        };
        daemon.serve("policy = \"stay\"\n", limit, &|| place.cancelled(), under_load)?;
        let throughput = match case {
            Case::Idle => None,
            _ => {
                let load: many::Report = read_json(&place.file("busy.out"))?;
                Some(load.busy_iterations as f64 / load.elapsed_s)
            }
        };
        Ok(LatencyRecord { requests: read_json(&answered)?, throughput })
    }
}

fn time(time: Duration) -> String {
    format!("--duration={}ms", time.as_millis())
}

type Of = fn(&LatencyRecord) -> Option<f64>;
type Figure = (&'static str, Of);

const FIGURES: [Figure; 4] = [
    ("median", |record| Some(record.requests.median_us)),
    TAIL[0],
    TAIL[1],
    ("throughput of the busy threads", |record| record.throughput),
];

/// What class `latency` is to make shorter.
const TAIL: [Figure; 2] = [
    ("99th percentile", |record| Some(record.requests.p99_us)),
    ("99.9th percentile", |record| Some(record.requests.p999_us)),
];

/// A figure of a case, round by round: all cases have the same rounds.
fn values(done: &[LatencyRun], case: Case, of: Of) -> Vec<f64> {
    let of_case = done.iter().filter(|done| done.run.cell == case);
    of_case.filter_map(|done| of(&done.record)).collect()
}

/// Logarithm of a figure over that without classes, round by round.
fn logarithms(done: &[LatencyRun], case: Case, of: Of) -> Vec<f64> {
    let (own, stay) = (values(done, case, of), values(done, Case::Stay, of));
    own.iter().zip(&stay).map(|(own, stay)| (own / stay).ln()).collect()
}

/// How many times as large a figure is as without classes: geometric mean over rounds.
fn ratio(done: &[LatencyRun], case: Case, of: Of) -> Result<Option<Estimate>, StatsError> {
    let logarithms = logarithms(done, case, of);
    if logarithms.is_empty() {
        return Ok(None);
    }
    let mean = mean_estimate(&logarithms)?;
    let interval = mean.interval.map(|i| Interval { low: i.low.exp(), high: i.high.exp() });
    Ok(Some(Estimate { value: mean.value.exp(), interval, ..mean }))
}

fn page(done: &[LatencyRun]) -> Result<Report, Error> {
    let mut checks = Vec::new();
    let columns = vec![
        Column::text("Case"),
        Column::number("Median").unit("µs"),
        Column::number("99th percentile").unit("µs"),
        Column::number("99.9th percentile").unit("µs"),
        Column::number("Throughput of the busy threads").unit("iterations/s"),
    ];
    let mut means = Table::new("latency", "Latency of requests, mean over rounds", columns.clone());
    let mut ratios = Table::new("ratios", "Times the figure without classes, same round", columns);
    for case in Case::ALL {
        let mut rows = (vec![case.name().into()], vec![case.name().into()]);
        for (name, of) in FIGURES {
            let values = values(done, case, of);
            let mean = if values.is_empty() { None } else { Some(mean_estimate(&values)?) };
            let ratio = ratio(done, case, of)?;
            rows.0.push(mean.into());
            rows.1.push(ratio.into());
            let checked = case == Case::Latency && TAIL.iter().any(|tail| tail.0 == name);
            checks.extend(ratio.filter(|_| checked).map(|ratio| shorter(name, ratio)));
        }
        means.row(rows.0);
        if case != Case::Stay {
            ratios.row(rows.1);
        }
    }
    let mut report = Report::new(
        "What a class does for requests",
        "A request loop co-running with busy threads, under stay: measured on this machine",
    );
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&checks));
    report.push(Block::Heading("Figures".to_owned()));
    report.push(means);
    report.push(ratios);
    Ok(report)
}

/// Class `latency` makes this percentile shorter.
fn shorter(name: &str, ratio: Estimate) -> Check {
    let verdict = match ratio.interval {
        Some(interval) if interval.high < 1.0 => Verdict::Pass,
        Some(interval) if interval.low >= 1.0 => Verdict::Fail,
        _ => Verdict::Undecided,
    };
    Check {
        requirement: format!("class latency: the {name} is shorter than without classes"),
        measured: Some(ratio),
        reference: "1: no difference".to_owned(),
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(round: u32, case: Case, us: f64) -> LatencyRun {
        let requests = requests::Report {
            requests: 1000,
            median_us: us,
            p99_us: 3.0 * us,
            p999_us: 5.0 * us,
            max_us: 9.0 * us,
            histogram: Vec::new(),
        };
        let throughput = (case != Case::Idle).then_some(1e6);
        LatencyRun {
            run: InRound { round, cell: case },
            record: LatencyRecord { requests, throughput },
        }
    }

    #[test]
    fn equal_runs_show_no_difference() {
        let us = |round: u32, case: Case| 100.0 + f64::from((round * 7 + case as u32 * 5) % 11);
        let records: Vec<LatencyRun> = (0..8)
            .flat_map(|round| Case::ALL.map(|case| record(round, case, us(round, case))))
            .collect();
        let (_, p99) = FIGURES[1];
        let equal = ratio(&records, Case::Latency, p99).unwrap().unwrap();
        assert!(equal.interval.unwrap().contains(1.0), "{equal:?}");
        assert_eq!(shorter("x", equal).verdict, Verdict::Undecided);
        let halved: Vec<LatencyRun> = (0..8)
            .flat_map(|round| {
                let of = |case| us(round, case) * if case == Case::Latency { 0.5 } else { 1.0 };
                Case::ALL.map(|case| record(round, case, of(case)))
            })
            .collect();
        let shorter_by_half = ratio(&halved, Case::Latency, p99).unwrap().unwrap();
        assert_eq!(shorter("x", shorter_by_half).verdict, Verdict::Pass);
        assert!((0.4..0.6).contains(&shorter_by_half.value));
        assert!(page(&halved).is_ok() && page(&halved[..4]).is_ok());
    }
}
