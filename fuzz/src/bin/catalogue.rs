//! Event catalogues: what is read is planned and evaluated too.
#![no_main]

use symbiont_counters::catalogue::Catalogue;
use symbiont_fuzz::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(catalogue) = Catalogue::parse("input", text) else { return };
    for formula in catalogue.formulas() {
        let groups = catalogue.groups_for([formula.name.as_str()]);
        assert!(groups.is_ok(), "{groups:?}");
        for count in [0.0, 1.0, 1e300] {
            let _ = catalogue.evaluate(&formula.name, &|_: &str| Some(count));
        }
    }
    let again = Catalogue::parse("input", catalogue.text()).expect("it was read before");
    assert_eq!(again.events(), catalogue.events());
    assert_eq!(again.groups(), catalogue.groups());
});
