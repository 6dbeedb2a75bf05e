//! What researchers use, and packagers: simulation, training, profiles, published figures; man pages and completions.

mod analyze;
pub mod args;
mod check_sim;
mod fitting;
mod generate;
mod machines;
mod prepare;
mod profile;
mod reproduce;
mod simulate;
mod traces;
mod train;
mod vectors;

use std::sync::Arc;

use symbiont_linux::launch::Job;
use symbiont_policy::KnownActivity;

pub use self::args::VectorFiles;
use self::args::{Analyze, Generate, Research};
use self::profile::vectors::of_this_machine;

/// Carries a command out.
pub fn dispatch(command: Research) -> anyhow::Result<()> {
    match command {
        Research::Analyze(Analyze::Phases(args)) => analyze::phases(&args),
        Research::Profile(args) => profile::profile(&args),
        Research::Simulate(args) => simulate::run(&args),
        Research::CheckSim(args) => check_sim::run(&args),
        Research::Machines(args) => machines::machines(&args),
        Research::Workloads(args) => machines::workloads(&args),
        Research::Reproduce(args) => reproduce::run(&args),
        Research::Train(args) => train::run(&args),
        Research::Nop => {
            symbiont_experiments_sim::training::real::nop();
            Ok(())
        }
        Research::Generate(Generate::Man { folder }) => generate::man(&folder),
        Research::Generate(Generate::Completions { folder }) => generate::completions(&folder),
    }
}

impl VectorFiles {
    /// Are there any?
    pub fn are_given(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// Activity vectors of the jobs' executables.
    pub fn activity(&self, jobs: &[Job]) -> anyhow::Result<Option<Arc<KnownActivity>>> {
        let programs = if self.are_given() { vectors::executables(jobs)? } else { Vec::new() };
        vectors::known(&self.vectors, of_this_machine, &programs)
    }
}
