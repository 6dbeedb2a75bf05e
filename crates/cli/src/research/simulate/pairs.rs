//! `symbiont simulate --pairs`: a policy on a machine of measured pairs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use symbiont_experiments_sim::ShownMeasurements;
use symbiont_experiments_sim::measured_pairs::{Events, Matrix, Rival, Trial, candidates};
use symbiont_policy::Settings;
use symbiont_report::stats::Estimate;
use symbiont_report::{Column, Table};
use symbiont_topology::counted;

use crate::research::args::{OnPairs, Simulate};
use crate::research::reproduce::measured_pairs;

/// More threads take too long.
const MOST_THREADS: usize = 1024;
/// What is simulated where nothing else is said: threads, the share by which measurements err, and until when.
const THREADS: usize = 16;
const NOISE: f64 = 0.03;
const UNTIL: [Duration; 3] =
    [Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(120)];

/// What is reported.
#[derive(Serialize)]
struct Report {
    pairs: String,
    programs: Vec<String>,
    /// Of which the slowdown next to themselves was not measured, so that one is made of the others.
    not_next_to_themselves: Vec<String>,
    policy: &'static str,
    threads: usize,
    mixes: u32,
    seed: u64,
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
    let measured = measured_pairs(file)?;
    let unmeasured = measured.not_next_to_themselves().map(str::to_owned).collect();
    let slowdowns = measured.slowdowns();
    let matrix = Matrix { programs: measured.programs, slowdowns };
    let threads = threads.unwrap_or(THREADS);
    ensure!(
        (2..=MOST_THREADS).contains(&threads) && threads % 2 == 0,
        "--threads: an even number from 2 to {MOST_THREADS}, two for each core"
    );
    let mut until = if at.is_empty() { UNTIL.to_vec() } else { at.clone() };
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
        shown: ShownMeasurements::Own,
    };
    let (phases, arrivals) = (*phases, *arrivals);
    let (noise, drift) = (noise.unwrap_or(NOISE), drift.unwrap_or_default());
    let trial = Trial {
        matrix: &matrix,
        interacts: true,
        threads,
        events: Events { noise, phases, arrivals, drift, ..Events::default() },
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
        not_next_to_themselves: unmeasured,
        policy: policy.name,
        threads,
        mixes: args.repeats,
        seed: args.seed,
        captured: captured.collect(),
    };
    if args.json {
        say!("{}", crate::out::json(&report)?);
    } else if args.csv {
        say!("{}", table(&report).csv().trim_end());
    } else {
        show(&report);
    }
    Ok(())
}

/// A row for each time, with what distinguishes the run.
fn table(report: &Report) -> Table {
    let columns = vec![
        Column::text("pairs"),
        Column::text("policy"),
        Column::number("threads"),
        Column::number("mixes"),
        Column::number("seed"),
        Column::number("until_s"),
        Column::number("captured"),
    ];
    let mut table = Table::new("captured", "Share captured, simulated", columns);
    for Captured { until_s, share } in &report.captured {
        table.row(vec![
            report.pairs.as_str().into(),
            report.policy.into(),
            (report.threads as u64).into(),
            u64::from(report.mixes).into(),
            report.seed.into(),
            (*until_s).into(),
            (*share).into(),
        ]);
    }
    table
}

fn show(report: &Report) {
    let Report { pairs, programs, policy, threads, mixes, captured, .. } = report;
    say!(
        "simulated: threads run at the slowdowns of {pairs}, which were measured or made elsewhere"
    );
    say!("{}: {}", counted(programs.len(), "program"), programs.join(", "));
    if !report.not_next_to_themselves.is_empty() {
        say!(
            "not measured next to themselves, so that what they suffer plus what they inflict on average, less \
             the mean of all, stands for it: {}",
            report.not_next_to_themselves.join(", ")
        );
    }
    let cores = counted(threads / 2, "core");
    say!("{policy}, {} on {cores}, {}", counted(threads, "thread"), counted(mixes, "mix"));
    let counted = captured.first().map_or(0, |first| first.share.n);
    if counted < *mixes as usize {
        let alike = *mixes as usize - counted;
        say!("{alike} of them do not count: their pairings are alike");
    }
    say!("\nshare captured of what the best pairing gains over all pairings on average:");
    for Captured { until_s, share } in captured {
        let range = share.low().zip(share.high());
        let range = range.map_or(String::new(), |(low, high)| format!(" [{low:.2}, {high:.2}]"));
        say!("  until {until_s:>5} s  {:.2}{range}", share.value);
    }
}
