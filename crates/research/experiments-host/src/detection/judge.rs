//! What was believed against what was true.

use serde::{Deserialize, Serialize};
use symbiont_policy::Phase;
use symbiont_synth::Span;

use symbiont_report::stats;

/// What a reader takes a program for, from a moment on until its next belief.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    /// Since when, in nanoseconds of `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// What.
    pub phase: Phase,
}

/// How good a reader was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Share of the time in which it was right.
    pub right: f64,
    /// True changes of phase.
    pub changes: u64,
    /// Share of them that it noticed, before the next one.
    pub noticed: f64,
    /// Median time until then, in ms; absent if it noticed none.
    pub reaction_median_ms: Option<f64>,
    /// Time that 95 % of them did not exceed, in ms.
    pub reaction_p95_ms: Option<f64>,
}

fn truth(span: &Span) -> Phase {
    if span.parallel { Phase::Parallel } else { Phase::Serial }
}

/// Judges beliefs, oldest first, by the true phases, in order. Absent without
/// phases.
#[must_use]
pub fn judge(phases: &[Span], beliefs: &[Belief]) -> Option<Judged> {
    let total: u64 = phases.iter().map(|span| span.end_ns - span.begin_ns).sum();
    let (mut right, mut changes, mut reactions) = (0, 0u64, Vec::new());
    let mut right_before = false;
    for (number, span) in phases.iter().enumerate() {
        let during = |belief: &Belief| (span.begin_ns..span.end_ns).contains(&belief.at_ns);
        let first = beliefs.partition_point(|belief| belief.at_ns <= span.begin_ns);
        let at_begin = first.checked_sub(1).and_then(|at| beliefs.get(at)).map(|b| b.phase);
        let mut now = (span.begin_ns, at_begin);
        let (mut noticed, mut right_now) = (None, 0);
        let news = beliefs.iter().skip(first).take_while(|belief| during(belief));
        let news = news.map(|belief| (belief.at_ns, Some(belief.phase)));
        for next in news.chain([(span.end_ns, None)]) {
            if now.1 == Some(truth(span)) {
                right_now += next.0 - now.0;
                if now.0 > span.begin_ns && noticed.is_none() {
                    noticed = Some(now.0 - span.begin_ns);
                }
            }
            now = next;
        }
        let before = number.checked_sub(1).and_then(|before| phases.get(before));
        if let Some(before) = before.filter(|before| before.parallel != span.parallel) {
            changes += 1;
            // Threads go to sleep a little before their phase is over. A reader that was
            // right then, and changed its mind in that phase, was early; one that
            // says always the same did not notice anything.
            let since = first.checked_sub(1).and_then(|at| beliefs.get(at)).map(|b| b.at_ns);
            let early = right_before && since.is_some_and(|since| since >= before.begin_ns);
            reactions.extend(match at_begin == Some(truth(span)) {
                true => early.then_some(0),
                false => noticed,
            });
        }
        right += right_now;
        right_before = right_now > 0;
    }
    reactions.sort_unstable();
    let ms = |ns: u64| ns as f64 / 1e6;
    // The least that is not exceeded by 95 %.
    let late = (reactions.len() * 95).div_ceil(100).saturating_sub(1);
    let all: Vec<f64> = reactions.iter().map(|ns| ms(*ns)).collect();
    (total > 0).then(|| Judged {
        right: right as f64 / total as f64,
        changes,
        noticed: reactions.len() as f64 / changes.max(1) as f64,
        reaction_median_ms: stats::median(&all),
        reaction_p95_ms: all.get(late).copied(),
    })
}
