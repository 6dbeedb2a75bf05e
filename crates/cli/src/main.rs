//! The symbiont command.
#![deny(clippy::print_stdout)]

#[macro_use]
mod out;

#[cfg(feature = "research")]
mod analyze;
mod args;
#[cfg(feature = "research")]
mod bench;
#[cfg(feature = "research")]
mod check_sim;
mod doctor;
#[cfg(feature = "research")]
mod generate;
mod knowledge;
#[cfg(feature = "research")]
mod machines;
mod manage;
mod policies;
#[cfg(feature = "research")]
mod prepare;
#[cfg(feature = "research")]
mod profile;
mod report;
mod restore;
mod run;
#[cfg(feature = "research")]
mod simulate;
mod stat;
#[cfg(feature = "research")]
mod symbiosis;
#[cfg(feature = "research")]
mod topdown;
#[cfg(feature = "research")]
mod traces;
#[cfg(feature = "research")]
mod train;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[cfg(feature = "research")]
use args::{Analyze, Generate, Research};
use args::{Cli, Command, SlowCpuArgs};

fn main() -> ExitCode {
    // `run` ends as its program ends, so its own errors need a code that
    // programs do not use; also when the command line cannot be read.
    let runs = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    let misused = if runs { run::MISUSED } else { 1 };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Where standard error is closed there is nobody to tell.
            let _ = error.print();
            return match error.exit_code() {
                0 => ExitCode::SUCCESS,
                _ if runs => ExitCode::from(misused),
                code => ExitCode::from(u8::try_from(code).unwrap_or(2)),
            };
        }
    };
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("symbiont: {}", words(&error));
            ExitCode::from(misused)
        }
    }
}

/// An error and its causes, each of them once: many of ours already say why.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Stat(args) => stat::stat(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Policies(args) => policies::list(args.json),
        Command::Restore(args) => restore::run(&args),
        #[cfg(feature = "research")]
        Command::Research(command) => research(command),
        Command::SlowCpu(args) => slow_cpu(&args),
    }
}

#[cfg(feature = "research")]
fn research(command: Research) -> anyhow::Result<()> {
    match command {
        Research::Analyze(Analyze::Phases(args)) => analyze::phases(&args),
        Research::Analyze(Analyze::Topdown(args)) => topdown::topdown(&args),
        Research::Profile(args) => profile::profile(&args),
        Research::Simulate(args) => simulate::run(&args),
        Research::CheckSim(args) => check_sim::run(&args),
        Research::Machines(args) => machines::machines(&args),
        Research::Workloads(args) => machines::workloads(&args),
        Research::Bench(command) => bench::bench(command),
        Research::Train(args) => train::run(&args),
        Research::Nop => {
            symbiont_experiment::training::real::nop();
            Ok(())
        }
        Research::Generate(Generate::Man { folder }) => generate::man(&folder),
        Research::Generate(Generate::Completions { folder }) => generate::completions(&folder),
    }
}

fn slow_cpu(args: &SlowCpuArgs) -> anyhow::Result<()> {
    symbiont_linux::slow::run(args.slow, args.limit, args.parent, || {
        // Nobody need listen.
        let _ = writeln!(std::io::stdout(), "{}", symbiont_linux::slow::BEGUN);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::words;

    #[test]
    fn each_cause_of_an_error_is_told_once() {
        let repeats = anyhow::Error::new(io::Error::other("no")).context("cannot open x: no");
        assert_eq!(words(&repeats.context("outer")), "outer: cannot open x: no");
    }
}
