//! What the evaluation has to show, judged by what came out.

use super::evaluate::{Evaluation, Gain, Near};
use super::page::published;
use super::plan::{CONTROLLED, Terms};
use crate::harness::{Check, Verdict};
use crate::report::number;
use crate::stats::Estimate;

/// Share of the oracle's gain that has to be captured of programs that the model does not know.
const LEFT_OUT: f64 = 0.5;
/// The published share of programs that it knows: 8.9 of 10.2 % over random (section 6.3).
const KNOWN: f64 = 0.87;

/// What the checks depend on beside the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judged {
    /// Are the programs unknown to the model?
    pub left_out: bool,
    /// Has each node memory, so that every program finds its own near?
    pub memory_everywhere: bool,
}

/// All checks that were run for.
pub(super) fn checks(evaluation: &Evaluation, judged: Judged) -> Vec<Check> {
    let captured = evaluation.captured.iter().find(|captured| captured.policy == CONTROLLED);
    let captured =
        captured.and_then(|captured| captured.share).map(|share| match judged.left_out {
            true => of_unknown(share),
            false => of_known(share),
        });
    let mut checks: Vec<Check> = captured.into_iter().collect();
    checks.extend([2, 4].into_iter().filter_map(|width| everywhere(evaluation, width)));
    for control in &evaluation.controls {
        let what = match control.terms {
            Terms::Exchanged => {
                "and measurements exchanged between programs for good, nothing recalled,"
            }
            Terms::Shuffled => {
                "and measurements exchanged between programs anew each quantum, nothing recalled,"
            }
            Terms::Private => "and execution units and caches private to each thread",
            Terms::Plain | Terms::Free | Terms::Late | Terms::Reserved | Terms::Narrow => continue,
        };
        let gain = control.over.stp.percent();
        checks.push(Check {
            requirement: format!(
                "With moves free {what} symbiotic gains nothing over random, {} threads per core, %",
                control.width
            ),
            measured: Some(gain),
            beside: "negative control: 0 within its interval".to_owned(),
            verdict: decided(gain, |low, high| Some(low <= 0.0 && high >= 0.0)),
        });
    }
    for near in evaluation.near.iter().filter(|near| near.other == CONTROLLED) {
        checks.push(by_memory(near, judged.memory_everywhere));
    }
    checks
}

/// Does it pay to place by memory where it is on some nodes only, and nothing where it is on all?
fn by_memory(near: &Near, everywhere: bool) -> Check {
    let gain = near.over.stp.percent();
    let (what, where_to) = match everywhere {
        true => ("nothing ", "with memory on all nodes"),
        false => ("", "on both nodes"),
    };
    let published = published(near.width, near.other);
    Check {
        requirement: format!(
            "symbiotic-numa gains {what}over symbiotic {where_to}, {} threads per core, %",
            near.width
        ),
        measured: Some(gain),
        beside: match (everywhere, published) {
            (false, Some(percent)) => format!("published {percent} %"),
            _ => "by the lower end".to_owned(),
        },
        verdict: match everywhere {
            true => decided(gain, |low, _| Some(low <= 0.0)),
            false => decided(gain, above_zero),
        },
    }
}

fn of_unknown(share: Estimate) -> Check {
    Check {
        requirement: format!(
            "Of programs that its model does not know, symbiotic captures more than {LEFT_OUT} of what \
             the oracle gains over random"
        ),
        measured: Some(share),
        beside: "by the lower end; 0.9 is aimed at".to_owned(),
        verdict: decided(share, |low, _| Some(low > LEFT_OUT)),
    }
}

fn of_known(share: Estimate) -> Check {
    Check {
        requirement:
            "Of programs that its model was trained on, symbiotic captures of what the oracle \
                      gains over random what was published"
                .to_owned(),
        measured: Some(share),
        beside: format!("published: about {KNOWN}"),
        verdict: decided(share, |low, high| match (low > KNOWN, high < KNOWN) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }),
    }
}

/// Does it beat random placement on every count of cores?
fn everywhere(evaluation: &Evaluation, width: usize) -> Option<Check> {
    let own = evaluation
        .gains
        .iter()
        .filter(|gain| gain.policy == CONTROLLED && gain.width == width && gain.cores.is_some());
    let least = own.clone().min_by(|a, b| a.over.stp.value.total_cmp(&b.over.stp.value))?;
    let weak: Vec<String> = own
        .filter(|gain| decided(gain.over.stp, above_zero) != Verdict::Pass)
        .filter_map(|Gain { cores, over, .. }| {
            Some(format!("{} cores {} %", (*cores)?, number::estimate(&over.stp.percent())))
        })
        .collect();
    Some(Check {
        requirement: format!(
            "symbiotic gains STP over random on every count of cores, {width} threads per core; the \
             least gain, %"
        ),
        measured: Some(least.over.stp.percent()),
        beside: match weak.as_slice() {
            [] => "beyond the interval on all".to_owned(),
            weak => format!("not beyond the interval: {}", weak.join("; ")),
        },
        verdict: Verdict::of(weak.is_empty()),
    })
}

fn above_zero(low: f64, high: f64) -> Option<bool> {
    match (low > 0.0, high > 0.0) {
        (true, _) => Some(true),
        (_, true) => None,
        _ => Some(false),
    }
}

/// By the ends of its interval; undecided without one, or where `holds` cannot tell.
fn decided(estimate: Estimate, holds: impl Fn(f64, f64) -> Option<bool>) -> Verdict {
    let holds = estimate.interval.and_then(|interval| holds(interval.low, interval.high));
    holds.map_or(Verdict::Undecided, Verdict::of)
}
