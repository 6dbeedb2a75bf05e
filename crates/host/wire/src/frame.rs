//! Bytes to frames and back.

/// Most bytes of a frame.
pub const MOST_BYTES: usize = 64 * 1024;

/// The other side sends a message that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is longer than {MOST_BYTES} bytes")]
pub struct FrameTooLong;

/// Collects received bytes until a frame is complete.
#[derive(Debug, Default)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    /// Bytes of the front that hold no zero byte.
    searched: usize,
}

impl FrameBuffer {
    /// Adds received bytes. What is held grows with what is added: call [`Self::next_frame`] until
    /// it gives none before more bytes are received.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes out the next complete frame; none if its end has not arrived.
    ///
    /// # Errors
    /// When the frame is longer than [`MOST_BYTES`], complete or not: what follows cannot be
    /// trusted, and the connection should be closed.
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, FrameTooLong> {
        let end = self.bytes.iter().skip(self.searched).position(|byte| *byte == 0);
        match end.map(|at| at + self.searched) {
            Some(end) if end <= MOST_BYTES => {
                let rest = self.bytes.split_off(end + 1);
                let mut frame = std::mem::replace(&mut self.bytes, rest);
                frame.truncate(end);
                self.searched = 0;
                Ok(Some(frame))
            }
            None if self.bytes.len() <= MOST_BYTES => {
                self.searched = self.bytes.len();
                Ok(None)
            }
            _ => Err(FrameTooLong),
        }
    }

    /// Has a message begun that is not complete?
    #[must_use]
    pub fn is_within_a_frame(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// The bytes to send for a message.
///
/// # Errors
/// When it is longer than [`MOST_BYTES`].
pub fn to_frame(message: &impl serde::Serialize) -> Result<Vec<u8>, FrameTooLong> {
    // JSON escapes control characters, so that no zero byte is within. Values of this crate have
    // string keys and finite depth: they can be written.
    let mut bytes = serde_json::to_vec(message).map_err(|_| FrameTooLong)?;
    if bytes.len() > MOST_BYTES {
        return Err(FrameTooLong);
    }
    bytes.push(0);
    Ok(bytes)
}
