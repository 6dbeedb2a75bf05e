//! `symbiont bench pairs`: how programs slow each other down on a core.

use std::time::Instant;

use symbiont_campaign::Progress;
use symbiont_experiments_host::harness::Programs;
use symbiont_experiments_host::pairs::names::{of_user, own};
use symbiont_experiments_host::pairs::{self, PairsOptions};

use super::show;
use crate::bench::args::BenchPairs;
use crate::bench::progress::Terminal;

/// Measures, and says where the matrix is.
pub fn run(args: &BenchPairs, mut progress: Terminal, begin: Instant) -> anyhow::Result<()> {
    let measured = match args.commands.as_slice() {
        [] => own(&args.kernels)?,
        commands => of_user(commands, &args.names)?,
    };
    let options = PairsOptions {
        programs: Programs::next_to_this_one()?,
        measured,
        cpus: args.cpus.clone(),
        limit: args.limit,
        output: args.output.clone(),
        seed: args.seed,
    };
    let report = pairs::run(&options, &mut progress);
    progress.end();
    show(&report?, &args.output, args.json, begin.elapsed())?;
    let is_stopped = progress.cancelled();
    if !args.json {
        let file = args.output.join("pairs.csv");
        say!("Slowdowns: {}", file.canonicalize().unwrap_or(file).display());
    }
    anyhow::ensure!(
        !is_stopped,
        "it was stopped before its end: the same command goes on from there"
    );
    Ok(())
}
