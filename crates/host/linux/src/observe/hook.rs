//! What a watcher reports at once, instead of at the next read.

use symbiont_machine::ProgramId;
use symbiont_topology::PuId;

/// When a process or thread was made, and on which CPU its maker ran then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// In nanoseconds of the monotonic clock.
    pub ns: u64,
    /// The CPU.
    pub cpu: PuId,
}

/// A process or thread that was enrolled just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Birth {
    /// The program that it belongs to.
    pub program: ProgramId,
    /// Its process.
    pub process: u32,
    /// Itself; equal to `process` for a new process.
    pub thread: u32,
    /// Execs of the process since it was enrolled.
    pub generation: u32,
    /// The process that made it: for a new thread its own process.
    pub parent_process: u32,
    /// The thread that made it, where known: the kernel reports which thread
    /// forked a process, and not which thread made a thread.
    pub parent_thread: Option<u32>,
    /// When and where, if the kernel reported it.
    pub at: Option<Moment>,
}

/// A process that replaced its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The program that it belongs to.
    pub program: ProgramId,
    /// Which process. Its only thread is the leader now.
    pub process: u32,
    /// Execs of the process since it was enrolled, this one counted.
    pub generation: u32,
    /// The threads that may have called exec: those not reported ended before. The caller has become the leader,
    /// with its mask and its nice value. The kernel does not say which it was. If only one is left, it is almost
    /// certainly that one (an end can be reported under the number of the caller); to be sure, compare what is
    /// applied for the leader with what was applied for each thread of the process.
    pub candidates: Vec<u32>,
}

/// Called as soon as something is known about enrolled threads.
///
/// With the connector that is on the reader's thread, before the quantum's
/// end, so that a newborn that inherited a narrowed mask can get its parent's
/// saved mask back before its program looks at it. Calls come in order, never
/// two at once, and with the watcher locked: a caller of the watcher must
/// not hold a lock that the hook takes. Work per call must be bounded and
/// short: the reader may run at real-time priority.
pub trait BirthHook: Send {
    /// A thread was enrolled: new, or found by enrolment or by a scan.
    fn born(&mut self, birth: &Birth);

    /// A process replaced its program. [`Self::exited`] follows for each of
    /// its other threads.
    fn execed(&mut self, exec: &Exec);

    /// A thread is enrolled no more: it ended.
    fn exited(&mut self, process: u32, thread: u32);
}

/// A hook that does nothing, for callers that only read.
impl BirthHook for () {
    fn born(&mut self, _: &Birth) {}
    fn execed(&mut self, _: &Exec) {}
    fn exited(&mut self, _: u32, _: u32) {}
}
