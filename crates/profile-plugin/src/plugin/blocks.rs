//! All blocks that were ever translated.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::api::Translated;
use crate::block::Block;
use crate::decode;

/// Address and bytes of a block, which distinguish it from others: programs may write
/// new code where old code was.
type Key = (u64, Vec<u8>);

static BLOCKS: Mutex<Option<HashMap<Key, &'static Block>>> = Mutex::new(None);

/// The block of these instructions, decoded when it is first seen.
///
/// qemu translates under a lock of its own, also across forks, so this lock is
/// never held by a thread that a forked child does not have.
pub(super) fn intern(instructions: &[Translated]) -> &'static Block {
    let start = instructions.first().map_or(0, |first| first.at);
    let bytes = instructions.iter().flat_map(|instruction| instruction.bytes.clone()).collect();
    let mut guard = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let blocks = guard.get_or_insert_default();
    let id = blocks.len();
    blocks.entry((start, bytes)).or_insert_with(|| {
        let placed = instructions.iter().map(|one| (one.at, one.bytes.as_slice()));
        Box::leak(Box::new(decode::block(id, placed)))
    })
}
