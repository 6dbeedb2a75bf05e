//! Looks up events in libpfm4, the library of event tables, where it is installed.
//!
//! The library is loaded when it is first needed and stays loaded; nothing is linked against it
//! (pfm_initialize(3), pfm_get_os_event_encoding(3)).
#![expect(unsafe_code, reason = "a C library that is loaded at run time has no safe wrapper")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::spec::Spec;
use super::sys::Attr;

/// The library, by the version of its interface.
const LIBRARY: &CStr = c"libpfm.so.4";
/// `PFM_OS_PERF_EVENT`: encode for `perf_event_open(2)`.
const PERF_EVENT: c_int = 1;
/// `PFM_PLM0 | PFM_PLM3`: count in the kernel and in the program.
const LEVELS: c_int = 1 | 8;
/// `PFM_SUCCESS`.
const SUCCESS: c_int = 0;

type Initialize = unsafe extern "C" fn() -> c_int;
type Encode = unsafe extern "C" fn(*const c_char, c_int, c_int, *mut c_void) -> c_int;
type Describe = unsafe extern "C" fn(c_int) -> *const c_char;

/// `pfm_perf_encode_arg_t`.
#[repr(C)]
struct Argument {
    attr: *mut Room,
    text: *mut *mut c_char,
    size: usize,
    index: c_int,
    cpu: c_int,
    flags: c_int,
    padding: c_int,
}

/// What the library writes to: it takes the structure's size from its size
/// field, older versions from their own header, which is never larger.
#[repr(C)]
struct Room {
    attr: Attr,
    rest: [u64; 64],
}

/// The library keeps state of its own and has no lock.
static ALONE: Mutex<()> = Mutex::new(());

/// An event by libpfm4's name for it.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn encode(name: &str) -> Result<Spec, String> {
    let text = CString::new(name).map_err(|_| "the name contains a zero byte".to_owned())?;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the name is a C string. Loading runs whatever the system's own
    // library of that name does when it is loaded, as for any program that is
    // linked against it.
    let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err("it is not installed (libpfm.so.4)".to_owned());
    }
    let symbol = |name: &CStr| {
        // SAFETY: the handle is dlopen's and is never closed; the name is a C string.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        if found.is_null() {
            Err(format!("it has no {}", name.to_string_lossy()))
        } else {
            Ok(found)
        }
    };
    let (initialize, encode, describe) = (
        symbol(c"pfm_initialize")?,
        symbol(c"pfm_get_os_event_encoding")?,
        symbol(c"pfm_strerror")?,
    );
    // SAFETY: this is the function's type in perfmon/pfmlib.h, and the library
    // stays loaded.
    let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(initialize) };
    // SAFETY: as above.
    let encode = unsafe { std::mem::transmute::<*mut c_void, Encode>(encode) };
    // SAFETY: as above.
    let describe = unsafe { std::mem::transmute::<*mut c_void, Describe>(describe) };
    let check = |code: c_int| {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: it takes any number and gives null or a constant C string.
        let text = unsafe { describe(code) };
        if text.is_null() {
            return Err(format!("error {code}"));
        }
        // SAFETY: as above.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    // SAFETY: it takes nothing, and may be called again; no other thread is in the
    // library, for we hold the lock.
    check(unsafe { initialize() })?;
    let mut room = Room { attr: Attr::new(0, 0), rest: [0; 64] };
    let size = size_of::<Argument>();
    let mut argument = Argument {
        attr: &raw mut room,
        text: null_mut(),
        size,
        index: 0,
        cpu: -1,
        flags: 0,
        padding: 0,
    };
    // SAFETY: the name is a C string; the argument is laid out as in
    // perfmon/pfmlib_perf_event.h, says its size, and points to room for any
    // perf_event_attr. Both outlive the call.
    check(unsafe { encode(text.as_ptr(), LEVELS, PERF_EVENT, (&raw mut argument).cast()) })?;
    let Attr { kind, config, config1, config2, .. } = room.attr;
    Ok(Spec { config1, config2, ..Spec::new(name, kind, config) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::SOFTWARE;

    #[test]
    fn names_are_encoded_where_the_library_is_installed() {
        match encode("perf::PERF_COUNT_SW_PAGE_FAULTS") {
            Ok(spec) => assert_eq!((spec.kind, spec.config), (SOFTWARE, 2)),
            Err(why) => {
                assert!(why.contains("not installed"), "{why}");
                eprintln!("skipped: {why}");
            }
        }
    }

    #[test]
    fn names_that_are_none_are_refused_with_a_reason() {
        for name in ["no::such::event", "", "a\0b", "perf::PERF_COUNT_SW_NOTHING"] {
            assert!(encode(name).is_err_and(|why| !why.is_empty()), "{name:?}");
        }
    }
}
