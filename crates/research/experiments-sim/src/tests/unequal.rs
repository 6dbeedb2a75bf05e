//! Last-level caches of unequal size, as AMD's 3D V-Cache makes them: `auto` gains where programs miss in the smaller
//! one, and gains nothing where the caches are equal or it is shown the misses of other programs.

use symbiont_profile::test_support::pointer_chasing;

use super::*;

/// A Zen 4 of two domains of four cores with these last-level caches, the second one at a lower clock. All is smaller
/// than on the processor, so that four programs of 640 KB are to it what large ones are to 32 and 96 MiB.
fn machine(caches: [&str; 2]) -> Description {
    let (_, text) = Description::builtin().iter().find(|(name, _)| *name == "epyc-9004").unwrap();
    let [first, second] = caches;
    let topology = format!(
        "core:4 cache:{first} memory:32G | llc:1 core:4 kind:efficiency capacity:960 cache:{second}"
    );
    let text = text
        .replace("core:8 smt:2 cache:32M memory:32G numbering:spread", &topology)
        .replace("bytes = \"1M\"", "bytes = \"128K\"");
    let (from, to) = (text.find("[core.performance]").unwrap(), text.find("[memory]").unwrap());
    let core = |kind: &str, ghz: &str, cache: &str| {
        text[from..to]
            .replace("core.performance", &format!("core.{kind}"))
            .replace("value = 3.66", &format!("value = {ghz}"))
            .replace("bytes = \"32M\"", &format!("bytes = \"{cache}\""))
    };
    let cores = core("performance", "3.66", first) + &core("efficiency", "3.43", second);
    let text = [&text[..from], &cores, &text[to..]].concat();
    Description::parse("unequal.toml", &text).unwrap()
}

/// STP of four programs that follow pointers through 640 KB, and four that need no cache. The cycle level takes too
/// long for the seconds that programs must be seen for.
fn stp(caches: [&str; 2], policy: &str, shown: ShownMeasurements) -> f64 {
    let workload = Workload::from_list("synthetic-chasing*4,synthetic-integer*4").unwrap();
    let mut profiles = profiles(&workload);
    profiles.insert("synthetic-chasing".to_owned(), pointer_chasing(10_000));
    let setup = Setup { alone: Duration::from_secs(60), repeats: 5, shown, ..setup(policy, 1) };
    let builder = TableBuilder::new(machine(caches));
    let mut go_on = |_| ControlFlow::Continue(());
    let outcome =
        simulate(&builder, &workload, &profiles, &setup, &|_| String::new(), &mut go_on, None);
    outcome.unwrap().stp.value
}

#[test]
fn programs_that_miss_gain_by_the_larger_cache() {
    let unequal = ["3M", "1M"];
    let (stay, auto) = (
        stp(unequal, "stay", ShownMeasurements::Own),
        stp(unequal, "auto", ShownMeasurements::Own),
    );
    assert!(auto > 1.1 * stay && auto > 7.6, "of 8: {auto} {stay}");
    let shuffled = stp(unequal, "auto", ShownMeasurements::Shuffled);
    assert!(shuffled - stay < 0.4 * (auto - stay), "{shuffled} {auto} {stay}");
}

#[test]
fn equal_caches_give_nothing_to_gain() {
    let equal = ["2M", "2M"];
    let (stay, auto) =
        (stp(equal, "stay", ShownMeasurements::Own), stp(equal, "auto", ShownMeasurements::Own));
    assert!((auto - stay).abs() < 0.02 * stay, "{auto} {stay}");
}
