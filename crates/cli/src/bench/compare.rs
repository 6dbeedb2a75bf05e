//! `symbiont bench COMMAND…`: a user's own programs under several policies.

use std::process::{Command, Stdio};

use symbiont_campaign::Repeats;
use symbiont_experiments_host::bench::{self, BASELINE, BenchOptions};
use symbiont_report::Report;

use crate::bench::args::Compare;
use crate::bench::progress::Terminal;
use crate::client;

/// Fewest rounds: intervals of fewer are too wide to decide anything.
const LEAST: u32 = 4;

/// Compares the policies.
pub fn run(args: &Compare, progress: &mut Terminal) -> anyhow::Result<Report> {
    if let Some(socket) = client::running(&args.state)? {
        anyhow::bail!(
            "a daemon manages this machine's programs ({}), so that no other policy can be compared; \
             end it first",
            socket.display()
        );
    }
    args.commands.iter().try_for_each(|command| check(command))?;
    let mut contenders = vec![BASELINE.to_owned()];
    for policy in &args.policies {
        let policy = policy.split_whitespace().collect::<Vec<_>>().join(" ");
        anyhow::ensure!(
            !policy.is_empty() && !policy.starts_with('-'),
            "--policy '{policy}' does not begin with the name of a policy (see `symbiont policies`)"
        );
        if !contenders.contains(&policy) {
            contenders.push(policy);
        }
    }
    let options = BenchOptions {
        symbiont: std::env::current_exe()?,
        state_dir: args.state.given()?,
        commands: args.commands.clone(),
        contenders,
        repeats: Repeats {
            least: LEAST.min(args.rounds),
            most: args.rounds,
            narrow: args.narrow / 100.0,
        },
        limit: args.limit,
        seed: args.seed,
        output: args.output.clone(),
    };
    Ok(bench::bench(&options, progress)?)
}

/// A word alone that the shell does not know was meant as an experiment, or is mistyped.
fn check(command: &str) -> anyhow::Result<()> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if command.is_empty() || !command.chars().all(is_word) {
        return Ok(());
    }
    let mut known = Command::new("sh");
    known.args(["-c", "command -v -- \"$1\"", "sh", command]).stdin(Stdio::null());
    let found = known.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_unknown = found.is_ok_and(|status| !status.success());
    anyhow::ensure!(
        !is_unknown,
        "there is neither an experiment nor a program '{command}'; experiments are pairs, phases, latency and \
         openmp (see symbiont bench --help)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_neither_experiment_nor_program_is_refused() {
        let refused = check("seniority").unwrap_err().to_string();
        assert!(refused.contains("neither an experiment nor a program 'seniority'"), "{refused}");
        for fine in ["true", "sh", "xz -9 a", "./missing", "X=1 true", ""] {
            assert!(check(fine).is_ok(), "{fine}");
        }
    }
}
