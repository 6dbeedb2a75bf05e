//! What simulated records follow from, next to the runs.

use sha2::{Digest, Sha256};
use symbiont_profile::Profile;
use symbiont_sim_fast::description::Description;

use super::{Provenance, Setup};
use symbiont_campaign::digest;
use symbiont_report::number::counted;

/// A digest of the code that simulated records follow from.
pub const CODE: &str = env!("SYMBIONT_RECORD_CODE");

/// A digest of what decides besides that where it runs cycle by cycle.
pub const CYCLE_CODE: &str = env!("SYMBIONT_CYCLE_CODE");

/// A digest of a machine.
pub fn machine(description: &Description) -> String {
    digest(&[&format!("{description:?}")])
}

/// A digest of a profile.
pub fn profile(profile: &Profile) -> String {
    let bytes = postcard::to_stdvec(profile).unwrap_or_default();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a report says of a simulated machine.
pub fn described(description: &Description) -> (String, String) {
    let from = Provenance::new(description, &Setup::default());
    let said = format!(
        "{}; {}, {}; {}; {}; {} of its {} values are assumed",
        from.title,
        counted(from.cores, "core"),
        counted(from.hardware_threads, "hardware thread"),
        from.checked,
        from.held,
        from.assumed,
        from.values
    );
    (format!("Simulated machine {}", from.machine), said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_one_core_has_one_core() {
        let whole = Description::named("power8-s812l").unwrap();
        let said =
            |cores, smt| described(&whole.clone().restricted(Some(cores), Some(smt)).unwrap()).1;
        assert!(said(1, 1).contains("; 1 core, 1 hardware thread; "), "{}", said(1, 1));
        assert!(said(2, 8).contains("; 2 cores, 16 hardware threads; "), "{}", said(2, 8));
    }
}
