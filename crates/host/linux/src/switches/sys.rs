//! perf_event_open(2) for the tracepoints of a whole hardware thread, its controls, and the buffer to which the
//! kernel writes.
#![expect(unsafe_code, reason = "perf_event_open, its ioctls and its buffer have no safe wrapper")]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The first 96 bytes of `struct perf_event_attr`, which every kernel since 4.1
/// knows; the rest is zero.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
}

const ATTR_BYTES: u32 = 96;
const _: () = assert!(size_of::<Attr>() == ATTR_BYTES as usize);

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TIME | PERF_SAMPLE_RAW`.
const TIME_AND_RAW: u64 = 1 << 2 | 1 << 10;
/// The bit number of `use_clockid`.
const USE_CLOCK: u32 = 25;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// Opens a tracepoint for everything that happens on a hardware thread. Each
/// event is a sample with the time of `CLOCK_MONOTONIC`, and wakes the waiting thread.
pub(super) fn open(tracepoint: u16, cpu: u32) -> Result<OwnedFd, Errno> {
    // A C bit field begins at the low end on little-endian machines and at the
    // high end on big-endian ones.
    let bit = if cfg!(target_endian = "big") { 63 - USE_CLOCK } else { USE_CLOCK };
    let attr = Attr {
        kind: TRACEPOINT,
        size: ATTR_BYTES,
        config: tracepoint.into(),
        sample_period: 1,
        sample_type: TIME_AND_RAW,
        flags: 1 << bit,
        wakeup_events: 1,
        clock: libc::CLOCK_MONOTONIC,
        ..Attr::default()
    };
    let cpu = i32::try_from(cpu).map_err(|_| Errno::INVAL)?;
    let (all_threads, no_group): (i32, i32) = (-1, -1);
    let (attr, flags) = (&raw const attr, CLOSE_ON_EXEC);
    // SAFETY: the kernel reads as many bytes behind the pointer as the
    // structure's size field says, which is the structure's own size.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr, all_threads, cpu, no_group, flags)
    };
    let fd = i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(last_error)?;
    // SAFETY: the kernel has just made this descriptor, and no other code has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

const SET_OUTPUT: Opcode = opcode::none(b'$', 5);
const SET_FILTER: Opcode = opcode::write::<*const u8>(b'$', 6);

/// Lets an event write to the buffer of another one on the same hardware thread.
pub(super) fn write_to(event: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    let to = usize::try_from(to.as_raw_fd()).map_err(|_| Errno::BADF)?;
    // SAFETY: PERF_EVENT_IOC_SET_OUTPUT takes the number of a descriptor, and
    // this one is open.
    let request = unsafe { IntegerSetter::<SET_OUTPUT>::new_usize(to) };
    // SAFETY: as above; an event's descriptor knows this request.
    unsafe { ioctl(event, request) }
}

/// Lets only those events through whose fields match the expression.
pub(super) fn filter(event: BorrowedFd<'_>, expression: &CStr) -> Result<(), Errno> {
    let pointer = expression.as_ptr().cast_mut().cast();
    // SAFETY: PERF_EVENT_IOC_SET_FILTER takes a pointer to a string that ends
    // with a zero byte, which the kernel copies and does not write to.
    let request = unsafe { IntegerSetter::<SET_FILTER>::new_pointer(pointer) };
    // SAFETY: as above; the string outlives the call.
    unsafe { ioctl(event, request) }
}

/// Where the head and the tail are in the buffer's first page, in bytes
/// (`struct perf_event_mmap_page`, perf_event_open(2)).
pub(super) const HEAD: usize = 1024;
pub(super) const TAIL: usize = 1032;

/// The memory that the kernel writes records to: a page of administration, then
/// the records.
#[derive(Debug)]
pub(super) struct Buffer {
    base: NonNull<u8>,
    page: usize,
    /// Bytes of records, a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value alone, and is not bound to the
// thread that made it.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Maps an event's buffer of this many pages, a power of two.
    pub fn map(event: &OwnedFd, pages: usize) -> Result<Self, Errno> {
        let page = rustix::param::page_size();
        let size = page * pages;
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses touches
        // no memory of ours.
        let base =
            unsafe { mmap(std::ptr::null_mut(), page + size, access, shared, event.as_fd(), 0) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, page, size })
    }

    /// Bytes of records that fit.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many bytes the kernel has written so far.
    pub fn head(&self) -> u64 {
        self.position(HEAD).load(Ordering::Acquire)
    }

    /// Lets the kernel know how many bytes were read, so that it may write there.
    pub fn set_tail(&mut self, tail: u64) {
        self.position(TAIL).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are multiples of 8 within the first page.
        let pointer = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: the page is mapped as long as this value lives, aligned to 8,
        // and shared with the kernel, which accesses it atomically as well.
        unsafe { AtomicU64::from_ptr(pointer.cast()) }
    }

    /// Copies bytes that the kernel has written, from this position on; `from`
    /// counts all bytes that were ever written. What wraps round is put
    /// together.
    pub fn copy(&self, from: u64, to: &mut [u8]) {
        let start = (from % self.size as u64) as usize;
        let first = to.len().min(self.size - start);
        let (first, rest) = to.split_at_mut(first);
        self.copy_piece(start, first);
        let rest_length = rest.len().min(self.size);
        if let Some(rest) = rest.get_mut(..rest_length) {
            self.copy_piece(0, rest);
        }
    }

    fn copy_piece(&self, start: usize, to: &mut [u8]) {
        debug_assert!(start + to.len() <= self.size);
        // SAFETY: the piece lies within the mapping, behind its first page.
        let source = unsafe { self.base.as_ptr().add(self.page + start) };
        // SAFETY: source and destination are as long as the piece and do not
        // overlap; between tail and head the kernel does not write.
        unsafe { std::ptr::copy_nonoverlapping(source, to.as_mut_ptr(), to.len()) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it
        // any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
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
            assert_eq!((SET_OUTPUT, SET_FILTER), (0x2405, 0x4008_2406));
        }
    }
}
