//! Groups of threads for the cores: exact in pairs, level by level above.
//!
//! # Approach
//! Threads are matched to pairs, pairs to groups of four, and so on, each level exactly; then each two
//! groups are rearranged where that makes them cheaper (Jiang et al.; Feliu et al., section 4.2). Where
//! cores allow it, a thread may get an empty partner: it stays alone if that costs less. Among equally
//! cheap pairings the one nearest to the previous is taken; a wider grouping gives way to the previous
//! one, rearranged as well, if it is no cheaper. Groups of many threads are rearranged only, which takes
//! less than half the time of building them up.
//!
//! # Properties
//! - Every grouping is a partition within cores and width (`every_grouping_is_a_partition`). In pairs it
//!   is the cheapest, with threads alone where that pays (`groups_of_two_cost_what_brute_force_finds`,
//!   `threads_are_alone_when_sharing_costs_more`).
//! - A grouping that is no dearer stays (`a_grouping_that_is_no_dearer_stays`,
//!   `equal_costs_keep_any_previous_grouping`).
//! - Groups of four are near the best (`groups_of_four_are_near_the_best`), also rearranged from quantum
//!   to quantum (`rearranged_groups_keep_up_with_noise_and_new_phases`) and from chance
//!   (`groups_of_chance_are_rearranged`). No core idles where using it pays
//!   (`idle_cores_are_used_at_once`).
//! - A cost that is no number is refused (`costs_that_are_no_numbers_are_refused_with_their_group`,
//!   `a_part_whose_cost_is_no_number_is_named`).
//! - Costs that compute many groups at once ([`GroupCosts::parts`]) make the same groups
//!   (`parts_computed_at_once_make_the_same_groups`).

use std::ops::Range;

use crate::costs::{Costs, GroupCosts, GroupError};
use crate::local::{Limits, improve};
use crate::perfect::perfect_matching;
use crate::weights::Weights;

/// How much a grouping may seem cheaper than the previous one by rounding of
/// sums alone, relative to the cost.
const EQUAL: f64 = 1e-9;

/// Groups of more than two are not built up for more threads than this: rearranging any is enough, and
/// takes half as long.
const BUILT_UP: usize = 128;

/// Least number of sweeps over groups that come from chance.
const FROM_CHANCE: usize = 2;

/// What shall be grouped.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// How many threads there are; they are named 0, 1, … in costs and groups.
    pub threads: usize,
    /// How many cores may be used, each for one group.
    pub cores: usize,
    /// Most threads of a group: 1, 2, 4, 8, … (the SMT width).
    pub width: usize,
    /// The groups of before, as far as their threads still live; empty if there
    /// were none. Kept where nothing cheaper is found; wide ones are rearranged.
    pub previous: &'a [Vec<usize>],
    /// For widths above 2: how often all pairs of groups are looked at, at most.
    /// Once is what Jiang et al. do; `usize::MAX` goes on until no two groups
    /// can be improved.
    pub sweeps: usize,
}

impl Request<'_> {
    /// Asks for groups without a past, at the usual effort.
    #[must_use]
    pub fn new(threads: usize, cores: usize, width: usize) -> Self {
        Self { threads, cores, width, previous: &[], sweeps: 1 }
    }
}

/// Which threads share a core.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// The groups, none of them empty; threads in order, groups in order of
    /// their first threads.
    pub groups: Vec<Vec<usize>>,
    /// Sum of their costs.
    pub cost: f64,
    /// Most by which a cheaper grouping could beat it: rounding of costs only
    /// for widths 1 and 2, unknown above.
    pub excess: Option<f64>,
}

/// Costs that a function returns.
struct CostFunction<F>(F);

impl<F: FnMut(&[usize]) -> f64> GroupCosts for CostFunction<F> {
    fn cost(&mut self, group: &[usize]) -> f64 {
        (self.0)(group)
    }
}

/// Groups threads so that the sum of the costs of the groups is small: least
/// for widths 1 and 2; above, pairs are matched, then pairs of pairs, and so
/// on, and then each two groups are rearranged as long as that pays (Jiang et
/// al., *Analysis and approximation of optimal co-scheduling on chip
/// multiprocessors*, 2008; Feliu et al., section 4.2). The previous groups,
/// with what few new threads there are placed among them, are rearranged as well, and
/// taken if they are no dearer then. Of more than 128 threads groups are not built up: the previous
/// ones, or any if they hold too few, are spread over all cores and rearranged.
///
/// `cost` is asked about groups of 1 to `width` threads, in order. Cores may
/// stay idle and threads alone where that costs less.
///
/// # Errors
/// More threads than places, a width that is no power of two, or a cost that
/// is not finite.
pub fn group(
    request: &Request<'_>,
    cost: impl FnMut(&[usize]) -> f64,
) -> Result<Grouping, GroupError> {
    group_by(request, CostFunction(cost))
}

/// The same by costs that can compute many groups at once.
///
/// # Errors
/// Those of [`group`].
pub fn group_by(request: &Request<'_>, costs: impl GroupCosts) -> Result<Grouping, GroupError> {
    let &Request { threads, cores, width, .. } = request;
    if !width.is_power_of_two() {
        return Err(GroupError::Width { width });
    }
    if threads > cores.saturating_mul(width) {
        return Err(GroupError::NoRoom { threads, cores, width });
    }
    let mut costs = Costs::new(costs);
    let (mut groups, excess) = if width > 2 {
        (wide(request, &mut costs)?, None)
    } else {
        let (groups, excess) = built_up(request, &mut costs)?;
        (groups, Some(excess))
    };
    groups.sort_unstable();
    let cost = costs.total(&groups);
    costs.check()?;
    Ok(Grouping { groups, cost, excess })
}

/// Groups that are matched level by level, from threads alone. Also says how far from least the last
/// level may be.
fn built_up<C: GroupCosts>(
    request: &Request<'_>,
    costs: &mut Costs<C>,
) -> Result<(Vec<Vec<usize>>, f64), GroupError> {
    let before = Before::new(request.threads, request.previous);
    let mut groups: Vec<Vec<usize>> = (0..request.threads).map(|thread| vec![thread]).collect();
    let mut excess = 0.0;
    let mut size = 1;
    while size < request.width {
        size *= 2;
        let places = request.cores.saturating_mul(request.width / size);
        (groups, excess) = merge(&groups, places, &before, costs)?;
    }
    Ok((groups, excess))
}

/// Groups of more than two: built up and rearranged, or the previous ones rearranged, if those are no
/// dearer. Of many threads the previous ones, or any, are rearranged.
fn wide<C: GroupCosts>(
    request: &Request<'_>,
    costs: &mut Costs<C>,
) -> Result<Vec<Vec<usize>>, GroupError> {
    let &Request { threads, cores, width, sweeps, .. } = request;
    let rearranged = |mut groups: Vec<Vec<usize>>, sweeps: usize, costs: &mut Costs<C>| {
        improve(&mut groups, Limits { cores, width, sweeps }, costs);
        groups
    };
    let placed = placing_all(request, costs);
    if threads > BUILT_UP && sweeps > 0 {
        let sweeps = if placed.is_some() { sweeps } else { sweeps.max(FROM_CHANCE) };
        let all: Vec<usize> = (0..threads).collect();
        let groups = placed.unwrap_or_else(|| all.chunks(width).map(<[usize]>::to_vec).collect());
        return Ok(rearranged(spread(groups, cores), sweeps, costs));
    }
    let kept = placed.map(|groups| rearranged(groups, sweeps, costs));
    let (built, _) = built_up(request, costs)?;
    let built = rearranged(built, sweeps, costs);
    let Some(kept) = kept else { return Ok(built) };
    let cost = costs.total(&built);
    let no_dearer = costs.total(&kept) <= cost + EQUAL * cost.abs();
    Ok(if no_dearer { kept } else { built })
}

/// Divides the largest group, again and again, until no core idles, or every thread is alone.
fn spread(mut groups: Vec<Vec<usize>>, cores: usize) -> Vec<Vec<usize>> {
    while groups.len() < cores {
        let largest = groups.iter_mut().max_by_key(|group| group.len());
        let Some(largest) = largest.filter(|group| group.len() > 1) else { break };
        let half = largest.split_off(largest.len() / 2);
        groups.push(half);
    }
    groups
}

/// The grouping of before, seen from the threads.
struct Before {
    /// For each thread, the number of its group.
    group_of: Vec<Option<usize>>,
    /// How many threads of each group still live.
    sizes: Vec<usize>,
}

impl Before {
    fn new(threads: usize, previous: &[Vec<usize>]) -> Self {
        let mut group_of = vec![None; threads];
        let mut sizes = vec![0; previous.len()];
        for (k, group) in previous.iter().enumerate() {
            for &thread in group {
                if let Some(place @ None) = group_of.get_mut(thread) {
                    *place = Some(k);
                    sizes[k] += 1;
                }
            }
        }
        Self { group_of, sizes }
    }

    /// The group that held all of `threads`, if one did.
    fn home(&self, threads: &[usize]) -> Option<usize> {
        let (&first, rest) = threads.split_first()?;
        let home = self.group_of[first]?;
        rest.iter().all(|&thread| self.group_of[thread] == Some(home)).then_some(home)
    }

    /// Pairs of these groups that were together, and of those that were all of a group with each
    /// vertex that stands for nothing.
    fn pairs(&self, groups: &[Vec<usize>], vertices: usize) -> Vec<(usize, usize)> {
        let mut here: Vec<Vec<usize>> = vec![Vec::new(); self.sizes.len()];
        for (i, group) in groups.iter().enumerate() {
            if let Some(home) = self.home(group) {
                here[home].push(i);
            }
        }
        let mut pairs = Vec::new();
        for (here, &size) in here.iter().zip(&self.sizes) {
            for (at, &i) in here.iter().enumerate() {
                pairs.extend(here[at + 1..].iter().map(|&j| (i, j)));
                if groups[i].len() == size {
                    pairs.extend((groups.len()..vertices).map(|j| (i, j)));
                }
            }
        }
        pairs
    }
}

/// Pairs some groups and leaves others as they are, so that at most `places`
/// come out, at least cost. Also says how far from least that may be.
///
/// A group that stays as it is gets a partner that stands for nothing. There
/// are as many of those as places allow.
fn merge<C: GroupCosts>(
    groups: &[Vec<usize>],
    places: usize,
    before: &Before,
    costs: &mut Costs<C>,
) -> Result<(Vec<Vec<usize>>, f64), GroupError> {
    let count = groups.len();
    let vertices = places.saturating_mul(2).min(2 * count);
    let of = |k: usize| groups.get(k).map_or(&[][..], Vec::as_slice);
    let mut union = Vec::new();
    let are_threads = groups.iter().enumerate().all(|(at, group)| group[..] == [at]);
    let weights = Weights::from_rows(vertices, |i, others, weights| {
        let Range { start, end } = others;
        // Pairs of threads are asked for together.
        let pairs = if are_threads { end.min(count).saturating_sub(start) } else { 0 };
        let (pairs, rest) = weights.split_at_mut(pairs);
        let first = start + pairs.len();
        costs.pairs(i, start..first, pairs);
        for (weight, j) in rest.iter_mut().zip(first..end) {
            join(of(i), of(j), &mut union);
            *weight = costs.of(&union);
        }
    })?;
    costs.check()?;
    let matching = perfect_matching(&weights, before.pairs(groups, vertices))?;
    let mut merged = Vec::with_capacity(vertices / 2);
    for (i, j) in matching.pairs() {
        join(of(i), of(j), &mut union);
        if !union.is_empty() {
            merged.push(union.clone());
        }
    }
    Ok((merged, weights.rounding()))
}

/// Writes the threads of two groups in order.
fn join(some: &[usize], more: &[usize], union: &mut Vec<usize>) {
    union.clear();
    union.extend_from_slice(some);
    union.extend_from_slice(more);
    union.sort_unstable();
}

/// Places all threads in the previous groups: threads that are gone leave, and each new one joins where that costs
/// least. None if the groups do not fit the cores, or if more than a quarter of the threads are new.
fn placing_all<C: GroupCosts>(
    request: &Request<'_>,
    costs: &mut Costs<C>,
) -> Option<Vec<Vec<usize>>> {
    let &Request { threads, cores, width, previous, .. } = request;
    let mut new = vec![true; threads];
    let mut stays = |thread: &usize| new.get_mut(*thread).is_some_and(std::mem::take);
    let mut groups: Vec<Vec<usize>> =
        previous.iter().map(|group| group.iter().copied().filter(&mut stays).collect()).collect();
    groups.retain(|group| !group.is_empty());
    let new: Vec<usize> = (0..threads).filter(|&thread| new[thread]).collect();
    let fits = groups.len() <= cores && groups.iter().all(|group| group.len() <= width);
    if !fits || 4 * new.len() > threads {
        return None;
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.resize(cores.min(groups.len() + new.len()), Vec::new());
    let mut joined = Vec::with_capacity(width);
    for thread in new {
        let mut more = |group: &Vec<usize>| {
            join(group, &[thread], &mut joined);
            costs.of(&joined) - costs.of(group)
        };
        let open = groups.iter_mut().filter(|group| group.len() < width);
        let dearer = open.map(|group| (more(group), group));
        let (_, group) = dearer.min_by(|a, b| a.0.total_cmp(&b.0))?;
        group.push(thread);
        group.sort_unstable();
    }
    groups.retain(|group| !group.is_empty());
    Some(groups)
}
