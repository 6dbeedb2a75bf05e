//! One client's connection, as the daemon holds it.

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg,
    sendmsg,
};
use symbiont_wire::{FrameBuffer, Reply, to_frame};

use crate::Peer;
use crate::quota::DESCRIPTORS;

/// How long a client may take for the rest of a message, and to take a reply.
pub const MESSAGE: Duration = Duration::from_secs(5);
/// How long a client may be connected without a word.
pub const IDLE: Duration = Duration::from_secs(60);
/// Most bytes of replies that wait for a client that does not read.
const MOST_UNSENT: usize = 1 << 20;

/// Why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The client closed it.
    #[error("the client is gone")]
    ByClient,
    /// The client took too long.
    #[error("{0}")]
    TooSlow(&'static str),
    /// What the client sent is refused.
    #[error("{0}")]
    Malformed(String),
    /// The kernel reports an error.
    #[error("{0}")]
    Io(#[from] Errno),
}

/// A message with the descriptors that came with it.
#[derive(Debug)]
pub struct Message {
    /// The bytes.
    pub frame: Vec<u8>,
    /// The descriptors, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    peer: Peer,
    received: FrameBuffer,
    descriptors: Vec<OwnedFd>,
    unsent: VecDeque<u8>,
    /// When something has to have happened.
    deadline: Instant,
}

impl Connection {
    /// Of a socket that does not block.
    pub fn new(socket: OwnedFd, peer: Peer, now: Instant) -> Self {
        let (received, descriptors, unsent) = Default::default();
        Self { socket, peer, received, descriptors, unsent, deadline: now + IDLE }
    }

    /// Its credentials.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// When it is to be closed, unless something happens before.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Does something wait to be sent?
    pub fn wants_to_send(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Has the client closed it? One that only sends no more still waits for its answers.
    pub fn is_hung_up(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_ready = poll(&mut socket, Some(&now)).is_ok_and(|ready| ready > 0);
        is_ready && socket.iter().any(|s| s.revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Reads what has arrived; gives the first message that is complete. A client that sends the
    /// next call before it has its reply waits in the socket.
    pub fn receive(&mut self, now: Instant) -> Result<Option<Message>, Closed> {
        const ROOM: usize = 8192;
        let was_within = self.received.is_within_a_frame();
        let mut bytes = [0; ROOM];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let got = match recvmsg(&self.socket, &mut parts, &mut control, flags) {
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.descriptors.extend(fds);
            }
        }
        if got.bytes == 0 {
            return Err(Closed::ByClient);
        }
        if got.flags.contains(rustix::net::ReturnFlags::CTRUNC)
            || self.descriptors.len() > DESCRIPTORS
        {
            return Err(Closed::Malformed(format!("more than {DESCRIPTORS} descriptors at once")));
        }
        self.received.push(bytes.get(..got.bytes).unwrap_or_default());
        self.next(now, was_within)
    }

    /// The next message of what was received before.
    pub fn next_received(&mut self, now: Instant) -> Result<Option<Message>, Closed> {
        self.next(now, true)
    }

    fn next(&mut self, now: Instant, was_within: bool) -> Result<Option<Message>, Closed> {
        match self.received.next_frame() {
            Ok(Some(frame)) => {
                self.deadline = now + IDLE;
                Ok(Some(Message { frame, descriptors: std::mem::take(&mut self.descriptors) }))
            }
            Ok(None) => {
                // The deadline is the whole message's: bytes that trickle in do not move it.
                if !was_within && self.received.is_within_a_frame() {
                    self.deadline = now + MESSAGE;
                }
                Ok(None)
            }
            Err(error) => Err(Closed::Malformed(error.to_string())),
        }
    }

    /// Puts a reply behind those that wait, and sends what the client takes.
    pub fn send(&mut self, reply: &Reply, now: Instant) -> Result<(), Closed> {
        let frame = to_frame(reply).map_err(|error| Closed::Malformed(error.to_string()))?;
        if self.unsent.len() + frame.len() > MOST_UNSENT {
            return Err(Closed::TooSlow("it does not read what it asked for"));
        }
        if self.unsent.is_empty() {
            self.deadline = now + MESSAGE;
        }
        self.unsent.extend(frame);
        self.flush(now)
    }

    /// Sends what the client takes now.
    pub fn flush(&mut self, now: Instant) -> Result<(), Closed> {
        while !self.unsent.is_empty() {
            let (front, _) = self.unsent.as_slices();
            let mut none = SendAncillaryBuffer::default();
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.socket, &[IoSlice::new(front)], &mut none, flags) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.deadline = now + IDLE;
        Ok(())
    }

    /// Is it to be closed now, and why?
    pub fn is_late(&self, now: Instant) -> Option<Closed> {
        let why = match (self.wants_to_send(), self.received.is_within_a_frame()) {
            (true, _) => "it does not read what it asked for",
            (false, true) => "its message did not end in time",
            (false, false) => "it said nothing for a minute",
        };
        (now >= self.deadline).then_some(Closed::TooSlow(why))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use symbiont_wire::Request;

    use super::*;

    fn pair() -> (UnixStream, Connection, Instant) {
        let (client, server) = UnixStream::pair().unwrap();
        let now = Instant::now();
        (client, Connection::new(server.into(), Peer { uid: 1000, pid: 1 }, now), now)
    }

    #[test]
    fn a_message_in_pieces_is_put_together() {
        let (mut client, mut connection, now) = pair();
        let frame = to_frame(&Request::Status {}.into_call()).unwrap();
        let (last, first) = frame.split_last().unwrap();
        client.write_all(first).unwrap();
        assert!(connection.receive(now).unwrap().is_none());
        client.write_all(&[*last]).unwrap();
        assert_eq!(connection.receive(now).unwrap().unwrap().frame, first);
        assert!(connection.receive(now).unwrap().is_none(), "nothing more has arrived");
    }

    #[test]
    fn two_calls_at_once_are_two_messages() {
        let (mut client, mut connection, now) = pair();
        client.write_all(b"{1}\0{2}\0").unwrap();
        assert_eq!(connection.receive(now).unwrap().unwrap().frame, b"{1}");
        assert_eq!(connection.next_received(now).unwrap().unwrap().frame, b"{2}");
        assert!(connection.next_received(now).unwrap().is_none());
    }

    #[test]
    fn a_message_that_does_not_end_in_time_is_cut_off() {
        let (mut client, mut connection, now) = pair();
        client.write_all(b"{").unwrap();
        assert!(connection.receive(now).unwrap().is_none());
        let later = now + MESSAGE - Duration::from_millis(1);
        client.write_all(b" ").unwrap();
        assert!(connection.receive(later).unwrap().is_none());
        assert_eq!(connection.is_late(later), None);
        let late = connection.is_late(now + MESSAGE).unwrap();
        assert_eq!(late.to_string(), "its message did not end in time");
    }

    #[test]
    fn a_client_that_says_nothing_is_let_go() {
        let (_client, connection, now) = pair();
        assert_eq!(connection.is_late(now + IDLE / 2), None);
        assert!(connection.is_late(now + IDLE).is_some());
    }

    #[test]
    fn a_client_that_only_sends_no_more_has_not_hung_up() {
        let (client, connection, _) = pair();
        assert!(!connection.is_hung_up());
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!connection.is_hung_up(), "it waits for its answer");
        drop(client);
        assert!(connection.is_hung_up());
    }

    #[test]
    fn an_oversized_message_closes_the_connection() {
        let (mut client, mut connection, now) = pair();
        std::thread::spawn(move || {
            let _ = client.write_all(&vec![b' '; 2 * symbiont_wire::MOST_BYTES]);
        });
        let refused = loop {
            match connection.receive(now) {
                Ok(None) => std::thread::yield_now(),
                other => break other,
            }
        };
        assert!(matches!(refused, Err(Closed::Malformed(_))), "{refused:?}");
    }

    #[test]
    fn a_client_that_does_not_read_is_cut_off() {
        let (_client, mut connection, now) = pair();
        let reply = Reply::of(
            &vec![("x".repeat(1000), 1); 40]
                .into_iter()
                .collect::<std::collections::BTreeMap<_, _>>(),
        );
        let full = (0..100_000).find_map(|_| connection.send(&reply, now).err());
        assert!(matches!(full, Some(Closed::TooSlow(_))), "{full:?}");
    }

    #[test]
    fn replies_arrive_in_order() {
        let (mut client, mut connection, now) = pair();
        for number in 0..3 {
            let reply = symbiont_wire::Enrolled { program: number, notes: vec![] };
            connection.send(&Reply::of(&reply), now).unwrap();
        }
        drop(connection);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        let numbers: Vec<_> = text.split('\0').filter(|part| !part.is_empty()).collect();
        assert_eq!(numbers.len(), 3);
        assert!(numbers[2].contains("\"program\":2"), "{text:?}");
    }
}
