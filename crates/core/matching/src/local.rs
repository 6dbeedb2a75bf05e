//! Rearranging the threads of two groups.

use crate::costs::{Costs, GroupCosts, select};

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
pub(crate) fn improve<C: GroupCosts>(
    groups: &mut Vec<Vec<usize>>,
    limits: Limits,
    costs: &mut Costs<C>,
) {
    let mut all: Vec<Group> = std::mem::take(groups)
        .into_iter()
        .map(|threads| Group { cost: costs.of(&threads), threads, changed: 0 })
        .collect();
    let mut ways = Ways::default();
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
                if fresh && rearrange(one, two, &mut ways, limits.width, costs) {
                    (one.changed, two.changed) = (sweep, sweep);
                    better = true;
                }
            }
        }
    }
    groups.extend(all.into_iter().map(|g| g.threads).filter(|threads| !threads.is_empty()));
}

/// Makes two groups cheaper, if that can be.
fn rearrange<C: GroupCosts>(
    one: &mut Group,
    two: &mut Group,
    ways: &mut Ways,
    width: usize,
    costs: &mut Costs<C>,
) -> bool {
    if one.threads.len() + two.threads.len() <= ALL_WAYS {
        return split(one, two, ways, width, costs);
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

/// All ways to split a union of some threads, by how many are in the first part.
#[derive(Default)]
struct Ways {
    /// The union that was looked at last.
    union: Vec<usize>,
    /// For each size, the parts of that size: ascending, so that what a part leaves over stands as far
    /// from the end of the parts of the size that is left.
    masks: Vec<Vec<u8>>,
    /// The cost of each, of that union.
    costs: Vec<Vec<f64>>,
}

impl Ways {
    /// Makes them those of the union of two groups.
    fn fit(&mut self, one: &[usize], two: &[usize]) {
        self.union.clear();
        self.union.extend_from_slice(one);
        self.union.extend_from_slice(two);
        self.union.sort_unstable();
        let threads = self.union.len();
        if self.masks.len() != threads + 1 {
            self.masks = vec![Vec::new(); threads + 1];
            self.costs = self.masks.iter().map(|_| Vec::new()).collect();
            for mask in 0..=u8::MAX.checked_shr(8 - threads as u32).unwrap_or(0) {
                self.masks[mask.count_ones() as usize].push(mask);
            }
        }
    }
}

/// The best of all ways to split the union.
fn split<C: GroupCosts>(
    one: &mut Group,
    two: &mut Group,
    ways: &mut Ways,
    width: usize,
    costs: &mut Costs<C>,
) -> bool {
    ways.fit(&one.threads, &two.threads);
    let Ways { union, masks, costs: computed } = ways;
    let threads = union.len();
    let sizes = threads.saturating_sub(width)..=width.min(threads);
    for size in sizes.clone() {
        costs.parts(union, size, &masks[size], &mut computed[size]);
    }
    let before = one.cost + two.cost;
    let mut best = before;
    let mut found = None;
    for size in sizes {
        let rest = computed[threads - size].iter().rev();
        for ((&mask, &a), &b) in masks[size].iter().zip(&computed[size]).zip(rest) {
            // The last thread stays on the right: which core is which does not matter.
            let right = usize::from(mask) >> threads.saturating_sub(1) == 0;
            if right && a + b < best && worth(before, a + b) {
                (best, found) = (a + b, Some((mask, a, b)));
            }
        }
    }
    let Some((mask, a, b)) = found else { return false };
    (one.cost, two.cost) = (a, b);
    select(union, mask, &mut one.threads);
    select(union, !mask, &mut two.threads);
    true
}

/// The best move of one thread or swap of two.
fn exchange<C: GroupCosts>(
    one: &mut Group,
    two: &mut Group,
    width: usize,
    costs: &mut Costs<C>,
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
