//! Opens the tracepoints.

use std::ffi::CString;
use std::io::Read;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use symbiont_topology::CpuSet;

use super::format::{Layout, Tracepoint};
use super::ring::Ring;
use super::sys;

/// Why the scheduler's tracepoints cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// This process is not in the first PID namespace, so it sees threads under other numbers.
    #[error("the scheduler's tracepoints number threads as seen outside of this container")]
    PidNamespace,
    /// tracefs is not there.
    #[error("cannot read tracefs, mounted or not: {0}; it takes root")]
    Tracefs(Errno),
    /// The kernel describes a tracepoint in another way than it should.
    #[error("tracefs describes {0} in a way that is not known here")]
    Format(&'static str),
    /// perf refused.
    #[error("cannot open tracepoint {tracepoint} on hardware thread {cpu}: {errno}{}", hint(errno))]
    Open {
        /// The tracepoint.
        tracepoint: &'static str,
        /// The hardware thread.
        cpu: u32,
        /// The error number.
        errno: Errno,
    },
    /// No thread could be started for reading.
    #[error("cannot start the thread that reads tracepoints: {0}")]
    Thread(Errno),
}

fn hint(errno: &Errno) -> &'static str {
    match *errno {
        Errno::ACCESS | Errno::PERM => "; it takes CAP_PERFMON, or kernel.perf_event_paranoid = -1",
        _ => "",
    }
}

const SWITCH: &str = "sched_switch";
/// What makes a thread ready: reported by its waker, reported where it will run, and
/// reported for one that is new.
const WAKEUPS: [&str; 3] = ["sched_waking", "sched_wakeup", "sched_wakeup_new"];

/// The number of the initial pid namespace's file (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Opens the tracepoints on these hardware threads, without what the thread
/// `reader` causes by reading them.
pub(super) fn open(cpus: &CpuSet, reader: u32) -> Result<(Layout, Vec<Ring>), SwitchError> {
    let namespace = rustix::fs::stat("/proc/self/ns/pid").map_err(SwitchError::Tracefs)?;
    if namespace.st_ino != FIRST_PID_NAMESPACE {
        return Err(SwitchError::PidNamespace);
    }
    let tracefs = tracefs().map_err(SwitchError::Tracefs)?;
    let tracepoint = |name: &'static str| {
        let text = read(&tracefs, name).map_err(SwitchError::Tracefs)?;
        Tracepoint::parse(&text).ok_or(SwitchError::Format(name))
    };
    let switch = tracepoint(SWITCH)?;
    let wakeups = WAKEUPS.into_iter().map(tracepoint).collect::<Result<Vec<_>, _>>()?;
    let layout = Layout::new(&switch, &wakeups).ok_or(SwitchError::Format(SWITCH))?;
    // A switch from idle to the reader or away from it contains nothing, and each
    // one that is reported makes it run again.
    let of_others = format!("pid != {reader}");
    let of_others_switches =
        format!("prev_pid != {reader} && (prev_pid != 0 || next_pid != {reader})");
    let mut rings = Vec::new();
    for cpu in cpus.iter() {
        let event = |name: &'static str, point: &Tracepoint, filter: &str| {
            let failed = |errno| SwitchError::Open { tracepoint: name, cpu: cpu.0, errno };
            let event = sys::open(point.id, cpu.0).map_err(failed)?;
            let filter = CString::new(filter).map_err(|_| failed(Errno::INVAL))?;
            sys::filter(event.as_fd(), &filter).map_err(failed)?;
            Ok(event)
        };
        let switches = event(SWITCH, &switch, &of_others_switches)?;
        let others = WAKEUPS.into_iter().zip(&wakeups);
        let others = others.map(|(name, point)| event(name, point, &of_others));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let failed = |errno| SwitchError::Open { tracepoint: SWITCH, cpu: cpu.0, errno };
        rings.push(Ring::new(switches, others).map_err(failed)?);
    }
    Ok((layout, rings))
}

/// tracefs: where it is mounted as a rule, else a mount that only this
/// descriptor leads to.
fn tracefs() -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if let Ok(folder) = openat(CWD, path, flags, Mode::empty()) {
            if openat(&folder, "events", flags, Mode::empty()).is_ok() {
                return Ok(folder);
            }
        }
    }
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

fn read(tracefs: &OwnedFd, tracepoint: &str) -> Result<String, Errno> {
    let path = format!("events/sched/{tracepoint}/format");
    let file = openat(tracefs, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    std::fs::File::from(file)
        .read_to_string(&mut text)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(text)
}
