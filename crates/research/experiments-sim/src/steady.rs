//! Programs that stay in their phases: what they do together once nothing changes any
//! more.
//!
//! The window model answers directly, without tables, and no time passes: caches hold what
//! they hold in the long run. So it takes seconds. A program is
//! represented by its heaviest phases (the constant `PHASES`), each by its share of instructions.

use std::collections::BTreeMap;

use symbiont_profile::{Phase, Profile};
use symbiont_sim_fast::PrepareError;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::physics::State;
use symbiont_sim_fast::physics::core_model::Direct;
use symbiont_sim_fast::physics::domains::Physics;
use symbiont_sim_fast::physics::prepared::Prepared;
use symbiont_sim_fast::physics::rates::Rates;
use symbiont_sim_fast::physics::tasks::{CoreLoad, RunningThread, Switches};

/// Most phases of a program.
const PHASES: usize = 4;

/// A machine and programs made ready for it.
#[derive(Debug)]
pub struct Steady {
    physics: Physics,
    /// By name.
    pub programs: Vec<Resident>,
}

/// A program.
#[derive(Debug)]
pub struct Resident {
    /// Its name.
    pub name: String,
    /// Its phases; weights sum to 1.
    pub phases: Vec<Weighted>,
}

/// A phase and its share of the program's instructions.
#[derive(Debug)]
pub struct Weighted {
    /// The share.
    pub weight: f64,
    /// The phase.
    pub phase: Prepared,
}

impl Resident {
    /// The phase in which a copy is that is drawn at `share` (0 to 1) of the weights.
    #[must_use]
    pub fn at(&self, share: f64) -> usize {
        let mut left = share;
        let drawn = self.phases.iter().position(|phase| {
            left -= phase.weight;
            left < 0.0
        });
        drawn.unwrap_or(self.phases.len().saturating_sub(1))
    }
}

impl Steady {
    /// Makes programs ready for a machine.
    ///
    /// # Errors
    /// When the machine cannot run one of them.
    pub fn new(
        machine: &Description,
        profiles: &BTreeMap<String, Profile>,
    ) -> Result<Self, PrepareError> {
        let ready = |(name, profile): (&String, &Profile)| {
            let phases = heaviest(profile).into_iter().map(|(weight, phase)| {
                Ok(Weighted { weight, phase: Prepared::new(machine, phase)? })
            });
            Ok(Resident { name: name.clone(), phases: phases.collect::<Result<_, _>>()? })
        };
        let programs = profiles.iter().map(ready).collect::<Result<_, _>>()?;
        Ok(Self { physics: Physics::new(machine), programs })
    }

    /// What phases do together, by core: the first core, the second, and so on, each
    /// set up for `mode` threads.
    #[must_use]
    pub fn together(&self, mode: u32, cores: &[Vec<&Prepared>]) -> Vec<Rates> {
        let mut next = 0;
        let running = |prepared| {
            next += 1;
            RunningThread { thread: next, prepared, pages: &[] as &[f64] }
        };
        let threads: Vec<RunningThread<'_>> =
            cores.iter().flatten().copied().map(running).collect();
        let mut rest = &threads[..];
        let mut loads = Vec::new();
        for (core, phases) in cores.iter().enumerate() {
            let (threads, others) = rest.split_at(phases.len());
            loads.push(CoreLoad { core, mode, threads });
            rest = others;
        }
        let mut direct = Direct::default();
        let mut state = State::default();
        let switches = Switches::default();
        let solution = self.physics.solve(&mut direct, switches, &loads, None, &mut state);
        solution.rates.into_iter().map(|(_, rates)| rates).collect()
    }

    /// Cycles per instruction of each phase of each program, alone on the machine.
    #[must_use]
    pub fn alone(&self) -> Vec<Vec<f64>> {
        let of = |phase: &Weighted| {
            self.together(1, &[vec![&phase.phase]]).first().map_or(0.0, |r| r.cpi)
        };
        self.programs.iter().map(|program| program.phases.iter().map(of).collect()).collect()
    }
}

/// The heaviest phases with their shares among each other.
fn heaviest(profile: &Profile) -> Vec<(f64, &Phase)> {
    let mut weights: BTreeMap<u16, u64> = BTreeMap::new();
    for span in profile.sequence() {
        *weights.entry(span.phase).or_default() += span.instructions;
    }
    let mut phases: Vec<(u64, &Phase)> = weights
        .into_iter()
        .filter_map(|(phase, weight)| Some((weight, profile.phases.get(usize::from(phase))?)))
        .collect();
    phases.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    phases.truncate(PHASES);
    let all = phases.iter().map(|(weight, _)| *weight).sum::<u64>().max(1) as f64;
    phases.into_iter().map(|(weight, phase)| (weight as f64 / all, phase)).collect()
}
