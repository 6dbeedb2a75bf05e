//! What came out, in one sentence.

use symbiont_synth::Ratio;

use super::figures::{Evaluation, PhasesCell, used_alone};
use super::plan::{Grouping, Part};

/// Share of the machine that others may take before the sentence says so.
const LITTLE: f64 = 0.1;

/// What the serial program of the headline cell gained in one session; none if it did not run.
#[must_use]
pub fn sentence(evaluation: &Evaluation) -> Option<String> {
    let in_one_session =
        |cell: &&PhasesCell| cell.part == Part::Headline && cell.grouping == Grouping::OneSession;
    let cell = evaluation.cells.iter().find(in_one_session)?;
    let serial = cell.ratios.iter().position(|ratio| *ratio == Ratio::SERIAL)?;
    let parallel = 1 - serial;
    let of = |slot: usize| [&cell.tried, &cell.baseline].map(|outcome| outcome.speedup[slot].value);
    let ([tried, linux], [tried_other, linux_other]) = (of(serial), of(parallel));
    let change = cell.change.speedup[serial];
    let decided = change.interval.is_some_and(|interval| !interval.contains(0.0));
    let chance = match (decided, change.n) {
        (true, _) => String::new(),
        (false, 1) => ", which one pair of runs does not distinguish".to_owned(),
        (false, n) => format!(", which {n} pairs of runs do not distinguish"),
    };
    let taken = 1.0 - used_alone(&evaluation.alone, evaluation.cpus).unwrap_or(1.0);
    let busy = match taken > LITTLE {
        true => format!(
            "; other programs took about {:.0} % of the machine meanwhile, so on a quiet one it may differ",
            100.0 * taken
        ),
        false => String::new(),
    };
    Some(format!(
        "Placed by Symbiont, a serial program next to a parallel one ran at {tried:.2} of its speed alone, \
         under Linux at {linux:.2}{chance} (the parallel one: {tried_other:.2} and {linux_other:.2}){busy}."
    ))
}
