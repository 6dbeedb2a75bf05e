//! The plugin as qemu sees it: callbacks that lead to the meters.
//!
//! # Which threads may touch what
//! A virtual CPU is a host thread, and qemu calls back for it on that thread only. So only one thread touches the
//! meter of a CPU, until the exit callback, for which qemu has stopped all others. Blocks are made under qemu's
//! translation lock. They are never changed afterwards and never freed, since translated code holds their
//! addresses.
#![allow(unsafe_code, reason = "the interface is C's")]

mod api;
mod blocks;
mod output;
mod register;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use symbiont_profile::OpClass;
use symbiont_profile::vectors::{Geometry, Hierarchy};

use crate::block::{Block, Repeat};
use crate::interface::{Interface, exported};
use crate::meter::{BUDGET, Meter};
use crate::window::Plan;
use api::text;
use output::Output;

/// Virtual CPUs that can be metered at once.
const CPUS: usize = 8192;

/// The meters, by index of the virtual CPU.
static METERS: [AtomicPtr<Meter>; CPUS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; CPUS];
/// Where intervals are written.
static OUTPUT: AtomicPtr<Output> = AtomicPtr::new(std::ptr::null_mut());
/// Instructions of an interval.
static INTERVAL: AtomicU64 = AtomicU64::new(BUDGET);
/// The folder for the files of intervals.
static FOLDER: OnceLock<PathBuf> = OnceLock::new();
/// Windows to record, and of which process, counted from 0.
static WINDOWS: OnceLock<(u32, Plan)> = OnceLock::new();
/// Caches to simulate.
static CACHES: OnceLock<Hierarchy> = OnceLock::new();
/// Threads of this process that started so far.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Threads that there was no room for.
static UNMETERED: AtomicU32 = AtomicU32::new(0);

/// How this qemu's functions are called.
static INTERFACE: OnceLock<Interface> = OnceLock::new();

/// The version of the plugin interface, which qemu asks for once the library is loaded.
// SAFETY: the name is qemu's for this purpose; nothing else in the process has it. An `AtomicI32` is a C `int`.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs as the library is loaded.
// SAFETY: the section holds pointers to functions that the loader calls, of which this is one; the function uses
// nothing that would have to be initialised first.
#[used]
#[unsafe(link_section = ".init_array")]
static AS_LOADED: extern "C" fn() = choose_version;

/// Exports the version that the name of the library's file says.
extern "C" fn choose_version() {
    let version = exported(&api::loaded_by(&qemu_plugin_version));
    qemu_plugin_version.store(version, Ordering::Relaxed);
}

/// Called by qemu when it loads the plugin. Arguments: `dir=` the folder for the
/// files of intervals, `budget=` the instructions of an interval,
/// `windows=PROCESS:LENGTH:START+…` what is to be traced, and `caches=SETS:WAYS:LINE+…` the caches to simulate: L1
/// data, L1 instruction, L2.
///
/// # Safety
/// Only qemu may call it, as its plugin interface says.
// SAFETY: the name is qemu's for this purpose; nothing else in the process has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::Id,
    about: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let mut dir = None;
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: qemu passes `count` pointers, of which this is one.
        let argument = unsafe { arguments.wrapping_add(index).read() };
        // SAFETY: each points to a C string.
        let argument = unsafe { text(argument) };
        match argument.split_once('=') {
            Some(("dir", value)) => dir = Some(value.to_owned()),
            Some(("budget", value)) => match value.parse() {
                Ok(budget) => INTERVAL.store(budget, Ordering::Relaxed),
                Err(_) => return refuse("budget= wants a number"),
            },
            Some(("windows", value)) => match windows(value) {
                // It can be set once only, which is now.
                Some(windows) => drop(WINDOWS.set(windows)),
                None => return refuse("windows= wants PROCESS:LENGTH:START+..."),
            },
            Some(("caches", value)) => match caches(value) {
                Some(caches) => drop(CACHES.set(caches)),
                None => return refuse("caches= wants SETS:WAYS:LINE three times, with + between"),
            },
            _ => return refuse("it takes dir=, budget=, windows= and caches="),
        }
    }
    let Some(dir) = dir else { return refuse("dir= is missing") };
    if FOLDER.set(dir.into()).is_err() {
        return refuse("it is loaded twice");
    }
    // SAFETY: qemu passes what it says of itself.
    let Some(api::About { least, current, .. }) = (unsafe { about.cast::<api::About>().as_ref() })
    else {
        return refuse("qemu does not say which plugins it supports");
    };
    let version = qemu_plugin_version.load(Ordering::Relaxed);
    let Some(interface) = Interface::of(version, *least, *current) else {
        return refuse(&format!("it is of version {version}, and qemu takes {least} to {current}"));
    };
    let interface = *INTERFACE.get_or_init(|| interface);
    // SAFETY: this is the installation of the plugin `id`; the callbacks live for ever.
    unsafe { register::register(id, interface) };
    0
}

/// What is to be traced: `PROCESS:LENGTH:START+…`.
fn windows(value: &str) -> Option<(u32, Plan)> {
    let (process, rest) = value.split_once(':')?;
    let (length, starts) = rest.split_once(':')?;
    let starts = starts.split('+').map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((process.parse().ok()?, Plan { length: length.parse().ok()?, starts }))
}

/// Three caches: `SETS:WAYS:LINE+…`.
fn caches(value: &str) -> Option<Hierarchy> {
    let geometry = |text: &str| {
        let mut parts = text.split(':').map(|part| part.parse().ok());
        let mut next = || parts.next().flatten();
        Some(Geometry { sets: next()?, ways: next()?, line: next()? })
    };
    let [l1d, l1i, l2] = value.split('+').collect::<Vec<_>>().try_into().ok()?;
    let hierarchy = Hierarchy { l1d: geometry(l1d)?, l1i: geometry(l1i)?, l2: geometry(l2)? };
    hierarchy.is_sane().then_some(hierarchy)
}

/// Lets a meter record what is to be traced of the process that has this output.
fn plan(meter: &mut Meter, output: &Output) {
    if let Some((_, plan)) = WINDOWS.get().filter(|(process, _)| *process == output.number()) {
        meter.record_windows(plan.clone());
    }
}

/// Says why the plugin does not start.
fn refuse(why: &str) -> c_int {
    eprintln!("symbiont profile plugin: {why}");
    1
}

/// The place of a CPU's meter.
fn place(cpu: c_uint) -> Option<&'static AtomicPtr<Meter>> {
    METERS.get(cpu as usize)
}

/// The meter of the CPU that is calling back.
#[inline]
fn meter(cpu: c_uint) -> Option<&'static mut Meter> {
    let meter = place(cpu)?.load(Ordering::Relaxed);
    // SAFETY: not null means made by `cpu_starts`; only this CPU's thread uses it (see above).
    unsafe { meter.as_mut() }
}

/// Where to write.
fn output() -> Option<&'static Output> {
    // SAFETY: made by `start_output` or after a fork, and never freed.
    unsafe { OUTPUT.load(Ordering::Acquire).as_ref() }
}

/// Writes the intervals and windows that ended.
#[cold]
fn write(meter: &mut Meter) {
    let (intervals, windows) = (meter.take(), meter.take_windows());
    if let Some(output) = output() {
        windows.iter().for_each(|window| output.window(window));
        intervals.iter().for_each(|interval| output.interval(interval));
    }
}

fn cpu_starts(cpu: c_uint) {
    let thread = THREADS.fetch_add(1, Ordering::Relaxed);
    let Some(place) = place(cpu) else {
        UNMETERED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let mut meter = Box::new(Meter::new(thread, INTERVAL.load(Ordering::Relaxed)));
    if let Some(hierarchy) = CACHES.get() {
        meter.simulate_caches(hierarchy);
    }
    // The first thread starts before its program is known: see `start_output`.
    if let Some(output) = output() {
        plan(&mut meter, output);
    }
    place.store(Box::into_raw(meter), Ordering::Release);
}

fn cpu_exits(cpu: c_uint) {
    let Some(place) = place(cpu) else { return };
    let meter = place.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if meter.is_null() {
        return;
    }
    // SAFETY: made by `cpu_starts` from a box; no other code has it since the swap.
    let mut meter = unsafe { Box::from_raw(meter) };
    meter.flush();
    write(&mut meter);
}

fn process_exits() {
    for cpu in 0..CPUS as c_uint {
        // qemu has stopped all other CPUs and removed their callbacks.
        cpu_exits(cpu);
    }
    if let Some(output) = output() {
        output.end(UNMETERED.load(Ordering::Relaxed));
    }
}

extern "C" fn block_executes(cpu: c_uint, block: *mut c_void) {
    // SAFETY: `translate` registered the address of a block, which is never freed.
    let block: &'static Block = unsafe { &*block.cast() };
    let Some(meter) = meter(cpu) else { return };
    if meter.execute(block) {
        write(meter);
    }
}

/// What `translate` passes to the memory callbacks: the instruction's index in its
/// block, and the bytes of its operand.
#[derive(Clone, Copy)]
struct Where {
    instruction: usize,
    bytes: u32,
}

impl Where {
    fn pack(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.instruction << 16 | self.bytes.min(0xffff) as usize)
    }

    fn unpack(packed: *mut c_void) -> Self {
        let bits = packed.addr();
        Self { instruction: bits >> 16, bytes: (bits & 0xffff) as u32 }
    }
}

/// Load or store? Atomic operations that qemu makes in one piece count as stores.
fn class(info: api::Info) -> OpClass {
    // SAFETY: `info` comes from qemu for the access that it calls back for.
    if unsafe { api::qemu_plugin_mem_is_store(info) } { OpClass::Store } else { OpClass::Load }
}

extern "C" fn accesses(cpu: c_uint, info: api::Info, at: u64, data: *mut c_void) {
    if let Some(meter) = meter(cpu) {
        meter.access(Where::unpack(data).instruction, class(info), at);
    }
}

extern "C" fn accesses_wide(cpu: c_uint, info: api::Info, at: u64, data: *mut c_void) {
    let place = Where::unpack(data);
    // SAFETY: `info` comes from qemu for this access.
    let bytes = 1 << unsafe { api::qemu_plugin_mem_size_shift(info) }.min(16);
    if let Some(meter) = meter(cpu) {
        meter.piece(place.instruction, class(info), at, bytes, place.bytes);
    }
}

extern "C" fn accesses_string(cpu: c_uint, info: api::Info, at: u64, data: *mut c_void) {
    // SAFETY: `translate` registered the address of a string instruction, which is never freed.
    let repeat: &'static Repeat = unsafe { &*data.cast() };
    let Some(meter) = meter(cpu) else { return };
    if meter.repeated(repeat, class(info), at) {
        write(meter);
    }
}

/// Creates the file of this program, which qemu knows by now. Called under
/// qemu's translation lock.
#[cold]
fn start_output() {
    let Some(folder) = FOLDER.get() else { return };
    match Output::create(folder.clone(), api::program(), false) {
        Ok(output) => {
            // Only the first CPU is there, and this is its thread.
            (0..CPUS as c_uint).filter_map(meter).for_each(|meter| plan(meter, &output));
            OUTPUT.store(Box::into_raw(Box::new(output)), Ordering::Release);
        }
        Err(error) => {
            refuse(&error.to_string());
        }
    }
}

/// # Safety
/// `block` is being translated.
unsafe fn translate(block: *mut api::TranslationBlock) {
    let Some(interface) = INTERFACE.get() else { return };
    if output().is_none() {
        start_output();
    }
    // SAFETY: the caller's promise.
    let instructions = unsafe { api::instructions(block, *interface) };
    let (known, repeat) = blocks::intern(&instructions);
    let data = std::ptr::from_ref(known).cast_mut().cast();
    // SAFETY: the callback reads the block, which lives for ever.
    unsafe {
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, block_executes, api::NO_REGISTERS, data);
    }
    for (index, (handle, decoded)) in instructions.iter().zip(&known.instructions).enumerate() {
        let place = Where { instruction: index, bytes: decoded.access_bytes };
        let repeat = repeat.filter(|repeat| repeat.instruction == index);
        let (callback, data): (api::MemoryCallback, _) = match repeat {
            Some(repeat) => (accesses_string, std::ptr::from_ref(repeat).cast_mut().cast()),
            None if decoded.access_bytes > 8 => (accesses_wide, place.pack()),
            None => (accesses, place.pack()),
        };
        let (flags, both) = (api::NO_REGISTERS, api::READS_AND_WRITES);
        // SAFETY: the handle is of this translation; the data is no pointer, or to what lives for ever.
        unsafe {
            api::qemu_plugin_register_vcpu_mem_cb(handle.handle, callback, flags, both, data);
        }
    }
}

/// Numbers of the system calls of x86-64 that make or replace processes.
mod calls {
    pub(super) const CLONE: i64 = 56;
    pub(super) const FORK: i64 = 57;
    pub(super) const VFORK: i64 = 58;
    pub(super) const EXECVE: i64 = 59;
    pub(super) const EXECVEAT: i64 = 322;
}

fn system_call(cpu: c_uint, number: i64) {
    if !matches!(number, calls::EXECVE | calls::EXECVEAT) {
        return;
    }
    // If it succeeds there are no callbacks any more.
    if let (Some(meter), Some(output)) = (meter(cpu), output()) {
        output.interval(&meter.so_far());
    }
}

fn system_call_returns(cpu: c_uint, number: i64, result: i64) {
    let forks = matches!(number, calls::CLONE | calls::FORK | calls::VFORK);
    let Some(parent) = output() else { return };
    if !forks || result != 0 || parent.is_of_this_process() {
        return;
    }
    // A forked child: of its parent's CPUs it has this one only. What the others
    // counted is the parent's; their meters stay where they are, unused.
    for (index, place) in METERS.iter().enumerate() {
        if index != cpu as usize {
            place.store(std::ptr::null_mut(), Ordering::Release);
        }
    }
    THREADS.store(1, Ordering::Relaxed);
    let child = parent.forked();
    if let Some(meter) = meter(cpu) {
        meter.fork();
        if let Some(child) = &child {
            plan(meter, child);
        }
    }
    let child = child.map_or(std::ptr::null_mut(), |child| Box::into_raw(Box::new(child)));
    OUTPUT.store(child, Ordering::Release);
}
