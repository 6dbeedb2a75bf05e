//! What can be seen of a run from outside: categories, and which threads share a core.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Machine, Target, ThreadId};
use symbiont_policy::{Variant, dominant};
use symbiont_topology::CoreId;

use crate::SimController;

/// What was seen of a program by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// Mean instructions per cycle.
    pub ipc: f64,
    /// For each variant that was measured.
    pub seen: BTreeMap<String, VariantShares>,
}

/// The categories of one variant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantShares {
    /// Mean share of the slots of each category, in the catalogue's order.
    pub shares: Vec<(String, f64)>,
    /// Share of quanta whose dominant category differs from that of the quantum before.
    pub changes: f64,
}

impl VariantShares {
    /// The dominant category of the means.
    #[must_use]
    pub fn category(&self) -> Option<&str> {
        let dominant = dominant(self.shares.iter().map(|(_, share)| *share));
        self.shares.get(dominant).map(|(name, _)| name.as_str())
    }
}

/// Pairs by the categories of both, the first in the alphabet first.
pub(super) type Pairs = BTreeMap<(String, String), u64>;

/// Adds which threads share a core after the last decision, by their categories.
pub(super) fn pairs(controller: &SimController<'_, '_>, variant: Variant, pairs: &mut Pairs) {
    let Some(step) = controller.last() else { return };
    let topology = controller.machine().topology();
    let mut cores: BTreeMap<CoreId, Vec<&ThreadId>> = BTreeMap::new();
    for (id, assignment) in &step.placement {
        let Target::Cpus(cpus) = &assignment.target else { continue };
        if let Some(core) = cpus.first().and_then(|pu| topology.core_of(pu)) {
            cores.entry(core.id).or_default().push(id);
        }
    }
    let category = |id: &ThreadId| {
        let shares = step.measurements.get(id)?.categories(variant.signal()).ok()?;
        let dominant = dominant(shares.iter().map(|(_, share)| share.value));
        shares.get(dominant).map(|(name, _)| (*name).to_owned())
    };
    for threads in cores.values() {
        let [one, other] = threads[..] else { continue };
        if let (Some(one), Some(other)) = (category(one), category(other)) {
            let pair = if one <= other { (one, other) } else { (other, one) };
            *pairs.entry(pair).or_default() += 1;
        }
    }
}

/// Sums over the quanta of a program by itself.
#[derive(Debug, Default)]
pub(super) struct Sums {
    quanta: u64,
    ipc: f64,
    variants: BTreeMap<String, Variants>,
}

#[derive(Debug, Default)]
struct Variants {
    names: Vec<String>,
    shares: Vec<f64>,
    last: Option<usize>,
    changes: u64,
}

impl Sums {
    /// Adds the last quantum.
    pub fn add(&mut self, controller: &SimController<'_, '_>) {
        let Some(step) = controller.last() else { return };
        let Some(measured) = step.measurements.values().next() else { return };
        let Some(ipc) = measured.value("ipc") else { return };
        self.quanta += 1;
        self.ipc += ipc;
        for variant in Variant::ALL {
            let Ok(shares) = measured.categories(variant.signal()) else { continue };
            let seen = self.variants.entry(variant.to_string()).or_default();
            let values: Vec<f64> = shares.iter().map(|(_, share)| share.value).collect();
            if seen.names.is_empty() {
                seen.names = shares.iter().map(|(name, _)| (*name).to_owned()).collect();
                seen.shares = vec![0.0; values.len()];
            }
            seen.shares.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
            let now = dominant(values.iter().copied());
            seen.changes += u64::from(seen.last.is_some_and(|last| last != now));
            seen.last = Some(now);
        }
    }

    /// The means; none if nothing was measured.
    pub fn means(self) -> Option<Alone> {
        let quanta = (self.quanta > 0).then_some(self.quanta as f64)?;
        let seen = |variant: Variants| VariantShares {
            shares: variant
                .names
                .into_iter()
                .zip(variant.shares.into_iter().map(|sum| sum / quanta))
                .collect(),
            changes: variant.changes as f64 / (quanta - 1.0).max(1.0),
        };
        let seen = self.variants.into_iter().map(|(name, variant)| (name, seen(variant)));
        Some(Alone { ipc: self.ipc / quanta, seen: seen.collect() })
    }
}
