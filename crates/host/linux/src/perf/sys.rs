//! `perf_event_open(2)` and its controls, for which there is no safe wrapper.
#![expect(unsafe_code, reason = "perf_event_open and its ioctls have no safe wrapper")]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::ioctl::{Getter, NoArg, Opcode, ioctl, opcode};

/// The first 72 bytes of `struct perf_event_attr`, which every kernel since
/// 2.6.33 knows; the rest is zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attr {
    pub kind: u32,
    size: u32,
    pub config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    pub config1: u64,
    pub config2: u64,
}

const ATTR_BYTES: u32 = 72;
const _: () = assert!(size_of::<Attr>() == ATTR_BYTES as usize);

/// Total times, ids, and all of a group in one read.
const READ_FORMAT: u64 = 1 | 2 | 4 | 8;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Bit numbers in the flags.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flag {
    Disabled = 0,
    ExcludeUser = 4,
    ExcludeKernel = 5,
    ExcludeHypervisor = 6,
}

impl Flag {
    /// A C bit field begins at the low end on little-endian machines and at the
    /// high end on big-endian ones.
    fn mask(self) -> u64 {
        let number = self as u32;
        if cfg!(target_endian = "big") { 1 << (63 - number) } else { 1 << number }
    }
}

impl Attr {
    pub fn new(kind: u32, config: u64) -> Self {
        Self { kind, size: ATTR_BYTES, config, read_format: READ_FORMAT, ..Self::default() }
    }

    pub fn set(&mut self, flag: Flag, on: bool) {
        let mask = flag.mask();
        self.flags = if on { self.flags | mask } else { self.flags & !mask };
    }
}

/// Opens an event on a thread, on whatever CPU it runs.
pub(super) fn open(
    attr: &Attr,
    thread: u32,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    // Number 0 would mean this thread, a negative one all threads.
    let thread = i32::try_from(thread).ok().filter(|&thread| thread > 0).ok_or(Errno::SRCH)?;
    let any_cpu: i32 = -1;
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    let (attr, flags) = (&raw const *attr, CLOSE_ON_EXEC);
    // SAFETY: the kernel reads as many bytes behind the pointer as the
    // structure's size field says, which is the structure's own size.
    let fd =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attr, thread, any_cpu, leader, flags) };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(last_error)?;
    // SAFETY: the kernel has just made this descriptor, and no other code has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

const ENABLE: Opcode = opcode::none(b'$', 0);
const DISABLE: Opcode = opcode::none(b'$', 1);
const ID: Opcode = opcode::read::<*const u64>(b'$', 7);

/// Lets a group's leader count, and with it the group.
pub(super) fn enable(leader: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: this request takes no pointer; 0 means this event alone.
    let request = unsafe { NoArg::<ENABLE>::new() };
    // SAFETY: the request's number is the one of PERF_EVENT_IOC_ENABLE.
    unsafe { ioctl(leader, request) }
}

/// Stops a group's leader, and with it the group.
pub(super) fn disable(leader: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: this request takes no pointer; 0 means this event alone.
    let request = unsafe { NoArg::<DISABLE>::new() };
    // SAFETY: the request's number is the one of PERF_EVENT_IOC_DISABLE.
    unsafe { ioctl(leader, request) }
}

/// The number by which a group's read names this event.
pub(super) fn id(event: BorrowedFd<'_>) -> Result<u64, Errno> {
    // SAFETY: PERF_EVENT_IOC_ID writes one u64 (its number is made with the
    // size of a pointer to it, as in the kernel's header).
    let request = unsafe { Getter::<ID, u64>::new() };
    // SAFETY: as above; an event's descriptor knows this request.
    unsafe { ioctl(event, request) }
}

/// Reads a group's words into the buffer; gives those that were filled.
pub(super) fn read(leader: &OwnedFd, words: &mut [u64]) -> Result<usize, Errno> {
    let bytes = size_of_val(words);
    // SAFETY: the pointer and length describe exactly the words' memory, which
    // is borrowed mutably meanwhile; any bytes are a valid u64.
    let count = unsafe { libc::read(leader.as_fd().as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
    usize::try_from(count).map(|count| count / size_of::<u64>()).map_err(|_| last_error())
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_requests_are_the_kernels() {
        // From include/uapi/linux/perf_event.h on x86 and arm64; POWER has its
        // direction bits elsewhere.
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!((ENABLE, DISABLE), (0x2400, 0x2401));
            assert_eq!(ID, 0x8008_2407);
        }
        if cfg!(target_arch = "powerpc64") {
            assert_eq!((ENABLE, DISABLE), (0x2000_2400, 0x2000_2401));
            assert_eq!(ID, 0x4008_2407);
        }
    }

    #[test]
    fn flags_are_one_bit_each() {
        let mut attr = Attr::new(1, 2);
        attr.set(Flag::Disabled, true);
        attr.set(Flag::ExcludeKernel, true);
        attr.set(Flag::ExcludeKernel, true);
        assert_eq!(attr.flags.count_ones(), 2);
        attr.set(Flag::ExcludeKernel, false);
        assert_eq!(attr.flags, Flag::Disabled.mask());
    }

    #[test]
    fn number_zero_is_no_thread() {
        let attr = Attr::new(1, 1);
        assert_eq!(open(&attr, 0, None).err(), Some(Errno::SRCH));
        assert_eq!(open(&attr, u32::MAX, None).err(), Some(Errno::SRCH));
    }
}
