//! The controller itself.

use std::ops::ControlFlow;
use std::time::Duration;

use symbiont_counters::catalogue::CatalogueError;
use symbiont_counters::{Characterizations, History, characterize};
use symbiont_machine::{Machine, Move, Outcome, Placement, Sample, Signal, Signals, ThreadId};
use symbiont_planner::{Planner, Setting, Situation, release, release_stranded};
use symbiont_policy::{Policy, View};
use symbiont_topology::CpuSet;

use crate::applied::AppliedSettings;
use crate::holding::Disagreement;
use crate::{Deciding, Holding, Step, Tally};

/// Why the loop cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ControlError<E: std::error::Error + 'static> {
    /// The machine as a whole failed.
    #[error(transparent)]
    Machine(E),
    /// The machine cannot measure what the policy needs.
    #[error("policy '{policy}' cannot run here: it needs {signal}, but {why}")]
    MissingSignal {
        /// The policy.
        policy: &'static str,
        /// The first signal that is missing.
        signal: Signal,
        /// Why the machine does not have it.
        why: String,
    },
    /// The machine counts by a catalogue that cannot be read.
    #[error("what the machine counts cannot be understood: {0}")]
    Catalogue(#[from] CatalogueError),
    /// The machine broke its contract.
    #[error("the machine gave {outcomes} outcomes for {moves} moves")]
    Outcomes {
        /// Moves asked for.
        moves: usize,
        /// Outcomes given.
        outcomes: usize,
    },
}

/// Steers a machine by a policy.
pub struct Controller<M> {
    machine: M,
    policy: Box<dyn Policy>,
    planner: Planner,
    /// Measured besides what the policy asks for, where it can be.
    extra: Signals,
    deciding: Deciding,
    holding: Holding,
    disagreement: Disagreement,
    history: History,
    settings: AppliedSettings,
    tally: Tally,
    last: Option<Step>,
    /// Did the machine keep threads on their targets by itself when that was last reported to the policy?
    offered: bool,
    /// Failures in a row that are passed over, and how many there were just now.
    tolerated: u32,
    in_a_row: u32,
}

impl<M: Machine> Controller<M> {
    /// Brings a machine, a policy and a planner together.
    pub fn new(machine: M, policy: Box<dyn Policy>, planner: Planner) -> Self {
        let (settings, tally) = (AppliedSettings::default(), Tally::default());
        let (extra, history) = (Signals::new(), History::default());
        let deciding = Deciding::default();
        Self {
            machine,
            policy,
            planner,
            extra,
            deciding,
            holding: Holding::default(),
            disagreement: Disagreement::default(),
            history,
            settings,
            tally,
            last: None,
            offered: false,
            tolerated: 0,
            in_a_row: 0,
        }
    }

    /// Has programs run on elsewhere, or for some virtual time, while it decides. To be called
    /// before the first step.
    #[must_use]
    pub fn deciding(mut self, deciding: Deciding) -> Self {
        self.deciding = deciding;
        self
    }

    /// Has targets held in another way than the policy decided.
    #[must_use]
    pub fn holding(mut self, holding: Holding) -> Self {
        self.holding = holding;
        self
    }

    /// The same from the next step on.
    pub fn set_holding(&mut self, holding: Holding) {
        self.holding = holding;
    }

    /// Has more measured than the policy asks for, as far as the machine can. To
    /// be called before the first step.
    #[must_use]
    pub fn measuring(mut self, extra: &Signals) -> Self {
        self.extra.clone_from(extra);
        self
    }

    /// Has [`Controller::run`] go on with the next quantum when the machine as a whole
    /// fails, up to so many times in a row; without this, not once.
    #[must_use]
    pub fn tolerating(mut self, failures: u32) -> Self {
        self.tolerated = failures;
        self
    }

    /// Specifies the signals that the machine measures. Can this policy run on it? Done
    /// before the first step.
    fn begin(&mut self) -> Result<(), ControlError<M::Error>> {
        // The machine reports what it can count only after it was asked. A policy that can do with less
        // learns of it before, so that its messages name what it does without.
        self.machine.measure(&self.policy.requirements().asked());
        self.offer();
        self.measure();
        match self.machine.support().missing(&self.policy.requirements().required) {
            Some((signal, why)) => {
                Err(ControlError::MissingSignal { policy: self.policy.name(), signal, why })
            }
            None => Ok(()),
        }
    }

    /// Reports to the policy what the machine can do.
    fn offer(&mut self) {
        self.offered = self.machine.support().scheduler.exists();
        let _ = self.policy.offer(self.machine.support(), self.machine.topology());
    }

    /// Has the machine measure what the policy asks for, and more.
    fn measure(&mut self) {
        let measured = self.policy.requirements().measured();
        self.machine.measure(&measured.union(&self.extra).copied().collect());
    }

    /// Decides by another policy and plans by another planner from the next step on. What is applied
    /// stays until the new policy wants something else.
    ///
    /// # Errors
    /// When the machine cannot measure what the policy needs; then all is as before.
    pub fn replace(
        &mut self,
        policy: Box<dyn Policy>,
        planner: Planner,
    ) -> Result<(), ControlError<M::Error>> {
        let before = std::mem::replace(&mut self.policy, policy);
        if let Err(error) = self.begin() {
            self.policy = before;
            self.measure();
            return Err(error);
        }
        self.planner = planner;
        Ok(())
    }

    /// One round: samples, characterises, decides, plans and applies.
    ///
    /// # Errors
    /// At the first step, when the machine cannot measure what the policy
    /// needs: nothing is done then. Later, when the machine as a whole fails or
    /// counts what cannot be understood; trouble with single threads is in the step's outcomes.
    pub fn step(&mut self) -> Result<&Step, ControlError<M::Error>> {
        if self.last.is_none() {
            self.begin()?;
        }
        let mut sample = self.machine.sample().map_err(ControlError::Machine)?;
        sample.threads.sort_by_key(|t| t.id);
        self.settings.keep(&sample, &self.machine.topology().cpus());
        self.note_lapsed(&sample)?;
        let before = self.last.take().map(|step| step.sample);
        let characterizations =
            before.as_ref().map_or_else(Characterizations::new, |b| characterize(b, &sample));
        let measurements = self.history.take(&sample)?;

        let online = self.machine.topology().cpus();
        let before_deciding = self.make_room(&sample, &online)?;
        let applied = self.settings.applied();
        let seen = before_deciding.as_ref().unwrap_or(applied);
        let view = View::new(self.machine.topology(), &sample, &characterizations, seen);
        let view = view.measured(&measurements);
        let mut placement = self.policy.place(&view);
        let (topology, did) = (self.machine.topology(), &characterizations);
        self.disagreement.adjust(self.holding, topology, &sample, did, &mut placement);
        let barred = self.settings.barred(self.tally.quanta);
        let situation = Situation {
            sample: &sample,
            online: &view.online,
            support: self.machine.support(),
            applied,
            barred: &barred,
        };
        let plan = self.planner.plan(&situation, &placement);
        let outcomes = self.apply(&plan.moves, &placement)?;
        for (id, target) in plan.reached.iter().filter(|_| self.machine.acts()) {
            self.settings.reach(*id, target, placement.get(id));
        }

        self.machine.keep(&placement);
        let nudged = self.machine.insist(self.disagreement.insisted(&placement));
        self.tally.add_nudges(nudged);
        if self.machine.support().scheduler.exists() != self.offered {
            self.offer();
        }

        let step = Step { sample, characterizations, measurements, placement, plan, outcomes };
        self.tally.add(&step, count_new(before.as_ref(), &step.sample));
        Ok(self.last.insert(step))
    }

    /// Steps once per quantum until `each`, which is given every step, breaks,
    /// or the machine has ended: it does not wait after that. Applied settings
    /// stay.
    ///
    /// # Errors
    /// As [`Controller::step`], or when the machine's clock fails; of the failures of
    /// the machine the first that is not [tolerated](Controller::tolerating).
    pub fn run(
        &mut self,
        quantum: Duration,
        mut each: impl FnMut(&Step) -> ControlFlow<()>,
    ) -> Result<(), ControlError<M::Error>> {
        while !self.machine.ended() {
            let before = self.tally.failures;
            let is_over = match self.step() {
                Ok(step) => each(step).is_break(),
                Err(error) => self.pass_over(error).map(|()| false)?,
            };
            if is_over || self.machine.ended() {
                break;
            }
            if let Err(error) = self.machine.wait(quantum) {
                self.pass_over(ControlError::Machine(error))?;
            }
            if self.tally.failures == before {
                self.in_a_row = 0;
            }
        }
        Ok(())
    }

    /// Counts a failure of the machine, unless there were too many in a row.
    fn pass_over(&mut self, error: ControlError<M::Error>) -> Result<(), ControlError<M::Error>> {
        match error {
            ControlError::Machine(why) if self.in_a_row < self.tolerated => {
                self.in_a_row += 1;
                self.tally.failures += 1;
                self.tally.last_failure = Some(why.to_string());
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Undoes all that is applied; gives the outcome of each move.
    ///
    /// # Errors
    /// When the machine as a whole fails.
    pub fn release(&mut self) -> Result<Vec<(Move, Outcome)>, ControlError<M::Error>> {
        let moves = release(self.settings.applied());
        let outcomes = self.apply(&moves, &Placement::new())?;
        for (asked, outcome) in moves.iter().zip(&outcomes) {
            self.tally.add_move(asked, outcome);
        }
        self.machine.keep(&Placement::new());
        self.settings.forget_nudged();
        self.tally.add_nudges(self.machine.insist(Vec::new()));
        Ok(moves.into_iter().zip(outcomes).collect())
    }

    /// The applied settings; threads as their user left them are not listed.
    #[must_use]
    pub fn applied(&self) -> &Placement {
        self.settings.applied()
    }

    /// The settings of living threads that another process was found to have changed: they are
    /// left alone from then on.
    pub fn externally_changed(&self) -> impl Iterator<Item = (ThreadId, Setting)> + '_ {
        self.settings.externally_changed()
    }

    /// Threads that are kept in another way than the policy decided, since the OS moves them.
    #[must_use]
    pub fn disagreements(&self) -> usize {
        self.disagreement.count()
    }

    /// What happened so far, in numbers.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The last step; none before the first.
    #[must_use]
    pub fn last(&self) -> Option<&Step> {
        self.last.as_ref()
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The machine, to be changed between steps.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Returns the machine. Applied settings stay.
    #[must_use]
    pub fn into_machine(self) -> M {
        self.machine
    }

    /// Books what is applied no more, and undoes targets that are gone: what the policy sees is how
    /// things are.
    fn note_lapsed(&mut self, sample: &Sample) -> Result<(), ControlError<M::Error>> {
        for (asked, outcome) in self.machine.lapsed() {
            self.settings.note(self.tally.quanta, &asked, &outcome, None);
            if outcome == Outcome::ExternallyChanged {
                self.tally.add_move(&asked, &outcome);
            }
        }
        let online = self.machine.topology().cpus();
        let mut moves = release_stranded(sample, &online, self.settings.applied());
        if !moves.is_empty() {
            let barred = self.settings.barred(self.tally.quanta);
            moves.retain(|asked| !barred.contains_key(&(asked.thread, Setting::of(&asked.change))));
        }
        let outcomes = self.apply(&moves, &Placement::new())?;
        for (asked, outcome) in moves.iter().zip(&outcomes) {
            self.tally.add_move(asked, outcome);
        }
        Ok(())
    }

    /// Leaves the reserved hardware threads to the decision, and lets the decision's time pass. Gives
    /// what was applied before, if that has changed.
    fn make_room(
        &mut self,
        sample: &Sample,
        online: &CpuSet,
    ) -> Result<Option<Placement>, ControlError<M::Error>> {
        let Deciding { reserved, takes } = self.deciding.clone();
        let mut before = None;
        if !reserved.is_empty() {
            let applied = self.settings.applied();
            let wanted = self.deciding.elsewhere(sample, online, applied);
            let barred = self.settings.barred(self.tally.quanta);
            let support = self.machine.support();
            let situation = Situation { sample, online, support, applied, barred: &barred };
            let plan = self.planner.plan(&situation, &wanted);
            before = Some(applied.clone());
            let outcomes = self.apply(&plan.moves, &wanted)?;
            for (asked, outcome) in plan.moves.iter().zip(&outcomes) {
                self.tally.add_move(asked, outcome);
            }
        }
        if !takes.is_zero() {
            self.machine.wait(takes).map_err(ControlError::Machine)?;
        }
        Ok(before)
    }

    /// Asks the machine for moves and notes their outcomes.
    fn apply(
        &mut self,
        moves: &[Move],
        placement: &Placement,
    ) -> Result<Vec<Outcome>, ControlError<M::Error>> {
        if moves.is_empty() {
            return Ok(Vec::new());
        }
        let outcomes = self.machine.apply(moves).map_err(ControlError::Machine)?;
        for (asked, outcome) in moves.iter().zip(&outcomes) {
            let wanted = placement.get(&asked.thread);
            self.settings.note(self.tally.quanta, asked, outcome, wanted);
        }
        if outcomes.len() != moves.len() {
            let (moves, outcomes) = (moves.len(), outcomes.len());
            return Err(ControlError::Outcomes { moves, outcomes });
        }
        Ok(outcomes)
    }
}

/// Threads of a sample that the one before did not have, whatever program they
/// run now; both are ordered.
fn count_new(before: Option<&Sample>, now: &Sample) -> u64 {
    let key = |id: &ThreadId| (id.process, id.thread, id.born);
    let known = |id: &ThreadId| {
        before.is_some_and(|b| b.threads.binary_search_by_key(&key(id), |t| key(&t.id)).is_ok())
    };
    now.threads.iter().filter(|t| !known(&t.id)).count() as u64
}
