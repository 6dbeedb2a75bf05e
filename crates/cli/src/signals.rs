//! Which signals ask a command to end.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use symbiont_linux::launch::is_ignored;

/// SIGHUP, SIGINT and SIGTERM, but none that is ignored: `nohup` and a shell's `&` have it so, and it stays so.
pub fn asking_to_end() -> impl Iterator<Item = i32> {
    heeded([SIGHUP, SIGINT, SIGTERM])
}

/// Those of these signals that are not ignored.
pub fn heeded(signals: impl IntoIterator<Item = i32>) -> impl Iterator<Item = i32> {
    signals.into_iter().filter(|signal| !is_ignored(*signal))
}
