//! Tables made ahead of time: by all processors, kept from run to run, until stopped.
//!
//! # Problem
//! The table of a phase in a mode takes some tenths of a second of a processor; a workload needs
//! hundreds of them. Someone is waiting for that, perhaps in vain.
//!
//! # Approach
//! Phases are independent of each other, and so are tables: workers take the next one from a
//! list. A [`TableCache`] keeps tables between runs; it knows each by its [`TableName`], which
//! follows from all that the table follows from: the phase, what the window model and the ranges
//! of its inputs know of the machine, and the code that makes tables. Each table goes to the cache as
//! soon as it is made, so that stopping loses at most one for each worker.
//!
//! # Properties
//! - A core that is full needs a table for co-runners alone (`full_cores_need_fewer_tables`).
//! - Tables do not depend on the number of workers, nor on the cache
//!   (`workers_and_shelves_change_no_table`).
//! - A stop keeps what was made (`what_was_made_before_a_stop_is_kept`).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use symbiont_profile::Phase;

use crate::fast::TableBuilder;
use crate::physics::pipeline::CoreSharing;
use crate::physics::prepared::{PrepareError, Prepared};
use crate::physics::response_table::ResponseTable;

/// Distinguishes the code that makes tables from any other: a digest of its source.
pub const CODE: &str = env!("SYMBIONT_TABLE_CODE");

/// SHA-256 of all that a phase holds.
pub type PhaseDigest = [u8; 32];

/// What a table follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The phase.
    pub phase: PhaseDigest,
    /// What a core of the machine has for it in this mode, and the memory behind it, value by
    /// value.
    pub machine: String,
}

/// Where tables are kept from one run to the next.
pub trait TableCache: Sync {
    /// The digest of a phase; none if it has none, and its tables are not kept.
    fn digest(&self, phase: &Phase) -> Option<PhaseDigest>;
    /// A table that was put there.
    fn take(&self, name: &TableName) -> Option<ResponseTable>;
    /// Keeps a table, if it can.
    fn put(&self, name: &TableName, table: &ResponseTable);
}

/// Which cores a thread is to run on: set up for so many threads, and alone there or not.
pub type CoreUse = (u32, CoreSharing);

/// Cores in these modes, each with all of the threads that it is set up for.
pub fn full_cores(modes: &[u32]) -> impl Iterator<Item = CoreUse> + '_ {
    modes.iter().map(|mode| (*mode, CoreSharing::of(*mode as usize)))
}

/// Cores in these modes, with one thread or with others: what throttled ST needs, and threads that
/// have their units for themselves.
pub fn any_cores(modes: &[u32]) -> impl Iterator<Item = CoreUse> + '_ {
    modes.iter().copied().flat_map(sharings)
}

/// How many tables are made, of those that were not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableProgress {
    /// Made by now.
    pub done: usize,
    /// To be made in all.
    pub of: usize,
}

/// A table that has to be made.
struct MissingTable {
    prepared: Arc<Prepared>,
    core_type: usize,
    mode: u32,
    sharing: CoreSharing,
    name: Option<TableName>,
}

impl<'p> TableBuilder<'p> {
    /// Makes tables of some phases ahead of time, for these uses of each core type, by
    /// several workers. Tables that are on the `cache` are taken from there. `report` gets how far
    /// it is, before the first table and after each, and says whether to go on; it hears
    /// nothing if no table has to be made. What is not made ahead is made when it is first needed.
    ///
    /// # Errors
    /// When a phase cannot be simulated.
    pub fn make_ready(
        &self,
        phases: &[&'p Phase],
        uses: &[CoreUse],
        workers: usize,
        cache: Option<&dyn TableCache>,
        report: &(dyn Fn(TableProgress) -> ControlFlow<()> + Sync),
    ) -> Result<ControlFlow<()>, PrepareError> {
        let look =
            |phase: &&'p Phase| (self.missing(phase, uses, cache), ControlFlow::Continue(()));
        let (found, _) = in_parallel(phases, workers, look);
        let found = found.into_iter().collect::<Result<Vec<_>, _>>()?;
        let missing: Vec<MissingTable> = found.into_iter().flatten().collect();
        let of = missing.len();
        if of == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if report(TableProgress { done: 0, of }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let done = AtomicUsize::new(0);
        let make = |missing: &MissingTable| {
            let MissingTable { prepared, core_type, mode, sharing, .. } = missing;
            let table = self.physics().prepare(prepared, *core_type, *mode, *sharing);
            if let (Some(table), Some(cache), Some(name)) = (table, cache, &missing.name) {
                cache.put(name, table);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            ((), report(TableProgress { done, of }))
        };
        Ok(in_parallel(&missing, workers, make).1)
    }

    /// Most hardware threads of a core of this type.
    fn widest(&self, core_type: usize) -> u32 {
        let description = self.description();
        let kind = description.core_types.get(core_type).map(|core| &core.kind);
        let cores = description.topology.cores().iter();
        let widths = cores.filter(|core| Some(&core.kind) == kind).map(|core| core.cpus.len());
        widths.max().unwrap_or(1) as u32
    }

    /// The tables of a phase that are not on the cache.
    fn missing(
        &self,
        phase: &'p Phase,
        uses: &[CoreUse],
        cache: Option<&dyn TableCache>,
    ) -> Result<Vec<MissingTable>, PrepareError> {
        let prepared = self.prepared(phase)?;
        let digest = cache.and_then(|cache| cache.digest(phase));
        let mut missing = Vec::new();
        for core_type in 0..prepared.cores.len() {
            let widest = self.widest(core_type);
            for (mode, sharing) in uses.iter().copied().filter(|(mode, _)| *mode <= widest) {
                let basis = self.physics().table_basis(core_type, mode, sharing);
                let core = self.description().core_types.get(core_type);
                let machine = core.zip(basis).map(|(core, basis)| format!("{core:?} {basis}"));
                let name = digest.zip(machine).map(|(phase, machine)| TableName { phase, machine });
                let kept = cache.zip(name.as_ref()).and_then(|(cache, name)| cache.take(name));
                if !kept.is_some_and(|table| prepared.put_table(core_type, mode, sharing, table)) {
                    let prepared = Arc::clone(&prepared);
                    missing.push(MissingTable { prepared, core_type, mode, sharing, name });
                }
            }
        }
        Ok(missing)
    }
}

/// A mode with the sharing that is possible in it: with one thread, none.
fn sharings(mode: u32) -> impl Iterator<Item = CoreUse> {
    let of = move |threads| (mode, CoreSharing::of(threads));
    [1, mode as usize].into_iter().take(mode.min(2) as usize).map(of)
}

/// Does something with each of some items, several at a time; gives what came out in the order of
/// the items, as far as it went until one said to stop.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    workers: usize,
    work: impl Fn(&T) -> (R, ControlFlow<()>) + Sync,
) -> (Vec<R>, ControlFlow<()>) {
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let worker = || {
        let mut results = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            let (result, flow) = work(item);
            results.push((index, result));
            if flow.is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        results
    };
    let mut results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(items.len())).map(|_| scope.spawn(worker)).collect();
        let mut results = worker();
        for other in others {
            match other.join() {
                Ok(more) => results.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    let flow = match stopped.into_inner() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    (results.into_iter().map(|(_, result)| result).collect(), flow)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::sync::Mutex;

    use symbiont_profile::test_support;

    use super::*;
    use crate::description::Description;

    /// Keeps tables in memory.
    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<(PhaseDigest, String), ResponseTable>>);

    impl TableCache for Kept {
        fn digest(&self, phase: &Phase) -> Option<PhaseDigest> {
            let mut hasher = DefaultHasher::new();
            format!("{phase:?}").hash(&mut hasher);
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&hasher.finish().to_le_bytes());
            Some(digest)
        }

        fn take(&self, name: &TableName) -> Option<ResponseTable> {
            self.0.lock().unwrap().get(&(name.phase, name.machine.clone())).cloned()
        }

        fn put(&self, name: &TableName, table: &ResponseTable) {
            self.0.lock().unwrap().insert((name.phase, name.machine.clone()), table.clone());
        }
    }

    fn builder() -> TableBuilder<'static> {
        TableBuilder::new(Description::named("xsim").unwrap())
    }

    fn phases() -> [Phase; 2] {
        [test_support::cache_resident(), test_support::floating_point()]
            .map(|profile| profile.phases[0].clone())
    }

    const GO_ON: fn(TableProgress) -> ControlFlow<()> = |_| ControlFlow::Continue(());

    #[test]
    fn workers_and_shelves_change_no_table() {
        let phases = phases();
        let phases: Vec<&Phase> = phases.iter().collect();
        let cache = Kept::default();
        let uses: Vec<CoreUse> = any_cores(&[1, 2]).collect();
        let tables =
            |workers,
             cache: Option<&dyn TableCache>,
             report: &(dyn Fn(TableProgress) -> ControlFlow<()> + Sync)| {
                let builder = TableBuilder::new(Description::named("xsim").unwrap());
                let flow = builder.make_ready(&phases, &uses, workers, cache, report).unwrap();
                assert!(flow.is_continue());
                phases
                    .iter()
                    .flat_map(|phase| {
                        let prepared = builder.prepared(phase).unwrap();
                        let tables: Vec<_> =
                            prepared.tables().map(|(s, m, c, t)| (s, m, c, t.clone())).collect();
                        tables
                    })
                    .collect::<Vec<_>>()
            };
        let one = tables(1, None, &GO_ON);
        // Of two phases: alone in each mode, and with co-runners in the second.
        assert_eq!(one.len(), 6);
        assert_eq!(one, tables(3, Some(&cache), &GO_ON));
        let silent = |made| panic!("all tables are on the cache, but {made:?}");
        assert_eq!(one, tables(2, Some(&cache), &silent));
    }

    #[test]
    fn full_cores_need_fewer_tables() {
        let (alone, others) = (CoreSharing::Alone, CoreSharing::Others);
        assert_eq!(full_cores(&[1, 4]).collect::<Vec<_>>(), [(1, alone), (4, others)]);
        let any: Vec<_> = any_cores(&[1, 4]).collect();
        assert_eq!(any, [(1, alone), (4, alone), (4, others)]);
    }

    #[test]
    fn what_was_made_before_a_stop_is_kept() {
        let phases = phases();
        let phases: Vec<&Phase> = phases.iter().collect();
        let cache = Kept::default();
        let uses: Vec<CoreUse> = any_cores(&[1, 2]).collect();
        let stop = |made: TableProgress| match made.done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let flow = builder().make_ready(&phases, &uses, 1, Some(&cache), &stop).unwrap();
        assert!(flow.is_break());
        assert_eq!(cache.0.lock().unwrap().len(), 1);
        let rest = Mutex::new(Vec::new());
        let note = |made: TableProgress| {
            rest.lock().unwrap().push(made.of);
            ControlFlow::Continue(())
        };
        assert!(
            builder().make_ready(&phases, &uses, 2, Some(&cache), &note).unwrap().is_continue()
        );
        assert_eq!(rest.into_inner().unwrap(), [5; 6]);
    }
}
