//! `symbiont-synth`: see `--help`.

mod args;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use anyhow::Context;
use clap::Parser;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use symbiont_linux::kernels::KERNELS;
use symbiont_synth::{MeanPhase, RunOptions, Until, calibrate, churn, kernel, many, requests, run};

use crate::args::{Calibrate, Churn, Cli, Command, KernelOf, Phases, Requests, Threads};

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    match cli.command {
        None => phases(&cli.phases, &stop),
        Some(Command::Calibrate(options)) => calibrate(&options),
        Some(Command::Threads(options)) => threads(&options, &stop),
        Some(Command::Churn(options)) => churn(&options, &stop),
        Some(Command::Requests(options)) => requests(&options, &stop),
        Some(Command::Kernel(options)) => kernel(&options, &stop),
    }
}

fn phases(args: &Phases, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let threads = match args.threads {
        Some(threads) => threads.get(),
        None => available_parallelism().map_or(1, |n| n.get().try_into().unwrap_or(u32::MAX)),
    };
    let options = RunOptions {
        ratio: args.ratio,
        threads,
        mean: match args.iterations_per_phase {
            Some(count) => MeanPhase::Iterations(count),
            None => MeanPhase::Time(args.phase, args.rate),
        },
        until: args.until_work.map_or(Until::Elapsed(args.duration), Until::Iterations),
        start_at: args.start_at,
        seed: args.seed,
        log: args.log,
    };
    let report = run(&options, stop)?;
    print(&report, args.json, report.to_string())
}

fn calibrate(args: &Calibrate) -> anyhow::Result<()> {
    let rate = calibrate::measure();
    let text = format!(
        "{:.0} iterations/s (fastest of {}; the median reached {:.0} % of it)\n",
        rate.iterations_per_s,
        rate.samples,
        100.0 * rate.median_share
    );
    print(&rate, args.json, text)
}

fn threads(args: &Threads, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let options = many::ThreadsOptions {
        count: args.count,
        busy: args.busy,
        wakes_per_s: args.wakes,
        work: args.work,
        duration: args.duration,
        seed: args.seed,
    };
    let report = many::run(&options, stop)?;
    let text = format!(
        "{} threads, {} of them busy, {:.3} s: {} wakes, {} busy iterations\n",
        report.count, report.busy, report.elapsed_s, report.wakes, report.busy_iterations
    );
    print(&report, args.json, text)
}

fn churn(args: &Churn, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let options =
        churn::ChurnOptions { per_s: args.rate, work: args.work, duration: args.duration };
    let report = churn::run(&options, stop)?;
    let text = format!("{} threads in {:.3} s\n", report.threads, report.elapsed_s);
    print(&report, args.json, text)
}

fn requests(args: &Requests, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let options = requests::RequestOptions {
        per_s: args.rate,
        work: args.work,
        warm_up: args.warm_up,
        duration: args.duration,
        seed: args.seed,
    };
    let report = requests::run(&options, stop);
    let text = format!(
        "{} requests: median {:.0} us, 99 % {:.0} us, 99.9 % {:.0} us, longest {:.0} us\n",
        report.requests, report.median_us, report.p99_us, report.p999_us, report.max_us
    );
    print(&report, args.json, text)
}

fn kernel(args: &KernelOf, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let Some(chosen) = args.kernel else {
        let names: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        return print(&names, args.json, names.join("\n") + "\n");
    };
    let report = match args.duration {
        None => kernel::rounds(chosen, args.rounds)?,
        Some(duration) => kernel::run(chosen, duration, args.start_at, stop)?,
    };
    print(&report, args.json, report.to_string())
}

fn print(report: &impl Serialize, json: bool, text: String) -> anyhow::Result<()> {
    let text = if json { serde_json::to_string(report)? + "\n" } else { text };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the report")
}
