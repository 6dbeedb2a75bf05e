//! What can go wrong, end to end: the built `symbiont` with real programs.
//!
//! Each test has a state directory of its own, so that neither other tests nor
//! a symbiont of the user's are in its way. Threads that live shortly come from
//! this binary itself (see [`churn::play`]).
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod churn;
mod confined;
mod crash;
mod daemons;
mod limits;
mod misuse;
mod nesting;
mod no_proc;
mod quiet;
mod seeing;
mod settings;
mod setuid;
mod slow;
mod soak;
mod state_dir;
mod status;
mod supervisor;
mod terminal;
mod test_folder;
mod trials;
mod user;

#[path = "../../../host/linux/tests/launch/pty.rs"]
mod pty;

fn main() {
    churn::play(std::env::args().skip(1));
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = [
        churn::trials(),
        confined::trials(),
        crash::trials(),
        daemons::trials(),
        limits::trials(),
        misuse::trials(),
        nesting::trials(),
        no_proc::trials(),
        quiet::trials(),
        seeing::trials(),
        setuid::trials(),
        slow::trials(),
        soak::trials(),
        state_dir::trials(),
        status::trials(),
        supervisor::trials(),
        terminal::trials(),
        user::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit();
}
