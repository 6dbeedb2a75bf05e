//! What is refused, and in which words.

use proptest::prelude::*;

use super::*;

fn refusal(from: &str, to: &str) -> String {
    spoiled(from, to).expect_err("this must be refused").to_string()
}

#[test]
fn refusals_name_file_line_key_and_reason() {
    let expected = [
        ("threads = 1", "threads = ", "toy.toml:7: document: no TOML: "),
        ("title = \"A toy\"\n", "", "toy.toml:1: title: missing"),
        ("title = \"A toy\"", "title = 3", "toy.toml:2: title: expected a string, found integer"),
        ("caveats = \"None.\"", "caveats = \" \"", "toy.toml:4: caveats: is empty"),
        ("threads = 1", "treads = 1", "toy.toml:7: smt.treads: unknown key; known here: threads"),
        ("parts = [0x123]", "parts = [-1]", "toy.toml:12: detect.parts: expected an array of"),
        (
            "parts = [0x123]",
            "parts = [0x123]\nrevisions = [1]",
            "toy.toml:13: detect.revisions: expected [first, last]",
        ),
        (
            "[[event]]",
            "[oracle]\nalso = 3\n[[event]]",
            "toy.toml:21: oracle.also: expected an array",
        ),
        (
            "implementer = 0x7f\nparts = [0x123]",
            "",
            "toy.toml:10: detect: names no processor; expected vendor, pvr or implementer",
        ),
        ("config:8-15", "config:15-8", "toy.toml:18: pmu.format.umask: 'config:15-8' is no field"),
        ("umask = 0x02", "umask = 0x102", "toy.toml:30: event.STALLS.umask: 0x102 is too wide"),
        ("event = 0x07\n", "", "toy.toml:38: event.STORES: has no encoding; give any of: event,"),
        ("name = \"STORES\"", "name = \"a-b\"", "toy.toml:39: event.name: 'a-b' is no name"),
        (
            "name = \"STORES\"",
            "name = \"STALLS\"",
            "toy.toml:39: event.name: there is an event 'STALLS' already",
        ),
        (
            "counters = [1]",
            "counters = [7]",
            "toy.toml:31: event.STALLS.counters: this PMU has no counter 7",
        ),
        (
            "\"CYCLES\", \"STORES\"",
            "\"CYCLES\", \"STORE\"",
            "toy.toml:49: group.stores.events: unknown event 'STORE'",
        ),
        (", \"LOADS.ALL\"]", "]", "toy.toml:43: group: event 'LOADS.ALL' is in no group"),
        (
            "STALLS / CYCLES",
            "STALL / CYCLES",
            "toy.toml:52: formula.stalled.expr: at character 1: 'STALL' is neither an event of \
             this catalogue nor a formula above this one",
        ),
        (
            "1 - stalled",
            "1 - running",
            "toy.toml:57: formula.running.expr: at character 5: 'running' is neither",
        ),
        (
            "1 - stalled",
            "(1 - stalled",
            "toy.toml:57: formula.running.expr: at character 13: expected ')', found the end",
        ),
        (
            "[[detect]]",
            "[units]\nfloating_point = 0\nsource = \"made up\"\n[[detect]]",
            "toy.toml:11: units.floating_point: expected a number from 1 to 2^32 - 1",
        ),
        (
            "[[detect]]",
            "[units]\nfloating_point = 2\n[[detect]]",
            "toy.toml:10: units.source: missing",
        ),
        (
            "[[detect]]",
            "[units]\ninteger = 2\n[[detect]]",
            "toy.toml:11: units.integer: unknown key; known here: floating_point, source",
        ),
        (
            "unit = \"accesses/cycles\"",
            "unit = \"parsecs\"",
            "toy.toml:63: formula.l1d_bandwidth.unit: unknown unit 'parsecs'; expected fraction,",
        ),
        (
            "[formula.running]",
            "[formula.STORES]",
            "toy.toml:56: formula.STORES: has the name of an event",
        ),
        (
            "members = [\"stalled\", \"running\"]",
            "members = [\"stalled\", \"resting\"]",
            "toy.toml:72: categories.TopL.members: unknown formula 'resting'",
        ),
    ];
    let mut wrong = Vec::new();
    for (from, to, words) in expected {
        let said = refusal(from, to);
        if !said.starts_with(words) {
            wrong.push(format!("  said: {said}\nwanted: {words}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn groups_that_do_not_fit_the_counters_are_refused() {
    assert_eq!(
        refusal("[\"CYCLES\", \"STORES\"]", "[\"CYCLES\", \"STALLS\", \"LOADS.ALL\", \"STORES\"]"),
        "toy.toml:49: group.stores.events: do not fit the counters at the same time"
    );
}

/// Three events want the two counters that the watchdog leaves of three.
#[test]
fn groups_leave_the_watchdog_its_counter() {
    let three = SOUND
        .replace("counters = [0, 1]", "counters = [0, 1]\nwatchdog = \"CYCLES\"")
        .replace("\"CYCLES\", \"STORES\"", "\"CYCLES\", \"STORES\", \"LOADS.ALL\"");
    let words = "group.stores.events: do not fit the counters with the kernel's watchdog";
    let said = Catalogue::parse("toy.toml", &three).expect_err("too many").to_string();
    assert!(said.contains("group.stalls.events: do not fit the counters with"), "{said}");
    let roomy = three.replace("counters = [0, 1]\n", "counters = [0, 1, 2]\n");
    assert!(Catalogue::parse("toy.toml", &roomy).is_ok());
    let full = roomy.replace("\"STORES\", \"LOADS.ALL\"", "\"STORES\", \"LOADS.ALL\", \"STALLS\"");
    let said = Catalogue::parse("toy.toml", &full).expect_err("too many").to_string();
    assert!(said.contains(words), "{said}");
    assert_eq!(
        refusal("counters = [0, 1]", "counters = [0, 1]\nwatchdog = \"SLOTS\""),
        "toy.toml:17: pmu.watchdog: unknown event 'SLOTS'"
    );
}

#[test]
fn counts_of_different_groups_are_never_divided() {
    assert_eq!(
        refusal("1 - stalled", "STORES / (LOADS.ALL + STALLS)"),
        "toy.toml:57: formula.running.expr: divides counts that no group takes together: STALLS, \
         LOADS.ALL, STORES"
    );
    assert!(spoiled("1 - stalled", "(STORES / CYCLES) / (STALLS / CYCLES)").is_ok());
    assert!(spoiled("1 - stalled", "(STORES + LOADS.ALL) / CYCLES").is_err());
    assert!(spoiled("1 - stalled", "max(STORES, 1) / min(STALLS, 1)").is_err());
    assert!(spoiled("1 - stalled", "STORES * (1 / STALLS)").is_err(), "a division in disguise");
    assert!(spoiled("1 - stalled", "if(stalled > 0.5, STORES, 0) / STALLS").is_err());
}

#[test]
fn formulas_that_double_at_every_step_are_refused() {
    let mut chain = String::new();
    for step in 0..40 {
        let before = if step == 0 { "stalled".to_owned() } else { format!("f{}", step - 1) };
        chain += &format!(
            "[formula.f{step}]\nexpr = \"{before} + {before}\"\nunit = \"fraction\"\n\
             source = \"made up\"\n\n"
        );
    }
    let refused = spoiled("[[sum]]", &format!("{chain}[[sum]]")).unwrap_err();
    assert_eq!(refused.reason, "takes too many steps once its references are followed");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(
        start in 0usize..SOUND.len(),
        length in 0usize..60,
        junk in "([a-zA-Z0-9_.,:=/*()\\[\\]\"# \n-]|é|expr|event|0x|\"\"\"){0,12}",
    ) {
        let end = (start + length).min(SOUND.len());
        let mut text = SOUND.to_owned();
        text.replace_range(start..end, &junk);
        if let Err(error) = Catalogue::parse("toy.toml", &text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1);
            prop_assert!(!error.reason.is_empty() && !error.key.is_empty());
        }
    }

    #[test]
    fn any_expression_is_read_or_refused_without_panic(
        text in "(STALLS|CYCLES|STORES|stalled|[-+*/(),>]|[0-9]{1,3}|\\.| |if|min|max){0,24}",
        count in prop::num::f64::ANY,
    ) {
        if let Ok(catalogue) = spoiled("1 - stalled", &text) {
            let value = catalogue.evaluate("running", &|_: &str| Some(count));
            prop_assert!(value.is_err() || value.is_ok_and(|value| value.value.is_finite()));
        }
    }
}
