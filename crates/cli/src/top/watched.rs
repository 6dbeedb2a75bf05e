//! Snapshots without a daemon: the threads of the user's processes, only watched.
//!
//! # Approach
//! As `symbiont stat` does, by [`symbiont_linux::observe`], which needs no journal and no lock and
//! changes nothing. Which processes those are, [`Processes`] knows. A program is a process here.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::Context;
use rustix::process::Pid;
use rustix::thread::sched_getaffinity;
use symbiont_linux::observe::{Choice, Observed, WatchError, WatchOptions, Watcher};
use symbiont_machine::{ProgramId, RunState};
use symbiont_topology::{CpuSet, HostTopology, PuId};
use symbiont_wire::{CoreStatus, ProgramStatus, Snapshot, ThreadStatus};

use crate::processes::Processes;

/// The one program of the watcher: what is shown as a program here is a process.
const ALL: ProgramId = ProgramId(0);

/// Watches the user's processes.
pub struct Watched {
    watcher: Watcher,
    host: HostTopology,
    processes: Processes,
}

impl Watched {
    /// Begins; looks at nothing yet.
    ///
    /// # Errors
    /// When /proc or the topology cannot be read.
    pub fn start() -> anyhow::Result<Self> {
        let options = WatchOptions { choice: Choice::Scan, ..WatchOptions::default() };
        let watcher = Watcher::start(options, Box::new(())).context("threads cannot be watched")?;
        let host = HostTopology::read().context("cannot read this machine's topology")?;
        Ok(Self { watcher, host, processes: Processes::of_this_user() })
    }

    /// All threads now.
    ///
    /// # Errors
    /// When /proc cannot be listed.
    pub fn look(&mut self) -> anyhow::Result<Snapshot> {
        let is_known = |process| self.watcher.program_of(process).is_some();
        for process in self.processes.unknown(is_known) {
            match self.watcher.enrol(ALL, process) {
                Ok(()) | Err(WatchError::NoSuchProcess { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let observed = self.watcher.read()?;
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a year are exact enough")]
        let at_s = at.tv_sec as f64 + at.tv_nsec as f64 / 1e9;
        let mut programs: BTreeMap<u32, ProgramStatus> = BTreeMap::new();
        for thread in &observed {
            let process = thread.id.process;
            let program = programs.entry(process).or_insert_with(|| program(process));
            program.threads += 1;
        }
        Ok(Snapshot {
            at_s,
            manager: None,
            cores: cores(&self.host),
            programs: programs.into_values().collect(),
            threads: observed.iter().map(thread).collect(),
            ..Snapshot::default()
        })
    }
}

fn program(process: u32) -> ProgramStatus {
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned();
    ProgramStatus {
        program: process,
        name: if name.is_empty() { "?".to_owned() } else { name },
        uid: fs::metadata(format!("/proc/{process}")).map_or(0, |file| file.uid()),
        roots: vec![process],
        processes: 1,
        ..ProgramStatus::default()
    }
}

fn thread(observed: &Observed) -> ThreadStatus {
    ThreadStatus {
        thread: observed.id.thread,
        process: observed.id.process,
        program: observed.id.process,
        state: match observed.state {
            RunState::Runnable => "runnable",
            RunState::Sleeping => "sleeping",
            RunState::Stopped => "stopped",
        }
        .to_owned(),
        cpu: observed.cpu.map(|cpu| cpu.0),
        allowed: allowed(observed.id.thread).to_string(),
        run_time_s: observed.run_time.as_secs_f64(),
        wait_time_s: observed.wait_time.as_secs_f64(),
        ..ThreadStatus::default()
    }
}

/// Hardware threads that a thread may use; none if it has ended.
fn allowed(thread: u32) -> CpuSet {
    let number = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let Some(mask) = number.and_then(|thread| sched_getaffinity(Some(thread)).ok()) else {
        return CpuSet::new();
    };
    let most = rustix::thread::CpuSet::MAX_CPU;
    let cpus = (0..most).filter(|cpu| mask.is_set(*cpu));
    cpus.filter_map(|cpu| u32::try_from(cpu).ok()).map(PuId).collect()
}

fn cores(host: &HostTopology) -> Vec<CoreStatus> {
    let one = |core: &symbiont_topology::Core| CoreStatus {
        core: core.id.0,
        cpus: core.cpus.to_string(),
        llc: core.llc.0,
        node: core.node.0,
        package: core.package.0,
        capacity: core.capacity,
        others: 0,
        busy_share: None,
    };
    host.cores().iter().map(one).collect()
}
