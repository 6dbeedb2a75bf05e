//! `symbiont simulate --pairs`: a policy on a machine of measured pairs.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::Serialize;
use symbiont_policy::Settings;
use symbiont_report::stats::Estimate;
use symbiont_simulated::Shown;
use symbiont_simulated::measured_pairs::{Events, Rival, Trial, candidates};

use crate::args::{OnPairs, Simulate};
use crate::reproduce::pairs;

/// More threads take too long.
const MOST_THREADS: usize = 1024;

/// What is reported.
#[derive(Serialize)]
struct Report {
    pairs: String,
    programs: Vec<String>,
    policy: &'static str,
    threads: usize,
    mixes: u32,
    /// Of what the best pairing gains over all pairings.
    captured: Vec<Captured>,
}

#[derive(Serialize)]
struct Captured {
    until_s: f64,
    share: Estimate,
}

/// Runs the mixes, and prints what was captured.
pub fn run(args: &Simulate, file: &Path) -> anyhow::Result<()> {
    let OnPairs { threads, at, phases, arrivals, drift, noise, .. } = &args.measured;
    let (_, matrix) = pairs(file)?;
    ensure!(
        (2..=MOST_THREADS).contains(threads) && threads % 2 == 0,
        "--threads: an even number from 2 to {MOST_THREADS}, two for each core"
    );
    let mut until = at.clone();
    until.sort_unstable();
    let policy = symbiont_policy::find(&args.policy)?;
    let values = args.parameters.values(policy)?;
    let runs: Vec<&str> = candidates(&matrix).map(|entry| entry.name).collect();
    ensure!(
        runs.contains(&policy.name),
        "policy '{}' needs more than instructions and cycles, which is all that measured pairs give; these do not: {}",
        policy.name,
        runs.join(", ")
    );
    let rival = Rival {
        name: policy.name.to_owned(),
        policy,
        settings: Settings { values, ..Settings::default() },
        shown: Shown::Own,
    };
    let (phases, arrivals) = (*phases, *arrivals);
    let trial = Trial {
        matrix: &matrix,
        interacts: true,
        threads: *threads,
        events: Events { noise: *noise, phases, arrivals, drift: *drift, ..Events::default() },
        mixes: args.repeats,
        until: until.clone(),
        seed: args.seed,
    };
    let captured = trial.captured(&rival).context("measured pairs")?;
    let captured = until.iter().zip(captured);
    let captured = captured.map(|(until, share)| Captured { until_s: until.as_secs_f64(), share });
    let report = Report {
        pairs: file.display().to_string(),
        programs: matrix.programs.clone(),
        policy: policy.name,
        threads: *threads,
        mixes: args.repeats,
        captured: captured.collect(),
    };
    if args.json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        show(&report);
    }
    Ok(())
}

fn show(report: &Report) {
    let Report { pairs, programs, policy, threads, mixes, captured } = report;
    say!(
        "simulated: threads run at the slowdowns of {pairs}, which were measured or made elsewhere"
    );
    say!("{} programs: {}", programs.len(), programs.join(", "));
    say!("{policy}, {threads} threads on {} cores, {mixes} mixes", threads / 2);
    say!("\nshare captured of what the best pairing gains over all pairings on average:");
    for Captured { until_s, share } in captured {
        let range = share.low().zip(share.high());
        let range = range.map_or(String::new(), |(low, high)| format!(" [{low:.2}, {high:.2}]"));
        say!("  until {until_s:>5} s  {:.2}{range}", share.value);
    }
}
