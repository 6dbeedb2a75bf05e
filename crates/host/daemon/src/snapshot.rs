//! The machine and its managed threads at one moment, as `symbiont top` shows them.
//!
//! # Problem
//! A user wants to see all threads, cores and recent moves at once, again and again; an answer must
//! neither hold up the loop for long nor exceed the bounds of messages.
//!
//! # Approach
//! [`snapshot`] describes the last step of the loop, for the programs that the caller may see, and
//! the busiest [`MOST_THREADS`] of their threads. [`pages`] divides it into replies. [`RecentMoves`]
//! keeps the last moves.
//!
//! # Properties
//! - A user sees own threads, and of others only how many share a core
//!   (`a_user_sees_own_threads_and_how_many_others_share_a_core`).
//! - Each reply fits into a message, and together they are the whole (`pages_fit_and_are_the_whole`).
//! - Moves are bounded, the newest first, with their reasons (`moves_are_the_newest_with_reasons`).

use std::cmp::Reverse;
use std::collections::VecDeque;

use symbiont_control::Step;
use symbiont_counters::Measured;
use symbiont_machine::{
    Change, Priority, RunState, Signal, Target, ThreadId, ThreadSample, Timestamp,
};
use symbiont_topology::Core;
use symbiont_wire::{CoreStatus, ManagerStatus, MoveStatus, Snapshot, Status, ThreadStatus};

use crate::explain::{Names, StepContext, cpus_of, standing};
use crate::programs::Programs;
use crate::{Peer, explain};

/// Threads that are described, the busiest ones.
const MOST_THREADS: usize = 512;
/// Programs that are described.
const MOST_PROGRAMS: usize = 512;
/// Moves that are kept.
const MOST_MOVES: usize = 64;
/// Characters of a reason.
const MOST_REASON: usize = 200;
/// Of a message's bound, what the envelope leaves.
const ROOM: usize = symbiont_wire::MOST_BYTES - 1024;
/// Variants of Top-Down categories, the most detailed first.
const VARIANTS: [Signal; 4] = [Signal::All3L, Signal::TopB2M3L, Signal::TopB2L, Signal::TopL];

/// The last moves that the loop made.
#[derive(Debug, Default)]
pub struct RecentMoves(VecDeque<Noted>);

#[derive(Debug)]
struct Noted {
    at: Timestamp,
    owner: u32,
    shown: MoveStatus,
}

impl RecentMoves {
    /// Keeps the moves of a step.
    pub fn note(&mut self, step: &Step, programs: &Programs) {
        for (asked, outcome) in step.moves() {
            let program = program_of(step, asked.thread).and_then(|id| programs.get(id));
            let Some(program) = program else { continue };
            let reason = step.placement.get(&asked.thread).map(|wanted| wanted.reason.as_ref());
            let shown = MoveStatus {
                ago_s: 0.0,
                thread: asked.thread.thread,
                process: asked.thread.process,
                program: program.name.clone(),
                to: words_of_change(&asked.change),
                outcome: words_of_outcome(outcome),
                reason: bounded(reason.unwrap_or_default()),
            };
            self.0.push_front(Noted { at: step.sample.at, owner: program.owner, shown });
        }
        self.0.truncate(MOST_MOVES);
    }

    /// The moves that a peer may see, the newest first.
    fn seen_by(&self, peer: Peer, now: Timestamp) -> Vec<MoveStatus> {
        let seen = self.0.iter().filter(|noted| peer.may_see(noted.owner));
        let aged = |noted: &Noted| MoveStatus {
            ago_s: now.since(noted.at).as_secs_f64(),
            ..noted.shown.clone()
        };
        seen.map(aged).collect()
    }
}

/// The part of the last step that a peer may see. `status`: the daemon and the programs that the peer may see.
pub fn snapshot(
    known: &StepContext<'_>,
    names: &Names<'_>,
    status: Status,
    recent: &RecentMoves,
    peer: Peer,
) -> Snapshot {
    let sample = &known.step.sample;
    let did_run = |thread: &ThreadSample| {
        known.step.characterizations.get(&thread.id).map_or(0.0, |did| did.running)
    };
    let mut threads: Vec<&ThreadSample> =
        sample.threads.iter().filter(|thread| names.contains_key(&thread.program)).collect();
    // Shares as whole numbers: those have an order.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
    threads.sort_by_key(|thread| Reverse((did_run(thread) * 1e6) as u32));
    let more = threads.len().saturating_sub(MOST_THREADS);
    threads.truncate(MOST_THREADS);
    let mut programs = status.programs;
    programs.truncate(MOST_PROGRAMS);
    for program in &mut programs {
        program.reason = bounded(&program.reason);
    }
    Snapshot {
        at_s: seconds(sample.at),
        manager: Some(ManagerStatus {
            version: status.version,
            pid: status.pid,
            uptime_s: status.uptime_s,
            policy: status.policy,
            quantum_ms: status.quantum_ms,
            moves: status.moves,
            reasons: status.reasons,
            usage: status.usage,
            scheduler: status.scheduler,
        }),
        cores: known.topology.cores().iter().map(|core| core_status(known, names, core)).collect(),
        programs,
        threads: threads.into_iter().map(|thread| thread_status(known, thread)).collect(),
        more_threads: u32::try_from(more).unwrap_or(u32::MAX),
        moves: recent.seen_by(peer, sample.at),
        notes: status.notes,
    }
}

/// Divides a snapshot into parts that each fit into a message; one part if there is no more room.
pub fn pages(snapshot: Snapshot) -> Vec<Snapshot> {
    let length = serde_json::to_vec(&snapshot).map_or(0, |bytes| bytes.len());
    let Snapshot { cores, programs, threads, moves, notes, .. } = &snapshot;
    let longest = [cores.len(), programs.len(), threads.len(), moves.len(), notes.len()];
    if length <= ROOM || longest.iter().all(|length| *length <= 1) {
        return vec![snapshot];
    }
    let mut first = snapshot;
    let second = Snapshot {
        cores: second_half(&mut first.cores),
        programs: second_half(&mut first.programs),
        threads: second_half(&mut first.threads),
        moves: second_half(&mut first.moves),
        notes: second_half(&mut first.notes),
        manager: first.manager.clone(),
        ..first
    };
    [pages(first), pages(second)].concat()
}

fn second_half<T>(list: &mut Vec<T>) -> Vec<T> {
    list.split_off(list.len().div_ceil(2))
}

fn core_status(known: &StepContext<'_>, names: &Names<'_>, core: &Core) -> CoreStatus {
    let ran_here = |thread: &&ThreadSample| {
        let did = known.step.characterizations.get(&thread.id);
        did.is_some_and(|did| did.ready > 0.0)
            && thread.cpu.is_some_and(|cpu| core.cpus.contains(cpu))
    };
    let others = known.step.sample.threads.iter().filter(|t| !names.contains_key(&t.program));
    CoreStatus {
        core: core.id.0,
        cpus: core.cpus.to_string(),
        llc: core.llc.0,
        node: core.node.0,
        package: core.package.0,
        capacity: core.capacity,
        others: u32::try_from(others.filter(ran_here).count()).unwrap_or(u32::MAX),
        busy_share: None,
    }
}

fn thread_status(known: &StepContext<'_>, thread: &ThreadSample) -> ThreadStatus {
    let step = known.step;
    let cpus = cpus_of(known, thread);
    let kept = cpus.and_then(|_| standing(step, known.applied, thread.id));
    let shown = kept.or_else(|| step.placement.get(&thread.id));
    let did = step.characterizations.get(&thread.id);
    let measured = step.measurements.get(&thread.id);
    ThreadStatus {
        thread: thread.id.thread,
        process: thread.id.process,
        program: thread.program.0,
        name: None,
        state: match thread.state {
            RunState::Runnable => "runnable",
            RunState::Sleeping => "sleeping",
            RunState::Stopped => "stopped",
        }
        .to_owned(),
        cpu: thread.cpu.map(|cpu| cpu.0),
        allowed: thread.allowed.to_string(),
        placed: cpus.map(ToString::to_string),
        held: explain::held_to(known, thread),
        reason: shown.map(|assignment| bounded(&assignment.reason)).unwrap_or_default(),
        run_time_s: thread.run_time.as_secs_f64(),
        wait_time_s: thread.wait_time.as_secs_f64(),
        ran_share: did.map(|did| did.running),
        waited_share: did.map(|did| (did.ready - did.running).max(0.0)),
        ipc: measured.and_then(|measured| measured.value("ipc")),
        cpi_stack: measured.and_then(stack).unwrap_or_default(),
        categories: measured.and_then(categories).unwrap_or_default(),
        predicted_slowdown: shown.and_then(|assignment| assignment.predicted_slowdown),
        achieved_slowdown: known.policy.achieved_slowdown(thread.id),
    }
}

fn stack(measured: &Measured) -> Option<std::collections::BTreeMap<String, f64>> {
    let stack = measured.stack().ok()?;
    Some(stack.parts.iter().map(|(name, cycles)| ((*name).to_owned(), *cycles)).collect())
}

fn categories(measured: &Measured) -> Option<std::collections::BTreeMap<String, f64>> {
    let found = VARIANTS.iter().find_map(|variant| measured.categories(*variant).ok())?;
    Some(found.into_iter().map(|(name, share)| (name.to_owned(), share.value)).collect())
}

fn program_of(step: &Step, id: ThreadId) -> Option<symbiont_machine::ProgramId> {
    let threads = &step.sample.threads;
    let at = threads.binary_search_by_key(&id, |thread| thread.id).ok()?;
    threads.get(at).map(|thread| thread.program)
}

fn words_of_change(change: &Change) -> String {
    match change {
        Change::Affinity(Target::Os) => "any".to_owned(),
        Change::Affinity(Target::Cpus(cpus)) => format!("{cpus} (held)"),
        Change::Nudge(cpus) => cpus.to_string(),
        Change::Priority(Priority::Normal) => "normal priority".to_owned(),
        Change::Priority(Priority::Boosted(levels)) => format!("nice {levels} lower"),
        Change::Priority(Priority::Idle) => "idle class".to_owned(),
    }
}

fn words_of_outcome(outcome: &symbiont_machine::Outcome) -> String {
    use symbiont_machine::Outcome;
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Gone => "thread gone".to_owned(),
        Outcome::ExternallyChanged => "externally changed".to_owned(),
        Outcome::Refused(why) => bounded(why),
        Outcome::NotEnforced => "not enforced".to_owned(),
    }
}

fn bounded(reason: &str) -> String {
    explain::shortened(reason, MOST_REASON)
}

fn seconds(at: Timestamp) -> f64 {
    at.since(Timestamp::default()).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use symbiont_control::Controller;
    use symbiont_machine::test_support::FakeMachine;
    use symbiont_machine::{Class, Machine, ProgramId};
    use symbiont_planner::{Bounds, Planner};
    use symbiont_policy::{Settings, find};
    use symbiont_topology::Topology;
    use symbiont_wire::{ProgramStatus, Usage};

    use super::*;
    use crate::programs::ManagedProgram;

    /// Programs of two users under `never-twice` on two cores, after some quanta.
    fn stepped() -> (Controller<FakeMachine>, RecentMoves) {
        let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
        for (program, number) in [(1, 10), (1, 11), (2, 20), (2, 21)] {
            machine.start(program, number);
        }
        let policy = (find("never-twice").unwrap().make)(&Settings::default());
        let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
        let (mut recent, programs) = (RecentMoves::default(), programs());
        for _ in 0..3 {
            recent.note(controller.step().unwrap(), &programs);
            controller.machine_mut().wait(Duration::from_millis(100)).unwrap();
        }
        (controller, recent)
    }

    fn programs() -> Programs {
        let mut programs = Programs::new();
        for (id, name, owner) in [(1, "make", 1000), (2, "xz", 2000)] {
            let (name, since) = (name.to_owned(), std::time::Instant::now());
            let roots = Vec::new();
            let class = Class::Normal;
            let program = ManagedProgram {
                name,
                class,
                owner,
                enrolled_by: owner,
                roots,
                since,
                is_ruled: false,
                linger: true,
                job: None,
                identity: None,
                is_class_stated: false,
                is_held_back: false,
            };
            programs.insert(ProgramId(id), program);
        }
        programs
    }

    fn status() -> Status {
        Status {
            version: "1".into(),
            pid: 7,
            uptime_s: 60.0,
            policy: "never-twice".into(),
            quantum_ms: 100.0,
            hardware_threads: 4,
            programs: vec![ProgramStatus { program: 1, ..ProgramStatus::default() }],
            moves: BTreeMap::new(),
            reasons: BTreeMap::new(),
            usage: Usage::default(),
            gain_over_chance: None,
            scheduler: None,
            notes: vec!["a note".into()],
        }
    }

    fn seen(uid: u32, names: &Names<'_>) -> Snapshot {
        let (controller, recent) = stepped();
        let known = StepContext {
            topology: controller.machine().topology(),
            step: controller.last().unwrap(),
            applied: controller.applied(),
            policy: controller.policy(),
        };
        snapshot(&known, names, status(), &recent, Peer { uid, pid: 1 })
    }

    #[test]
    fn a_user_sees_own_threads_and_how_many_others_share_a_core() {
        let own = seen(1000, &[(ProgramId(1), "make")].into());
        let numbers: Vec<_> = own.threads.iter().map(|thread| thread.thread).collect();
        assert_eq!(numbers, [10, 11]);
        assert!(own.threads.iter().all(|t| t.placed.is_some() && !t.reason.is_empty()), "{own:?}");
        assert!(own.moves.iter().all(|one| one.program == "make") && !own.moves.is_empty());
        assert_eq!(own.cores.len(), 2);
        let all = seen(0, &[(ProgramId(1), "make"), (ProgramId(2), "xz")].into());
        assert_eq!((all.threads.len(), all.more_threads), (4, 0));
        assert_eq!(all.cores.iter().map(|core| core.others).sum::<u32>(), 0);
        assert!(all.moves.iter().any(|one| one.program == "xz"));
        let text = serde_json::to_string(&own).unwrap();
        assert!(!text.contains("xz"), "{text}");
    }

    #[test]
    fn moves_are_the_newest_with_reasons() {
        let all = seen(0, &[(ProgramId(1), "make"), (ProgramId(2), "xz")].into());
        assert!(all.moves.iter().all(|one| one.outcome == "done" && !one.reason.is_empty()));
        assert!(all.moves.windows(2).all(|pair| pair[0].ago_s <= pair[1].ago_s), "{:?}", all.moves);
        let (controller, mut recent) = stepped();
        let (step, programs) = (controller.last().unwrap(), programs());
        let asked = symbiont_machine::Move {
            thread: step.sample.threads[0].id,
            change: Change::Affinity(Target::Os),
        };
        let mut step = step.clone();
        step.plan.moves = vec![asked; MOST_MOVES + 1];
        step.outcomes = vec![symbiont_machine::Outcome::Gone; MOST_MOVES + 1];
        recent.note(&step, &programs);
        let now = recent.seen_by(Peer { uid: 0, pid: 1 }, step.sample.at);
        assert_eq!(now.len(), MOST_MOVES);
        assert!(now.iter().all(|one| one.to == "any" && one.outcome == "thread gone"));
    }

    #[test]
    fn pages_fit_and_are_the_whole() {
        let mut whole = seen(0, &[(ProgramId(1), "make"), (ProgramId(2), "xz")].into());
        let reason = "\u{1}".repeat(MOST_REASON);
        let thread = ThreadStatus { reason: reason.clone(), ..whole.threads[0].clone() };
        whole.threads =
            (0..512).map(|number| ThreadStatus { thread: number, ..thread.clone() }).collect();
        whole.programs = vec![ProgramStatus { name: reason, ..ProgramStatus::default() }; 100];
        let pages = pages(whole.clone());
        assert!(pages.len() > 2);
        for page in &pages {
            assert!(serde_json::to_vec(page).unwrap().len() <= ROOM);
            assert_eq!((&page.manager, page.at_s), (&whole.manager, whole.at_s));
        }
        let threads: Vec<_> = pages.iter().flat_map(|page| page.threads.clone()).collect();
        assert_eq!(threads, whole.threads);
        let moves: Vec<_> = pages.iter().flat_map(|page| page.moves.clone()).collect();
        assert_eq!(moves, whole.moves);
        assert_eq!(pages.iter().map(|page| page.cores.len()).sum::<usize>(), whole.cores.len());
    }
}
