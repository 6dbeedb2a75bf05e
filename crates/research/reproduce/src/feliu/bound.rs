//! A static grouping that is better than any of its neighbours, as a bound for groups of four: the best pairs can be
//! found exactly, the best wider groups cannot.
//!
//! ```text
//! groups = the programs in order
//! while a swap of two programs gains throughput by the slowdowns of pairs: make the best such swap
//! repeat
//!     measure the groups that the SWAPS best swaps by pairs would make
//!     make the best of these by measured throughput; end if none gains
//! ```
//!
//! By the slowdowns of pairs, each co-runner slows a program by as much as it does when it is the only one.
//! Groups are measured on one core, without what other cores take of caches and memory, and which cores
//! are near memory is left out: on cores of both nodes others may do better.
//!
//! # Properties
//! - What it finds is at least as good as the grouping by pairs, and better where pairs mislead
//!   (`measured_swaps_mend_what_pairs_mislead`).

use std::collections::BTreeSet;

use symbiont_policy::PairSlowdowns;

use symbiont_experiments_sim::training::Throughputs;

/// Swaps that are measured in each step.
const SWAPS: usize = 16;
/// Most steps by pairs, and by measurements.
const STEPS: (usize, usize) = (1000, 20);
/// Less is no gain of throughput.
const LEAST: f64 = 1e-6;

/// A group and a place in it, and another one.
type Swap = [(usize, usize); 2];

/// Groups of this many of the programs; else the groups that have to be measured first.
///
/// # Errors
/// The groups of which nothing is known, in order of their names.
pub fn search(
    programs: &[String],
    width: usize,
    pairs: &PairSlowdowns,
    known: &Throughputs,
) -> Result<Vec<Vec<String>>, BTreeSet<Vec<String>>> {
    let all: Vec<usize> = (0..programs.len()).collect();
    let mut groups: Vec<Vec<usize>> = all.chunks(width).map(<[usize]>::to_vec).collect();
    let excess = excess(programs, pairs);
    let guess = |group: &[usize]| by_pairs(&excess, group);
    let names = |group: &[usize]| -> Vec<String> {
        group.iter().filter_map(|at| programs.get(*at).cloned()).collect()
    };
    for _ in 0..STEPS.0 {
        match by_gain(&groups, guess).first() {
            Some((gain, swap)) if *gain > LEAST => apply(&mut groups, *swap),
            _ => break,
        }
    }
    for _ in 0..STEPS.1 {
        let mut missing = BTreeSet::new();
        let mut measured = |group: &[usize]| {
            let mut key = names(group);
            key.sort();
            let value = known.get(&key).copied();
            missing.extend(value.is_none().then_some(key));
            value.unwrap_or(f64::NAN)
        };
        let mut best: Option<(f64, Swap)> = None;
        for (_, swap) in by_gain(&groups, guess).into_iter().take(SWAPS) {
            let gain = gain(&groups, swap, &mut measured);
            if gain > best.map_or(LEAST, |(best, _)| best) {
                best = Some((gain, swap));
            }
        }
        match best {
            _ if !missing.is_empty() => return Err(missing),
            Some((_, swap)) => apply(&mut groups, swap),
            None => break,
        }
    }
    Ok(groups.iter().map(|group| names(group)).collect())
}

/// By how much each program is slowed by each other one, beyond 1.
fn excess(programs: &[String], pairs: &PairSlowdowns) -> Vec<Vec<f64>> {
    let of = |victim: &String, other: &String| pairs.slowdown(victim, other).unwrap_or(1.0) - 1.0;
    let row = |victim| programs.iter().map(|other| of(victim, other)).collect();
    programs.iter().map(row).collect()
}

/// The throughput of a group if each co-runner slowed a program as it does alone with it.
fn by_pairs(excess: &[Vec<f64>], group: &[usize]) -> f64 {
    let of = |(at, victim): (usize, &usize)| {
        let others = group.iter().enumerate().filter(|(other, _)| *other != at);
        (1.0 + others.map(|(_, other)| excess[*victim][*other]).sum::<f64>()).recip()
    };
    group.iter().enumerate().map(of).sum()
}

/// All swaps of programs of two groups, those that gain most first.
fn by_gain(groups: &[Vec<usize>], value: impl Fn(&[usize]) -> f64) -> Vec<(f64, Swap)> {
    let mut swaps = Vec::new();
    for one in 0..groups.len() {
        for other in one + 1..groups.len() {
            for at in 0..groups[one].len() {
                for there in 0..groups[other].len() {
                    let swap = [(one, at), (other, there)];
                    swaps.push((gain(groups, swap, &mut |group| value(group)), swap));
                }
            }
        }
    }
    swaps.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    swaps
}

fn gain(groups: &[Vec<usize>], swap: Swap, value: &mut dyn FnMut(&[usize]) -> f64) -> f64 {
    let [(one, at), (other, there)] = swap;
    let (mut first, mut second) = (groups[one].clone(), groups[other].clone());
    std::mem::swap(&mut first[at], &mut second[there]);
    value(&first) + value(&second) - value(&groups[one]) - value(&groups[other])
}

fn apply(groups: &mut [Vec<usize>], [(one, at), (other, there)]: Swap) {
    let moved = std::mem::take(&mut groups[one][at]);
    groups[one][at] = std::mem::replace(&mut groups[other][there], moved);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAMS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// Programs slow each other down by what both use of a resource.
    fn pairs(uses: &[f64; 8]) -> PairSlowdowns {
        let row = |own: &f64| uses.iter().map(|other| 1.0 + own * other).collect();
        let names = PROGRAMS.map(str::to_owned).to_vec();
        PairSlowdowns::new("synthetic".to_owned(), names, uses.iter().map(row).collect()).unwrap()
    }

    /// Searches until all that it asks for is measured.
    fn found(pairs: &PairSlowdowns, truth: &PairSlowdowns) -> (Vec<Vec<String>>, usize) {
        let programs = PROGRAMS.map(str::to_owned).to_vec();
        let mut known = Throughputs::new();
        for _ in 0..STEPS.1 + 1 {
            match search(&programs, 4, pairs, &known) {
                Ok(groups) => return (groups, known.len()),
                Err(wanted) => {
                    assert!(wanted.iter().all(|group| group.is_sorted() && group.len() == 4));
                    known.extend(
                        wanted.into_iter().map(|it| (it.clone(), throughput(&[it], truth))),
                    );
                }
            }
        }
        panic!("it does not end")
    }

    fn throughput(groups: &[Vec<String>], truth: &PairSlowdowns) -> f64 {
        let of = |group: &Vec<String>| by_pairs(&excess(group, truth), &[0, 1, 2, 3]);
        groups.iter().map(of).sum()
    }

    #[test]
    fn measured_swaps_mend_what_pairs_mislead() {
        let truth = pairs(&[2.0, 2.0, 2.0, 2.0, 0.1, 0.1, 0.1, 0.1]);
        let misleading = pairs(&[0.1, 2.0, 0.1, 2.0, 0.1, 2.0, 0.1, 2.0]);
        let (right, _) = found(&truth, &truth);
        let heavy = |group: &Vec<String>| group.iter().filter(|name| name.as_str() < "e").count();
        let (mended, measured) = found(&misleading, &truth);
        assert!(throughput(&mended, &truth) > 0.99 * throughput(&right, &truth), "{mended:?}");
        assert_eq!(heavy(&mended[0]), heavy(&right[0]).min(4), "{mended:?} {right:?}");
        assert!(measured <= 70, "{measured} of all groups of four");
        let mut all: Vec<&str> = mended.iter().flatten().map(String::as_str).collect();
        all.sort_unstable();
        assert_eq!(all, PROGRAMS);
    }
}
