//! What can go wrong, end to end: the built `symbiont` with real programs.
//!
//! Each test has a state directory of its own, so that neither other tests nor
//! a symbiont of the user's are in its way. Threads that live shortly come from
//! this binary itself (see [`churn::play`]).
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod churn;
mod confined;
mod crash;
mod misuse;
mod nesting;
mod place;
mod quiet;
mod seeing;
mod settings;
mod slow;
mod supervisor;
mod terminal;
mod trials;
mod user;

#[path = "../../../linux/tests/launch/pty.rs"]
mod pty;

fn main() {
    churn::play(std::env::args().skip(1));
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = [
        churn::trials(),
        confined::trials(),
        crash::trials(),
        misuse::trials(),
        nesting::trials(),
        quiet::trials(),
        seeing::trials(),
        slow::trials(),
        supervisor::trials(),
        terminal::trials(),
        user::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}
