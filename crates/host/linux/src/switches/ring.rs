//! The ring buffer of one hardware thread.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use super::sys::Buffer;

/// Pages of a buffer: at 100 bytes a record, some 2,600 records.
const PAGES: usize = 64;

/// Events of one hardware thread and the buffer that they write to.
#[derive(Debug)]
pub(super) struct Ring {
    buffer: Buffer,
    /// The event whose buffer it is.
    owner: OwnedFd,
    /// Events that write to it too, as long as they are open.
    _others: Vec<OwnedFd>,
    read: u64,
    record: Vec<u8>,
}

impl Ring {
    /// Maps the owner's buffer and lets the others write to it.
    pub fn new(owner: OwnedFd, others: Vec<OwnedFd>) -> Result<Self, Errno> {
        let buffer = Buffer::map(&owner, PAGES)?;
        for event in &others {
            super::sys::write_to(event.as_fd(), owner.as_fd())?;
        }
        Ok(Self { buffer, owner, _others: others, read: 0, record: Vec::new() })
    }

    /// Hands over all records that are there.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let head = self.buffer.head();
        while self.read < head {
            let left = head - self.read;
            let mut header = [0; 8];
            if left >= 8 {
                self.buffer.copy(self.read, &mut header);
            }
            let [.., low, high] = header;
            let length = u16::from_ne_bytes([low, high]);
            if length < 8 || u64::from(length) > left || usize::from(length) > self.buffer.size() {
                // Not what a kernel writes: what is there cannot be distinguished.
                self.read = head;
                break;
            }
            self.record.resize(length.into(), 0);
            self.buffer.copy(self.read, &mut self.record);
            each(&self.record);
            self.read += u64::from(length);
        }
        self.buffer.set_tail(self.read);
    }
}

#[cfg(fuzzing)]
impl Ring {
    pub const PAGES: usize = PAGES;

    /// As if so many bytes had been written and read.
    pub fn skip_to(&mut self, position: u64) {
        self.read = position;
    }
}

impl AsFd for Ring {
    /// Readable when there are records.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.owner.as_fd()
    }
}
