//! Which policy groups threads on cores: the first one that can run with these settings, on what
//! this machine offers.
//!
//! Where no core has several hardware threads, there is nothing to group, and no policy is chosen.
//! A model that fits comes first, since its user made it, and since queues ask for what it knows of jobs; then what is
//! learned from the machine itself, since categories do not choose pairs as well; then FPU
//! usage, which is one cause of contention only; then names of programs, which need no counters.

use symbiont_machine::{Signal, Signals, Support};
use symbiont_topology::Topology;

use crate::fpu::{self, Fpu};
use crate::{Entry, Policy, Settings, learned, never_twice, symbiotic_online};

/// The candidates, the best first.
const CANDIDATES: [Entry; 4] =
    [symbiotic_online::ENTRY, learned::ENTRY, fpu::ENTRY, never_twice::ENTRY];

/// Threads that use the FPUs less than the hungriest one by this share are left to the OS.
const LEAST_USAGE: f64 = 0.5;
/// Share by which a thread must use them more to take a rank from another: measurements err by less.
const MARGIN: f64 = 0.1;

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
        let settings = &calm(settings);
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

/// With what keeps threads where they are unless there is something to gain, where nothing else was set.
fn calm(settings: &Settings) -> Settings {
    let calm = settings.clone().unless_set(&Fpu::LEAST, &LEAST_USAGE);
    calm.and_then(|it| it.unless_set(&Fpu::MARGIN, &MARGIN)).unwrap_or_else(|_| settings.clone())
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
