//! Training on the simulated machine.
//!
//! One core with as many hardware threads as the widest groups need. Alone, it
//! is set up for more threads than run, for which a real machine needs processes that execute
//! no-operations. What these take from the program beyond that is not part of such a run and is measured by itself:
//! each program co-runs with them too ([`NOPS`]). All memory is on the
//! core's own node.

use std::collections::BTreeMap;
use std::time::Duration;

use symbiont_counters::catalogue::{Catalogue, CatalogueError};
use symbiont_model::Components;
use symbiont_profile::Profile;
use symbiont_profile::test_support::no_operations;
use symbiont_sim_fast::fast::{Switches, TableBuilder};
use symbiont_sim_fast::machine::{Errors, SimMachine, SimOptions};
use symbiont_sim_fast::program::{Shape, SimProgram};
use symbiont_topology::CoreKind;

use super::{Site, TrainingRun, TrainingSize, WatchedRun, watch};
use crate::code::{CODE, machine, profile};
use crate::held;
use symbiont_campaign::{Error, digest};

/// About what a simulated second of a hardware thread takes on one CPU of today.
const COST: Duration = Duration::from_millis(10);

/// By this name the profile of [`nops`] is given.
pub const NOPS: &str = "no-operations";

/// The profile of a process that executes nothing but no-operations.
#[must_use]
pub fn nops() -> Profile {
    no_operations()
}

/// How simulated machines are named in model files: never like a real one.
#[must_use]
pub fn machine_name(description: &symbiont_sim_fast::description::Description) -> String {
    format!("{}{}", description.name, symbiont_model::SIMULATED)
}

/// The catalogue by which a described machine's counts are understood.
///
/// # Errors
/// When there is none of that name.
pub fn catalogue(
    description: &symbiont_sim_fast::description::Description,
) -> Result<Catalogue, CatalogueError> {
    let name = description.core_types.first().map_or("", |core| core.catalogue.as_str());
    Catalogue::named(name).unwrap_or_else(|| Catalogue::parse(name, ""))
}

/// A simulated core.
pub struct Simulated<'w, 'p> {
    builder: &'w TableBuilder<'p>,
    profiles: &'p BTreeMap<String, Profile>,
    catalogue: Catalogue,
    errors: Errors,
    seed: u64,
    workers: usize,
    /// Digests of code and machine, and of each profile.
    digests: (String, BTreeMap<String, String>),
}

impl<'w, 'p> Simulated<'w, 'p> {
    /// On a builder of one core; `profiles` are by program. With that of [`nops`] among them it is
    /// measured too what no-operations cost.
    ///
    /// # Errors
    /// When the machine's catalogue cannot be read.
    pub fn new(
        builder: &'w TableBuilder<'p>,
        profiles: &'p BTreeMap<String, Profile>,
        (errors, seed, workers): (Errors, u64, usize),
    ) -> Result<Self, CatalogueError> {
        let catalogue = catalogue(builder.description())?;
        let machine = digest(&[CODE, &machine(builder.description())]);
        let of = |(name, of): (&String, &Profile)| (name.clone(), profile(of));
        let digests = (machine, profiles.iter().map(of).collect());
        Ok(Self { builder, profiles, catalogue, errors, seed, workers, digests })
    }

    fn program(&self, name: &str) -> Result<SimProgram<'p>, Error> {
        let profile = self.profiles.get(name);
        let profile = profile
            .ok_or_else(|| Error::evaluation(format!("no profile was given for '{name}'")))?;
        Ok(SimProgram { name: name.to_owned(), profile, shape: Shape::Single, target: None })
    }
}

impl Site for Simulated<'_, '_> {
    fn machine(&self) -> String {
        machine_name(self.builder.description())
    }

    fn facts(&self) -> Vec<(String, String)> {
        let description = self.builder.description();
        let checked = description.checked.as_deref().unwrap_or("unchecked");
        let assumed = description.assumed().count();
        let fact = |name: &str, value: String| (name.to_owned(), value);
        vec![
            fact("Machine", format!("simulated: {} ({})", description.name, description.title)),
            fact("Checked by a cycle-level core", checked.to_owned()),
            fact("Held against hardware", held(description).to_owned()),
            fact(
                "Description",
                format!("{assumed} of {} values assumed", description.values.len()),
            ),
            fact("Note", description.note.clone()),
        ]
    }

    fn core(&self) -> CoreKind {
        self.builder.description().core_types.first().map_or(CoreKind::default(), |c| c.kind)
    }

    fn basis(&self, run: &TrainingRun) -> String {
        let (machine, profiles) = &self.digests;
        let nops = matches!(run, TrainingRun::Nops { .. }).then_some(NOPS);
        let programs = run.programs().iter().map(String::as_str).chain(nops);
        let conditions = format!("{:?} {:?} {}", self.core(), self.errors, self.seed);
        let own = programs.filter_map(|name| profiles.get(name).map(String::as_str));
        digest(&[machine.as_str(), &conditions].into_iter().chain(own).collect::<Vec<_>>())
    }

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn tells_nops(&self) -> bool {
        self.profiles.contains_key(NOPS)
    }

    fn carry_out(
        &self,
        run: &TrainingRun,
        components: &Components,
        size: &TrainingSize,
    ) -> Result<WatchedRun, Error> {
        let wrong = |why: String| Error::evaluation(format!("{run}: {why}"));
        let (nops, least_mode) = match run {
            TrainingRun::Alone { width, .. } => (0, *width as u32),
            TrainingRun::Together(_) => (0, 0),
            TrainingRun::Nops { width, .. } => (width - 1, 0),
        };
        let names =
            run.programs().iter().map(String::as_str).chain(std::iter::repeat_n(NOPS, nops));
        let programs = names.map(|name| self.program(name)).collect::<Result<Vec<_>, _>>()?;
        let fast = self.builder.fast(Switches::default());
        let (seed, errors) = (self.seed, self.errors);
        let options =
            SimOptions { seed, errors, least_mode, one_memory: true, ..SimOptions::default() };
        let mut machine = SimMachine::new(self.builder.description(), fast, programs, &[], options)
            .map_err(|why| wrong(why.to_string()))?;
        let (readings, stretch) = size.readings(run);
        watch(&mut machine, components, readings, stretch).map_err(|why| wrong(why.to_string()))
    }

    fn cost(&self, run: &TrainingRun, size: &TrainingSize) -> Duration {
        COST.mul_f64(run.threads() as f64 * size.quanta as f64 * size.quantum.as_secs_f64())
    }
}
