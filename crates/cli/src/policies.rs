//! `symbiont policies`: the list, and what may be set.

use std::fmt::Write;

use serde::Serialize;
use symbiont_machine::Signal;
use symbiont_policy::{CannotRun, Declaration, Entry, Kind, Settings, find, policies};

use crate::doctor::text::{hanging, wrapped};

/// Where the text behind a policy's name begins.
const NAME: usize = 18;

#[derive(Debug, Serialize)]
struct LibraryEntry {
    name: &'static str,
    summary: &'static str,
    paper: Option<&'static str>,
    quantum_ms: f64,
    needs: Vec<Signal>,
    /// Signals that it uses where a machine measures them; others may follow from the machine.
    optional: Vec<Signal>,
    /// The option that names a file which it cannot do without.
    needs_file: Option<&'static str>,
    parameters: Vec<ListedParameter>,
}

#[derive(Debug, Serialize)]
struct ListedParameter {
    name: &'static str,
    help: &'static str,
    /// A value, or words where it depends on the machine.
    default: String,
    example: String,
    /// What a value must be, in words.
    expected: String,
    #[serde(flatten)]
    kind: ListedKind,
}

/// Type and bounds; times are in milliseconds.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ListedKind {
    /// A number above 0.
    Positive,
    Share {
        least: f64,
        most: f64,
    },
    Count {
        least: usize,
        most: usize,
    },
    Duration {
        least_ms: f64,
        most_ms: f64,
    },
    Choice {
        words: &'static [&'static str],
    },
    Text {
        form: &'static str,
    },
}

/// Prints the policies, or all about one of them; or as JSON.
pub fn list(name: Option<&str>, json: bool) -> anyhow::Result<()> {
    let chosen: Vec<&Entry> = match name {
        Some(name) => vec![find(name)?],
        None => policies().iter().collect(),
    };
    if json {
        let listed: Vec<LibraryEntry> = chosen.into_iter().map(listed).collect();
        say!("{}", crate::out::json(&listed)?);
    } else if let (Some(_), [policy]) = (name, chosen.as_slice()) {
        say_all!("{}", about(&listed(policy)));
    } else {
        chosen.into_iter().for_each(|policy| say_all!("{}", line(&listed(policy))));
    }
    Ok(())
}

/// The parameters of all policies, for the help text.
pub fn all_parameters() -> String {
    let mut text = String::from("Parameters:\n");
    for policy in policies().iter().filter(|policy| !policy.parameters.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}", policy.name);
        text += &parameters(&listed(policy).parameters, 4);
    }
    text
}

fn listed(entry: &Entry) -> LibraryEntry {
    let requirements = entry.requirements();
    LibraryEntry {
        name: entry.name,
        summary: entry.summary,
        paper: entry.paper,
        quantum_ms: entry.quantum.as_secs_f64() * 1e3,
        needs: requirements.required.into_iter().collect(),
        optional: requirements.optional.into_iter().collect(),
        needs_file: match entry.check(&Settings::default(), None) {
            Err(CannotRun::Input(missing)) => Some(missing.option),
            _ => None,
        },
        parameters: entry.parameters.iter().map(|it| parameter(it.declaration())).collect(),
    }
}

fn parameter(declared: Declaration) -> ListedParameter {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    ListedParameter {
        name: declared.name,
        help: declared.help,
        expected: declared.kind.expected(),
        kind: match declared.kind {
            Kind::Positive => ListedKind::Positive,
            Kind::Share => ListedKind::Share { least: 0.0, most: 1.0 },
            Kind::Count { least, most } => ListedKind::Count { least, most },
            Kind::Duration { least, most } => {
                ListedKind::Duration { least_ms: ms(least), most_ms: ms(most) }
            }
            Kind::Choice(words) => ListedKind::Choice { words },
            Kind::Text { form, .. } => ListedKind::Text { form },
        },
        default: declared.default,
        example: declared.example,
    }
}

fn line(policy: &LibraryEntry) -> String {
    let paper = policy.paper.map(|paper| format!(" ({paper})")).unwrap_or_default();
    let file = policy.needs_file.map(|option| format!("; needs {option}")).unwrap_or_default();
    let names: Vec<&str> = policy.parameters.iter().map(|parameter| parameter.name).collect();
    let set = match names.as_slice() {
        [] => String::new(),
        names => format!("; --set {}", names.join(", ")),
    };
    hanging(policy.name, &format!("{}{paper}{file}{set}", policy.summary), NAME)
}

fn about(policy: &LibraryEntry) -> String {
    let mut text = paragraph(&format!("{}: {}", policy.name, policy.summary), 0);
    let names = |signals: &[Signal]| -> Option<String> {
        let names: Vec<String> = signals.iter().map(ToString::to_string).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let lines = [
        policy.paper.map(|paper| format!("source: {paper}")),
        Some(format!("decides every {} ms, unless --quantum says otherwise", policy.quantum_ms)),
        names(&policy.needs).map(|names| format!("needs: {names}")),
        names(&policy.optional).map(|names| format!("uses where it is measured: {names}")),
        policy.needs_file.map(|option| format!("needs a file: {option}")),
    ];
    for line in lines.into_iter().flatten() {
        text += &paragraph(&line, 0);
    }
    if policy.parameters.is_empty() {
        return text + "parameters: none\n";
    }
    text += "parameters (--set KEY=VALUE, or below [set] in the daemon's configuration):\n";
    text + &parameters(&policy.parameters, 2)
}

fn parameters(all: &[ListedParameter], indent: usize) -> String {
    let mut text = String::new();
    for ListedParameter { name, help, default, example, expected, .. } in all {
        text += &paragraph(&format!("{name}: {help}"), indent);
        let values = format!("{expected}, e.g. {name}={example} [default: {default}]");
        text += &paragraph(&values, indent + 4);
    }
    text
}

/// Lines that begin with so many blanks, and with two more from the second on.
fn paragraph(text: &str, indent: usize) -> String {
    format!("{:indent$}{}\n", "", wrapped(text, indent + 2).trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_longer_than_a_wide_terminal() {
        for policy in policies() {
            let listed = listed(policy);
            for text in [line(&listed), about(&listed)] {
                assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            }
        }
    }
}
