//! The runs as an experiment.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use symbiont_profile::Profile;
use symbiont_sim_fast::fast::TableBuilder;

use super::plan::{Contender, HyschedRun, HyschedSize, plan};
use super::play::{HyschedRecord, PairStp, Player, cost};
use symbiont_campaign::{Error, Experiment, FinishedRunOf};

/// Hy-Sched on a simulated machine.
pub struct Trial<'a, 'p> {
    player: Player<'a, 'p>,
    /// What records follow from, given the programs of a run.
    basis: &'a (dyn Fn(&[String]) -> String + Sync),
}

impl std::fmt::Debug for Trial<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial").field("size", self.player.size).finish_non_exhaustive()
    }
}

impl<'a, 'p> Trial<'a, 'p> {
    /// The trial on a machine that was prepared for these programs.
    pub fn new(
        builder: &'a TableBuilder<'p>,
        profiles: &'p BTreeMap<String, Profile>,
        size: &'a HyschedSize,
        seed: u64,
        basis: &'a (dyn Fn(&[String]) -> String + Sync),
    ) -> Self {
        Self { player: Player::new(builder, profiles, size, seed), basis }
    }
}

impl Experiment for Trial<'_, '_> {
    type Run = HyschedRun;
    type Record = HyschedRecord;

    fn name(&self) -> String {
        "hysched".to_owned()
    }

    fn basis(&self, run: &HyschedRun) -> String {
        let HyschedSize { alone, quantum, .. } = self.player.size;
        let seed = self.player.seed;
        format!("{} {alone:?} {quantum:?} {seed}", (self.basis)(&run.scene.programs))
    }

    /// All but exact matching, then that, as it rests on the pairs.
    fn next(&self, done: &[FinishedRunOf<Self>]) -> Vec<HyschedRun> {
        let all = plan(self.player.size, self.player.seed);
        let (matched, others): (Vec<HyschedRun>, Vec<HyschedRun>) =
            all.into_iter().partition(|run| run.contender == Contender::Matched);
        if done.is_empty() {
            return others;
        }
        if done.len() > others.len() {
            return Vec::new();
        }
        let stp = PairStp::of_runs(done);
        let pairs =
            |run: HyschedRun| Some(HyschedRun { pairs: stp.best(&run.scene.programs)?, ..run });
        matched.into_iter().filter_map(pairs).collect()
    }

    fn carry_out(&self, run: &HyschedRun, _: &AtomicBool) -> Result<HyschedRecord, Error> {
        Ok(self.player.play(run)?)
    }

    fn cost(&self, run: &HyschedRun) -> Duration {
        cost(run, self.player.size)
    }
}
