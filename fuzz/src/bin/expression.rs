//! The expression of a formula, in a catalogue that is sound otherwise.
#![no_main]

use symbiont_counters::catalogue::Catalogue;
use symbiont_fuzz::fuzz_target;

const SOUND: &str = include_str!("../../../crates/core/counters/catalogues/software.toml");

fuzz_target!(|expression: &str| {
    if expression.contains(['\'', '\n', '\r']) {
        return;
    }
    let formula = "[formula.input]\nunit = 'fraction'\nsource = 'input'\nexpr = ";
    let text = format!("{SOUND}\n{formula}'{expression}'\n");
    let Ok(catalogue) = Catalogue::parse("input", &text) else { return };
    for count in [0.0, 1.0, 3.5, 1e300] {
        let _ = catalogue.evaluate("input", &|_: &str| Some(count));
    }
    let input = catalogue.formula("input").expect("it was read");
    assert!(catalogue.events_of(input).count() <= catalogue.events().len());
    assert!(catalogue.groups_for(["input"]).is_ok());
});
