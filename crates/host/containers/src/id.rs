//! What a runtime may call a container.

/// Longest id.
const MOST_ID: usize = 255;

/// Can it be an id? Such a text is one part of a path, and never `.` or `..`.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MOST_ID).contains(&text.len()) && text.bytes().all(is_fine) && !text.starts_with('.')
}
