//! Changing threads and putting them back, in one process.

use symbiont_machine::{Change, Move, Outcome, Priority, Target, ThreadId};

use crate::support::*;

#[test]
fn everything_comes_back_at_the_end() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    let before = priority_of(id);
    assert_eq!(*rig.actuator.adopt(&thread).unwrap(), all);
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    assert_eq!(mask_of(id), first);
    assert_eq!(rig.pin(&thread, &second), Outcome::Done);
    assert_eq!(mask_of(id), second);
    if may_boost() {
        assert_eq!(rig.set_priority(&thread, Priority::Boosted(5)), Outcome::Done);
        assert_eq!(priority_of(id), (before.0 - 5, before.1));
        assert_eq!(rig.set_priority(&thread, Priority::Idle), Outcome::Done);
        assert_eq!(priority_of(id), (before.0, 5));
    }
    let report = rig.actuator.restore_all();
    assert_eq!((report.restored, report.failed.len(), report.left_alone.len()), (1, 0, 0));
    assert_eq!((mask_of(id), priority_of(id)), (all, before));
    assert_eq!(rig.actuator.restore_all().restored, 0);
    assert_eq!(std::fs::read_dir(rig.state()).unwrap().count(), 0, "the journal is gone");
}

#[test]
fn a_dropped_actuator_restores_what_is_applied() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    drop(rig);
    assert_eq!(mask_of(victim.id()), all);
}

#[test]
fn a_foreign_mask_is_left_alone() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    set_mask(id, &second);
    assert_eq!(rig.pin(&thread, &first), Outcome::ExternallyChanged);
    assert_eq!(mask_of(id), second);
    assert_eq!(*rig.actuator.allowed(&thread).unwrap(), second);
    assert_refused(&rig.pin(&thread, &first), "may run on");
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), second);
}

#[test]
fn a_change_from_outside_is_found_without_a_move() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim, other) = (Rig::new(), Victim::sleeper(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    for thread in [&thread, &other.thread()] {
        rig.actuator.adopt(thread).unwrap();
        assert_eq!(rig.pin(thread, &first), Outcome::Done);
    }
    assert_eq!(rig.actuator.lapsed(), []);
    let to_os = Move { thread, change: Change::Affinity(Target::Os) };
    for times in 1..3 {
        set_mask(id, &second);
        let expected = [(to_os.clone(), Outcome::ExternallyChanged)];
        // Nothing of ours is applied to it the second time.
        assert_eq!(rig.actuator.lapsed(), expected[..usize::from(times == 1)]);
        assert_eq!(mask_of(id), second);
        assert_eq!(rig.actuator.lapsed(), []);
    }
    rig.actuator.restore_all();
    assert_eq!((mask_of(id), mask_of(other.id())), (second, all));
}

#[test]
fn a_mask_that_was_widened_is_set_again_once() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let thread = victim.thread();
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    // As after all CPUs of its mask went offline and came back.
    set_mask(victim.id(), &all);
    let to_os = Move { thread, change: Change::Affinity(Target::Os) };
    assert_eq!(rig.actuator.lapsed(), [(to_os.clone(), Outcome::Done)]);
    assert_eq!(rig.actuator.lapsed(), []);
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    assert_eq!(mask_of(victim.id()), first);
    // Twice is no chance.
    set_mask(victim.id(), &all);
    assert_eq!(rig.actuator.lapsed(), [(to_os, Outcome::ExternallyChanged)]);
    assert_eq!(rig.actuator.lapsed(), []);
}

#[test]
fn a_journal_written_anew_holds_the_change_that_comes_next() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let thread = victim.thread();
    rig.actuator.adopt(&thread).unwrap();
    // It is written anew after some 1,030 lines.
    for mask in [&first, &second].into_iter().cycle().take(1100) {
        assert_eq!(rig.pin(&thread, mask), Outcome::Done);
        let lines = journal_of(&rig);
        let wanted = format!("\"mask\":{}", serde_json::to_string(mask).unwrap());
        assert!(lines.last().unwrap().contains(&wanted), "{:?}", lines.last());
    }
}

#[test]
fn a_thread_that_was_believed_gone_keeps_what_was_saved() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let thread = victim.thread();
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.pin(&thread, &first), Outcome::Done);
    rig.actuator.forget(&(&thread).into());
    assert_eq!(*rig.actuator.adopt(&thread).unwrap(), all);
    rig.actuator.restore_all();
    assert_eq!(mask_of(victim.id()), all);
}

#[test]
fn a_foreign_mask_on_a_thread_never_changed_is_in_the_journal() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    rig.actuator.adopt(&victim.thread()).unwrap();
    set_mask(victim.id(), &first);
    assert_eq!(rig.pin(&victim.thread(), &second), Outcome::ExternallyChanged);
    let wanted = serde_json::to_string(&first).unwrap();
    let lines = journal_of(&rig);
    assert!(lines.iter().any(|l| l.contains("saved") && l.contains(&wanted)), "{lines:?}");
}

#[test]
fn a_move_meant_for_the_program_before_an_exec_is_too_late() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    rig.actuator.adopt(&victim.thread()).unwrap();
    rig.actuator.execed(victim.id(), &[]);
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Gone);
    assert_eq!(mask_of(victim.id()), all);
}

#[test]
fn a_foreign_mask_that_no_move_met_is_left_alone_at_the_end() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    set_mask(victim.id(), &second);
    let report = rig.actuator.restore_all();
    assert_eq!((report.restored, report.left_alone.len()), (0, 1));
    assert_eq!(mask_of(victim.id()), second);
}

#[test]
fn a_narrow_mask_is_never_widened() {
    let Some((all, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    set_mask(id, &second);
    assert_eq!(*rig.actuator.adopt(&thread).unwrap(), second);
    assert_eq!(rig.pin(&thread, &all), Outcome::Done);
    assert_eq!(mask_of(id), second);
    assert_refused(&rig.pin(&thread, &first), "may run on");
    assert_eq!(rig.unpin(&thread), Outcome::Done);
    assert_eq!(mask_of(id), second);
    rig.actuator.restore_all();
    assert_eq!(mask_of(id), second);
}

#[test]
fn a_thread_that_exited_between_sample_and_act_is_gone() {
    let (rig, mut victim) = (Rig::new(), Victim::sleeper());
    let thread = victim.thread();
    rig.actuator.adopt(&thread).unwrap();
    victim.kill();
    assert_eq!(rig.pin(&thread, &set("0")), Outcome::Gone);
    assert_eq!(rig.set_priority(&thread, Priority::Boosted(1)), Outcome::Gone);
    assert!(rig.actuator.adopt(&ThreadId { born: 1, ..thread }).is_err());
}

#[test]
fn a_thread_that_was_never_adopted_is_refused() {
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let before = mask_of(victim.id());
    assert_refused(&rig.pin(&victim.thread(), &set("0")), "never enrolled");
    assert_eq!(mask_of(victim.id()), before);
}

#[test]
fn a_newborn_gets_its_parents_own_mask() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000; true"));
    let id = victim.id();
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    victim.go_on();
    let child = wait_for("a child", || children_of(id).first().copied());
    assert_eq!(mask_of(child), first, "it inherits");
    rig.actuator.newborn(id, id, child, child);
    assert_eq!(mask_of(child), all);
    // For an ordinary user its next child could be another user's before it is restored.
    let parents = if is_root() { first } else { all };
    assert_eq!(mask_of(id), parents, "its parent");
}

#[test]
fn a_child_that_is_first_seen_by_the_loop_gets_its_parents_own_mask() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000; true"));
    let id = victim.id();
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    victim.go_on();
    let child = wait_for("a child", || children_of(id).first().copied());
    assert_eq!(*rig.actuator.adopt(&thread_id(child, child)).unwrap(), all);
    assert_eq!(mask_of(child), all);
}

#[test]
fn a_child_that_pinned_itself_keeps_its_mask() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("sleep 1000; true"));
    let id = victim.id();
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    victim.go_on();
    let child = wait_for("a child", || children_of(id).first().copied());
    set_mask(child, &second);
    rig.actuator.newborn(id, id, child, child);
    assert_eq!(*rig.actuator.adopt(&thread_id(child, child)).unwrap(), second);
    assert_eq!(mask_of(child), second);
}

#[test]
fn an_unadopted_child_is_restored_at_the_end() {
    let Some((all, first, _)) = two_cpus() else { return };
    let (rig, mut victim) = (Rig::new(), Victim::shell("setsid sleep 1000 & sleep 1000; true"));
    let id = victim.id();
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.pin(&victim.thread(), &first), Outcome::Done);
    victim.go_on();
    let children = wait_for("two children", || Some(children_of(id)).filter(|c| c.len() == 2));
    let report = rig.actuator.restore_all();
    assert_eq!((report.restored, report.descendants), (3, 2));
    assert!(children.iter().all(|&child| mask_of(child) == all));
}

#[test]
fn nice_is_refused_between_scheduling_groups() {
    let (rig, victim, other) = (
        Rig::new(),
        Victim::sleeper(),
        Victim::spawn(std::process::Command::new("setsid").args(["sleep", "1000"])),
    );
    let cgroups = symbiont_linux::actuate::Cgroups::discover(&host());
    wait_for("setsid to start", || (comm_of(other.id())? == "sleep").then_some(()));
    if cgroups.group(victim.id()) == cgroups.group(other.id()) {
        return skip("sessions have no scheduling groups of their own here (no autogroups)");
    }
    for child in [&victim, &other] {
        rig.actuator.adopt(&child.thread()).unwrap();
    }
    let before = priority_of(victim.id());
    let outcome = rig.set_priority(&victim.thread(), Priority::Boosted(10));
    assert_refused(&outcome, "different scheduling groups");
    assert_eq!(priority_of(victim.id()), before);
    assert!(!rig.actuator.abilities().boost.exists());
    rig.actuator.contend([victim.id()].into());
    if may_boost() {
        assert!(rig.actuator.abilities().boost.exists());
        let outcome = rig.set_priority(&victim.thread(), Priority::Boosted(10));
        assert_eq!(outcome, Outcome::Done, "the other one does not compete");
    }
}

#[test]
fn a_user_that_cannot_undo_is_refused_priorities_and_given_affinity() {
    if !is_root() {
        return crate::roles::as_an_ordinary_user(
            &tempfile::tempdir().unwrap().path().join("state"),
        );
    }
    crate::roles::play_as_unprivileged();
}

#[test]
fn the_journal_stays_small_however_many_moves_are_made() {
    let Some((_, first, second)) = two_cpus() else { return };
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    rig.actuator.adopt(&victim.thread()).unwrap();
    for n in 0..3000 {
        let cpus = if n % 2 == 0 { &first } else { &second };
        assert_eq!(rig.pin(&victim.thread(), cpus), Outcome::Done);
    }
    let journal = std::fs::read_dir(rig.state()).unwrap().next().unwrap().unwrap().path();
    let lines = std::fs::read_to_string(journal).unwrap().lines().count();
    assert!(lines < 1100, "{lines} lines");
}

#[test]
fn a_new_thread_of_a_pinned_one_gets_its_makers_own_mask() {
    // In a process of its own: this one's children belong to other tests.
    let output = crate::roles::actor("pinned maker of a thread").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `sleep` started by `chrt` with some options, where that is allowed.
fn sleeper_of_class(options: &[&str]) -> Option<Victim> {
    let mut command = std::process::Command::new("chrt");
    command.args(options).args(["sleep", "1000"]).stderr(std::process::Stdio::null());
    let Ok(child) = command.stdin(std::process::Stdio::piped()).spawn() else {
        skip("no chrt here");
        return None;
    };
    let mut victim = Victim(child);
    let started = wait_for("chrt", || match victim.0.try_wait().unwrap() {
        Some(_) => Some(false),
        None => (comm_of(victim.id())? == "sleep").then_some(true),
    });
    if !started {
        skip(&format!("chrt {options:?} is not allowed here, or not known"));
    }
    started.then_some(victim)
}

#[test]
fn a_batch_thread_is_a_batch_thread_again_after_waiting() {
    if !may_boost() {
        return skip("no right to end waiting");
    }
    let Some(victim) = sleeper_of_class(&["--batch", "--reset-on-fork", "0"]) else { return };
    let rig = Rig::new();
    let before = priority_of(victim.id());
    assert_eq!(before.1, 3);
    rig.actuator.adopt(&victim.thread()).unwrap();
    assert_eq!(rig.set_priority(&victim.thread(), Priority::Idle), Outcome::Done);
    assert_eq!(priority_of(victim.id()).1, 5);
    assert_eq!(rig.set_priority(&victim.thread(), Priority::Normal), Outcome::Done);
    assert_eq!(priority_of(victim.id()), before);
}

#[test]
fn a_real_time_thread_keeps_its_priority() {
    let Some(victim) = sleeper_of_class(&["--fifo", "1"]) else { return };
    let rig = Rig::new();
    let before = priority_of(victim.id());
    rig.actuator.adopt(&victim.thread()).unwrap();
    for priority in [Priority::Boosted(1), Priority::Idle] {
        assert_refused(&rig.set_priority(&victim.thread(), priority), "real-time");
    }
    assert_eq!(priority_of(victim.id()), before);
}

#[test]
fn a_foreign_nice_value_is_left_alone() {
    if !may_boost() {
        return skip("no right to raise priorities");
    }
    let (rig, victim) = (Rig::new(), Victim::sleeper());
    let (id, thread) = (victim.id(), victim.thread());
    let pid = rustix::process::Pid::from_raw(i32::try_from(id).unwrap());
    rig.actuator.adopt(&thread).unwrap();
    assert_eq!(rig.set_priority(&thread, Priority::Boosted(5)), Outcome::Done);
    rustix::process::setpriority_process(pid, 7).unwrap();
    assert_eq!(rig.set_priority(&thread, Priority::Normal), Outcome::ExternallyChanged);
    assert_eq!(priority_of(id).0, 7);
    assert_eq!(rig.set_priority(&thread, Priority::Boosted(5)), Outcome::Done);
    assert_eq!(priority_of(id).0, 2, "counted from what another process set");
    rig.actuator.restore_all();
    assert_eq!(priority_of(id).0, 7);
}

#[test]
fn a_nice_value_counted_from_a_boost_is_counted_from_what_the_thread_had() {
    if !may_boost() {
        return skip("no right to raise priorities");
    }
    for (how, more) in [("moved", 1), ("looked at", 5), ("restored", 3)] {
        let (rig, victim) = (Rig::new(), Victim::sleeper());
        let (id, thread) = (victim.id(), victim.thread());
        let pid = rustix::process::Pid::from_raw(i32::try_from(id).unwrap());
        rig.actuator.adopt(&thread).unwrap();
        let own = priority_of(id).0;
        assert_eq!(rig.set_priority(&thread, Priority::Boosted(8)), Outcome::Done);
        // As nice(2) does it.
        let nices = [priority_of(id).0 + more, own + more];
        rustix::process::setpriority_process(pid, i32::try_from(nices[0]).unwrap()).unwrap();
        match how {
            "moved" => {
                let outcome = rig.set_priority(&thread, Priority::Normal);
                assert_eq!(outcome, Outcome::ExternallyChanged);
            }
            "looked at" => assert_eq!(rig.actuator.lapsed(), []),
            _ => {}
        }
        if how != "restored" {
            assert_eq!(priority_of(id).0, nices[1], "{how}");
        }
        rig.actuator.restore_all();
        assert_eq!(priority_of(id).0, nices[1], "{how}");
    }
}
