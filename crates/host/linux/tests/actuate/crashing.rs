//! A manager that dies, and what is restored afterwards.

use symbiont_linux::actuate::{Restored, restore};
use symbiont_machine::{Outcome, Priority};

use crate::cpuset::Cpuset;
use crate::roles::{Manager, actor, killed_after_pinning};
use crate::support::*;

fn restored(state: &std::path::Path) -> Restored {
    let restored = restore(&host(), state).unwrap();
    assert_nothing(&restored.report.failed);
    restored
}

#[test]
fn a_crash_is_undone_also_for_children() {
    let Some((all, first, _)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let script = "sleep 1000 & (sleep 1000 & exec setsid sleep 1000) & sleep 1000; true";
    let mut victim = Victim::shell(script);
    let id = victim.id();
    let before = priority_of(id);
    let levels = if may_boost() { 5 } else { 0 };
    let mut manager = Manager::spawn(&state);
    manager.act(id, id, Some(&first), levels);
    assert_eq!((mask_of(id), priority_of(id).0), (first.clone(), before.0 - i64::from(levels)));

    let alive = restored(&state);
    assert_eq!((alive.live.len(), alive.report.restored), (1, 0), "a live manager is left alone");
    assert_eq!(mask_of(id), first);

    manager.kill();
    victim.go_on();
    let family = wait_for("a family", || {
        let children = children_of(id);
        let grandchildren: Vec<u32> = children.iter().flat_map(|&c| children_of(c)).collect();
        let family = [vec![id], children, grandchildren].concat();
        (family.len() == 5).then_some(family)
    });
    assert!(family.iter().all(|&process| mask_of(process) == first), "all inherit");
    let after = restored(&state);
    assert_eq!((after.report.restored, after.report.descendants), (5, 4));
    for process in family {
        assert_eq!((mask_of(process), priority_of(process)), (all.clone(), before));
    }
    assert_eq!(after.journals.len(), 1);
    assert_eq!(restored(&state).journals.len(), 0, "the journal is gone");
}

#[test]
fn after_a_crash_a_child_that_had_pinned_itself_keeps_its_mask() {
    let Some((all, first, _)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let mut victim = Victim::shell("sleep 1000; true");
    let id = victim.id();
    let mut manager = Manager::spawn(&state);
    victim.go_on();
    let child = wait_for("a child", || children_of(id).first().copied());
    set_mask(child, &first);
    manager.act(child, child, None, 0);
    manager.act(id, id, Some(&first), 0);
    manager.kill();
    assert_eq!(restored(&state).report.restored, 1);
    assert_eq!((mask_of(id), mask_of(child)), (all, first));
}

#[test]
fn moves_that_failed_do_not_hide_what_is_applied_from_the_journal() {
    let Some((all, first, second)) = two_cpus() else { return };
    let Some(cpuset) = Cpuset::make(&all) else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    cpuset.admit(id);
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    cpuset.resize(&first);
    for _ in 0..2 {
        assert!(matches!(rig.pin(&thread, &second), Outcome::Refused(_)));
        // The limit known now is too old.
        cpuset.resize(&all);
        rig.actuator.refresh().unwrap();
        cpuset.resize(&first);
    }
    let journal = std::fs::read_dir(rig.state()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(journal).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.contains(&format!("\"mask\":\"{first}\"")), "{text}");
    rig.actuator.restore_all();
    cpuset.resize(&all);
    assert_eq!(mask_of(id), all);
}

#[test]
fn after_a_crash_a_foreign_mask_is_left_alone() {
    let Some((_, first, second)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let victim = Victim::sleeper();
    let id = victim.id();
    killed_after_pinning(&state, id, &first);
    set_mask(id, &second);
    let after = restored(&state);
    assert_eq!((after.report.restored, after.report.left_alone.len()), (0, 1));
    assert_eq!(mask_of(id), second);
}

#[test]
fn a_restored_mask_follows_a_cpuset_that_grew() {
    let Some((all, first, _)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let Some(cpuset) = Cpuset::make(&all) else { return };
    let victim = Victim::sleeper();
    let id = victim.id();
    cpuset.admit(id);
    killed_after_pinning(&state, id, &first);
    cpuset.resize(&first);
    assert_eq!(restored(&state).report.restored, 1);
    assert_eq!(mask_of(id), first, "the cpuset holds it");
    cpuset.resize(&all);
    assert_eq!(mask_of(id), all);
}

#[test]
fn a_cpuset_that_shrank_is_a_new_limit_and_no_foreign_hand() {
    let Some((all, first, second)) = two_cpus() else { return };
    let Some(cpuset) = Cpuset::make(&all) else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    cpuset.admit(id);
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    cpuset.resize(&second);
    assert_refused(&rig.pin(&thread, &first), "may run on");
    assert_eq!(*rig.actuator.allowed(&thread).unwrap(), second);
    cpuset.resize(&all);
    rig.actuator.refresh().unwrap();
    assert_eq!(*rig.actuator.allowed(&thread).unwrap(), all);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), all);
}

/// A process whose second thread is about to call exec, and that thread.
fn about_to_exec() -> (Victim, u32) {
    let victim = Victim::spawn(actor("thread that calls exec").stdout(std::process::Stdio::null()));
    let caller = wait_for("the thread that calls exec", || {
        let comm = |t| std::fs::read_to_string(format!("/proc/{}/task/{t}/comm", victim.id()));
        threads_of(victim.id()).into_iter().find(|t| comm(*t).is_ok_and(|c| c == "caller\n"))
    });
    (victim, caller)
}

#[test]
fn exec_from_another_thread_moves_what_was_saved_to_the_leader() {
    let Some((all, first, second)) = two_cpus() else { return };
    let rig = Rig::new();
    let (mut victim, caller) = about_to_exec();
    let id = victim.id();
    let (leader, thread) = (victim.thread(), thread_id(id, caller));
    // A mask of the user's own shows whose saved state arrives.
    set_mask(id, &first);
    for thread in [leader, thread] {
        rig.actuator.adopt(&thread).unwrap();
    }
    assert_eq!(rig.pin(&thread, &second), Outcome::Done);
    victim.go_on();
    wait_for("exec", || (comm_of(id)? == "sleep").then_some(()));
    assert_eq!(mask_of(id), second, "the leader has the caller's mask");
    rig.actuator.execed(id, &[]);
    let leader = symbiont_machine::ThreadId { generation: 1, ..leader };
    assert_eq!(*rig.actuator.allowed(&leader).unwrap(), all);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), all);
}

/// A leader and a caller of exec, both placed, after the exec and a sample that found both gone.
fn execed_between_two_samples() -> Option<(Rig, Victim, [symbiont_machine::ThreadId; 2])> {
    let (_, first, second) = two_cpus()?;
    let rig = Rig::new();
    let (mut victim, caller) = about_to_exec();
    let (leader, thread) = (victim.thread(), thread_id(victim.id(), caller));
    for (thread, cpus) in [(leader, &first), (thread, &second)] {
        rig.actuator.adopt(&thread).unwrap();
        assert_eq!(rig.pin(&thread, cpus), Outcome::Done);
    }
    victim.go_on();
    wait_for("exec", || (comm_of(victim.id())? == "sleep").then_some(()));
    assert_eq!(mask_of(victim.id()), second, "the leader has the caller's mask");
    Some((rig, victim, [leader, thread]))
}

#[test]
fn an_exec_is_undone_although_a_sample_fell_before_its_report() {
    let Some((rig, victim, threads)) = execed_between_two_samples() else { return };
    let (id, all) = (victim.id(), mask_of(std::process::id()));
    for thread in &threads {
        rig.actuator.forget(&thread.into());
    }
    rig.actuator.execed(id, &[]);
    assert_eq!(mask_of(id), all);
    assert_eq!(*rig.actuator.adopt(&threads[0]).unwrap(), all);
}

#[test]
fn an_exec_is_undone_by_a_sample_before_its_report() {
    let Some((rig, victim, threads)) = execed_between_two_samples() else { return };
    let (id, all) = (victim.id(), mask_of(std::process::id()));
    for thread in &threads {
        rig.actuator.forget(&thread.into());
    }
    assert_eq!(*rig.actuator.adopt(&threads[0]).unwrap(), all);
    assert_eq!(mask_of(id), all);
    rig.actuator.execed(id, &[]);
    assert_eq!(mask_of(id), all);
}

#[test]
fn a_move_before_the_report_of_an_exec_changes_nothing() {
    let Some((rig, victim, [leader, thread])) = execed_between_two_samples() else { return };
    let (id, all) = (victim.id(), mask_of(std::process::id()));
    let second = mask_of(id);
    rig.actuator.forget(&(&thread).into());
    assert_eq!(rig.pin(&leader, &all), Outcome::Gone);
    assert_eq!(mask_of(id), second);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), all);
}

#[test]
fn an_exec_that_was_never_reported_is_undone_at_the_end() {
    let Some((rig, victim, threads)) = execed_between_two_samples() else { return };
    for thread in &threads {
        rig.actuator.forget(&thread.into());
    }
    assert_eq!(rig.actuator.restore_all().restored, 1);
    assert_eq!(mask_of(victim.id()), mask_of(std::process::id()));
}

#[test]
fn a_nice_value_that_the_caller_of_exec_brought_along_is_undone() {
    if !may_boost() {
        return skip("no right to raise priorities");
    }
    let rig = Rig::new();
    let (mut victim, caller) = about_to_exec();
    let id = victim.id();
    let (leader, thread) = (victim.thread(), thread_id(id, caller));
    let before = priority_of(id);
    for thread in [leader, thread] {
        rig.actuator.adopt(&thread).unwrap();
    }
    assert_eq!(rig.set_priority(&thread, Priority::Boosted(5)), Outcome::Done);
    victim.go_on();
    wait_for("exec", || (comm_of(id)? == "sleep").then_some(()));
    assert_eq!(rig.set_priority(&leader, Priority::Boosted(1)), Outcome::Gone);
    rig.actuator.execed(id, &[]);
    assert_eq!(priority_of(id), before);
}

#[test]
fn a_thread_whose_end_was_reported_did_not_call_exec() {
    let Some((all, first, _)) = two_cpus() else { return };
    let rig = Rig::new();
    let (mut victim, caller) = about_to_exec();
    let id = victim.id();
    let (leader, thread) = (victim.thread(), thread_id(id, caller));
    // Its user pinned the caller; only its end distinguishes the leader from it.
    set_mask(caller, &first);
    for thread in [leader, thread] {
        rig.actuator.adopt(&thread).unwrap();
    }
    assert_eq!(rig.pin(&leader, &first), Outcome::Done);
    victim.go_on();
    wait_for("exec", || (comm_of(id)? == "sleep").then_some(()));
    rig.actuator.execed(id, &[caller]);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), first);
    assert_ne!(first, all);
}

#[test]
fn after_a_crash_an_exec_from_another_thread_is_undone() {
    let Some((all, first, second)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let (mut victim, caller) = about_to_exec();
    let id = victim.id();
    let mut manager = Manager::spawn(&state);
    manager.act(id, id, Some(&first), 0);
    manager.act(id, caller, Some(&second), 0);
    manager.kill();
    victim.go_on();
    wait_for("exec", || (comm_of(id)? == "sleep").then_some(()));
    assert_eq!(mask_of(id), second);
    assert_eq!(restored(&state).report.restored, 1);
    assert_eq!(mask_of(id), all);
}

#[test]
fn journals_that_make_no_sense_are_named_and_change_nothing() {
    let Some((_, first, _)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let victim = Victim::sleeper();
    let id = victim.id();
    killed_after_pinning(&state, id, &first);
    let journal = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read_to_string(&journal).unwrap();
    let bad = [
        (good.replace("\"version\":3", "\"version\":4"), "format version 4"),
        (good.replace("symbiont-journal", "diary"), "not a Symbiont journal"),
        (good.replacen("\"set\"", "\"sat\"", 1) + "{\"set\"", "line 3 is damaged"),
        (String::new(), "it is empty"),
    ];
    for (text, complaint) in bad {
        std::fs::write(&journal, text).unwrap();
        let restored = restore(&host(), &state).unwrap();
        let complaints: Vec<String> = restored.unusable.iter().map(ToString::to_string).collect();
        assert!(complaints.iter().any(|c| c.contains(complaint)), "{complaint}: {complaints:?}");
        assert_eq!((mask_of(id), restored.report.restored), (first.clone(), 0));
    }
    // A last line that was cut short is no damage.
    std::fs::write(&journal, good + "{\"set\":[{\"pro").unwrap();
    assert_eq!(restored(&state).report.restored, 1);
    assert_ne!(mask_of(id), first);
}

#[test]
fn a_journal_of_another_boot_is_removed_and_changes_nothing() {
    let Some((_, first, _)) = two_cpus() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let victim = Victim::sleeper();
    let id = victim.id();
    killed_after_pinning(&state, id, &first);
    let journal = std::fs::read_dir(&state).unwrap().next().unwrap().unwrap().path();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = std::fs::read_to_string(&journal).unwrap().replace(boot.trim(), "another");
    std::fs::write(&journal, text).unwrap();
    let after = restored(&state);
    assert_eq!((after.stale, after.report.restored), (vec![journal.clone()], 0));
    assert_eq!(mask_of(id), first);
    assert!(!journal.exists());
}
