//! From figures to a report.

use super::evaluate::{Evaluation, Gain};
use super::pages;
use super::plan::{BEST, Contender};
use crate::harness::{Check, Verdict};
use crate::published::hysched::{CHANGES, CITATION, CONDITIONS, GAIN, L1_GAIN};
use crate::report::{Block, Report};
use crate::simulated::Provenance;
use crate::stats::Estimate;

/// The report of the experiment, without facts.
#[must_use]
pub fn page(evaluation: &Evaluation, provenance: &Provenance) -> Report {
    let mut report = Report::new(
        "Pairs of different Top-Down categories",
        "Hy-Sched against the OS on a simulated Xeon E5-2620 v4",
    );
    report.push(Block::Warning(format!(
        "Simulated: nothing here was measured on hardware. {} Programs are the profiles named \
         above, not SPEC.",
        provenance.note
    )));
    if evaluation.unfinished > 0 {
        let runs = evaluation.unfinished;
        report.push(Block::Warning(format!("{runs} runs did not end in time and are left out.")));
    }
    if evaluation.unsettled > 0.01 {
        let percent = 100.0 * evaluation.unsettled;
        report.push(Block::Warning(format!(
            "In {percent:.1} % of moments the physics found no fixed point."
        )));
    }
    report.push(Block::Note(format!("Published figures: {CITATION}; {CONDITIONS}.")));
    report.push(Block::Heading("What it has to show".to_owned()));
    report.push(Check::table(&checks(evaluation)));
    pages::push(&mut report, evaluation);
    report
}

fn checks(evaluation: &Evaluation) -> Vec<Check> {
    let gain = |contender, private| {
        let is = |gain: &&Gain| gain.contender == contender && gain.private == private;
        evaluation.gains.iter().find(is).and_then(|gain| gain.mean)
    };
    let decided = |estimate: Option<Estimate>, holds: fn(&Estimate) -> Option<bool>| {
        estimate.as_ref().and_then(holds).map_or(Verdict::Undecided, Verdict::of)
    };
    let above: fn(&Estimate) -> Option<bool> = |estimate| Some(estimate.low()? > 0.0);
    let none: fn(&Estimate) -> Option<bool> = |estimate| Some(estimate.interval?.contains(0.0));
    let mut checks = Vec::new();
    for premise in &evaluation.premises {
        checks.push(Check {
            requirement: format!(
                "Pairs of different categories ({}) have more STP than pairs of one",
                premise.variant
            ),
            measured: premise.difference,
            beside: "section 4.1: most drops are in pairs of one category".to_owned(),
            verdict: decided(premise.difference, above),
        });
    }
    let best = gain(Contender::Hysched(BEST), false);
    checks.push(Check {
        requirement: "TopB2M3L gains over the OS, %".to_owned(),
        measured: best.map(Estimate::percent),
        beside: format!("published {} %", GAIN.value),
        verdict: decided(best, above),
    });
    let l1 = gain(Contender::L1Bandwidth, false);
    checks.push(Check {
        requirement: "L1 bandwidth gains less than TopB2M3L, %".to_owned(),
        measured: l1.map(Estimate::percent),
        beside: format!("published about {} %", L1_GAIN.value),
        verdict: best.zip(l1).map_or(Verdict::Undecided, |(b, l)| Verdict::of(l.value < b.value)),
    });
    for (contender, private, what) in [
        (Contender::Shuffled(BEST), false, "With measurements exchanged between programs"),
        (Contender::Hysched(BEST), true, "With units and caches private to each thread"),
    ] {
        let gain = gain(contender, private);
        checks.push(Check {
            requirement: format!("{what} TopB2M3L gains nothing, %"),
            measured: gain.map(Estimate::percent),
            beside: "negative control: 0 within its interval".to_owned(),
            verdict: decided(gain, none),
        });
    }
    let changes = evaluation.findings.iter().find(|(who, _)| *who == Contender::Hysched(BEST));
    let changes = changes.and_then(|(_, found)| found.get(pages::CHANGED).copied());
    checks.push(Check {
        requirement: "Threads whose category changes, per quantum, TopB2M3L, %".to_owned(),
        measured: changes.map(Estimate::percent),
        beside: format!("published about {} %", CHANGES.value),
        verdict: changes.map_or(Verdict::Undecided, |found| Verdict::of(found.value > 0.2)),
    });
    checks
}
