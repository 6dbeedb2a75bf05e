//! What a core executes: streams of micro-operations.
//!
//! # Terms and units
//! Addresses are bytes as the caches see them; threads that share no memory must use
//! different ones. A *page* is a number that stands for one entry of a translation
//! buffer.

use symbiont_profile::{FromStore, OpClass};

/// What is known of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Branch {
    /// No branch, or one that every predictor predicts right.
    Foreseen,
    /// A conditional branch, predicted by the core's predictor.
    Conditional {
        /// Was it taken?
        taken: bool,
    },
    /// A jump through a register or memory: the core's predictor predicts the target.
    Indirect {
        /// The low bits of where it went.
        target: u32,
    },
    /// A direct call, always predicted right.
    Call {
        /// The low bits of where it will return to.
        after: u32,
    },
    /// A call through a register or memory: the core's predictor predicts the target.
    IndirectCall {
        /// The low bits of where it went.
        target: u32,
        /// The low bits of where it will return to.
        after: u32,
    },
    /// A return: the core's predictor remembers where the last calls came from.
    Return {
        /// The low bits of where it went.
        target: u32,
    },
    /// Mispredicted or not, whatever the core's predictor says.
    Given {
        /// Was it mispredicted?
        wrong: bool,
    },
}

/// One micro-operation of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What it needs.
    pub class: OpClass,
    /// Is it the first micro-operation of its instruction?
    pub starts_instruction: bool,
    /// How many micro-operations back its sources were made; 0: none.
    pub sources: [u16; 2],
    /// Of a load, the store that wrote what it reads, if that is not long ago.
    pub stored: Option<FromStore>,
    /// What is known of it as a branch.
    pub branch: Branch,
    /// Does fetch go on elsewhere after it?
    pub taken: bool,
    /// Address of its instruction.
    pub pc: u64,
    /// Page of its instruction.
    pub code_page: u64,
    /// Address of its data; only loads and stores have any.
    pub address: u64,
    /// Page of its data.
    pub page: u64,
}

impl Op {
    /// An operation without sources at address 0, that is an instruction of its own.
    #[must_use]
    pub fn plain(class: OpClass) -> Self {
        Self {
            class,
            starts_instruction: true,
            sources: [0; 2],
            stored: None,
            branch: Branch::Foreseen,
            taken: false,
            pc: 0,
            code_page: 0,
            address: 0,
            page: 0,
        }
    }

    /// A load or store at an address, in pages of 4 KiB.
    #[must_use]
    pub fn memory(class: OpClass, address: u64) -> Self {
        Self { address, page: address >> 12, ..Self::plain(class) }
    }

    /// Does it work on floating-point or vector registers?
    #[must_use]
    pub fn is_vector(class: OpClass) -> bool {
        class.is_floating_point() || class == OpClass::Vector
    }
}

/// What a thread executes, in program order.
pub type Stream<'s> = Box<dyn Iterator<Item = Op> + Send + 's>;
