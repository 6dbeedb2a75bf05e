//! The parts of qemu's plugin interface, version 1, that are used: see "QEMU TCG
//! Plugins" in qemu's developer documentation.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Names this plugin.
pub(super) type Id = u64;
/// Describes a memory access.
pub(super) type Info = u32;

/// A block that is being translated.
#[repr(C)]
pub(super) struct TranslationBlock {
    opaque: [u8; 0],
}

/// An instruction of such a block.
#[repr(C)]
pub(super) struct InstructionHandle {
    opaque: [u8; 0],
}

/// A callback that does not look at registers.
pub(super) const NO_REGISTERS: c_int = 0;
/// Reads of memory and writes to it. qemu 7.2 confuses the two where only one is
/// asked for.
pub(super) const READS_AND_WRITES: c_int = 3;

pub(super) type CpuCallback = extern "C" fn(Id, c_uint);
pub(super) type TranslateCallback = extern "C" fn(Id, *mut TranslationBlock);
pub(super) type ExecuteCallback = extern "C" fn(c_uint, *mut c_void);
pub(super) type MemoryCallback = extern "C" fn(c_uint, Info, u64, *mut c_void);
pub(super) type CallCallback =
    extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub(super) type ReturnCallback = extern "C" fn(Id, c_uint, i64, i64);
pub(super) type ExitCallback = extern "C" fn(Id, *mut c_void);

// SAFETY: as qemu declares them in its header qemu-plugin.h; qemu's executable exports them.
unsafe extern "C" {
    pub(super) fn qemu_plugin_path_to_binary() -> *const c_char;
    pub(super) fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: CpuCallback);
    pub(super) fn qemu_plugin_register_vcpu_exit_cb(id: Id, callback: CpuCallback);
    pub(super) fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: TranslateCallback);
    pub(super) fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut TranslationBlock,
        callback: ExecuteCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(super) fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut InstructionHandle,
        callback: MemoryCallback,
        flags: c_int,
        direction: c_int,
        data: *mut c_void,
    );
    pub(super) fn qemu_plugin_register_vcpu_syscall_cb(id: Id, callback: CallCallback);
    pub(super) fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: ReturnCallback);
    pub(super) fn qemu_plugin_register_atexit_cb(id: Id, callback: ExitCallback, data: *mut c_void);
    pub(super) fn qemu_plugin_mem_size_shift(info: Info) -> c_uint;
    pub(super) fn qemu_plugin_mem_is_store(info: Info) -> bool;
    fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    fn qemu_plugin_tb_get_insn(
        block: *const TranslationBlock,
        index: usize,
    ) -> *mut InstructionHandle;
    fn qemu_plugin_insn_data(instruction: *const InstructionHandle) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const InstructionHandle) -> usize;
    fn qemu_plugin_insn_vaddr(instruction: *const InstructionHandle) -> u64;
}

/// An instruction that is being translated.
pub(super) struct Translated {
    /// For registering callbacks.
    pub(super) handle: *mut InstructionHandle,
    /// Its address.
    pub(super) at: u64,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// The instructions of a block.
///
/// # Safety
/// `block` is being translated.
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "all for the same reason")]
pub(super) unsafe fn instructions(block: *const TranslationBlock) -> Vec<Translated> {
    // SAFETY: the caller's promise; indices are below the count, and the bytes are
    // as many as qemu says while the block is being translated.
    unsafe {
        (0..qemu_plugin_tb_n_insns(block))
            .map(|index| {
                let handle = qemu_plugin_tb_get_insn(block, index);
                let size = qemu_plugin_insn_size(handle);
                let data = qemu_plugin_insn_data(handle);
                Translated {
                    handle,
                    at: qemu_plugin_insn_vaddr(handle),
                    bytes: std::slice::from_raw_parts(data, size).to_vec(),
                }
            })
            .collect()
    }
}
