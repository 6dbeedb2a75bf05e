//! The managing process: how it starts, and what it waits for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions};

use super::handshake::{Channel, Message, ReceiveError};
use super::raw::{self, ForkError, Side, SignalSet};
use super::{Unmanaged, be_urgent, limits};

/// How long the rest of a message may take whose begin is there.
const BETWEEN_BYTES: Duration = Duration::from_secs(10);

/// Signals that ask a manager to restore everything and end; one of them says that
/// its CPU time comes to an end.
const ENDING: [i32; 5] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGXCPU];
/// A write may fail, which is reported; it must not end the manager.
const IGNORED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// The first process of an enrolled command, held by pidfd.
#[derive(Debug)]
pub struct Root {
    name: String,
    pid: Pid,
    pidfd: OwnedFd,
    ended: bool,
}

impl Root {
    /// Takes hold of a process that cannot have been waited for yet: the
    /// caller itself or its child.
    pub(super) fn hold(name: String, pid: Pid) -> rustix::io::Result<Self> {
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self { name, pid, pidfd, ended: false })
    }

    /// What people call the command.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Was it seen to have ended?
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// No process waits any more for the manager's messages: the program was
/// killed, or runs unmanaged. Restore what was changed, and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no process waits for this manager any more")]
pub struct Abandoned;

/// Why [`Manager::wait`] came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The time is over.
    Timeout,
    /// The bell with this position in the list rang.
    Bell(usize),
    /// All roots have ended. Reported once; descendants may live on.
    RootsEnded,
    /// The supervisor asks to restore and report. Reported once.
    Finish,
    /// The supervisor was killed. Reported once; its jobs live on.
    SupervisorGone,
    /// A client asks for something; the quantum is not over.
    Request,
    /// A signal asks to restore and end, or the limit of CPU time is near.
    Terminate,
}

/// The manager's ties to what it manages; handed to the `manage` function in
/// the manager's own process.
#[derive(Debug)]
pub struct Manager {
    roots: Vec<Root>,
    /// None once the other end is closed.
    channel: Option<Channel>,
    /// A process may still say [`Message::Finish`].
    awaits_finish: bool,
    signals: OwnedFd,
    /// CPU time at which to end.
    cpu_time_to_end: Option<Duration>,
}

impl Manager {
    /// The processes to enrol, in the order in which they were given.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Does a supervisor wait for a report?
    #[must_use]
    pub fn wants_report(&self) -> bool {
        self.awaits_finish
    }

    /// Lets the roots run: they are enrolled. `notes` are shown to the user;
    /// empty if there is nothing to say.
    ///
    /// # Errors
    /// When no process waits any more.
    pub fn ready(&mut self, notes: &str) -> Result<(), Abandoned> {
        self.say(&Message::Ready(notes.to_owned()))
    }

    /// To be called instead of [`Manager::ready`]: the roots cannot be managed, and are to run unmanaged.
    pub fn fail(mut self, why: &str) {
        // If no process listens, no report is needed.
        let _ = self.say(&Message::Failed(why.to_owned()));
    }

    /// To be called once everything is restored: gives the report to a supervisor's caller.
    ///
    /// # Errors
    /// When no process waits for a report, as is always so after [`exec_in_place`].
    ///
    /// [`exec_in_place`]: super::exec_in_place
    pub fn report(mut self, bytes: Vec<u8>) -> Result<(), Abandoned> {
        self.say(&Message::Report(bytes))
    }

    fn say(&mut self, message: &Message) -> Result<(), Abandoned> {
        let channel = self.channel.as_mut().ok_or(Abandoned)?;
        channel.send(message).map_err(|_| {
            self.channel = None;
            Abandoned
        })
    }

    /// Sleeps until the time is over or something happens, whichever is first.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        self.wait_for(timeout, &[])
    }

    /// The same, but also until one of `bells` is readable ([`Wake::Bell`]).
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait_or(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
        self.wait_for(timeout, bells)
    }

    fn wait_for(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
        if self.cpu_time_to_end.is_some_and(|end| limits::cpu_time() >= end) {
            return Ok(Wake::Terminate);
        }
        let until = Instant::now().checked_add(timeout);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if !self.sleep(left, bells)? {
                return Ok(Wake::Timeout);
            }
            if let Some(wake) = self.what_happened()? {
                return Ok(wake);
            }
            for (position, bell) in bells.iter().enumerate() {
                if is_readable(bell)? {
                    return Ok(Wake::Bell(position));
                }
            }
        }
    }

    /// Waits for any descriptor; false when the time is over.
    fn sleep(&self, left: Option<Duration>, bells: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let alive = self.roots.iter().filter(|root| !root.ended);
        fds.extend(alive.map(|root| PollFd::new(root, PollFlags::IN)));
        if let Some(channel) = self.channel.as_ref().filter(|_| self.awaits_finish) {
            fds.push(PollFd::new(channel, PollFlags::IN));
        }
        fds.extend(bells.iter().map(|bell| PollFd::new(bell, PollFlags::IN)));
        match poll(&mut fds, left.as_ref()) {
            Ok(count) => Ok(count > 0),
            // Interrupted by a stop and continue: look, and sleep on.
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The most pressing of the things that have happened.
    fn what_happened(&mut self) -> io::Result<Option<Wake>> {
        if is_readable(&self.signals)? {
            // Left pending: the next caller gets the same answer.
            return Ok(Some(Wake::Terminate));
        }
        if self.awaits_finish && self.channel.as_ref().map_or(Ok(false), is_readable)? {
            self.awaits_finish = false;
            match self.channel.as_mut().map(|channel| channel.receive(BETWEEN_BYTES)) {
                Some(Ok(Message::Finish)) => return Ok(Some(Wake::Finish)),
                _ => {
                    self.channel = None;
                    return Ok(Some(Wake::SupervisorGone));
                }
            }
        }
        let mut news = false;
        for root in self.roots.iter_mut().filter(|root| !root.ended) {
            root.ended = is_readable(&root.pidfd)?;
            news |= root.ended;
        }
        Ok((news && self.roots.iter().all(Root::has_ended)).then_some(Wake::RootsEnded))
    }
}

/// Would reading not block?
fn is_readable(fd: &impl AsFd) -> io::Result<bool> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)) {
            Ok(count) => return Ok(count > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Is there a caller that stays and will want a report?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// It becomes the program.
    Leaves,
    /// It supervises.
    Stays,
}

/// The caller's side of a manager that said it is ready.
#[derive(Debug)]
pub(super) struct Enrolled {
    /// How to reach the manager.
    pub(super) channel: Channel,
    /// The message for the user; may be empty.
    pub(super) notes: String,
}

/// Starts a manager and waits until it has enrolled the roots, `timeout` long at most.
pub(super) fn start(
    roots: Vec<Root>,
    keep: &[BorrowedFd<'_>],
    caller: Caller,
    timeout: Duration,
    manage: impl FnOnce(Manager),
) -> Result<Enrolled, Unmanaged> {
    let (mut ours, theirs) = Channel::pair().map_err(Unmanaged::system("make a socket pair"))?;
    let had_sigchld = raw::is_pending(libc::SIGCHLD);
    match raw::fork().map_err(fork_failed)? {
        Side::Child => {
            drop(ours);
            become_intermediate(roots, keep, caller, theirs, manage);
            raw::end(0);
        }
        Side::Parent(intermediate) => {
            drop(theirs);
            reap(intermediate);
            if !had_sigchld {
                // A caller with SIGCHLD blocked must not hand a pending one on.
                SignalSet::of([libc::SIGCHLD]).take_pending();
            }
        }
    }
    match ours.receive(timeout) {
        Ok(Message::Ready(notes)) => Ok(Enrolled { channel: ours, notes }),
        Ok(Message::Failed(why)) => Err(Unmanaged::Failed(why)),
        Ok(_) => Err(Unmanaged::Nonsense),
        Err(error) => Err(error.into()),
    }
}

impl From<ReceiveError> for Unmanaged {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Closed => Self::Died,
            ReceiveError::TimedOut => Self::Silent,
            ReceiveError::Malformed => Self::Nonsense,
            ReceiveError::Io(source) => Self::System { what: "hear the manager", source },
        }
    }
}

fn fork_failed(error: ForkError) -> Unmanaged {
    match error {
        ForkError::Threads(count) => Unmanaged::Threads(count),
        ForkError::Io(source) => Unmanaged::System { what: "fork a manager", source },
    }
}

fn reap(child: Pid) {
    // With SIGCHLD ignored the kernel reaps: the call then waits and fails.
    let wait = || rustix::process::waitpid(Some(child), WaitOptions::empty());
    while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
}

/// In the child: opens a session and forks again, so that the manager is
/// no process's child and can never acquire a terminal.
fn become_intermediate(
    roots: Vec<Root>,
    keep: &[BorrowedFd<'_>],
    caller: Caller,
    mut channel: Channel,
    manage: impl FnOnce(Manager),
) {
    let forked = rustix::process::setsid()
        .map_err(Unmanaged::system("open a session"))
        .and_then(|_| raw::fork().map_err(fork_failed));
    let prepared = match forked {
        Ok(Side::Parent(_)) => return,
        Ok(Side::Child) => detach(&roots, keep, &channel),
        Err(error) => Err(error),
    };
    match prepared {
        Err(error) => {
            // If the caller is gone, no report is needed.
            let _ = channel.send(&Message::Failed(error.to_string()));
        }
        Ok(signals) => {
            let awaits_finish = caller == Caller::Stays;
            let (channel, cpu_time_to_end) = (Some(channel), limits::cpu_time_to_end());
            let manager = Manager { roots, channel, awaits_finish, signals, cpu_time_to_end };
            // A panic closes the channel, by which the caller knows.
            if catch_unwind(AssertUnwindSafe(|| manage(manager))).is_err() {
                raw::end(101);
            }
        }
    }
}

/// In the manager: lets go of everything that is the caller's.
fn detach(
    roots: &[Root],
    keep: &[BorrowedFd<'_>],
    channel: &Channel,
) -> Result<OwnedFd, Unmanaged> {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(Unmanaged::system("open /dev/null"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .map_err(Unmanaged::system("let go of the standard streams"))?;
    drop(null);
    let kept: Vec<_> = roots
        .iter()
        .map(AsFd::as_fd)
        .chain(keep.iter().copied())
        .chain([channel.as_fd()])
        .map(|fd| fd.as_raw_fd())
        .collect();
    raw::close_others(&kept).map_err(Unmanaged::system("close the caller's descriptors"))?;
    rustix::process::chdir("/").map_err(Unmanaged::system("change to /"))?;
    limits::raise();
    // Without the privilege it manages all the same, only later on a crowded machine.
    let _ = be_urgent();
    for signal in raw::all_signals() {
        raw::set_ignored(signal, IGNORED.contains(&signal));
    }
    let ending = SignalSet::of(ENDING);
    ending.block_only().map_err(Unmanaged::system("set the signal mask"))?;
    ending.descriptor().map_err(Unmanaged::system("watch for signals"))
}
