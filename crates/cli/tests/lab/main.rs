//! The guest lab: Symbiont on real kernels with hardware that this machine does not have.
//!
//! # Problem
//! Most machines that run these tests have no SMT, one socket and one type of
//! core, and no test may take CPUs offline there for a test.
//!
//! # Approach
//! QEMU emulates a machine in software; a stock kernel boots there with an
//! initramfs that holds the built `symbiont`, and this very test binary as init.
//! There it plays the scenarios one after the other, each in a process of its
//! own, and reports over the serial line how each ended. Here each scenario of
//! each guest is a test; the first of a guest boots it for all of them.
//!
//! What a guest was given is written down once ([`given`]), made into QEMU's
//! arguments by [`outside`], and looked for by the scenarios ([`inside`]), which
//! never ask the product what is right.
//!
//! For a guest of another architecture both programs are built beforehand, by a compiler
//! that was fetched with it. That guest's scenarios are not among the plain test
//! command's: it would compile everything twice. Nor is all that the first guest reports
//! tried on each of the others ([`given::Scope`]).
//!
//! One guest is only watched: what its kernel does with unplaced threads is
//! recorded, for the simulated machine's scheduler to be held against
//! (`scripts/os-baseline.sh`). Into another one programs of this machine's runtimes are brought along
//! (`scripts/runtimes.py --guest`).
//!
//! The emulator and the kernels come from `scripts/fetch-lab.sh`. Without them
//! the tests are reported as ignored, with the reason; where all guests were asked for,
//! they fail with it.
//!
//! # What it cannot show
//! Guests have no contention and no meaningful wall-clock time: scenarios assert
//! order and state, never speed. A PMU that is emulated counts what was executed, and
//! knows neither stalls nor misses. A policy's quality is not tested here.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod given;
mod inside;
mod outside;

#[path = "../faults/settings.rs"]
mod settings;
#[path = "../faults/test_folder.rs"]
mod test_folder;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments[0].as_str() {
        inside::INIT => inside::main(&arguments[1..]),
        _ => outside::main(),
    }
}
