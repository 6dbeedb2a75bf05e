//! Threads' CPU masks, of any number of CPUs, as the kernel reads and writes them.
//!
//! # Problem
//! The C library and rustix have masks of a fixed 1,024 CPUs. A kernel with more possible CPUs refuses to fill
//! such a mask, and the further CPUs cannot be named in one.
//!
//! # Approach
//! The calls take a mask as machine words, CPU 0 in the lowest bit of the first. [`get`] doubles its buffer as
//! long as the kernel answers EINVAL, and returns what the kernel filled. [`set`] writes as many words as the
//! highest CPU needs: the kernel takes the rest as zeros, and ignores words beyond its own size. "All CPUs" is as
//! many bits as the kernel's own mask has.
//!
//! # Properties
//! - A set is the same after writing and reading, whatever its CPUs up to 8,191 and beyond
//!   (`a_set_survives_encoding`).
//! - What the kernel did not fill is no CPU (`only_what_was_filled_is_read`).
//! - The buffer grows until it fits, and not for ever (`the_buffer_grows_until_it_fits`).
//! - A thread has the mask that it was given (`a_mask_that_was_set_is_read_back`).

#![allow(unsafe_code, reason = "masks of any size have no safe wrapper")]

use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use symbiont_topology::{CpuSet, PuId};

type Word = libc::c_ulong;
const BITS: usize = Word::BITS as usize;
/// Words of the first try: 1,024 CPUs.
const FIRST: usize = 1024 / BITS;
/// Words of the last try: 1,048,576 CPUs, more than any kernel is built for.
const LAST: usize = (1 << 20) / BITS;

/// The CPUs that a thread may use; without a thread, the calling one.
pub(crate) fn get(thread: Option<Pid>) -> Result<CpuSet, Errno> {
    Ok(decode(&filled(|words| ask(thread, words))?))
}

/// Lets a thread use just these CPUs; without a thread, the calling one. `None`: all that the
/// kernel has a bit for.
pub(crate) fn set(thread: Option<Pid>, cpus: Option<&CpuSet>) -> Result<(), Errno> {
    let words = match cpus {
        Some(cpus) => encode(cpus),
        None => vec![Word::MAX; filled(|words| ask(None, words))?.len()],
    };
    let bytes = words.len() * size_of::<Word>();
    // SAFETY: the kernel reads at most `bytes` bytes from the pointer, which points to so many
    // initialised bytes of a local that lives for the whole call.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, number(thread), bytes, words.as_ptr())
    };
    if answer == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Lets a thread, or the first one of a process, use just these CPUs: for programs that were just
/// started and are not managed.
///
/// # Errors
/// When there is no such thread, or the kernel refuses.
pub fn pin(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    Ok(set(Some(thread), Some(cpus))?)
}

/// The CPUs that the calling thread may use.
///
/// # Errors
/// When the kernel does not report it.
pub fn allowed() -> io::Result<CpuSet> {
    Ok(get(None)?)
}

/// Has the kernel fill words; returns how many bytes it filled.
fn ask(thread: Option<Pid>, words: &mut [Word]) -> Result<usize, Errno> {
    let bytes = size_of_val(words);
    // SAFETY: the kernel writes at most `bytes` bytes to the pointer, which points to so many bytes
    // that are borrowed mutably for the whole call; any bits are a valid word.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, number(thread), bytes, words.as_mut_ptr())
    };
    usize::try_from(answer).map_err(|_| last_errno())
}

/// The words that were filled, of a buffer that grows as long as it is too small.
fn filled(mut ask: impl FnMut(&mut [Word]) -> Result<usize, Errno>) -> Result<Vec<Word>, Errno> {
    let mut words = vec![0; FIRST];
    loop {
        match ask(&mut words) {
            Ok(bytes) => {
                words.truncate(bytes.div_ceil(size_of::<Word>()));
                return Ok(words);
            }
            Err(Errno::INVAL) if words.len() < LAST => words.resize(words.len() * 2, 0),
            Err(error) => return Err(error),
        }
    }
}

fn encode(cpus: &CpuSet) -> Vec<Word> {
    let mut words = Vec::new();
    for cpu in cpus.iter().map(|cpu| cpu.0 as usize).filter(|cpu| cpu / BITS < LAST) {
        let at = cpu / BITS;
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (cpu % BITS);
    }
    // A mask without a word is refused as too small, not as empty.
    if words.is_empty() { vec![0] } else { words }
}

fn decode(words: &[Word]) -> CpuSet {
    let cpus = words.iter().enumerate().flat_map(|(at, word)| {
        (0..BITS).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at * BITS + bit)
    });
    cpus.filter_map(|cpu| u32::try_from(cpu).ok()).map(PuId).collect()
}

fn number(thread: Option<Pid>) -> libc::pid_t {
    thread.map_or(0, |thread| thread.as_raw_nonzero().get())
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cpus(numbers: impl IntoIterator<Item = u32>) -> CpuSet {
        numbers.into_iter().map(PuId).collect()
    }

    proptest! {
        #[test]
        fn a_set_survives_encoding(numbers in proptest::collection::btree_set(0u32..10_000, 0..200)) {
            let set = cpus(numbers);
            prop_assert_eq!(decode(&encode(&set)), set);
        }
    }

    #[test]
    fn the_largest_machines_fit() {
        let all = cpus(0..8192);
        let words = encode(&all);
        assert_eq!((words.len(), decode(&words)), (8192 / BITS, all));
        for number in [0, 63, 64, 1023, 1024, 8191] {
            let words = encode(&cpus([number]));
            assert_eq!(words.len(), number as usize / BITS + 1);
            assert_eq!(words.iter().map(|word| word.count_ones()).sum::<u32>(), 1);
            assert_eq!(decode(&words), cpus([number]));
        }
        assert_eq!(encode(&CpuSet::new()), [0]);
    }

    /// A kernel with so many possible CPUs, all of which a thread may use.
    fn kernel(possible: usize) -> impl FnMut(&mut [Word]) -> Result<usize, Errno> {
        move |words| {
            if words.len() * BITS < possible {
                return Err(Errno::INVAL);
            }
            (0..possible).for_each(|cpu| words[cpu / BITS] |= 1 << (cpu % BITS));
            Ok(possible.div_ceil(BITS) * size_of::<Word>())
        }
    }

    #[test]
    fn the_buffer_grows_until_it_fits() {
        for possible in [1u32, 64, 1024, 1025, 5000, 8192] {
            let words = filled(kernel(possible as usize)).unwrap();
            assert_eq!(decode(&words), cpus(0..possible));
        }
        let mut tries = 0;
        let never = filled(|_| {
            tries += 1;
            Err(Errno::INVAL)
        });
        assert_eq!((never, tries), (Err(Errno::INVAL), 11));
    }

    #[test]
    fn only_what_was_filled_is_read() {
        let words = filled(|words| {
            words.fill(Word::MAX);
            Ok(size_of::<Word>())
        });
        assert_eq!(decode(&words.unwrap()), cpus(0..BITS as u32));
        assert_eq!(filled(|_| Err(Errno::SRCH)), Err(Errno::SRCH));
    }

    #[test]
    fn a_mask_that_was_set_is_read_back() {
        // In a thread of its own, whose mask no other code reads.
        let thread = std::thread::spawn(|| {
            let before = get(None).unwrap();
            let first = cpus(before.first().map(|cpu| cpu.0));
            // CPUs that no machine has are not applied.
            set(None, Some(&first.union(&cpus([8191, 70_000])))).unwrap();
            assert_eq!(get(None).unwrap(), first);
            assert_eq!(set(None, Some(&CpuSet::new())), Err(Errno::INVAL));
            assert_eq!(set(None, Some(&cpus([70_000]))), Err(Errno::INVAL));
            let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            pin(own, &first).unwrap();
            assert_eq!(pin(0, &first).unwrap_err().raw_os_error(), Some(libc::ESRCH));
            set(None, None).unwrap();
            assert!(before.is_subset(&get(None).unwrap()));
        });
        thread.join().unwrap();
    }
}
