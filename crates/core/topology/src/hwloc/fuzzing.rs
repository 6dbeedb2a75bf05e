//! What fuzzing calls.

use super::xml;
use crate::{Origin, Topology};

/// The machine that the text of an export describes, if it is one.
#[must_use]
pub fn read_xml(text: &str) -> Option<Topology> {
    xml::read(text, "input", Origin::HwlocXml("input".to_owned())).ok()
}
