//! What this process was started with, before Rust's runtime changed it.
//!
//! Before `main`, the standard library sets SIGPIPE to be ignored and opens
//! `/dev/null` in place of closed standard descriptors. A program that is to
//! notice nothing must get both as they were. A function in `.init_array`
//! runs before the runtime and notes them.
#![expect(
    unsafe_code,
    reason = "sigaction and fcntl before main, and the section that has them run"
)]

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::raw;

/// Was SIGPIPE ignored?
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Bit n is set if descriptor n (0 to 2) was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn note() {
    // SAFETY: an all-zero sigaction is a valid value of this plain C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only reads the disposition, into a struct that lives long enough.
    let read = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action) };
    SIGPIPE_IGNORED.store(read == 0 && action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    for descriptor in 0..3 {
        // SAFETY: F_GETFD changes nothing, whether the descriptor is open or not.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

// SAFETY: the section holds pointers to functions that the C library calls
// once, before main. `note` makes async-signal-safe calls and touches atomics
// only, so it depends on nothing that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// Undoes what the runtime did, right before a program takes this process over.
pub(super) fn give_back() {
    raw::set_ignored(libc::SIGPIPE, SIGPIPE_IGNORED.load(Ordering::Relaxed));
    let closed = CLOSED.load(Ordering::Relaxed);
    for descriptor in 0..3 {
        if closed & (1 << descriptor) != 0 {
            raw::close_standard(descriptor);
        }
    }
}
