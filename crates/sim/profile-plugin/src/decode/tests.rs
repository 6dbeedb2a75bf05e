//! Tests of decoding on instructions whose micro-operations are known.

use symbiont_profile::OpClass;

use super::block;
use crate::block::{Block, Leaves, TEMPORARY};
use OpClass::{
    Branch, Divide, FpAdd, FpDivide, FpFma, FpMultiply, Integer, Load, Multiply, Other, Store,
    Vector,
};

fn decode(instructions: &[&[u8]]) -> Block {
    let mut at = 0x40_1000;
    let placed: Vec<(u64, &[u8])> = instructions
        .iter()
        .map(|bytes| {
            let here = at;
            at += bytes.len() as u64;
            (here, *bytes)
        })
        .collect();
    block(0, placed.into_iter())
}

fn classes(bytes: &[u8]) -> Vec<OpClass> {
    decode(&[bytes]).instructions[0].ops.iter().map(|op| op.class).collect()
}

#[test]
fn instructions_are_split_as_hardware_does() {
    let cases: &[(&str, &[u8], &[OpClass])] = &[
        ("add rax, rbx", &[0x48, 0x01, 0xd8], &[Integer]),
        ("mov rax, [rbx]", &[0x48, 0x8b, 0x03], &[Load]),
        ("mov [rbx], rax", &[0x48, 0x89, 0x03], &[Store]),
        ("mov rax, rbx", &[0x48, 0x89, 0xd8], &[Integer]),
        ("add rax, [rbx]", &[0x48, 0x03, 0x03], &[Load, Integer]),
        ("add [rbx], rax", &[0x48, 0x01, 0x03], &[Load, Integer, Store]),
        ("lea rax, [rbx+rcx*8]", &[0x48, 0x8d, 0x04, 0xcb], &[Integer]),
        ("imul rax, rbx", &[0x48, 0x0f, 0xaf, 0xc3], &[Multiply]),
        ("div rbx", &[0x48, 0xf7, 0xf3], &[Divide]),
        ("push rax", &[0x50], &[Store]),
        ("pop rax", &[0x58], &[Load]),
        ("call +0", &[0xe8, 0, 0, 0, 0], &[Store, Branch]),
        ("ret", &[0xc3], &[Load, Branch]),
        ("jmp rax", &[0xff, 0xe0], &[Branch]),
        ("jmp [rax]", &[0xff, 0x20], &[Load, Branch]),
        ("je +0", &[0x74, 0x00], &[Branch]),
        ("nop", &[0x90], &[Other]),
        ("nop dword [rax]", &[0x0f, 0x1f, 0x00], &[Other]),
        ("prefetcht0 [rax]", &[0x0f, 0x18, 0x08], &[Other]),
        ("syscall", &[0x0f, 0x05], &[Other]),
        ("addsd xmm0, xmm1", &[0xf2, 0x0f, 0x58, 0xc1], &[FpAdd]),
        ("mulps xmm0, [rax]", &[0x0f, 0x59, 0x00], &[Load, FpMultiply]),
        ("divsd xmm0, xmm1", &[0xf2, 0x0f, 0x5e, 0xc1], &[FpDivide]),
        ("vfmadd231pd ymm0, ymm1, ymm2", &[0xc4, 0xe2, 0xf5, 0xb8, 0xc2], &[FpFma]),
        ("movaps xmm0, [rax]", &[0x0f, 0x28, 0x00], &[Load]),
        ("movaps [rax], xmm0", &[0x0f, 0x29, 0x00], &[Store]),
        ("paddd xmm0, xmm1", &[0x66, 0x0f, 0xfe, 0xc1], &[Vector]),
        ("cvtsi2sd xmm0, rax", &[0xf2, 0x48, 0x0f, 0x2a, 0xc0], &[FpAdd]),
        ("ucomisd xmm0, xmm1", &[0x66, 0x0f, 0x2e, 0xc1], &[FpAdd]),
        ("fld qword [rax]", &[0xdd, 0x00], &[Load]),
        ("fmulp", &[0xde, 0xc9], &[FpMultiply]),
        ("movsq", &[0x48, 0xa5], &[Load, Integer, Store]),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(&classes(bytes), expected, "{name}");
    }
}

#[test]
fn floating_point_operations_are_counted_by_value() {
    let flops = |bytes: &[u8]| decode(&[bytes]).mix.flops;
    assert_eq!(flops(&[0xf2, 0x0f, 0x58, 0xc1]), 1, "addsd");
    assert_eq!(flops(&[0x0f, 0x58, 0xc1]), 4, "addps xmm");
    assert_eq!(flops(&[0xc5, 0xf5, 0x59, 0xc2]), 4, "vmulpd ymm");
    assert_eq!(flops(&[0xc4, 0xe2, 0xf5, 0xb8, 0xc2]), 8, "vfmadd231pd ymm");
    assert_eq!(flops(&[0x66, 0x0f, 0x57, 0xc0]), 0, "xorpd");
}

#[test]
fn widths_are_counted_of_vector_and_floating_point_work() {
    let mix = decode(&[
        &[0xf2, 0x0f, 0x58, 0xc1],       // addsd xmm0, xmm1
        &[0x66, 0x0f, 0xfe, 0xc1],       // paddd xmm0, xmm1
        &[0xc4, 0xe2, 0xf5, 0xb8, 0xc2], // vfmadd231pd ymm0, ymm1, ymm2
        &[0x48, 0x01, 0xd8],             // add rax, rbx
    ])
    .mix;
    assert_eq!(mix.by_width, [1, 1, 1, 0]);
}

#[test]
fn a_register_set_to_zero_by_itself_has_no_sources() {
    let block = decode(&[&[0x31, 0xc0]]); // xor eax, eax
    assert!(block.instructions[0].ops[0].reads.is_empty());
    let block = decode(&[&[0x66, 0x0f, 0xef, 0xc0]]); // pxor xmm0, xmm0
    assert!(block.instructions[0].ops[0].reads.is_empty());
}

#[test]
fn the_parts_of_an_instruction_depend_on_each_other() {
    let block = decode(&[&[0x48, 0x03, 0x03]]); // add rax, [rbx]
    let [load, add] = &block.instructions[0].ops[..] else { panic!("two parts") };
    assert_eq!((load.reads.as_slice(), load.writes.as_slice()), (&[3][..], &[TEMPORARY][..]));
    assert!(add.reads.contains(&TEMPORARY) && add.reads.contains(&0));
    assert!(!add.reads.contains(&3), "the address is the load's");
    assert!(add.writes.contains(&0));
}

#[test]
fn parts_of_registers_are_the_register() {
    let block = decode(&[&[0x88, 0xd8]]); // mov al, bl
    let op = &block.instructions[0].ops[0];
    assert!(op.reads.contains(&3) && op.writes.contains(&0));
}

#[test]
fn the_stack_engine_spares_the_stack_pointer() {
    let block = decode(&[&[0x50], &[0x5b]]); // push rax; pop rbx
    let ops: Vec<_> = block.instructions.iter().flat_map(|i| &i.ops).collect();
    assert!(ops.iter().all(|op| !op.reads.contains(&4) && !op.writes.contains(&4)));
    assert!(ops[0].reads.contains(&0) && ops[1].writes.contains(&3));
}

#[test]
fn operands_have_a_size_and_a_form() {
    let operands = |bytes: &[u8]| -> Vec<(u16, u32)> {
        let ops = &decode(&[bytes]).instructions[0].ops;
        ops.iter().map(|op| (op.operand.bytes, op.operand.form)).collect()
    };
    let memory = |bytes: &[u8]| operands(bytes)[0];
    let load = memory(&[0x8b, 0x43, 0x08]); // mov eax, [rbx+8]
    assert_eq!(load.0, 4);
    let [(8, read), (0, 0), (8, written)] = operands(&[0x48, 0x01, 0x43, 0x08])[..] else {
        panic!("add [rbx+8], rax: a load, an addition, a store")
    };
    assert!(read == load.1 && written == load.1);
    assert_ne!(memory(&[0x8b, 0x43, 0x10]).1, load.1, "mov eax, [rbx+16]");
    assert_ne!(memory(&[0x8b, 0x41, 0x08]).1, load.1, "mov eax, [rcx+8]");
    // What the stack pointer alone makes has one form: push rax; mov rax, [rsp+8]; ret
    let stack = [memory(&[0x50]), memory(&[0x48, 0x8b, 0x44, 0x24, 0x08]), memory(&[0xc3])];
    assert_eq!(stack, [stack[0]; 3]);
    assert_eq!(memory(&[0x0f, 0x29, 0x03]).0, 16, "movaps [rbx], xmm0");
    assert_eq!(operands(&[0xf3, 0x48, 0xa5]), [(0, 0); 3], "rep movsq");
}

#[test]
fn a_block_knows_its_lines_and_its_end() {
    let nops: Vec<&[u8]> = vec![&[0x90]; 70];
    let block = decode(&nops);
    assert_eq!(block.lines, [0x40_1000 / 64, 0x40_1000 / 64 + 1]);
    assert_eq!(block.instructions[63].last_line, 0);
    assert_eq!(block.instructions[64].last_line, 1);
    assert_eq!((block.start, block.last, block.after), (0x40_1000, 0x40_1045, 0x40_1046));
    assert_eq!(block.leaves, Leaves::Onward);
    assert_eq!(decode(&[&[0x75, 0x00]]).leaves, Leaves::Conditionally);
}

#[test]
fn repeated_string_instructions_are_known() {
    let block = decode(&[&[0xf3, 0x48, 0xab]]); // rep stosq
    assert!(block.is_repeat() && block.ends_with_repeat());
    assert!(!decode(&[&[0x48, 0xab]]).is_repeat(), "stosq");
    assert!(!decode(&[&[0xf3, 0xc3]]).is_repeat(), "rep ret");
}

#[test]
fn bytes_that_are_no_instruction_do_nothing() {
    let block = decode(&[&[0x06], &[]]);
    assert_eq!(block.mix.count(Other), 2);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..15), at: u64) {
        let block = block(0, std::iter::once((at, bytes.as_slice())));
        proptest::prop_assert!(!block.instructions[0].ops.is_empty());
    }
}
