use std::collections::BTreeMap;

use proptest::prelude::*;
use symbiont_machine::test_support::{full_support, thread};
use symbiont_machine::{
    Ability, Assignment, Change, Lifecycle, Move, Placement, Priority, RunState, Sample, Support,
    Target, ThreadId, ThreadSample,
};
use symbiont_topology::{CpuSet, PuId};

use super::*;

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Held there.
fn on(list: &str) -> Assignment {
    nudged(list).held()
}

fn nudged(list: &str) -> Assignment {
    Assignment::on(set(list), "test")
}

fn sample(threads: Vec<ThreadSample>) -> Sample {
    Sample { threads, ..Sample::default() }
}

/// Threads 0, 1, … of one program with this limit.
fn threads(limits: &[&str]) -> Sample {
    let list = (0u32..).zip(limits);
    sample(list.map(|(number, limit)| thread(0, number, &set(limit))).collect())
}

fn id(number: u32) -> ThreadId {
    thread(0, number, &CpuSet::new()).id
}

fn placement(list: &[(u32, Assignment)]) -> Placement {
    list.iter().map(|(number, a)| (id(*number), a.clone())).collect()
}

/// Plans on four hardware threads, nothing barred.
fn plan(planner: &mut Planner, s: &Sample, have: &Placement, want: &Placement) -> Plan {
    plan_with(planner, s, have, want, &full_support(), &Barred::new())
}

fn plan_with(
    planner: &mut Planner,
    sample: &Sample,
    applied: &Placement,
    want: &Placement,
    support: &Support,
    barred: &Barred,
) -> Plan {
    let online = &set("0-3");
    planner.plan(&Situation { sample, online, support, applied, barred }, want)
}

fn once(s: &Sample, have: &Placement, want: &Placement) -> Plan {
    plan(&mut Planner::new(Bounds::none()), s, have, want)
}

/// Applies moves.
fn carry_out(plan: &Plan, applied: &mut Placement) {
    for m in &plan.moves {
        let a = applied.entry(m.thread).or_default();
        match &m.change {
            Change::Affinity(mask) => (a.mask, a.target) = (mask.clone(), mask.clone()),
            Change::Nudge(cpus) => a.target = Target::Cpus(cpus.clone()),
            Change::Priority(priority) => a.priority = *priority,
        }
    }
    for (id, target) in &plan.reached {
        applied.entry(*id).or_default().target = target.clone();
    }
}

/// Has threads run where they were moved.
fn follow(plan: &Plan, sample: &mut Sample) {
    for m in &plan.moves {
        let thread = sample.threads.iter_mut().find(|t| t.id == m.thread).unwrap();
        if let Change::Affinity(Target::Cpus(cpus)) | Change::Nudge(cpus) = &m.change {
            if !thread.cpu.is_some_and(|cpu| cpus.contains(cpu)) {
                thread.cpu = cpus.first();
            }
        }
    }
}

fn affinities(plan: &Plan) -> Vec<(u32, String)> {
    let boosted_to = |m: &Move| match &m.change {
        Change::Affinity(Target::Os) => Some((m.thread.thread, "os".to_owned())),
        Change::Affinity(Target::Cpus(cpus)) | Change::Nudge(cpus) => {
            Some((m.thread.thread, cpus.to_string()))
        }
        Change::Priority(_) => None,
    };
    plan.moves.iter().filter_map(boosted_to).collect()
}

fn reasons(plan: &Plan) -> Vec<(u32, Why)> {
    plan.withheld.iter().map(|w| (w.wanted.thread.thread, w.why)).collect()
}

#[test]
fn targets_are_cut_down_to_the_limit_and_never_guessed() {
    let s = threads(&["0-1", "2", "0-9"]);
    let want = placement(&[(0, on("1-3")), (1, on("0")), (2, on("3,8"))]);
    let plan = once(&s, &Placement::new(), &want);
    assert_eq!(affinities(&plan), [(0, "1".into()), (2, "3".into())]);
    assert_eq!(reasons(&plan), [(1, Why::OutsideLimit)]);
}

#[test]
fn the_whole_limit_is_the_same_as_the_os() {
    let s = threads(&["0-1", "0-1,7"]);
    let want = placement(&[(0, on("0-3")), (1, on("0-1"))]);
    assert_eq!(once(&s, &Placement::new(), &want), Plan::default());
    let plan = once(&s, &placement(&[(0, on("0"))]), &want);
    assert_eq!(affinities(&plan), [(0, "os".into())]);
}

#[test]
fn unsettled_threads_are_released_or_widened_but_not_narrowed() {
    let mut s = threads(&["0-3"; 5]);
    for t in &mut s.threads {
        t.lifecycle = Lifecycle::Fresh;
    }
    let boosted = Assignment { priority: Priority::Boosted(10), ..Assignment::os("") };
    let have = placement(&[(0, on("0")), (1, on("0")), (2, on("0")), (4, boosted.clone())]);
    let want = placement(&[
        (0, on("0-1")),
        (1, Assignment::os("")),
        (2, on("1")),
        (3, boosted),
        (4, Assignment::os("")),
    ]);
    let plan = once(&s, &have, &want);
    assert_eq!(affinities(&plan), [(1, "os".into()), (0, "0-1".into())]);
    assert!(
        plan.moves.contains(&Move { thread: id(4), change: Change::Priority(Priority::Normal) })
    );
    assert_eq!(reasons(&plan), [(2, Why::Unsettled), (3, Why::Unsettled)]);
    // Whose program starts may be boosted, and not more.
    for t in &mut s.threads {
        t.lifecycle = Lifecycle::Starting;
    }
    let plan = once(&s, &have, &want);
    assert_eq!(reasons(&plan), [(2, Why::Unsettled)]);
}

/// One runnable thread on a CPU, that may run on four.
fn running(cpu: u32) -> Sample {
    let mut s = threads(&["0-3"]);
    (s.threads[0].state, s.threads[0].cpu) = (RunState::Runnable, Some(PuId(cpu)));
    s
}

#[test]
fn a_thread_is_nudged_to_its_target_and_again_when_it_has_left() {
    let want = placement(&[(0, nudged("1"))]);
    let to = |plan: &Plan| plan.moves.iter().map(|m| m.change.clone()).collect::<Vec<_>>();
    let nudge = [Change::Nudge(set("1"))];
    // Held for good after a move, which a nudge to the same target is not.
    let mut planner = Planner::new(Bounds { hold: 1000, budget: None });
    let mut have = Placement::new();
    let first = plan(&mut planner, &running(3), &have, &want);
    assert_eq!(to(&first), nudge);
    carry_out(&first, &mut have);
    assert_eq!(plan(&mut planner, &running(1), &have, &want), Plan::default());
    assert_eq!(to(&plan(&mut planner, &running(2), &have, &want)), nudge);
    let other = placement(&[(0, nudged("2"))]);
    assert_eq!(reasons(&plan(&mut planner, &running(1), &have, &other)), [(0, Why::Held)]);
}

#[test]
fn a_thread_that_is_there_or_sleeps_is_not_nudged() {
    let want = placement(&[(0, nudged("1-2"))]);
    let there = once(&running(2), &Placement::new(), &want);
    assert_eq!((there.moves.len(), there.reached), (0, vec![(id(0), Target::Cpus(set("1-2")))]));
    let mut asleep = running(3);
    asleep.threads[0].state = RunState::Sleeping;
    assert_eq!(once(&asleep, &Placement::new(), &want), Plan::default());
}

#[test]
fn a_held_thread_that_is_to_be_nudged_gets_its_mask_back() {
    let have = placement(&[(0, on("1"))]);
    let changes = |plan: Plan| plan.moves.into_iter().map(|m| m.change).collect::<Vec<_>>();
    let back = Change::Affinity(Target::Os);
    let stays = once(&running(1), &have, &placement(&[(0, nudged("1"))]));
    assert_eq!(changes(stays), std::slice::from_ref(&back));
    let goes = once(&running(1), &have, &placement(&[(0, nudged("2"))]));
    assert_eq!(changes(goes), [back, Change::Nudge(set("2"))]);
    // And what was nudged is forgotten, without a move.
    let have = placement(&[(0, nudged("1"))]);
    let released = once(&running(1), &have, &placement(&[(0, Assignment::os(""))]));
    assert_eq!((released.moves.len(), released.reached), (0, vec![(id(0), Target::Os)]));
    assert!(release(&have).is_empty());
}

#[test]
fn a_thread_is_nudged_within_the_mask_that_it_keeps() {
    let mask = Target::Cpus(set("0-1"));
    let want = |to| placement(&[(0, Assignment { mask: mask.clone(), ..nudged(to) })]);
    let changes = |plan: &Plan| plan.moves.iter().map(|m| m.change.clone()).collect::<Vec<_>>();
    let held = Change::Affinity(mask.clone());
    let plan = once(&running(3), &Placement::new(), &want("1"));
    assert_eq!(changes(&plan), [held.clone(), Change::Nudge(set("1"))]);
    let mut have = Placement::new();
    carry_out(&plan, &mut have);
    assert_eq!(once(&running(1), &have, &want("1")), Plan::default());
    let plan = once(&running(3), &Placement::new(), &want("0-3"));
    assert_eq!(changes(&plan), [held], "all of the mask is no target of its own");
}

#[test]
fn threads_that_are_not_enrolled_are_never_named() {
    let s = threads(&["0-3"]);
    let plan = once(&s, &Placement::new(), &placement(&[(9, on("0"))]));
    assert!(plan.moves.is_empty());
    assert_eq!(reasons(&plan), [(9, Why::NotEnrolled)]);
}

#[test]
fn barred_settings_are_left_alone() {
    let s = threads(&["0-3"]);
    let want = Assignment { priority: Priority::Boosted(10), ..on("0") };
    let barred = Barred::from([((id(0), Setting::Affinity), Why::ExternallyChanged)]);
    let plan = plan_with(
        &mut Planner::new(Bounds::none()),
        &s,
        &Placement::new(),
        &placement(&[(0, want)]),
        &full_support(),
        &barred,
    );
    assert_eq!(plan.moves.len(), 1);
    assert_eq!(reasons(&plan), [(0, Why::ExternallyChanged)]);
}

#[test]
fn a_target_of_which_nothing_is_left_is_undone() {
    let s = threads(&["0-3", "0-3", "0-3", "0-1", "0-3"]);
    let have = [(0, on("3")), (1, on("2-3")), (2, on("0")), (3, on("2"))];
    let stranded = release_stranded(&s, &set("0-2"), &placement(&have));
    let to_os = |number| Move { thread: id(number), change: Change::Affinity(Target::Os) };
    assert_eq!(stranded, [to_os(0), to_os(3)], "offline, and outside of what is allowed now");
}

#[test]
fn what_the_machine_cannot_do_is_not_asked_of_it() {
    let s = threads(&["0-3"; 3]);
    let with = |priority| Assignment { priority, ..on("0") };
    let have = placement(&[(2, with(Priority::Boosted(10)))]);
    let want = placement(&[
        (0, with(Priority::Boosted(10))),
        (1, with(Priority::Idle)),
        (2, with(Priority::Normal)),
    ]);
    let no = || Ability::Absent("no permission".into());
    let support = Support { boost: no(), idle_class: no(), ..full_support() };
    let mut planner = Planner::new(Bounds::none());
    let plan = plan_with(&mut planner, &s, &have, &want, &support, &Barred::new());
    assert_eq!(affinities(&plan), [(0, "0".into()), (1, "0".into())]);
    assert_eq!(plan.moves.len(), 3);
    assert_eq!(reasons(&plan), [(0, Why::Unsupported), (1, Why::Unsupported)]);
}

#[test]
fn each_kind_of_priority_is_judged_by_its_own_ability() {
    let s = threads(&["0-3"; 2]);
    let with = |priority| Assignment { priority, ..Assignment::os("") };
    let want = placement(&[(0, with(Priority::Boosted(10))), (1, with(Priority::Idle))]);
    let no = || Ability::Absent("no permission".into());
    let refused = |support: &Support| {
        let mut planner = Planner::new(Bounds::none());
        let (nothing, barred) = (Placement::new(), Barred::new());
        reasons(&plan_with(&mut planner, &s, &nothing, &want, support, &barred))
    };
    assert_eq!(refused(&Support { boost: no(), ..full_support() }), [(0, Why::Unsupported)]);
    assert_eq!(refused(&Support { idle_class: no(), ..full_support() }), [(1, Why::Unsupported)]);
}

#[test]
fn each_reason_has_words_of_its_own() {
    let all = [
        Why::OutsideLimit,
        Why::Unsettled,
        Why::Held,
        Why::OverBudget,
        Why::NotEnrolled,
        Why::ExternallyChanged,
        Why::Refused,
        Why::Unsupported,
    ];
    let words: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), all.len());
    assert!(words.iter().all(|text| text.len() > 10), "{words:?}");
}

#[test]
fn room_is_made_before_it_is_taken() {
    let s = threads(&["0-3"; 4]);
    let boosted = Assignment { priority: Priority::Boosted(10), ..on("0") };
    let have = placement(&[(3, on("1"))]);
    let want = placement(&[(0, boosted), (1, on("1-3")), (2, on("2-3")), (3, Assignment::os(""))]);
    let plan = once(&s, &have, &want);
    let order: Vec<_> = plan.moves.iter().map(|m| m.thread.thread).collect();
    assert_eq!(order, [3, 1, 2, 0, 0]);
    assert_eq!(plan.moves[4].change, Change::Priority(Priority::Boosted(10)));
}

#[test]
fn a_moved_thread_is_held_but_may_be_released() {
    let s = threads(&["0-3"]);
    let mut planner = Planner::new(Bounds { hold: 2, budget: None });
    let mut have = Placement::new();
    let mut step = |want: Assignment| {
        let plan = plan(&mut planner, &s, &have, &placement(&[(0, want)]));
        carry_out(&plan, &mut have);
        (plan.moves.len(), reasons(&plan).first().map(|r| r.1))
    };
    assert_eq!(step(on("0")), (1, None));
    assert_eq!(step(on("1")), (0, Some(Why::Held)));
    assert_eq!(step(on("1")), (0, Some(Why::Held)));
    assert_eq!(step(on("1")), (1, None));
    assert_eq!(step(Assignment::os("")), (1, None));
    assert_eq!(step(on("1")), (0, Some(Why::Held)));
}

#[test]
fn a_thread_that_is_gone_is_forgotten() {
    let mut planner = Planner::new(Bounds { hold: 9, budget: None });
    let (here, gone) = (threads(&["0-3"]), threads(&[]));
    let (nothing, want) = (Placement::new(), placement(&[(0, on("0"))]));
    assert_eq!(plan(&mut planner, &here, &nothing, &want).moves.len(), 1);
    assert_eq!(reasons(&plan(&mut planner, &here, &nothing, &want)), [(0, Why::Held)]);
    assert_eq!(plan(&mut planner, &gone, &nothing, &nothing), Plan::default());
    assert_eq!(plan(&mut planner, &here, &nothing, &want).moves.len(), 1);
}

#[test]
fn a_small_budget_starves_no_thread() {
    let s = threads(&["0-3"; 5]);
    let mut planner = Planner::new(Bounds { hold: 0, budget: Some(2) });
    let mut have = Placement::new();
    let mut moves = BTreeMap::<u32, u32>::new();
    for quantum in 0..10 {
        // All want to be elsewhere each quantum.
        let cpu = (quantum % 4).to_string();
        let want: Vec<_> = (0..5).map(|n| (n, on(&cpu))).collect();
        let plan = plan(&mut planner, &s, &have, &placement(&want));
        assert_eq!(plan.moves.len(), 2);
        carry_out(&plan, &mut have);
        for m in &plan.moves {
            *moves.entry(m.thread.thread).or_default() += 1;
        }
    }
    assert!(moves.len() == 5 && moves.values().all(|&n| n >= 3), "{moves:?}");
}

/// Random samples, applied and wanted placements, and bounds.
#[derive(Debug, Clone)]
struct Case {
    sample: Sample,
    online: CpuSet,
    have: Placement,
    want: Placement,
    bounds: Bounds,
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    prop::collection::vec(0u32..8, 1..5).prop_map(|list| list.into_iter().map(PuId).collect())
}

fn assignments() -> impl Strategy<Value = Placement> {
    let target = || prop_oneof![Just(Target::Os), cpus().prop_map(Target::Cpus)];
    let place = prop_oneof![
        target().prop_map(|target| (target.clone(), target)),
        target().prop_map(|target| (target, Target::Os)),
        (target(), target()),
    ];
    let priority =
        prop_oneof![Just(Priority::Normal), Just(Priority::Boosted(10)), Just(Priority::Idle)];
    let assignment = (place, priority).prop_map(|((target, mask), priority)| Assignment {
        target,
        mask,
        priority,
        ..Assignment::os("")
    });
    prop::collection::btree_map(0u32..8, assignment, 0..8)
        .prop_map(|list| list.into_iter().map(|(n, a)| (id(n), a)).collect())
}

fn case() -> impl Strategy<Value = Case> {
    let lifecycle = prop_oneof![1 => Just(Lifecycle::Fresh), 1 => Just(Lifecycle::Starting), 8 => Just(Lifecycle::Settled)];
    let cpu = prop::option::of((0u32..8).prop_map(PuId));
    let state = prop_oneof![Just(RunState::Runnable), Just(RunState::Sleeping)];
    let bare = (cpus(), lifecycle, cpu, state);
    let bounds =
        (0u32..3, prop::option::of(0usize..4)).prop_map(|(hold, budget)| Bounds { hold, budget });
    (prop::collection::vec(bare, 0..7), cpus(), assignments(), assignments(), bounds).prop_map(
        |(list, online, have, want, bounds)| {
            let of = |(number, (allowed, lifecycle, cpu, state))| ThreadSample {
                lifecycle,
                cpu,
                state,
                ..thread(0, number, &allowed)
            };
            let sample = sample((0u32..).zip(list).map(of).collect());
            Case { sample, online, have, want, bounds }
        },
    )
}

impl Case {
    fn plan(&self, bounds: Bounds) -> Plan {
        self.plan_by(&mut Planner::new(bounds), &self.have, &self.want)
    }

    fn plan_by(&self, planner: &mut Planner, applied: &Placement, want: &Placement) -> Plan {
        let (support, barred) = (&full_support(), &Barred::new());
        let (sample, online) = (&self.sample, &self.online);
        planner.plan(&Situation { sample, online, support, applied, barred }, want)
    }
}

proptest! {
    #[test]
    fn moves_are_legal(case in case()) {
        for m in case.plan(case.bounds).moves {
            let thread = case.sample.threads.iter().find(|t| t.id == m.thread).unwrap();
            if let Change::Affinity(Target::Cpus(cpus)) | Change::Nudge(cpus) = m.change {
                let allowed = thread.allowed.intersection(&case.online);
                prop_assert!(!cpus.is_empty() && cpus.is_subset(&allowed) && cpus != allowed);
            }
        }
    }

    #[test]
    fn the_budget_is_kept(case in case()) {
        let releases = |m: &&Move| {
            matches!(m.change, Change::Affinity(Target::Os) | Change::Priority(Priority::Normal))
        };
        let plan = case.plan(case.bounds);
        let counted = plan.moves.len() - plan.moves.iter().filter(releases).count();
        prop_assert!(counted <= case.bounds.budget.unwrap_or(usize::MAX));
    }

    #[test]
    fn a_plan_carried_out_is_not_planned_again(case in case()) {
        let mut planner = Planner::new(Bounds::none());
        let mut case = case;
        let mut have = case.have.clone();
        let first = case.plan_by(&mut planner, &have, &case.want);
        carry_out(&first, &mut have);
        follow(&first, &mut case.sample);
        let second = case.plan_by(&mut planner, &have, &case.want);
        prop_assert_eq!(second.moves, vec![]);
        prop_assert_eq!(second.withheld, first.withheld);
    }

    #[test]
    fn moves_and_withheld_moves_cover_all_differences(case in case()) {
        let plan = case.plan(case.bounds);
        prop_assert!(plan.withheld.is_sorted_by_key(|w| w.wanted.thread));
        let mut named: Vec<_> = plan.moves.iter()
            .chain(plan.withheld.iter().map(|w| &w.wanted))
            .filter(|m| !matches!(m.change, Change::Nudge(_)))
            .map(|m| (m.thread, Setting::of(&m.change)))
            .collect();
        named.sort();
        let mut differ = Vec::new();
        for (id, want) in &case.want {
            let have = case.have.get(id).cloned().unwrap_or_default();
            let limit = case.sample.threads.iter().find(|t| t.id == *id).map(|t| &t.allowed);
            let allowed = limit.map_or_else(CpuSet::new, |l| l.intersection(&case.online));
            let same = match (&have.mask, &want.mask) {
                (Target::Os, Target::Cpus(cpus)) => {
                    !allowed.is_empty() && allowed.is_subset(cpus)
                }
                (Target::Cpus(have), Target::Cpus(want)) => {
                    let cut = want.intersection(&allowed);
                    if cut.is_empty() { have == want } else { *have == cut && cut != allowed }
                }
                (have, want) => have == want,
            };
            differ.extend((!same).then_some((*id, Setting::Affinity)));
            let urgent = want.priority != have.priority;
            differ.extend(urgent.then_some((*id, Setting::Priority)));
        }
        prop_assert_eq!(named, differ);
    }

    #[test]
    fn a_release_undoes_all_that_is_applied(case in case()) {
        let mut have = case.have.clone();
        let moves = release(&have);
        prop_assert!(moves.len() <= 2 * have.len());
        carry_out(&Plan { moves, ..Plan::default() }, &mut have);
        // A nudge leaves nothing that could be undone.
        prop_assert!(have.values().all(|a| a.mask.is_os() && a.priority == Priority::Normal));
    }

    #[test]
    fn releases_are_never_held_back(case in case()) {
        let mut planner = Planner::new(Bounds { hold: 100, budget: Some(0) });
        let all = case.have.keys().chain(case.want.keys());
        let os: Placement = all.map(|id| (*id, Assignment::os(""))).collect();
        let mut have = case.have.clone();
        for wanted in [&case.want, &os] {
            let plan = case.plan_by(&mut planner, &have, wanted);
            carry_out(&plan, &mut have);
        }
        for t in &case.sample.threads {
            if let Some(a) = have.get(&t.id) {
                prop_assert!(a.is_nothing(), "{:?}", a);
            }
        }
    }
}

#[test]
fn a_machine_that_keeps_threads_by_itself_is_asked_for_no_nudges() {
    let support = full_support();
    let want = placement(&[(0, nudged("1"))]);
    let plan = |sample: &Sample| {
        let mut planner = Planner::new(Bounds::none());
        plan_with(&mut planner, sample, &Placement::new(), &want, &support, &Barred::new())
    };
    let reached = vec![(id(0), Target::Cpus(set("1")))];
    let kept = || {
        let mut sample = running(3);
        sample.threads[0].kept = true;
        sample
    };
    let away = plan(&kept());
    assert_eq!((away.moves.len(), &away.reached), (0, &reached));
    assert_eq!(plan(&running(3)).moves.len(), 1, "one that it does not keep is nudged");
    let mut asleep = kept();
    asleep.threads[0].state = RunState::Sleeping;
    assert_eq!(plan(&asleep).reached, reached, "it wakes where it belongs");
    let mut starting = kept();
    starting.threads[0].lifecycle = Lifecycle::Fresh;
    let fresh = plan(&starting);
    assert_eq!(reasons(&fresh), [(0, Why::Unsettled)], "it is not kept yet");
    assert!(fresh.reached.is_empty());
}
