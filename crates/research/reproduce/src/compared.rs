//! Mixes on a simulated machine under contenders, carried out for a source.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;
use symbiont_sim_fast::fast::TableBuilder;

use super::Context;
use symbiont_campaign::{Error, FinishedRun, Progress, Repeats, Rows, carry_out, digest};
use symbiont_experiments_sim::code::{CODE, machine, profile};
use symbiont_experiments_sim::mixes::{Contender, Mix, MixRecord, MixRun, Mixes, rows};
use symbiont_experiments_sim::training::Models;

/// A machine that is ready for its programs.
#[derive(Debug)]
pub struct PreparedMachine<'p> {
    /// The machine.
    pub builder: TableBuilder<'p>,
    profiles: &'p BTreeMap<String, Profile>,
    basis: (String, BTreeMap<String, String>),
}

/// What is compared on it.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// Its name, under which runs are kept.
    pub name: String,
    /// The mixes.
    pub mixes: Vec<Mix>,
    /// The contenders, the baseline first.
    pub contenders: Vec<Contender>,
    /// How often each mix is repeated.
    pub repeats: Repeats,
    /// How long each program runs alone to set its target.
    pub alone: Duration,
    /// Interference models without the programs of a mix.
    pub models: &'a [&'a Models<'a>],
}

/// The result.
#[derive(Debug)]
pub struct MixResults {
    /// The mixes.
    pub mixes: Vec<Mix>,
    /// All runs.
    pub finished: Vec<FinishedRun<MixRun, MixRecord>>,
    /// The same, for comparisons.
    pub rows: Rows,
}

impl<'p> PreparedMachine<'p> {
    /// Prepares a machine for programs on cores with this many threads.
    pub fn new(
        description: Description,
        profiles: &'p BTreeMap<String, Profile>,
        modes: &[u32],
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let builder = TableBuilder::new(description);
        (context.prepare)(&builder, &profiles.values().collect::<Vec<_>>(), modes)?;
        let common = digest(&[CODE, &machine(builder.description())]);
        let digests = profiles.iter().map(|(name, of)| (name.clone(), profile(of))).collect();
        Ok(Self { builder, profiles, basis: (common, digests) })
    }

    /// The profile of a program.
    pub fn profile(&self, program: &str) -> Result<&'p Profile, Error> {
        let missing = || Error::evaluation(format!("there is no profile of {program}"));
        self.profiles.get(program).ok_or_else(missing)
    }

    /// A digest of code, machine and a program's profile.
    pub fn basis_of(&self, program: &str) -> String {
        let (common, profiles) = &self.basis;
        digest(&[common, profiles.get(program).map_or("", String::as_str)])
    }

    /// Carries out what is not kept yet.
    pub fn carry_out(
        &self,
        comparison: Comparison<'_>,
        context: &Context<'_>,
        progress: &mut dyn Progress,
    ) -> Result<MixResults, Error> {
        let Comparison { name, mixes, contenders, repeats, alone, models } = comparison;
        let experiment = Mixes {
            name,
            builder: &self.builder,
            profiles: self.profiles,
            mixes,
            contenders,
            repeats,
            alone,
            seed: context.seed,
            basis: self.basis.clone(),
            targets: Mutex::default(),
            models,
        };
        let finished = carry_out(&experiment, &context.records, context.workers, progress)?;
        let rows = rows(&experiment.mixes, &finished);
        Ok(MixResults { mixes: experiment.mixes, finished, rows })
    }
}
