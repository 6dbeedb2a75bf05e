//! `symbiont bench COMMAND…`: a user's own programs under several policies.

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
