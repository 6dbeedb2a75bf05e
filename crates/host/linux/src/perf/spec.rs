//! An event as the kernel is asked to count it.

use std::sync::Arc;

/// `PERF_TYPE_HARDWARE`: the kernel's generic hardware events.
pub const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`: what the kernel counts by itself.
pub const SOFTWARE: u32 = 1;

const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;
const CONTEXT_SWITCHES: u64 = 3;
const CPU_MIGRATIONS: u64 = 4;
const ALIGNMENT_FAULTS: u64 = 7;
const EMULATION_FAULTS: u64 = 8;
const CGROUP_SWITCHES: u64 = 11;

/// An event: a name for people and the words of `perf_event_attr` that select
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The event's name in readings and errors.
    pub name: Arc<str>,
    /// `perf_event_attr.type`: [`HARDWARE`], [`SOFTWARE`], or a PMU's number
    /// under /sys/bus/event_source/devices.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`; 0 where unused.
    pub config1: u64,
    /// `perf_event_attr.config2`; 0 where unused.
    pub config2: u64,
    /// Modes of the hardware thread in which the event is counted.
    pub modes: Modes,
    /// Does its PMU count on some hardware threads only, as those of hybrid
    /// processors do? Time on the others is then no sign of multiplexing.
    pub some_cpus: bool,
}

/// Modes of a hardware thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Modes {
    /// The program's own instructions alone.
    User,
    /// The program and the kernel on its behalf.
    UserAndKernel,
    /// The kernel on the program's behalf alone.
    Kernel,
}

impl Modes {
    pub(super) fn user(self) -> bool {
        self != Self::Kernel
    }

    pub(super) fn kernel(self) -> bool {
        self != Self::User
    }
}

impl Spec {
    /// An event of any PMU, counted in all modes.
    #[must_use]
    pub fn new(name: &str, kind: u32, config: u64) -> Self {
        let (name, modes) = (name.into(), Modes::UserAndKernel);
        Self { name, kind, config, config1: 0, config2: 0, modes, some_cpus: false }
    }

    /// The same event in these modes.
    #[must_use]
    pub fn in_modes(self, modes: Modes) -> Self {
        Self { modes, ..self }
    }

    /// CPU time, in nanoseconds.
    #[must_use]
    pub fn task_clock() -> Self {
        Self::new("task-clock", SOFTWARE, TASK_CLOCK)
    }

    /// Page faults, major and minor.
    #[must_use]
    pub fn page_faults() -> Self {
        Self::new("page-faults", SOFTWARE, PAGE_FAULTS)
    }

    /// Switches away from the thread; they happen in the kernel.
    #[must_use]
    pub fn context_switches() -> Self {
        Self::new("context-switches", SOFTWARE, CONTEXT_SWITCHES)
    }

    /// Moves to another hardware thread; they happen in the kernel.
    #[must_use]
    pub fn migrations() -> Self {
        Self::new("cpu-migrations", SOFTWARE, CPU_MIGRATIONS)
    }

    /// Unaligned accesses that the kernel had to finish; never on x86.
    #[must_use]
    pub fn alignment_faults() -> Self {
        Self::new("alignment-faults", SOFTWARE, ALIGNMENT_FAULTS)
    }

    /// Instructions that the kernel emulated; never on x86.
    #[must_use]
    pub fn emulation_faults() -> Self {
        Self::new("emulation-faults", SOFTWARE, EMULATION_FAULTS)
    }

    /// Does this event happen in the kernel alone? Without the kernel's side
    /// it reads 0 for ever, and the kernel accepts it all the same.
    #[must_use]
    pub fn is_kernel_side(&self) -> bool {
        let switches = [CONTEXT_SWITCHES, CPU_MIGRATIONS, CGROUP_SWITCHES];
        self.kind == SOFTWARE && switches.contains(&self.config)
    }
}
