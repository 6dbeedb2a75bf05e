//! On this machine: guests are described, booted and listened to.

mod arm64;
mod boot;
mod cache;
mod device_tree;
mod guests;
mod initramfs;
mod power;
mod programs;
mod runtimes;
mod serial;

use std::sync::{Arc, LazyLock};

use libtest_mimic::{Arguments, Completion, Trial};

use crate::given::Scope;
use crate::inside::SCENARIOS;
use cache::Cache;
use guests::Guest;
use serial::{Ended, Report};

/// A guest that boots when the first of its scenarios is asked for.
type Booted = LazyLock<Result<Report, String>, Box<dyn FnOnce() -> Result<Report, String> + Send>>;

/// Runs the tests: the scenarios of each guest.
pub fn main() {
    let arguments = Arguments::from_args();
    let asked = |name: &str| {
        let skipped = arguments.skip.iter().any(|skip| name.contains(skip));
        !skipped && arguments.filter.as_ref().is_none_or(|filter| name.contains(filter))
    };
    // A run with more than the plain test command asks for is not content with nothing.
    let content = !(arguments.include_ignored || arguments.ignored);
    let trials = |guest| trials(guest, &asked, content);
    let guests = guests::all().into_iter().map(trials).collect();
    libtest_mimic::run(&arguments, in_turns(guests)).exit();
}

/// One of each guest, then another one of each, and so on: as many guests are booted at a
/// time as tests are run.
fn in_turns(mut guests: Vec<Vec<Trial>>) -> Vec<Trial> {
    guests.iter_mut().for_each(|trials| trials.reverse());
    let mut turns = Vec::new();
    while guests.iter().any(|trials| !trials.is_empty()) {
        turns.extend(guests.iter_mut().filter_map(Vec::pop));
    }
    turns
}

/// A guest's scenarios. Is it acceptable if it can't be booted here?
fn trials(guest: Guest, asked: &impl Fn(&str) -> bool, content: bool) -> Vec<Trial> {
    let name = guest.given.name.clone();
    let cache = Cache::find(guest.architecture);
    if let Err(why) = &cache {
        eprintln!("lab: {name} is not booted here: {why}");
    }
    // One guest is of use only with programs that are brought along.
    let content = content || (guest.given.scope == Scope::Runtimes && runtimes::file().is_err());
    let scenarios: Vec<&str> = SCENARIOS
        .iter()
        .filter(|scenario| (scenario.fits)(&guest.given))
        .map(|scenario| scenario.name)
        .filter(|scenario| asked(&format!("{name}::{scenario}")))
        .collect();
    let played = scenarios.clone();
    // The plain test command's.
    let short = guest.given.scope == Scope::Whole;
    let boot: Box<dyn FnOnce() -> Result<Report, String> + Send> =
        Box::new(move || cache.and_then(|cache| boot::boot(&guest, &played, &cache)));
    let booted: Arc<Booted> = Arc::new(LazyLock::new(boot));
    let trial = |&scenario: &&'static str| {
        let booted = Arc::clone(&booted);
        Trial::ignorable_test(format!("{name}::{scenario}"), move || {
            match LazyLock::force(&booted) {
                Ok(report) => match report.ended(scenario) {
                    Ended::Well => Ok(Completion::Completed),
                    Ended::Skipped(why) => Ok(Completion::ignored_with(why)),
                    Ended::Badly(why) => Err(format!("{why}\n{}", report.about(scenario)).into()),
                },
                Err(why) if content => Ok(Completion::ignored_with(why)),
                Err(why) => Err(why.into()),
            }
        })
        .with_ignored_flag(!short)
    };
    scenarios.iter().map(trial).collect()
}
