//! Programs that are launched managed, compared with the same programs run alone.
//!
//! This binary is its own launcher (see `helper`), so that what is forked has
//! one thread, and what is compared has nothing but the launch between.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod exits;
mod helper;
mod identity;
mod jobs;
mod lifetimes;
mod pty;
mod terminal;

fn main() {
    helper::play(std::env::args().skip(1));
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = [
        exits::trials(),
        terminal::trials(),
        identity::trials(),
        lifetimes::trials(),
        jobs::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&arguments, trials).exit();
}
