//! How many threads of the whole machine are ready to run.
//!
//! # Problem
//! Of a thread that slept at the last read and has hardly run since, `stat` has to be read for one reason only:
//! it may now be ready and wait for a hardware thread, which `schedstat` does not show before it next runs.
//!
//! # Approach
//! `/proc/loadavg` says how many threads of the whole machine are ready (proc_loadavg(5), fourth field). If these
//! are no more than the reader itself and the threads that were just seen ready, then no other one is. A thread
//! that becomes ready as another one stops, within the microseconds of a read, may be seen a read late. Of a
//! thousand threads one is often ready for a moment: so the file is read at several moments of a round, of which
//! one is enough.
//!
//! Containers may have a file of their own in that place, which is minutes old: it is believed only where it is
//! the kernel's.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};

use super::scan::Proc;
use super::stat::number;

/// The open file.
#[derive(Debug)]
pub(crate) struct Running(OwnedFd);

impl Running {
    /// None where the kernel does not report it.
    pub fn open(proc: &Proc) -> Option<Self> {
        let file = proc.file("loadavg").ok()?;
        let is_kernels = fstatfs(file.as_fd()).ok()?.f_type == PROC_SUPER_MAGIC;
        let running = Self(file);
        // The thread that reads is ready.
        (is_kernels && running.count()? > 0).then_some(running)
    }

    /// Threads that run or are ready to, the reader among them.
    pub fn count(&self) -> Option<u64> {
        let mut buffer = [0; 128];
        let length = rustix::io::pread(&self.0, &mut buffer, 0).ok()?;
        parse(buffer.get(..length)?)
    }
}

pub(super) fn parse(line: &[u8]) -> Option<u64> {
    let mut fields = line.split(|&byte| byte == b' ');
    let counts = fields.nth(3)?;
    number(counts.split(|&byte| byte == b'/').next()?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_fourth_field_is_read() {
        assert_eq!(parse(b"0.20 0.18 0.12 17/80 11206\n"), Some(17));
        for broken in [&b""[..], b"0.20 0.18 0.12", b"0.20 0.18 0.12 /80 1", b"0 0 0 x/2 1"] {
            assert_eq!(parse(broken), None);
        }
    }

    #[test]
    fn busy_threads_are_counted() {
        let Some(running) = Proc::open("/proc".as_ref()).ok().as_ref().and_then(Running::open)
        else {
            return println!("skipped: the kernel does not report it");
        };
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !end.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let deadline = Instant::now() + Duration::from_secs(30);
            while running.count() < Some(4) && Instant::now() < deadline {
                std::thread::yield_now();
            }
            let count = running.count();
            end.store(true, Ordering::Relaxed);
            assert!(count >= Some(4), "{count:?}");
        });
    }

    #[test]
    fn a_file_that_is_not_the_kernels_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("loadavg"), "0.20 0.18 0.12 1/80 11206\n").unwrap();
        let proc = Proc::open(dir.path()).unwrap();
        assert!(Running::open(&proc).is_none());
    }
}
