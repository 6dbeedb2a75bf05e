//! What fuzzing needs to get past the checksum of a model file.

/// The text of a model file with this content, well formed or not.
#[must_use]
pub fn sealed(content: &str) -> String {
    crate::stored::sealed(content)
}
