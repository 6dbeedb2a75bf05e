//! One run of programs on a simulated machine.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use symbiont_control::{Controller, Deciding, Holding};
use symbiont_machine::{Machine, Signals};
use symbiont_planner::{Bounds, Planner};
use symbiont_policy::{Finding, Policy};
use symbiont_sim_fast::fast::TableBuilder;
use symbiont_sim_fast::machine::{Contention, Fidelity, SimMachine, SimOptions};
use symbiont_sim_fast::program::SimProgram;
use symbiont_topology::CpuSet;

use super::{Setup, SimulateError};

/// A simulated machine under the control of a policy.
pub type SimController<'a, 'p, L = TableBuilder<'p>> =
    Controller<SimMachine<'p, <L as Fidelity<'p>>::Run<'a>>>;

/// Where programs run, and how.
#[derive(Debug)]
pub struct Runner<'a, L> {
    /// The fidelity of the simulation.
    pub level: &'a L,
    /// Its policy and settings are not read here.
    pub setup: &'a Setup,
    /// What is to be measured besides what the policy needs.
    pub signals: &'a Signals,
}

/// What came out of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// By program; none if not all completed in time.
    pub speedups: Option<Vec<f64>>,
    /// Simulated time, s.
    pub length_s: f64,
    /// Quanta until the last program completed.
    pub quanta: u64,
    /// Moves that were carried out.
    pub moves: u64,
    /// Share of the physics' questions for which no fixed point was found.
    pub unsettled: f64,
    /// What the policy found out.
    pub findings: Vec<Finding>,
}

impl<L> Clone for Runner<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Runner<'_, L> {}

impl<'a, L> Runner<'a, L> {
    fn machine<'p>(
        self,
        programs: Vec<SimProgram<'p>>,
        leads: &[u64],
        seed: u64,
    ) -> Result<SimMachine<'p, L::Run<'a>>, SimulateError>
    where
        L: Fidelity<'p>,
    {
        let physics = self.level.begin(self.setup.switches);
        let physics = physics.ok_or(SimulateError::Shared(L::NAME))?;
        let Setup { errors, allowed, costs, in_order, os, .. } = self.setup;
        let (allowed, costs) = (allowed.clone(), costs.clone());
        let (errors, in_order, os) = (*errors, *in_order, *os);
        let options =
            SimOptions { seed, errors, allowed, costs, in_order, os, ..SimOptions::default() };
        let description = self.level.description();
        Ok(SimMachine::new(description, physics, programs, leads, options)?)
    }

    /// What happens while a decision is taken.
    fn deciding<'p>(self, quantum: Duration) -> Deciding
    where
        L: Fidelity<'p>,
    {
        let allowed = |cpus: &CpuSet| match &self.setup.allowed {
            Some(allowed) => cpus.intersection(allowed),
            None => cpus.clone(),
        };
        let cores = self.level.description().topology.cores().iter();
        let last = cores.map(|core| allowed(&core.cpus)).rfind(|cpus| !cpus.is_empty());
        Deciding {
            reserved: last.filter(|_| self.setup.decision.reserved).unwrap_or_default(),
            takes: self.setup.decision.takes.min(quantum),
        }
    }

    /// Instructions that a program retires alone in the time that sets its
    /// target.
    pub fn alone<'p>(self, program: &SimProgram<'p>) -> Result<f64, SimulateError>
    where
        L: Fidelity<'p>,
    {
        let mut machine = self.machine(vec![program.clone()], &[], self.setup.seed)?;
        machine.wait(self.setup.alone)?;
        let retired = machine.retired(0).unwrap_or(0.0).floor();
        if retired >= 1.0 { Ok(retired) } else { Err(SimulateError::Idle(program.name.clone())) }
    }

    /// Runs programs until each has completed once; `each` is shown every
    /// quantum after it has passed.
    pub fn once<'p>(
        self,
        programs: &[SimProgram<'p>],
        policy: Box<dyn Policy>,
        quantum: Duration,
        seed: u64,
        each: &mut dyn FnMut(&SimController<'a, 'p, L>) -> Result<(), SimulateError>,
    ) -> Result<RunOutcome, SimulateError>
    where
        L: Fidelity<'p>,
    {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let lead = |program: &SimProgram<'p>| {
            let share = random.random_range(0.0..=self.setup.lead.max(0.0));
            (program.target.unwrap_or(0) as f64 * share) as u64
        };
        let leads: Vec<u64> = programs.iter().map(lead).collect();
        let machine = self.machine(programs.to_vec(), &leads, seed)?;
        let deciding = self.deciding(quantum);
        let left = quantum.saturating_sub(deciding.takes);
        let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()))
            // What is compared is where programs run, not how they are kept there.
            .holding(Holding::Always)
            .measuring(self.signals)
            .deciding(deciding);
        let mut speedups = vec![None; programs.len()];
        let mut now = Duration::ZERO;
        while now < self.setup.until && speedups.iter().any(Option::is_none) {
            controller.step()?;
            let machine = controller.machine_mut();
            machine.wait(left)?;
            now += quantum;
            for run in machine.completions().iter().filter(|run| run.counts) {
                let time = run.ended.since(run.started).as_secs_f64();
                if let Some(first) = speedups.get_mut(run.slot) {
                    first.get_or_insert(self.setup.alone.as_secs_f64() / time);
                }
            }
            each(&controller)?;
        }
        let tally = controller.tally();
        Ok(RunOutcome {
            speedups: speedups.into_iter().collect(),
            length_s: now.as_secs_f64(),
            quanta: tally.quanta,
            moves: tally.done,
            unsettled: controller.machine().contention().unsettled(),
            findings: controller.policy().findings(),
        })
    }
}
