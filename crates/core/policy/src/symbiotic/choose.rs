//! Steps 3 to 5: which threads share a core, from throttled stacks.

use std::collections::BTreeMap;
use std::ops::Range;

use symbiont_matching::{GroupCosts, GroupError, Request, group_by};
use symbiont_model::{Costs, Model, SmtMode, StackError, Throttling};
use symbiont_topology::CoreKind;

use super::Symbiosis;
use super::estimate::Stacks;

/// Differences of costs that are smaller mean nothing: groups that cost the same
/// but for these stay together. A power of two, so that sums of such costs are exact.
const RESOLUTION: f64 = 1.0 / 8192.0;

/// Costs in whole steps of [`RESOLUTION`].
struct InSteps<'c>(&'c Costs);

/// The nearest whole number of steps; what is no number stays so. Co-running with this much, floats have no
/// smaller digits than a step (two operations, where rounding takes a call on many a CPU).
fn in_steps(cost: f64) -> f64 {
    const MUCH: f64 = RESOLUTION * 1.5 / f64::EPSILON;
    (cost + MUCH) - MUCH
}

impl GroupCosts for InSteps<'_> {
    fn cost(&mut self, group: &[usize]) -> f64 {
        in_steps(self.0.cost(group))
    }

    fn pairs(&mut self, thread: usize, others: Range<usize>, costs: &mut [f64]) {
        self.0.pairs(thread, others, costs);
        costs.iter_mut().for_each(|cost| *cost = in_steps(*cost));
    }

    fn parts(&mut self, union: &[usize], size: usize, masks: &[u8], costs: &mut Vec<f64>) {
        self.0.parts(union, size, masks, costs);
        costs.iter_mut().for_each(|cost| *cost = in_steps(*cost));
    }
}

/// A decision about threads that are numbered from 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    /// The threads of each core, and the slowdown of each against running alone.
    pub groups: Vec<(Vec<usize>, Vec<f64>)>,
    /// What it was chosen by, in words.
    pub by: String,
}

/// Why nothing was chosen.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undecided {
    #[error("the model knows no groups of {0} threads; train it for that SMT mode")]
    Mode(usize),
    #[error("no model is of {0:?} cores; train one for them")]
    Sort(CoreKind),
    #[error(transparent)]
    Stack(#[from] StackError),
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// What a model predicts of threads that are numbered from 0.
#[derive(Debug, Clone)]
pub(super) struct Predictions {
    pub costs: Costs,
    /// CPI throttled / CPI isolated, by thread.
    throttling: BTreeMap<SmtMode, Vec<f64>>,
}

impl Predictions {
    /// Of threads with these stacks, for groups of these modes.
    ///
    /// # Errors
    /// When a stack has other components than the model.
    pub fn new(
        symbiosis: &Symbiosis,
        model: &Model,
        modes: &[SmtMode],
        stacks: &Stacks,
    ) -> Result<Self, StackError> {
        let Stacks { throttled, observations } = stacks;
        let judged = (symbiosis.form, symbiosis.objective);
        let costs = Costs::predict(model, judged, modes, throttled)?.corrected_by(observations);
        let ratios =
            |throttling: &Throttling| throttled.iter().map(|s| throttling.ratio(s)).collect();
        let known = model.modes.iter().filter(|(mode, _)| modes.contains(mode));
        let throttling =
            known.filter_map(|(mode, trained)| Some((*mode, ratios(trained.throttling.as_ref()?))));
        Ok(Self { costs, throttling: throttling.collect() })
    }

    /// Slowdown of each thread of a group on one core against running alone; none where nothing is
    /// known about groups of that size.
    pub fn slowdowns(&self, members: &[usize]) -> Option<Vec<f64>> {
        if let [_] = members {
            return Some(vec![1.0]);
        }
        let mode = SmtMode::of(members.len())?;
        let table = self.costs.table(mode)?;
        let ratios = self.throttling.get(&mode);
        let ratio = |thread: usize| ratios.and_then(|ratios| ratios.get(thread)).unwrap_or(&1.0);
        let one = |&thread: &usize| table.slowdown(thread, members) * ratio(thread);
        Some(members.iter().map(one).collect())
    }
}

/// Chooses groups for a number of cores, each of some places. Where there are
/// more threads than places, groups become as wide as the model knows, and their
/// threads take turns; where that is not wide enough, whole groups do. Where
/// costs do not distinguish groups, those of before stay.
pub(super) fn choose(
    symbiosis: &Symbiosis,
    core_type: CoreKind,
    stacks: &Stacks,
    (cores, places): (usize, usize),
    previous: &[Vec<usize>],
) -> Result<Chosen, Undecided> {
    let &Symbiosis { form, objective, .. } = symbiosis;
    let threads = stacks.throttled.len();
    let model = match symbiosis.models.of(core_type) {
        Some(model) => model,
        // Where no thread shares a core, nothing is predicted.
        None if places <= 1 => &symbiosis.models.first,
        None => return Err(Undecided::Sort(core_type)),
    };
    let wanted = threads.div_ceil(cores.max(1)).next_power_of_two();
    let width = width(model, places.max(wanted));
    if width < wanted.min(places) {
        return Err(Undecided::Mode(wanted.min(places)));
    }
    let modes: Vec<SmtMode> =
        SmtMode::ALL.into_iter().filter(|mode| mode.threads() <= width).collect();
    let predictions = Predictions::new(symbiosis, model, &modes, stacks)?;
    let costs = &predictions.costs;
    let request = Request {
        cores: cores.max(threads.div_ceil(width)),
        previous,
        ..Request::new(threads, cores, width)
    };
    let grouping = group_by(&request, InSteps(costs))?;
    let groups = grouping.groups.into_iter().map(|members| {
        let slowdowns = predictions.slowdowns(&members).unwrap_or_else(|| vec![1.0; members.len()]);
        (members, slowdowns)
    });
    let feedback = if symbiosis.feedback { " and measured feedback" } else { "" };
    let alike = if costs.comparable() { "" } else { ", SMT modes taken for equally fast" };
    let by = format!("least {} by form {}{feedback}{alike}", objective.name(), form.name());
    Ok(Chosen { groups: groups.collect(), by })
}

/// The widest groups of at most so many threads that the model can predict,
/// with all that they are built from.
fn width(model: &Model, most: usize) -> usize {
    let modes = SmtMode::ALL.into_iter();
    let known = modes.take_while(|mode| model.modes.contains_key(mode));
    let fitting = known.map(SmtMode::threads).take_while(|&threads| threads <= most);
    fitting.last().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_to_whole_steps_and_stay_what_is_no_number() {
        for cost in [-1234.567_f64, -1.0, -3e-5, 0.0, 0.3, 7.0, 1e6 + 0.1] {
            let rounded = in_steps(cost);
            assert_eq!((rounded / RESOLUTION).fract(), 0.0);
            assert!((rounded - cost).abs() <= RESOLUTION / 2.0, "{cost} {rounded}");
        }
        assert!(in_steps(f64::NAN).is_nan());
        assert_eq!(in_steps(f64::INFINITY), f64::INFINITY);
    }
}
