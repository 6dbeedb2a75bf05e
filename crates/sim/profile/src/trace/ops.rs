//! Reads the operations of a window.

use std::fs::File;
use std::io::{BufReader, Cursor};

use super::chunk::{Head, Kind};
use super::error::Fault;
use super::follow::Path;
use super::unroll::{Dependences, unroll};
use super::{Branch, Code, DataAccess, TraceError, TraceOp, WindowInfo};
use crate::{OpClass, Stores};

/// Operations of all blocks of a window: more are no program's.
const MOST_CODE: usize = 1 << 22;

/// An execution of a block that is to be made into operations once it is known
/// where execution goes on.
#[derive(Debug)]
struct PendingBlock {
    block: usize,
    again: bool,
    accesses: Vec<DataAccess>,
}

/// The operations of a window, in program order.
///
/// After an error there are no more.
#[derive(Debug)]
pub struct TraceOps {
    name: String,
    file: BufReader<File>,
    info: WindowInfo,
    /// Number of the next chunk.
    number: u32,
    /// The head of the first chunk, which had to be read to see that it is not of
    /// lines.
    first: Option<Head>,
    path: Path,
    code: usize,
    events: Cursor<Vec<u8>>,
    addresses: Cursor<Vec<u8>>,
    dependences: Dependences,
    stores: Stores,
    pending: Option<PendingBlock>,
    /// Operations of the block that was executed, and the next of them.
    made: Vec<TraceOp>,
    next: usize,
    instructions: u64,
    /// A buffer to use again.
    spare: Vec<DataAccess>,
    /// All chunks of the window were read.
    read: bool,
    ended: bool,
}

impl TraceOps {
    pub(super) fn new(
        name: String,
        file: BufReader<File>,
        info: WindowInfo,
        number: u32,
        first: Head,
    ) -> Self {
        Self {
            name,
            file,
            info,
            number,
            first: Some(first),
            path: Path::default(),
            code: 0,
            events: Cursor::default(),
            addresses: Cursor::default(),
            dependences: Dependences::default(),
            stores: Stores::default(),
            pending: None,
            made: Vec::new(),
            next: 0,
            instructions: 0,
            spare: Vec::new(),
            read: false,
            ended: false,
        }
    }

    /// Instructions begun so far: the last one is part of the window's warm-up as long as this is at most
    /// [`WindowInfo::warm_up`].
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Makes the operations of the next execution of a block; none at the end.
    #[cold]
    fn make(&mut self) -> Result<bool, Fault> {
        loop {
            let next = self.event()?;
            let start = match &next {
                Some(next) => self.path.blocks.get(next.block).map(|known| known.code.start),
                None => Some(self.info.after),
            };
            let made = std::mem::replace(&mut self.pending, next);
            self.made.clear();
            self.next = 0;
            let (Some(made), Some(start)) = (made, start) else {
                if self.pending.is_none() {
                    return Ok(false);
                }
                continue;
            };
            self.unroll(&made, start);
            self.spare = made.accesses;
            self.spare.clear();
            if !self.made.is_empty() {
                return Ok(true);
            }
        }
    }

    fn unroll(&mut self, pending: &PendingBlock, next: u64) {
        let Some(known) = self.path.blocks.get(pending.block) else { return };
        let Code { start, leaves, ref instructions } = known.code;
        let (made, dependences) = (&mut self.made, &mut self.dependences);
        let stores = &mut self.stores;
        let mut at = start;
        let mut accesses = pending.accesses.as_slice();
        for (index, instruction) in instructions.iter().enumerate() {
            let own = accesses.iter().take_while(|access| access.instruction == index).count();
            let (mine, rest) = accesses.split_at(own);
            accesses = rest;
            let mine = mine.iter().map(|access| (access.class, access.address));
            let mut starts_instruction = !pending.again;
            unroll(&instruction.ops, pending.again, &mine, |class, reads, writes, access| {
                made.push(TraceOp {
                    class,
                    starts_instruction,
                    sources: dependences.sources(reads, writes),
                    stored: stores.next(class, access),
                    length: instruction.length,
                    at,
                    address: access.map(|(address, _)| address),
                    branch: None,
                });
                starts_instruction = false;
            });
            at = at.wrapping_add(u64::from(instruction.length));
        }
        let last = made.iter_mut().rfind(|op| op.class == OpClass::Branch);
        if let (Some(op), Some(kind)) = (last, leaves.branch()) {
            let taken = kind != super::BranchKind::Conditional || next != at;
            op.branch = Some(Branch { kind, taken, next });
        }
    }

    /// The next execution of a block; none at the end of the window.
    fn event(&mut self) -> Result<Option<PendingBlock>, Fault> {
        while at_end(&self.events) {
            if !at_end(&self.addresses) {
                return Err(Fault::damaged("addresses are left over"));
            }
            if !self.chunk()? {
                return Ok(None);
            }
        }
        let token: u64 = take(&mut self.events)?;
        let block = self.path.block(token >> 1);
        let block = block.ok_or_else(|| Fault::damaged("a block is executed that is unknown"))?;
        self.path.go(block);
        let accesses = std::mem::take(&mut self.spare);
        let mut pending = PendingBlock { block, again: false, accesses };
        if token & 1 == 0 {
            let Some(known) = self.path.blocks.get_mut(block) else { return Ok(None) };
            for (instruction, class, last) in &mut known.slots {
                *last = last.wrapping_add(take::<i64>(&mut self.addresses)? as u64);
                let (instruction, class, address) = (*instruction, *class, *last);
                pending.accesses.push(DataAccess { instruction, class, address });
            }
            return Ok(Some(pending));
        }
        pending.again = take::<u64>(&mut self.events)? == 1;
        for _ in 0..take::<u64>(&mut self.events)? {
            let place: u64 = take(&mut self.events)?;
            let step: i64 = take(&mut self.addresses)?;
            self.path.odd = self.path.odd.wrapping_add(step as u64);
            let class = if place & 1 == 1 { OpClass::Store } else { OpClass::Load };
            let instruction = usize::try_from(place >> 1).unwrap_or(usize::MAX);
            pending.accesses.push(DataAccess { instruction, class, address: self.path.odd });
        }
        pending.accesses.sort_by_key(|access| access.instruction);
        Ok(Some(pending))
    }

    /// Reads the next chunk; none at the end of the window.
    fn chunk(&mut self) -> Result<bool, Fault> {
        if self.read {
            return Ok(false);
        }
        let head = match self.first.take() {
            Some(head) => head,
            None => Head::read(&mut self.file)?,
        };
        if head.is(Kind::Window) || head.is(Kind::End) {
            self.read = true;
            return self.check_end();
        }
        let content = head.content(&mut self.file)?;
        if head.number != self.number {
            return Err(Fault::damaged("a chunk is missing"));
        }
        self.number += 1;
        if head.is(Kind::Code) {
            self.learn(&content)?;
        } else if head.is(Kind::Events) {
            let split = content.split_first_chunk::<8>();
            let (length, rest) =
                split.ok_or_else(|| Fault::damaged("a chunk of events is too short"))?;
            let split = usize::try_from(u64::from_le_bytes(*length)).ok();
            let split = split.and_then(|length| rest.split_at_checked(length));
            let (events, addresses) =
                split.ok_or_else(|| Fault::damaged("a chunk of events is too short"))?;
            self.events = Cursor::new(events.to_vec());
            self.addresses = Cursor::new(addresses.to_vec());
        } else {
            return Err(Fault::damaged("chunks are out of order"));
        }
        Ok(true)
    }

    /// Adds blocks.
    fn learn(&mut self, content: &[u8]) -> Result<(), Fault> {
        for code in postcard::from_bytes::<Vec<Code>>(content)? {
            code.check().map_err(Fault::damaged)?;
            self.code += code.ops();
            self.path.add(code);
        }
        if self.code > MOST_CODE {
            return Err(Fault::damaged("it has more code than any program"));
        }
        Ok(())
    }

    /// Was all there that was promised?
    fn check_end(&self) -> Result<bool, Fault> {
        // The block that is pending counts too.
        let pending = self.pending.as_ref().and_then(|one| self.path.blocks.get(one.block));
        let left = match (&self.pending, pending) {
            (Some(one), Some(known)) if !one.again => known.code.instructions.len() as u64,
            _ => 0,
        };
        if self.instructions + left != self.info.instructions {
            return Err(Fault::damaged("a window has another length than it claims"));
        }
        Ok(false)
    }
}

impl Iterator for TraceOps {
    type Item = Result<TraceOp, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.next >= self.made.len() {
            if self.ended {
                return None;
            }
            match self.make() {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(fault) => {
                    self.ended = true;
                    self.made.clear();
                    return Some(Err(fault.of(&self.name)));
                }
            }
        }
        let op = *self.made.get(self.next)?;
        self.next += 1;
        self.instructions += u64::from(op.starts_instruction);
        Some(Ok(op))
    }
}

fn at_end(column: &Cursor<Vec<u8>>) -> bool {
    column.position() >= column.get_ref().len() as u64
}

/// The next number of a column.
#[inline]
fn take<T: serde::de::DeserializeOwned>(column: &mut Cursor<Vec<u8>>) -> Result<T, Fault> {
    let position = usize::try_from(column.position()).unwrap_or(usize::MAX);
    let all = column.get_ref().len();
    let rest = column.get_ref().get(position..).unwrap_or_default();
    let (value, rest) = postcard::take_from_bytes(rest)?;
    let read = (all - rest.len()) as u64;
    column.set_position(read);
    Ok(value)
}
