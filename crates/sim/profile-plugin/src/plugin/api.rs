//! The parts of qemu's plugin interface that are used: see "QEMU TCG Plugins" in qemu's developer documentation.
//!
//! Here is what all versions have in common, and how the bytes of an instruction are read. How callbacks are
//! registered differs: see [`super::register`].

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::command_line;
use crate::interface::Interface;

/// Names this plugin.
pub(super) type Id = u64;
/// Describes a memory access.
pub(super) type Info = u32;

/// qemu's `qemu_info_t`, its first fields.
#[repr(C)]
pub(super) struct About {
    target: *const c_char,
    /// The lowest supported and the current version of the interface.
    pub(super) least: c_int,
    pub(super) current: c_int,
}

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

pub(super) type ExecuteCallback = extern "C" fn(c_uint, *mut c_void);
pub(super) type MemoryCallback = extern "C" fn(c_uint, Info, u64, *mut c_void);

// SAFETY: as qemu declares them in its header qemu-plugin.h; qemu's executable exports them.
unsafe extern "C" {
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
    pub(super) fn qemu_plugin_mem_size_shift(info: Info) -> c_uint;
    pub(super) fn qemu_plugin_mem_is_store(info: Info) -> bool;
    fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    fn qemu_plugin_tb_get_insn(
        block: *const TranslationBlock,
        index: usize,
    ) -> *mut InstructionHandle;
    fn qemu_plugin_insn_size(instruction: *const InstructionHandle) -> usize;
    fn qemu_plugin_insn_vaddr(instruction: *const InstructionHandle) -> u64;
}

/// The bytes of an instruction until version 2 of the interface.
mod lent {
    use super::InstructionHandle;
    // SAFETY: as qemu declares it up to 9.0.
    unsafe extern "C" {
        pub(super) fn qemu_plugin_insn_data(instruction: *const InstructionHandle) -> *const u8;
    }
}

/// The bytes of an instruction since version 3 of the interface.
#[allow(clashing_extern_declarations, reason = "qemu has changed it")]
mod copied {
    use super::InstructionHandle;
    // SAFETY: as qemu declares it since 9.1.
    unsafe extern "C" {
        pub(super) fn qemu_plugin_insn_data(
            instruction: *const InstructionHandle,
            to: *mut u8,
            length: usize,
        ) -> usize;
    }
}

/// `Dl_info` of dladdr(3).
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

// SAFETY: as the C library declares them in dlfcn.h.
unsafe extern "C" {
    fn dladdr(address: *const c_void, found: *mut DlInfo) -> c_int;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The program that this process emulates.
pub(super) fn program() -> String {
    // SAFETY: null means all libraries and the executable; the name is a C string.
    let found = unsafe { dlsym(std::ptr::null_mut(), c"qemu_plugin_path_to_binary".as_ptr()) };
    if found.is_null() {
        return command_line::program(&std::fs::read("/proc/self/cmdline").unwrap_or_default());
    }
    // SAFETY: this is how qemu declares the function of this name.
    let path_to_binary = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(found)
    };
    // SAFETY: it may be called once a virtual CPU is there.
    let path = unsafe { path_to_binary() };
    // SAFETY: it is a C string or null.
    unsafe { text(path) }
}

/// The path by which the library was loaded that this address lies in.
pub(super) fn loaded_by<T>(address: &'static T) -> String {
    let null = std::ptr::null_mut();
    let mut found = DlInfo { file: null, base: null.cast(), symbol: null, address: null.cast() };
    // SAFETY: `found` is what it writes to.
    let known = unsafe { dladdr(std::ptr::from_ref(address).cast(), &raw mut found) };
    // SAFETY: on success it is a C string or null.
    if known == 0 { String::new() } else { unsafe { text(found.file) } }
}

/// A C string, or nothing for null.
///
/// # Safety
/// `from` is null or a valid C string.
pub(super) unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// An instruction that is being translated.
pub(super) struct TranslatedInstruction {
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
/// `block` is being translated by a qemu with this interface.
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "all for the same reason")]
pub(super) unsafe fn instructions(
    block: *const TranslationBlock,
    interface: Interface,
) -> Vec<TranslatedInstruction> {
    // SAFETY: the caller's promise; indices are below the count.
    unsafe {
        (0..qemu_plugin_tb_n_insns(block))
            .map(|index| {
                let handle = qemu_plugin_tb_get_insn(block, index);
                let at = qemu_plugin_insn_vaddr(handle);
                TranslatedInstruction { handle, at, bytes: bytes(handle, interface) }
            })
            .collect()
    }
}

/// The bytes of an instruction.
///
/// # Safety
/// It is of a block that is being translated by a qemu with this interface.
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "all for the same reason")]
unsafe fn bytes(handle: *const InstructionHandle, interface: Interface) -> Vec<u8> {
    // SAFETY: the caller's promise; they are as many as qemu says while the block is being translated.
    unsafe {
        let size = qemu_plugin_insn_size(handle);
        if interface.copies_bytes {
            let mut bytes = vec![0; size];
            let length = copied::qemu_plugin_insn_data(handle, bytes.as_mut_ptr(), size);
            bytes.truncate(length);
            bytes
        } else {
            std::slice::from_raw_parts(lent::qemu_plugin_insn_data(handle), size).to_vec()
        }
    }
}
