//! A policy that needs counters, end to end: real processes, their counts of
//! software events, what these mean by a catalogue, the policy's placement, and
//! the affinity of the real threads.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod balance;
mod categories;
mod fpu;
mod pairs;
mod toy;
mod worker;

use libtest_mimic::{Arguments, Trial};

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &args[..] {
        if first == worker::WORKER {
            return worker::main(rest);
        }
    }
    let trials = vec![
        trial("counted_threads_are_balanced_over_cores", balance::balanced),
        trial("fpu_hungry_threads_are_spread_and_others_left_to_the_os", fpu::spread),
        trial("a_policy_without_its_counters_is_refused_with_the_reason", balance::refused),
        trial("threads_are_paired_by_a_model", pairs::paired),
        trial("threads_are_paired_by_category", categories::paired),
        trial("hysched_makes_do_with_the_levels_there_are", categories::made_do),
        trial("a_model_that_does_not_fit_is_refused_with_the_reason", pairs::refused),
        trial("a_catalogue_that_is_none_is_refused", balance::no_catalogue),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
