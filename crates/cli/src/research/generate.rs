//! Man pages and shell completions, from the same description as `--help`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::{Generator, Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::Cli;

const DAEMON_AND_CLIENTS: [&str; 8] =
    ["daemon", "run", "attach", "detach", "status", "why", "top", "reload"];

/// Writes a man page for `symbiont` and one for each of its commands.
pub fn man(folder: &Path) -> anyhow::Result<()> {
    make(folder)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, folder)
}

/// Writes completion scripts for the shells in use on Linux.
pub fn completions(folder: &Path) -> anyhow::Result<()> {
    make(folder)?;
    let mut command = with_values(shown(&Cli::command()));
    let what = || format!("cannot write completions to {}", folder.display());
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish] {
        let mut script = Vec::new();
        generate(shell, &mut command, "symbiont", &mut script);
        let script = String::from_utf8(script).with_context(what)?;
        let path = folder.join(shell.file_name("symbiont"));
        fs::write(&path, with_pids(shell, &with_units(shell, &script))).with_context(what)?;
    }
    Ok(())
}

/// A command without those that `--help` does not show: the generators would offer them.
fn shown(command: &Command) -> Command {
    let hidden = command.get_subcommands().any(Command::is_hide_set);
    let inner: Vec<Command> =
        command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(shown).collect();
    if !hidden {
        return inner.into_iter().fold(command.clone(), |whole, one| {
            let name = one.get_name().to_owned();
            whole.mut_subcommand(name, |_| one)
        });
    }
    let bare = Command::new(command.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(inner);
    match command.get_about() {
        Some(about) => bare.about(about.clone()),
        None => bare,
    }
}

/// Has a script complete `--unit` by the units that systemd has loaded; nothing where there is no systemd.
fn with_units(shell: Shell, script: &str) -> String {
    const UNITS: &str = "systemctl list-units --plain --no-legend --no-pager 2>/dev/null";
    match shell {
        Shell::Bash => {
            let files = "--unit)\n                    COMPREPLY=($(compgen -f \"${cur}\"))";
            let units = format!(
                "--unit)\n                    COMPREPLY=($(compgen -W \"$({UNITS} | cut -d' ' -f1)\" -- \"${{cur}}\"))"
            );
            script.replace(files, &units)
        }
        Shell::Zsh => {
            let units = format!("{{compadd -- ${{${{(f)\"$({UNITS})\"}}%% *}}}}");
            let with_units = |line: &str| match line.contains("'--unit=") {
                true => line.replace(":_default'", &format!(":{units}'")),
                false => line.to_owned(),
            };
            script.lines().map(|line| with_units(line) + "\n").collect()
        }
        Shell::Fish => {
            let units = format!(" -x -a \"({UNITS} | string split -f1 ' ')\"");
            let with_units = |line: &str| match line.contains(" -l unit ") {
                true => line.strip_suffix(" -r").unwrap_or(line).to_owned() + &units,
                false => line.to_owned(),
            };
            script.lines().map(|line| with_units(line) + "\n").collect()
        }
        _ => script.to_owned(),
    }
}

/// Has a script complete numbers of processes, where it would offer files.
fn with_pids(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => ["--pid", "-p"].iter().fold(script.to_owned(), |script, option| {
            let reply = |of: &str| {
                format!("{option})\n                    COMPREPLY=($(compgen {of} \"${{cur}}\"))")
            };
            script.replace(&reply("-f"), &reply("-W \"$(cd /proc && echo [0-9]*)\" --"))
        }),
        Shell::Zsh => script.replace(":PID:_default'", ":PID:_pids'"),
        Shell::Fish => {
            let with_pids = |line: &str| match line.contains(" -l pid ") {
                true => {
                    let line = line.strip_suffix(" -r").unwrap_or(line);
                    format!("{line} -x -a \"(__fish_complete_pids)\"")
                }
                false => line.to_owned(),
            };
            script.lines().map(|line| with_pids(line) + "\n").collect()
        }
        _ => script.to_owned(),
    }
}

/// Names that shells are to complete; the commands themselves read such values by their own rules.
fn with_values(command: Command) -> Command {
    let policies = || symbiont_policy::policies().iter().map(|entry| entry.name).collect();
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| {
            let values: Vec<&'static str> = match (name.as_str(), arg.get_id().as_str()) {
                ("policies", "name") | (_, "policy" | "policies") => policies(),
                ("simulate" | "check-sim" | "train", "machine") | ("machines", "name") => {
                    symbiont_sim_fast::description::Description::builtin()
                        .iter()
                        .map(|(name, _)| *name)
                        .collect()
                }
                ("reproduce", "figures") => {
                    symbiont_reproduce::figures().map(|(_, figure)| figure.id).collect()
                }
                ("doctor", "machine") => symbiont_counters::catalogue::Catalogue::builtin()
                    .iter()
                    .map(|(name, _)| *name)
                    .collect(),
                ("batch", "class") => ["normal", "latency", "batch"].into(),
                (_, "class") => ["normal", "latency", "batch", "alone"].into(),
                _ => return arg,
            };
            arg.value_parser(PossibleValuesParser::new(values))
        })
    })
}

fn make(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        pages(inner, folder)?;
    }
    let path = folder.join(Man::new(command.clone()).get_filename());
    let written = page(command).and_then(|text| fs::write(&path, text));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The synopsis as in `--help`, with the names of values and what excludes each other; what comes
/// after the options there in sections by its own headings.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let version = concat!("Symbiont ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(version).manual("Symbiont Manual");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim);
    verbatim("SYNOPSIS", usage).to_writer(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if command.get_name() == "symbiont" {
        // What it has behind its options is the list of its commands.
        return finished(text, command);
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    for (heading, lines) in sections(&after.map(ToString::to_string).unwrap_or_default()) {
        verbatim(&heading, lines.into_iter()).to_writer(&mut text)?;
    }
    finished(text, command)
}

fn finished(mut text: Vec<u8>, command: &Command) -> std::io::Result<Vec<u8>> {
    let mut last = Roff::new();
    last.control("SH", ["SEE ALSO"]).text([roman(see_also(command.get_name()))]);
    last.to_writer(&mut text)?;
    Ok(text)
}

/// The pages that a command's page refers to: for the daemon and its clients, each other.
fn see_also(command: &str) -> String {
    let first = if command == "symbiont" { "symbiont-doctor(1)" } else { "symbiont(1)" };
    let mut pages = vec![first.to_owned()];
    if DAEMON_AND_CLIENTS.contains(&command) {
        let others = DAEMON_AND_CLIENTS.iter().filter(|name| **name != command);
        pages.extend(others.map(|name| format!("symbiont-{name}(1)")));
    }
    pages.join(", ")
}

/// A section whose lines stay as they are.
fn verbatim<'a>(heading: &str, lines: impl Iterator<Item = &'a str>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]).control("nf", []);
    for line in lines {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}

/// Lines by the headings that they stand below: lines that end with a colon.
fn sections(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut sections: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let heading = line.strip_suffix(':').filter(|heading| !heading.starts_with(' '));
        match (heading, sections.last_mut()) {
            (Some(heading), _) => sections.push((heading.to_uppercase(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line.strip_prefix("  ").unwrap_or(line)),
            (None, None) => sections.push(("NOTES".to_owned(), vec![line])),
        }
    }
    for (_, lines) in &mut sections {
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_divided_by_its_headings() {
        let text = "One: two\n  three\n\nExamples:\n  symbiont\n\nFiles:\n  /etc\n";
        let expected = [
            ("NOTES", vec!["One: two", "three"]),
            ("EXAMPLES", vec!["symbiont"]),
            ("FILES", vec!["/etc"]),
        ];
        assert_eq!(sections(text), expected.map(|(heading, lines)| (heading.to_owned(), lines)));
    }

    #[test]
    fn shells_complete_names() {
        let folder = tempfile::tempdir().unwrap();
        completions(folder.path()).unwrap();
        let bash = fs::read_to_string(folder.path().join("symbiont.bash")).unwrap();
        for name in ["never-twice", "xeon-e5-2620v4", "morad-fig7", "latency"] {
            assert!(bash.contains(name), "{name}");
        }
    }

    #[test]
    fn shells_complete_units_and_no_hidden_command() {
        let folder = tempfile::tempdir().unwrap();
        completions(folder.path()).unwrap();
        for file in ["symbiont.bash", "_symbiont", "symbiont.fish", "symbiont.elv"] {
            let script = fs::read_to_string(folder.path().join(file)).unwrap();
            for hidden in ["keep-job", "subcmd__slow"] {
                assert!(!script.contains(hidden), "{file} offers {hidden}");
            }
            // Of attach, detach, stat, top and advise, long and short.
            let pids = match file {
                "symbiont.bash" => script.matches("cd /proc && echo [0-9]*").count(),
                "_symbiont" => script.matches(":PID:_pids'").count(),
                "symbiont.fish" => 2 * script.matches("__fish_complete_pids").count(),
                _ => 10,
            };
            assert_eq!(pids, 10, "{file}");
            let units = script.matches("systemctl list-units").count();
            // Of attach and detach; elvish runs nothing.
            assert_eq!(units, if file == "symbiont.elv" { 0 } else { 2 }, "{file}");
        }
    }

    #[test]
    fn a_page_has_the_usage_and_sections_of_the_help() {
        let mut command = Cli::command();
        command.build();
        let attach = command.find_subcommand("attach").unwrap();
        let text = String::from_utf8(page(attach).unwrap()).unwrap();
        let unescaped = text.replace("\\-", "-");
        let usage =
            "<--pid <PID>|--cgroup <GLOB>|--unit <NAME>|--pod <NAMESPACE/GLOB>|--container <GLOB>>";
        for part in [usage, "EXAMPLES", "symbiont-detach(1)"] {
            assert!(unescaped.contains(part), "{part} is missing in {text}");
        }
        assert!(!text.contains(".SH EXTRA"), "{text}");
    }
}
