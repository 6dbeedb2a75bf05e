//! What the experiment has to show, judged by what was measured.

use symbiont_synth::Ratio;

use super::figures::{Outcome, PhasesCell, label};
use super::plan::{Grouping, Part};
use crate::harness::{Check, Direction, Verdict};
use symbiont_report::number;
use symbiont_report::stats::Estimate;

/// Speedup that the serial program has to reach under `phases` in one session.
pub const SERIAL_SPEEDUP: f64 = 0.97;
/// Change of a speedup, or of a predicted throughput, that explains nothing.
const LITTLE: f64 = 5e-3;
/// Wall time that all runs may take together.
pub const WALL_S: f64 = 10.0 * 60.0;

/// All checks that the cells allow.
pub(super) fn checks(cells: &[PhasesCell], wall_s: f64) -> Vec<Check> {
    let headline = |grouping| {
        cells.iter().find(|cell| cell.part == Part::Headline && cell.grouping == grouping)
    };
    let mut checks = Vec::new();
    if let Some((cell, serial)) = headline(Grouping::OneSession).and_then(with_serial) {
        checks.push(serial_runs_at_full_speed(cell, serial));
        checks.push(jitter_is_lower(cell, serial));
    }
    if let Some((cell, serial)) = headline(Grouping::OwnSessions).and_then(with_serial) {
        checks.push(no_worse_in_own_sessions(cell, serial));
    }
    let matrix: Vec<&PhasesCell> = cells.iter().filter(|cell| cell.part == Part::Matrix).collect();
    if !matrix.is_empty() {
        checks.push(throughput_is_kept(&matrix));
        // The model knows no sessions.
        let one_session = matrix.iter().filter(|cell| cell.grouping == Grouping::OneSession);
        checks.extend(fairness_follows_the_tables(one_session.copied()));
    }
    checks.push(Check {
        requirement: format!("all runs take at most {:.0} min", WALL_S / 60.0),
        measured: Some(Estimate::exact(wall_s / 60.0)),
        reference: "minutes, summed over the runs".to_owned(),
        verdict: Verdict::of(wall_s <= WALL_S),
    });
    checks
}

/// The slot of the serial program.
fn with_serial(cell: &PhasesCell) -> Option<(&PhasesCell, usize)> {
    let slot = cell.ratios.iter().position(|ratio| *ratio == Ratio::SERIAL)?;
    Some((cell, slot))
}

fn serial_runs_at_full_speed(cell: &PhasesCell, serial: usize) -> Check {
    let of = |outcome: &Outcome| outcome.speedup[serial];
    let model = cell.baseline.prediction.map_or(String::new(), |prediction| {
        format!(" (model: {})", number::plain(prediction.speedup[serial]))
    });
    let measured = of(&cell.tried);
    Check {
        requirement: format!(
            "with a parallel program in one session, the serial program's mean speedup under \
             phases is at least {SERIAL_SPEEDUP}"
        ),
        measured: Some(measured),
        reference: format!("stay: {}{model}", number::estimate(&of(&cell.baseline))),
        verdict: Verdict::of(measured.value >= SERIAL_SPEEDUP),
    }
}

fn jitter_is_lower(cell: &PhasesCell, serial: usize) -> Check {
    let text = |jitter: Option<Estimate>| {
        jitter.map_or("not measured".to_owned(), |jitter| number::estimate(&jitter))
    };
    let change = cell.change.jitter[serial];
    let interval = change.and_then(|change| change.interval);
    Check {
        requirement: "its jitter is lower under phases (difference below zero)".to_owned(),
        measured: change,
        reference: format!(
            "stay: {}, phases: {}",
            text(cell.baseline.jitter[serial]),
            text(cell.tried.jitter[serial])
        ),
        verdict: match interval {
            // The bootstrap of so few is too narrow to judge by.
            Some(_) if change.is_some_and(|change| change.n < 10) => Verdict::Undecided,
            Some(interval) if interval.high < 0.0 => Verdict::Pass,
            Some(interval) if interval.low > 0.0 => Verdict::Fail,
            _ => Verdict::Undecided,
        },
    }
}

fn no_worse_in_own_sessions(cell: &PhasesCell, serial: usize) -> Check {
    let change = cell.change.speedup[serial];
    Check {
        requirement: "in sessions of their own, the serial program's speedup under phases is not \
                      below stay beyond the interval"
            .to_owned(),
        measured: Some(change),
        reference: format!(
            "stay: {}, phases: {}",
            number::estimate(&cell.baseline.speedup[serial]),
            number::estimate(&cell.tried.speedup[serial])
        ),
        verdict: match change.interval {
            None => Verdict::Undecided,
            Some(interval) if interval.high < 0.0 => Verdict::Fail,
            Some(_) => Verdict::Pass,
        },
    }
}

fn throughput_is_kept(matrix: &[&PhasesCell]) -> Check {
    let worse: Vec<String> = matrix
        .iter()
        .filter(|cell| is_worse(cell))
        .map(|cell| {
            let change = number::estimate(&cell.change.throughput);
            format!("{}, {}: {change}, {}", cell.name(), cell.grouping.name(), why(cell))
        })
        .collect();
    let decided = matrix.iter().all(|cell| cell.change.throughput.interval.is_some());
    Check {
        requirement: "no cell of the matrix has a throughput below stay beyond the interval"
            .to_owned(),
        measured: None,
        reference: if worse.is_empty() {
            format!("none of {} cells", matrix.len())
        } else {
            format!("{} (by chance about one of 40 cells is named)", worse.join("; "))
        },
        verdict: match (worse.is_empty(), decided) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Pass,
            (true, false) => Verdict::Undecided,
        },
    }
}

/// Least change of fairness in the tables that says where the measured one goes.
const LEAST_CHANGE: f64 = 0.01;

/// Fairness rises only where Tables 1 and 3 predict it, and falls elsewhere.
fn fairness_follows_the_tables<'c>(cells: impl Iterator<Item = &'c PhasesCell>) -> Option<Check> {
    let (mut right, mut open, mut wrong) = (0, 0, Vec::new());
    for cell in cells {
        let of = |outcome: &Outcome| outcome.prediction.map(|prediction| prediction.fairness);
        let reported = of(&cell.tried)? - of(&cell.baseline)?;
        let change = cell.change.fairness;
        match Direction::of(reported, LEAST_CHANGE, &change) {
            None => {}
            Some(Direction::AsPredicted) => right += 1,
            Some(Direction::Either) => open += 1,
            Some(Direction::Against) => {
                let change = number::estimate(&change);
                wrong.push(format!("{}: {change}, tables {reported:+.3}", cell.name()));
            }
        }
    }
    let against = if wrong.is_empty() { "none against them".to_owned() } else { wrong.join("; ") };
    Some(Check {
        requirement: "in one session, no pair's fairness goes against Tables 1 and 3".to_owned(),
        measured: None,
        reference: format!("as they say in {right} pairs, within chance in {open}, {against}"),
        verdict: match (wrong.is_empty(), right) {
            (false, _) => Verdict::Fail,
            (true, 0) => Verdict::Undecided,
            (true, _) => Verdict::Pass,
        },
    })
}

/// Why a cell got slower, as far as its figures show.
fn why(cell: &PhasesCell) -> String {
    let predicted = cell.outcomes().map(|(_, outcome)| outcome.prediction.map(|p| p.throughput));
    let lost = [0, 1].map(|slot| cell.change.speedup[slot].value < -LITTLE);
    match (predicted, lost) {
        ([Some(stay), Some(phases)], _) if phases < stay - LITTLE => {
            format!("as the tables predict ({stay:.2} to {phases:.2} threads)")
        }
        (_, [true, true]) => {
            "both programs are slower, likely by what managing and moving cost".to_owned()
        }
        (_, [false, false]) => "neither program by much".to_owned(),
        (_, [first, _]) => format!(
            "{} loses more than the other gains, likely as a phase is acted on when it was seen, up \
             to a quantum late, and a core kept for a serial thread waits for it",
            label(cell.ratios[usize::from(!first)])
        ),
    }
}

/// Is the throughput below the baseline's by more than chance?
#[must_use]
pub fn is_worse(cell: &PhasesCell) -> bool {
    cell.change.throughput.high().is_some_and(|high| high < 0.0)
}

/// Is it above by more than chance?
#[must_use]
pub fn is_better(cell: &PhasesCell) -> bool {
    cell.change.throughput.low().is_some_and(|low| low > 0.0)
}
