//! Which policy groups threads on cores: the first one that can run with these settings, on what
//! this machine offers.
//!
//! Where no core has several hardware threads, there is nothing to group, and no policy is chosen.
//! A model that fits comes first, since it predicts; then categories, which need no training; then FPU
//! usage, which is one cause of contention only; then names of programs, which need no counters.

use symbiont_machine::{Signal, Signals, Support};
use symbiont_topology::Topology;

use crate::{Entry, Policy, Settings, fpu, hysched, never_twice, symbiotic_online};

/// The candidates, the best first.
const CANDIDATES: [Entry; 4] =
    [symbiotic_online::ENTRY, hysched::ENTRY, fpu::ENTRY, never_twice::ENTRY];

/// What was chosen.
pub(super) struct Choice {
    /// The policy and its entry in the list; none: threads are not grouped.
    pub groups: Option<(Entry, Box<dyn Policy>)>,
    /// Why, in words.
    pub why: String,
}

impl Choice {
    /// Before it is known what a machine offers: what needs no counters.
    pub fn without_counters(settings: &Settings) -> Self {
        let entry = never_twice::ENTRY;
        Self {
            groups: Some((entry, (entry.make)(settings))),
            why: "no counters are known of".into(),
        }
    }

    /// On a machine that offers this.
    pub fn on(offered: &Support, topology: &Topology, settings: &Settings) -> Self {
        if topology.smt_width() < 2 {
            let why = "each core has one hardware thread: no groups on a core".into();
            return Self { groups: None, why };
        }
        let mut passed_over = Vec::new();
        for entry in CANDIDATES {
            let mut made = (entry.make)(settings);
            made.offer(offered, topology);
            let requirements = made.requirements();
            match (requirements.missing_input, offered.missing(&requirements.required)) {
                (None, None) => {
                    let why = if passed_over.is_empty() {
                        "the first choice".to_owned()
                    } else {
                        passed_over.join("; ")
                    };
                    return Self { groups: Some((entry, made)), why };
                }
                (Some(_), _) => passed_over.push(format!("{}: no model is given", entry.name)),
                (None, Some((signal, why))) => {
                    passed_over.push(format!("{}: no {signal}: {why}", entry.name));
                }
            }
        }
        Self { groups: None, why: passed_over.join("; ") }
    }

    /// Does it place groups by the memory of nodes?
    pub fn places_by_memory(&self) -> bool {
        self.required().contains(&Signal::MemoryRequests)
    }

    /// The name of the policy that groups threads.
    pub fn name(&self) -> Option<&'static str> {
        self.groups.as_ref().map(|(entry, _)| entry.name)
    }

    /// Signals that it cannot do without.
    pub fn required(&self) -> Signals {
        self.groups.as_ref().map(|(_, policy)| policy.requirements().required).unwrap_or_default()
    }
}

/// All that a candidate could use.
pub(super) fn signals(settings: &Settings) -> Signals {
    let mut signals = Signals::from([Signal::Ipc]);
    for entry in CANDIDATES {
        let requirements = (entry.make)(settings).requirements();
        if requirements.missing_input.is_none() {
            signals.extend(requirements.asked());
        }
    }
    signals
}
