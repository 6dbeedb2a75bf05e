//! What this kernel lets this process count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::error::{OpenError, paranoid_level};
use super::group::{Group, GroupOptions};
use super::pmu::{Pmu, pmus};
use super::spec::{HARDWARE, Modes, Spec};

/// `PERF_COUNT_HW_INSTRUCTIONS`.
const INSTRUCTIONS: u64 = 1;

/// What can be counted here, with a reason for each thing that cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// `kernel.perf_event_paranoid`: 2 (the kernel's default) and above
    /// forbids the kernel's side to ordinary users; 3 and 4 are distributions'
    /// own and forbid everything to them. None if it cannot be read.
    pub paranoid: Option<i32>,
    /// Can anything be counted?
    pub software: Result<(), OpenError>,
    /// Can the kernel's side be counted?
    pub kernel_side: Result<(), OpenError>,
    /// Can the generic event "instructions" be counted?
    pub hardware: Result<(), OpenError>,
    /// `kernel.nmi_watchdog` is 1: on most kernels the watchdog then holds a
    /// counter of each hardware thread.
    pub watchdog: bool,
    /// The kernel's PMUs.
    pub pmus: BTreeMap<String, Pmu>,
}

/// Asks the kernel, by opening events on the calling thread.
#[must_use]
pub fn support() -> Support {
    let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let ask = |spec: Spec| {
        let options = GroupOptions { kernel_side: true, enabled: false };
        Group::open(thread, &[spec], options).map(drop)
    };
    Support {
        paranoid: paranoid_level(),
        software: ask(Spec::task_clock().in_modes(Modes::User)),
        kernel_side: ask(Spec::context_switches()),
        hardware: ask(Spec::new("instructions", HARDWARE, INSTRUCTIONS).in_modes(Modes::User)),
        watchdog: watchdog(Path::new("/proc")),
        pmus: pmus(Path::new("/sys")).unwrap_or_default(),
    }
}

impl Support {
    /// How to open groups here.
    #[must_use]
    pub fn options(&self) -> GroupOptions {
        GroupOptions { kernel_side: self.kernel_side.is_ok(), enabled: true }
    }

    /// What is missing, a sentence each; for people.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let of = |what: &str, error: &OpenError| format!("{what}: {}", error.reason);
        if let Err(error) = &self.software {
            return vec![of("no perf events", error)];
        }
        let kernel_side = self.kernel_side.as_ref().err();
        let hardware = self.hardware.as_ref().err();
        kernel_side
            .map(|error| of("the kernel's side, context switches and migrations", error))
            .into_iter()
            .chain(hardware.map(|error| of("hardware counters", error)))
            .collect()
    }
}

/// Does the NMI watchdog run? It cannot be distinguished from here whether it counts
/// cycles or, as kernels from 6.5 on can, has each CPU watched by another.
fn watchdog(proc: &Path) -> bool {
    fs::read_to_string(proc.join("sys/kernel/nmi_watchdog")).is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_on_only_if_the_kernel_says_so() {
        let root = tempfile::tempdir().unwrap();
        assert!(!watchdog(root.path()));
        fs::create_dir_all(root.path().join("sys/kernel")).unwrap();
        for (text, on) in [("1\n", true), ("0\n", false), ("", false)] {
            fs::write(root.path().join("sys/kernel/nmi_watchdog"), text).unwrap();
            assert_eq!(watchdog(root.path()), on);
        }
    }

    #[test]
    fn each_missing_thing_has_a_reason() {
        let support = support();
        let missing = [&support.kernel_side, &support.hardware];
        match &support.software {
            Ok(()) => {
                let count = missing.iter().filter(|answer| answer.is_err()).count();
                assert_eq!(support.reasons().len(), count);
            }
            Err(_) => assert_eq!(support.reasons().len(), 1),
        }
        assert_eq!(support.options().kernel_side, support.kernel_side.is_ok());
    }
}
