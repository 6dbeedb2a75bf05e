//! Which block follows which: the state that is the same in writer and reader.
//!
//! A block is mostly followed by the block that followed it last time, or by the one before that: these have the
//! numbers 0 and 1. Any other block has its index + 2.

use super::Code;
use crate::OpClass;

/// A load or store of the block that is being executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataAccess {
    /// Index of its instruction in the block.
    pub instruction: usize,
    /// Load or store.
    pub class: OpClass,
    /// Its address, in bytes.
    pub address: u64,
}

/// A block that was executed in this window.
#[derive(Debug)]
pub(super) struct KnownBlock {
    pub(super) code: Code,
    /// Its loads and stores: instruction, class, and the address of the last access.
    pub(super) slots: Vec<(usize, OpClass, u64)>,
    /// The blocks that followed it last, the latest first.
    next: [usize; 2],
}

/// The blocks of a window, and where in them execution is.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) blocks: Vec<KnownBlock>,
    last: Option<usize>,
    /// The last address of an access that did not fit its block's slots.
    pub(super) odd: u64,
}

impl Path {
    /// Adds a block; its index.
    pub(super) fn add(&mut self, code: Code) -> usize {
        let slots = code.slots().map(|(index, class)| (index, class, 0)).collect();
        self.blocks.push(KnownBlock { code, slots, next: [usize::MAX; 2] });
        self.blocks.len() - 1
    }

    /// The number that says that `block` is executed next.
    pub(super) fn number(&self, block: usize) -> u64 {
        let last = self.last.and_then(|last| self.blocks.get(last));
        let place = last.and_then(|last| last.next.iter().position(|next| *next == block));
        place.unwrap_or(block.saturating_add(2)) as u64
    }

    /// The block that a number says; none if there is no such.
    pub(super) fn block(&self, number: u64) -> Option<usize> {
        let number = usize::try_from(number).ok()?;
        let block = match number.checked_sub(2) {
            Some(block) => block,
            None => *self.blocks.get(self.last?)?.next.get(number)?,
        };
        (block < self.blocks.len()).then_some(block)
    }

    /// Execution goes on with `block`.
    pub(super) fn go(&mut self, block: usize) {
        if let Some(last) = self.last.and_then(|last| self.blocks.get_mut(last)) {
            if last.next[0] != block {
                last.next = [block, last.next[0]];
            }
        }
        self.last = Some(block);
    }

    /// The block that was executed last.
    pub(super) fn last(&self) -> Option<&Code> {
        Some(&self.blocks.get(self.last?)?.code)
    }

    /// Do the accesses of a block fit its slots, one each, in order?
    pub(super) fn fits(&self, block: usize, accesses: &[DataAccess]) -> bool {
        let Some(known) = self.blocks.get(block) else { return false };
        let same = |((index, class, _), access): (&(usize, OpClass, u64), &DataAccess)| {
            *index == access.instruction && *class == access.class
        };
        known.slots.len() == accesses.len() && known.slots.iter().zip(accesses).all(same)
    }
}
