//! What a report says of the programs that ran.

use super::names::{Suite, find};
use super::{OwnPrograms, ProgramUse};
use symbiont_report::{Column, Table};

/// Digits of a fingerprint that are shown.
const DIGITS: usize = 16;

/// A row for each program of the papers, and for each of ours that stands for none.
pub fn table(uses: &[ProgramUse], own: &OwnPrograms, source: impl Fn(&str) -> String) -> Table {
    let columns = ["Program of a paper", "What ran", "Whose", "Profile", "Fingerprint", "Figures"];
    let is_spec = |one: &ProgramUse| {
        let named = one.program.filter(|_| one.is_own()).and_then(find);
        named.is_some_and(|named| named.suite != Suite::SciMark)
    };
    let caption = match uses.iter().any(is_spec) {
        true => {
            "Programs, and what ran for those of the papers. Values of SPEC programs are estimates by \
             simulation, no SPEC metrics"
        }
        false => "Programs, and what ran for those of the papers",
    };
    let mut table = Table::new("programs", caption, columns.map(Column::text).to_vec());
    for one in uses {
        let given = own.get(&one.by).filter(|_| one.is_own());
        let whose = match (given, one.program) {
            (Some(_), _) => "the paper's own",
            (None, Some(_)) => "stand-in",
            (None, None) => "ours, for no program of a paper",
        };
        let path = match given {
            Some(given) => given.path.display().to_string(),
            None if one.traced => "none: run from its instruction trace".to_owned(),
            None => source(&one.by),
        };
        let print = given.and_then(|given| given.fingerprint.get(..DIGITS)).unwrap_or_default();
        table.row(vec![
            one.program.unwrap_or_default().into(),
            one.by.as_str().into(),
            whose.into(),
            path.as_str().into(),
            print.into(),
            one.figures.join(", ").as_str().into(),
        ]);
    }
    table
}

/// What is said at a figure; nothing where no program of its paper was given.
pub fn paragraph(uses: &[ProgramUse], figure: &str) -> Option<String> {
    let here = || uses.iter().filter(|one| one.figures.contains(&figure));
    let own: Vec<&str> = here().filter(|one| one.is_own()).map(|one| one.by.as_str()).collect();
    if own.is_empty() {
        return None;
    }
    let stand_in = |one: &ProgramUse| {
        let program = one.program.filter(|_| !one.is_own())?;
        Some(format!("{} for {program}", one.by))
    };
    let stand_ins: Vec<String> = here().filter_map(stand_in).collect();
    let others: Vec<&str> =
        here().filter(|one| one.program.is_none()).map(|one| one.by.as_str()).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        some => format!(" Programs of no paper: {}.", some.join(", ")),
    };
    let rest = match stand_ins.as_slice() {
        [] => "none: what is said below of other programs than the paper's does not hold here"
            .to_owned(),
        some => format!(
            "{}. What is said below of other programs than the paper's holds for these",
            some.join(", ")
        ),
    };
    Some(format!(
        "The paper's own programs, as given: {}. Stand-ins: {rest}.{others}",
        own.join(", ")
    ))
}
