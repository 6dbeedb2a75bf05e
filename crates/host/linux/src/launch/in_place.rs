//! One program, run in the calling process itself.

use std::io::Write;
use std::os::fd::BorrowedFd;

use super::manager::{self, Caller, Manager, Root};
use super::{Command, ExecError, Notice, Timeouts, Unmanaged, inherited, raw};

/// Starts a manager, waits until it has enrolled this process, and becomes the
/// program. Comes back only if the program cannot be run; the manager then
/// sees this process end, as it would see the program end.
///
/// `manage` runs in the manager, a copy of this process that was detached from
/// it: it finds its root in [`Manager::roots`], enrols it, calls
/// [`Manager::ready`] and manages until [`Manager::wait`] says it is over. It
/// may start threads. Of this process's descriptors it has only those in
/// `keep`, under the same numbers: it must not use any other that it captured.
/// Its directory is `/`, so it needs absolute paths.
///
/// `notice` is given what may be said to the user, once that is known: that the program is managed, with what the
/// manager noted, or why it runs unmanaged.
pub fn exec_in_place(
    command: &Command,
    keep: &[BorrowedFd<'_>],
    timeouts: Timeouts,
    notice: impl FnOnce(Notice<'_>),
    manage: impl FnOnce(Manager),
) -> ExecError {
    match enrol(command, keep, timeouts, manage) {
        Ok(notes) => notice(Notice::Managed(&notes)),
        Err(why) => notice(Notice::Unmanaged(&why)),
    }
    // What cannot be written now could not be written later either.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    inherited::give_back();
    command.failed_to_run(raw::exec(command.words()))
}

fn enrol(
    command: &Command,
    keep: &[BorrowedFd<'_>],
    timeouts: Timeouts,
    manage: impl FnOnce(Manager),
) -> Result<String, Unmanaged> {
    let root = Root::hold(command.name(), rustix::process::getpid())
        .map_err(Unmanaged::system("open a pidfd (Linux 5.3 or later)"))?;
    let enrolled = manager::start(vec![root], keep, Caller::Leaves, timeouts.to_enrol, manage)?;
    Ok(enrolled.notes)
}
