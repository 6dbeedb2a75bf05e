//! Digests, by which programs and works are named.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// How many bytes of a digest name a program.
const BYTES: usize = 16;

/// The digest of all that is read, as hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn digest(mut contents: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match contents.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => hash.update(buffer.get(..got).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hash.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect())
}

/// The digest of a text.
#[must_use]
pub fn digest_of_text(text: &str) -> String {
    // A text in memory can be read.
    digest(text.as_bytes()).unwrap_or_default()
}

/// The number of a work, from the text of what is to be done: a command or a script.
#[must_use]
pub fn work(text: &str) -> u64 {
    let digest = digest_of_text(text);
    digest.get(..16).and_then(|start| u64::from_str_radix(start, 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_equal_digests_and_others_do_not() {
        assert_eq!(digest_of_text("gzip x"), digest("gzip x".as_bytes()).unwrap());
        assert_ne!(digest_of_text("gzip x"), digest_of_text("gzip y"));
        assert_eq!(digest_of_text("").len(), 2 * BYTES);
        assert_ne!(work("a"), work("b"));
    }
}
