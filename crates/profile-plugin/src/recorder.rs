//! Records micro-traces.

use symbiont_profile::{Access, MicroOp, MicroTrace, OpClass};

use crate::block::{Block, Instruction, Op, REGISTERS};

/// Instructions after which a micro-trace ends, at the next end of a block.
const LENGTH: usize = 1_200;
/// No micro-trace is longer: blocks behind this are left out.
const LONGEST: usize = 1_500;

/// A data access of the block that is being executed.
#[derive(Debug, Clone, Copy)]
pub struct DataAccess {
    /// Which instruction of the block.
    pub instruction: usize,
    /// Load or store.
    pub class: OpClass,
    /// Where, and how long ago.
    pub access: Access,
}

/// A micro-trace that is being recorded.
#[derive(Debug)]
pub struct Recorder {
    trace: MicroTrace,
    instructions: usize,
    /// The micro-operation, counted from 1, that wrote each register last.
    writers: [usize; REGISTERS],
    accesses: Vec<DataAccess>,
    fetches: Vec<Access>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl Recorder {
    /// An empty micro-trace.
    pub fn new() -> Self {
        Self {
            trace: MicroTrace::default(),
            instructions: 0,
            writers: [0; REGISTERS],
            accesses: Vec::new(),
            fetches: Vec::new(),
        }
    }

    /// The block being executed accessed data.
    pub fn accessed(&mut self, access: DataAccess) {
        self.accesses.push(access);
    }

    /// The block being executed was fetched from another line.
    pub fn fetched(&mut self, access: Access) {
        self.fetches.push(access);
    }

    /// The block ended. `again`: it is one more round of a repeated string
    /// instruction. Returns the micro-trace if it is complete.
    pub fn executed(&mut self, block: &Block, again: bool, mispredicted: u8) -> Option<MicroTrace> {
        let accesses = std::mem::take(&mut self.accesses);
        let mut fetches = std::mem::take(&mut self.fetches).into_iter().peekable();
        let fits = self.instructions + block.instructions.len() <= LONGEST;
        if again {
            self.extra(&accesses, &block.instructions[..]);
        } else if fits {
            for (index, instruction) in block.instructions.iter().enumerate() {
                let start = self.trace.ops.len();
                self.instruction(index, instruction, &accesses);
                let until = block.lines.get(instruction.last_line).copied().unwrap_or(0);
                if let Some(op) = self.trace.ops.get_mut(start) {
                    op.starts_instruction = true;
                    op.fetch = fetches.next_if(|fetch| fetch.line <= until);
                }
            }
            if let Some(last) = self.trace.ops.last_mut() {
                last.mispredicted = mispredicted;
            }
            self.instructions += block.instructions.len();
        }
        let complete = self.instructions >= LENGTH || !fits;
        complete.then(|| std::mem::take(&mut self.trace))
    }

    /// What was recorded so far.
    pub fn cut(self) -> MicroTrace {
        self.trace
    }

    fn instruction(&mut self, index: usize, instruction: &Instruction, accesses: &[DataAccess]) {
        let of =
            |class| accesses.iter().filter(move |a| a.instruction == index && a.class == class);
        let (mut loads, mut stores) = (of(OpClass::Load), of(OpClass::Store));
        for op in &instruction.ops {
            match op.class {
                OpClass::Load => self.access(op, loads.next()),
                OpClass::Store => self.access(op, stores.next()),
                class => self.push(op, class, None),
            }
        }
        // More than decoded: gathers, repeated string instructions, saved states.
        for access in loads.chain(stores) {
            self.access(&template(instruction, access.class), Some(access));
        }
    }

    /// The accesses of one more round of a repeated string instruction.
    fn extra(&mut self, accesses: &[DataAccess], instructions: &[Instruction]) {
        for access in accesses {
            if let Some(instruction) = instructions.get(access.instruction) {
                self.access(&template(instruction, access.class), Some(access));
            }
        }
    }

    /// A load or store; one that did not access (as a masked one) needs no port to memory.
    fn access(&mut self, op: &Op, access: Option<&DataAccess>) {
        let class = if access.is_some() { op.class } else { OpClass::Integer };
        self.push(op, class, access.map(|access| access.access));
    }

    fn push(&mut self, op: &Op, class: OpClass, access: Option<Access>) {
        let at = self.trace.ops.len() + 1;
        let mut made: Vec<usize> = op
            .reads
            .iter()
            .filter_map(|register| self.writers.get(usize::from(*register)).copied())
            .filter(|writer| *writer > 0)
            .collect();
        made.sort_unstable_by(|a, b| b.cmp(a));
        made.dedup();
        let distance = |source: usize| {
            made.get(source).map_or(0, |writer| u16::try_from(at - writer).unwrap_or(0))
        };
        for register in &op.writes {
            if let Some(writer) = self.writers.get_mut(usize::from(*register)) {
                *writer = at;
            }
        }
        self.trace.ops.push(MicroOp {
            class,
            starts_instruction: false,
            sources: [distance(0), distance(1)],
            access,
            fetch: None,
            mispredicted: 0,
        });
    }
}

/// A load or store as the instruction makes them, without what it reads and writes.
fn template(instruction: &Instruction, class: OpClass) -> Op {
    let like = instruction.ops.iter().find(|op| op.class == class);
    let reads = like.map(|op| op.reads.clone()).unwrap_or_default();
    Op { class, reads, writes: Vec::new() }
}
