use std::sync::Arc;

use crate::find;
use crate::worlds::stacks::model;

use super::*;

fn chosen(line: &str, signals: &[Signal], settings: &Settings) -> Option<&'static str> {
    let mut policy = Auto::new(settings);
    let machine = Topology::synthetic(line).unwrap();
    policy.offer(&offering(signals), &machine);
    assert!(
        offering(signals).missing(&policy.requirements().required).is_none(),
        "it needs what is offered"
    );
    policy.groups_by()
}

#[test]
fn what_is_chosen_follows_the_machine() {
    let without = Settings::default();
    let models = Some(Arc::new(model().into()));
    let with = Settings { models, ..Settings::default() };
    let smt = "core:4 smt:2";
    let no_memory = "node:1 core:2 smt:4 memory:1G | node:1 core:2 smt:4 memory:0";
    let fpu = [Signal::RunStates, Signal::FpuUsage];
    assert_eq!(chosen(smt, &Signal::ALL, &with), Some("symbiotic-online"));
    assert_eq!(chosen(smt, &Signal::ALL, &without), Some("learned"));
    assert_eq!(chosen(no_memory, &Signal::ALL, &with), Some("symbiotic-online"));
    assert_eq!(chosen(no_memory, &Signal::ALL, &without), Some("learned"));
    assert_eq!(
        chosen(no_memory, &COUNTED, &with),
        Some("learned"),
        "the model's stack is not measured"
    );
    assert_eq!(chosen(smt, &COUNTED, &without), Some("learned"));
    assert_eq!(chosen(smt, &fpu, &without), Some("fpu"));
    assert_eq!(chosen(smt, &NO_COUNTERS, &without), Some("never-twice"));
    assert_eq!(chosen("core:4 smt:4", &COUNTED, &without), Some("learned"));
    for line in ["core:2", "core:4 capacity:512 | core:2", "llc:2 core:4"] {
        assert_eq!(chosen(line, &Signal::ALL, &with), None, "{line}: no core runs two threads");
    }
}

#[test]
fn nothing_is_needed_before_it_is_known_what_is_offered() {
    let entry = find("auto").unwrap();
    assert_eq!(entry.requirements().required, [Signal::RunStates].into());
    let asked = entry.requirements().alternatives;
    for signal in [Signal::Ipc, Signal::FpuUsage] {
        assert!(asked.contains(&signal), "{signal} is asked for");
    }
    assert!(!asked.contains(&Signal::CpiStack), "no model is given");
    let bare = Topology::synthetic("core:2 smt:2").unwrap();
    assert_eq!(entry.check(&Settings::default(), Some((&offering(&NO_COUNTERS), &bare))), Ok(()));
}

#[test]
fn reasons_and_findings_name_the_choice() {
    let mut scene = Scene::on("llc:2 core:2 smt:2", &COUNTED).with((0..6).map(|p| 10 * p));
    assert_eq!(
        scene.policy.choice().unwrap(),
        "serial phases first; 2 domains of cores; groups on a core by learned (symbiotic-online: no model is \
         given)"
    );
    scene = scene.run(3);
    for number in (0..6).map(|p| 10 * p) {
        let reason = &scene.assignment(number).reason;
        assert!(reason.contains("LLC domain") && reason.contains("; learned: "), "{reason}");
    }
    let findings = scene.policy.findings();
    let value = |name: &str| findings.iter().find(|f| f.name == name).map(|f| f.value);
    assert_eq!(value("auto: domains"), Some(2.0));
    assert_eq!(value("auto: groups on a core decided by learned"), Some(3.0), "each quantum");
    assert!(value("changes of joint state").is_some(), "those of its parts are given, too");
}

/// A report is written, and a daemon asked, when all programs have ended.
#[test]
fn the_choice_stays_when_the_last_thread_has_ended() {
    let mut scene = Scene::on("llc:2 core:2 smt:2", &NO_COUNTERS).with([10, 20]).run(3);
    let choice = scene.policy.choice();
    assert!(choice.as_ref().unwrap().contains("2 domains of cores"), "{choice:?}");
    scene.actors.clear();
    scene = scene.run(3);
    assert_eq!(scene.policy.choice(), choice);
    let findings = scene.policy.findings();
    let domains = findings.iter().find(|finding| finding.name == "auto: domains").unwrap();
    assert_eq!(domains.value, 2.0);
}
