//! Which groups must be counted so that some formulas have a value?
//!
//! A division needs one of the groups that take all counts that it compares;
//! an event outside of any division needs one of the groups that it is in.
//! Choosing the fewest groups is the set-cover problem; the greedy choice (the
//! group that settles most of what is open) is within a logarithm of the best,
//! and exact for the catalogues of this crate.

use std::collections::BTreeSet;

use super::expression::{Expression, Name};
use super::{Absent, Catalogue, Formula, Group};

/// Groups any of which will do.
type Need = Vec<usize>;

impl Catalogue {
    /// The groups that must be counted for these formulas, in the order of the
    /// file; a few, not always the fewest.
    ///
    /// # Errors
    /// When the catalogue has no such formula.
    pub fn groups_for<'a>(
        &self,
        formulas: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<&Group>, Absent> {
        let mut seen = BTreeSet::new();
        let mut needs = BTreeSet::new();
        for name in formulas {
            let formula = self.formula(name).ok_or_else(|| Absent::NoFormula(name.to_owned()))?;
            self.formula_needs(formula, &mut seen, &mut needs);
        }
        let mut chosen = BTreeSet::new();
        while !needs.is_empty() {
            let settles = |group: usize| needs.iter().filter(|need| need.contains(&group)).count();
            // The first of the best: `max_by_key` alone would take the last.
            let best = (0..self.groups.len()).rev().max_by_key(|&group| settles(group));
            let Some(best) = best.filter(|&group| settles(group) > 0) else { break };
            needs.retain(|need| !need.contains(&best));
            chosen.insert(best);
        }
        Ok(chosen.into_iter().filter_map(|group| self.groups.get(group)).collect())
    }

    fn formula_needs(
        &self,
        formula: &Formula,
        seen: &mut BTreeSet<usize>,
        needs: &mut BTreeSet<Need>,
    ) {
        self.divisions(&formula.expression, seen, needs);
        for &event in &formula.bare {
            let holds = |group: &Group| group.members.contains(&event);
            let groups = self.groups.iter().enumerate().filter(|(_, group)| holds(group));
            needs.insert(groups.map(|(place, _)| place).collect());
        }
    }

    /// Collects what the divisions below need, each formula once.
    fn divisions(
        &self,
        expression: &Expression,
        seen: &mut BTreeSet<usize>,
        needs: &mut BTreeSet<Need>,
    ) {
        let mut all = |parts: &[Expression]| {
            parts.iter().for_each(|part| self.divisions(part, seen, needs));
        };
        match expression {
            Expression::Number(_) | Expression::Name(Name::Event(_)) => {}
            Expression::Name(Name::Formula(index)) => {
                if let Some(formula) = self.formulas.get(*index).filter(|_| seen.insert(*index)) {
                    self.divisions(&formula.expression, seen, needs);
                }
            }
            Expression::Negate(inner) => all(std::slice::from_ref(inner)),
            Expression::Add(pair) | Expression::Subtract(pair) | Expression::Multiply(pair) => {
                all(pair.as_slice());
            }
            Expression::Min(list) | Expression::Max(list) => all(list),
            Expression::If(four) => all(four.as_slice()),
            Expression::Divide(division) => {
                all(&division.sides);
                if !division.groups.is_empty() {
                    needs.insert(division.groups.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{shipped, sound};
    use super::*;

    fn names(catalogue: &Catalogue, formulas: &[&str]) -> Vec<String> {
        let groups = catalogue.groups_for(formulas.iter().copied()).unwrap();
        groups.into_iter().map(|group| group.name.clone()).collect()
    }

    #[test]
    fn only_the_groups_that_are_needed_are_chosen() {
        let toy = sound();
        assert_eq!(names(&toy, &["running"]), ["stalls"]);
        assert_eq!(names(&toy, &["running", "l1d_bandwidth"]), ["stalls", "stores"]);
        assert_eq!(names(&toy, &[]), [""; 0]);
        let unknown = toy.groups_for(["walking"]).unwrap_err();
        assert_eq!(unknown, Absent::NoFormula("walking".into()));
    }

    /// Feliu et al., section 4.1: two quanta for the five components, more for deeper stacks.
    #[test]
    fn power8_stack_takes_two_groups_and_the_fine_one_five() {
        let power8 = shipped("power8");
        for (name, count) in [("cpi_stack", 2), ("cpi_stack_fine", 5)] {
            let stack = power8.sums().iter().find(|sum| sum.name == name).unwrap();
            let groups = power8.groups_for(stack.parts.iter().map(String::as_str)).unwrap();
            assert_eq!(groups.len(), count, "{name}");
        }
    }

    #[test]
    fn the_chosen_groups_give_every_formula_its_counts() {
        for (name, _) in Catalogue::builtin() {
            let catalogue = shipped(name);
            for formula in catalogue.formulas() {
                let groups = catalogue.groups_for([formula.name.as_str()]).unwrap();
                let counted = Counted { groups };
                let value = catalogue.evaluate(&formula.name, &counted);
                assert!(value.is_ok(), "{name}: {}: {value:?}", formula.name);
            }
        }
    }

    /// Counts of the chosen groups only; they differ, so that no divisor is 0.
    struct Counted<'a> {
        groups: Vec<&'a Group>,
    }

    impl super::super::Counts for Counted<'_> {
        fn count(&self, group: Option<&str>, event: &str) -> Option<f64> {
            let mut chosen = self.groups.iter().filter(|g| group.is_none_or(|name| g.name == name));
            let there = chosen.any(|group| group.events.iter().any(|name| name == event));
            there.then(|| 1_000.0 + event.bytes().map(f64::from).sum::<f64>())
        }
    }
}
