//! A workload whose programs are not named.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::{App, Form, Kind, Library, Workload};

/// One program for each hardware thread, drawn from a library's real programs
/// (from all, where there is none) with a seed: each as often as any other, but
/// for one.
#[must_use]
pub fn fill(library: &Library, places: usize, seed: u64) -> Workload {
    let all = library.list();
    let real: Vec<_> = all.iter().filter(|listed| listed.kind == Kind::Program).cloned().collect();
    let mut deck = if real.is_empty() { all } else { real };
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut apps = Vec::with_capacity(places);
    while apps.len() < places {
        deck.shuffle(&mut random);
        let round = deck.iter().take(places - apps.len());
        apps.extend(round.map(|listed| App { program: listed.name.clone(), form: Form::Single }));
    }
    Workload { name: format!("{places} programs drawn with seed {seed}"), apps }
}
