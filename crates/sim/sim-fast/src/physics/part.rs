//! A few micro-traces that represent a whole phase.
//!
//! # Problem
//! A table runs the window model hundreds of times, often only to learn that two inputs together do no
//! more than each alone. An estimate is enough for that.
//!
//! # Approach
//! Each run of all micro-traces yields the cycles of each. After some runs in very different
//! environments, those few are known whose cycles per instruction follow those of all best: the sum of
//! squares of the relative differences is least. They are found greedily, then by swaps while these help.
//!
//! # Properties
//! - The piece that behaves like all of them is found (`the_piece_that_is_like_all_is_found`); pieces that
//!   differ are taken together (`pieces_that_differ_are_taken_together`).

/// Most exchanges.
const EXCHANGES: usize = 20;

/// Chooses `count` pieces. `instructions`: of each piece; `runs`: of each run, the cycles
/// of each piece. Returns their indices in ascending order.
#[must_use]
pub fn choose(instructions: &[f64], runs: &[Vec<f64>], count: usize) -> Vec<usize> {
    let all = instructions.len();
    let whole: f64 = instructions.iter().sum();
    let expected: Vec<f64> = runs.iter().map(|run| run.iter().sum::<f64>() / whole).collect();
    let miss = |chosen: &[usize]| -> f64 {
        let part: f64 = chosen.iter().map(|&piece| instructions[piece]).sum();
        let of = |run: &Vec<f64>| chosen.iter().map(|&piece| run[piece]).sum::<f64>() / part;
        let pairs = runs.iter().zip(&expected);
        pairs.map(|(run, expected)| (of(run) / expected - 1.0).powi(2)).sum()
    };
    let mut chosen: Vec<usize> = Vec::new();
    let best = |chosen: &[usize], place: usize| -> Option<(f64, Vec<usize>)> {
        let others = (0..all).filter(|piece| !chosen.contains(piece));
        let with = |piece| {
            let mut with = chosen.to_vec();
            if place < with.len() {
                with[place] = piece;
            } else {
                with.push(piece);
            }
            (miss(&with), with)
        };
        others.map(with).min_by(|a, b| a.0.total_cmp(&b.0))
    };
    while chosen.len() < count.min(all) {
        let Some((_, with)) = best(&chosen, chosen.len()) else { break };
        chosen = with;
    }
    for _ in 0..EXCHANGES {
        let swapped = (0..chosen.len()).filter_map(|place| best(&chosen, place));
        match swapped.min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((better, with)) if better < miss(&chosen) => chosen = with,
            _ => break,
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn the_piece_that_is_like_all_is_found() {
        let runs = vec![vec![1.0, 9.0, 5.0, 4.0], vec![8.0, 2.0, 5.0, 3.0]];
        assert_eq!(choose(&[1.0; 4], &runs, 1), [2]);
    }

    #[test]
    fn pieces_that_differ_are_taken_together() {
        let runs = vec![vec![10.0, 10.0, 2.0, 2.0], vec![2.0, 2.0, 10.0, 10.0]];
        let chosen = choose(&[1.0; 4], &runs, 2);
        assert!(chosen[0] < 2 && chosen[1] >= 2, "{chosen:?}");
        assert_eq!(choose(&[1.0; 4], &runs, 9), [0, 1, 2, 3]);
        assert!(choose(&[], &[], 3).is_empty());
    }
}
