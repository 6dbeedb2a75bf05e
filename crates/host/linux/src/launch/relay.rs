//! Makes a supervisor transparent: it passes signals on to its jobs, stops and continues with them, and notices
//! their ends.

use std::io;

use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus};

use super::children::Running;
use super::raw::{self, Received, Sender};
use super::signals::Signals;
use super::{Session, Status};

/// What a terminal sends to its whole foreground process group.
const FROM_TERMINAL: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
    libc::SIGCONT,
];

/// What a job is sent because the supervisor got this signal.
fn passed_on(received: Received, session: Session, jobs: &[i32]) -> Option<i32> {
    let Received { signal, sender } = received;
    let stops = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal);
    match (sender, session) {
        // Which jobs are stopped decides whether to continue.
        _ if [libc::SIGCHLD, libc::SIGCONT].contains(&signal) => None,
        // It addressed its whole group, and thereby this process.
        (Sender::Process(pid), _) if jobs.contains(&pid) => None,
        (Sender::Kernel, Session::Shared) if FROM_TERMINAL.contains(&signal) => None,
        // Another process in the background group used the terminal.
        (Sender::Kernel, Session::Own) if stops && signal != libc::SIGTSTP => None,
        // Nothing but SIGSTOP stops a session without a terminal.
        (_, Session::Own) if stops => Some(libc::SIGSTOP),
        _ => Some(signal),
    }
}

/// Runs until all jobs have ended; reports each end.
pub(super) fn relay(
    jobs: &mut [Running],
    signals: &Signals,
    mut on_end: impl FnMut(&Running),
) -> io::Result<()> {
    let pids: Vec<i32> = jobs.iter().map(|job| job.pid.as_raw_nonzero().get()).collect();
    // What stopped a job last, until this process has stopped for it: the last
    // running job may stop or end much later.
    let mut stopped_by = None;
    loop {
        for job in jobs.iter_mut().filter(|job| job.ended.is_none()) {
            stopped_by = news(job)?.or(stopped_by);
            if job.ended.is_some() {
                on_end(job);
            }
        }
        let mut living = jobs.iter().filter(|job| job.ended.is_none()).peekable();
        if living.peek().is_none() {
            return Ok(());
        }
        if living.all(|job| job.stopped) {
            if let Some(signal) = stopped_by.take() {
                signals.stop(signal);
            }
        }
        let received = signals.taken.wait()?;
        for job in jobs.iter_mut().filter(|job| job.ended.is_none()) {
            if received.signal == libc::SIGCONT {
                news(job)?;
                if job.ended.is_some() {
                    on_end(job);
                } else if job.stopped {
                    raw::send(job.pid, libc::SIGCONT);
                }
            } else if let Some(signal) = passed_on(received, job.session, &pids) {
                raw::send(job.pid, signal);
            }
        }
    }
}

/// Takes in what became of a job; gives the signal that stopped it anew.
fn news(job: &mut Running) -> io::Result<Option<i32>> {
    let what = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::CONTINUED
        | WaitIdOptions::NOHANG;
    let mut stopped_by = None;
    while job.ended.is_none() {
        let Some(status) = rustix::process::waitid(WaitId::Pid(job.pid), what)? else { break };
        if let Some(ended) = end_of(&status) {
            let ended = job.exec_failure().unwrap_or(ended);
            job.ended = Some((ended, job.released.elapsed()));
        }
        job.stopped = status.stopped();
        stopped_by = status.stopping_signal();
    }
    Ok(stopped_by.filter(|_| job.ended.is_none()))
}

fn end_of(status: &WaitIdStatus) -> Option<Status> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Status::Exited(code)),
        (None, Some(signal)) => Some(Status::Killed { signal, dumped: status.dumped() }),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: [i32; 2] = [100, 101];

    fn to(session: Session, signal: i32, sender: Sender) -> Option<i32> {
        passed_on(Received { signal, sender }, session, &JOBS)
    }

    #[test]
    fn what_a_process_sends_is_passed_on() {
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGRTMIN()] {
            for session in [Session::Shared, Session::Own] {
                assert_eq!(to(session, signal, Sender::Process(7)), Some(signal));
            }
        }
    }

    #[test]
    fn what_a_job_sends_to_its_group_is_not_echoed() {
        assert_eq!(to(Session::Shared, libc::SIGTERM, Sender::Process(101)), None);
        assert_eq!(to(Session::Shared, libc::SIGTSTP, Sender::Process(100)), None);
    }

    #[test]
    fn what_the_terminal_sends_reaches_each_job_once() {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGWINCH] {
            assert_eq!(to(Session::Shared, signal, Sender::Kernel), None);
            assert_eq!(to(Session::Own, signal, Sender::Kernel), Some(signal));
        }
        assert_eq!(to(Session::Shared, libc::SIGTSTP, Sender::Kernel), None);
        assert_eq!(to(Session::Own, libc::SIGTSTP, Sender::Kernel), Some(libc::SIGSTOP));
        assert_eq!(to(Session::Own, libc::SIGTTIN, Sender::Kernel), None);
    }

    #[test]
    fn a_timer_that_was_set_before_reaches_the_job() {
        assert_eq!(to(Session::Shared, libc::SIGALRM, Sender::Kernel), Some(libc::SIGALRM));
    }

    #[test]
    fn news_of_children_and_continuing_are_not_passed_on_as_they_are() {
        for signal in [libc::SIGCHLD, libc::SIGCONT] {
            assert_eq!(to(Session::Shared, signal, Sender::Kernel), None);
            assert_eq!(to(Session::Own, signal, Sender::Process(7)), None);
        }
    }
}
