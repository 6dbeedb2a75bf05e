//! Registers the callbacks in the form that qemu's interface asks for. Until version 6 they get the plugin's
//! number as their first argument, since version 7 the caller's data as their last; otherwise they are the same.

use super::api::Id;
use crate::interface::Interface;

/// Registers all callbacks.
///
/// # Safety
/// Only during installation of the plugin `id` in a qemu with this interface.
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "one of them, for the same reason")]
pub(super) unsafe fn register(id: Id, interface: Interface) {
    // SAFETY: the caller's promise; each callback has the type that is declared for it.
    unsafe { if interface.passes_data { with_data::register(id) } else { with_id::register(id) } }
}

/// Until version 6.
mod with_id {
    use std::ffi::{c_uint, c_void};

    use crate::plugin::api::{Id, TranslationBlock};
    use crate::plugin::{
        cpu_exits, cpu_starts, process_exits, system_call, system_call_returns, translate,
    };

    type Cpu = extern "C" fn(Id, c_uint);
    type Translate = extern "C" fn(Id, *mut TranslationBlock);
    type Call = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
    type Return = extern "C" fn(Id, c_uint, i64, i64);
    type Exit = extern "C" fn(Id, *mut c_void);

    // SAFETY: as qemu declares them up to 11.0; qemu's executable exports them.
    unsafe extern "C" {
        fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: Cpu);
        fn qemu_plugin_register_vcpu_exit_cb(id: Id, callback: Cpu);
        fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: Translate);
        fn qemu_plugin_register_vcpu_syscall_cb(id: Id, callback: Call);
        fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: Return);
        fn qemu_plugin_register_atexit_cb(id: Id, callback: Exit, data: *mut c_void);
    }

    /// # Safety
    /// As [`super::register`].
    #[allow(clippy::multiple_unsafe_ops_per_block, reason = "all for the same reason")]
    pub(super) unsafe fn register(id: Id) {
        // SAFETY: the caller's promise.
        unsafe {
            qemu_plugin_register_vcpu_init_cb(id, init);
            qemu_plugin_register_vcpu_exit_cb(id, exit);
            qemu_plugin_register_vcpu_tb_trans_cb(id, trans);
            qemu_plugin_register_vcpu_syscall_cb(id, call);
            qemu_plugin_register_vcpu_syscall_ret_cb(id, ret);
            qemu_plugin_register_atexit_cb(id, at_exit, std::ptr::null_mut());
        }
    }

    extern "C" fn init(_: Id, cpu: c_uint) {
        cpu_starts(cpu);
    }

    extern "C" fn exit(_: Id, cpu: c_uint) {
        cpu_exits(cpu);
    }

    extern "C" fn trans(_: Id, block: *mut TranslationBlock) {
        // SAFETY: qemu calls with a block that is being translated.
        unsafe { translate(block) };
    }

    #[allow(clippy::too_many_arguments, reason = "as qemu calls it")]
    extern "C" fn call(
        _: Id,
        cpu: c_uint,
        number: i64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
    ) {
        system_call(cpu, number);
    }

    extern "C" fn ret(_: Id, cpu: c_uint, number: i64, result: i64) {
        system_call_returns(cpu, number, result);
    }

    extern "C" fn at_exit(_: Id, _: *mut c_void) {
        process_exits();
    }
}

/// Since version 7.
#[allow(clashing_extern_declarations, reason = "qemu has changed them")]
mod with_data {
    use std::ffi::{c_uint, c_void};

    use crate::plugin::api::{Id, TranslationBlock};
    use crate::plugin::{
        cpu_exits, cpu_starts, process_exits, system_call, system_call_returns, translate,
    };

    type Cpu = extern "C" fn(c_uint, *mut c_void);
    type Translate = extern "C" fn(*mut TranslationBlock, *mut c_void);
    type Call = extern "C" fn(c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64, *mut c_void);
    type Return = extern "C" fn(c_uint, i64, i64, *mut c_void);
    type Exit = extern "C" fn(*mut c_void);

    // SAFETY: as qemu declares them since 11.1; qemu's executable exports them.
    unsafe extern "C" {
        fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: Cpu, data: *mut c_void);
        fn qemu_plugin_register_vcpu_exit_cb(id: Id, callback: Cpu, data: *mut c_void);
        fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: Translate, data: *mut c_void);
        fn qemu_plugin_register_vcpu_syscall_cb(id: Id, callback: Call, data: *mut c_void);
        fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, callback: Return, data: *mut c_void);
        fn qemu_plugin_register_atexit_cb(id: Id, callback: Exit, data: *mut c_void);
    }

    /// # Safety
    /// As [`super::register`].
    #[allow(clippy::multiple_unsafe_ops_per_block, reason = "all for the same reason")]
    pub(super) unsafe fn register(id: Id) {
        let none = std::ptr::null_mut();
        // SAFETY: the caller's promise; no callback uses its data.
        unsafe {
            qemu_plugin_register_vcpu_init_cb(id, init, none);
            qemu_plugin_register_vcpu_exit_cb(id, exit, none);
            qemu_plugin_register_vcpu_tb_trans_cb(id, trans, none);
            qemu_plugin_register_vcpu_syscall_cb(id, call, none);
            qemu_plugin_register_vcpu_syscall_ret_cb(id, ret, none);
            qemu_plugin_register_atexit_cb(id, at_exit, none);
        }
    }

    extern "C" fn init(cpu: c_uint, _: *mut c_void) {
        cpu_starts(cpu);
    }

    extern "C" fn exit(cpu: c_uint, _: *mut c_void) {
        cpu_exits(cpu);
    }

    extern "C" fn trans(block: *mut TranslationBlock, _: *mut c_void) {
        // SAFETY: qemu calls with a block that is being translated.
        unsafe { translate(block) };
    }

    #[allow(clippy::too_many_arguments, reason = "as qemu calls it")]
    extern "C" fn call(
        cpu: c_uint,
        number: i64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: *mut c_void,
    ) {
        system_call(cpu, number);
    }

    extern "C" fn ret(cpu: c_uint, number: i64, result: i64, _: *mut c_void) {
        system_call_returns(cpu, number, result);
    }

    extern "C" fn at_exit(_: *mut c_void) {
        process_exits();
    }
}
