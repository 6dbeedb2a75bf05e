//! Explains the last step of the loop to a user: pure functions.

use std::collections::{BTreeMap, BTreeSet};

use symbiont_control::{Step, Tally};
use symbiont_machine::{Assignment, Placement, ProgramId, Target, ThreadId, ThreadSample};
use symbiont_policy::{Change, NoRunnerUp, Policy, RunnerUp, Score, View, runner_up};
use symbiont_topology::{CpuSet, PuId, Topology};
use symbiont_wire::{CoRunner, ProgramStatus, Why};

use crate::metrics::Slowdowns;

/// The last step, with what replies about it need.
#[derive(Clone, Copy)]
pub struct StepContext<'a> {
    pub topology: &'a Topology,
    pub step: &'a Step,
    /// The applied settings.
    pub applied: &'a Placement,
    pub policy: &'a dyn Policy,
}

impl<'a> StepContext<'a> {
    /// The decision of the policy.
    fn view(&self) -> View<'a> {
        let Step { sample, characterizations, measurements, .. } = self.step;
        View::new(self.topology, sample, characterizations, self.applied).measured(measurements)
    }
}

/// The assignment that holds for a thread: the policy's last decision where that is applied, with its
/// latest reason and prediction; else what was applied.
pub fn standing<'a>(
    step: &'a Step,
    applied: &'a Placement,
    id: ThreadId,
) -> Option<&'a Assignment> {
    let kept = applied.get(&id)?;
    Some(step.placement.get(&id).filter(|wanted| wanted.target == kept.target).unwrap_or(kept))
}

/// Names of programs, as far as the caller may see them.
pub type Names<'a> = BTreeMap<ProgramId, &'a str>;

/// The status of a program, without what only its keeper knows (name, user, roots, time).
pub fn program_status(known: &StepContext<'_>, id: ProgramId) -> ProgramStatus {
    let threads = || known.step.sample.threads.iter().filter(|thread| thread.program == id);
    let placed = || threads().filter_map(|thread| Some((thread, cpus_of(known, thread)?)));
    let standing = |thread: &ThreadSample| standing(known.step, known.applied, thread.id);
    let predicted: Vec<f64> =
        threads().filter_map(|thread| standing(thread)?.predicted_slowdown).collect();
    let wanted = |thread: &ThreadSample| Some(known.step.placement.get(&thread.id)?.reason.clone());
    // That of the busiest: a shell that waits for its command says nothing of it.
    let ran = |thread: &ThreadSample| {
        known.step.characterizations.get(&thread.id).map_or(0.0, |did| did.running)
    };
    let less =
        |a: &&ThreadSample, b: &&ThreadSample| ran(a).total_cmp(&ran(b)).then(b.id.cmp(&a.id));
    let placed_one = placed().map(|(thread, _)| thread).max_by(less);
    let reason = placed_one
        .and_then(|thread| Some(standing(thread)?.reason.clone()))
        .or_else(|| threads().max_by(less).and_then(wanted));
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    ProgramStatus {
        program: id.0,
        name: String::new(),
        class: String::new(),
        uid: 0,
        job: None,
        roots: Vec::new(),
        managed_s: 0.0,
        processes: count(threads().map(|t| t.id.process).collect::<BTreeSet<_>>().len()),
        threads: count(threads().count()),
        placed: count(placed().count()),
        cpus: placed().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus)).to_string(),
        reason: reason.unwrap_or_default().into_owned(),
        predicted_slowdown: mean(&predicted),
        quiet: None,
        waits: None,
        throttled: None,
        container: None,
        next_to: Vec::new(),
    }
}

/// Why the threads of this number, a thread's or a process's, are where they are: of the first `most`
/// of them, and how many there are besides.
pub fn why(known: &StepContext<'_>, id: u32, names: &Names<'_>, most: usize) -> (Vec<Why>, usize) {
    let threads = &known.step.sample.threads;
    let of_process = threads.iter().filter(|t| t.id.process == id);
    let mut chosen: Vec<_> = of_process.filter(|t| names.contains_key(&t.program)).collect();
    if chosen.is_empty() {
        let of_thread = threads.iter().filter(|t| t.id.thread == id);
        chosen = of_thread.filter(|t| names.contains_key(&t.program)).collect();
    }
    let view = known.view();
    let foresight = known.policy.foresight(&view);
    let one = |thread: &ThreadSample| {
        let best = foresight
            .as_deref()
            .map(|foresight| runner_up(&view, foresight, known.applied, thread.id));
        why_one(known, thread, names, best)
    };
    let more = chosen.len().saturating_sub(most);
    (chosen.into_iter().take(most).map(one).collect(), more)
}

/// `best`: none where the policy predicts nothing.
fn why_one(
    known: &StepContext<'_>,
    thread: &ThreadSample,
    names: &Names<'_>,
    best: Option<Result<RunnerUp, NoRunnerUp>>,
) -> Why {
    let step = known.step;
    let wanted = step.placement.get(&thread.id);
    let cpus = cpus_of(known, thread);
    let last = step.characterizations.get(&thread.id);
    let refused = step.moves().find_map(|(asked, outcome)| match outcome {
        symbiont_machine::Outcome::Refused(why) if asked.thread == thread.id => Some(why.clone()),
        _ => None,
    });
    let withheld = step.plan.withheld.iter().find(|withheld| withheld.wanted.thread == thread.id);
    let standing = cpus.and_then(|_| standing(step, known.applied, thread.id));
    let shown = standing.or(wanted);
    let predicts = best.is_some();
    let (best, no_best) = match best {
        Some(Ok(best)) => (Some(to_wire(&best, step, names)), None),
        Some(Err(why)) => (None, Some(why.to_string())),
        None => (None, None),
    };
    Why {
        thread: thread.id.thread,
        process: thread.id.process,
        program: names.get(&thread.program).copied().unwrap_or_default().to_owned(),
        policy: known.policy.name().to_owned(),
        allowed: thread.allowed.to_string(),
        placed: cpus.map(ToString::to_string),
        held: held_to(known, thread),
        last_cpu: thread.cpu.map(|cpu| cpu.0),
        reason: shown.map(|assignment| assignment.reason.clone().into_owned()).unwrap_or_default(),
        withheld: refused.or_else(|| withheld.map(|withheld| withheld.why.to_string())),
        co_runners: co_runners(known, thread, names),
        predicts,
        predicted_slowdown: shown.and_then(|assignment| assignment.predicted_slowdown),
        achieved_slowdown: known.policy.achieved_slowdown(thread.id),
        runner_up: best,
        no_runner_up: no_best,
        ran_share: last.map(|last| last.running),
        waited_share: last.map(|last| (last.ready - last.running).max(0.0)),
        throttled: None,
        container: None,
    }
}

fn to_wire(best: &RunnerUp, step: &Step, names: &Names<'_>) -> symbiont_wire::RunnerUp {
    let score = |score: &Score| symbiont_wire::Score {
        slowdown: score.slowdown,
        mean_slowdown: score.mean_slowdown,
        throughput: score.throughput,
    };
    let named = |id: ThreadId| {
        let other = step.sample.threads.iter().find(|other| other.id == id);
        other.map(|other| co_runner(other, names))
    };
    symbiont_wire::RunnerUp {
        exchange_with: match best.change {
            Change::Exchange(other) => named(other),
            Change::Move => None,
        },
        cpus: best.cpus.to_string(),
        score: score(&best.score),
        applied: score(&best.applied),
        threads: u32::try_from(best.threads).unwrap_or(u32::MAX),
    }
}

/// A thread, as far as the caller may know it.
fn co_runner(thread: &ThreadSample, names: &Names<'_>) -> CoRunner {
    let name = names.get(&thread.program);
    CoRunner {
        thread: name.map_or(0, |_| thread.id.thread),
        program: name.copied().unwrap_or_default().to_owned(),
    }
}

/// The hardware threads that a thread is kept on.
pub fn cpus_of<'a>(known: &StepContext<'a>, thread: &ThreadSample) -> Option<&'a CpuSet> {
    match &known.applied.get(&thread.id)?.target {
        Target::Cpus(cpus) => Some(cpus),
        Target::Os => None,
    }
}

/// The mask of ours that a thread keeps.
pub fn held_to(known: &StepContext<'_>, thread: &ThreadSample) -> Option<String> {
    known.applied.get(&thread.id)?.mask.cpus().map(ToString::to_string)
}

/// Threads that ran in the last quantum and share a core with this one: where they are held, else where they last ran,
/// as a nudge may not have lasted.
fn co_runners(known: &StepContext<'_>, thread: &ThreadSample, names: &Names<'_>) -> Vec<CoRunner> {
    let place = |thread: &ThreadSample| -> CpuSet {
        let target = || cpus_of(known, thread).cloned().unwrap_or_default();
        match thread.cpu {
            Some(cpu) if held_to(known, thread).is_none() => CpuSet::from(cpu),
            _ => target(),
        }
    };
    let cores = |cpus: &CpuSet| -> CpuSet {
        let siblings = |cpu: PuId| known.topology.siblings(cpu).cloned().unwrap_or_default();
        cpus.iter().map(siblings).fold(CpuSet::new(), |all, more| all.union(&more))
    };
    let mine = cores(&place(thread));
    let runs = |other: &ThreadSample| {
        let last = known.step.characterizations.get(&other.id);
        last.is_some_and(|last| last.ready > 0.0)
    };
    let others = known.step.sample.threads.iter().filter(|other| other.id != thread.id);
    others
        .filter(|other| runs(other) && !place(other).is_disjoint(&mine))
        .map(|other| co_runner(other, names))
        .collect()
}

/// The first characters of a text.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Moves since the start, by what became of them.
pub fn moves(tally: &Tally) -> BTreeMap<String, u64> {
    let counts = [
        ("done", tally.done),
        ("thread_gone", tally.gone),
        ("externally_changed", tally.externally_changed),
        ("refused", tally.refused),
        ("not_enforced", tally.not_enforced),
        ("withheld", tally.withheld.values().sum()),
    ];
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// Why moves were withheld, and how often.
pub fn withheld(tally: &Tally) -> BTreeMap<String, u64> {
    tally.withheld.iter().map(|(why, count)| (why.to_string(), *count)).collect()
}

/// Why moves were refused or withheld, and how often, by what became of them.
pub fn reasons(tally: &Tally) -> BTreeMap<String, BTreeMap<String, u64>> {
    let all = [("refused", tally.refusals.clone()), ("withheld", withheld(tally))];
    let some = all.into_iter().filter(|(_, reasons)| !reasons.is_empty());
    some.map(|(outcome, reasons)| (outcome.to_owned(), reasons)).collect()
}

/// Threads of which a mask of ours stays.
pub fn held(applied: &Placement) -> usize {
    applied.values().filter(|assignment| assignment.is_held()).count()
}

/// Threads that are kept on chosen hardware threads.
pub fn placed(applied: &Placement) -> usize {
    applied.values().filter(|assignment| matches!(assignment.target, Target::Cpus(_))).count()
}

/// Slowdowns of the threads of a step, as far as they are known.
pub fn slowdowns(step: &Step, applied: &Placement, policy: &dyn Policy) -> Slowdowns {
    let threads = || step.sample.threads.iter().map(|thread| thread.id);
    Slowdowns {
        predicted: threads()
            .filter_map(|id| standing(step, applied, id)?.predicted_slowdown)
            .collect(),
        achieved: threads().filter_map(|id| policy.achieved_slowdown(id)).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of threads")]
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use symbiont_control::Controller;
    use symbiont_machine::Machine;
    use symbiont_machine::test_support::FakeMachine;
    use symbiont_planner::{Bounds, Planner};
    use symbiont_policy::{Settings, find};

    use super::*;

    /// Two programs under `never-twice` on two cores of two hardware threads, after some quanta.
    fn stepped() -> Controller<FakeMachine> {
        let mut machine = FakeMachine::new(Topology::synthetic("core:2 smt:2").unwrap());
        for (program, number) in [(1, 10), (1, 11), (2, 20), (2, 21)] {
            machine.start(program, number);
        }
        let policy = (find("never-twice").unwrap().make)(&Settings::default());
        let mut controller = Controller::new(machine, policy, Planner::new(Bounds::none()));
        for _ in 0..3 {
            controller.step().unwrap();
            controller.machine_mut().wait(Duration::from_millis(100)).unwrap();
        }
        controller
    }

    fn with_known<T>(reply: impl FnOnce(&StepContext<'_>) -> T) -> T {
        let controller = stepped();
        reply(&StepContext {
            topology: controller.machine().topology(),
            step: controller.last().unwrap(),
            applied: controller.applied(),
            policy: controller.policy(),
        })
    }

    fn both() -> Names<'static> {
        [(ProgramId(1), "make"), (ProgramId(2), "xz")].into()
    }

    #[test]
    fn why_names_the_core_the_reason_and_the_co_runners() {
        let all = with_known(|known| why(known, 10, &both(), 9).0);
        let [one] = &all[..] else { panic!("{all:?}") };
        assert_eq!((one.thread, one.program.as_str()), (10, "make"));
        assert!(one.placed.is_some() && !one.reason.is_empty(), "{one:?}");
        assert!(!one.predicts && one.runner_up.is_none() && one.no_runner_up.is_none(), "{one:?}");
        let programs: Vec<_> = one.co_runners.iter().map(|c| c.program.as_str()).collect();
        assert_eq!(programs, ["xz"], "never two threads of one program on a core");
    }

    #[test]
    fn a_nudged_thread_co_runs_where_it_last_ran() {
        let mut controller = stepped();
        let mut step = controller.step().unwrap().clone();
        for thread in &mut step.sample.threads {
            thread.cpu = Some(PuId(0));
        }
        let known = StepContext {
            topology: controller.machine().topology(),
            step: &step,
            applied: controller.applied(),
            policy: controller.policy(),
        };
        let thread = &step.sample.threads[0];
        assert!(held_to(&known, thread).is_none() && cpus_of(&known, thread).is_some());
        assert_eq!(co_runners(&known, thread, &both()).len(), 3, "all ran there");
    }

    #[test]
    fn why_of_a_process_names_all_its_threads() {
        let (threads, more) = with_known(|known| why(known, 1001, &both(), 9));
        assert_eq!(threads.iter().map(|why| why.thread).collect::<Vec<_>>(), [10, 11]);
        assert_eq!(more, 0);
        let (threads, more) = with_known(|known| why(known, 1001, &both(), 1));
        assert_eq!((threads.len(), more), (1, 1));
    }

    #[test]
    fn a_user_sees_own_programs_only() {
        let own: Names<'_> = [(ProgramId(1), "make")].into();
        with_known(|known| {
            assert_eq!(why(known, 20, &own, 9), (vec![], 0));
            let one = &why(known, 10, &own, 9).0[0];
            let unknown = CoRunner { thread: 0, program: String::new() };
            assert_eq!(one.co_runners, [unknown], "that a thread runs there, not which");
        });
    }

    #[test]
    fn the_status_of_a_program_sums_its_threads() {
        let status = with_known(|known| program_status(known, ProgramId(1)));
        assert_eq!((status.processes, status.threads, status.placed), (1, 2, 2));
        assert!(!status.cpus.is_empty() && !status.reason.is_empty());
        let none = with_known(|known| program_status(known, ProgramId(9)));
        assert_eq!((none.threads, none.cpus.as_str()), (0, ""));
    }
}
