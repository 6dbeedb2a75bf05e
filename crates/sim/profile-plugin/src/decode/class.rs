//! The kind of work that an instruction does.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use symbiont_profile::OpClass;

/// The work of one instruction without its loads, stores and branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What its computation needs.
    pub class: OpClass,
    /// Does it only move, so that to or from memory nothing is computed?
    pub moves: bool,
    /// Index into `Mix::by_width`.
    pub width: usize,
    /// Floating-point operations on single values.
    pub flops: u32,
    /// Does it access the memory that its operand names? Address computations,
    /// hints and prefetches do not.
    pub touches_memory: bool,
    /// Is it a string instruction?
    pub is_string: bool,
}

/// Endings of the names of floating-point vector instructions, and the bytes of
/// their values.
const VALUES: [(&str, bool, u32); 6] = [
    ("SS", false, 4),
    ("SD", false, 8),
    ("PS", true, 4),
    ("PD", true, 8),
    ("SH", false, 2),
    ("PH", true, 2),
];

/// The work of an instruction.
pub fn work(instruction: &Instruction) -> Work {
    let name = format!("{:?}", instruction.mnemonic()).to_uppercase();
    let bytes = vector_bytes(instruction);
    let plain = Work {
        class: OpClass::Integer,
        moves: false,
        width: match bytes {
            64 => 3,
            32 => 2,
            16 => 1,
            _ => 0,
        },
        flops: 0,
        touches_memory: true,
        is_string: false,
    };
    if let Some(work) = special(instruction, &name, plain) {
        return work;
    }
    if name.starts_with('F') && instruction.mnemonic() != Mnemonic::Femms {
        return x87(&name, Work { width: 0, ..plain });
    }
    if bytes > 0 || is_vector_name(&name) {
        return vector(&name, bytes, plain);
    }
    Work { moves: moves_integers(&name), class: integer(&name), ..plain }
}

/// Instructions that are not what their operands look like.
fn special(instruction: &Instruction, name: &str, plain: Work) -> Option<Work> {
    let nothing = Work { class: OpClass::Other, touches_memory: false, ..plain };
    if instruction.is_invalid() || name == "NOP" || name.starts_with("PREFETCH") {
        return Some(nothing);
    }
    let hints =
        ["ENDBR", "PAUSE", "LFENCE", "MFENCE", "SFENCE", "CPUID", "RDTSC", "XGETBV", "CLFLUSH"];
    if hints.iter().any(|hint| name.starts_with(hint)) || name == "RESERVEDNOP" {
        return Some(nothing);
    }
    if matches!(instruction.flow_control(), FlowControl::Interrupt | FlowControl::Exception)
        || matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter)
    {
        return Some(nothing);
    }
    if instruction.mnemonic() == Mnemonic::Lea {
        return Some(Work { touches_memory: false, ..plain });
    }
    if instruction.is_string_instruction() {
        return Some(Work { is_string: true, width: 0, ..plain });
    }
    None
}

/// Bytes of the widest vector register that it names; 0 if it names none.
fn vector_bytes(instruction: &Instruction) -> u32 {
    (0..instruction.op_count())
        .filter(|operand| instruction.op_kind(*operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand))
        .filter(|register| register.is_vector_register() || register.is_mm())
        .map(|register| u32::try_from(register.size()).unwrap_or(0))
        .max()
        .unwrap_or(0)
}

/// Vector instructions without vector operands.
fn is_vector_name(name: &str) -> bool {
    matches!(name, "VZEROUPPER" | "VZEROALL" | "EMMS")
}

fn moves_integers(name: &str) -> bool {
    matches!(name, "MOV" | "MOVZX" | "MOVSX" | "MOVSXD" | "PUSH" | "POP" | "MOVBE" | "MOVNTI")
        || matches!(name, "PUSHFQ" | "POPFQ" | "CALL" | "RET" | "JMP" | "MOVABS")
}

fn integer(name: &str) -> OpClass {
    match name {
        "MUL" | "IMUL" | "MULX" => OpClass::Multiply,
        "DIV" | "IDIV" => OpClass::Divide,
        _ => OpClass::Integer,
    }
}

/// x87: eighty bits, one value at a time.
fn x87(name: &str, plain: Work) -> Work {
    let of = |class, flops| Work { class, flops, ..plain };
    let starts = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    if starts(&["FDIV", "FIDIV", "FSQRT"]) {
        return of(OpClass::FpDivide, 1);
    }
    if starts(&["FSIN", "FCOS", "FPTAN", "FPATAN", "F2XM1", "FYL2X", "FPREM", "FSCALE", "FXTRACT"])
    {
        return of(OpClass::FpDivide, 1);
    }
    if starts(&["FMUL", "FIMUL"]) {
        return of(OpClass::FpMultiply, 1);
    }
    if starts(&["FADD", "FIADD", "FSUB", "FISUB"]) {
        return of(OpClass::FpAdd, 1);
    }
    if starts(&[
        "FCOM", "FUCOM", "FICOM", "FTST", "FXAM", "FRNDINT", "FABS", "FCHS", "FILD", "FIST",
    ]) {
        return of(OpClass::FpAdd, 0);
    }
    Work { class: OpClass::Vector, moves: starts(&["FLD", "FST"]), ..plain }
}

fn vector(name: &str, bytes: u32, plain: Work) -> Work {
    let name = name.strip_prefix('V').unwrap_or(name);
    let moves = name.starts_with("MOV") && !name.starts_with("MOVMSK") || name == "LDDQU";
    let moves = moves || name.starts_with("BROADCAST") || name.starts_with("PBROADCAST");
    let rest = Work { class: OpClass::Vector, moves, ..plain };
    let Some((stem, packed, size)) = VALUES.iter().find_map(|(ending, packed, size)| {
        name.strip_suffix(ending).map(|stem| (stem, *packed, *size))
    }) else {
        return convert(name, rest);
    };
    let lanes = if packed { (bytes / size).max(1) } else { 1 };
    let width = if packed { plain.width } else { 0 };
    let of = |class, each: u32| Work { class, width, flops: each * lanes, ..plain };
    let fused = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    match fused {
        "FMADD" | "FMSUB" | "FNMADD" | "FNMSUB" | "FMADDSUB" | "FMSUBADD" => of(OpClass::FpFma, 2),
        "ADD" | "SUB" | "ADDSUB" | "HADD" | "HSUB" => of(OpClass::FpAdd, 1),
        "MIN" | "MAX" | "CMP" | "COMI" | "UCOMI" | "ROUND" | "REDUCE" => of(OpClass::FpAdd, 0),
        "MUL" => of(OpClass::FpMultiply, 1),
        "DP" => of(OpClass::FpMultiply, 2),
        "RCP" | "RSQRT" => of(OpClass::FpMultiply, 1),
        "DIV" | "SQRT" => of(OpClass::FpDivide, 1),
        _ if stem.starts_with("CMP") => of(OpClass::FpAdd, 0),
        _ if stem.starts_with("CVT") => of(OpClass::FpAdd, 0),
        // Moves, shuffles and logic, which end alike.
        _ => Work { width, ..rest },
    }
}

/// Conversions end in any type.
fn convert(name: &str, rest: Work) -> Work {
    if name.starts_with("CVT") {
        Work { class: OpClass::FpAdd, moves: false, ..rest }
    } else {
        rest
    }
}
