//! Work for each program at the same time, in threads of ours, and on one hardware thread only.

use symbiont_campaign::Error;
use symbiont_linux::actuate::pin;
use symbiont_topology::PuId;

/// A command or the name of a kernel, and its hardware thread.
pub(super) type PlacedProgram<'a> = (&'a str, PuId);

/// Does something for each program at the same time.
pub(super) fn at_once<T: Send>(
    placed: &[PlacedProgram<'_>],
    one: &(dyn Fn(usize, PlacedProgram<'_>) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            placed.iter().enumerate().map(|(at, it)| scope.spawn(move || one(at, *it))).collect();
        let ended = threads.into_iter().map(joined);
        // All have ended before the first error counts.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// What a thread of ours gave; a panic of it is one of this crate's.
pub(super) fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Does something in a thread that may use this hardware thread only, as what it starts.
pub(super) fn on<T: Send>(
    cpu: PuId,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let pinned = || {
            let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            let failed = |source| Error::Start { program: format!("a program on {cpu}"), source };
            pin(thread, &cpu.into()).map_err(failed)?;
            work()
        };
        joined(scope.spawn(pinned))
    })
}
