//! Records micro-traces.

use symbiont_profile::trace::{Dependences, unroll};
use symbiont_profile::{Access, MicroOp, MicroTrace, OpClass, Stores};

use crate::block::{Block, Instruction};

/// Instructions before a micro-trace of which only what they wrote is kept, since the micro-trace may read it. No core
/// has more in flight.
pub const LEAD: usize = 512;
/// Instructions after which a micro-trace ends, at the next end of a block.
const LENGTH: usize = 1_200;
/// No micro-trace is longer: blocks behind this are left out.
const LONGEST: usize = 1_500;
/// No micro-trace has more operations. One repeated string instruction, such as clearing a large
/// table, makes any number of them: a micro-trace ends within it, since what follows would weigh
/// nothing in addition.
const MOST_OPS: usize = 4 * LONGEST;

/// A data access of the block that is being executed.
#[derive(Debug, Clone, Copy)]
pub struct DataAccess {
    /// Which instruction of the block.
    pub instruction: usize,
    /// Load or store.
    pub class: OpClass,
    /// Address of its first byte.
    pub address: u64,
    /// Where, and how long ago.
    pub access: Access,
}

/// A micro-trace that is being recorded.
#[derive(Debug)]
pub struct Recorder {
    trace: MicroTrace,
    /// Instructions of the lead that are to come.
    lead: usize,
    instructions: usize,
    dependences: Dependences,
    stores: Stores,
    accesses: Vec<DataAccess>,
    fetches: Vec<Access>,
}

impl Recorder {
    /// An empty micro-trace after so many instructions.
    pub fn new(lead: usize) -> Self {
        Self {
            trace: MicroTrace::default(),
            lead,
            instructions: 0,
            dependences: Dependences::default(),
            stores: Stores::default(),
            accesses: Vec::new(),
            fetches: Vec::new(),
        }
    }

    /// The block being executed accessed data.
    pub fn accessed(&mut self, access: DataAccess) {
        if self.accesses.len() < MOST_OPS {
            self.accesses.push(access);
        }
    }

    /// The block being executed was fetched from another line.
    pub fn fetched(&mut self, access: Access) {
        self.fetches.push(access);
    }

    /// The block ended. `again`: it is one more round of a repeated string
    /// instruction. Returns the micro-trace if it is complete.
    pub fn executed(&mut self, block: &Block, again: bool, mispredicted: u8) -> Option<MicroTrace> {
        let accesses = std::mem::take(&mut self.accesses);
        // A micro-trace begins with an instruction, not with a further round of a repeated one.
        if self.lead > 0 || again && self.trace.ops.is_empty() {
            self.fetches.clear();
            for (index, instruction) in block.instructions.iter().enumerate() {
                self.instruction(index, instruction, again, &accesses);
            }
            self.trace.ops.clear();
            self.lead = self.lead.saturating_sub(if again { 0 } else { block.instructions.len() });
            return None;
        }
        let mut fetches = std::mem::take(&mut self.fetches).into_iter().peekable();
        let fits = self.instructions + block.instructions.len() <= LONGEST;
        if again || fits {
            for (index, instruction) in block.instructions.iter().enumerate() {
                let start = self.trace.ops.len();
                self.instruction(index, instruction, again, &accesses);
                let until = block.lines.get(instruction.last_line).copied().unwrap_or(0);
                if let Some(op) = self.trace.ops.get_mut(start).filter(|_| !again) {
                    op.starts_instruction = true;
                    op.fetch = fetches.next_if(|fetch| fetch.line <= until);
                }
            }
        }
        if fits && !again {
            if let Some(last) = self.trace.ops.last_mut() {
                last.mispredicted = mispredicted;
            }
            self.instructions += block.instructions.len();
        }
        let full = self.trace.ops.len() >= MOST_OPS;
        self.trace.ops.truncate(MOST_OPS);
        let complete = self.instructions >= LENGTH || !fits || full;
        complete.then(|| std::mem::take(&mut self.trace))
    }

    /// What was recorded so far.
    pub fn cut(self) -> MicroTrace {
        self.trace
    }

    fn instruction(
        &mut self,
        index: usize,
        instruction: &Instruction,
        again: bool,
        accesses: &[DataAccess],
    ) {
        let own = accesses.iter().filter(|access| access.instruction == index);
        let own = own.map(|access| (access.class, *access));
        let Self { trace, dependences, stores, .. } = self;
        unroll(&instruction.ops, again, &own, |class, reads, writes, access| {
            let place = access.map(|(access, operand)| (access.address, operand));
            trace.ops.push(MicroOp {
                sources: dependences.sources(reads, writes),
                stored: stores.next(class, place),
                access: access.map(|(access, _)| access.access),
                starts_instruction: false,
                ..MicroOp::plain(class)
            });
        });
    }
}
