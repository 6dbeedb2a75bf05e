//! Which serial threads have the fastest cores, where there are too few of
//! them for all.
//!
//! # Problem
//! Several programs are serial at once, state (S,S), and the machine has fewer
//! fastest cores than that. Section 6 of Morad et al. grants the large core to one
//! of the two and says no more: Table 3 keeps an average speedup of 1 for both, as
//! if chance decided anew each time, and leaves it to future work to share the core
//! as Fedorova et al. do (equal time for each thread, at the cost of moves).
//! If the thread that came first kept it, a serial program without an end would slow down
//! every later one for ever.
//!
//! # Approach
//! Turns, ours: three rules in this order.
//! 1. A thread that was moved there stays for a *hold* at least, a tenth of the timeout,
//!    if it stays serial that long: each move costs cache contents.
//! 2. A thread that has waited so long that all that wait could hardly be served within the
//!    timeout is *due*: the longest wait goes first.
//! 3. *Fresh* threads, which have had the fastest cores for less than a timeout in
//!    this serial phase, go before the others: most serial phases are shorter than
//!    that, and the sooner a phase ends, the sooner its program uses the other
//!    cores. Among equals the one that gains more by the core's speed (where known)
//!    goes first, then the one that has it, then the longest wait.
//!
//! # Terms and units
//! The *timeout* is that of the seniority boost. *Waiting*: serial, allowed on a
//! fastest core and without one, while others have them all.
//!
//! # Properties
//! - With up to ten serial threads no thread waits for longer than a timeout and a
//!   quantum; with more, for longer than a hold for each of the others
//!   (`no_thread_waits_for_the_fast_core_longer_than_a_timeout`).
//! - No thread loses a fastest core within a hold
//!   (`the_fast_core_changes_hands_no_faster_than_the_hold`).

use std::cmp::Reverse;
use std::time::Duration;

/// Holds in a timeout.
const HOLDS: u32 = 10;

/// What is remembered of a thread's use of the fastest cores in a serial phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Turn {
    /// Does it have one now?
    pub(super) has: bool,
    /// For how long, since it got there last.
    held: Duration,
    /// For how long in all of the phase.
    had: Duration,
    /// For how long it has been waiting.
    waited: Duration,
}

/// The lengths that rule turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    timeout: Duration,
    hold: Duration,
}

/// Smaller goes first.
pub(super) type Rank = (u8, Reverse<Duration>, bool, Reverse<u64>, bool, Reverse<Duration>);

impl Rules {
    /// With this timeout.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, hold: timeout / HOLDS }
    }

    /// A thread's rank among so many that want the fastest cores. `gain`: how much
    /// it gains there.
    pub(super) fn rank(&self, turn: &Turn, wanting: usize, gain: u64) -> Rank {
        let others = u32::try_from(wanting.saturating_sub(1)).unwrap_or(u32::MAX);
        let due = self.timeout.saturating_sub(self.hold.saturating_mul(others));
        let (rule, longest) = match turn {
            turn if turn.has && turn.held < self.hold => (0, Duration::ZERO),
            turn if !turn.has && !turn.waited.is_zero() && turn.waited >= due => (1, turn.waited),
            _ => (2, Duration::ZERO),
        };
        let seasoned = turn.had >= self.timeout;
        (rule, Reverse(longest), seasoned, Reverse(gain), !turn.has, Reverse(turn.waited))
    }
}

impl Turn {
    /// A quantum has passed.
    pub(super) fn pass(&mut self, over: Duration) {
        if self.has {
            self.held += over;
            self.had += over;
        } else {
            self.waited += over;
        }
    }

    /// It has a fastest core for the next quantum, or not.
    pub(super) fn give(&mut self, has: bool) {
        if has != self.has {
            (self.held, self.waited) = (Duration::ZERO, Duration::ZERO);
        }
        self.has = has;
    }
}
