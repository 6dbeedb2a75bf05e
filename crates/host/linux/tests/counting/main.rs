//! Counts of real threads through the seam, over software events.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod bench;
mod budget;
mod seam;
mod worker;

use libtest_mimic::{Arguments, Trial};

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(worker::WORKER) => return worker::main(),
        Some(budget::FEW) => return budget::few_descriptors(),
        _ => {}
    }
    let trials = vec![
        trial("touched_pages_are_faults_of_their_thread", seam::touched_pages),
        trial("only_what_is_needed_is_counted", seam::only_what_is_needed),
        trial("a_missing_signal_is_reported_with_its_reason", seam::lacking_signals),
        trial("a_new_thread_says_why_it_is_not_counted_yet", seam::new_threads),
        trial("an_ended_thread_is_reported_once_with_its_last_counts", seam::ended_threads),
        trial("groups_that_take_turns_share_the_time", seam::rotation),
        trial("with_few_descriptors_threads_take_turns", budget::with_few_descriptors),
        trial("two_thousand_threads_are_sampled_and_counted", budget::two_thousand_threads),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
