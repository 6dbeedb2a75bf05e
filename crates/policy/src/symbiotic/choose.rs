//! Steps 3 to 5: who shares a core with whom, from throttled stacks or mean stacks in company.

use symbiont_matching::{GroupError, Request, group};
use symbiont_model::{Costs, SmtMode, StackError};

use super::Symbiosis;
use super::estimate::Stacks;

/// Differences of costs that are smaller mean nothing: groups that cost the same
/// but for these stay together.
const RESOLUTION: f64 = 1e-4;

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
    #[error(transparent)]
    Stack(#[from] StackError),
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// Chooses groups for a number of cores, each of some places. Where there are
/// more threads than places, groups become as wide as the model knows, and their
/// threads take turns; where that is not wide enough, whole groups do. Where
/// costs do not tell groups apart, those of before stay.
pub(super) fn choose(
    symbiosis: &Symbiosis,
    stacks: &Stacks,
    (cores, places): (usize, usize),
    previous: &[Vec<usize>],
) -> Result<Chosen, Undecided> {
    let &Symbiosis { ref model, form, objective, .. } = symbiosis;
    let Stacks { by, throttled } = stacks;
    let wanted = by.len().div_ceil(cores.max(1)).next_power_of_two();
    let width = width(symbiosis, places.max(wanted));
    if width < wanted.min(places) {
        return Err(Undecided::Mode(wanted.min(places)));
    }
    let costs = Costs::predict(model, (form, objective), &SmtMode::ALL, (by, throttled))?;
    let request = Request {
        cores: cores.max(by.len().div_ceil(width)),
        previous,
        ..Request::new(by.len(), cores, width)
    };
    let cost = |members: &[usize]| (costs.cost(members) / RESOLUTION).round() * RESOLUTION;
    let grouping = group(&request, cost)?;
    let slowdowns = |members: &[usize]| -> Vec<f64> {
        let mode = SmtMode::of(members.len());
        let trained = mode.and_then(|mode| Some((costs.table(mode)?, model.modes.get(&mode)?)));
        let Some((table, trained)) = trained else { return vec![1.0; members.len()] };
        let one = |&thread: &usize| {
            let throttling = (trained.throttling.as_ref()).zip(throttled.get(thread));
            let ratio = throttling.map_or(1.0, |(throttling, stack)| throttling.ratio(stack));
            table.slowdown(thread, members) * ratio
        };
        members.iter().map(one).collect()
    };
    let groups = grouping.groups.into_iter().map(|members| {
        let slowdowns = slowdowns(&members);
        (members, slowdowns)
    });
    let by = format!("least {} by form {}", objective.name(), form.name());
    Ok(Chosen { groups: groups.collect(), by })
}

/// The widest groups of at most so many threads that the model can predict,
/// with all that they are built from.
fn width(symbiosis: &Symbiosis, most: usize) -> usize {
    let modes = SmtMode::ALL.into_iter();
    let known = modes.take_while(|mode| symbiosis.model.modes.contains_key(mode));
    let fitting = known.map(SmtMode::threads).take_while(|&threads| threads <= most);
    fitting.last().unwrap_or(1)
}
