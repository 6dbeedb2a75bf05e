//! What fuzzing calls.

use super::handshake::Message;

/// Messages, one behind the other: each takes its own bytes only, and is written as it was read.
pub fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest;
        let Ok(message) = Message::read(&mut rest) else { return };
        let mut written = Vec::new();
        message.write(&mut written).expect("memory takes it");
        assert_eq!(Some(written.as_slice()), before.get(..before.len() - rest.len()));
    }
}
