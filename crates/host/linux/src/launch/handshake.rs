//! The messages between a manager and the process that waits for it.
//!
//! A message is one byte for its kind, four for the length of its body (little endian), and the body. Both ends
//! are the same binary, so that messages need no version.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bodies beyond this are refused: nothing that is said here is so long.
const LONGEST: u32 = 1 << 28;

/// Everything that is ever said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// Manager: the roots are enrolled and may run. The text is for the user.
    Ready(String),
    /// Manager: the roots cannot be managed, and why.
    Failed(String),
    /// Supervisor: the roots have ended; restored and report.
    Finish,
    /// Manager: everything is restored; the report for the caller.
    Report(Vec<u8>),
}

/// Why no message came.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReceiveError {
    /// The other end is gone.
    #[error("the other end is gone")]
    Closed,
    /// Nothing came in time.
    #[error("nothing came in time")]
    TimedOut,
    /// What came is no message.
    #[error("what came is no message")]
    Malformed,
    /// The kernel said no.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Self::Closed,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Io(error),
        }
    }
}

impl Message {
    /// Writes the message.
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, body): (u8, &[u8]) = match self {
            Self::Ready(notes) => (b'r', notes.as_bytes()),
            Self::Failed(why) => (b'f', why.as_bytes()),
            Self::Finish => (b'q', &[]),
            Self::Report(bytes) => (b'd', bytes),
        };
        let length = u32::try_from(body.len())
            .ok()
            .filter(|length| *length <= LONGEST)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "message too long"))?;
        let mut frame = Vec::with_capacity(body.len() + 5);
        frame.push(kind);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(body);
        to.write_all(&frame)
    }

    /// Reads one message; never more bytes than belong to it.
    pub(super) fn read(from: &mut impl Read) -> Result<Self, ReceiveError> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(ReceiveError::Malformed);
        }
        let mut body = Vec::new();
        from.take(length.into()).read_to_end(&mut body)?;
        if body.len() as u64 != u64::from(length) {
            return Err(ReceiveError::Closed);
        }
        let text = |body| String::from_utf8(body).map_err(|_| ReceiveError::Malformed);
        match kind {
            b'r' => Ok(Self::Ready(text(body)?)),
            b'f' => Ok(Self::Failed(text(body)?)),
            b'q' if body.is_empty() => Ok(Self::Finish),
            b'd' => Ok(Self::Report(body)),
            _ => Err(ReceiveError::Malformed),
        }
    }
}

/// One end of the conversation.
#[derive(Debug)]
pub(super) struct Channel(UnixStream);

impl Channel {
    /// Two connected ends. Neither survives an exec.
    pub(super) fn pair() -> io::Result<(Self, Self)> {
        UnixStream::pair().map(|(one, other)| (Self(one), Self(other)))
    }

    /// Says something.
    pub(super) fn send(&mut self, message: &Message) -> io::Result<()> {
        message.write(&mut self.0)
    }

    /// Waits for the next message; gives up after `timeout` without a byte.
    pub(super) fn receive(&mut self, timeout: Duration) -> Result<Message, ReceiveError> {
        self.0.set_read_timeout(Some(timeout)).map_err(ReceiveError::Io)?;
        Message::read(&mut self.0)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = Message> {
        prop_oneof![
            any::<String>().prop_map(Message::Ready),
            any::<String>().prop_map(Message::Failed),
            Just(Message::Finish),
            any::<Vec<u8>>().prop_map(Message::Report),
        ]
    }

    proptest! {
        #[test]
        fn messages_round_trip_back_to_back(sent in prop::collection::vec(messages(), 0..5)) {
            let mut bytes = Vec::new();
            for message in &sent {
                message.write(&mut bytes).unwrap();
            }
            let mut rest = bytes.as_slice();
            for message in &sent {
                prop_assert_eq!(&Message::read(&mut rest).unwrap(), message);
            }
            prop_assert!(matches!(Message::read(&mut rest), Err(ReceiveError::Closed)));
        }

        #[test]
        fn any_bytes_give_a_message_or_an_error(bytes: Vec<u8>) {
            let _ = Message::read(&mut bytes.as_slice());
        }

        #[test]
        fn a_cut_message_is_an_error(message in messages(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            message.write(&mut bytes).unwrap();
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Message::read(&mut bytes.as_slice()).is_err());
        }
    }

    #[test]
    fn a_length_beyond_reason_is_refused_before_it_is_read() {
        let bytes = [b'd', 0xff, 0xff, 0xff, 0xff];
        assert!(matches!(Message::read(&mut bytes.as_slice()), Err(ReceiveError::Malformed)));
    }

    #[test]
    fn a_silent_and_a_closed_end_are_distinguished() {
        let (mut ours, theirs) = Channel::pair().unwrap();
        let silent = ours.receive(Duration::from_millis(1));
        assert!(matches!(silent, Err(ReceiveError::TimedOut)), "{silent:?}");
        drop(theirs);
        let closed = ours.receive(Duration::from_secs(10));
        assert!(matches!(closed, Err(ReceiveError::Closed)), "{closed:?}");
    }
}
