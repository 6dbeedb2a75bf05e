//! `static`: programs that were named together share a core, for good (Navarro
//! et al., "Hy-Sched", section 4.1).
//!
//! # Problem
//! Which programs suit each other may be known before they run: from a run of
//! each pair on one core. Then nothing has to be measured meanwhile.
//!
//! # Approach
//! [`Together`] names the groups, by the programs' names, once for each core.
//! A thread takes the first free place that bears its program's name; the
//! first thread of a group decides on the core, which is the emptiest that it
//! may use, and the group stays there for the entire execution. The place of a
//! thread that ended is free for the next one of that name, so that a program
//! that is launched again comes back. A thread without a place is left to the OS.
//!
//! # Properties
//! - Programs that were named together share a core (`programs_that_were_named_together_share_a_core`)
//!   and stays there, whichever other ends (`a_relaunched_program_gets_its_place_back`).
//! - With the names shuffled between threads partners are as by chance
//!   (`shuffled_names_make_random_pairs`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use symbiont_machine::{Assignment, Placement, ThreadId};
use symbiont_topology::CpuSet;

use crate::{Entry, Kind, Parameter, Policy, ThreadView, Typed, Value, View};

pub(crate) const ENTRY: Entry = Entry {
    name: "static",
    summary: "keeps programs that were named together (--set together=…) on a core of their own",
    paper: Some("Navarro et al., Hy-Sched, section 4.1: the static approach of Table 1"),
    quantum: Duration::from_millis(500),
    boosts: false,
    parameters: &[&Fixed::TOGETHER],
    make: |settings| Box::new(Fixed::new(settings.get(&Fixed::TOGETHER).unwrap_or_default())),
};

/// Programs that shall share a core: the names of each group, one group for
/// each core. Written `mcf+calculix,mcf+calculix`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Together(Vec<Vec<String>>);

impl Together {
    /// These groups.
    #[must_use]
    pub fn new(groups: Vec<Vec<String>>) -> Self {
        Self(groups)
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[Vec<String>] {
        &self.0
    }
}

/// A text that names no groups.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}': groups of programs are written NAME+NAME,NAME+NAME")]
pub struct NoGroups(String);

impl FromStr for Together {
    type Err = NoGroups;

    fn from_str(text: &str) -> Result<Self, NoGroups> {
        let group = |group: &str| group.split('+').map(|name| name.trim().to_owned()).collect();
        let groups: Vec<Vec<String>> = text.split(',').map(group).collect();
        let empty = groups.iter().flatten().any(String::is_empty);
        if empty { Err(NoGroups(text.to_owned())) } else { Ok(Self(groups)) }
    }
}

impl fmt::Display for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.0.iter().map(|group| group.join("+")).collect();
        f.write_str(&groups.join(","))
    }
}

impl Typed for Together {
    fn of(value: &Value) -> Option<Self> {
        String::of(value)?.parse().ok()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

/// A name in a group: which group, and which of its names.
type GroupedName = (usize, usize);

/// Keeps named groups on a core each.
#[derive(Debug, Clone, Default)]
pub struct Fixed {
    together: Together,
    names: BTreeMap<ThreadId, GroupedName>,
    /// The core of each group that has one, by its index in the topology.
    cores: BTreeMap<usize, usize>,
}

impl Fixed {
    /// Programs that share a core.
    pub const TOGETHER: Parameter<Option<Together>> = Parameter::optional(
        "together",
        Kind::Text {
            form: "groups of programs as NAME+NAME,NAME+NAME",
            example: "mcf+gcc,xz+povray",
        },
        "none",
        "Programs to keep on a core, one group for each core",
    );

    /// Keeps these together.
    #[must_use]
    pub fn new(together: Together) -> Self {
        Self { together, names: BTreeMap::new(), cores: BTreeMap::new() }
    }

    /// The name that a thread has, or takes now.
    fn name_of(&mut self, id: ThreadId, program: &str) -> Option<GroupedName> {
        if let Some(known) = self.names.get(&id) {
            return Some(*known);
        }
        let taken: BTreeSet<GroupedName> = self.names.values().copied().collect();
        let mut all = self.together.groups().iter().enumerate().flat_map(|(group, names)| {
            names.iter().enumerate().map(move |(at, name)| ((group, at), name))
        });
        let (free, _) = all.find(|(at, name)| *name == program && !taken.contains(at))?;
        self.names.insert(id, free);
        Some(free)
    }

    /// The hardware threads of a group's core; the first that asks chooses it.
    fn core_of(&mut self, group: usize, view: &View<'_>, allowed: &CpuSet) -> Option<CpuSet> {
        let cores = view.topology.cores();
        let at = match self.cores.get(&group) {
            Some(at) => *at,
            None => {
                let taken = |at: usize| self.cores.values().filter(|core| **core == at).count();
                let open =
                    (0..cores.len()).filter(|at| !cores[*at].cpus.intersection(allowed).is_empty());
                let emptiest = open.min_by_key(|at| (taken(*at), *at))?;
                self.cores.insert(group, emptiest);
                emptiest
            }
        };
        let cpus = cores.get(at)?.cpus.intersection(allowed);
        (!cpus.is_empty()).then_some(cpus)
    }

    fn assign(&mut self, view: &View<'_>, thread: &ThreadView<'_>) -> Assignment {
        let allowed = match view.places(thread) {
            Ok(allowed) => allowed,
            Err(why) => return Assignment::os(why),
        };
        let program = view.program_name(thread);
        let Some((group, _)) = self.name_of(thread.id, program) else {
            return Assignment::os(format!(
                "'{program}' was named with no other program (any more)"
            ));
        };
        match self.core_of(group, view, &allowed) {
            None => Assignment::os("its group's core is not allowed"),
            Some(cpus) => {
                let names = self.together.groups().get(group).map_or(&[][..], Vec::as_slice);
                // A published baseline, whose threads never leave their core.
                Assignment::on(cpus, format!("named together: {}", names.join(" with "))).held()
            }
        }
    }
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn place(&mut self, view: &View<'_>) -> Placement {
        let there: BTreeSet<ThreadId> = view.threads.iter().map(|thread| thread.id).collect();
        self.names.retain(|id, _| there.contains(id));
        view.threads.iter().map(|thread| (thread.id, self.assign(view, thread))).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_pcg::Pcg64Mcg;
    use symbiont_counters::Characterizations;
    use symbiont_machine::test_support::thread;
    use symbiont_machine::{Program, ProgramId, Sample, Target, ThreadSample};
    use symbiont_topology::Topology;

    use super::*;

    /// Threads of these programs, one each, born in this order from `first` on.
    fn sample(machine: &Topology, names: &[&str], first: u32) -> Sample {
        let born = |n: u32| thread(n, first + n, &machine.cpus());
        let threads: Vec<ThreadSample> = (0..names.len() as u32).map(born).collect();
        let named = |(n, name): (u32, &&str)| Program::new(ProgramId(n), *name);
        Sample { threads, programs: (0..).zip(names).map(named).collect(), ..Sample::default() }
    }

    fn place(policy: &mut Fixed, machine: &Topology, sample: &Sample) -> Vec<Assignment> {
        let (known, applied) = (Characterizations::new(), Placement::new());
        let placement = policy.place(&View::new(machine, sample, &known, &applied));
        sample.threads.iter().map(|t| placement[&t.id].clone()).collect()
    }

    fn targets(placed: &[Assignment]) -> Vec<Target> {
        placed.iter().map(|assignment| assignment.target.clone()).collect()
    }

    fn policy(text: &str) -> Fixed {
        Fixed::new(text.parse().unwrap())
    }

    #[test]
    fn programs_that_were_named_together_share_a_core() {
        let machine = Topology::synthetic("core:2 smt:2").unwrap();
        let sample = sample(&machine, &["mcf", "calculix", "mcf", "calculix", "gcc"], 0);
        let core = |line: &str| Target::Cpus(line.parse().unwrap());
        let (one, other) = (core("0-1"), core("2-3"));
        for (text, expected) in [
            ("mcf+calculix,mcf+calculix", [&one, &one, &other, &other]),
            ("mcf+mcf,calculix+calculix", [&one, &other, &one, &other]),
        ] {
            let placed = place(&mut policy(text), &machine, &sample);
            let expected: Vec<Target> = expected.into_iter().cloned().chain([Target::Os]).collect();
            assert_eq!(targets(&placed), expected, "{text}");
            assert!(placed[0].reason.starts_with("named together: mcf with "), "{placed:?}");
            assert_eq!(placed[4].reason, "'gcc' was named with no other program (any more)");
        }
    }

    #[test]
    fn a_relaunched_program_gets_its_place_back() {
        let machine = Topology::synthetic("core:4 smt:2").unwrap();
        let mut policy = policy("a+b,c+d");
        let mut sample = sample(&machine, &["a", "b", "c", "d"], 0);
        let before = place(&mut policy, &machine, &sample);
        // One ends and comes again as another process, then a whole group.
        for again in [vec![1], vec![2, 3]] {
            for at in again {
                sample.threads[at].id.thread += 100;
            }
            assert_eq!(place(&mut policy, &machine, &sample), before);
        }
    }

    #[test]
    fn a_limit_outside_the_core_is_respected() {
        let machine = Topology::synthetic("core:2 smt:2").unwrap();
        let mut sample = sample(&machine, &["a", "b"], 0);
        sample.threads[1] = ThreadSample {
            allowed: std::sync::Arc::new("2".parse().unwrap()),
            ..sample.threads[1].clone()
        };
        let placed = place(&mut policy("a+b"), &machine, &sample);
        assert_eq!(placed[1], Assignment::os("its group's core is not allowed"));
    }

    #[test]
    fn groups_are_read_as_written() {
        let text = "mcf+calculix,mcf+calculix";
        assert_eq!(text.parse::<Together>().unwrap().to_string(), text);
        for wrong in ["", "a+,b", "a,,b", "+"] {
            let error = wrong.parse::<Together>().unwrap_err().to_string();
            assert!(error.ends_with("are written NAME+NAME,NAME+NAME"), "{error}");
        }
    }

    #[test]
    fn shuffled_names_make_random_pairs() {
        let machine = Topology::synthetic("core:4 smt:2").unwrap();
        let mut random = Pcg64Mcg::seed_from_u64(1);
        let truth = ["a", "b", "a", "b", "a", "b", "a", "b"];
        // Share of threads that meet one of the other kind.
        let mut mixed = |shuffle: bool| {
            let mut met = 0;
            for _ in 0..300 {
                let mut names = truth;
                if shuffle {
                    names.shuffle(&mut random);
                }
                let sample = sample(&machine, &names, 0);
                let slots = targets(&place(&mut policy("a+b,a+b,a+b,a+b"), &machine, &sample));
                let others = |at: usize| (0..8).find(|&o| o != at && slots[o] == slots[at]);
                met +=
                    (0..8).filter(|&at| others(at).is_some_and(|o| truth[o] != truth[at])).count();
            }
            met as f64 / 2400.0
        };
        assert_eq!(mixed(false), 1.0);
        // By chance four of the seven others are of the other kind.
        assert!((mixed(true) - 4.0 / 7.0).abs() < 0.05);
    }
}
