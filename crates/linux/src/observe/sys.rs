//! The two system calls that rustix does not wrap.
#![expect(unsafe_code, reason = "recvmmsg and sched_setscheduler have no safe wrapper")]

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

/// Receives up to `N` datagrams without waiting; fills in the length of each
/// and gives their number. Longer datagrams are cut.
///
/// Expects a non-blocking socket.
pub(crate) fn receive<const N: usize, const M: usize>(
    socket: BorrowedFd<'_>,
    buffers: &mut [[u8; M]; N],
    lengths: &mut [usize; N],
) -> Result<usize, Errno> {
    let mut parts = buffers
        .each_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: M });
    let mut messages = parts.each_mut().map(|part| {
        // SAFETY: mmsghdr is a plain C structure; all zeros are a valid value
        // and mean: no address, no control data.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        message
    });
    let most = libc::c_uint::try_from(N).unwrap_or(libc::c_uint::MAX);
    let (first, no_timeout) = (messages.as_mut_ptr(), std::ptr::null_mut());
    // SAFETY: `messages` holds at least `most` headers. Each points to one part
    // in `parts`, which describes exactly one buffer of `buffers`; all three
    // live until the call returns and are not touched meanwhile.
    let count = unsafe { libc::recvmmsg(socket.as_raw_fd(), first, most, 0, no_timeout) };
    let count = usize::try_from(count).map_err(|_| last_error())?;
    for (length, message) in lengths.iter_mut().zip(&messages).take(count) {
        *length = usize::try_from(message.msg_len).unwrap_or(0).min(M);
    }
    Ok(count)
}

/// Puts the calling thread into the round-robin real-time class at its lowest
/// priority; threads that it makes are normal.
pub(crate) fn run_at_realtime_priority() -> Result<(), Errno> {
    // SAFETY: sched_param is a plain C structure of integers and times.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    let class = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    let (this_thread, parameters): (libc::pid_t, *const _) = (0, &raw const parameters);
    // SAFETY: the kernel reads one sched_param behind the pointer, which lives
    // until the call returns.
    // (Called directly: musl's own function acts on processes and refuses.)
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, this_thread, class, parameters) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
