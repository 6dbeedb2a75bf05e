//! Carries out one run.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use symbiont_machine::{Signal, Signals};
use symbiont_matching::{Request, group};
use symbiont_policy::{Fixed, Hysched, Policy, Settings, Together, Variant, find};
use symbiont_profile::Profile;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::CpuSet;

use super::plan::{Contender, HyschedRun, HyschedSize, Part, Start};
use super::watch::{self, Alone, Pairs};
use crate::mixes::{derived_seed, with_target};
use crate::{RunOutcome, Runner, Setup, Shuffled, SimulateError};
use symbiont_campaign::FinishedRun;

/// What a run gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HyschedRecord {
    /// Speedups in the order of the scene's programs; none if not all completed.
    pub speedups: Option<Vec<f64>>,
    /// Simulated time, s.
    pub length_s: f64,
    /// Decisions.
    pub quanta: u64,
    /// Moves that were carried out.
    pub moves: u64,
    /// Share of the physics' evaluations in which no fixed point was found.
    pub unsettled: f64,
    /// What the policy found out, by name.
    pub findings: BTreeMap<String, f64>,
    /// How many pairs were made, by the categories of both programs.
    pub pairs: Vec<(String, String, u64)>,
    /// What was seen of a program by itself.
    pub alone: Option<Alone>,
}

impl HyschedRecord {
    /// STP; none if not all completed.
    #[must_use]
    pub fn stp(&self) -> Option<f64> {
        symbiont_report::metrics::stp(self.speedups.as_ref()?)
    }
}

/// Measured STP of pairs, by the names of both, in any order.
#[derive(Debug, Clone, Default)]
pub(super) struct PairStp(BTreeMap<(String, String), (f64, u32)>);

impl PairStp {
    fn key(one: &str, other: &str) -> (String, String) {
        let (one, other) = if one <= other { (one, other) } else { (other, one) };
        (one.to_owned(), other.to_owned())
    }

    /// Of finished runs of pairs.
    pub fn of_runs(finished: &[FinishedRun<HyschedRun, HyschedRecord>]) -> Self {
        let mut all = Self::default();
        for FinishedRun { run, record } in finished {
            if let (Part::Pair, [one, other], Some(stp)) =
                (run.scene.part, &run.scene.programs[..], record.stp())
            {
                let entry = all.0.entry(Self::key(one, other)).or_default();
                *entry = (entry.0 + stp, entry.1 + 1);
            }
        }
        all
    }

    /// The mean of a pair.
    pub fn of(&self, one: &str, other: &str) -> Option<f64> {
        self.0.get(&Self::key(one, other)).map(|(sum, count)| sum / f64::from(*count))
    }

    /// The pairs of these programs with the largest sum of STP; none if one was
    /// not measured.
    pub fn best(&self, programs: &[String]) -> Option<Vec<Vec<String>>> {
        let cost = |members: &[usize]| match members {
            [one, other] => -self.of(&programs[*one], &programs[*other]).unwrap_or(0.0),
            _ => 0.0,
        };
        let found =
            group(&Request::new(programs.len(), programs.len().div_ceil(2), 2), cost).ok()?;
        let named = |members: &Vec<usize>| members.iter().map(|at| programs[*at].clone()).collect();
        Some(found.groups.iter().map(named).collect())
    }
}

/// What runs need.
pub(super) struct Player<'a, 'p> {
    pub builder: &'a TableBuilder<'p>,
    pub profiles: &'p BTreeMap<String, Profile>,
    pub size: &'a HyschedSize,
    pub seed: u64,
    /// Instructions by program that set the targets, as far as they are known.
    targets: Mutex<BTreeMap<String, u64>>,
}

impl<'a, 'p> Player<'a, 'p> {
    pub fn new(
        builder: &'a TableBuilder<'p>,
        profiles: &'p BTreeMap<String, Profile>,
        size: &'a HyschedSize,
        seed: u64,
    ) -> Self {
        Self { builder, profiles, size, seed, targets: Mutex::default() }
    }

    pub fn play(&self, run: &HyschedRun) -> Result<HyschedRecord, SimulateError> {
        let setup = self.setup(run);
        let alone = run.scene.part == Part::Alone;
        let signals: Signals = if alone { categories() } else { Signals::new() };
        let runner = Runner { level: self.builder, setup: &setup, signals: &signals };
        let mut programs = Vec::new();
        for name in &run.scene.programs {
            programs.push(self.program(name)?);
        }
        let seed = seed_of(self.seed, run);
        let policy = policy(run, seed)?;
        let variant = run.contender.variant().map(|(variant, _)| variant);
        let (mut pairs, mut sums) = (Pairs::new(), watch::Sums::default());
        let once = runner.once(&programs, policy, self.size.quantum, seed, &mut |controller| {
            if let Some(variant) = variant {
                watch::pairs(controller, variant, &mut pairs);
            }
            if alone {
                sums.add(controller);
            }
            Ok(())
        })?;
        let RunOutcome { speedups, length_s, quanta, moves, unsettled, findings } = once;
        Ok(HyschedRecord {
            speedups,
            length_s,
            quanta,
            moves,
            unsettled,
            findings: findings.into_iter().map(|found| (found.name, found.value)).collect(),
            pairs: pairs.into_iter().map(|((one, other), count)| (one, other, count)).collect(),
            alone: alone.then(|| sums.means()).flatten(),
        })
    }

    fn setup(&self, run: &HyschedRun) -> Setup {
        let cores = self.builder.description().topology.cores();
        let allowed: CpuSet =
            cores.iter().take(run.scene.cores()).flat_map(|core| core.cpus.iter()).collect();
        let private = Switches { private_units: true, private_caches: true, ..Switches::default() };
        Setup {
            alone: self.size.alone,
            until: self.size.alone * 30,
            lead: if run.start == Start::Apart { 0.5 } else { 0.0 },
            in_order: run.start == Start::InOrder,
            switches: if run.private { private } else { Switches::default() },
            allowed: Some(allowed),
            seed: self.seed,
            ..Setup::default()
        }
    }

    fn program(&self, name: &str) -> Result<SimProgram<'p>, SimulateError> {
        let profile = self.profiles.get(name);
        let profile = profile.ok_or_else(|| SimulateError::NoProfile(name.to_owned()))?;
        let program =
            SimProgram { name: name.to_owned(), profile, shape: Shape::Single, target: None };
        with_target(self.builder, (self.size.alone, self.seed), &self.targets, program)
    }
}

fn policy(run: &HyschedRun, seed: u64) -> Result<Box<dyn Policy>, SimulateError> {
    let (name, together) = match run.contender {
        Contender::Os => ("stay", None),
        Contender::Hysched(_) | Contender::Steady(_) | Contender::Shuffled(_) => ("hysched", None),
        Contender::L1Bandwidth => ("l1-bandwidth", None),
        Contender::Random => ("random", None),
        Contender::NeverTwice => ("never-twice", None),
        Contender::Pinned | Contender::Matched => {
            ("static", Some(Together::new(run.pairs.clone())))
        }
    };
    let settings = Settings { seed, ..Settings::default() };
    let mut settings = settings.with(&Fixed::TOGETHER, &together)?;
    if let Some((variant, hysteresis)) = run.contender.variant() {
        settings = settings.with(&Hysched::VARIANT, &variant)?;
        settings = settings.with(&Hysched::HYSTERESIS, &hysteresis)?;
    }
    let policy = (find(name)?.make)(&settings);
    Ok(match run.contender {
        Contender::Shuffled(_) => Box::new(Shuffled::new(policy, seed)),
        _ => policy,
    })
}

/// All that gives categories, and the IPC.
fn categories() -> Signals {
    Variant::ALL.map(Variant::signal).into_iter().chain([Signal::Ipc]).collect()
}

/// About how long a run takes on one CPU of today: a hundredth of a millisecond for each thread and
/// simulated millisecond.
pub(super) fn cost(run: &HyschedRun, size: &HyschedSize) -> Duration {
    size.alone.mul_f64(run.scene.programs.len() as f64 * 0.01)
}

/// The same for all contenders on one start, whatever compiles it.
fn seed_of(seed: u64, run: &HyschedRun) -> u64 {
    let HyschedRun { scene, start, repeat, .. } = run;
    let start = match start {
        Start::Apart => "apart",
        Start::AtOnce => "at once",
        Start::InOrder => "in order",
    };
    let (text, repeat) = (seed.to_string(), repeat.to_string());
    let mut parts = vec![text.as_str(), start, &repeat, &scene.name];
    parts.extend(scene.programs.iter().map(String::as_str));
    derived_seed(seed, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hysched::plan::Scene;

    #[test]
    fn a_seed_does_not_depend_on_the_toolchain() {
        let scene = Scene {
            part: Part::Mix,
            name: "wk1".to_owned(),
            programs: vec!["lbm".to_owned(), "xz".to_owned()],
        };
        let run = |repeat, contender| HyschedRun {
            scene: scene.clone(),
            contender,
            start: Start::Apart,
            private: false,
            repeat,
            pairs: Vec::new(),
        };
        assert_eq!(seed_of(1, &run(0, Contender::Os)), 13_562_674_209_483_828_947);
        assert_eq!(seed_of(1, &run(0, Contender::Pinned)), seed_of(1, &run(0, Contender::Os)));
        assert_ne!(seed_of(1, &run(1, Contender::Os)), seed_of(1, &run(0, Contender::Os)));
    }
}
