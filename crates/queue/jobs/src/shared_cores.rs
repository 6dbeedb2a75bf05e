//! What programs take from each other on shared cores, as the managers of nodes have learned it.
//!
//! How fast a program is alone was not measured: so what was learned of it next to each co-runner is only comparable
//! with the rest, and is taken relative to the mean over all co-runners that it was seen next to. Where more programs
//! run on a node than share a core, any of them is as likely as any other to be on the victim's core.
//!
//! ```text
//! row[p][q] := ln speed of p next to q − mean over all co-runners of p
//! ln slowdown of p next to a set Q, against average ones := −(mean of row[p] over Q) × co-runners on its core
//! ```

use std::collections::BTreeMap;

use crate::{Numbering, Observations, ProgramNumber};

/// Less CPU time together says too little, seconds.
const LEAST_TOGETHER_S: f64 = 5.0;

/// What each co-runner adds to the logarithm of a program's speed, against the mean of all co-runners.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedCores {
    rows: BTreeMap<ProgramNumber, BTreeMap<ProgramNumber, f64>>,
    /// How many programs share a core at most.
    width: usize,
}

impl SharedCores {
    /// From all that was learned on a processor, for nodes on whose cores `width` programs run at a time. A program
    /// that was seen next to one other only is left out: there is nothing to compare.
    #[must_use]
    pub fn new(
        observations: &Observations,
        numbering: &Numbering,
        processor: &str,
        width: usize,
    ) -> Self {
        let mut rows: BTreeMap<ProgramNumber, BTreeMap<ProgramNumber, f64>> = BTreeMap::new();
        for (key, record) in observations.records() {
            let Some(program) = numbering.get(key) else { continue };
            let is_used = |next: &crate::NextTo| {
                next.processor == processor
                    && next.together_s >= LEAST_TOGETHER_S
                    && next.ln.is_finite()
            };
            let next = record.next_to.iter().filter(|(_, next)| is_used(next));
            let row: BTreeMap<ProgramNumber, f64> =
                next.filter_map(|(other, next)| Some((numbering.get(other)?, next.ln))).collect();
            if row.len() > 1 {
                let mean = row.values().sum::<f64>() / row.len() as f64;
                rows.insert(program, row.into_iter().map(|(one, ln)| (one, ln - mean)).collect());
            }
        }
        Self { rows, width }
    }

    /// How much the logarithm of a program's slowdown next to these exceeds that next to average co-runners; none: one
    /// of them is not known.
    #[must_use]
    pub fn against_average(
        &self,
        victim: ProgramNumber,
        co_runners: &[ProgramNumber],
    ) -> Option<f64> {
        let row = self.rows.get(&victim)?;
        let each: Option<Vec<f64>> = co_runners.iter().map(|one| row.get(one).copied()).collect();
        let sum: f64 = each?.iter().sum();
        let at_once = self.width.saturating_sub(1).min(co_runners.len());
        (at_once > 0).then(|| -sum * at_once as f64 / co_runners.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NextTo, ProgramKey};

    fn key(digest: &str) -> ProgramKey {
        ProgramKey { user: 0, digest: digest.to_owned() }
    }

    fn shared(width: usize) -> (SharedCores, impl Fn(&str) -> ProgramNumber) {
        let mut all = Observations::default();
        let learned = [
            ("a", "a", "P", -0.5, 10.0),
            ("a", "b", "P", -0.3, 10.0),
            ("a", "c", "P", -0.1, 10.0),
            // Not for long, on another processor, next to one other only.
            ("a", "d", "P", -0.9, 1.0),
            ("a", "e", "Q", -0.9, 10.0),
            ("b", "a", "P", -0.9, 10.0),
        ];
        for (one, other, processor, ln, together_s) in learned {
            let next = NextTo { processor: processor.to_owned(), ln, together_s };
            all.add_next_to((&key(one), one), &key(other), 1, &next);
        }
        let mut numbering = Numbering::of(&all);
        let _ = ["a", "b", "c", "d", "e"].map(|one| numbering.number(&key(one)));
        let shared = SharedCores::new(&all, &numbering, "P", width);
        (shared, move |one: &str| numbering.get(&key(one)).unwrap())
    }

    #[test]
    fn co_runners_are_compared_with_their_mean() {
        let (shared, number) = shared(2);
        let of = |victim: &str, others: &[&str]| {
            let others: Vec<ProgramNumber> = others.iter().map(|one| number(one)).collect();
            shared.against_average(number(victim), &others).map(|ln| (ln * 1e6).round() / 1e6)
        };
        assert_eq!(of("a", &["a"]), Some(0.2));
        assert_eq!(of("a", &["b"]), Some(0.0));
        assert_eq!(of("a", &["c"]), Some(-0.2));
        // One of the two is on its core.
        assert_eq!(of("a", &["a", "b"]), Some(0.1));
        for (victim, others) in [
            ("a", &["d"][..]),
            ("a", &["e"]),
            ("a", &["c", "d"]),
            ("b", &["a"]),
            ("c", &["a"]),
            ("a", &[]),
        ] {
            assert_eq!(of(victim, others), None, "{victim} {others:?}");
        }
    }

    #[test]
    fn where_programs_share_no_core_nothing_is_known() {
        for width in [0, 1] {
            let (shared, number) = shared(width);
            assert_eq!(shared.against_average(number("a"), &[number("c")]), None);
        }
        let (shared, number) = shared(4);
        let two = shared.against_average(number("a"), &[number("a"), number("c")]);
        assert!(two.is_some_and(|ln| ln.abs() < 1e-12), "{two:?}");
    }
}
