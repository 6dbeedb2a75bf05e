//! An account as tables for people.

use std::fmt::Write;

use symbiont_counters::catalogue::{Catalogue, Quantity, Unit};
use symbiont_topology::counted;

use super::account::{Account, Row, Valued};
use super::wanted::Section;
use crate::doctor::text::wrapped;

/// Longest line of a table.
const WIDTH: usize = 100;
/// Threads that a table shows at most.
const ROWS: usize = 20;

/// The account; `why` says why the catalogue is not the processor's own.
pub fn text(
    account: &Account,
    catalogue: &Catalogue,
    sections: &[Section],
    why: Option<&str>,
) -> String {
    let mut out = String::new();
    let what = if account.total { "in all" } else { "meanwhile" };
    let catalogue_words = match why {
        Some(why) if account.total => format!("{} ({why})", account.catalogue),
        _ => account.catalogue.clone(),
    };
    let threads = counted(account.threads.len(), "thread");
    let line = format!(
        "{:.3} s, {what} {} s; {} of CPU time in {threads}; catalogue {catalogue_words}",
        account.at_s,
        short(account.over_s),
        seconds(account.all.cpu_s),
    );
    let _ = writeln!(out, "\n{}", wrapped(&line, 0));
    for section in sections {
        let shown: Vec<&String> = section
            .formulas
            .iter()
            .filter(|formula| account.all.values.contains_key(*formula))
            .collect();
        if !shown.is_empty() {
            let heads: Vec<_> = shown.iter().map(|name| head(catalogue, name)).collect();
            let cells = |row: &Row| -> Vec<String> {
                let cell = |name: &&String| row.values.get(*name).map_or("–".to_owned(), valued);
                shown.iter().map(cell).collect()
            };
            let drawn = table(account, &heads, &cells);
            let _ = writeln!(out, "\n{}\n{}", section.title, drawn.trim_end());
        }
    }
    if !account.all.events.is_empty() {
        let names: Vec<&String> = account.all.events.keys().collect();
        let columns = |name: &&String| {
            [["", name.as_str()], ["", "per CPU s"]].map(|head| head.map(str::to_owned))
        };
        let heads: Vec<_> = names.iter().flat_map(columns).collect();
        let cells = |row: &Row| -> Vec<String> {
            let cell = |name: &&String| match row.events.get(*name) {
                Some(event) => [short(event.estimate), short(event.per_cpu_s)],
                None => ["–".to_owned(), "–".to_owned()],
            };
            names.iter().flat_map(cell).collect()
        };
        let drawn = table(account, &heads, &cells);
        let _ = writeln!(out, "\nEvents\n{}", drawn.trim_end());
    }
    if account.total {
        notes(account, &mut out);
    }
    out
}

fn notes(account: &Account, out: &mut String) {
    // Values that are absent for one reason stand together.
    let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in &account.absent {
        match by_reason.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((why, vec![name.as_str()])),
        }
    }
    for (why, names) in by_reason {
        let _ = writeln!(out, "{}", wrapped(&format!("absent: {}: {why}", names.join(", ")), 0));
    }
    if account.uncounted.threads > 0 {
        let _ = writeln!(
            out,
            "not counted: {} of the threads, with {} of CPU time: they ended within two looks, or \
             counting them was refused",
            account.uncounted.threads,
            seconds(account.uncounted.cpu_s)
        );
    }
}

/// The threads, their CPU time and further columns: in as many tables below
/// each other as it takes.
fn table(account: &Account, heads: &[[String; 2]], cells: &dyn Fn(&Row) -> Vec<String>) -> String {
    let mut rows: Vec<Row> = account.threads.iter().take(ROWS).cloned().collect();
    if account.threads.len() != 1 {
        let name = match account.threads.len().saturating_sub(ROWS) {
            0 => "all".to_owned(),
            more => format!("all, {more} more"),
        };
        rows.push(Row { name, ..account.all.clone() });
    }
    let first = |row: &Row| {
        let thread = row.thread.map_or(String::new(), |thread| thread.to_string());
        let counted = row.coverage.map_or("–".to_owned(), percent);
        vec![thread, crate::top::clean::clean(&row.name), seconds(row.cpu_s), counted]
    };
    let column = |head: [String; 2], of: &dyn Fn(&Row) -> String| -> Vec<String> {
        head.into_iter().chain(rows.iter().map(of)).collect()
    };
    let always = [["thread", ""], ["name", ""], ["CPU", "time"], ["counted", ""]];
    let always = always
        .iter()
        .enumerate()
        .map(|(at, head)| column(head.map(str::to_owned), &|row| first(row).swap_remove(at)));
    let always: Vec<Vec<String>> = always.collect();
    let more = heads.iter().enumerate().map(|(at, head)| {
        column(head.clone(), &|row| cells(row).get(at).cloned().unwrap_or_default())
    });
    let more: Vec<Vec<String>> = more.collect();
    let room = WIDTH.saturating_sub(always.iter().map(|column| width(column)).sum());
    let mut tables = Vec::new();
    let mut left = more.as_slice();
    loop {
        let mut used = 0;
        let fitting = left.iter().take_while(|column| {
            used += width(column);
            used <= room
        });
        // A column that is wider than all has a table of its own.
        let (now, later) = left.split_at(fitting.count().max(1).min(left.len()));
        let columns: Vec<&Vec<String>> = always.iter().chain(now).collect();
        tables.push(drawn(&columns));
        if later.is_empty() {
            return tables.join("\n");
        }
        left = later;
    }
}

/// Letters of a column, the gap before it included.
fn width(column: &[String]) -> usize {
    2 + column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

/// Columns next to each other; the first two are text.
fn drawn(columns: &[&Vec<String>]) -> String {
    let mut out = String::new();
    for line in 0..columns.iter().map(|column| column.len()).max().unwrap_or(0) {
        let mut text = String::new();
        for (at, column) in columns.iter().enumerate() {
            let cell = column.get(line).map_or("", String::as_str);
            let wide = width(column) - 2;
            let _ = match at {
                0 | 1 => write!(text, "  {cell:<wide$}"),
                _ => write!(text, "  {cell:>wide$}"),
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out
}

/// A column's head: the formula's name and what its numbers are.
fn head(catalogue: &Catalogue, name: &str) -> [String; 2] {
    let unit = match catalogue.formula(name).map(|formula| formula.unit) {
        None | Some(Unit::Fraction | Unit::Of(Quantity::Nanoseconds)) => String::new(),
        Some(Unit::Per(of, Quantity::Nanoseconds)) => format!("{of}/s"),
        Some(Unit::Per(Quantity::Cycles, Quantity::Instructions)) => "cycles/instr".to_owned(),
        Some(Unit::Per(Quantity::Instructions, Quantity::Cycles)) => "instr/cycle".to_owned(),
        Some(unit) => unit.to_string(),
    };
    [name.to_owned(), unit]
}

fn valued(value: &Valued) -> String {
    match value.unit {
        Unit::Fraction => percent(value.value),
        Unit::Of(Quantity::Nanoseconds) => seconds(value.value / 1e9),
        Unit::Per(_, Quantity::Nanoseconds) => short(value.value * 1e9),
        Unit::Of(_) | Unit::Per(..) => short(value.value),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn seconds(time: f64) -> String {
    if time < 1.0 { format!("{:.1} ms", 1e3 * time) } else { format!("{time:.2} s") }
}

/// Three digits that matter, with a letter for thousands and more.
pub fn short(number: f64) -> String {
    let size = number.abs();
    let scales = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let (divisor, letter) =
        scales.into_iter().find(|(scale, _)| size >= *scale).unwrap_or((1.0, ""));
    let number = number / divisor;
    let digits = match number.abs() {
        zero if zero <= 0.0 => 0,
        tiny if tiny < 0.001 => return format!("{number:.1e}"),
        size if size < 10.0 => 2 + usize::from(size < 1.0),
        size if size < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.digits$}{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let said = [0.0, 0.01234, 0.5, 1.234, 12.34, 123.4, 1234.0, 2.5e7, -3.25, 1e-5].map(short);
        let wanted =
            ["0", "0.012", "0.500", "1.23", "12.3", "123", "1.23 k", "25.0 M", "-3.25", "1.0e-5"];
        assert_eq!(said, wanted);
        assert_eq!((seconds(0.0123), seconds(3.0)), ("12.3 ms".into(), "3.00 s".into()));
    }

    #[test]
    fn columns_stand_next_to_each_other_numbers_to_the_right() {
        let column = |letters: usize| vec!["h".repeat(letters), "1".to_owned()];
        let (name, number) = (column(4), column(6));
        assert_eq!(width(&number), 8);
        assert_eq!(drawn(&[&name, &name, &number]), "  hhhh  hhhh  hhhhhh\n  1     1          1\n");
    }

    #[test]
    fn rates_are_given_for_each_second() {
        let software = Catalogue::named("software").unwrap().unwrap();
        assert_eq!(head(&software, "fault_rate"), ["fault_rate", "faults/s"]);
        let unit = software.formula("fault_rate").unwrap().unit;
        assert_eq!(valued(&Valued { value: 2e-6, unit }), "2.00 k");
        assert_eq!(valued(&Valued { value: 0.125, unit: Unit::Fraction }), "12.5 %");
    }
}
