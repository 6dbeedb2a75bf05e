//! A replay's report for people.

use std::fmt::Write;

use symbiont_control::ProgramSummary;
use symbiont_topology::counted;

use super::ReplayReport;
use super::differences::Difference;
use super::prediction::Prediction;
use super::recording::RecordingReport;
use crate::doctor::text::{hanging, wrapped};
use crate::explain::{self, percent};

const INDENT: usize = 18;
/// Places that are listed at most.
const MOST_PLACES: usize = 6;

pub(super) fn text(report: &ReplayReport) -> String {
    let mut text = recording(&report.file, &report.recording);
    let _ = writeln!(text, "\nPolicy {} decides over it", report.policy);
    let _ = writeln!(text, "{}", wrapped(report.limits, 2));
    for (program, difference) in report.decided.programs.iter().zip(&report.differences) {
        text.push_str(&decided(program, difference));
    }
    text.push_str(&predictions(&report.predictions));
    text
}

fn line(text: &mut String, label: &str, what: &str) {
    text.push_str(&hanging(&format!("  {label:<15} "), what, INDENT));
}

fn recording(file: &str, held: &RecordingReport) -> String {
    let mut text = format!("Recording {file}\n");
    let processor = held.processor.as_deref().map(|name| format!("{name}: ")).unwrap_or_default();
    let (cores, cpus) = (counted(held.cores as u64, "core"), held.hardware_threads as u64);
    line(
        &mut text,
        "machine",
        &format!("{processor}{cores}, {}", counted(cpus, "hardware thread")),
    );
    line(&mut text, "policy", &format!("{}, quantum {} ms", held.policy, held.quantum_ms));
    let programs = listed(&held.programs, ", ");
    line(&mut text, "programs", &format!("{programs}; {}", counted(held.threads, "thread")));
    let quanta = counted(held.quanta, "quantum");
    line(&mut text, "length", &format!("{quanta}, {:.2} s", held.duration_s));
    let events = match &held.catalogue {
        None => "no events".to_owned(),
        Some(catalogue) => format!(
            "{} by catalogue {catalogue}; {}, {} missing",
            held.signals.join(", "),
            counted(held.readings, "reading"),
            held.missing_readings
        ),
    };
    line(&mut text, "counted", &events);
    let moves = [
        (held.moves.done, "done"),
        (held.moves.gone, "too late (thread gone)"),
        (held.moves.changed_by_others, "left alone (changed by others)"),
        (held.moves.refused, "refused"),
        (held.moves.not_enforced, "not enforced"),
    ];
    let moves = moves.iter().filter(|(count, _)| *count > 0);
    let moves: Vec<_> = moves.map(|(count, what)| format!("{count} {what}")).collect();
    line(&mut text, "moves", &listed(&moves, ", "));
    let mut losses = Vec::new();
    if held.late_samples > 0 {
        losses.push(format!(
            "{} came later than two quanta after the one before; the longest interval is {:.0} ms",
            counted(held.late_samples, "sample"),
            held.longest_interval_ms
        ));
    }
    if let Some(line) = held.cut_off_line {
        losses.push(format!("line {line} ends in the middle and is left out"));
    }
    line(&mut text, "losses", &listed(&losses, "; "));
    text
}

fn decided(program: &ProgramSummary, difference: &Difference) -> String {
    let mut text = format!("\n  {}: {}\n", program.name, counted(difference.decisions, "decision"));
    let mut add = |label: &str, what: &str| {
        text.push_str(&hanging(&format!("    {label:<13} "), what, INDENT));
    };
    if difference.decisions == 0 {
        return text;
    }
    let share = |part: u64| percent(share(part, difference.decisions));
    let shown = difference.places.iter().take(MOST_PLACES);
    let mut places: Vec<_> =
        shown.map(|place| format!("{} {}", place.place, share(place.decisions))).collect();
    let rest = difference.places.iter().skip(MOST_PLACES).map(|place| place.decisions);
    let rest = rest.sum::<u64>() + difference.other_places;
    if rest > 0 {
        places.push(format!("elsewhere {}", share(rest)));
    }
    add("decided", &places.join(", "));
    let mut as_recorded = vec![format!("{} as recorded", share(difference.same))];
    for (part, what) in [
        (difference.other_place, "another place"),
        (difference.other_priority, "another priority"),
        (difference.not_recorded, "no decision recorded"),
    ] {
        if part > 0 {
            as_recorded.push(format!("{} {what}", share(part)));
        }
    }
    add("compared", &as_recorded.join(", "));
    if let Some(last) = &difference.last {
        let (quantum, thread) = (last.quantum, &last.thread);
        add("for example", &format!("in quantum {quantum}, {thread}:"));
        add("", &format!("decided {}: {}", last.decided, last.decided_reason));
        add("", &format!("recorded {}: {}", last.recorded, last.recorded_reason));
    }
    text.push_str(&explain::decisions(program));
    text
}

fn predictions(predictions: &[Prediction]) -> String {
    if predictions.is_empty() {
        return String::new();
    }
    let about = "Predicted and measured slowdowns, where the recording ran a thread with the co-runners \
                 of its prediction. Measured: mean CPI there / mean CPI where a thread of the program had \
                 a core to itself.";
    let mut text = format!("\n{}\n", wrapped(about, 0));
    let head = ["program", "predicted", "measured", "CPI", "CPI alone", "compared", "alone"];
    let width =
        predictions.iter().map(|p| p.program.chars().count()).max().unwrap_or(0).clamp(7, 30);
    let mut row = |cells: [String; 7]| {
        let [name, rest @ ..] = cells;
        let _ = write!(text, "  {name:<width$}");
        for cell in rest {
            let _ = write!(text, " {cell:>9}");
        }
        text.push('\n');
    };
    row(head.map(str::to_owned));
    for p in predictions {
        let known =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        row([
            p.program.chars().take(30).collect(),
            format!("{:.2}", p.predicted),
            known(p.measured),
            format!("{:.2}", p.cpi),
            known(p.cpi_alone),
            p.compared.to_string(),
            p.alone.to_string(),
        ]);
    }
    text
}

fn listed(items: &[String], between: &str) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(between) }
}

#[expect(clippy::cast_precision_loss, reason = "a share of counts")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
