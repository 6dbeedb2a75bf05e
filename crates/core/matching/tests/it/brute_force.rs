//! Exhaustive search over subsets, and what is wrong with a grouping.

/// Least cost of any way to put `threads` on at most `cores` cores in groups of
/// at most `width`.
pub fn least_cost(
    threads: usize,
    cores: usize,
    width: usize,
    mut cost: impl FnMut(&[usize]) -> f64,
) -> f64 {
    let all = 1_usize << threads;
    let group = |set: usize| -> Vec<usize> { (0..threads).filter(|k| set >> k & 1 == 1).collect() };
    let costs: Vec<f64> = (0..all)
        .map(|set| match set.count_ones() as usize {
            0 => 0.0,
            size if size <= width => cost(&group(set)),
            _ => f64::INFINITY,
        })
        .collect();
    // best[set]: on as many cores as the round says. No more cores help than
    // there are threads.
    let mut best = vec![f64::INFINITY; all];
    best[0] = 0.0;
    for _ in 0..cores.min(threads) {
        let mut next = best.clone();
        for set in 1..all {
            let first = set & set.wrapping_neg();
            for_each_part(first, set & !first, width - 1, &mut |part| {
                next[set] = next[set].min(costs[part] + best[set & !part]);
            });
        }
        best = next;
    }
    best[all - 1]
}

/// Calls `visit` with `part` and at most `more` elements of `rest` added to it.
fn for_each_part(part: usize, rest: usize, more: usize, visit: &mut dyn FnMut(usize)) {
    visit(part);
    let mut left = if more > 0 { rest } else { 0 };
    while left > 0 {
        let next = left & left.wrapping_neg();
        left &= !next;
        for_each_part(part | next, left, more - 1, visit);
    }
}

/// Least weight of a perfect matching of all vertices, by which edges of it are
/// preferred: (weight, −most preferred among the lightest).
pub fn lightest(
    vertices: usize,
    weight: impl Fn(usize, usize) -> i64,
    preferred: impl Fn(usize, usize) -> bool,
) -> (i128, i32) {
    let mut best = vec![(i128::MAX, 0); 1 << vertices];
    best[0] = (0, 0);
    for set in 1_usize..1 << vertices {
        if set.count_ones() % 2 == 1 {
            continue;
        }
        let i = set.trailing_zeros() as usize;
        best[set] = (i + 1..vertices)
            .filter(|j| set >> j & 1 == 1)
            .map(|j| {
                let rest = best[set & !(1 << i | 1 << j)];
                (rest.0 + i128::from(weight(i, j)), rest.1 - i32::from(preferred(i, j)))
            })
            .min()
            .unwrap();
    }
    best[(1 << vertices) - 1]
}

/// Holds groups against what was asked for.
pub fn assert_partition(groups: &[Vec<usize>], threads: usize, cores: usize, width: usize) {
    let mut named = groups.concat();
    named.sort_unstable();
    assert!(named.iter().copied().eq(0..threads), "{groups:?} do not name each of {threads} once");
    assert!(groups.len() <= cores, "{groups:?} need more than {cores} cores");
    for group in groups {
        assert!((1..=width).contains(&group.len()), "{group:?} is empty or wider than {width}");
        assert!(group.is_sorted(), "{group:?} is not in order");
    }
    assert!(groups.is_sorted(), "{groups:?} are not in order");
}
