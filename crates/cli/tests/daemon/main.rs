//! The daemon and its clients, end to end: the built `symbiont` with real programs.
//!
//! Each test has a daemon of its own, in a state directory of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]
#![allow(dead_code, reason = "what is shared with other tests is not all used here")]

mod abuse;
mod access;
mod advise;
mod attached;
mod batches;
mod cgroup;
mod classes;
mod containers;
mod descriptors;
mod exposition;
mod foreign;
mod hostile;
mod install;
mod life;
mod metrics;
mod namespace;
mod real;
mod reasons;
mod rules;
mod schema;
mod service;
mod top;
mod unit;
mod user;

#[path = "../faults/settings.rs"]
mod settings;
#[path = "../faults/test_folder.rs"]
mod test_folder;
#[path = "../counting/toy.rs"]
mod toy;
#[path = "../faults/trials.rs"]
mod trials;

fn main() {
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = [
        abuse::trials(),
        access::trials(),
        advise::trials(),
        attached::trials(),
        batches::trials(),
        cgroup::trials(),
        classes::trials(),
        containers::trials(),
        descriptors::trials(),
        foreign::trials(),
        hostile::trials(),
        install::trials(),
        life::trials(),
        metrics::trials(),
        namespace::trials(),
        real::trials(),
        reasons::trials(),
        rules::trials(),
        schema::trials(),
        top::trials(),
        unit::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}
