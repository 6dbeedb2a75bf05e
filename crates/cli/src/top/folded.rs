//! Threads folded into a row for each process, program or pod: pure functions.
//!
//! # Approach
//! Shares of time are summed, so that a program of eight busy threads ran for 800 %; slowdowns are
//! averaged. What cannot be summed (a reason, a category, co-runners) is that of the busiest thread.
//!
//! # Properties
//! - No time is lost or counted twice (`folding_keeps_times_and_threads`).

use std::collections::BTreeMap;

use symbiont_topology::CpuSet;
use symbiont_wire::ProgramStatus;

use super::row::Row;

/// A row for each process.
pub fn by_process(rows: &[Row]) -> Vec<Row> {
    grouped(rows, |row| row.process)
        .into_iter()
        .map(|(process, rows)| one(process, &rows))
        .collect()
}

/// A row for each program, by the number of its first process.
pub fn by_program(rows: &[Row], programs: &[ProgramStatus]) -> Vec<Row> {
    let first = |id: u32, rows: &[&Row]| {
        let program = programs.iter().find(|program| program.program == id);
        let root = program.and_then(|program| program.roots.first().copied());
        root.or_else(|| rows.iter().map(|row| row.process).min()).unwrap_or_default()
    };
    let groups = grouped(rows, |row| row.program_id).into_iter();
    groups.map(|(id, rows)| one(first(id, &rows), &rows)).collect()
}

/// A row for each pod, by the number of the first process of its first program; for each program that is in none.
pub fn by_pod(rows: &[Row], programs: &[ProgramStatus]) -> Vec<Row> {
    let first = |rows: &[&Row]| {
        let first = rows.iter().map(|row| row.program_id).min();
        let program = programs.iter().find(|program| Some(program.program) == first);
        let root = program.and_then(|program| program.roots.first().copied());
        root.or_else(|| rows.iter().map(|row| row.process).min()).unwrap_or_default()
    };
    let key = |row: &Row| match &row.pod {
        Some(pod) => (Some(pod.clone()), 0),
        None => (None, row.program_id),
    };
    let one_pod = |(key, rows): ((Option<String>, u32), Vec<&Row>)| {
        let row = one(first(&rows), &rows);
        match key.0 {
            Some(pod) => called(pod, row),
            None => row,
        }
    };
    grouped(rows, key).into_iter().map(one_pod).collect()
}

/// A row of several programs by the name of them all.
fn called(name: String, row: Row) -> Row {
    Row { name: counted_name(&name, row.threads), program: name, ..row }
}

/// A name, and how many threads have it.
fn counted_name(name: &str, threads: usize) -> String {
    match threads {
        1 => name.to_owned(),
        count => format!("{name} x{count}"),
    }
}

fn grouped<K: Ord>(rows: &[Row], key: impl Fn(&Row) -> K) -> BTreeMap<K, Vec<&Row>> {
    let mut groups: BTreeMap<K, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    groups
}

/// The row of a group; `number` is what it is known by.
fn one(number: u32, rows: &[&Row]) -> Row {
    let busiest = rows.iter().max_by(|a, b| a.run_time.total_cmp(&b.run_time));
    let mut row = busiest.map(|row| (*row).clone()).unwrap_or_default();
    row.thread = number;
    row.process = number;
    row.threads = rows.len();
    row.name = counted_name(&row.program, rows.len());
    row.run_time = rows.iter().map(|row| row.run_time).sum();
    row.wait_time = rows.iter().map(|row| row.wait_time).sum();
    row.state = ['R', 'S', 'T']
        .into_iter()
        .find(|state| rows.iter().any(|r| r.state == *state))
        .unwrap_or('S');
    row.is_held = rows.iter().any(|row| row.is_held);
    row.placed = union(rows);
    if rows.iter().any(|other| other.cpu != row.cpu) {
        row.cpu = None;
    }
    if rows.iter().any(|other| other.core != row.core) {
        row.core = None;
    }
    row.predicted = mean(rows.iter().filter_map(|row| row.predicted));
    row.achieved = mean(rows.iter().filter_map(|row| row.achieved));
    row
}

/// The hardware threads that any of them is kept on; none if one is left to the OS.
fn union(rows: &[&Row]) -> Option<String> {
    let mut all = CpuSet::new();
    for row in rows {
        all = all.union(&row.placed.as_deref()?.parse().ok()?);
    }
    Some(all.to_string())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0).then_some(sum / count)
}
