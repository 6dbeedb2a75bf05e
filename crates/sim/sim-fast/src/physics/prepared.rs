//! A phase prepared for the cores of a machine.
//!
//! # Approach
//! [`Prepared::new`] prepares the phase for each core type ([`ForCore`]), once. The tables of the window
//! model are kept for each SMT mode when they are first needed ([`KeptTables`]).

use std::sync::OnceLock;

use symbiont_profile::Phase;
use thiserror::Error;

use super::for_core::{Facts, ForCore};
use super::pipeline::CoreSharing;
use super::response_table::ResponseTable;
use crate::description::{Description, MOST_THREADS};

/// SMT modes that are distinguished.
const MODES: usize = MOST_THREADS;

/// Why a phase cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// It holds no micro-trace of even one instruction.
    #[error("the phase holds no micro-traces; capture the profile again")]
    NoTraces,
    /// It counts no instructions.
    #[error("the phase counts no instructions; capture the profile again")]
    Empty,
}

/// The tables of a phase on a core type, by SMT mode, alone and with co-runners, once they are
/// made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptTables([[OnceLock<Box<ResponseTable>>; 2]; MODES]);

impl KeptTables {
    /// The table of an SMT mode; `make` makes it the first time.
    pub fn get_or_make(
        &self,
        mode: u32,
        sharing: CoreSharing,
        make: impl FnOnce() -> ResponseTable,
    ) -> &ResponseTable {
        let slot = (mode.max(1) as usize).min(MODES) - 1;
        let shares_core = usize::from(sharing == CoreSharing::Others);
        self.0[slot][shares_core].get_or_init(|| Box::new(make()))
    }

    fn iter(&self) -> impl Iterator<Item = (u32, CoreSharing, &ResponseTable)> {
        self.0.iter().zip(1..).flat_map(|(tables, mode)| {
            let made = tables.iter().zip([CoreSharing::Alone, CoreSharing::Others]);
            made.filter_map(move |(table, sharing)| Some((mode, sharing, table.get()?.as_ref())))
        })
    }
}

/// A phase prepared for a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Per instruction, whatever the core.
    pub facts: Facts,
    /// By the description's core types.
    pub cores: Vec<ForCore>,
    /// Tables of the core types, in the same order.
    pub tables: Vec<KeptTables>,
}

impl Prepared {
    /// Prepares a phase for a machine.
    ///
    /// # Errors
    /// If the phase is empty or has no micro-traces.
    pub fn new(machine: &Description, phase: &Phase) -> Result<Self, PrepareError> {
        if phase.instructions == 0 {
            return Err(PrepareError::Empty);
        }
        let cores: Vec<_> =
            machine.core_types.iter().map(|core| ForCore::new(core, phase)).collect();
        if cores.iter().any(|core| core.trace.instructions < 1.0) {
            return Err(PrepareError::NoTraces);
        }
        let tables = vec![KeptTables::default(); cores.len()];
        Ok(Self { facts: Facts::new(phase), cores, tables })
    }

    /// The tables made so far: core type, SMT mode, sharing of the core, table. To be kept for the next
    /// run; they hold for this phase on this machine alone.
    pub fn tables(&self) -> impl Iterator<Item = (usize, u32, CoreSharing, &ResponseTable)> {
        self.tables.iter().enumerate().flat_map(|(core_type, tables)| {
            tables.iter().map(move |(mode, sharing, table)| (core_type, mode, sharing, table))
        })
    }

    /// Adds a kept table unless there is one already. Returns whether the table
    /// is sound.
    pub fn put_table(
        &self,
        core_type: usize,
        mode: u32,
        sharing: CoreSharing,
        table: ResponseTable,
    ) -> bool {
        let kept = self.tables.get(core_type).filter(|_| table.is_sound());
        kept.map(|kept| kept.get_or_make(mode, sharing, || table)).is_some()
    }
}
