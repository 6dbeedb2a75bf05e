//! From x86-64 instructions to micro-operations.
//!
//! ```text
//! micro-operations of an instruction, in this order:
//!     a load for each memory operand that it reads
//!     a computation, unless it only moves to or from memory
//!     a store for each memory operand that it writes
//!     a branch, if it may change the flow of control
//! ```
//!
//! The arithmetic of pushes, pops, calls and returns on the stack pointer costs nothing and makes no dependence,
//! as in the stack engines of current processors. An instruction that sets a register to zero by combining it
//! with itself has no sources.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, InstructionInfo, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};
use symbiont_profile::{Mix, OpClass, Operand};

use crate::block::{Block, FLAGS, Instruction, Leaves, Op, TEMPORARY};

mod class;

pub use class::{Work, work};

/// Decodes a block: the addresses and bytes of its instructions. Bytes that are no
/// instruction become one that does nothing of what is modelled.
pub fn block<'a>(id: usize, instructions: impl Iterator<Item = (u64, &'a [u8])>) -> Block {
    let mut factory = InstructionInfoFactory::new();
    let mut block = Block {
        id,
        start: 0,
        last: 0,
        after: 0,
        leaves: Leaves::Onward,
        instructions: Vec::new(),
        lines: Vec::new(),
        mix: Mix::default(),
    };
    for (at, bytes) in instructions {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let decoded = decoder.decode();
        if block.instructions.is_empty() {
            block.start = at;
        }
        block.last = at;
        block.after = at.saturating_add(bytes.len() as u64);
        block.leaves = leaves(&decoded);
        for line in at / 64..=block.after.saturating_sub(1).max(at) / 64 {
            if block.lines.last() != Some(&line) {
                block.lines.push(line);
            }
        }
        let work = work(&decoded);
        let mut instruction = split(&decoded, factory.info(&decoded), work);
        instruction.last_line = block.lines.len() - 1;
        instruction.length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        count(&mut block.mix, &instruction, work);
        block.instructions.push(instruction);
    }
    block
}

fn leaves(instruction: &iced_x86::Instruction) -> Leaves {
    // System calls come back to the next instruction.
    if matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter) {
        return Leaves::Onward;
    }
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Leaves::Conditionally,
        FlowControl::UnconditionalBranch => Leaves::Jump,
        FlowControl::Call => Leaves::Call,
        FlowControl::IndirectBranch => Leaves::IndirectJump,
        FlowControl::IndirectCall => Leaves::IndirectCall,
        FlowControl::Return => Leaves::Return,
        _ => Leaves::Onward,
    }
}

fn count(mix: &mut Mix, instruction: &Instruction, work: Work) {
    for op in instruction.ops.iter().filter(|op| !op.class.is_memory()) {
        mix.ops[op.class.index()] += 1;
        if op.class.is_floating_point() || op.class == OpClass::Vector {
            mix.by_width[work.width] += 1;
        }
    }
    mix.flops += u64::from(work.flops);
}

/// The number of a register that dependences are tracked through.
fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    if full.is_gpr64() {
        return u8::try_from(full.number()).ok();
    }
    if full.is_vector_register() {
        return u8::try_from(16 + full.number()).ok().filter(|number| *number < 48);
    }
    if full.is_k() {
        return u8::try_from(48 + full.number()).ok();
    }
    // The x87 stack moves under its names: one register stands for all.
    full.is_st().then_some(56)
}

/// Does the stack engine take care of its stack pointer?
fn uses_stack_engine(instruction: &iced_x86::Instruction) -> bool {
    instruction.is_stack_instruction()
        && !matches!(instruction.mnemonic(), Mnemonic::Leave | Mnemonic::Enter)
}

/// Registers read, registers written, and those in addresses.
struct Registers {
    reads: Vec<u8>,
    writes: Vec<u8>,
    address: Vec<u8>,
}

fn push(list: &mut Vec<u8>, register: Option<u8>) {
    if let Some(register) = register.filter(|register| !list.contains(register)) {
        list.push(register);
    }
}

fn registers(instruction: &iced_x86::Instruction, info: &InstructionInfo) -> Registers {
    let mut found = Registers { reads: Vec::new(), writes: Vec::new(), address: Vec::new() };
    for memory in info.used_memory() {
        push(&mut found.address, number(memory.base()));
        push(&mut found.address, number(memory.index()));
    }
    let explicit = |register: Register| {
        (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register
                && instruction.op_register(operand).full_register() == register.full_register()
                && reads(info.op_access(operand))
        })
    };
    for used in info.used_registers() {
        let register = used.register();
        let Some(index) = number(register) else { continue };
        let in_address = found.address.contains(&index);
        if reads(used.access()) && (!in_address || explicit(register)) {
            push(&mut found.reads, Some(index));
        }
        if writes(used.access()) {
            push(&mut found.writes, Some(index));
        }
    }
    if uses_stack_engine(instruction) {
        let pointer = number(Register::RSP);
        for list in [&mut found.reads, &mut found.writes, &mut found.address] {
            list.retain(|register| Some(*register) != pointer);
        }
    }
    if instruction.rflags_read() != 0 {
        push(&mut found.reads, Some(FLAGS));
    }
    if instruction.rflags_modified() != 0 {
        push(&mut found.writes, Some(FLAGS));
    }
    found
}

fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// Size and form of an operand in memory. Those that the stack pointer alone makes have one form: pushes and
/// pops move it by amounts that cores keep account of.
fn operand(memory: &UsedMemory) -> Operand {
    let bytes = u16::try_from(memory.memory_size().size()).unwrap_or(0);
    if memory.base() == Register::RSP && memory.index() == Register::None {
        return Operand { bytes, form: 1 };
    }
    let [base, index] = [memory.base(), memory.index()].map(|register| register as u64);
    let parts =
        [memory.segment() as u64, base, index, memory.scale().into(), memory.displacement()];
    // FNV-1a, by words.
    let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = parts.into_iter().fold(0xcbf2_9ce4_8422_2325, mix);
    Operand { bytes, form: (hash >> 32) as u32 | 2 }
}

/// Splits an instruction into micro-operations.
fn split(instruction: &iced_x86::Instruction, info: &InstructionInfo, work: Work) -> Instruction {
    let Registers { reads: sources, writes: results, address } = registers(instruction, info);
    let touches = work.touches_memory;
    let memory: Vec<_> = info.used_memory().iter().filter(|_| touches).collect();
    let repeats =
        work.is_string && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
    let operands = |touches: fn(OpAccess) -> bool| -> Vec<Operand> {
        let touched = memory.iter().filter(|memory| touches(memory.access()));
        touched.map(|memory| if repeats { Operand::default() } else { operand(memory) }).collect()
    };
    let (read, written) = (operands(reads), operands(writes));
    let (loads, stores) = (read.len(), written.len());
    let branches = leaves(instruction) != Leaves::Onward;
    let computes = !branches && (!work.moves || loads + stores == 0);

    let mut ops = Vec::new();
    let handed = |writes: &[u8], last: bool| -> Vec<u8> {
        if last { writes.to_vec() } else { vec![TEMPORARY] }
    };
    let loads_last = !computes && !branches && stores == 0;
    for operand in read {
        let mut reads = address.clone();
        if loads_last {
            // A move that merges into its destination needs it.
            sources.iter().for_each(|register| push(&mut reads, Some(*register)));
        }
        let writes = handed(&results, loads_last);
        ops.push(Op { class: OpClass::Load, reads, writes, operand });
    }
    if computes {
        let mut reads = sources.clone();
        if loads > 0 {
            reads.push(TEMPORARY);
        } else if !touches {
            // The address is what it computes.
            address.iter().for_each(|register| push(&mut reads, Some(*register)));
        }
        let mut writes = results.clone();
        if stores > 0 {
            writes.push(TEMPORARY);
        }
        ops.push(Op { class: work.class, reads, writes, operand: Operand::default() });
    }
    for operand in written {
        let mut reads = address.clone();
        if computes || loads > 0 {
            reads.push(TEMPORARY);
        } else {
            sources.iter().for_each(|register| push(&mut reads, Some(*register)));
        }
        ops.push(Op { class: OpClass::Store, reads, writes: Vec::new(), operand });
    }
    if branches {
        let mut reads = sources;
        if loads > 0 {
            reads.push(TEMPORARY);
        }
        let operand = Operand::default();
        ops.push(Op { class: OpClass::Branch, reads, writes: Vec::new(), operand });
    }
    let bytes = instruction.memory_size().size();
    let access_bytes = u32::try_from(bytes).unwrap_or(0);
    Instruction { ops, access_bytes, repeats, last_line: 0, length: 0 }
}

#[cfg(test)]
mod tests;
