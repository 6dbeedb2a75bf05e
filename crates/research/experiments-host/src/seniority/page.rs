//! From finished runs to a report.

use std::time::Duration;

use super::judge::Judged;
use super::plan::Part;
use super::record::Done;
use crate::phases::Grouping;
use symbiont_campaign::harness::{Check, Error, Verdict};
use symbiont_report::stats::{self, Estimate};
use symbiont_report::{Block, Column, Report, Table, Value, number};

/// Share of the machine below which the programs cannot have had it for themselves.
const UNDISTURBED: f64 = 0.95;

/// The report, without facts; `cpus`: those of the machine.
///
/// # Errors
/// When no run of two programs has finished.
pub(super) fn page(runs: &[Done], cpus: u32) -> Result<Report, Error> {
    let two: Vec<&Done> = runs.iter().filter(|done| done.run.cell.part == Part::Turns).collect();
    if two.is_empty() {
        return Err(Error::Evaluation("no run has finished".to_owned()));
    }
    let mut report = Report::new(
        "Turns of parallel programs",
        "Programs that all want all of the machine, under stay and under phases",
    );
    // Context switches are those of the runs of two; the long ones bear a busy machine.
    let got = stats::mean(&two.iter().map(|r| r.record.judged.cpus).collect::<Vec<_>>());
    let part = got.unwrap_or_default() / f64::from(cpus.max(1));
    if part < UNDISTURBED {
        report.push(Block::Warning(format!(
            "Two programs got {:.0} % of the machine: something else used the rest. Shares, turns \
             and waits hold all the same; context switches were forced by others, so that no \
             policy could spare them.",
            100.0 * part
        )));
    }
    report.push(Check::table(&checks(runs, &two, part)));
    report.push(pairs(&two));
    report.push(long(runs));
    Ok(report)
}

fn starvation(runs: &[Done]) -> impl Iterator<Item = &Done> {
    runs.iter().filter(|done| done.run.cell.part == Part::Starvation)
}

/// Runs of two programs in one grouping under one policy.
fn select<'r>(two: &[&'r Done], grouping: Grouping, timeout: Option<Duration>) -> Vec<&'r Done> {
    let is = |r: &&Done| r.run.cell.grouping == grouping && r.run.cell.timeout == timeout;
    two.iter().copied().filter(is).collect()
}

fn mean(runs: &[&Done], figure: impl Fn(&Judged) -> Option<f64>) -> Option<Estimate> {
    let values: Vec<f64> = runs.iter().filter_map(|done| figure(&done.record.judged)).collect();
    stats::mean_estimate(&values).ok()
}

fn timeouts(two: &[&Done]) -> Vec<Option<Duration>> {
    let mut all: Vec<_> = two.iter().map(|done| done.run.cell.timeout).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn pairs(two: &[&Done]) -> Table {
    let columns = vec![
        Column::text("Sessions"),
        Column::text("Policy"),
        Column::number("Timeout").unit("s"),
        Column::number("Holder's share"),
        Column::number("Held").unit("% of the time"),
        Column::number("Turns, median").unit("s"),
        Column::number("Longest turn").unit("s"),
        Column::number("Longest wait").unit("s"),
        Column::number("Reaction, median").unit("ms"),
        Column::number("Context switches").unit("per CPU second"),
        Column::number("CPUs got"),
    ];
    let mut table = Table::new("turns", "Two parallel programs", columns);
    for grouping in Grouping::ALL {
        for timeout in timeouts(two) {
            let runs = select(two, grouping, timeout);
            let Some(first) = runs.first() else { continue };
            let turns: Vec<f64> =
                runs.iter().flat_map(|run| run.record.judged.turns.iter().copied()).collect();
            // Under stay no program is preferred; the first program stands for both.
            let share = |judged: &Judged| match timeout {
                None => judged.shares.first().copied(),
                Some(_) => judged.held_share,
            };
            let most = |figure: fn(&Judged) -> f64| {
                runs.iter().map(|run| figure(&run.record.judged)).reduce(f64::max)
            };
            let held = timeout.map(|_| ());
            table.row(vec![
                grouping.name().into(),
                first.run.cell.policy().into(),
                timeout.map(|timeout| timeout.as_secs_f64()).into(),
                mean(&runs, share).into(),
                held.and_then(|()| mean(&runs, |j| Some(100.0 * j.held_part))).into(),
                stats::median(&turns).into(),
                turns.iter().copied().reduce(f64::max).into(),
                held.and_then(|()| most(|judged| judged.longest_wait)).into(),
                mean(&runs, |judged| Some(1e3 * judged.reaction?)).into(),
                mean(&runs, |judged| Some(judged.switches_per_s)).into(),
                mean(&runs, |judged| Some(judged.cpus)).into(),
            ]);
        }
    }
    table.note(
        "Under stay the share is that of one program over the whole run. Nice values weigh threads \
         of one session only, so with sessions of their own the boost does not act.",
    );
    table
}

fn long(runs: &[Done]) -> Table {
    let columns = vec![
        Column::text("Programs"),
        Column::number("Length").unit("s"),
        Column::number("Least share of a parallel program"),
        Column::number("Longest turn").unit("s"),
        Column::number("Longest wait").unit("s"),
        Column::number("Wait allowed").unit("s"),
        Column::number("Least CPU time in 5 s").unit("s"),
    ];
    let mut table = Table::new("starvation", "No program starves", columns);
    for done in starvation(runs) {
        let judged = &done.record.judged;
        table.row(vec![
            Value::Text(done.run.cell.to_string()).into(),
            done.run.cell.time.as_secs_f64().into(),
            judged.shares.iter().copied().reduce(f64::min).into(),
            judged.turns.iter().copied().reduce(f64::max).into(),
            judged.longest_wait.into(),
            allowed(done).into(),
            judged.least.into(),
        ]);
    }
    table
}

/// The longest wait that turns allow: the others' timeouts, each late by two quanta.
fn allowed(done: &Done) -> Option<f64> {
    let late = 2.0 * done.record.quantum_ms? / 1e3;
    let others = f64::from(done.run.cell.parallel.saturating_sub(1));
    Some(others * (done.run.cell.timeout?.as_secs_f64() + late))
}

fn checks(runs: &[Done], two: &[&Done], part: f64) -> Vec<Check> {
    let mut checks = Vec::new();
    let grouping = Grouping::OneSession;
    let stay = select(two, grouping, None);
    for timeout in timeouts(two).into_iter().flatten() {
        let runs = select(two, grouping, Some(timeout));
        let held = mean(&runs, |judged| judged.held_share);
        let share = mean(&stay, |judged| judged.shares.first().copied());
        let text =
            |e: Option<Estimate>| e.map_or("not measured".to_owned(), |e| number::estimate(&e));
        checks.push(Check {
            requirement: format!(
                "one session, turns of {timeout:?}: the holder's share of CPU time, its speedup against \
                 running alone, is above stay's by more than 0.2"
            ),
            measured: held,
            reference: format!("stay: {}", text(share)),
            verdict: match (held, share) {
                (Some(held), Some(share)) => Verdict::of(held.value > share.value + 0.2),
                _ => Verdict::Undecided,
            },
        });
        let switches = |runs: &[&Done]| mean(runs, |judged| Some(judged.switches_per_s));
        let (with, without) = (switches(&runs), switches(&stay));
        checks.push(Check {
            requirement: format!(
                "one session, turns of {timeout:?}: fewer context switches per CPU second than stay"
            ),
            measured: with,
            reference: format!("stay: {}", text(without)),
            verdict: match (with, without) {
                (Some(with), Some(without)) if part >= UNDISTURBED => {
                    Verdict::of(with.value < without.value)
                }
                _ => Verdict::Undecided,
            },
        });
        let longest = runs.iter().flat_map(|run| run.record.judged.turns.iter().copied());
        let longest = longest.reduce(f64::max);
        let quantum = runs.iter().find_map(|run| run.record.quantum_ms).unwrap_or_default() / 1e3;
        let most = timeout.as_secs_f64() + 2.0 * quantum;
        checks.push(Check {
            requirement: format!("turns of {timeout:?} last at most two quanta longer (s)"),
            measured: longest.map(Estimate::exact),
            reference: format!("allowed: {most:.3}"),
            verdict: longest.map_or(Verdict::Undecided, |longest| Verdict::of(longest <= most)),
        });
    }
    for done in starvation(runs) {
        let wait = done.record.judged.longest_wait;
        let most = allowed(done).unwrap_or_default();
        let (least, holders) = (done.record.judged.least, done.record.judged.holders);
        // Co-running with a serial program that never ends none is senior: not all are parallel.
        let turns = done.run.cell.with_serial || holders == done.run.cell.parallel as usize;
        let what = match done.run.cell.with_serial {
            true => "no thread waits for a turn too long, and each gets on in any 5 s",
            false => "each gets its turn in time, and each gets on in any 5 s",
        };
        checks.push(Check {
            requirement: format!("{}, {:?}: {what}", done.run.cell, done.run.cell.time),
            measured: Some(Estimate::exact(wait)),
            reference: format!(
                "longest wait (s), allowed: {most:.2}; {holders} of {} had turns; least CPU time in 5 s: \
                 {:.3} s",
                done.run.cell.parallel,
                least.unwrap_or_default()
            ),
            verdict: match least {
                None => Verdict::Undecided,
                Some(least) => Verdict::of(turns && wait <= most && least > 0.0),
            },
        });
    }
    checks
}
