//! What this process was given at its start, before Rust's runtime changed it.
//!
//! Before `main`, the standard library ignores SIGPIPE and opens `/dev/null` for standard descriptors that are
//! closed. A program that is to notice nothing must get both as they were. A function in `.init_array` runs
//! before that and notes them, and also how SIGXFSZ is handled, which [`let_writes_fail`] makes this process
//! ignore.
#![expect(
    unsafe_code,
    reason = "sigaction and fcntl before main, the section that has them run, and what runs before exec"
)]

use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::raw;

/// Was SIGPIPE ignored?
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);
/// Was SIGXFSZ ignored?
static SIGXFSZ_IGNORED: AtomicBool = AtomicBool::new(false);
/// Bit n is set if descriptor n (0 to 2) was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

extern "C" fn note() {
    SIGPIPE_IGNORED.store(raw::is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    SIGXFSZ_IGNORED.store(raw::is_ignored(libc::SIGXFSZ), Ordering::Relaxed);
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

/// From now on a write beyond this process's limit of file sizes fails with EFBIG, as one to a full disk does
/// with ENOSPC, and does not end the process. Programs that are launched get the signal handled as this process
/// got it at its start.
pub fn let_writes_fail() {
    raw::set_ignored(libc::SIGXFSZ, true);
}

/// Does this process ignore a signal, as `nohup` and a shell's `&` arrange for what they start?
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    raw::is_ignored(signal)
}

/// Makes a command start its program by fork(2) and execve(2), with the same signals ignored as when this process
/// was started. With `posix_spawn`, which the standard library prefers, glibc starts programs with two signals
/// ignored that it uses itself (32 and 33). And the standard library resets SIGPIPE, even where it had been
/// ignored (`trap '' PIPE`).
pub fn by_fork(command: &mut std::process::Command) -> &mut std::process::Command {
    // SAFETY: sigaction alone is called between fork and exec, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            give_back_signals();
            Ok(())
        })
    }
}

/// Undoes what the runtime and this process did, right before a program takes this process over.
pub(super) fn give_back() {
    give_back_signals();
    let closed = CLOSED.load(Ordering::Relaxed);
    for descriptor in 0..3 {
        if closed & (1 << descriptor) != 0 {
            raw::close_standard(descriptor);
        }
    }
}

fn give_back_signals() {
    raw::set_ignored(libc::SIGPIPE, SIGPIPE_IGNORED.load(Ordering::Relaxed));
    raw::set_ignored(libc::SIGXFSZ, SIGXFSZ_IGNORED.load(Ordering::Relaxed));
}
