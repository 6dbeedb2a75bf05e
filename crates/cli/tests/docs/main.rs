//! Holds the documentation against the program: chapters exist, and so do the commands and options in examples; what
//! README.md has a newcomer type first works.
#![cfg(feature = "research")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

mod first_run;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Files of the folder docs that end in `.md`.
fn chapters() -> BTreeSet<String> {
    let files = fs::read_dir(root().join("docs")).unwrap().map(Result::unwrap);
    let names = files.map(|file| file.file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
}

/// Targets of links in a text.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Command lines in blocks of shell code, and in backquotes.
fn command_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut block: Option<bool> = None;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            block = if block.is_some() { None } else { Some(language == "sh") };
        } else if block == Some(true) {
            lines.push(line.split(" #").next().unwrap().to_owned());
        } else if block.is_none() {
            lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    lines
}

/// The words after `symbiont`, as far as they are meant for it, in each call of it on a line.
fn calls(line: &str) -> Vec<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ends = |word: &&&str| !["--", "&&", "||", "|", "&", ";", ">"].contains(word);
    let starts = (0..words.len()).filter(|&at| words[at] == "symbiont");
    let starts = starts.filter(|&at| at == 0 || !words[at - 1].starts_with('-'));
    starts.map(|at| words[at + 1..].iter().take_while(ends).copied().collect()).collect()
}

/// What the lists of commands are headed by.
const HEADINGS: [&str; 2] = ["Commands:", "Experiments:"];

/// Asks commands for their help, once each.
#[derive(Default)]
struct Help(BTreeMap<Vec<String>, String>);

impl Help {
    fn of(&mut self, path: &[&str]) -> &str {
        let key: Vec<String> = path.iter().map(|&word| word.to_owned()).collect();
        self.0.entry(key).or_insert_with(|| {
            let mut symbiont = Command::new(env!("CARGO_BIN_EXE_symbiont"));
            let output = symbiont.args(path).arg("--help").output().unwrap();
            assert!(output.status.success(), "symbiont {} --help", path.join(" "));
            String::from_utf8(output.stdout).unwrap()
        })
    }

    /// The commands that a command has.
    fn commands(&mut self, path: &[&str]) -> BTreeSet<String> {
        let is_root = path.is_empty();
        let is_first =
            |line: &&str| HEADINGS.contains(line) || is_root && line.starts_with("Usage:");
        let lines = self.of(path).lines().skip_while(move |line| !is_first(line)).skip(1);
        // Symbiont's own are in several groups.
        let is_last = |line: &&str| if is_root { *line == "Options:" } else { line.is_empty() };
        let names = lines.take_while(move |line| !is_last(line)).filter_map(|line| {
            let name = line.strip_prefix("  ")?.split(' ').next()?;
            (!name.is_empty()).then(|| name.to_owned())
        });
        names.collect()
    }

    fn has_option(&mut self, path: &[&str], option: &str) -> bool {
        let mut words = self.of(path).split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.any(|word| word == option)
    }

    /// What is wrong with a call, if anything.
    fn fault(&mut self, call: &[&str]) -> Option<String> {
        let mut path = Vec::new();
        for &word in call {
            let name = word.split('=').next().unwrap();
            if name.starts_with("--") {
                // A flag of the program itself, as in `symbiont --version`.
                if !self.has_option(&path, name) {
                    return Some(format!("`symbiont {}` has no option {name}", path.join(" ")));
                }
            } else if self.commands(&path).contains(word) {
                path.push(word);
            } else if path.is_empty() && word.starts_with(|c: char| c.is_ascii_lowercase()) {
                return Some(format!("there is no `symbiont {word}`"));
            }
        }
        None
    }
}

#[test]
fn each_chapter_exists_and_is_in_the_summary() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).map(str::to_owned).collect();
    assert_eq!(listed, chapters(), "docs/SUMMARY.md on the left, the folder docs on the right");
}

#[test]
fn each_link_to_a_file_has_its_target() {
    for name in chapters() {
        let text = read(&root().join("docs").join(&name));
        // Pages of the reference are made by scripts/docs.sh.
        let elsewhere =
            |to: &&str| ["http", "#", "reference/"].iter().any(|start| to.starts_with(start));
        for target in links(&text).filter(|target| !elsewhere(target)) {
            let path = root().join("docs").join(target.split('#').next().unwrap());
            assert!(path.exists(), "docs/{name} refers to {target}");
        }
    }
}

#[test]
fn each_command_and_option_in_examples_exists() {
    let mut help = Help::default();
    let mut files: Vec<PathBuf> =
        chapters().iter().map(|name| root().join("docs").join(name)).collect();
    files.extend(["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)));
    let (mut faults, mut seen) = (Vec::new(), 0);
    for path in files {
        let text = read(&path);
        for line in command_lines(&text) {
            for call in calls(&line) {
                seen += 1;
                let fault = help.fault(&call);
                faults.extend(fault.map(|fault| format!("{}: {fault}: {line}", path.display())));
            }
        }
    }
    assert!(seen > 50, "{seen}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_wrong_example_is_noticed() {
    let text = "Say `symbiont fly`.\n```sh\nsudo symbiont run --nowhere -- x --no  # symbiont no\n\
                symbiont bench openmp --short && symbiont doctor\n```\n```text\nsymbiont no\n```\n";
    let lines = command_lines(text);
    let calls: Vec<Vec<&str>> = lines.iter().flat_map(|line| calls(line)).collect();
    let expected: [&[&str]; 4] =
        [&["fly"], &["run", "--nowhere"], &["bench", "openmp", "--short"], &["doctor"]];
    assert_eq!(calls, expected);
    let mut help = Help::default();
    let faults: Vec<bool> = calls.iter().map(|call| help.fault(call).is_some()).collect();
    assert_eq!(faults, [true, true, false, false]);
}

#[test]
fn the_readme_is_one_screen_or_two() {
    assert!(read(&root().join("README.md")).len() <= 6 * 1024);
}

#[test]
fn the_first_commands_of_the_readme_and_of_the_tour_work_in_their_order() {
    first_run::run(&(read(&root().join("README.md")) + &read(&root().join("docs/tour.md"))));
}

#[test]
fn marked_blocks_are_read_with_their_documents_and_obstacles_are_named() {
    let begin = "<!-- first run: begin -->";
    let text = "```sh\nno\n```\n<!-- first run: begin -->\n```sh\ncat <<'END'\na\nEND\nb &  # x\n```\n\
                ```text\nno\n```\n```sh\nsudo c\n```\n<!-- first run: end -->\n```sh\nno\n```\n";
    let commands = first_run::commands(text, begin);
    assert_eq!(commands, ["cat <<'END'\na\nEND", "b &  # x", "sudo c"]);
    assert_eq!(first_run::obstacle("sudo c", true), Some("it needs root"));
    let profile = "symbiont profile -- ls";
    assert!(
        first_run::obstacle(profile, false).is_some()
            && first_run::obstacle(profile, true).is_none()
    );
}
