use super::super::account::tests::{accounted, siblings};
use super::*;

/// What `accounted` saw, as advice.
fn of(account: &Account, notes: &[&str], daemon: Option<Daemon>) -> Advice {
    let topology = Topology::synthetic("core:2 smt:2").unwrap();
    let job = |id: ProgramId| {
        Some(Job { process: 1000 + id.0, name: format!("p{}", id.0), is_passing: id.0 == 9 })
    };
    advice(
        account,
        Circumstances {
            policy: Policy { name: "fixed".into(), ..Policy::default() },
            topology: &topology,
            job: &job,
            manager: &|process| (process == 1002).then_some(7),
            busy_from: 0.05,
            daemon,
            prospects: "little to gain here".into(),
            needs_sudo: true,
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
        },
    )
}

#[test]
fn busy_programs_are_listed_and_the_rest_is_summed_up() {
    let (one, sibling, other) = siblings();
    let threads = [(1, 1, one, 1.0), (2, 2, sibling, 1.0), (3, 3, other, 0.02), (4, 4, other, 0.0)];
    let advice = of(&accounted(&threads, &[(1, one), (2, other)], 11), &["a note"], None);
    let names: Vec<_> = advice.programs.iter().map(|p| (p.name.as_str(), p.process)).collect();
    assert_eq!(names, [("p1", 1001), ("p2", 1002)]);
    assert_eq!(advice.others.programs, 2);
    assert!((advice.others.cpus_used - 0.02).abs() < 1e-6, "{:?}", advice.others);
    assert!(advice.changes && advice.policy.predicts, "{advice:?}");
    assert_eq!(advice.conclusion, "fixed would place both busy programs.");
    let gain = advice.gain.unwrap();
    assert!(gain.speed_planned > gain.speed_now);
    // The second one has a manager.
    assert_eq!(
        advice.apply,
        ["sudo symbiont daemon --policy fixed &", "symbiont attach --pid 1001"]
    );
    assert_eq!(advice.notes, ["a note"]);
    let first = &advice.programs[0];
    assert_eq!(first.co_runners.with[0].process, 1002);
    assert_eq!((first.threads, first.ended, first.managed_by), (1, false, None));
}

#[test]
fn a_shell_that_came_meanwhile_is_not_to_be_attached() {
    let (one, sibling, _) = siblings();
    let threads = [(1, 1, one, 1.0), (9, 9, sibling, 1.0)];
    let advice = of(&accounted(&threads, &[(1, one), (9, sibling)], 11), &[], None);
    assert_eq!(advice.programs.len(), 2);
    assert_eq!(advice.apply[1], "symbiont attach --pid 1001");
    let advice = of(&accounted(&threads[1..], &[(9, sibling)], 11), &[], None);
    assert_eq!((advice.changes, advice.apply.len()), (true, 0));
}

#[test]
fn a_daemon_of_another_policy_is_noted() {
    let (one, ..) = siblings();
    let account = accounted(&[(1, 1, one, 1.0)], &[(1, one)], 5);
    let daemon = Daemon { process: 7, policy: "stay".into() };
    let advice = of(&account, &[], Some(daemon));
    assert_eq!(advice.apply, ["symbiont attach --pid 1001"]);
    assert!(advice.notes[0].contains("by stay, not by fixed"), "{:?}", advice.notes);
}

#[test]
fn where_nothing_is_to_be_changed_the_reason_is_given() {
    let (one, ..) = siblings();
    let idle = of(&accounted(&[(1, 1, one, 0.01)], &[], 5), &[], None);
    assert!(idle.conclusion.starts_with("Nothing to change: no program used 5.0 %"), "{idle:?}");
    let left = of(&accounted(&[(1, 1, one, 1.0)], &[], 5), &[], None);
    let wanted = "Nothing to change: fixed would leave the busy program to the OS (left alone).";
    assert_eq!((left.conclusion.as_str(), left.changes), (wanted, false));
    assert!(left.apply.is_empty() && left.gain.is_none());
    let none = of(&accounted(&[(1, 1, one, 1.0)], &[], 1), &[], None);
    assert!(none.conclusion.contains("watch for longer") && none.programs.is_empty());
    let empty = Account::new(&Topology::synthetic("core:2").unwrap());
    assert!(crate::advise::text::text(&of(&empty, &[], None)).contains("watch for longer"));
}
