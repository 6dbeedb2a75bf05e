//! How the time is divided: a share in which it is found out which hardware threads share a core, the rest for the
//! programs.

use std::time::Duration;

/// What starting and ending kernels takes for each measurement.
pub(super) const AROUND: Duration = Duration::from_millis(400);
/// Share of the time, at most, in which it is found out which hardware threads share a core: one in so many.
const SHARE: u32 = 8;
/// Rounds of that at least, and how long each measurement counts.
pub(super) const LEAST_ROUNDS: u32 = 3;
pub(super) const WINDOW: Duration = Duration::from_millis(100);

/// The time for finding out which hardware threads share a core: enough for one pair.
pub(super) fn for_sharing(limit: Duration) -> Duration {
    (limit / SHARE).max((WINDOW + AROUND) * 3 * LEAST_ROUNDS)
}

/// The least limit that leaves this much for the programs.
pub(super) fn least_limit(needed: Duration) -> Duration {
    let of_share = needed * SHARE / (SHARE - 1);
    of_share.max(needed + for_sharing(Duration::ZERO)) + Duration::from_millis(1)
}
