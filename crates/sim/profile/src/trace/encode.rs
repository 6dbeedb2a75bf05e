//! Records a window while a program executes.
//!
//! ```text
//! execution of a block = 2 · number of the block (see follow) + (0 if its accesses fit, else 1)
//! accesses that fit:     differences to the addresses that the same instructions accessed last
//! others:                1 for one more round of a repeated string instruction, else 0; their count; for each
//!                        2 · index of its instruction + (1 if it is a store), and the difference to the last address
//!                        of such a list
//! ```

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::chunk::{Kind, append, append_value};
use super::follow::{DataAccess, Path};
use super::lines::{self, Of};
use super::{Code, Line};
use crate::OpClass;

/// Bytes of events, and operations of new blocks, at which a chunk ends.
const FULL: usize = 1 << 18;
const FULL_CODE: usize = 1 << 15;

/// A window as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawWindow {
    /// The thread, counted from 0 in its process.
    pub thread: u32,
    /// Instructions that it had executed before.
    pub start: u64,
    /// Instructions of the window.
    pub instructions: u64,
    /// Its micro-operations.
    pub ops: u64,
    /// Address of the instruction behind it.
    pub after: u64,
    /// The chunks of a file that hold it.
    pub chunks: Vec<u8>,
}

/// Records one window.
#[derive(Debug)]
pub struct WindowEncoder {
    thread: u32,
    start: u64,
    instructions: u64,
    ops: u64,
    /// Index of the block that the caller calls by a number.
    known: HashMap<usize, usize>,
    path: Path,
    /// Blocks that were written already.
    written: usize,
    /// Operations of those that were not.
    fresh: usize,
    events: Vec<u8>,
    addresses: Vec<u8>,
    number: u32,
    chunks: Vec<u8>,
}

impl WindowEncoder {
    /// A window of thread `thread` that begins after `start` instructions. `data`
    /// and `code`: the lines that it used before, the least recently used first.
    ///
    /// # Errors
    /// When a chunk cannot be made.
    pub fn new(thread: u32, start: u64, data: &[Line], code: &[Line]) -> Result<Self, String> {
        let (mut chunks, mut number) = (Vec::new(), 1);
        lines::encode(&mut chunks, &mut number, Of::Data, data)?;
        lines::encode(&mut chunks, &mut number, Of::Code, code)?;
        Ok(Self {
            thread,
            start,
            instructions: 0,
            ops: 0,
            known: HashMap::new(),
            path: Path::default(),
            written: 0,
            fresh: 0,
            events: Vec::new(),
            addresses: Vec::new(),
            number,
            chunks,
        })
    }

    /// Instructions recorded so far.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Records that a block was executed with these accesses, in order. `id` is the caller's number of the block
    /// that `code` gives. `again`: it is one more round of a repeated string instruction, not an instruction
    /// more.
    ///
    /// # Errors
    /// When a chunk cannot be made.
    pub fn executed(
        &mut self,
        id: usize,
        code: impl FnOnce() -> Code,
        again: bool,
        accesses: &[DataAccess],
    ) -> Result<(), String> {
        if again && accesses.is_empty() {
            return Ok(());
        }
        let path = &mut self.path;
        let block = *self.known.entry(id).or_insert_with(|| {
            let code = code();
            self.fresh += code.ops();
            path.add(code)
        });
        let fits = !again && path.fits(block, accesses);
        let Self { events, addresses, .. } = self;
        put(events, path.number(block) << 1 | u64::from(!fits))?;
        path.go(block);
        let Some(known) = path.blocks.get_mut(block) else { return Ok(()) };
        let (instructions, ops) = match again {
            true => (0, accesses.len()),
            false => (known.code.instructions.len(), known.code.ops()),
        };
        self.instructions += instructions as u64;
        if fits {
            self.ops += ops as u64;
            for ((_, _, last), access) in known.slots.iter_mut().zip(accesses) {
                put_step(addresses, last, access.address)?;
            }
        } else {
            put(events, u64::from(again))?;
            put(events, accesses.len() as u64)?;
            for access in accesses {
                let store = access.class == OpClass::Store;
                put(events, (access.instruction as u64) << 1 | u64::from(store))?;
                put_step(addresses, &mut path.odd, access.address)?;
            }
            let spare = if again { 0 } else { spare(&known.slots, accesses) };
            self.ops += (ops + spare) as u64;
        }
        if self.events.len() + self.addresses.len() >= FULL || self.fresh >= FULL_CODE {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        let fresh: Vec<&Code> =
            self.path.blocks[self.written..].iter().map(|known| &known.code).collect();
        if !fresh.is_empty() {
            append_value(&mut self.chunks, Kind::Code, self.number, &fresh)?;
            self.number += 1;
            self.written = self.path.blocks.len();
            self.fresh = 0;
        }
        if !self.events.is_empty() {
            let mut content = (self.events.len() as u64).to_le_bytes().to_vec();
            content.append(&mut self.events);
            content.append(&mut self.addresses);
            append(&mut self.chunks, Kind::Events, self.number, &content)?;
            self.number += 1;
        }
        Ok(())
    }

    /// Ends the window and gives it. Execution goes on at `after` or, if that is not known, behind the last
    /// block.
    ///
    /// # Errors
    /// When a chunk cannot be made.
    pub fn finish(mut self, after: Option<u64>) -> Result<RawWindow, String> {
        self.flush()?;
        let behind = self.path.last().map_or(0, Code::after);
        let Self { thread, start, instructions, ops, chunks, .. } = self;
        Ok(RawWindow { thread, start, instructions, ops, after: after.unwrap_or(behind), chunks })
    }
}

/// Accesses beyond the decoded ones.
fn spare(slots: &[(usize, OpClass, u64)], accesses: &[DataAccess]) -> usize {
    let mut left: Vec<(usize, OpClass)> = slots.iter().map(|slot| (slot.0, slot.1)).collect();
    let beyond = accesses.iter().filter(|access| {
        let place = left.iter().position(|slot| *slot == (access.instruction, access.class));
        place.map(|place| left.swap_remove(place)).is_none()
    });
    beyond.count()
}

/// Appends a number: short if small.
fn put(out: &mut Vec<u8>, number: u64) -> Result<(), String> {
    *out = postcard::to_extend(&number, std::mem::take(out)).map_err(|error| error.to_string())?;
    Ok(())
}

/// Appends the difference to the last address, which becomes this one.
fn put_step(out: &mut Vec<u8>, last: &mut u64, address: u64) -> Result<(), String> {
    let step = address.wrapping_sub(*last) as i64;
    *last = address;
    *out = postcard::to_extend(&step, std::mem::take(out)).map_err(|error| error.to_string())?;
    Ok(())
}
