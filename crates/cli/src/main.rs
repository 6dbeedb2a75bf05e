//! The symbiont command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod out;

mod advise;
mod args;
mod attach;
mod batch;
#[cfg(feature = "bench")]
mod bench;
mod client;
mod confines;
mod daemon;
mod described;
mod doctor;
mod explain;
mod knowledge;
mod policies;
mod processes;
mod prospects;
mod quiet;
mod replay;
mod report;
#[cfg(feature = "research")]
mod research;
#[cfg(not(feature = "research"))]
#[path = "without_research.rs"]
mod research;
mod restore;
mod run;
mod signals;
mod slurm;
mod stat;
mod state_files;
mod status;
mod top;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use args::{Cli, Command, SlowCpuArgs};

fn main() -> ExitCode {
    // `run` ends as its program ends, so its own errors need a code that
    // programs do not use; also when the command line cannot be read.
    let runs = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    let misused = if runs { run::MISUSED } else { 1 };
    let cli = match Cli::try_parse_from(words_of_call(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            let error = without_hidden(error);
            // Where standard error is closed no report is possible.
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
            note!("symbiont: {}", words(&error));
            ExitCode::from(misused)
        }
    }
}

/// An error whose tip names no command that `--help` does not show.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::Strings(similar)) = error.remove(ContextKind::SuggestedSubcommand)
    else {
        return error;
    };
    let cli = Cli::command();
    let is_shown =
        |name: &String| cli.find_subcommand(name).is_none_or(|command| !command.is_hide_set());
    let similar: Vec<String> = similar.into_iter().filter(is_shown).collect();
    if !similar.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(similar));
    }
    error
}

/// The command line; a link called `symbiontd` stands for `symbiont daemon`.
fn words_of_call(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = given.collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "symbiontd") {
        words.insert(1, "daemon".into());
    }
    words
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
        Command::Batch(args) => batch::batch(&args),
        Command::Slurm(args) => slurm::slurm(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Detach(args) => attach::detach(&args),
        Command::Status(args) => status::status(&args),
        Command::Why(args) => status::why(&args),
        Command::Top(args) => top::top(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Daemon(args) => daemon::run(&args),
        Command::Reload(args) => attach::reload(&args),
        Command::Stat(args) => stat::stat(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Policies(args) => policies::list(args.name.as_deref(), args.json),
        Command::Restore(args) => restore::run(&args),
        #[cfg(feature = "bench")]
        Command::Bench(args) => bench::bench(args),
        #[cfg(feature = "research")]
        Command::Research(command) => research::dispatch(command),
        Command::SlowCpu(args) => slow_cpu(&args),
        Command::KeepJob(args) => batch::keep(&args),
    }
}

fn slow_cpu(args: &SlowCpuArgs) -> anyhow::Result<()> {
    symbiont_linux::slow::run(args.slow, args.limit, args.parent, || {
        // No process need listen.
        let _ = writeln!(std::io::stdout(), "{}", symbiont_linux::slow::BEGUN);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use clap::Parser;

    use super::{without_hidden, words, words_of_call};
    use crate::args::Cli;

    #[test]
    fn a_tip_names_no_hidden_command() {
        let said = |word: &str| {
            without_hidden(Cli::try_parse_from(["symbiont", word]).unwrap_err()).to_string()
        };
        for word in ["slow", "slow-cp", "keepjob", "keep-jobs"] {
            let said = said(word);
            assert!(!said.contains("slow-cpu") && !said.contains("keep-job'"), "{said}");
        }
        assert!(said("statu").contains("'status'"));
    }

    #[test]
    fn a_link_called_symbiontd_is_the_daemon() {
        let words = |list: &[&str]| words_of_call(list.iter().map(Into::into));
        assert_eq!(words(&["/usr/bin/symbiontd", "--policy", "stay"])[1], "daemon");
        assert_eq!(words(&["symbiont", "status"]).len(), 2);
    }

    #[test]
    fn each_cause_of_an_error_is_reported_once() {
        let repeats = anyhow::Error::new(io::Error::other("no")).context("cannot open x: no");
        assert_eq!(words(&repeats.context("outer")), "outer: cannot open x: no");
    }
}
