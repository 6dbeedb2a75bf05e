//! Shares and means, for reports.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::ProgramId;

use super::Summary;
use super::accounts::{Slowdown, Sums};
use super::reasons::Reasons;

/// The summary of a run's programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SummaryReport {
    /// Hardware threads of the widest core. Where it is 1, threads that share a core take turns.
    pub hardware_threads_per_core: usize,
    /// Each program, in the order of enrolment.
    pub programs: Vec<ProgramSummary>,
    /// Some threads: those that were there at last, and of the others the ones that ran longest.
    pub threads: Vec<ThreadSummary>,
    /// Threads that are not in that list.
    pub threads_not_listed: u64,
}

/// The summary of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramSummary {
    /// Its number.
    #[serde(default)]
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Threads that were seen of it.
    pub threads: u64,
    /// Threads of it that lived at once, at most.
    #[serde(default)]
    pub most_threads: u64,
    /// CPU time that was seen of them, in seconds.
    pub run_time_s: f64,
    /// Time for which they were ready and did not run, in seconds.
    #[serde(default)]
    pub wait_time_s: f64,
    /// Where it ran, the largest share first.
    pub cpus: Vec<CpuShare>,
    /// Its co-runners, by program.
    pub co_runners: CoRunners,
    /// Why it was placed so, the most frequent first.
    pub reasons: Vec<ReasonCount>,
    /// Decisions for other reasons than these.
    pub other_reasons: u64,
    /// The last reason in full.
    pub last_reason: Option<String>,
    /// The predicted slowdown of its threads; none where nothing was predicted.
    pub predicted_slowdown: Option<PredictedSlowdown>,
}

/// The summary of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// Process number.
    pub process: u32,
    /// Thread number.
    pub thread: u32,
    /// The name of its program.
    pub program: String,
    /// CPU time that was seen of it, in seconds.
    pub run_time_s: f64,
    /// Where it ran, the largest share first.
    pub cpus: Vec<CpuShare>,
    /// Its co-runners, by program.
    pub co_runners: CoRunners,
    /// The last reason in full.
    pub last_reason: Option<String>,
    /// Its predicted slowdown; none where nothing was predicted.
    pub predicted_slowdown: Option<PredictedSlowdown>,
}

/// A CPU's share of a run time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShare {
    /// The CPU.
    pub cpu: u32,
    /// Its core, where the topology has it.
    pub core: Option<u32>,
    /// 0 to 1.
    pub share: f64,
}

/// Programs on the same cores.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoRunners {
    /// Thread quanta in which it is known where the thread ran; the shares are of these.
    pub thread_quanta: u64,
    /// Share without a co-runner.
    pub alone: f64,
    /// Shares with a co-runner of a program, the largest first. There may be several at once.
    pub with: Vec<CoRunner>,
}

/// A program on the same core.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoRunner {
    /// Its number.
    #[serde(default)]
    pub number: u32,
    /// Its name; it may be the program itself, with another thread.
    pub program: String,
    /// 0 to 1.
    pub share: f64,
}

/// Reasons that differ in figures alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason, with `#` for figures.
    pub pattern: String,
    /// Decisions: one for each thread in each quantum.
    pub decisions: u64,
    /// Share of all decisions for the program, 0 to 1.
    pub share: f64,
    /// The most recent one, with its figures.
    pub last: String,
}

/// Predicted slowdowns: time co-running / time alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedSlowdown {
    /// Predictions: one for each thread in each quantum.
    pub predictions: u64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

pub(super) fn report(summary: &Summary) -> SummaryReport {
    let program = |(id, account): (&ProgramId, &super::ProgramAccount)| ProgramSummary {
        number: id.0,
        name: account.name.clone(),
        threads: account.threads,
        most_threads: account.most_threads,
        run_time_s: account.sums.run_time.as_secs_f64(),
        wait_time_s: account.wait_time.as_secs_f64(),
        cpus: cpus(summary, &account.sums),
        co_runners: co_runners(summary, &account.sums),
        reasons: reasons(&account.reasons),
        other_reasons: account.reasons.others,
        last_reason: text(&account.reasons.last),
        predicted_slowdown: slowdown(&account.sums.slowdown),
    };
    let thread = |(key, account): (&super::ThreadKey, &super::ThreadAccount)| ThreadSummary {
        process: key.0,
        thread: key.1,
        program: name(summary, account.program),
        run_time_s: account.sums.run_time.as_secs_f64(),
        cpus: cpus(summary, &account.sums),
        co_runners: co_runners(summary, &account.sums),
        last_reason: text(&account.reason),
        predicted_slowdown: slowdown(&account.sums.slowdown),
    };
    let seen: u64 = summary.programs.values().map(|program| program.threads).sum();
    SummaryReport {
        hardware_threads_per_core: summary.smt_width,
        programs: summary.programs.iter().map(program).collect(),
        threads: summary.threads.iter().map(thread).collect(),
        threads_not_listed: seen.saturating_sub(summary.threads.len() as u64),
    }
}

fn name(summary: &Summary, program: ProgramId) -> String {
    summary.programs.get(&program).map_or_else(String::new, |account| account.name.clone())
}

fn text(reason: &str) -> Option<String> {
    (!reason.is_empty()).then(|| reason.to_owned())
}

fn cpus(summary: &Summary, sums: &Sums) -> Vec<CpuShare> {
    let whole: Duration = sums.cpus.values().sum();
    let share = |(cpu, time): (&symbiont_topology::PuId, &Duration)| CpuShare {
        cpu: cpu.0,
        core: summary.cores.get(cpu).map(|core| core.0),
        share: time.as_secs_f64() / whole.as_secs_f64(),
    };
    let mut shares: Vec<_> = sums.cpus.iter().map(share).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

fn co_runners(summary: &Summary, sums: &Sums) -> CoRunners {
    let share = |count: u64| ratio(count, sums.thread_quanta);
    let co_runner = |(program, count): (&ProgramId, &u64)| CoRunner {
        number: program.0,
        program: name(summary, *program),
        share: share(*count),
    };
    let mut with: Vec<_> = sums.with.iter().map(co_runner).collect();
    with.sort_by(|a, b| b.share.total_cmp(&a.share));
    CoRunners { thread_quanta: sums.thread_quanta, alone: share(sums.alone), with }
}

fn reasons(reasons: &Reasons) -> Vec<ReasonCount> {
    let all = reasons.patterns.values().map(|pattern| pattern.count).sum::<u64>() + reasons.others;
    let mut counts: Vec<_> = reasons
        .patterns
        .iter()
        .map(|(pattern, found)| ReasonCount {
            pattern: pattern.clone(),
            decisions: found.count,
            share: ratio(found.count, all),
            last: found.last.clone(),
        })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.decisions));
    counts
}

fn slowdown(sums: &Slowdown) -> Option<PredictedSlowdown> {
    #[expect(clippy::cast_precision_loss, reason = "a count of predictions")]
    (sums.count > 0).then(|| PredictedSlowdown {
        predictions: sums.count,
        mean: sums.sum / sums.count as f64,
        min: sums.least,
        max: sums.most,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a share of counts")]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
