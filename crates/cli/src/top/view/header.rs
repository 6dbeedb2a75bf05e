//! The daemon, its programs and its cost; and one thread in words.

use symbiont_topology::counted;
use symbiont_wire::{ManagerStatus, Snapshot};

use super::super::clean::{broken, clean, cut};
use super::super::row::Row;
use super::super::screen::Screen;
use crate::quiet::waiting_line;
use crate::status::{in_the_kernel, moves};

/// Lines of the header, no wider than the terminal, with the first remarks.
pub fn lines(screen: &Screen, columns: usize) -> Vec<String> {
    let lines = facts(screen).into_iter().chain(remarks(&screen.now).take(2));
    lines.map(|line| cut(&line, columns)).collect()
}

/// The same for what is printed: all remarks, broken into lines.
pub fn printed_lines(screen: &Screen, columns: usize) -> Vec<String> {
    let facts = facts(screen).into_iter();
    let remarks = remarks(&screen.now);
    facts.chain(remarks.flat_map(|remark| broken(&remark, "  ", columns))).collect()
}

/// The daemon, its programs and its cost.
fn facts(screen: &Screen) -> Vec<String> {
    let now = &screen.now;
    match &now.manager {
        Some(manager) => vec![
            format!(
                "symbiont {}: policy {}, quantum {} ms, up {}; {}",
                manager.version,
                manager.policy,
                manager.quantum_ms,
                time(manager.uptime_s),
                machine(now)
            ),
            format!("{}; {}", programs(now), cost(manager, screen.daemon_share)),
            format!(
                "moves: {}; quanta: {}, {} late",
                moves(&manager.moves).unwrap_or_else(|| "none so far".to_owned()),
                manager.usage.quanta,
                manager.usage.quanta_missed
            ),
        ],
        None => vec![
            format!("symbiont: no daemon runs; what `run` places is not shown; {}", machine(now)),
            format!("{}, only watched", programs(now)),
            "start one: `sudo systemctl start symbiontd`, or `symbiont daemon`".to_owned(),
        ],
    }
}

/// What programs wait for, and notes.
fn remarks(now: &Snapshot) -> impl Iterator<Item = String> {
    let waits = now.programs.iter().filter_map(|program| {
        Some(format!("{}: {}", clean(&program.name), waiting_line(program)?))
    });
    let notes = now.notes.iter().map(|note| format!("note: {}", clean(note)));
    let kernel = now.manager.as_ref().and_then(|manager| manager.scheduler.as_ref());
    kernel.map(in_the_kernel).into_iter().chain(waits.take(2)).chain(notes)
}

fn machine(now: &Snapshot) -> String {
    let cpus: usize =
        now.cores.iter().map(|core| core.cpus.parse().map_or(1, |c: Cpus| c.len())).sum();
    format!("{}, {}", counted(now.cores.len(), "core"), counted(cpus, "CPU"))
}

type Cpus = symbiont_topology::CpuSet;

fn programs(now: &Snapshot) -> String {
    let threads = now.threads.len() + now.more_threads as usize;
    let placed = now.threads.iter().filter(|thread| thread.placed.is_some()).count();
    let mut text =
        format!("{}, {}", counted(now.programs.len(), "program"), counted(threads, "thread"));
    if now.manager.is_some() {
        text = format!("{text} ({placed} placed)");
    }
    if now.more_threads > 0 {
        text = format!("{text}, the busiest {} shown", now.threads.len());
    }
    text
}

fn cost(manager: &ManagerStatus, share: Option<f64>) -> String {
    let usage = &manager.usage;
    let share = share.map(|share| format!("{:.1}% CPU", share * 100.0));
    let memory = usage.memory_bytes.map(|bytes| format!("{} MiB", bytes.div_ceil(1 << 20)));
    let parts: Vec<String> = [share, memory].into_iter().flatten().collect();
    format!("daemon: {}", parts.join(", "))
}

/// A thread in words: where it is kept and why.
pub fn describe(row: &Row) -> String {
    let place = match &row.placed {
        Some(cpus) if row.threads > 1 => format!("are kept on CPUs {cpus}"),
        None if row.threads > 1 => "are left to the OS, some or all".to_owned(),
        Some(cpus) if row.is_held => format!("is held on CPU {cpus}"),
        Some(cpus) => format!("is nudged to CPU {cpus}"),
        None => "is left to the OS".to_owned(),
    };
    if row.threads > 1 {
        let (program, threads) = (&row.program, counted(row.threads, "thread"));
        let reason = if row.reason.is_empty() {
            String::new()
        } else {
            format!("; of the busiest: {}", row.reason)
        };
        return format!("{program} {}: its {threads} {place}{reason}", row.thread);
    }
    let number = match row.thread == row.process {
        true => row.thread.to_string(),
        false => format!("{} of process {}", row.thread, row.process),
    };
    let reason = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
    format!("{} {number} {place}{reason}", row.name)
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}
