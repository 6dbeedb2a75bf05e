//! All blocks that were ever translated.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::api::TranslatedInstruction;
use crate::block::{Block, Repeat};
use crate::decode;

/// Address and bytes of a block, which distinguish it from others: programs may write
/// new code where old code was.
type Key = (u64, Vec<u8>);

/// A block, and the repeated string instruction that it ends with.
type KnownBlock = (&'static Block, Option<&'static Repeat>);

static BLOCKS: Mutex<Option<HashMap<Key, KnownBlock>>> = Mutex::new(None);

/// The block of these instructions, decoded when it is first seen.
///
/// qemu translates under a lock of its own, also across forks, so this lock is
/// never held by a thread that a forked child does not have.
pub(super) fn intern(instructions: &[TranslatedInstruction]) -> KnownBlock {
    let mut guard = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    known(guard.get_or_insert_default(), instructions)
}

fn known(
    blocks: &mut HashMap<Key, KnownBlock>,
    instructions: &[TranslatedInstruction],
) -> KnownBlock {
    let start = instructions.first().map_or(0, |first| first.at);
    let bytes = instructions.iter().flat_map(|instruction| instruction.bytes.clone()).collect();
    let key = (start, bytes);
    if let Some(known) = blocks.get(&key) {
        return *known;
    }
    let placed = instructions.iter().map(|one| (one.at, one.bytes.as_slice()));
    let block: &'static Block = Box::leak(Box::new(decode::block(blocks.len(), placed)));
    blocks.insert(key.clone(), (block, None));
    let round = match instructions {
        _ if !block.ends_with_repeat() => return (block, None),
        [.., last] if !block.is_repeat() => known(blocks, std::slice::from_ref(last)).0,
        _ => block,
    };
    let repeat = Repeat::of(block, round).map(|repeat| &*Box::leak(Box::new(repeat)));
    blocks.insert(key, (block, repeat));
    (block, repeat)
}
