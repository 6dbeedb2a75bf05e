//! Where the daemon waits: for the end of a quantum, for clients and for signals.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use symbiont_linux::launch::Wake;
use symbiont_linux::machine::Wait;
use symbiont_linux::peer_credentials;
use symbiont_wire::{Call, Failure, Reply, Request};

use crate::Peer;
use crate::connection::{Closed, Connection, Message};
use crate::quota::{self, Quota};

/// Connections that are taken at one wake-up.
const ACCEPTED_AT_ONCE: usize = 32;
/// Connections of all users together.
const MOST_CONNECTIONS: usize = 512;

/// After which a call that was postponed comes up again.
const POSTPONED: Duration = Duration::from_millis(2);

/// Lines about clients in a minute: what clients do must not fill the log.
const LINES_A_MINUTE: u32 = 20;

/// Names a connection for as long as it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// A call that waits for its answer.
#[derive(Debug)]
pub struct Pending {
    /// Where the answer goes.
    pub connection: ConnectionId,
    /// The client that asks.
    pub peer: Peer,
    /// What it asks for.
    pub request: Request,
    /// Does the client take several replies?
    pub more: bool,
    /// The descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// When it arrived.
    pub since: Instant,
    oneway: bool,
}

/// Holds the listening socket and all connections.
#[derive(Debug)]
pub struct Hub {
    listener: OwnedFd,
    /// No descriptor was left for a new connection: clients wait until one is closed, or the next
    /// quantum.
    full: bool,
    /// When that was logged last.
    full_logged: Option<Instant>,
    /// Readable when a signal asks to end.
    end: OwnedFd,
    /// Readable when a signal asks to read the configuration again.
    reload: OwnedFd,
    reload_asked: bool,
    connections: BTreeMap<ConnectionId, Connection>,
    clients: Quota,
    next: u64,
    pending: Vec<Pending>,
    /// Calls that are answered a little later.
    postponed: Vec<Pending>,
    /// Lines for the log.
    log: Vec<String>,
    /// When the minute began in which so many lines about clients were logged.
    logged: (Instant, u32),
}

impl Hub {
    /// Of a listening socket, and of descriptors that are readable when the daemon is asked to end
    /// and to read its configuration again. None of them may block.
    #[must_use]
    pub fn new(listener: OwnedFd, end: OwnedFd, reload: OwnedFd) -> Self {
        Self {
            listener,
            full: false,
            full_logged: None,
            end,
            reload,
            reload_asked: false,
            connections: BTreeMap::new(),
            clients: Quota::new("connections", quota::CLIENTS),
            next: 0,
            pending: Vec::new(),
            postponed: Vec::new(),
            log: Vec::new(),
            logged: (Instant::now(), 0),
        }
    }

    /// The calls that have arrived, oldest first.
    pub fn take_pending(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    /// Has a call come up again soon: what it depends on is about to change.
    pub fn postpone(&mut self, call: Pending) {
        self.postponed.push(call);
    }

    /// Has the client given up on a call? What it says was not done must not be done later, where
    /// the daemon was stopped meanwhile. A call without an answer is carried out in any case.
    #[must_use]
    pub fn is_given_up(&self, call: &Pending) -> bool {
        let connection = self.connections.get(&call.connection);
        !call.oneway && connection.is_none_or(Connection::is_hung_up)
    }

    /// Clients that are connected.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.connections.len()
    }

    /// What is to be logged, oldest first.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Was the configuration asked to be read again since the last call?
    pub fn take_reload(&mut self) -> bool {
        std::mem::take(&mut self.reload_asked)
    }

    /// Answers a call. A client that is gone needs no answer.
    pub fn answer(&mut self, pending: &Pending, replies: &[Reply]) {
        if pending.oneway {
            return;
        }
        let now = Instant::now();
        for reply in replies {
            let Some(connection) = self.connections.get_mut(&pending.connection) else { return };
            if let Err(why) = connection.send(reply, now) {
                self.close(pending.connection, &why);
            }
        }
    }

    fn close(&mut self, id: ConnectionId, why: &Closed) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.full = false;
        let peer = connection.peer();
        self.clients.give_back(peer.uid);
        if !matches!(why, Closed::ByClient | Closed::Io(_)) {
            self.log_trouble(peer, why);
        }
    }

    fn log_trouble(&mut self, peer: Peer, why: &dyn fmt::Display) {
        if self.logged.0.elapsed() >= Duration::from_secs(60) {
            self.logged = (Instant::now(), 0);
        }
        self.logged.1 = self.logged.1.saturating_add(1);
        match self.logged.1.cmp(&LINES_A_MINUTE) {
            Ordering::Less => {
                self.log.push(format!("client {} of user {}: {why}", peer.pid, peer.uid));
            }
            Ordering::Equal => {
                self.log.push("what else clients do wrong is not logged for a minute".to_owned());
            }
            Ordering::Greater => {}
        }
    }

    /// Takes new connections; one over the quota gets the reason and is closed.
    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = match accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(error) => return self.note_refusal(error),
            };
            let Ok(credentials) = peer_credentials(&socket) else { continue };
            let peer = Peer { uid: credentials.uid, pid: credentials.pid };
            let mut connection = Connection::new(socket, peer, now);
            let full = || Failure::QuotaExceeded {
                what: "connections of all users".to_owned(),
                limit: MOST_CONNECTIONS as u64,
            };
            let room = match self.connections.len() < MOST_CONNECTIONS || peer.is_root() {
                true => self.clients.take(peer.uid),
                false => Err(full()),
            };
            match room {
                Ok(()) => {
                    self.connections.insert(ConnectionId(self.next), connection);
                    self.next += 1;
                }
                Err(failure) => {
                    self.log_trouble(peer, &failure);
                    // It need not hear it.
                    let _ = connection.send(&failure.into(), now);
                }
            }
        }
    }

    /// A connection that cannot be taken stays readable: where that lasts, nothing is heard from the
    /// listener for a while, or the loop would spin.
    fn note_refusal(&mut self, error: Errno) {
        self.full = matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM);
        // A descriptor that is free for a moment does not end the shortage.
        let is_logged = self.full_logged.is_some_and(|at| at.elapsed() < Duration::from_secs(60));
        if self.full && !is_logged {
            self.full_logged = Some(Instant::now());
            self.log.push(format!("clients have to wait: a connection cannot be taken: {error}"));
        }
    }

    /// Reads and writes what is ready.
    fn attend(&mut self, ready: &[(ConnectionId, PollFlags)], now: Instant) {
        for (id, flags) in ready {
            if let Err(why) = self.attend_one(*id, *flags, now) {
                self.close(*id, &why);
            }
        }
        let late: Vec<_> = self
            .connections
            .iter()
            .filter_map(|(id, connection)| Some((*id, connection.is_late(now)?)))
            .collect();
        for (id, why) in late {
            self.close(id, &why);
        }
    }

    fn attend_one(
        &mut self,
        id: ConnectionId,
        flags: PollFlags,
        now: Instant,
    ) -> Result<(), Closed> {
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        if flags.contains(PollFlags::OUT) {
            connection.flush(now)?;
        }
        // Calls are answered one after the other: more are read when all replies are sent.
        if connection.wants_to_send() || !flags.intersects(PollFlags::IN | PollFlags::HUP) {
            return Ok(());
        }
        let mut message = connection.receive(now)?;
        while let Some(Message { frame, descriptors }) = message {
            let peer = connection.peer();
            let understood = Call::from_frame(&frame)
                .map_err(|error| Failure::Protocol { reason: error.to_string() })
                .and_then(|call| Ok((call.more, call.oneway, Request::from_call(call)?)));
            match understood {
                Ok((more, oneway, request)) => self.pending.push(Pending {
                    connection: id,
                    peer,
                    request,
                    more,
                    descriptors,
                    since: now,
                    oneway,
                }),
                Err(failure @ Failure::Protocol { .. }) => {
                    // It need not hear why.
                    let why = Closed::Malformed(failure.to_string());
                    let _ = connection.send(&failure.into(), now);
                    return Err(why);
                }
                Err(failure) => connection.send(&failure.into(), now)?,
            }
            message = connection.next_received(now)?;
        }
        Ok(())
    }

    /// Sleeps until something is ready; gives what, or nothing when the time is over.
    fn sleep(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Option<Woken>> {
        let listened = if self.full { PollFlags::empty() } else { PollFlags::IN };
        let mut fds: Vec<_> =
            [&self.end, &self.reload].map(|fd| PollFd::new(fd, PollFlags::IN)).into();
        fds.push(PollFd::new(&self.listener, listened));
        fds.extend(bells.iter().map(|bell| PollFd::new(bell, PollFlags::IN)));
        fds.extend(self.connections.values().map(|connection| {
            let out = if connection.wants_to_send() { PollFlags::OUT } else { PollFlags::IN };
            PollFd::new(connection, out)
        }));
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Some(Woken::default())),
            Err(error) => return Err(error.into()),
        }
        let mut flags = fds.iter().map(PollFd::revents);
        let mut is_ready = || flags.next().is_some_and(|flags| !flags.is_empty());
        let (end, reload, client) = (is_ready(), is_ready(), is_ready());
        let rung: Vec<bool> = bells.iter().map(|_| is_ready()).collect();
        let ready = self.connections.keys().copied().zip(flags);
        Ok(Some(Woken {
            end,
            reload,
            client,
            bell: rung.iter().position(|rang| *rang),
            ready: ready.filter(|(_, flags)| !flags.is_empty()).collect(),
        }))
    }
}

/// What woke it.
#[derive(Debug, Default)]
struct Woken {
    end: bool,
    reload: bool,
    client: bool,
    bell: Option<usize>,
    ready: Vec<(ConnectionId, PollFlags)>,
}

impl Wait for Hub {
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        self.wait_or(timeout, &[])
    }

    fn wait_or(&mut self, timeout: Duration, bells: &[BorrowedFd<'_>]) -> io::Result<Wake> {
        let end = Instant::now() + timeout;
        let again = (!self.postponed.is_empty()).then(|| Instant::now() + POSTPONED);
        self.full = false;
        loop {
            let now = Instant::now();
            let deadlines = self.connections.values().map(Connection::deadline);
            let until = deadlines.chain(again).fold(end, Instant::min);
            let woken = self.sleep(until.saturating_duration_since(now), bells)?;
            let now = Instant::now();
            let woken = match woken {
                None if now >= end => return Ok(Wake::Timeout),
                woken => woken.unwrap_or_default(),
            };
            if woken.end {
                return Ok(Wake::Terminate);
            }
            if woken.reload {
                let mut bytes = [0; 64];
                while rustix::io::read(&self.reload, &mut bytes).is_ok_and(|count| count > 0) {}
                self.reload_asked = true;
                return Ok(Wake::Request);
            }
            if woken.client {
                self.accept(now);
            }
            self.attend(&woken.ready, now);
            if again.is_some_and(|again| now >= again) {
                self.pending.append(&mut self.postponed);
            }
            if !self.pending.is_empty() {
                return Ok(Wake::Request);
            }
            if let Some(position) = woken.bell {
                return Ok(Wake::Bell(position));
            }
        }
    }
}
