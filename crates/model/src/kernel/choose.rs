//! Length scale and ridges, chosen within a training set on programs that are left out of it.
//!
//! As the ridges of other forms are (`validate::choose`): programs are dealt out to blocks, several
//! times, and each block is left out in turn. Of pairs, what misleads a pairing decides on length scale and
//! ridge of the interaction: the error of the two speeds' sum, less what fits a sum of one number for each
//! program. The squares of all errors decide on the ridge of the effects, and of wider groups,
//! of which few are observed, on everything. Programs that are left out are known by their stacks beside
//! others than each other.

use std::collections::BTreeMap;

use nalgebra::DVector;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::Held;
use super::fit::{Basis, Case};
use super::meetings::{Row, Table};
use crate::fit::unexplained;

/// In standard deviations.
const LENGTHS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];
/// In steps of half a decade.
const RIDGES: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];
/// Programs of a block, at least; five make ten pairs, five more than programs.
const BLOCK: usize = 5;
/// How often programs are dealt out.
const ROUNDS: u64 = 3;

/// Squares that mislead and all squares, by candidate.
pub(super) type Losses = [[[f64; 2]; RIDGES.len()]; LENGTHS.len()];

/// Chooses by these meetings; `may_leave_out` says of which programs blocks are made. Where nothing
/// can be told, the usual.
pub(crate) fn choose(table: &Table, may_leave_out: impl Fn(&str) -> bool) -> Held {
    losses(table, may_leave_out).map_or_else(Held::default, |losses| least(&losses))
}

/// Of equal ones those that hold back most.
fn least(losses: &Losses) -> Held {
    let mut all: Vec<(f64, usize, usize)> = Vec::new();
    for (length, of) in losses.iter().enumerate().rev() {
        let of = of.iter().enumerate().rev();
        all.extend(of.map(|(ridge, [misleading, _])| (*misleading, length, ridge)));
    }
    let best = all.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (_, length, interaction) = best.unwrap_or_default();
    let squares = losses[length].iter().map(|[_, squares]| *squares).enumerate().rev();
    let effects = squares.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at);
    Held { length: LENGTHS[length], interaction: RIDGES[interaction], effects: RIDGES[effects] }
}

/// None where no block tells anything.
pub(super) fn losses(table: &Table, may_leave_out: impl Fn(&str) -> bool) -> Option<Losses> {
    let pairs = table.rows.iter().all(|row| row.others.len() == 1);
    let names = table.programs.iter().enumerate();
    let mut dealt: Vec<usize> =
        names.filter(|(_, name)| may_leave_out(name)).map(|(at, _)| at).collect();
    // In an order that does not depend on who met whom first.
    dealt.sort_by(|a, b| table.programs.get(*a).cmp(&table.programs.get(*b)));
    let blocks = if pairs { (dealt.len() / BLOCK).max(2) } else { 2 };
    let size = dealt.len().div_ceil(blocks).max(1);
    let mut losses: Option<Losses> = None;
    for round in 0..ROUNDS {
        dealt.shuffle(&mut Pcg64Mcg::seed_from_u64(round));
        for block in dealt.chunks(size) {
            let Some(more) = of_block(table, block, pairs) else { continue };
            let losses = losses.get_or_insert([[[0.0; 2]; RIDGES.len()]; LENGTHS.len()]);
            for (to, from) in losses.as_flattened_mut().iter_mut().zip(more.as_flattened()) {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
            }
        }
    }
    losses
}

/// The meetings of none but programs that were left out, by those who met.
type Tests<'t> = BTreeMap<Vec<usize>, Vec<&'t Row>>;

fn of_block(table: &Table, block: &[usize], pairs: bool) -> Option<Losses> {
    let inside = |row: &Row| row.members().all(|one| block.contains(&one));
    let outside = |row: &Row| !row.members().any(|one| block.contains(&one));
    let mut tests: Tests<'_> = BTreeMap::new();
    for row in table.rows.iter().filter(|row| inside(row)) {
        let mut members: Vec<usize> = row.members().collect();
        members.sort_unstable();
        members.dedup();
        // One number for each program says nothing of a program beside itself.
        if members.len() == row.others.len() + 1 {
            tests.entry(members).or_default().push(row);
        }
    }
    if tests.len() <= if pairs { block.len() } else { 0 } {
        return None;
    }
    let known = table.company(outside);
    let seen = table.company(|row| !inside(row));
    let mut places = vec![None; known.len()];
    let mut stacks = Vec::new();
    for (place, stack) in places.iter_mut().zip(&known) {
        if let Some(stack) = stack {
            *place = Some(stacks.len());
            stacks.push(stack.as_slice());
        }
    }
    let cases: Vec<Case> = (table.rows.iter())
        .filter(|row| outside(row))
        .filter_map(|row| {
            let place = |one: &usize| places.get(*one).copied().flatten();
            let others = row.others.iter().map(place).collect::<Option<_>>()?;
            Some(Case { victim: place(&row.victim)?, others, speed: row.speed })
        })
        .collect();
    let mut losses: Losses = Default::default();
    for (length, losses) in LENGTHS.into_iter().zip(&mut losses) {
        let basis = Basis::of(&stacks, length)?;
        let spots: Vec<Option<DVector<f64>>> =
            seen.iter().map(|stack| Some(basis.place(stack.as_ref()?))).collect();
        for (ridge, loss) in RIDGES.into_iter().zip(losses) {
            let held = Held { length, interaction: ridge, effects: ridge };
            let solved = basis.solve(&cases, held)?;
            let mut errors = Vec::with_capacity(tests.len());
            let mut squares = 0.0;
            for rows in tests.values() {
                let mut sum = 0.0;
                for row in rows {
                    let spot = |one: &usize| spots.get(*one)?.as_ref();
                    let others: Vec<_> = row.others.iter().map(spot).collect::<Option<_>>()?;
                    let victim = spot(&row.victim)?;
                    let effects = solved.effects(victim, &others) - row.speed;
                    sum += effects + solved.interaction(victim, &others);
                    squares += effects * effects;
                }
                errors.push(sum);
            }
            let misleading = if pairs {
                let members: Vec<&[usize]> = tests.keys().map(Vec::as_slice).collect();
                unexplained(&members, &errors)?
            } else {
                errors.iter().map(|error| error * error).sum()
            };
            *loss = [misleading, squares];
        }
    }
    Some(losses)
}
