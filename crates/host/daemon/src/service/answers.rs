//! What clients are answered about programs and their threads: status, snapshots, reasons.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use symbiont_linux::machine::Statistics;
use symbiont_machine::{Class, Machine, ProgramId, Sample, ThreadSample};
use symbiont_wire::{
    Explanations, Failure, KernelScheduler, NextToProgram, ProgramStatus, Reply, Status, Usage, Why,
};

use super::{MachineController, Service, not_managed};
use crate::contained::{labels_to_wire, to_wire};
use crate::explain::{self, Names, StepContext};
use crate::programs::ManagedProgram;
use crate::snapshot::{pages, snapshot};
use crate::{OwnedProcess, Peer};

/// Programs in one reply of `Status`: far below the bound of a message.
const PROGRAMS_IN_A_REPLY: usize = 32;
/// Of a message's bound, what the envelope leaves.
const ROOM: usize = symbiont_wire::MOST_BYTES - 1024;

impl Service {
    pub(super) fn why(
        &self,
        managed: &MachineController,
        peer: Peer,
        id: u32,
    ) -> Result<Reply, Failure> {
        /// Threads in a reply, as a start.
        const MOST: usize = 48;
        let names = self.names(peer);
        let (mut threads, more) = match self.step_context(managed) {
            Some(known) => explain::why(&known, id, &names, MOST),
            None => (Vec::new(), 0),
        };
        if threads.is_empty() {
            return Err(not_managed(id));
        }
        let all = threads.len() + more;
        let changed: BTreeSet<u32> =
            managed.externally_changed().map(|(thread, _)| thread.thread).collect();
        for thread in &mut threads {
            if thread.withheld.is_none() && changed.contains(&thread.thread) {
                thread.withheld = Some(symbiont_planner::Why::ExternallyChanged.to_string());
            }
            thread.co_runners.truncate(MOST / 4);
            let program = managed.last().and_then(|step| program_of(&step.sample, thread));
            thread.container = program.and_then(|id| self.contained.of(id)).map(to_wire);
            thread.throttled = program.and_then(|id| self.throttles.of(id).cloned());
        }
        loop {
            let more = u32::try_from(all - threads.len()).unwrap_or(u32::MAX);
            let reply = Reply::of(&Explanations { threads: threads.clone(), more });
            let length = serde_json::to_vec(&reply).map_or(0, |bytes| bytes.len());
            if length <= ROOM || threads.len() <= 1 {
                return Ok(reply);
            }
            threads.truncate(threads.len() / 2);
        }
    }

    fn step_context<'a>(&'a self, managed: &'a MachineController) -> Option<StepContext<'a>> {
        Some(StepContext {
            topology: managed.machine().topology(),
            step: managed.last()?,
            applied: managed.applied(),
            policy: managed.policy(),
        })
    }

    fn names(&self, peer: Peer) -> Names<'_> {
        let visible = self.programs.iter().filter(|(_, program)| peer.may_see(program.owner));
        visible.map(|(id, program)| (id, program.name.as_str())).collect()
    }

    /// The daemon and all programs that the peer may see.
    fn status_of(&self, managed: &MachineController, peer: Peer) -> Status {
        let visible = self.programs.iter().filter(|(_, program)| peer.may_see(program.owner));
        let machine = managed.machine();
        let cost = machine.cost();
        let mut notes = self.notes.all();
        notes.extend(self.metrics.notes());
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            policy: self.policy.clone(),
            quantum_ms: self.quantum.as_secs_f64() * 1e3,
            hardware_threads: u32::try_from(machine.topology().cpus().len()).unwrap_or(u32::MAX),
            programs: visible
                .map(|(id, program)| self.program(managed, id, program, peer))
                .collect(),
            moves: explain::moves(managed.tally()),
            reasons: explain::reasons(managed.tally()),
            usage: Usage {
                cpu_s: cost.cpu.as_secs_f64(),
                quanta: managed.tally().quanta,
                quanta_missed: machine.lateness().missed,
                memory_bytes: cost.memory_bytes,
                rescans: machine.losses().rescans,
            },
            gain_over_chance: managed.policy().gain_over_chance(),
            scheduler: machine.scheduled().map(scheduler_to_wire),
            notes,
        }
    }

    pub(super) fn status(&self, managed: &MachineController, peer: Peer, more: bool) -> Vec<Reply> {
        let mut status = self.status_of(managed, peer);
        let mut programs = std::mem::take(&mut status.programs);
        for ProgramStatus { program, container, .. } in &mut programs {
            if let (Some(shown), Some(of)) = (container, self.contained.of(ProgramId(*program))) {
                shown.labels = labels_to_wire(of);
            }
        }
        let all = programs.len();
        let chunks = programs.chunks(PROGRAMS_IN_A_REPLY);
        let mut pages: Vec<Status> = chunks.flat_map(|chunk| divided(&status, chunk)).collect();
        if pages.is_empty() {
            pages.push(status);
        }
        if !more && pages.len() > 1 {
            pages.truncate(1);
            for page in &mut pages {
                page.notes.push(format!("{} of {all} programs are shown", page.programs.len()));
            }
        }
        replies(&pages)
    }

    pub(super) fn snapshot(
        &self,
        managed: &MachineController,
        peer: Peer,
        more: bool,
    ) -> Vec<Reply> {
        let status = self.status_of(managed, peer);
        let Some(known) = self.step_context(managed) else { return vec![not_managed(0).into()] };
        let whole = snapshot(&known, &self.names(peer), status, &self.recent_moves, peer);
        let mut pages = pages(whole);
        if !more && pages.len() > 1 {
            pages.truncate(1);
            let note = "call it with \"more\": this is a part".to_owned();
            pages.iter_mut().for_each(|page| page.notes.push(note.clone()));
        }
        replies(&pages)
    }

    fn program(
        &self,
        managed: &MachineController,
        id: ProgramId,
        program: &ManagedProgram,
        peer: Peer,
    ) -> ProgramStatus {
        let is_visible = |id| self.programs.get(id).is_some_and(|other| peer.may_see(other.owner));
        let next_to = self.together.of(id).filter(|(other, _)| is_visible(*other));
        let next_to = next_to.map(|(other, next)| NextToProgram {
            program: other.0,
            ln: next.ln,
            together_s: next.together.as_secs_f64(),
        });
        let status = match self.step_context(managed) {
            Some(known) => explain::program_status(&known, id),
            None => ProgramStatus { program: id.0, ..ProgramStatus::default() },
        };
        ProgramStatus {
            name: program.name.clone(),
            class: program.class.to_string(),
            uid: program.owner,
            job: program.job,
            roots: program.roots.iter().take(8).map(OwnedProcess::pid).collect(),
            managed_s: program.since.elapsed().as_secs_f64(),
            quiet: self.quiet.report(id),
            waits: self.waiting.of(id),
            throttled: self.throttles.of(id).cloned(),
            container: self.contained.of(id).map(to_wire),
            next_to: next_to.collect(),
            ..status
        }
    }
}

/// A page of a status in parts that each fit into a message, if one program does.
fn divided(status: &Status, programs: &[ProgramStatus]) -> Vec<Status> {
    let page = Status { programs: programs.to_vec(), ..status.clone() };
    let length = serde_json::to_vec(&page).map_or(0, |bytes| bytes.len());
    if programs.len() <= 1 || length <= ROOM {
        return vec![page];
    }
    let (first, second) = programs.split_at(programs.len().div_ceil(2));
    [divided(status, first), divided(status, second)].concat()
}

fn program_of(sample: &Sample, why: &Why) -> Option<ProgramId> {
    let is_it = |one: &&ThreadSample| (one.id.process, one.id.thread) == (why.process, why.thread);
    Some(sample.threads.iter().find(is_it)?.program)
}

/// All but the last say that more follow.
fn replies<T: Serialize>(pages: &[T]) -> Vec<Reply> {
    let reply = |(at, page)| Reply { continues: at + 1 < pages.len(), ..Reply::of(page) };
    pages.iter().enumerate().map(reply).collect()
}

/// What the scheduler in the kernel counted.
pub(super) fn scheduler_to_wire(counted: &Statistics) -> KernelScheduler {
    let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
    let idle = |class| {
        let siblings = counted.siblings.get(&class).filter(|siblings| siblings.all_ns > 0)?;
        Some(siblings.idle_ns as f64 / siblings.all_ns as f64)
    };
    KernelScheduler {
        dispatches: counted.dispatches,
        preemptions: counted.preemptions,
        starved: counted.starved,
        own_s: seconds(counted.own_ns),
        lent_s: seconds(counted.lent_ns),
        latency_siblings_idle: idle(Class::Latency),
        alone_siblings_idle: idle(Class::Alone),
    }
}
