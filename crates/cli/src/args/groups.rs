//! Commands in groups, as `symbiont --help` lists them.

use clap::Subcommand;

use super::Command;

/// Titles, and the commands below each.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Every day", &["run", "attach", "detach", "status", "top", "why", "advise", "doctor"]),
    ("The daemon of a machine", &["daemon", "reload", "restore", "policies"]),
    ("Queues of jobs", &["batch", "slurm"]),
    ("Measure and compare", &["stat", "bench", "replay"]),
    (
        "Research: simulation, models, published figures",
        &[
            "profile",
            "simulate",
            "check-sim",
            "train",
            "reproduce",
            "machines",
            "workloads",
            "analyze",
            "generate",
        ],
    ),
];

/// All commands of this build, by group.
pub fn text() -> String {
    let all = Command::augment_subcommands(clap::Command::new("symbiont"));
    let line = |name: &&str| {
        let about = all.find_subcommand(name)?.get_about()?.to_string();
        Some(format!("  {name:<9}  {about}\n"))
    };
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().filter_map(line).collect();
        (!lines.is_empty()).then(|| format!("{title}:\n{lines}"))
    };
    let groups: Vec<String> = GROUPS.iter().filter_map(group).collect();
    format!("{}\n`symbiont help COMMAND` says more of each.", groups.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let all = Command::augment_subcommands(clap::Command::new("symbiont"));
        let mut shown: Vec<&str> = all
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        grouped.retain(|name| all.find_subcommand(name).is_some());
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
