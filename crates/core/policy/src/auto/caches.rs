//! What last-level caches of unequal size are worth to programs.
//!
//! # Approach
//! Some processors have one domain of cores with a larger cache (AMD's 3D V-Cache: 96 MiB and 32 MiB), often at a lower
//! clock. For each program and each size of cache that it ran in, the mean rate of misses is kept. What a program
//! *loses* in a domain is that rate times [`PENALTY`]. In a larger cache that it has not run in, it is expected to
//! miss in proportion to the size less often; in a smaller one, as often as where it ran. So a program that misses
//! in the smaller cache is sent to the larger one, and what it misses there says whether that was right: one that
//! streams loses the same in both, and is as good in either. A program that misses little is left where it is, or makes
//! room on the larger one for one that gains.
//!
//! Rates are kept for as long as the program is there: a program whose behaviour has changed in the larger cache may
//! stay in it until its rate there has changed, too.
//!
//! # Terms and units
//! Rates are misses per cycle, sizes bytes, losses shares of a thread's speed.
//!
//! # Properties
//! - What misses in the smaller cache goes to the larger one, with the reason
//!   (`programs_that_miss_in_the_smaller_cache_go_to_the_larger_one`); where that avoids no misses, nothing moves
//!   (`without_misses_that_a_larger_cache_avoids_no_program_moves`), or once
//!   (`programs_that_miss_alike_are_tried_once`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use symbiont_machine::{Ability, ProgramId, Signal, Support};

use super::domains::Domain;
use crate::View;

/// Cycles that a miss costs: some 400 to memory, of which about four are under way at a time.
const PENALTY: f64 = 100.0;
/// The most that is lost: a thread that only waits for memory gains little from some more hits.
const MOST: f64 = 0.5;
/// A loss that is not worth a move.
const LITTLE: f64 = 0.05;
/// How long a program must have run in a cache before its rate there counts: until the cache is filled, it misses more.
const SEEN: Duration = Duration::from_secs(1);
/// Time over which rates are meant.
const MEANT: Duration = Duration::from_secs(5);
/// The formula of catalogues.
const RATE: &str = "llc_miss_rate";

/// How often programs miss in caches of each size.
#[derive(Debug, Clone, Default)]
pub(super) struct Caches {
    rates: BTreeMap<ProgramId, BTreeMap<u64, Rate>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    mean: f64,
    over: Duration,
}

/// The sizes of last-level caches, if they are unequal.
fn sizes(caches: impl Iterator<Item = Option<u64>>) -> Option<BTreeSet<u64>> {
    let sizes: BTreeSet<u64> = caches.collect::<Option<_>>()?;
    (sizes.len() > 1).then_some(sizes)
}

/// Can it be counted how often threads miss in the last-level cache?
fn is_counted(offered: &Support) -> Result<(), String> {
    match offered.signals.get(&Signal::CacheMisses) {
        Some(Ability::Full) => Ok(()),
        Some(Ability::Partial(why)) if !why.contains("llc_miss") => Ok(()),
        Some(Ability::Partial(why) | Ability::Absent(why)) => Err(why.clone()),
        None => Err("this machine does not measure them".to_owned()),
    }
}

/// What a machine has of unequal caches.
#[derive(Debug, Clone, Default)]
pub(super) struct Unequal {
    /// In words; none: its caches are of equal size.
    pub text: Option<String>,
    /// Are misses to be counted?
    pub counts: bool,
}

impl Unequal {
    /// On a machine that offers this, with these domains.
    pub fn of(offered: &Support, domains: &[Domain]) -> Self {
        let Some(sizes) = sizes(domains.iter().map(|domain| domain.cache)) else {
            return Self::default();
        };
        let named: Vec<String> = sizes.into_iter().rev().map(size).collect();
        let named = format!("caches of unequal size ({})", named.join(" and "));
        match is_counted(offered) {
            Ok(()) => {
                let text =
                    format!("{named}: programs that miss in a smaller one go to a larger one");
                Self { text: Some(text), counts: true }
            }
            Err(why) => {
                let text =
                    format!("{named}, treated alike: cache misses cannot be counted ({why})");
                Self { text: Some(text), counts: false }
            }
        }
    }
}

impl Caches {
    /// Learns from a quantum.
    pub fn learn(&mut self, view: &View<'_>, domains: &[Domain], over: Duration) {
        if sizes(domains.iter().map(|domain| domain.cache)).is_none() {
            return;
        }
        let programs: BTreeSet<ProgramId> = view.programs.iter().map(|it| it.id).collect();
        self.rates.retain(|program, _| programs.contains(program));
        let mut sums: BTreeMap<(ProgramId, u64), (f64, f64)> = BTreeMap::new();
        for thread in &view.threads {
            let rate = thread.measured.and_then(|measured| measured.get(RATE).ok());
            let rate = rate.filter(|rate| rate.age == 0).map(|rate| rate.value);
            let did = thread.did.filter(|did| did.migrated != Some(true) && did.running > 0.0);
            let on = domains.iter().find(|d| thread.cpu.is_some_and(|cpu| d.cpus.contains(cpu)));
            let Some(((rate, did), bytes)) = rate.zip(did).zip(on.and_then(|d| d.cache)) else {
                continue;
            };
            if rate.is_finite() && rate >= 0.0 {
                let sum = sums.entry((thread.program, bytes)).or_default();
                *sum = (sum.0 + did.running, sum.1 + did.running * rate);
            }
        }
        for ((program, bytes), (ran, missed)) in sums {
            let known = self.rates.entry(program).or_default().entry(bytes).or_default();
            known.over = (known.over + over).min(MEANT);
            let weight = over.as_secs_f64() / known.over.as_secs_f64().max(f64::MIN_POSITIVE);
            known.mean += weight.min(1.0) * (missed / ran - known.mean);
        }
    }

    /// What a program loses in a cache of this size; none where nothing is known of it.
    pub fn loss(&self, program: ProgramId, bytes: u64) -> Option<f64> {
        let known = self.rates.get(&program)?;
        let mut known = known.iter().filter(|(_, rate)| rate.over >= SEEN);
        let (&nearest, rate) = known.clone().rfind(|(size, _)| **size <= bytes).or(known.next())?;
        // Of a larger one: at least that.
        let fits = (nearest as f64 / bytes.max(1) as f64).min(1.0);
        let loss = (PENALTY * rate.mean * fits).min(MOST);
        Some(if loss < LITTLE { 0.0 } else { loss })
    }

    /// What the caches say to a program's place in a domain.
    pub fn reason(&self, program: ProgramId, here: &Domain, domains: &[Domain]) -> Option<String> {
        let sizes = sizes(domains.iter().map(|domain| domain.cache))?;
        let (smallest, bytes) = (*sizes.first()?, here.cache?);
        let seen = self.rates.get(&program)?.get(&smallest)?;
        let lost = self.loss(program, smallest).filter(|_| seen.over >= SEEN)?;
        let (small, large) = (size(smallest), size(*sizes.last()?));
        Some(match (lost > 0.0, self.loss(program, bytes)? < lost) {
            (false, _) => format!("misses little in the {small} cache"),
            (true, true) => format!("misses in the {small} cache: the larger one, {}", size(bytes)),
            (true, false) if bytes > smallest => {
                format!(
                    "misses in the {small} cache, and as much in the larger one, {}",
                    size(bytes)
                )
            }
            (true, false) if self.loss(program, *sizes.last()?)? < lost => {
                format!(
                    "misses in the {small} cache, but the larger one, {large}, is of more use to others"
                )
            }
            (true, false) => {
                format!("misses in the {small} cache, and as much in the larger one, {large}")
            }
        })
    }
}

fn size(bytes: u64) -> String {
    if bytes >> 20 > 0 { format!("{} MiB", bytes >> 20) } else { format!("{} KiB", bytes >> 10) }
}

#[cfg(test)]
mod tests;
