//! The scheduler in the kernel.

use std::os::fd::AsRawFd;

use anyhow::{Context, bail};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, Object, ObjectBuilder, PrintLevel};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use symbiont_ext::{Ended, Placed, SiblingTime, Statistics, obstacle};
use symbiont_topology::HostTopology;

use crate::layout::{self, Counted, Fields, MAX_CPUS};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/partner.bpf.o"));
/// A descriptor of a thread, not of a process (`PIDFD_THREAD`).
const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);
/// Flag of `sched_ext_ops`: only threads of the class SCHED_EXT.
const SWITCH_PARTIAL: u64 = 8;
/// The kernel's reasons to end (`scx_exit_kind`): asked for by user space, and by the kernel because CPUs changed.
const UNREGISTERED: u32 = 64;
/// From here on they are errors.
const ERRORS: u32 = 1024;
/// In an exit code: load it again.
const RESTART: u64 = 1 << 48;

/// So often an update is tried that the kernel asks to try again.
const TRIES: u32 = 100;

/// A scheduler that is loaded until this is dropped.
pub struct Loaded {
    object: Object,
    cpus: usize,
    // Dropped before the object, whose maps it uses.
    _link: Link,
}

impl Loaded {
    /// Loads it, for all usual threads or for those of the class `SCHED_EXT` only.
    pub fn load(full: bool, verbose: bool) -> anyhow::Result<Self> {
        if let Some(why) = obstacle() {
            bail!(why);
        }
        let host = HostTopology::read().context("the machine's CPUs cannot be read")?;
        let cpus = host.cpus().iter().map(|cpu| cpu.0 as usize + 1).max().unwrap_or(1);
        if cpus > MAX_CPUS {
            bail!("this machine has {cpus} CPUs, and the scheduler knows {MAX_CPUS}");
        }
        libbpf_rs::set_print(verbose.then_some((PrintLevel::Debug, |_, text| eprint!("{text}"))));
        let mut open =
            ObjectBuilder::default().open_memory(PROGRAM).context("its program cannot be read")?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if name.ends_with(".rodata.machine") {
                map.set_initial_value(&layout::machine(&host))
                    .context("it does not take the machine")?;
            }
            if name == "partner" && full {
                without_partial(map.initial_value_mut().context("it has no options")?)?;
            }
        }
        if verbose {
            // How much the kernel had to verify.
            open.progs_mut().for_each(|mut program| program.set_log_level(4));
        }
        let mut object = open.load().context("the kernel refuses it")?;
        let mut maps = object.maps_mut();
        let mut map = maps.find(|map| map.name() == "partner").context("it has no operations")?;
        let link = map.attach_struct_ops().context("the kernel does not take it")?;
        drop(maps);
        Ok(Self { object, cpus, _link: link })
    }

    fn map(&self, name: &str) -> anyhow::Result<libbpf_rs::Map<'_>> {
        let mut maps = self.object.maps();
        maps.find(|map| map.name().to_string_lossy().ends_with(name))
            .with_context(|| format!("no map {name}"))
    }

    /// From now on the thread belongs there. One that has ended is none.
    pub fn place(&self, placed: &Placed) -> anyhow::Result<()> {
        let Some(thread) = open(placed.thread)? else { return Ok(()) };
        let key = thread.as_raw_fd().to_ne_bytes();
        let map = self.map("placed")?;
        let done = tried_again(|| map.update(&key, &layout::placed(placed), MapFlags::ANY));
        // It may have ended since.
        if done.is_err() && open(placed.thread)?.is_none() {
            return Ok(());
        }
        done.with_context(|| format!("thread {} cannot be placed", placed.thread))
    }

    /// It belongs nowhere any more.
    pub fn release(&self, thread: u32) -> anyhow::Result<()> {
        let Some(thread) = open(thread)? else { return Ok(()) };
        // It may have had no place.
        let _ = self.map("placed")?.delete(&thread.as_raw_fd().to_ne_bytes());
        Ok(())
    }

    /// Why the scheduler is not loaded any more; nothing while it is.
    pub fn ended(&self) -> anyhow::Result<Option<Ended>> {
        let bytes = self.said()?;
        let mut fields = Fields(&bytes);
        let (_, code, kind) = (fields.long(), fields.long(), fields.word());
        let (reason, message) = (fields.text::<128>(), fields.text::<256>());
        if kind == 0 {
            return Ok(None);
        }
        let again = (UNREGISTERED..ERRORS).contains(&kind) && code & RESTART != 0;
        let why = match message.as_str() {
            "" => reason,
            message => format!("{reason}: {message}"),
        };
        Ok(Some(Ended { why, again }))
    }

    fn said(&self) -> anyhow::Result<Vec<u8>> {
        let said = self.map(".data.said")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        said.context("what it says cannot be read")?.context("it says nothing")
    }

    /// What it did so far.
    pub fn statistics(&self) -> anyhow::Result<Statistics> {
        let map = self.map("cpus")?;
        let longest_wait_ns = Fields(&self.said()?).long();
        let mut all = Statistics { longest_wait_ns, ..Statistics::default() };
        for cpu in 0..u32::try_from(self.cpus)? {
            let bytes = map
                .lookup(&cpu.to_ne_bytes(), MapFlags::ANY)
                .context("its counts cannot be read")?;
            let counted = Counted::read(&bytes.unwrap_or_default());
            all.dispatches += counted.dispatches;
            all.preemptions += counted.preemptions;
            all.starved += counted.starved;
            all.own_ns += counted.own_ns;
            all.lent_ns += counted.guest_ns;
            for (nth, class) in Counted::keepers().filter(|(nth, _)| counted.keeper_ns[*nth] > 0) {
                let siblings: &mut SiblingTime = all.siblings.entry(class).or_default();
                siblings.all_ns += counted.keeper_ns[nth];
                siblings.idle_ns += counted.beside_idle_ns[nth].min(counted.keeper_ns[nth]);
            }
        }
        Ok(all)
    }
}

/// Tries again what the kernel says may be done at another try: of two that want to be the first to keep something about
/// a thread, here and in the scheduler when the thread is first queued, it refuses one.
fn tried_again(mut update: impl FnMut() -> libbpf_rs::Result<()>) -> libbpf_rs::Result<()> {
    for _ in 1..TRIES {
        match update() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            done => return done,
        }
    }
    update()
}

/// Takes the flag out of the operations, whose layout is that of `struct sched_ext_ops` in `kernel.h`: pointers to
/// ten functions, then the flags.
fn without_partial(operations: &mut [u8]) -> anyhow::Result<()> {
    let flags = operations
        .get_mut(80..88)
        .and_then(|bytes| bytes.first_chunk_mut::<8>())
        .context("no flags")?;
    let now = u64::from_ne_bytes(*flags);
    if now & SWITCH_PARTIAL == 0 {
        bail!("its flags are not where they should be");
    }
    *flags = (now & !SWITCH_PARTIAL).to_ne_bytes();
    Ok(())
}

/// A descriptor of a thread; none of one that is gone.
fn open(thread: u32) -> anyhow::Result<Option<rustix::fd::OwnedFd>> {
    let Some(pid) = i32::try_from(thread).ok().and_then(Pid::from_raw) else { return Ok(None) };
    match pidfd_open(pid, OF_THREAD) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(Errno::SRCH | Errno::INVAL) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("thread {thread} cannot be named")),
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::Error;

    use super::*;

    #[test]
    fn what_may_be_done_at_another_try_is_tried_again() {
        let again = || Err(Error::from_raw_os_error(Errno::AGAIN.raw_os_error()));
        let mut tries = 0;
        let mut count = |result: libbpf_rs::Result<()>| {
            tries += 1;
            result
        };
        let mut answers = [again(), again(), Ok(())].into_iter();
        tried_again(|| count(answers.next().unwrap())).unwrap();
        let mut answers = [Err(Error::from_raw_os_error(Errno::NOENT.raw_os_error()))].into_iter();
        assert!(tried_again(|| count(answers.next().unwrap())).is_err(), "once");
        assert_eq!(tries, 4);
        assert!(tried_again(again).is_err(), "not for ever");
    }
}
