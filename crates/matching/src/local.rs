//! Rearranging the threads of two groups.

use crate::group::Costs;

/// Largest union that is split in every possible way.
const ALL_WAYS: usize = 8;

/// How much cheaper, relative to the cost, a rearrangement must be.
const WORTH: f64 = 1e-9;

/// What a rearrangement must keep to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most groups.
    pub cores: usize,
    /// Most threads of a group.
    pub width: usize,
    /// Most looks at all pairs of groups.
    pub sweeps: usize,
}

/// One group (its threads in order) and its cost.
struct Group {
    threads: Vec<usize>,
    cost: f64,
    /// The sweep in which it was changed last.
    changed: usize,
}

/// Rearranges the threads of each two groups where that makes the two cheaper.
///
/// Up to eight threads are split in the best of all ways; more by the best of
/// all moves of one thread and swaps of two, again and again. Once no group
/// changed since they were looked at, two groups are not looked at again.
pub(crate) fn improve<F: FnMut(&[usize]) -> f64>(
    groups: &mut Vec<Vec<usize>>,
    limits: Limits,
    costs: &mut Costs<F>,
) {
    let mut all: Vec<Group> = std::mem::take(groups)
        .into_iter()
        .map(|threads| Group { cost: costs.of(&threads), threads, changed: 0 })
        .collect();
    let mut sweep = 0;
    let mut better = true;
    while better && sweep < limits.sweeps {
        sweep += 1;
        better = false;
        // An idle core may take a part of any group.
        all.retain(|group| !group.threads.is_empty());
        if all.len() < limits.cores {
            all.push(Group { threads: Vec::new(), cost: 0.0, changed: sweep });
        }
        for b in 1..all.len() {
            let (head, tail) = all.split_at_mut(b);
            let Some(two) = tail.first_mut() else { break };
            for one in head {
                let fresh = one.changed.max(two.changed) + 1 >= sweep;
                if fresh && rearrange(one, two, limits.width, costs) {
                    (one.changed, two.changed) = (sweep, sweep);
                    better = true;
                }
            }
        }
    }
    groups.extend(all.into_iter().map(|g| g.threads).filter(|threads| !threads.is_empty()));
}

/// Makes two groups cheaper, if that can be.
fn rearrange<F: FnMut(&[usize]) -> f64>(
    one: &mut Group,
    two: &mut Group,
    width: usize,
    costs: &mut Costs<F>,
) -> bool {
    if one.threads.len() + two.threads.len() <= ALL_WAYS {
        return split(one, two, width, costs);
    }
    let mut better = false;
    while exchange(one, two, width, costs) {
        better = true;
    }
    better
}

fn worth(before: f64, after: f64) -> bool {
    after < before - WORTH * before.abs()
}

/// The best of all ways to split the union.
fn split<F: FnMut(&[usize]) -> f64>(
    one: &mut Group,
    two: &mut Group,
    width: usize,
    costs: &mut Costs<F>,
) -> bool {
    let mut union = [one.threads.as_slice(), &two.threads].concat();
    union.sort_unstable();
    let before = one.cost + two.cost;
    let mut best = before;
    let mut found = false;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    // The last thread stays on the right: which core is which does not matter.
    for chosen in 0..1_u32 << union.len().saturating_sub(1) {
        let count = chosen.count_ones() as usize;
        if count > width || union.len() - count > width {
            continue;
        }
        left.clear();
        right.clear();
        for (k, &thread) in union.iter().enumerate() {
            let side = if chosen >> k & 1 == 1 { &mut left } else { &mut right };
            side.push(thread);
        }
        let (a, b) = (costs.of(&left), costs.of(&right));
        if worth(before, a + b) && a + b < best {
            (one.cost, two.cost, best, found) = (a, b, a + b, true);
            one.threads.clone_from(&left);
            two.threads.clone_from(&right);
        }
    }
    found
}

/// The best move of one thread or swap of two.
fn exchange<F: FnMut(&[usize]) -> f64>(
    one: &mut Group,
    two: &mut Group,
    width: usize,
    costs: &mut Costs<F>,
) -> bool {
    let before = one.cost + two.cost;
    let mut best: Option<(Group, Group)> = None;
    for out in choices(&one.threads) {
        for back in choices(&two.threads) {
            if out == back {
                continue;
            }
            let (a, b) = (traded(&one.threads, out, back), traded(&two.threads, back, out));
            if a.len() > width || b.len() > width {
                continue;
            }
            let (x, y) = (costs.of(&a), costs.of(&b));
            let least = best.as_ref().map_or(before, |(a, b)| a.cost + b.cost);
            if worth(before, x + y) && x + y < least {
                let group = |threads, cost| Group { threads, cost, changed: 0 };
                best = Some((group(a, x), group(b, y)));
            }
        }
    }
    let Some((a, b)) = best else { return false };
    (*one, *two) = (a, b);
    true
}

/// Any one of some threads, or none.
fn choices(threads: &[usize]) -> impl Iterator<Item = Option<usize>> {
    threads.iter().copied().map(Some).chain([None])
}

/// A group after one thread has left and one has come.
fn traded(threads: &[usize], leaves: Option<usize>, comes: Option<usize>) -> Vec<usize> {
    let stay = threads.iter().copied().filter(|&thread| Some(thread) != leaves);
    let mut group: Vec<usize> = stay.chain(comes).collect();
    group.sort_unstable();
    group
}
