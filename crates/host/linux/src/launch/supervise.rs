//! Several programs, or a report afterwards: the calling process stays as their supervisor.

use std::io;
use std::os::fd::BorrowedFd;

use super::children::{self, Prepared, Running};
use super::handshake::Message;
use super::manager::{self, Caller, Enrolled, Manager, Root};
use super::relay::relay;
use super::signals::Signals;
use super::{Job, JobStatus, LaunchError, Notice, Timeouts, Unmanaged, raw};

/// What became of supervised jobs.
#[derive(Debug)]
pub struct Supervised {
    /// How each job ended, in their order.
    pub statuses: Vec<JobStatus>,
    /// Did management begin? If not, `notice` got the reason.
    pub managed: bool,
    /// What the manager reported, or why it managed nothing or not to the end.
    pub report: Result<Vec<u8>, Unmanaged>,
}

/// Runs jobs, managed, until all have ended. Signals, stops and continues go
/// through; to end as the jobs ended, print what there is to print and call
/// [`finish`].
///
/// `manage` runs in the manager as described at [`exec_in_place`], with one
/// root per job in their order; when [`Manager::wait`] says
/// [`Wake::Finish`], it restores everything and calls [`Manager::report`].
/// `notice` is given what to say to the user whenever there is something.
///
/// # Errors
/// When nothing was run: there is no job, a file of a job cannot be opened, or
/// the kernel refuses a process. A program that cannot be run is a [`Status`];
/// trouble with the manager is part of [`Supervised`].
///
/// [`finish`]: super::finish
/// [`exec_in_place`]: super::exec_in_place
/// [`Status`]: super::Status
/// [`Wake::Finish`]: super::Wake::Finish
pub fn supervise(
    jobs: &[Job],
    keep: &[BorrowedFd<'_>],
    timeouts: Timeouts,
    mut notice: impl FnMut(Notice<'_>),
    manage: impl FnOnce(Manager),
) -> Result<Supervised, LaunchError> {
    if jobs.is_empty() {
        return Err(LaunchError::NoJobs);
    }
    // Before output files are emptied for nothing.
    match raw::threads().map_err(LaunchError::system("read /proc/self/task"))? {
        1 => {}
        several => return Err(LaunchError::Threads(several)),
    }
    let prepared = jobs.iter().map(Prepared::open).collect::<Result<Vec<_>, _>>()?;
    let signals = Signals::take_over().map_err(LaunchError::system("block signals"))?;
    let ended = children::start(&prepared, &signals).and_then(|mut running| {
        drop(prepared);
        // A writer into this standard input shall see when the jobs close it.
        let _ = let_go_of_stdin();
        let enrolled = enrol(&running, keep, timeouts, manage);
        match &enrolled {
            Ok(manager) => notice(Notice::Managed(&manager.notes)),
            Err(why) => notice(Notice::Unmanaged(why)),
        }
        running.iter_mut().for_each(Running::release);
        relay(&mut running, &signals, |job| {
            if let Some(why) = job.failure() {
                notice(Notice::Job(&why));
            }
        })
        .map_err(LaunchError::system("wait for the jobs"))?;
        Ok((running, enrolled))
    });
    signals.forget_pending();
    signals.give_back();
    let (running, enrolled) = ended?;
    let statuses = running.into_iter().filter_map(Running::into_status).collect();
    let managed = enrolled.is_ok();
    Ok(Supervised {
        statuses,
        managed,
        report: enrolled.and_then(|manager| collect_report(manager, timeouts)),
    })
}

fn enrol(
    running: &[Running],
    keep: &[BorrowedFd<'_>],
    timeouts: Timeouts,
    manage: impl FnOnce(Manager),
) -> Result<Enrolled, Unmanaged> {
    let roots = running
        .iter()
        .map(|job| Root::hold(job.name.clone(), job.pid))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Unmanaged::system("open a pidfd (Linux 5.3 or later)"))?;
    manager::start(roots, keep, Caller::Stays, timeouts.to_enrol, manage)
}

fn collect_report(mut manager: Enrolled, timeouts: Timeouts) -> Result<Vec<u8>, Unmanaged> {
    // If it is gone, hearing gives the reason.
    let _ = manager.channel.send(&Message::Finish);
    match manager.channel.receive(timeouts.to_restore)? {
        Message::Report(bytes) => Ok(bytes),
        Message::Failed(why) => Err(Unmanaged::Failed(why)),
        Message::Ready(_) | Message::Finish => Err(Unmanaged::Nonsense),
    }
}

fn let_go_of_stdin() -> io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}
