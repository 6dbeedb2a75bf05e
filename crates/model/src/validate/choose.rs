//! How far forms of many products are held back: chosen within a training set.
//!
//! # Problem
//! A ridge that is chosen by hand, on the programs that it is then judged by, makes a form look
//! better than it is. And the one of least error is not the one that pairs best: nearly all of the
//! error lies in what a thread suffers and does whoever is beside it, which no pairing changes.
//!
//! # Approach
//! The programs of the training set are dealt out to blocks, several times; each block is left out
//! in turn, and forms are fitted for each candidate on all groups without any of its programs. The
//! candidate is judged on the groups of none but these: each group's error in throughput (to first
//! order: an observation weighs 1/slowdown²), of which what fits a sum of one number for each
//! program is taken away. What is left is just what misleads a pairing. Least squares of that, over
//! all blocks, decides.
//!
//! Of wider groups only a few are observed of so few programs, and such a sum would fit them all.
//! There blocks are halves, and the whole error in throughput decides. Where no block tells anything,
//! the usual ridges stay.
//!
//! Nested in a fold, this sees the fold's training set only (Varma and Simon, *Bias in error
//! estimation when using cross-validation for model selection*, BMC Bioinformatics 7:91, 2006).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::{Group, TrainingSet};
use crate::fit::{Sums, features, unexplained};
use crate::{Form, Pressure, Ridges};

/// What may be chosen, in steps of about half a decade.
const CANDIDATES: [f64; 8] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Programs of a block, at least; five make ten pairs, five more than programs.
const BLOCK: usize = 5;

/// How often programs are dealt out.
const ROUNDS: u64 = 3;

/// Squares of errors that mislead, by candidate.
type Losses = [f64; CANDIDATES.len()];

/// A group by its programs.
type Named<'g, 'a> = (&'g BTreeSet<Arc<str>>, &'g Group<'a>);

impl<'a> TrainingSet<'a> {
    /// Chooses by the groups that are kept, and by no other.
    pub(super) fn choose(&self, keep: &dyn Fn(&BTreeSet<Arc<str>>) -> bool) -> Ridges {
        let Some([roots, pressure]) = self.losses(keep) else { return Ridges::default() };
        let [(roots, lost), (pressure, lost_by_pressure)] = [roots, pressure].map(|l| least(&l));
        // Of equal ones that with fewer coefficients.
        let best = if lost < lost_by_pressure { Form::Roots } else { Form::Pressure };
        Ridges { roots, pressure, best }
    }

    /// Those of the forms of roots and of pressure; none where nothing can be told.
    fn losses(&self, keep: &dyn Fn(&BTreeSet<Arc<str>>) -> bool) -> Option<[Losses; 2]> {
        let kept: Vec<Named<'_, 'a>> =
            self.groups.iter().filter(|(programs, _)| keep(programs)).collect();
        let pairs = kept.iter().all(|(_, group)| group.width() == 2);
        let programs: BTreeSet<&Arc<str>> =
            kept.iter().flat_map(|(programs, _)| programs.iter()).collect();
        // Rulers are never left out.
        let mut dealt: Vec<&Arc<str>> =
            programs.into_iter().filter(|program| !self.rulers.contains(*program)).collect();
        let blocks = if pairs { (dealt.len() / BLOCK).max(2) } else { 2 };
        let size = dealt.len().div_ceil(blocks).max(1);
        let forms = [&Pressure::all(self.components), &self.pressure]
            .map(|pressure| features(self.components, pressure));
        let mut losses = None;
        for round in 0..ROUNDS {
            dealt.shuffle(&mut Pcg64Mcg::seed_from_u64(round));
            for block in dealt.chunks(size) {
                let block: BTreeSet<&Arc<str>> = block.iter().copied().collect();
                let Some(tests) = left_out(&kept, &block, pairs) else { continue };
                let mut sums = Sums::new(1 + self.components * (2 + self.components));
                for (_, group) in kept.iter().filter(|(programs, _)| apart(programs, &block)) {
                    sums.merge(&group.moments.roots);
                }
                let more = forms.each_ref().map(|form| judge(&sums, form, &tests, pairs));
                let [Some(roots), Some(pressure)] = more else { continue };
                let losses = losses.get_or_insert([[0.0; CANDIDATES.len()]; 2]);
                for (losses, more) in losses.iter_mut().zip([roots, pressure]) {
                    losses.iter_mut().zip(more).for_each(|(loss, more)| *loss += more);
                }
            }
        }
        losses
    }
}

/// Is none of its programs in the block?
fn apart(programs: &BTreeSet<Arc<str>>, block: &BTreeSet<&Arc<str>>) -> bool {
    !programs.iter().any(|program| block.contains(program))
}

/// The groups of programs of a block, if there are so many that they tell something. One number
/// for each program says nothing of a program beside itself.
fn left_out<'g, 'a>(
    kept: &[Named<'g, 'a>],
    block: &BTreeSet<&Arc<str>>,
    pairs: bool,
) -> Option<Vec<Named<'g, 'a>>> {
    let within = |programs: &BTreeSet<Arc<str>>| programs.iter().all(|p| block.contains(p));
    let tests: Vec<Named<'g, 'a>> = (kept.iter().copied())
        .filter(|(programs, group)| within(programs) && programs.len() == group.width())
        .collect();
    let explained = if pairs { block.len() } else { 0 };
    (tests.len() > explained).then_some(tests)
}

/// What a form with these features, fitted on sums, loses on groups that are not in them.
fn judge(sums: &Sums, features: &[usize], tests: &[Named<'_, '_>], pairs: bool) -> Option<Losses> {
    let sums = sums.only(features);
    let mut losses = [0.0; CANDIDATES.len()];
    for (loss, ridge) in losses.iter_mut().zip(CANDIDATES) {
        let weights = sums.held_back(ridge)?;
        let error = |(_, group): &Named<'_, '_>| {
            group.moments.roots.excess(features, &weights) / group.observations.len() as f64
        };
        let errors: Vec<f64> = tests.iter().map(error).collect();
        *loss = if pairs { misleading(tests, &errors)? } else { squares(&errors) };
    }
    Some(losses)
}

impl Group<'_> {
    /// Threads that ran together.
    fn width(&self) -> usize {
        self.observations.first().map_or(0, |observation| observation.threads().len())
    }
}

/// The candidate of least loss, and the loss; of equal ones that which holds back most.
fn least(losses: &Losses) -> (f64, f64) {
    let judged = CANDIDATES.into_iter().zip(losses.iter().copied()).rev();
    let least = judged.min_by(|a, b| a.1.total_cmp(&b.1));
    least.unwrap_or((Ridges::default().roots, f64::INFINITY))
}

fn squares(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error * error).sum()
}

/// Squares of what is left of the errors of groups when that is taken away which fits a sum of one
/// number for each program.
fn misleading(tests: &[Named<'_, '_>], errors: &[f64]) -> Option<f64> {
    let mut places: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
    for program in tests.iter().flat_map(|(programs, _)| programs.iter()) {
        let next = places.len();
        places.entry(program).or_insert(next);
    }
    let members = |(programs, _): &Named<'_, '_>| -> Vec<usize> {
        programs.iter().filter_map(|program| places.get(program).copied()).collect()
    };
    let groups: Vec<Vec<usize>> = tests.iter().map(members).collect();
    unexplained(&groups.iter().map(Vec::as_slice).collect::<Vec<_>>(), errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::World;
    use crate::{Coefficients, CpiStack, Observation, Observed, SmtMode};

    fn world(delta: f64, noise: f64, seed: u64) -> World {
        let law = Coefficients::new(World::law(4, delta)).unwrap();
        World { noise, ..World::new(14, 2, law, seed) }
    }

    /// A program whose co-runners suffer by turns.
    fn odd(observation: &Observation) -> Observation {
        let odd = observation.programs().contains("program-03");
        let threads = observation.threads().iter().enumerate().map(|(at, thread)| {
            let factor = if odd { 2.0 + at as f64 } else { 1.0 };
            let parts = thread.together.parts().iter().map(|part| part * factor).collect();
            Observed { together: CpiStack::new(parts).unwrap(), ..thread.clone() }
        });
        Observation::new(threads.collect()).unwrap()
    }

    #[test]
    fn the_choice_knows_nothing_of_programs_that_are_left_out() {
        let world = world(0.5, 0.02, 1);
        let plain = world.observe(&world.all_pairs(), 3, 2);
        let spoiled: Vec<Observation> = plain.iter().map(odd).collect();
        let sets = [&plain, &spoiled].map(|all| TrainingSet::new(SmtMode::Smt2, all).unwrap());
        let losses = |without: &str| {
            let keep = |programs: &BTreeSet<Arc<str>>| !programs.contains(without);
            sets.each_ref().map(|set| set.losses(&keep).unwrap())
        };
        let [plain, spoiled] = losses("program-03");
        assert_eq!(plain, spoiled);
        // What it does see it goes by.
        let [plain, spoiled] = losses("program-04");
        assert_ne!(plain, spoiled);
    }

    #[test]
    fn noise_is_held_back_more_than_what_is_there() {
        let chosen = |delta: f64, noise: f64| -> f64 {
            let of = |seed: u64| {
                let world = world(delta, noise, seed);
                let observations = world.observe(&world.all_pairs(), 4, seed + 1);
                let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
                let Ridges { roots, pressure, .. } = set.fit().unwrap().ridges;
                roots.ln() + pressure.ln()
            };
            (0..4).map(of).sum()
        };
        let (there, noise) = (chosen(0.8, 0.0), chosen(0.0, 0.2));
        assert!(noise > there, "{noise} {there}");
    }

    /// With one number for each program all errors are explained, or with a pair that is out of
    /// line all but that pair's part.
    #[test]
    fn errors_that_go_with_programs_mislead_nobody() {
        let world = World::new(5, 1, Coefficients::new(World::law(2, 0.0)).unwrap(), 1);
        let observations = world.observe(&world.all_pairs(), 1, 1);
        let set = TrainingSet::new(SmtMode::Smt2, &observations).unwrap();
        let tests: Vec<Named<'_, '_>> = set.groups.iter().collect();
        let number = |program: &Arc<str>| f64::from(program.as_bytes()[9] - b'0') + 0.5;
        let mut errors: Vec<f64> =
            tests.iter().map(|(programs, _)| programs.iter().map(number).sum()).collect();
        assert!(misleading(&tests, &errors).unwrap() < 1e-12);
        errors[3] += 1.0;
        // Ten pairs, five numbers: one pair's own direction keeps (10 − 5) / 10 of its square.
        assert!((misleading(&tests, &errors).unwrap() - 0.5).abs() < 1e-9);
    }
}
