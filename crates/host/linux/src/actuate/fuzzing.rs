//! What fuzzing calls.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::{Line, parse};
use super::journal_state::{Found, descendants};
use super::managers::Holder;

/// A journal that is read is written line by line and read again as the same; whatever it says, the
/// search for descendants ends.
pub fn journal(bytes: &[u8]) {
    let path = Path::new("input");
    let Ok((header, state)) = parse(path, bytes) else { return };
    let mut written = text(&header);
    let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for line in whole.skip(1) {
        written.extend(text(&read::<Line>(line).expect("a damaged line is refused")));
    }
    let again = parse(path, written.as_slice()).expect("what was written can be read");
    assert_eq!(again, (header, state));

    let (_, state) = again;
    let found = |key: &super::ThreadKey| Found {
        process: key.process,
        born: key.born,
        parent: key.thread,
        group: key.process,
        session: key.thread,
    };
    let machine: Vec<Found> = state.records.keys().map(found).collect();
    assert!(
        descendants(&state, &machine)
            .values()
            .flatten()
            .flatten()
            .all(|one| state.of_process(one.process).count() > 0)
    );
}

/// What a manager says of itself: as it is written, so it is read.
pub fn holder(bytes: &[u8]) {
    let Some(holder) = read::<Holder>(bytes) else { return };
    assert_eq!(read::<Holder>(&text(&holder)).expect("what was written can be read"), holder);
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::from_slice(text).ok()
}

fn text(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).expect("what was read can be written");
    text.push(b'\n');
    text
}
