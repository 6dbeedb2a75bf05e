//! How many priority levels a serial thread gains.
//!
//! # Problem
//! A serial thread with a core of its own stays there only if the kernel's balancer agrees: that core must not look
//! less loaded than the others. Priority makes it weigh more; the paper takes ten levels. But the kernel shares out the
//! weight of a session's autogroup, or of a cgroup, by what its threads weigh: where programs of other sessions run,
//! too, what one thread weighs more is taken from the others of its own session, and ten levels leave a parallel
//! program a third of what it had.
//!
//! # Approach
//! `phases` takes the paper's ten. `phases-online` and `auto` make the serial thread weigh as much as what runs on
//! each hardware thread that it leaves to the others, and a level more, so that each core of the session weighs the
//! same: `levels = ceil(log(ready / hardware threads) / log(1.25)) + 1`, from [`LEAST`] to ten. What was chosen stays
//! while that changes by one level.
//!
//! # Terms and units
//! *Level*: one of nice, 1.25 times the weight (`sched(7)`). *Ready*: mean number of ready threads.
//!
//! # Properties
//! - A serial thread outweighs what each other hardware thread has
//!   (`a_serial_thread_outweighs_what_the_others_have_on_each_hardware_thread`), by no more than two levels
//!   where that is enough (`and_by_no_more_than_it_takes`).
//! - A change of one level is not made (`a_change_of_one_level_is_not_made`), and what is set holds
//!   (`levels_that_are_set_hold`).

use super::Phases;

/// Least levels: enough against one thread on each of the others.
const LEAST: u8 = 3;
/// What a level multiplies a weight with.
const LEVEL: f64 = 1.25;

/// Levels of serial threads.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    set: Option<u8>,
    now: Option<u8>,
}

impl Levels {
    /// Always so many; none: as many as it takes.
    pub(super) fn new(set: Option<u8>) -> Self {
        Self { set, now: None }
    }

    /// For the next quantum, where so many threads are ready on each hardware thread that serial ones leave to them.
    pub(super) fn against(&mut self, ready: f64) -> u8 {
        if let Some(set) = self.set {
            return set;
        }
        let wanted = (1..Phases::LEVELS)
            .find(|levels| LEVEL.powi(i32::from(*levels) - 1) >= ready)
            .unwrap_or(Phases::LEVELS)
            .max(LEAST);
        let now = self.now.filter(|now| now.abs_diff(wanted) <= 1).unwrap_or(wanted);
        self.now = Some(now);
        now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn weight(levels: u8) -> f64 {
        LEVEL.powi(i32::from(levels))
    }

    proptest! {
        #[test]
        fn a_serial_thread_outweighs_what_the_others_have_on_each_hardware_thread(
            ready in proptest::collection::vec(0.0..7.0, 1..9),
        ) {
            let mut levels = Levels::new(None);
            for ready in ready {
                prop_assert!(weight(levels.against(ready)) * LEVEL.powf(0.01) >= ready, "{ready}");
            }
        }

        #[test]
        fn and_by_no_more_than_it_takes(ready in 1.5_f64..7.0) {
            prop_assert!(weight(Levels::new(None).against(ready)) <= weight(2) * ready * 1.01);
        }
    }

    #[test]
    fn a_change_of_one_level_is_not_made() {
        let mut levels = Levels::new(None);
        assert_eq!(
            [4.0, 3.2, 4.8, 2.0, 1.0, 100.0].map(|ready| levels.against(ready)),
            [8, 8, 8, 5, 3, 10]
        );
    }

    #[test]
    fn levels_that_are_set_hold() {
        let mut levels = Levels::new(Some(10));
        assert_eq!([1.0, 4.0].map(|ready| levels.against(ready)), [10, 10]);
    }
}
