//! Where each program ran, with which co-runners, and why, for people.

use symbiont_control::{CoRunners, CpuShare, PredictedSlowdown, ProgramSummary, SummaryReport};
use symbiont_topology::counted;

use crate::doctor::text::hanging;

/// Shares that are listed in one line at most; what is left is summed.
const MOST_SHARES: usize = 8;
/// Reasons that are listed at most.
const MOST_REASONS: usize = 6;
/// Where the text of a line begins.
const INDENT: usize = 18;

/// A paragraph for each program, in lines of bounded length.
pub fn text(summary: &SummaryReport) -> String {
    summary.programs.iter().map(|program| program_text(program, summary)).collect()
}

fn program_text(program: &ProgramSummary, summary: &SummaryReport) -> String {
    let threads = counted(program.threads, "thread");
    let mut lines =
        format!("\n  {}: {threads}, {:.2} s of CPU time seen\n", program.name, program.run_time_s);
    let mut add = |label: &str, text: &str| {
        lines.push_str(&hanging(&format!("    {label:<13} "), text, INDENT));
    };
    let smt = summary.hardware_threads_per_core > 1;
    if !program.cpus.is_empty() {
        add("ran on", &cpus(&program.cpus, smt));
    }
    if program.co_runners.thread_quanta > 0 {
        let label = if smt { "shared cores" } else { "took turns" };
        add(label, &co_runners(&program.co_runners, &program.name));
    }
    lines.push_str(&decisions(program));
    lines
}

/// Why a program was placed as it was, and what was predicted.
pub fn decisions(program: &ProgramSummary) -> String {
    let mut lines = String::new();
    let mut add = |label: &str, text: &str| {
        lines.push_str(&hanging(&format!("    {label:<13} "), text, INDENT));
    };
    let mut label = "why";
    for reason in program.reasons.iter().take(MOST_REASONS) {
        add(label, &format!("{} {}", percent(reason.share), reason.last));
        label = "";
    }
    let rest: u64 = program.reasons.iter().skip(MOST_REASONS).map(|reason| reason.decisions).sum();
    let rest = rest + program.other_reasons;
    if rest > 0 {
        add(label, &format!("{} for other reasons", counted(rest, "decision")));
    }
    // Of a single one the last is shown already.
    if let Some(last) = program.last_reason.as_ref().filter(|_| program.reasons.len() > 1) {
        add("last decision", last);
    }
    if let Some(predicted) = &program.predicted_slowdown {
        add("slowdown", &slowdown(predicted));
    }
    lines
}

fn cpus(shares: &[CpuShare], smt: bool) -> String {
    let one = |share: &CpuShare| match share.core.filter(|_| smt) {
        Some(core) => format!("CPU {} (core {core}) {}", share.cpu, percent(share.share)),
        None => format!("CPU {} {}", share.cpu, percent(share.share)),
    };
    listed(shares, one, |share| share.share, "CPUs")
}

/// Whose threads were on the same cores.
fn co_runners(co_runners: &CoRunners, own: &str) -> String {
    let mut text = format!("alone {}", percent(co_runners.alone));
    if !co_runners.with.is_empty() {
        let one = |other: &symbiont_control::CoRunner| {
            let name = if other.program == own { "itself" } else { &other.program };
            format!("with {name} {}", percent(other.share))
        };
        let more = co_runners.with.len().saturating_sub(MOST_SHARES);
        let shown: Vec<String> = co_runners.with.iter().take(MOST_SHARES).map(one).collect();
        text = format!("{}, {text}", shown.join(", "));
        if more > 0 {
            text = format!("{text}, and with {}", counted(more, "other program"));
        }
    }
    let quanta = counted(co_runners.thread_quanta, "thread quantum");
    let all = co_runners.with.iter().map(|other| other.share).sum::<f64>() + co_runners.alone;
    let at_once = if all > 1.005 { "; with several at once, each counts" } else { "" };
    format!("{text} (of {quanta}{at_once})")
}

fn listed<T>(
    all: &[T],
    one: impl Fn(&T) -> String,
    share: impl Fn(&T) -> f64,
    what: &str,
) -> String {
    let mut shown: Vec<String> = all.iter().take(MOST_SHARES).map(one).collect();
    if let Some(rest @ [_, ..]) = all.get(MOST_SHARES..) {
        let sum = rest.iter().map(share).sum();
        shown.push(format!("{} other {what} {}", rest.len(), percent(sum)));
    }
    shown.join(", ")
}

fn slowdown(predicted: &PredictedSlowdown) -> String {
    let PredictedSlowdown { predictions, mean, min, max } = predicted;
    format!("predicted {mean:.2} on average, {min:.2} to {max:.2} ({predictions} predictions)")
}

/// A share in percent, with a digit behind the point where it is small.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent >= 9.95 || percent == 0.0 => format!("{percent:.0} %"),
        _ if percent < 0.1 => "< 0.1 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use symbiont_control::{CoRunner, ReasonCount};

    use super::*;

    fn reason(share: f64, last: &str) -> ReasonCount {
        ReasonCount { pattern: String::new(), decisions: 3, share, last: last.to_owned() }
    }

    fn summary() -> SummaryReport {
        let long = "predicted slowdowns 1.10, 1.32: throughput 1.67; least stp by form kernel, corrected \
                    by what was measured of 12 groups that ran";
        let mut reasons = vec![reason(0.62, long), reason(0.38, "asleep")];
        reasons.extend((0..8).map(|_| reason(0.0004, "rare")));
        let first = ProgramSummary {
            name: "make".into(),
            threads: 43,
            run_time_s: 19.345,
            cpus: (0..12)
                .map(|cpu| CpuShare { cpu, core: Some(cpu / 2), share: 1.0 / 12.0 })
                .collect(),
            co_runners: CoRunners {
                thread_quanta: 912,
                alone: 0.38,
                with: vec![
                    CoRunner { number: 0, program: "make".into(), share: 0.5 },
                    CoRunner { number: 1, program: "render".into(), share: 0.25 },
                ],
            },
            reasons,
            other_reasons: 2,
            last_reason: Some("asleep".into()),
            predicted_slowdown: Some(PredictedSlowdown {
                predictions: 912,
                mean: 1.21,
                min: 1.0,
                max: 1.62,
            }),
            ..ProgramSummary::default()
        };
        let second = ProgramSummary {
            name: "sleep".into(),
            threads: 1,
            reasons: vec![reason(1.0, "left to the OS")],
            last_reason: Some("left to the OS".into()),
            ..ProgramSummary::default()
        };
        SummaryReport {
            hardware_threads_per_core: 2,
            programs: vec![first, second],
            ..SummaryReport::default()
        }
    }

    /// Compares with `golden/explain.txt`; with `UPDATE_GOLDEN=1` writes it.
    #[test]
    fn a_summary_reads_as_ever() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/explain.txt");
        let text = text(&summary());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(path).unwrap());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn threads_of_a_core_without_siblings_take_turns() {
        let summary = SummaryReport { hardware_threads_per_core: 1, ..summary() };
        let text = text(&summary);
        assert!(text.contains("took turns") && !text.contains("(core "), "{text}");
    }

    #[test]
    fn small_shares_are_not_shown_as_nothing() {
        let shown = [0.0, 0.0001, 0.004, 0.0996, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "< 0.1 %", "0.4 %", "10 %", "50 %", "100 %"]);
    }
}
